"""The state of a cache, and its entries: finding, making and deleting one, in a transaction."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Generic, Optional, TypeVar

from . import Database
from .cacheentry import HEAD, NEVER, tag_of, until_of

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")

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
    _blocks: dict[int, Any]  # the tables of those that are going on, by thread

    def _do(self, work: Callable[[Any], R], *, write: bool = True) -> R:
        """The result of *work* in a transaction: that of the block of this thread, or one of its own."""
        if self._blocks:
            t = self._blocks.get(threading.get_ident())
            if t is not None:
                return work(t)
        return self._db.run(work, write=write)

    def _found(self, key: K) -> Optional[bytes]:
        """The bytes of an entry, whether or not it has expired."""
        if self._blocks:
            t = self._blocks.get(threading.get_ident())
            if t is not None:
                found: Optional[bytes] = t.entries.get(key)
                return found
        return self._find(key)

    @staticmethod
    def _living(t: Any, key: Any) -> Optional[bytes]:
        """The bytes of an entry that has not expired."""
        data: Optional[bytes] = t.entries.get(key)
        return data if data is not None and HEAD.unpack_from(data)[0] > _clock() else None

    def _data(self, value: V, expire: Optional[float], tag: Optional[str]) -> bytes:
        label = b"" if tag is None else tag.encode()
        return HEAD.pack(until_of(expire), self._round, len(label)) + label + self._encode(value)

    def _forget(self, t: Any, key: Any) -> bool:
        """Delete an entry, with all that is noted of it; whether there was one."""
        old: Optional[bytes] = t.entries.pop(key, None)
        if old is None:
            return False
        self._unlist(t, key, old, None, "")
        t.used.pop(key, None)
        return True

    @staticmethod
    def _unlist(t: Any, key: Any, old: bytes, until: Optional[float], tag: str) -> None:
        """Take the entry *old* from the lists by time and tag, unless it has these in the new entry."""
        before, _, size = HEAD.unpack_from(old)
        if before not in (NEVER, until):
            t.until.pop((before, key), None)
        if size:
            label = tag_of(old, size)
            if label != tag:
                t.tags.pop((label, key), None)

    @staticmethod
    def _some_expired(t: Any) -> bool:
        first = t.until.first()
        return first is not None and bool(first[0][0] <= _clock())

    @staticmethod
    def _expired(t: Any, most: int) -> list[Any]:
        return [key for _, key in t.until.select(through=(_clock(),), limit=most).keys().all()]
