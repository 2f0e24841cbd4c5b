"""Counts of what transactions wrote, for the caller."""

from __future__ import annotations

import time
from typing import Optional


class TransactionStats:
    """Counts of what transactions wrote: the sum of all transactions that got this object.

    ``puts`` and ``dels`` count the records and index entries that were written and deleted. ``started`` is the time of
    creation or reset, in nanoseconds since 1970. ``duration`` is the number of nanoseconds from then to the end of the
    last transaction, or to now if none has ended.

    >>> stats = TransactionStats()
    >>> stats.puts, stats.dels
    (0, 0)
    """

    def __init__(self) -> None:
        self.reset()

    def __repr__(self) -> str:
        return f"<TransactionStats: {self.puts} puts, {self.dels} dels>"

    def reset(self) -> None:
        """Count from zero, beginning now."""
        self.puts = 0
        self.dels = 0
        self._started = time.time_ns()
        self._clock = time.perf_counter_ns()
        self._duration: Optional[int] = None

    @property
    def started(self) -> int:
        """When counting began, in nanoseconds since 1970."""
        return self._started

    @property
    def duration(self) -> int:
        """Nanoseconds from the beginning to the end of the last transaction, or to now while none has ended."""
        return time.perf_counter_ns() - self._clock if self._duration is None else self._duration

    def _freeze(self) -> None:
        """Stop the clock: a transaction has ended."""
        self._duration = time.perf_counter_ns() - self._clock
