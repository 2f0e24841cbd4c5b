"""The scans that run in a transaction, and what the transaction tells them."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from typing import Any, Optional

from ..namedtuples import NamedTuple
from ..protocols import Protocol


class Written(NamedTuple):
    """What a statement wrote in *space*: the entry *new* in place of *old*, either possibly None, for *primary*."""

    space: Optional[bytes]
    primary: bytes
    old: Optional[bytes]
    new: Optional[bytes]


_UNDONE = Written(b"", b"", None, None)  # of no space


class Running(Protocol):
    """A running scan, as the transaction sees it."""

    space: Optional[bytes]

    def pause(self) -> None:
        """Prepare for a write."""


class Scans:
    """The scans that run in one transaction, and the writes meanwhile to the keyspaces they read.

    It is true while a scan runs in a write transaction.
    """

    __slots__ = ("_watched", "ended", "journal", "running", "streams")

    def __init__(self) -> None:
        self.running: set[Running] = set()  # those that are not paused
        self.streams: list[Optional[bytes]] = []  # the spaces that `stream` is busy with
        self.journal: list[Written] = []
        self.ended: Any = None
        self._watched: dict[Optional[bytes], int] = {}  # how many scans a space has

    def __bool__(self) -> bool:
        return bool(self._watched)

    def check(self) -> None:
        """Raise if the transaction has ended."""
        if self.ended is not None:
            self.ended.get()

    def watch(self, space: Optional[bytes], txn: Any) -> int:
        """Note from now on the writes to *space*; returns the start position in the journal."""
        self._watched[space] = self._watched.get(space, 0) + 1
        txn._allow_tables((space,))
        return len(self.journal)

    def unwatch(self, space: Optional[bytes], txn: Any) -> None:
        """One scan less needs the writes to *space*."""
        self._watched[space] -= 1
        if not self._watched[space]:
            del self._watched[space]
            if not self._watched:
                self.journal.clear()
            txn._allow_tables((space,))

    def watches(self, spaces: Iterable[Optional[bytes]]) -> bool:
        """Whether writes to one of *spaces* must be noted."""
        return any(space in self._watched for space in spaces)

    def undo(self, mark: int) -> None:
        """Forget what was noted from *mark* on: a savepoint undoes it. What scans have read is as long as before."""
        self.journal[mark:] = [_UNDONE] * (len(self.journal) - mark)

    def runs(self, spaces: Iterable[Optional[bytes]]) -> bool:
        """Whether a scan of one of *spaces* is not paused."""
        return any(scan.space in spaces for scan in self.running)

    def pause(self, spaces: Optional[Iterable[Optional[bytes]]] = None) -> None:
        """Pause the scans of *spaces*, or all of them."""
        for scan in list(self.running):
            if spaces is None or scan.space in spaces:
                scan.pause()
                self.running.discard(scan)

    @contextmanager
    def stream(self, space: Optional[bytes]) -> Generator[None, None, None]:
        """A block that writes to *space* without noting it."""
        self.streams.append(space)
        try:
            yield
        finally:
            self.streams.remove(space)

    def fork(self, ended: Any) -> None:
        """In a forked child: as `end`. The cursors of the engine are closed, so that no loop in C reads on."""
        self.ended = ended
        for scan in list(self.running):
            with suppress(Exception):
                scan.pause()
        self.running.clear()

    def end(self, ended: Any) -> None:
        """The transaction has ended; the functions of *ended* say so."""
        self.ended = ended
        self.running.clear()
