"""What callers of memoized functions tell each other by the file of a cache: who computes a value, and until when."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Optional, TypeVar

from .. import DatabaseFull, DiskError, Error
from .entry import HEAD
from .memoized import AGAIN
from .state import MISSING
from .use import CacheUse

K = TypeVar("K")
V = TypeVar("V")

_clock = time.time

_NO_ROOM = (DatabaseFull, DiskError)
"""What a write may raise that is no reason for a memoized function to fail."""


class CachePending(CacheUse[K, V]):
    """The part of a `Cache` that `memoized` uses.

    *_flights* are the values that this process computes now, by key. *_mine*: until when the file says that this object
    computes a value, before its last call and since. That of a call which has ended is one that could not be taken
    back, and keeps nobody here waiting.
    """

    _flights: dict[str, Any]
    _mine: dict[Any, tuple[float, float]]

    if TYPE_CHECKING:

        def get(self, key: K, default: Any = None) -> Any:
            """The value of *key*, or *default*."""
            ...

    @staticmethod
    def _forget_ended(t: Any) -> None:
        """Delete what processes left that were killed as they computed, whose time is over."""
        now = _clock()
        for key in [key for key, until in t.pending.items() if until <= now]:
            del t.pending[key]

    def _known(self, key: Any) -> Any:
        """The value, or `AGAIN`."""
        return self.get(key, AGAIN)

    def _begin(self, key: Any, lock: float) -> tuple[bool, Any]:
        """Whether there is a value by now, and the value; without one None if this caller computes it, else why not."""

        def work(t: Any) -> tuple[bool, Any]:
            data = self._living(t, key)
            if data is not None:
                value = self._value(data, HEAD.unpack_from(data)[2])
                if value is not MISSING:
                    return True, value
            now, until = _clock(), t.pending.get(key, 0.0)
            # One that is later is of a clock that was set back.
            if now < until <= now + lock and until not in self._mine.get(key, ()):
                return False, "another process computes it"
            # Before it is stored: an interrupt may come right after that, or a full disk keeps what was there.
            self._mine[key] = until, now + lock
            t.pending[key] = now + lock
            return False, None

        with suppress(*_NO_ROOM):  # then nobody is told that it is computed
            return self._do(work)
        return False, None

    def _end(self, key: Any, value: Any, expire: Optional[float], tag: Optional[str]) -> None:
        """Store a computed value."""
        data = self._data(key, value, expire, tag)

        def work(t: Any) -> None:
            self._put(t, key, data, t.entries.get(key))
            t.pending.pop(key, None)

        if self._inside():
            self._do(work)
        else:
            try:
                self._do(work)
                self._mine.pop(key, None)
            except _NO_ROOM:  # the value is there, even if nothing can keep it
                self._give_up(key)  # there may be room for that, and others need not wait

    def _give_up(self, key: Any) -> None:
        """Nothing was computed: another caller may, if it was this one who would have."""
        mine = self._mine.get(key)
        if mine is None:
            return

        def work(t: Any) -> None:
            if t.pending.get(key) in mine:  # else the time was over, and another process computes it
                del t.pending[key]

        with suppress(Error):  # the exception of the function goes on
            self._do(work)
            self._mine.pop(key, None)
