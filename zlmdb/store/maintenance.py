"""Maintenance that transactions of a store do besides their own work, and whether there is any.

It is rare: a map that moves, a file to be looked at from time to time, handles to be opened. Asking for each in each
transaction takes longer than LMDB takes to begin one. So one number says until when there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Optional
from weakref import ref

from .readers import Ages

if TYPE_CHECKING:
    from ..engines import Environment
    from .admission import Closing
    from .gate import Gate


class Quiet:
    """The times until which *reads* and *writes* have nothing else to do. Zero: they have something, or must look.

    *gated_reads* and *gated_writes* have nothing else to do than to go through the *gate*. Until *roomy*, no write can
    have taken the room that is kept for deletions.
    """

    reads = writes = gated_reads = gated_writes = roomy = 0.0
    gate: Optional[Gate] = None


def _disturbing(name: str) -> property:
    """An attribute, kept under *name*, that may give transactions something to do."""

    def set_it(store: Maintenance, value: Any) -> None:
        setattr(store, name, value)
        store.quiet = Quiet()  # as `Maintenance.disturb`

    return property(attrgetter(name), set_it)


class Maintenance:
    """The part of a `Store` that says what its transactions have to do besides their own work."""

    if TYPE_CHECKING:
        gate: Optional[Gate]
        """Through which each transaction has to go."""
        full: bool
        """The last write failed for want of room."""
        provisional: bool
        """The file was opened read-only, since another process was writing."""
        look_at: float
        """When to look at the file again, before a write."""
    else:
        gate, full = _disturbing("_gate"), _disturbing("_full")
        provisional, look_at = _disturbing("_provisional"), _disturbing("_look_at")

    ages: Ages
    wanted: set[bytes]  # spaces, to be opened before the next write: see `want`
    pending: list[tuple[Optional[ref[object]], Callable[[Optional[float]], object]]]  # see `put_off`
    quiet: Quiet
    _gate: Optional[Gate] = None
    _full = _provisional = False
    _look_at: float

    env: Optional[Environment]
    lock: Any
    closing: Optional[Closing] = None
    """Who may begin while the database is being closed, and *env* is None."""

    @property
    def present(self) -> Optional[Environment]:
        """The environment, also while nobody begins any more; None where it is not open."""
        closing = self.closing
        return self.env if closing is None else closing.env

    def go_on(self) -> None:
        """Let others begin again: the database is not closed after all."""
        closing = self.closing
        if closing is not None:
            with self.lock:
                if self.closing is closing:
                    self.env = closing.env
                    self.closing = None

    def disturb(self) -> None:
        """There is something to do: the next transaction looks what it is."""
        # A new object: what another thread, which has looked before, says of the old one does not count any more.
        self.quiet = Quiet()

    def look_around(self) -> None:
        """Find out until when there is nothing to do."""
        quiet = self.quiet
        if self.provisional:
            return
        reads, writes = self.ages.look_at, 0.0
        if not (self.full or self.wanted or self.pending):
            writes = min(self.look_at, reads)
        gate = self.gate
        if gate is None:
            quiet.reads, quiet.writes = reads, writes
        else:
            quiet.gate = gate  # first: others look for it where they find the times
            quiet.gated_reads, quiet.gated_writes = reads, writes

    def want(self, spaces: Iterable[bytes]) -> None:
        """The next write is to open *spaces* before it begins."""
        self.wanted.update(spaces)
        self.disturb()

    def put_off(self, change: Callable[[Optional[float]], object], storage: object = None) -> None:
        """The next write is to make this *change* of the catalogue before it begins.

        Only the next one of a database with the table *storage*, if that is given. Other databases of this process may
        have the file open, too, with other classes, and a program that only reads changes nothing for them.
        """
        self.pending.append((None if storage is None else ref(storage), change))
        self.disturb()
