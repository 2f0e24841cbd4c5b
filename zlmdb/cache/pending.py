"""What callers of memoized functions tell each other by the file of a cache: who computes a value, and until when."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Optional, TypeVar

from .. import DatabaseFull, DiskError, Error
from ..namedtuples import NamedTuple
from .entry import HEAD
from .memoized import AGAIN, Call, has_ended
from .state import MISSING
from .use import CacheUse

K = TypeVar("K")
V = TypeVar("V")

_clock = time.time

_NO_ROOM = (DatabaseFull, DiskError)
"""What a write may raise that is no reason for a memoized function to fail."""


class _Mark(NamedTuple):
    """Until when the file says that a value is computed, *before* the *call* that computes it here, and since then."""

    before: float
    until: float
    call: Call


class CachePending(CacheUse[K, V]):
    """The part of a `Cache` that `memoized` uses.

    *_flights* are the values that this process computes now, by key. *_mine*: what this object has told others of its
    last call for a key. That of a call which has ended could not be taken back, and keeps nobody here waiting.
    """

    _flights: dict[str, Any]
    _mine: dict[Any, _Mark]

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

    def _begin(self, key: Any, lock: float, call: Call) -> tuple[bool, Any]:
        """Whether there is a value by now, and the value; without one None if *call* computes it, else why not."""

        def work(t: Any) -> tuple[bool, Any]:
            data = self._living(t, key)
            if data is not None:
                value = self._value(data, HEAD.unpack_from(data)[2])
                if value is not MISSING:
                    return True, value
            now, until = _clock(), t.pending.get(key, 0.0)
            # One that is later is of a clock that was set back.
            if now < until <= now + lock and not self._is_left(key, until):
                return False, "another call computes it"
            # Before it is stored: an interrupt may come right after that, or a full disk keeps what was there.
            self._mine[key] = _Mark(until, now + lock, call)
            t.pending[key] = now + lock
            return False, None

        with suppress(*_NO_ROOM):  # then nobody is told that it is computed
            return self._do(work)
        return False, None

    def _is_left(self, key: Any, until: float) -> bool:
        """Whether *until* is what a call of this object has told that has ended since."""
        mine = self._mine.get(key)
        return mine is not None and has_ended(mine.call) and until in (mine.before, mine.until)

    def _end(self, key: Any, value: Any, expire: Optional[float], tag: Optional[str], call: Optional[Call]) -> None:
        """Store a value that *call* has computed; None: one in a block, of which others are told nothing."""
        data = self._data(key, value, expire, tag)

        def work(t: Any) -> None:
            self._put(t, key, data, t.entries.get(key))
            t.pending.pop(key, None)

        if call is None:
            self._do(work)
        else:
            try:
                self._do(work)
                self._told(key, self._mine.get(key), call)
            except _NO_ROOM:  # the value is there, even if nothing can keep it
                self._give_up(key, call)  # there may be room for that, and others need not wait

    def _give_up(self, key: Any, call: Call) -> None:
        """Nothing was computed by *call*: another one may, if it was this one who would have."""
        mine = self._mine.get(key)
        if mine is None or mine.call is not call:  # its time was over, and another thread computes it
            return

        def work(t: Any) -> None:
            if t.pending.get(key) in (mine.before, mine.until):  # else its time was over, and another process does
                del t.pending[key]

        with suppress(Error):  # the exception of the function goes on
            self._do(work)
            self._told(key, mine, call)

    def _told(self, key: Any, mine: Optional[_Mark], call: Call) -> None:
        """What *call* has told others is taken back."""
        if mine is not None and mine.call is call and self._mine.get(key) is mine:
            self._mine.pop(key, None)
