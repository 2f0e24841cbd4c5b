"""The state of a cache, and its entries: finding, making and deleting one, in a transaction."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Generic, Optional, TypeVar

from .. import Database, DecodeError, EncodeError, NestedTransaction
from ..shown import shortened
from ..tables.compiled.selected import remove_all
from .entry import HEAD, NEVER, SIZE, listed_at, listed_of, stored_tag, tag_bytes_of, tag_of, until_of
from .memoized import task_here

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")

MISSING: Any = object()
"""In place of a value: there is none."""

_clock = time.time


class CacheState(Generic[K, V]):
    """The state of a `Cache`, which makes and ends it, and its entries."""

    _db: Database[Any]
    _encode: Callable[[Any], bytes]
    _decode: Callable[[Any], Any]
    _find: Callable[..., Optional[bytes]]
    _size_limit: int
    _policy: str
    _writes: int
    _written: int
    _excess: int  # bytes beyond the limit, as last measured, without what was evicted since
    _round: int  # of the hand that looks for entries to evict, as of the last look
    _marked: set[K]  # keys that were used, and are not noted in the file yet
    _marking: bool
    _look_at: float
    _blocks: dict[int, tuple[Any, Any]]  # of those that are going on, by thread: the tables, and the task or None

    def _do(self, work: Callable[[Any], R], *, write: bool = True) -> R:
        """The result of *work* in a transaction: that of the block that this is in, or one of its own."""
        t = self._block() if self._blocks else None
        if t is not None:
            return work(t)
        if write:
            if self._blocks:
                self._refuse_others()
            return self._db.run(work)
        with self._db.read() as t:
            return work(t)

    def _found(self, key: K) -> Optional[bytes]:
        """The bytes of an entry, whether or not it has expired."""
        t = self._block() if self._blocks else None
        return self._find(key) if t is None else t.entries.get(key)

    def _block(self) -> Any:
        """The tables of the block that this thread, or this task of asyncio, is in, or None."""
        me = threading.get_ident()
        block = self._blocks.get(me)
        if block is None:
            return None
        t, task = block
        if not t.txn.active:  # an interrupt came at its very end
            del self._blocks[me]
            return None
        return t if task is None or task is task_here() else None

    def _inside(self) -> bool:
        """Whether this thread, or this task, is in a block."""
        return self._block() is not None

    def _refuse_others(self) -> None:
        """Raise if another task of this thread is in a block: what this one writes would be undone with it."""
        if threading.get_ident() in self._blocks:
            raise NestedTransaction(
                "another asyncio task of this thread is in a block of transact(), and nobody can write before it ends: "
                "await nothing in that block"
            )

    @staticmethod
    def _living(t: Any, key: Any) -> Optional[bytes]:
        """The bytes of an entry that has not expired."""
        data: Optional[bytes] = t.entries.get(key)
        return data if data is not None and HEAD.unpack_from(data)[0] > _clock() else None

    def _data(self, key: Any, value: V, expire: Optional[float], tag: Optional[str]) -> bytes:
        stored = stored_tag(tag)
        return HEAD.pack(until_of(expire), self._round, len(stored)) + stored + self._encoded(key, value)

    def _encoded(self, key: Any, value: Any) -> bytes:
        try:
            return self._encode(value)
        except EncodeError as error:
            raise EncodeError(f"the cache, key {shortened(key)}: {error}", key=key) from error.__cause__

    def _value(self, data: bytes, size: int) -> Any:
        """The value of the entry *data*; `MISSING` if it does not fit the type, such as an older one."""
        try:
            return self._decode(data[SIZE + size :])
        except DecodeError:
            return MISSING

    def _holds(self, data: Optional[bytes]) -> bool:
        """Whether *data* is an entry that is there."""
        if data is None:
            return False
        until, _, size = HEAD.unpack_from(data)
        return bool(until > _clock()) and self._value(data, size) is not MISSING

    def _forget(self, t: Any, key: Any) -> bool:
        """Delete an entry, with all that is noted of it; whether there was one."""
        old: Optional[bytes] = t.entries.pop(key, None)
        if old is None:
            return False
        listed, tag = listed_of(old), tag_of(old)
        if listed != NEVER:
            t.until.pop((listed, key), None)
        if tag:
            t.tags.pop((tag, key), None)
        t.used.pop(key, None)
        return True

    # Many at once: the rows of the list that named them are deleted together, which takes half of the time.

    @staticmethod
    def _some_expired(t: Any) -> bool:
        first = t.until.first()
        return first is not None and bool(first[0][0] <= _clock())

    @staticmethod
    def _forget_expired(t: Any, most: int) -> tuple[int, int]:
        """Delete at most so many entries that have expired; returns how many were looked at, and how many deleted."""
        now = _clock()
        due = t.until.select(through=(now,), limit=most)
        rows = due.keys().all()
        if not rows:
            return 0, 0
        entries, tags, used = t.entries, t.tags, t.used if t.used else None
        get, unpack = entries.get, HEAD.unpack_from
        later: list[tuple[float, Any]] = []
        gone: list[Any] = []
        for listed, key in rows:
            old = get(key)
            if old is None:
                continue
            until, _, size = unpack(old)
            if size:  # it has a tag, or another time than the list says
                if listed_of(old) != listed:
                    continue
                if until > now:  # it was stored again, or touched
                    entries[key] = listed_at(old, until)
                    later.append((until, key))
                    continue
                if tag := tag_of(old):
                    tags.pop((tag, key), None)
            elif until != listed:
                continue
            gone.append(key)
            if used is not None:
                used.pop(key, None)
        _delete(entries, gone)
        due.delete()
        for row in later:
            t.until[row] = b""
        return len(rows), len(gone)

    def _forget_tagged(self, t: Any, tag: str, most: int) -> tuple[int, int]:
        """Delete at most so many entries with this tag; returns how many were looked at, and how many deleted."""
        given: Any = tag
        if not isinstance(given, str):
            raise TypeError(f"evict({shortened(tag)}): expected a tag, which is a text; delete() takes a key")
        tagged = t.tags.select(prefix=(tag,), limit=most)
        rows = tagged.keys().all()
        if not rows:
            return 0, 0
        if len(rows) == 1:  # most have a few: then this is faster
            old = t.entries.get(rows[0][1])
            if old is not None and tag_of(old) == tag:
                return 1, int(self._forget(t, rows[0][1]))
        entries, used = t.entries, t.used if t.used else None
        get, unpack, stored = entries.get, HEAD.unpack_from, tag.encode()
        gone: list[Any] = []
        for _, key in rows:
            old = get(key)
            if old is None or tag_bytes_of(old) != stored:
                continue
            gone.append(key)
            if unpack(old)[0] != NEVER:
                t.until.pop((listed_of(old), key), None)
            if used is not None:
                used.pop(key, None)
        _delete(entries, gone)
        tagged.delete()
        return len(rows), len(gone)


def _delete(table: Any, keys: list[Any]) -> None:
    """Delete many records of a table that nothing follows, by a loop of C."""
    remove_all(table, [*map(table._storage.encode_key, keys)], table.__class__._remove)
