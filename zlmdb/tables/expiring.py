"""Tables whose records expire, in a transaction.

A transaction reads the clock once, and looks at the first entry of the index of times. If that has not expired, nothing
has, and the table reads like any other. Otherwise all that it reads comes through a filter between the table and the
engine, which leaves out the expired records and their index entries: so each way of reading, and each one to come, sees
the same records. Before a write, what has expired and is in its way is deleted, as a deletion by the program would do
it; and each write deletes a few more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from math import nan
from operator import itemgetter
from typing import Any, Optional, TypeVar

from .. import errors
from ..handlers import let_through
from ..shown import shortened
from ..store.access import NOBODY, Ended
from ..store.ranges import pairs_from, seek
from ..store.transaction import Transaction
from .expiry import CUTS, INDEX, Expiry
from .indexstorage import BoundIndex, IndexStorage
from .keyrange import count_in
from .storage import Storage
from .table import Table

R = TypeVar("R")

_PER_WRITE = 2  # expired records that a write deletes
_key_of, _value_of = itemgetter(0), itemgetter(1)


def now_of(txn: Transaction) -> float:
    """The time of *txn*, in seconds since 1970: the clock is read when it is first asked for."""
    began, now = txn._now
    if began != txn._since:
        given: Any = txn._store.clock()
        try:
            now = float(given) if isinstance(given, (int, float)) else nan  # else a datetime
        except OverflowError:
            now = nan
        if now != now:
            raise TypeError(
                f"db.clock returns {shortened(given)}: expected a function that returns the seconds since 1970"
            )
        txn._now = txn._since, now
    return now


class Kinds:
    """Makes the classes of the bound tables of one storage, whose records expire as *expiry* says.

    *time_of* gives the time of a record, which is of the type *key*.
    """

    def __init__(self, expiry: Expiry, key: str, time_of: Callable[[Any], Any]) -> None:
        self.base, self.index = Expiring, INDEX
        self.ttl = expiry.ttl
        self.time_of = time_of
        self.cut_at = CUTS[key]
        self.behind = b""  # the entry after which writes go on to delete
        self._made: dict[type, type] = {}

    def __call__(self, cls: type) -> type:
        """*cls*, with records that expire."""
        made = self._made.get(cls)
        if made is None:
            given = {
                "__module__": cls.__module__,
                "__qualname__": cls.__qualname__,
                "__doc__": cls.__doc__,
                "__slots__": ("_cut", "_open", "_some"),
                "_plain": getattr(cls, "_plain", False),
                "_expires": self,
            }
            made = self._made[cls] = type(cls)(cls.__name__, (Expiring, cls), given)
        return made


class Expiring(Table[Any, Any]):
    """A table of which some records may have expired."""

    __slots__ = ()
    _plain = True  # as a class that was made for one storage

    _expires: Kinds
    _cut: Any = None  # a record with this time, or an earlier one, has expired
    _some: bool  # whether there may be expired records, which are filtered out
    _open: bool  # whether something is going on for which nothing has expired

    def _aim(self) -> None:
        self._some = self._open = False
        self._steady = False  # the engine's own functions may serve it now, and not in a moment
        super()._aim()
        if self._absent is None and not isinstance(self._raw, Ended):  # its records may have another shape now
            expires = self._expires
            self._cut = expires.cut_at(now_of(self._txn) - expires.ttl)
            if self._any_expired():
                self._filter()

    def _use(self, raw: Any) -> None:
        self._some = False
        super()._use(raw)
        # A savepoint that is undone may have deleted it.
        if self._absent is None and not isinstance(self._raw, Ended) and not self._open and self._any_expired():
            self._filter()
        else:
            self._allow()

    def _filter(self) -> None:
        """From now on read what has not expired."""
        if not self._some:
            self._some = True
            self._writer = NOBODY  # the general form makes way, and deletes some
            self._through(self._raw)

    def _through(self, raw: Any) -> None:
        super()._through(Living(self, raw) if self._some else raw)

    def _allow(self) -> None:
        super()._allow()
        if getattr(self, "_some", True) or self._open:  # at first neither is known
            self._writer = NOBODY

    def _plainly(self, work: Callable[[], R]) -> R:
        """The result of *work*, for which nothing has expired."""
        raw = self._raw
        if not isinstance(raw, Living):
            return work()
        self._some, self._open = False, True
        try:
            self._through(raw.raw)
            return work()
        finally:
            self._open = False
            if not isinstance(self._raw, Ended):
                self._filter()

    # -- the times --------------------------------------------------------------------------------------------------

    def _times(self) -> Optional[BoundIndex]:
        times = next((bound for bound in self._indexes if bound.storage.name == INDEX), None)
        return None if times is None or times.storage.building else times

    def _first_expired(self, most: int, behind: bytes = b"") -> list[tuple[bytes, bytes]]:
        """The first entries of expired records that come *behind* an entry, at most *most*, with the primary keys."""
        times = self._times()
        if times is None:
            return []
        index = times.storage
        lower, upper = max(index.lower, behind + b"\0"), index.bound(self._cut, through=True)
        found: list[tuple[bytes, bytes]] = []
        try:
            cursor = self._raw.cursor(times.handle)
            try:
                if seek(cursor, lower, upper):
                    for entry, owner in pairs_from(cursor, lower, upper, views=True):
                        found.append((entry, _primary(self._storage, index, entry, owner)))
                        if len(found) == most:
                            break
            finally:
                cursor.close()
        except Exception as error:
            self._txn._fail(error, table=self._name, index=INDEX)
        return found

    def _any_expired(self) -> bool:
        """Whether anything has expired. If the file has no index of the times yet, that is not known."""
        times = self._times()
        if times is None:
            return True
        index = times.storage
        try:
            lower, upper = index.lower, index.bound(self._cut, through=True)
            cursor = self._raw.cursor(times.handle)
            found = seek(cursor, lower, upper) and bytes(cursor.key()) < upper
            cursor.close()
        except Exception as error:
            self._txn._fail(error, table=self._name, index=INDEX)
        return found

    def _entries_stored(self) -> int:
        raw = self._raw
        if not isinstance(raw, Living):
            return super()._entries_stored()
        try:
            return int(raw.raw.stat(self._db)["entries"])
        except Exception as error:
            self._txn._fail(error, table=self._name)

    def _number_expired(self, raw: Any) -> Optional[int]:
        """How many records have expired in the transaction *raw* of the engine, by their times; None if unknown."""
        times = self._times()
        if times is None:
            return None
        cursor = raw.cursor(times.handle)
        try:
            lower, upper = times.storage.lower, times.storage.bound(self._cut, through=True)
            return count_in(cursor, lower, upper, views=self._txn.buffers)
        finally:
            cursor.close()

    def _has_expired(self, value: Any) -> bool:
        """Whether a stored record with this value has expired."""
        time = self._expires.time_of(value)
        return time is not None and time <= self._cut

    # -- writing ----------------------------------------------------------------------------------------------------

    def _write(self, key: Any, encoded: bytes, value: Any, data: bytes) -> None:
        stored = self._storage.decode_value(data, key)
        if self._some and self._make_way(encoded, stored):
            with self._txn._statement():  # what refers to the expired record needs it if the new one is refused
                self._plainly(lambda: self._remove_alone(encoded))
                super()._write(key, encoded, value, data)
        else:
            super()._write(key, encoded, value, data)
        if self._some:
            self._sweep_some()
        if self._has_expired(stored):
            self._filter()

    def _make_way(self, encoded: bytes, value: Any) -> bool:
        """Delete the expired records under the key *encoded*, and under the unique keys of *value*.

        Whether the one under *encoded* is still there, because others refer to it.
        """
        storage = self._storage
        raw = self._raw.raw if isinstance(self._raw, Living) else self._raw
        found = {encoded}
        for index, handle in self._indexes:
            if index.joined is None:
                try:
                    entries = index.entries(value, encoded[len(storage.prefix) :])
                except Exception as error:
                    let_through(error)
                    return False  # the statement says why
                owners = [(entry, self._as_stored(raw, entry, handle)) for entry in entries]
                found.update(
                    storage.prefix + _primary(storage, index, entry, owner)
                    for entry, owner in owners
                    if owner is not None
                )
        held = False
        for one in found:
            data = self._as_stored(raw, one, self._db)
            if data is not None and self._has_expired(storage.decode_value(data, storage.decode_key(one))):
                try:
                    self._expel(one)
                except errors.StillLinked:
                    if one != encoded:
                        raise
                    held = True
        return held

    def _as_stored(self, raw: Any, key: bytes, handle: Any) -> Any:
        """What the transaction *raw* of the engine has under *key*, expired or not."""
        try:
            return raw.get(key, None, handle)
        except Exception as error:
            self._txn._fail(error, table=self._name)

    def _expel(self, encoded: bytes) -> int:
        """Delete the expired record *encoded*, with all that follows it; returns the number of records."""
        return self._plainly(lambda: self._remove(encoded))

    def _expired(self, most: int, behind: bytes = b"") -> list[tuple[bytes, bytes]]:
        """`_first_expired`, whether or not reading is filtered."""
        return self._plainly(lambda: self._first_expired(most, behind)) if self._some else []

    def _sweep_some(self) -> None:
        """Delete a few of the expired records: after those that something held the last time, or from the first on."""
        expires = self._expires
        found = self._expired(_PER_WRITE, expires.behind)
        swept = self._sweep(found)
        if len(found) < _PER_WRITE:
            expires.behind = b""
        elif swept < len(found):
            expires.behind = found[-1][0]

    def _sweep(self, found: Sequence[tuple[bytes, bytes]]) -> int:
        """Delete the expired records *found*; returns their number. What something refuses to let go stays."""
        self._check_write()
        swept = 0
        for _, primary in found:
            with suppress(errors.ConstraintError, errors.IndexNotBuilt):
                swept += self._expel(self._storage.prefix + primary)
        if self._some:
            self._use(self._raw.raw)  # looks whether that was all
        return swept

    def truncate(self) -> int:
        """As `Table.truncate`; what has expired is deleted, too."""
        return self._plainly(super().truncate)

    def _rebuild(self, bound: BoundIndex) -> tuple[int, int]:
        return self._plainly(lambda: super(Expiring, self)._rebuild(bound))


def _primary(storage: Storage[Any, Any], index: IndexStorage, entry: Any, owner: Any) -> bytes:
    """The encoded primary key to which an entry of *index* belongs."""
    if index.tail:
        return bytes(entry[index.tail :])
    return bytes(owner) if index.owner is None else storage.key.encode(index.owner_of(owner, storage))


class Living:
    """The engine's transaction *raw* as a table sees it: without what has expired."""

    __slots__ = ("_db", "_indexes", "_storage", "_table", "delete", "drop", "put", "raw")

    def __init__(self, table: Expiring, raw: Any) -> None:
        self.raw = raw
        self._table = table
        self._storage = table._storage
        self._db = table._db
        self._indexes = table._indexes
        self.delete, self.drop = raw.delete, raw.drop
        self.put = raw.put

    def get(self, key: bytes, default: Any = None, db: Any = None) -> Any:
        """The value of *key*, or *default*."""
        data = self.raw.get(key, None, db)
        return default if data is None or not self.judge(db)((key, data)) else data

    def cursor(self, db: Any = None) -> LivingCursor:
        """A cursor over *db*."""
        return LivingCursor(self.raw.cursor(db), self.judge(db))

    def stat(self, db: Any = None) -> dict[str, int]:
        """The number of records that have not expired: those that have are counted, of an index all the others."""
        expired = self._table._number_expired(self.raw) if db is self._db else None
        if expired is not None:
            return {"entries": self.raw.stat(db)["entries"] - expired}
        cursor = self.cursor(db)
        try:
            return {"entries": sum(1 for _ in cursor.iternext(True, False)) if cursor.first() else 0}
        finally:
            cursor.close()

    def judge(self, db: Any) -> Callable[[tuple[Any, Any]], bool]:
        """A function that says of a pair of key and value in *db* whether it has not expired."""
        storage, table = self._storage, self._table
        get, prefix = self.raw.get, storage.prefix
        indexes = [(index, index.storage.prefix) for index, handle in self._indexes if handle is db]
        load, has_expired = storage.load, table._has_expired
        holds_records = db is self._db

        def is_living(pair: tuple[Any, Any]) -> bool:
            key, data = pair
            key = bytes(key)
            if not (holds_records and key.startswith(prefix)):
                found = next((index for index, start in indexes if key.startswith(start)), None)
                if found is None:
                    return True
                data = get(prefix + _primary(storage, found, key, data), None, self._db)
                if data is None:  # the reader says what is wrong
                    return True
            try:
                value = load(data)
            except Exception as error:
                let_through(error)
                return True  # the reader raises it
            return not has_expired(value)

        return is_living


