"""A gate before the transactions of a store whose memory map may move: it moves while nobody is inside."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

_get_ident = threading.get_ident


class Gate:
    """Counts the open transactions of this process, and lets one thread be alone.

    A thread that is inside already is let in again, so that it never waits for a thread that waits for it.
    """

    def __init__(self) -> None:
        # Reentrant, since the finaliser of a transaction may leave while its thread is in the middle of a method here.
        self._changed = threading.Condition(threading.RLock())
        self._inside: dict[int, int] = {}  # by thread: the number of its transactions
        self._shut = False

    def enter(self) -> None:
        """Come in, waiting while another thread is alone."""
        me = _get_ident()
        with self._changed:
            while self._shut and me not in self._inside:
                self._changed.wait()
            self._inside[me] = self._inside.get(me, 0) + 1

    def leave(self, thread: int) -> None:
        """Go out, on behalf of *thread*, which came in."""
        with self._changed:
            count = self._inside.pop(thread, 1) - 1
            if count:
                self._inside[thread] = count
            self._changed.notify_all()

    @contextmanager
    def alone(self, timeout: float) -> Generator[bool, None, None]:
        """A block while nobody is inside, given True; or False, when this thread is, or others stay for *timeout* s."""
        with self._changed:
            while self._shut:
                self._changed.wait()
            self._shut = True
        try:
            with self._changed:
                alone = _get_ident() not in self._inside and self._changed.wait_for(lambda: not self._inside, timeout)
            yield alone
        finally:
            with self._changed:
                self._shut = False
                self._changed.notify_all()
