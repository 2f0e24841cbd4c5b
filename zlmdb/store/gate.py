"""A gate for the transactions of a store whose memory map may move: it moves while no transaction is inside."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Optional

from .. import locks
from ..locks import monotonic

_get_ident = threading.get_ident
_LOOK_AGAIN = 1.0  # seconds


class Gate:
    """Counts the open transactions of this process, and can let one thread be alone.

    A thread that is inside already can enter again, so it never waits for a thread that waits for it.
    """

    def __init__(self) -> None:
        # Reentrant, since the finaliser of a transaction may leave while its thread is in the middle of a method here.
        self._lock = locks.rlock()
        self._changed = locks.condition(self._lock)
        self._inside: dict[int, int] = {}  # for whom, by identity: the thread
        self._shut = False

    # To enter and to leave take no lock, since each transaction does both. Each is one operation of a dict, and asks
    # afterwards whether the gate is shut; who shuts it does so first, and looks into the dict afterwards.

    def enter(self, who: object) -> None:
        """Enter for *who*; waits while another thread is alone."""
        self._inside[id(who)] = me = _get_ident()
        if self._shut:
            self._enter_later(who, me)

    def admit(self, txn: Any) -> bool:
        """As `enter`, for a transaction that has nothing else to end. Returns True."""
        txn._odd = self  # first: an interrupt may come before it is inside
        self._inside[id(txn)] = me = txn._thread
        if self._shut:
            self._enter_later(txn, me)
        return True

    def leave(self, who: object) -> None:
        """Leave, after *who* entered; it may be told twice, and where it is not inside."""
        self._inside.pop(id(who), None)
        if self._shut:  # also when told again, as an interrupt may have come in between
            with self._lock:
                self._changed.notify_all()

    def _enter_later(self, who: object, me: int) -> None:
        """Enter, as the gate was found shut."""
        with self._lock:
            self._inside.pop(id(who), None)
            self._changed.notify_all()
            while self._shut and me not in list(self._inside.values()):
                self._changed.wait()
            self._inside[id(who)] = me

    @contextmanager
    def alone(self, timeout: float, look: Optional[Callable[[], object]] = None) -> Generator[bool, None, None]:
        """A block while nobody is inside, with True; with False if this thread is, or others stay for *timeout* s.

        *look* is called each second: it ends what nobody would end.
        """
        with self._lock:
            while self._shut:
                self._changed.wait()
            self._shut = True
        try:
            alone, end = False, monotonic() + timeout
            while not alone:
                left = end - monotonic()
                with self._lock:
                    mine = _get_ident() in list(self._inside.values())
                    alone = not mine and self._changed.wait_for(lambda: not self._inside, min(left, _LOOK_AGAIN))
                if mine or left <= _LOOK_AGAIN:
                    break
                if look is not None and not alone:
                    look()
            yield alone
        finally:
            with self._lock:
                self._shut = False
                self._changed.notify_all()
