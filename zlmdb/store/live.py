"""The transactions of one store, as long as their objects exist: which are open, and which an interrupt left open."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, Any, Optional

from .blocks import COUNTS_REFERENCES, clear_frames

if TYPE_CHECKING:
    from .transaction import Transaction

_COLLECTIONS = 3  # an object that another one with a finalizer refers to outlives the collection that finds that one


class LiveTransactions(dict[int, "weakref.ref[Transaction]"]):
    """The transactions of a store, by their identity; those that are not open, too."""

    def alive(self) -> list[Transaction]:
        """The transactions that there are, ended ones, too."""
        found = [ref() for ref in list(self.values())]
        return [one for one in found if one is not None]

    def reading(self) -> list[Transaction]:
        """The read transactions that are open, of blocks. Those that are about to begin read nothing yet."""
        return [one for one in self.alive() if not one._write and not one._brief and one._begun]

    def count(self) -> int:
        """How many transactions are open. One that was collected is, until its thread ends it."""
        return sum(1 for live in [ref() for ref in list(self.values())] if live is None or live._begun)

    def end_leftovers(self) -> None:
        """End what blocks that are over have left open, since an interrupt came at their end."""
        # Once for all of them, since each time the whole heap is searched.
        parts = [part for unit in self._units_in_use() for part in (unit.txn, unit.view)]
        if parts and COUNTS_REFERENCES:
            clear_frames(*parts)
        del parts  # which would be counted, and kept
        for _ in range(0 if COUNTS_REFERENCES else _COLLECTIONS):
            if not any(one.active for one in self.alive()):
                break
            gc.collect()
        self._end_blocks()
        for unit in self._units_in_use():
            unit.end_if_over()

    def end_dropped(self) -> None:
        """End the reads that an interrupt left open, and of which the program has nothing any more."""
        if not COUNTS_REFERENCES:  # nobody can tell, and there may be thousands that the collector has not met yet
            return
        units: list[Any] = []
        one: Optional[Transaction] = None
        for ref in list(self.values()):
            one = ref()
            if one is not None and not one._write and one._unit is not None and one.active:
                units.append(one._unit)
        one = None  # which would be counted
        for unit in units:
            if unit.is_dropped():
                unit.end_if(unit.is_dropped)

    def end_unheld(self) -> None:
        """End the reads of which the program has nothing any more, before something waits for their end."""
        self.end_dropped()
        for _ in range(1 if COUNTS_REFERENCES else _COLLECTIONS):
            if not self.count():
                break
            gc.collect()

    def _units_in_use(self) -> list[Any]:
        """Of the transactions that are open."""
        return [one._unit for one in self.alive() if one.active and one._unit is not None]

    def _end_blocks(self) -> None:
        for live in self.alive():
            if live.active:
                live._end_if_over()
