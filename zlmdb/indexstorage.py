"""The entries of an index: where they are, and how they are made of a record.

The key of an entry is the encoded index key; where several records may have one, the encoded primary key follows it.
The encoded primary key also is the entry's value, so that looking up needs no decoder, unless it is the last bytes of
the entry's key, as many as every primary key of that type has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Optional

from . import errors
from .keys import KeyCodec, TupleKey
from .storage import Storage, after, shortened


class IndexStorage:
    """One index of one table in one open store: where its entries are, and how they are made of a record.

    *null_error* is what to raise for a null index key; None: the record is not in the index. *owner* gives an entry's
    value from the primary key and its encoding. *enforced* is false in classic files, and of what is adopted
    from them, where several records may have one unique key: the entry then belongs to one of them. *table* is the
    label of the table; by default its index is labelled ``table.index``. *field* says that *get_key* takes the
    attribute of that name. *as_stored*: the index key is taken from a record as it is read, since that need not have
    the key of the object that was given.
    """

    def __init__(
        self,
        name: str,
        storage: Storage[Any, Any],
        *,
        unique: bool,
        get_key: Callable[[Any], Any],
        primary: Optional[KeyCodec[Any]] = None,
        adopted: bool = False,
        owner: Optional[Callable[[Any, bytes], bytes]] = None,
        not_null: bool = False,
        enforced: bool = True,
        table: Optional[str] = None,
        field: Optional[str] = None,
        as_stored: bool = False,
    ) -> None:
        self.name = name
        self.as_stored = as_stored
        self.storage = storage
        self.unique = unique
        self.get_key = get_key
        self.field = field
        self.owner = owner
        self.not_null = not_null
        self.view: Any = None  # the class of a table's views, made by `indexview` on first use
        self.enforced = enforced
        self._trusted = enforced and owner is None and not adopted
        self.table = storage.label.rpartition(".")[0] if table is None else table
        self.label = f"{self.table}.{name}"
        self.joined = None if primary is None else TupleKey((storage.key, primary))
        # A primary key of fixed width is the end of the entry's key already; adopted tables have it as the value, too.
        self.tail = 0 if primary is None or primary.width is None or adopted else -primary.width

    @property
    def sole(self) -> bool:
        """Whether an entry is that of the one record with its index key for sure.

        Old files may hold several records under one "unique" key: the entry then belongs to the last one written.
        """
        return self.joined is not None or self._trusted

    def key_source(self, x: str, mark: str) -> tuple[str, str, dict[str, Any]]:
        """`KeyCodec.store_source` of the entry's key for the index key *x*, without the primary key behind it."""
        storage = self.storage
        if self.joined is None:
            return storage.key.store_source(storage.prefix, x, mark)
        return self.joined.first_source(storage.prefix, x, mark)

    @property
    def always_fits(self) -> bool:
        """Whether the key of every entry has a length that the engine takes."""
        width = self.storage.key.width if self.joined is None else self.joined.width
        return width is not None and 0 < len(self.storage.prefix) + width <= self.storage.max_key_size

    def entry(self, value: Any, primary: bytes, *, stored: bool = False) -> Optional[bytes]:
        """The entry's key for a record; None when the record is not in the index.

        Raises `NullValueConstraint`, or `EncodeError` for an index key that does not fit. With *stored* the record is
        in the table already, and a null is none of its problems.
        """
        key = self.get_key(value)
        if key is None or (type(key) is tuple and None in key):
            if self.not_null and not stored:
                raise errors.NullValueConstraint(
                    f"index {self.label!r}: the index key is {key}, and the index was attached with "
                    f"nullable=False: give the record a key, or attach the index with nullable=True",
                    index=self.name,
                    table=self.table,
                )
            return None
        storage = self.storage
        if self.joined is None:
            return storage.encode_key(key)
        try:
            entry = storage.prefix + self.joined.encode_first(key) + primary
        except errors.EncodeError as error:
            raise errors.EncodeError(f"index {storage.label!r}: {error}", index=self.name, key=key) from error
        if len(entry) > storage.max_key_size:
            storage.bad_size(key, len(entry))
        return entry

    def owned(self, key: Any, primary: bytes) -> bytes:
        """The value of the entry of the record *key*."""
        if self.tail:
            return b""
        return primary if self.owner is None else self.owner(key, primary)

    def belongs(self, data: Any, key: Any, primary: bytes) -> bool:
        """Whether the value *data* of an entry is that of the record *key*."""
        if data == self.owned(key, primary):
            return True
        # The bytes may have been written in another way: by another version of pickle, say.
        return self.owner is not None and bool(self.storage.value.decode(data) == key)

    def owner_of(self, data: Any, table: Storage[Any, Any]) -> Any:
        """The primary key that the value *data* of an entry stands for."""
        codec = table.key if self.owner is None else self.storage.value
        return codec.decode(data)

    def bounds(self, start: Any, stop: Any, prefix: Any) -> tuple[bytes, bytes]:
        """The range of entries with ``start <= index key < stop`` that begin with *prefix*; None leaves a side open."""
        storage = self.storage
        lower, upper = storage.lower, storage.upper
        if start is not None:
            lower = self._bound(start)
        if stop is not None:
            upper = self._bound(stop)
        if prefix is not None:
            begin = storage.prefix + self._prefix(prefix)
            lower, upper = max(lower, begin), min(upper, after(begin))
        return lower, upper

    def exactly(self, key: Any) -> tuple[bytes, bytes]:
        """The range of the entries of one index key."""
        lower = self._bound(key, whole=True)
        return lower, after(lower) if self.joined is not None else lower + b"\0"

    def load_key(self, entry: bytes) -> Any:
        """The index key of an entry."""
        storage = self.storage
        if self.joined is None:
            return storage.decode_key(entry)
        return self.joined.decode(entry[len(storage.prefix) :])[0]

    def _bound(self, key: Any, *, whole: bool = False) -> bytes:
        """The bytes of an index key; unless it must be *whole*, of a tuple also of its leading parts."""
        joined = self.joined
        try:
            if joined is None:
                encoded = self.storage.key.encode(key)
            elif whole and (key is None or isinstance(self.storage.key, TupleKey)):
                encoded = joined.first_whole(key)
            else:
                encoded = joined.first_prefix(key)
        except errors.EncodeError as error:
            raise errors.EncodeError(f"index {self.storage.label!r}: {error}", index=self.name, key=key) from error
        return self.storage.prefix + encoded

    def _prefix(self, prefix: Any) -> bytes:
        codec = self.storage.key
        try:
            return codec.encode_prefix(prefix) if self.joined is None else codec.part_prefix(prefix)
        except errors.EncodeError as error:
            raise errors.EncodeError(f"index {self.storage.label!r}: {error}", index=self.name, key=prefix) from error

    def conflict(self, key: Any, owner: Any) -> errors.DuplicateKey:
        """The error for an index key that another record has."""
        return errors.DuplicateKey(
            f"unique index {self.label!r}: the key {shortened(key)} belongs to the record {shortened(owner)} "
            f"already: change one of them first"
            + (
                ""
                if self.owner is None
                else "; where several may have it, put the primary key last, or declare an Index"
            ),
            table=self.table,
            index=self.name,
            key=key,
            owner=owner,
        )


class BoundIndex(NamedTuple):
    """An index in one transaction: its storage, and the engine's handle."""

    storage: IndexStorage
    handle: Any