class LivingCursor:
    """A cursor of the engine that steps over what has expired."""

    __slots__ = ("_cursor", "_judge", "close", "key", "putmulti", "value")

    def __init__(self, cursor: Any, judge: Callable[[tuple[Any, Any]], bool]) -> None:
        self._cursor, self._judge = cursor, judge
        self.key, self.value, self.close = cursor.key, cursor.value, cursor.close
        self.putmulti = cursor.putmulti

    def _on(self, found: bool, step: Callable[[], bool]) -> bool:
        while found and not self._judge((self.key(), self.value())):
            found = step()
        return bool(found)

    def first(self) -> bool:
        """Go to the first record; False if there is none."""
        return self._on(self._cursor.first(), self._cursor.next)

    def last(self) -> bool:
        """Go to the last record; False if there is none."""
        return self._on(self._cursor.last(), self._cursor.prev)

    def next(self) -> bool:
        """Go to the next record; False if there is none."""
        return self._on(self._cursor.next(), self._cursor.next)

    def prev(self) -> bool:
        """Go to the record before; False if there is none."""
        return self._on(self._cursor.prev(), self._cursor.prev)

    def set_range(self, key: bytes) -> bool:
        """Go to the first record with a key that is not less; False if there is none."""
        return self._on(self._cursor.set_range(key), self._cursor.next)

    def iternext(self, keys: bool = True, values: bool = True) -> Iterator[Any]:
        """The records from here on."""
        return self._rows(self._cursor.iternext(True, True), keys, values)

    def iterprev(self, keys: bool = True, values: bool = True) -> Iterator[Any]:
        """The records from here backwards."""
        return self._rows(self._cursor.iterprev(True, True), keys, values)

    def _rows(self, rows: Any, keys: bool, values: bool) -> Iterator[Any]:
        living = filter(self._judge, rows)
        return living if keys and values else map(_key_of if keys else _value_of, living)
