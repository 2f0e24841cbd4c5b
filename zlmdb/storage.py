"""Where and how one table is kept in one open store: its key space, its codecs, and the errors that name it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, NoReturn, Optional, TypeVar

from . import errors
from .keys import KeyCodec
from .values.base import Serializer

K = TypeVar("K")
V = TypeVar("V")

TOP = b"\xff" * 2048
"""Greater than every key that any engine can hold: the upper bound of what has none."""


Watched = tuple[frozenset[str], tuple[str, ...], Mapping[str, Optional[str]]]
"""Of a table's indexes in one transaction: those gone, those that the program does not know, and what is adopted."""


def after(prefix: bytes) -> bytes:
    """The least bytes greater than everything that begins with *prefix*.

    >>> after(b"ab"), after(b"a" + bytes([255])), after(b"") == TOP
    (b'ac', b'b', True)
    """
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else TOP


class Storage(Generic[K, V]):
    """A table's key space (*space*, or None for the main one, and the *prefix* of its keys there) and codecs.

    *label* names the table in errors. *indexes* are kept in step with the records; *missing_indexes* are those that the
    file has and the program does not know, so that it must not write; *adopted* are the tables of zlmdb <= 26 that some
    of those are; *watch* tells of an engine's transaction, and its era in the store, which indexes are gone from the
    file since, and which missing ones it has now. *number* is the slot. *alone*: the space holds nothing else.
    Of a classic map: *wiring* is what it had attached when *indexes* was made, *verified* its indexes known to be
    complete.
    """

    def __init__(
        self, label: str, space: Optional[bytes], prefix: bytes, key: KeyCodec[K], value: Serializer[V], max_key_size:
        int
    ) -> None:  # fmt: skip
        self.label = label
        self.space = space
        self.prefix = prefix
        self.key = key
        self.value = value
        self.max_key_size = max_key_size
        self.number = 0
        self.alone = False
        self.lookup: Callable[[Any], bytes] = key.lookup(prefix)
        self.load: Callable[[Any], V] = value.raw_decode
        self.dump: Callable[[V], bytes] = value.raw_encode
        self.indexes: list[Any] = []
        self.missing_indexes: tuple[str, ...] = ()
        self.watch: Optional[Callable[[Any, Optional[int]], Watched]] = None
        self.adopted: Mapping[str, Optional[str]] = {}
        self.kinds: dict[type, tuple[list[Any], type]] = {}  # table classes, and the indexes that they are made for
        self.stream: Any = None  # made by `hotpath` on first use, as the kinds are
        self.rows: Any = None  # made by `bulkwrites` on first use
        self.model: Any = None  # what `query` knows of the values' type
        self.programs: Any = None  # made by `query` on first use
        self.verified: Mapping[str, Any] = {}
        self.wiring: Any = None
        self.lower = prefix
        self.upper = after(prefix)
        skip = len(prefix)
        raw_decode = key.raw_decode
        self.load_key: Callable[[Any], K] = raw_decode if skip == 0 else lambda data: raw_decode(data[skip:])

    def encode_key(self, key: K) -> bytes:
        """The engine's key of *key*. Raises `EncodeError` naming the table."""
        encoded = self.encode_bound(key)
        if not 0 < len(encoded) <= self.max_key_size:
            self.bad_size(key, len(encoded))
        return encoded

    def encode_bound(self, key: K) -> bytes:
        """As `encode_key`, for where a range begins or ends: also what is too short or too long for the engine."""
        try:
            return self.prefix + self.key.encode(key)
        except errors.EncodeError as error:
            raise self.named(error, key) from error.__cause__

    def encode_prefix(self, prefix: Any) -> bytes:
        """What the engine's keys begin with for keys that begin with *prefix*. Raises `EncodeError`."""
        try:
            return self.prefix + self.key.encode_prefix(prefix)
        except errors.EncodeError as error:
            raise self.named(error, prefix) from error.__cause__

    def encode_value(self, value: V, key: Any = None) -> bytes:
        """The bytes of *value*. Raises `EncodeError` naming the table and *key*."""
        try:
            return self.value.encode(value)
        except errors.EncodeError as error:
            raise self.named(error, key) from error.__cause__

    def decode_key(self, data: Any) -> K:
        """The key of the engine's key *data*. Raises `DecodeError` naming the table."""
        try:
            return self.key.decode(data[len(self.prefix) :])
        except errors.DecodeError as error:
            raise self.named(error, bytes(data)) from error.__cause__

    def decode_value(self, data: Any, key: Any) -> V:
        """The value of the stored *data*. Raises `DecodeError` naming the table and *key*."""
        try:
            return self.value.decode(data)
        except errors.DecodeError as error:
            raise self.named(error, key) from error.__cause__

    def bad_size(self, key: Any, size: int) -> NoReturn:
        """Raise `EncodeError` for a *key* of *size* bytes in the engine."""
        if size == 0:
            text = "the key is empty, and this engine has no empty keys: give it at least one byte"
        else:
            text = (
                f"the key {shortened(key)} takes {size} bytes, at most {self.max_key_size} fit"
                f"{'' if self.max_key_size > 511 else ' (1978 in a database made with lib_version=1.0)'}: shorten it"
            )
        raise errors.EncodeError(
            f"table {self.label!r}: {text}", table=self.label, key=key, size=size, limit=self.max_key_size
        )

    def not_ascending(self, key: Any, last: bytes) -> NoReturn:
        """Raise `EncodeError` for a *key* to be appended that is not greater than the one of the bytes *last*."""
        raise errors.EncodeError(
            f"table {self.label!r}: append=True needs ascending keys past the last one, "
            f"{shortened(key)} does not come after {shortened(self.decode_key(last))}",
            table=self.label,
            key=key,
        )

    def any(self, cursor: Any) -> bool:
        """Whether there is a record, by a *cursor* over the key space."""
        prefix = self.prefix
        found = cursor.set_range(prefix) if prefix else cursor.first()
        return bool(found and cursor.key()[: len(prefix)] == prefix)

    def check_sorts(self) -> None:
        """Raise unless ranges over the keys mean something in this layout."""
        if not self.key.sorts:
            raise errors.EncodeError(
                f"table {self.label!r}: zlmdb <= 26 stored the keys {self.key.name} little-endian, so a "
                "range over them "
                f"has no meaning: read the whole table, or migrate the file to the tables layout",
                table=self.label,
            )

    def named(self, error: errors.Error, key: Any) -> errors.Error:
        """*error*, naming the table and *key*."""
        facts = {**error.__dict__, "table": self.label, "key": key}
        return type(error)(f"table {self.label!r}, key {shortened(key)}: {error}", **facts)


def shortened(value: object, limit: int = 80) -> str:
    """The repr of *value*, cut to *limit* characters."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


class Nothing:
    """Reads as an empty key space: what a table is that the file does not have."""

    def __init__(self, label: str) -> None:
        self._label = label

    def get(self, key: bytes, default: Any = None, db: Any = None) -> Any:
        """*default*."""
        return default

    def cursor(self, db: Any = None) -> Nothing:
        """A cursor over no records."""
        return self

    def first(self, *args: Any) -> bool:
        """False: there is no record."""
        return False

    last = set_range = prev = next = first

    def iternext(self, *args: Any) -> Iterator[Any]:
        """No records."""
        return iter(())

    iterprev = iternext

    def stat(self, db: Any = None) -> dict[str, int]:
        """No entries."""
        return {"entries": 0}

    def put(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise: there is nowhere to store."""
        raise errors.SchemaMismatch(
            f"table {self._label!r} is not in the file: open the database with a schema that declares it",
            table=self._label,
        )

    delete = drop = put
