"""The size of a cache, and the use of its entries: what writes and reads do from time to time."""

from __future__ import annotations

import time
from typing import Any, Optional, TypeVar

from .. import Error
from .entry import HEAD, MOVED, NEVER, listed_at, listed_of, tag_of
from .state import CacheState

K = TypeVar("K")
V = TypeVar("V")

_SWEEP_EVERY, _SWEEP = 16, 40  # writes between two looks at what has expired, and what one look deletes at most
_MEASURE_EVERY = 64  # writes between two looks at the size of the file
_CULL = 10  # entries that a write to a full cache deletes
_CULL_AT_ONCE = 1000  # entries that cull() deletes between two looks at the size
_SCAN, _SCAN_BYTES = 200, 4 << 20  # what it looks at
_OVER = 4  # a cache that is larger than its limit by a 2 ** _OVER-th deletes what is in use
_MARKS, _MARK_SECONDS = 512, 5.0  # reads that are noted together in the file, or those of so many seconds
_MOST_MARKS = 16 * _MARKS  # that are kept as long as they cannot be noted
_ROUND, _HAND = "round", 0
_clock = time.time


class CacheUse(CacheState[K, V]):
    """The part of a `Cache` that keeps it within its size, by the use of its entries."""

    _most_marks = _MARKS

    def volume(self) -> int:
        """The bytes that the entries take in the file."""
        return self._db._used()

    def _put(self, t: Any, key: Any, data: bytes, old: Optional[bytes]) -> None:
        """Store the entry *data* in place of *old*.

        An entry is once in the list by time, and stays there under the time that it had when its own becomes later.
        When that time has come, it is moved. So an entry that is touched often costs one write each time.
        """
        until, tag = HEAD.unpack_from(data)[0], tag_of(data)
        listed, old_tag = (NEVER, "") if old is None else (listed_of(old), tag_of(old))
        if listed <= until < NEVER:
            if listed != until:
                data = listed_at(data, listed)
            listed = NEVER  # it stays
        elif until != NEVER:
            t.until[until, key] = b""
        if tag != old_tag:
            if tag:
                t.tags[tag, key] = b""
            if old_tag:
                t.tags.pop((old_tag, key), None)
        t.entries[key] = data  # after its rows of the lists: if one of these is refused, the others do no harm
        if listed != NEVER:
            t.until.pop((listed, key), None)
        self._wrote(t, len(data), key)

    def _wrote(self, t: Any, size: int, key: Any = None) -> None:
        """After a write of *size* bytes, of the entry *key*: what is due from time to time."""
        self._writes += 1
        self._written += size
        if self._writes % _SWEEP_EVERY == 0:
            self._forget_expired(t, _SWEEP)
        if self._writes % _MEASURE_EVERY == 0 or self._written > self._size_limit // 64:
            t.txn.after_commit(self._measure)
            self._written = 0
        if self._excess > 0 and self._policy != "none":
            self._evict_some(t, _CULL, self._excess)
            if self._excess > self._size_limit // 2**_OVER:
                self._make_room(t, min(self._excess, 2 * size), key)

    def _measure(self) -> None:
        """Find out whether the cache is full, or will be soon."""
        volume = self.volume()
        self._excess = volume - self._size_limit
        self._marking = self._policy == "least-recently-used" and 2 * volume > self._size_limit
        self._look_at = _clock() + _MARK_SECONDS

    def _measure_outside(self) -> None:
        """As `_measure`; but not in a block, after which only the file tells what was evicted in it."""
        if not self._inside():
            self._measure()

    def _mark(self, key: K) -> None:
        self._marked.add(key)
        if len(self._marked) >= self._most_marks:
            self._look()

    def _look(self) -> None:
        """Note in the file which entries were used, and look at its size. A read neither waits nor fails for that."""
        self._look_at = _clock() + _MARK_SECONDS
        if self._inside():
            return
        if self._marked:
            try:
                with self._db.write(timeout=0) as t:
                    self._note(t)
                self._most_marks = _MARKS
            except Error:  # another writes, or the disk is full: later, when there are as many again
                if len(self._marked) >= _MOST_MARKS:
                    self._marked = set()
                self._most_marks = len(self._marked) + _MARKS
        self._measure()

    def _note(self, t: Any) -> None:
        marked, self._marked = self._marked, set()
        self._round = now = t.rounds.get(_ROUND, 1)
        for key in list(marked):
            if t.used.get(key) != now and key in t.entries:
                t.used[key] = now

    def _evict_some(self, t: Any, most: int, size: int) -> int:
        """Delete entries that were not used for a round of the hand, at most *most*, until *size* bytes are free.

        Returns their number. The hand goes round over the entries, in the order of their keys. It deletes what was
        neither stored nor used in this round and the one before, so that an entry has a whole round to be used again.
        """
        now = self._round = t.rounds.get(_ROUND, 1)
        used = t.used.get if self._policy == "least-recently-used" else _unused
        hand = last = t.hand.get(_HAND)
        doomed: list[Any] = []
        looked = seen = freed = 0
        for key, data in t.entries.select(hand):
            if key == hand:
                continue
            if looked == _SCAN or seen > _SCAN_BYTES or len(doomed) == most or freed >= size:
                if last is not None:  # else there is nothing to do: another thread has just evicted enough
                    t.hand[_HAND] = last
                break
            last = key
            looked, seen = looked + 1, seen + len(data)
            if HEAD.unpack_from(data)[1] & ~MOVED < now - 1 and used(key, 0) < now - 1 and key not in self._marked:
                doomed.append(key)
                freed += len(data)
        else:
            if self._marked:
                self._note(t)
            t.rounds[_ROUND] = self._round = now + 1
            t.hand.pop(_HAND, None)
        for key in doomed:
            self._forget(t, key)
        self._excess -= freed
        return len(doomed)

    def _evict_page(self, t: Any) -> int:
        """As `_evict_some`, of many entries; what is free then is counted in pages, which a block sees before its end.

        A small entry takes several times the bytes of its value.
        """
        excess, before = self._excess, _taken(t)
        deleted = self._evict_some(t, _CULL_AT_ONCE, excess)
        self._excess = excess - before + _taken(t)
        return deleted

    def _make_room(self, t: Any, size: int, kept: Any) -> None:
        """Delete what the hand meets, except the entry *kept*, until *size* bytes are free.

        Where values are large, or larger than the ones before, so much is written while the hand goes round that the
        limit would say nothing. Entries in use are spared as long as they are no more bytes than are to be freed. So
        this looks at a few times the bytes that were written, and deletes no more entries than were ever stored.
        """
        now, spared, freed = t.rounds.get(_ROUND, 1), 0, 0
        for start in (t.hand.get(_HAND), None):
            doomed: list[Any] = []
            for key, data in t.entries.select(start):
                if freed >= size:
                    t.hand[_HAND] = key
                    break
                if key == kept:
                    continue
                if spared < size and (key in self._marked or t.used.get(key, 0) >= now - 1):
                    spared += len(data)
                else:
                    doomed.append(key)
                    freed += len(data)
            for key in doomed:
                self._forget(t, key)
            if freed >= size:
                break
        self._excess -= freed


def _taken(t: Any) -> int:
    """The bytes of the pages of all tables, as they are in this transaction."""
    trees = [table._raw.stat(table._db) for table in (t.entries, t.until, t.tags, t.used, t.hand, t.rounds)]
    return sum([tree["psize"] * (tree["branch_pages"] + tree["leaf_pages"] + tree["overflow_pages"]) for tree in trees])


def _unused(key: Any, default: int) -> int:
    return default
