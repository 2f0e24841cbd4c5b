"""A link between two tables of an open database: what a write to either of them must look at.

A link is a follower of the table whose records refer: it refuses a record that refers to none. The table that is
referred to has it among its *referrers*, by which `removal` finds what a deletion entails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Optional, TypeVar

from .. import errors
from ..shown import shortened
from ..store.ranges import pairs_between
from ..values.base import is_a
from .indexstorage import BoundIndex, IndexStorage
from .storage import Storage
from .upkeep import Change, Written

if TYPE_CHECKING:
    from ..store.transaction import Transaction
    from .table import Table


R = TypeVar("R")


class Link:
    """The link *name* of the table at the attribute *source* of the schema object, to that at *target*.

    *get* takes the key from a record, at *fields*.
    """

    def __init__(
        self, name: str, source: str, target: str, fields: tuple[str, ...], get: Callable[[Any], Any], on_delete: str,
        each: bool, deferred: bool,
    ) -> None:  # fmt: skip
        self.name = name
        self.source = source
        self.target = target
        self.fields = fields
        self.on_delete = on_delete
        self.each = each
        self.deferred = deferred
        self._get = get

    def keys(self, value: Any) -> list[Any]:
        """The keys that the record *value* refers to."""
        found = self._get(value)
        keys = (found or ()) if self.each else (found,)
        return [key for key in keys if key is not None and not (type(key) is tuple and None in key)]

    def source_in(self, txn: Transaction) -> Table[Any, Any]:
        """The table whose records refer, in *txn*."""
        return _table(txn, self.source)

    def target_in(self, txn: Transaction) -> Table[Any, Any]:
        """The table that is referred to, in *txn*."""
        return _table(txn, self.target)

    def index_of(self, source: Table[Any, Any]) -> Optional[BoundIndex]:
        """The index of the link; None if another program has dropped it, so that the link is not kept any more."""
        return next((bound for bound in source._indexes if bound.storage.name == self.name), None)

    # -- as a follower of the table whose records refer -----------------------------------------------------------

    def plan(self, txn: Transaction, change: Change, /) -> Optional[Callable[[], Written]]:
        """Refuse a record that refers to none; if the link is deferred, when the transaction commits."""
        if change.new is None:
            return None
        wanted = self.keys(change.new[0])
        if not wanted:
            return None
        if change.old is not None:
            before = set(self.keys(change.old[0]))
            wanted = [key for key in wanted if key not in before]
        own = change.table.prefix + change.primary
        missing = self._missing(txn, wanted, own)
        if missing is None or self.index_of(self.source_in(txn)) is None:
            return None
        if self.deferred:
            return partial(self._defer, txn, own)
        raise self._dangling(change.table, change.key, missing[0])

    def content(self, source: Table[Any, Any], value: Any) -> bool:
        """Whether the records to which *value* refers exist, so that `plan` need not be asked."""
        keys = self.keys(value)
        if keys:
            target = self.target_in(source._txn)
            try:
                for key in keys:
                    if target._get(target._lookup(key), None, target._db) is None:
                        return False
            except errors.EncodeError:  # no record can have this key
                return False
        return True

    def cleared(self, txn: Transaction, table: Storage[Any, Any], count: int, /) -> Written:
        """Nothing: the index of the link is cleared with the other indexes."""
        return 0, 0

    def _missing(self, txn: Transaction, wanted: Iterable[Any], own: bytes) -> Optional[tuple[Any]]:
        """The first of the *wanted* keys that has no record; the record *own*, of this table, is there."""
        target = self.target_in(txn)
        for key in wanted:
            try:
                encoded = target._storage.encode_key(key)
            except errors.EncodeError:  # no record can have this key
                return (key,)
            if encoded == own and self.source == self.target:
                continue
            try:
                there = target._get(encoded, None, target._db) is not None
            except Exception as error:
                txn._fail(error, table=target._name)
            if not there:
                return (key,)
        return None

    def _dangling(self, table: Storage[Any, Any], key: Any, missing: Any) -> errors.DanglingLink:
        later = "" if self.deferred else ", or declare the link with deferred=True, which is checked at the commit"
        return errors.DanglingLink(
            f"table {table.name!r}: {', '.join(self.fields)} of the record {shortened(key)} is {shortened(missing)}, "
            f"and {self.target!r} has no such record: store that one first{later}",
            table=table.name,
            index=self.name,
            key=key,
            owner=missing,
        )

    def _defer(self, txn: Transaction, own: bytes) -> Written:
        if txn._deferred is None:
            txn._odd = True
            txn._deferred = {}
        txn._deferred[self, own] = None
        return 0, 0

    def check_deferred(self, txn: Transaction, own: bytes) -> None:
        """At the commit: raise `DanglingLink` if the record *own* is there, expired or not, and refers to none."""
        source = self.source_in(txn)
        key = source._storage.decode_key(own)
        stored = plainly(source, lambda: source._stored(own, key))
        if stored is not None:
            missing = self._missing(txn, self.keys(stored[0]), own)
            if missing is not None:
                raise self._dangling(source._storage, key, missing[0])

    # -- as a referrer of the other one ---------------------------------------------------------------------------

    def without(self, value: Any, gone: set[Any]) -> Any:
        """The record *value*, just read, without its links to the keys *gone*."""
        if self.each:
            held: Any = self._get(value)
            kept = type(held)([key for key in held if key not in gone])
            return _replaced(value, self.fields[0].split("."), kept)
        for field in self.fields:
            value = _replaced(value, field.split("."), None)
        return value


class Owners:
    """Finds the records of *source* that refer to keys by *link*, expired ones too; until the next write.

    If *any_one* will do, it finds one of those that refer to a key.
    """

    __slots__ = ("_any_one", "_cursor", "_exactly", "_link", "_prefix", "_source", "_tail", "close")

    def __init__(self, link: Link, source: Table[Any, Any], bound: BoundIndex, *, any_one: bool = False) -> None:
        self._link, self._source, self._any_one = link, source, any_one
        self._exactly, self._tail, self._prefix = bound.storage.exactly, bound.storage.tail, source._storage.prefix
        self._cursor = plain_cursor(source, bound.handle)
        self.close = self._cursor.close

    def of(self, key: Any) -> list[bytes]:
        """The engine's keys of the records that refer to *key*."""
        cursor, tail, prefix = self._cursor, self._tail, self._prefix
        found: list[bytes] = []
        try:
            lower, upper = self._exactly(key)
            there = cursor.set_range(lower)
            while there:
                entry = bytes(cursor.key())
                if entry >= upper:
                    break
                found.append(prefix + (entry[tail:] if tail else bytes(cursor.value())))
                if self._any_one:
                    break
                there = cursor.next()
        except Exception as error:
            self._source._txn._fail(error, table=self._source._name, index=self._link.name)
        return found


