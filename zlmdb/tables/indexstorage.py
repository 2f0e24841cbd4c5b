"""The entries of an index: their keyspace, and how they are made from a record.

The key of an entry is the encoded index key; if several records may have one, the encoded primary key follows it. The
encoded primary key is also the entry's value, so that a look-up needs no decoder, unless it is the last bytes of the
entry's key, with the fixed width of that key type.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Optional

from .. import errors
from ..keys import KeyCodec
from ..namedtuples import NamedTuple
from ..shown import shortened
from ..store.ranges import TOP, after
from .storage import Storage

if TYPE_CHECKING:
    from ..query.following import Followed

_NEXT = [bytes([byte + 1]) for byte in range(255)]


class IndexStorage:
    """One index of one table in one open store: its keyspace, and how its entries are made from a record.

    *not_null*: a null index key is an error; without it the record is not in the index. *owner* makes an entry's value
    from the primary key and its encoding. *enforced* is false in classic files and for tables used from them, in which
    several records may have one unique key: the entry then belongs to one of them. *table* is the name of the table;
    without one, *storage* is called ``table.index``. *field*: *get_key* takes the attribute of that name. *as_stored*:
    the index key is taken from the record as it is read, which may differ from the given object. *definition* is what
    the program declares and the file records; *where* is the condition on the records in a partial index.
    """

    carries: Sequence[str] = ()
    """The fields whose values are stored with the entries."""

    serializers: Sequence[Any] = ()
    """What encodes the values of these fields."""

    absent: bytes = b""
    """In place of the length of such a value: it is None."""

    of_dicts = False
    """Whether these are items of dicts."""

    several: ClassVar[bool] = False
    """Whether a record may have several entries."""

    building: bool = False
    """Whether it lacks entries, because it is being built: it is maintained, and nobody reads it."""

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
        definition: Mapping[str, Any] = MappingProxyType({}),
        where: Optional[Followed] = None,
    ) -> None:
        self.name = name
        self.as_stored = as_stored
        self.definition = definition
        self.where = where
        self.storage = storage
        self.unique = unique
        self.get_key = get_key
        self.field = field
        self.owner = owner
        self.not_null = not_null
        self.view: Any = None  # the class of a table's views, made by `indexview` on first use
        self.enforced = enforced
        self.adopted = adopted
        self._trusted = enforced and owner is None and not adopted
        self.table = storage.name.rpartition(".")[0] if table is None else table
        self.full_name = f"{self.table}.{name}"
        self.joined = None
        if primary is not None:
            from ..keys.tuples import TupleKey  # late: unique indexes need none

            self.joined = TupleKey((storage.key, primary))
        # A primary key of fixed width is the end of the entry's key already; adopted tables have it as the value, too.
        self.tail = 0 if primary is None or primary.width is None or adopted else -primary.width

    def unfinished(self) -> IndexStorage:
        """The same index while it is being built: of several records with one unique key, one may have the entry."""
        found = copy(self)
        found.building, found._trusted, found.view = True, False, None
        return found

    @property
    def sole(self) -> bool:
        """Whether an entry certainly belongs to the one record with its index key.

        Old files may contain several records with one "unique" key: the entry then belongs to the last one written.
        So may tables of which a unique index is being built, until the build finds them.
        """
        return self.joined is not None or self._trusted

    def key_source(self, x: str, mark: str) -> tuple[str, str, dict[str, Any]]:
        """`KeyCodec.store_source` of the entry's key for the index key *x*, without the primary key after it."""
        storage = self.storage
        if self.joined is None:
            return storage.key.store_source(storage.prefix, x, mark)
        return self.joined.first_source(storage.prefix, x, mark)

    @property
    def always_fits(self) -> bool:
        """Whether the engine accepts the length of every entry's key."""
        return self.storage.fits(self.storage.key.width if self.joined is None else self.joined.width)

    def entry(self, value: Any, primary: bytes, *, stored: bool = False) -> Optional[bytes]:
        """The entry's key for a record; None if the record is not in the index.

        Raises `NullValueConstraint`, or `EncodeError` for an index key that does not fit. With *stored* the record is
        in the table already, and a null key is allowed.
        """
        key = self.get_key(value)
        if key is None or (type(key) is tuple and None in key):
            if self.not_null and not stored:
                raise errors.NullValueConstraint(
                    f"index {self.full_name!r}: the index key is {key}, and the index was attached with "
                    f"nullable=False: give the record a key, or attach the index with nullable=True",
                    index=self.name,
                    table=self.table,
                )
            return None
        return self.entry_of(key, primary)

    def entry_of(self, key: Any, primary: bytes) -> bytes:
        """The key of the entry for an index key that is not null. Raises `EncodeError` if it does not fit."""
        storage = self.storage
        if self.joined is None:
            return storage.encode_key(key)
        try:
            entry = storage.prefix + self.joined.encode_first(key) + primary
        except errors.EncodeError as error:
            raise self._named(error, key) from error
        if len(entry) > storage.max_key_size:
            storage.bad_size(key, len(entry), primary)
        return entry

    def entries(self, value: Any, primary: bytes, *, stored: bool = False) -> Collection[bytes]:
        """The keys of all entries of a record, as `entry`."""
        entry = self.entry(value, primary, stored=stored)
        return () if entry is None else (entry,)

    def entry_within(self, value: Any, primary: bytes, lower: bytes, upper: bytes) -> Optional[bytes]:
        """The first entry of a stored record with ``lower <= entry < upper``."""
        return min(
            [entry for entry in self.entries(value, primary, stored=True) if lower <= entry < upper], default=None
        )

    def owned(self, key: Any, primary: bytes) -> bytes:
        """The value of the entry of the record *key*."""
        if self.tail:
            return b""
        return primary if self.owner is None else self.owner(key, primary)

    def entry_value(self, value: Any, key: Any, primary: bytes) -> bytes:
        """The value of the entries of the record *key* with this value."""
        return self.owned(key, primary)

    def belongs(self, data: Any, key: Any, primary: bytes) -> bool:
        """Whether an entry with the value *data* belongs to the record *key*."""
        if data == self.owned(key, primary):
            return True
        # The bytes may have been written in another way: by another version of pickle, say.
        return self.owner is not None and bool(self.storage.value.decode(data) == key)

    def owner_of(self, data: Any, table: Storage[Any, Any]) -> Any:
        """The primary key in the value *data* of an entry."""
        codec = table.key if self.owner is None else self.storage.value
        return codec.decode(data)

    @property
    def lower(self) -> bytes:
        """The beginning of the entries."""
        return self.storage.lower

    @property
    def upper(self) -> bytes:
        """The end of the entries."""
        return self.storage.upper

    def check_sorts(self) -> None:
        """Raise if index keys do not sort, so that ranges have no meaning."""
        self.storage.check_sorts()

    def bound(self, key: Any, *, through: bool = False) -> bytes:
        """The position of the index key *key* in a range of entries; with *through* the one after its entries."""
        joined, storage = self.joined, self.storage
        try:
            data = (
                storage.key.bound(key, through=through)
                if joined is None
                else joined.bound_of_first(key, through=through)
            )
        except errors.EncodeError as error:
            raise self._named(error, key) from error
        return storage.prefix + data

    def span(self, prefix: Any, startswith: Any) -> tuple[bytes, bytes]:
        """The range of the entries whose index keys `KeyCodec.span` asks for."""
        joined, storage = self.joined, self.storage
        try:
            span = storage.key.span if joined is None else joined.span_of_first
            lower, upper = span(prefix, startswith)
        except errors.EncodeError as error:
            raise self._named(error, startswith if prefix is None else prefix) from error
        return storage.prefix + lower, storage.upper if upper is TOP else storage.prefix + upper

    def exactly(self, key: Any) -> tuple[bytes, bytes]:
        """The range of the entries of one index key."""
        joined, storage = self.joined, self.storage
        try:
            if joined is None:
                lower = storage.prefix + storage.key.encode(key)
                return lower, lower + b"\0"
            lower = storage.prefix + joined.first_whole(key)
        except errors.EncodeError as error:
            raise self._named(error, key) from error
        end = lower[-1] if lower else 255
        return lower, lower[:-1] + _NEXT[end] if end < 255 else after(lower)  # most often, `after` without the call

    def load_key(self, entry: bytes) -> Any:
        """The index key of an entry."""
        storage = self.storage
        if self.joined is None:
            return storage.decode_key(entry)
        return self.joined.decode(entry[len(storage.prefix) :])[0]

    def _named(self, error: errors.EncodeError, key: Any) -> errors.EncodeError:
        text = f"index {self.storage.name!r}: {error}"
        if key is None or (type(key) is tuple and None in key):
            text += "; an index has no entry for None: write .where(lambda record: record.field is None)"
        return errors.EncodeError(text, index=self.name, key=key)

    def conflict(self, key: Any, owner: Any, second: Any = None) -> errors.DuplicateKey:
        """The error for an index key of the record *owner*, which another record, *second* if it is known, has, too."""
        too = "" if second is None else f", and the record {shortened(second)} has it, too"
        return errors.DuplicateKey(
            f"unique index {self.full_name!r}: the key {shortened(key)} belongs to the record {shortened(owner)} "
            f"already{too}: change one of them first"
            + (
                ""
                if self.owner is None
                else "; if several records may have it, put the primary key last, or declare an Index"
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
