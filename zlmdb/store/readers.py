"""The readers of a database: LMDB's slots for all processes, and the age of read transactions of this process.

A reader keeps the pages of its snapshot from being used again, so a forgotten one makes the file grow forever. LMDB
does not know the age of a snapshot; this process knows it for its own transactions.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Optional

from .. import errors
from ..locks import monotonic as _clock
from ..log import log
from ..namedtuples import NamedTuple
from ..shown import shown_path
from .holds import origin

LONG_READ = 60.0
"""Seconds after which a read transaction that is still open is logged as a warning."""

_SHOWN = 5  # of the transactions that keep a store from being closed, in the error


class Reader(NamedTuple):
    """A slot of the table of readers. *snapshot* is the transaction that it reads; None if it reads nothing now.

    Readers of this process also have an *age* in seconds, and *opened*, where the program began them: ``file:line``.
    """

    pid: int
    snapshot: Optional[int]
    age: Optional[float] = None
    opened: Optional[str] = None


class Ages:
    """Measures how long the read transactions of one store stay open, whenever a transaction begins or ends.

    *limit*: seconds after which a transaction is logged, once; infinity means never. *look_at*: when to `look` next.
    """

    def __init__(self) -> None:
        self.warn_after(LONG_READ)
        self.look_at = _clock() + LONG_READ / 4  # nobody reads yet

    def warn_after(self, seconds: float) -> None:
        """Set the limit, and log again the transactions beyond it."""
        self.limit = seconds
        self._told: weakref.WeakSet[Any] = weakref.WeakSet()
        self.look_at = 0.0

    def look(self, now: float, reading: Iterable[Any]) -> None:
        """Log those of the transactions *reading* that are open for too long. O(open transactions)."""
        # A quarter: so late may the warning be.
        self.look_at = now + min(self.limit, LONG_READ) / 4
        for transaction in reading:
            since = transaction._since
            if since and now - since > self.limit and transaction not in self._told:  # 0: it has ended just now
                self._told.add(transaction)
                self._tell(transaction, "has been open for", since)

    def ended(self, transaction: Any) -> None:
        """A read transaction has ended that was open for too long."""
        since = transaction._since
        if since and transaction not in self._told:  # 0: an interrupt came at its end, which is done again
            self._tell(transaction, "was open for", since)
        self._told.discard(transaction)  # the object may begin again

    def _tell(self, transaction: Any, how: str, since: float) -> None:
        log.warning(
            "a read transaction of %r %s %.1f seconds, begun at %s: the pages that it reads cannot be used again, so "
            "that the file grows with every write",
            transaction._store.engine.path, how, _clock() - since, origin(transaction),
        )  # fmt: skip


def refuse_open(path: Optional[str], transactions: list[Any], when: str = "") -> None:
    """Raise `DatabaseInUse` if there are *transactions*, whose being open keeps the database from being closed."""
    in_use = [_shown_with_origin(one) for one in transactions]
    del transactions  # the traceback keeps this frame, and would keep them open
    if in_use:
        shown = ", ".join(in_use[:_SHOWN]) + (", ..." if len(in_use) > _SHOWN else "")
        raise errors.DatabaseInUse(
            f"the database {shown_path(path)} has open transactions{when} ({len(in_use)}): [{shown}]; "
            "end them before close()"
        )


def _shown_with_origin(transaction: Any) -> str:
    """A transaction with the line that began it, as far as that is known."""
    if getattr(transaction, "_opener", None) is None or not transaction.active:
        return repr(transaction)
    return f"{transaction!r}, {'begun' if transaction._begun else 'asked for'} at {origin(transaction)}"


def readers(slots: Iterable[tuple[int, Optional[int]]], reading: Iterable[Any]) -> list[Reader]:
    """The readers of all processes, by what `Engine.readers` says. *reading* are the transactions of this one."""
    ours = _by_snapshot(reading)
    found: list[Reader] = []
    for pid, snapshot in slots:
        mine = ours.get(snapshot, []) if pid == os.getpid() else []
        one = mine.pop() if mine else None
        since = 0.0 if one is None else one._since
        age, opened = (_clock() - since, origin(one)) if since else (None, None)  # 0: it has ended meanwhile
        found.append(Reader(pid, snapshot, age, opened))
    return found


def _by_snapshot(reading: Iterable[Any]) -> dict[Optional[int], list[Any]]:
    found: dict[Optional[int], list[Any]] = {}
    for transaction in reading:
        with suppress(Exception):  # of whatever kind: another thread has ended it meanwhile
            found.setdefault(transaction.id(), []).append(transaction)
    return found