def plain_cursor(table: Table[Any, Any], handle: Any) -> Any:
    """A cursor over an index of *table* that also sees the entries of expired records."""
    return plainly(table, lambda: table._cursor(handle))


def plainly(table: Table[Any, Any], work: Callable[[], R]) -> R:
    """The result of *work*, for which no record of *table* has expired."""
    if table._storage.expiring is None:
        return work()
    hidden: Any = table
    return hidden._plainly(work)


def broken(
    index: IndexStorage, handle: Any, target: Storage[Any, Any], held: Any, txn: Any
) -> Iterator[tuple[Any, bytes]]:
    """The links that lead nowhere: each with its key, and the primary key, encoded, of the first record that has it.

    *txn* is the engine's transaction, *handle* that of the entries of *index*, and *held* a 1-tuple of the handle of
    *target*, or None if the file does not have that table.
    """
    lower, upper = index.lower, index.upper
    while True:
        cursor = txn.cursor(handle)
        rows = pairs_between(cursor, lower, upper, views=True)
        first = next(iter(rows), None)
        cursor.close()
        if first is None:
            return
        entry, data = first
        key = index.load_key(entry)
        if held is None or not leads(target, key, held[0], txn):
            yield key, entry[index.tail :] if index.tail else bytes(data)
        lower = index.exactly(key)[1]


def leads(target: Storage[Any, Any], key: Any, handle: Any, txn: Any) -> bool:
    """Whether *target* has a record with *key*, which may be none of its type: a migration may have changed that."""
    try:
        encoded = target.encode_key(key)
    except errors.EncodeError:
        return False
    return txn.get(encoded, None, handle) is not None


def _table(txn: Transaction, attribute: str) -> Table[Any, Any]:
    return getattr(txn._unit.view, attribute)


def _replaced(value: Any, path: list[str], new: Any) -> Any:
    """*value* with *new* at *path*; an object that can be changed is changed."""
    name, rest = path[0], path[1:]
    mapping = is_a(value, dict)
    if rest:
        inner: Any = value.get(name) if mapping else getattr(value, name)
        if inner is None:
            return value
        new = _replaced(inner, rest, new)
    if mapping:
        value[name] = new
        return value
    if hasattr(value, "_replace"):  # a NamedTuple
        return value._replace(**{name: new})
    if hasattr(value, "__struct_config__") and value.__struct_config__.frozen:
        import msgspec  # the program uses it

        return msgspec.structs.replace(value, **{name: new})
    if hasattr(value, "model_copy"):
        return value.model_copy(update={name: new})
    try:
        setattr(value, name, new)
    except AttributeError:  # it is frozen, and was just read: nobody else has it
        object.__setattr__(value, name, new)
    return value
