"""A store that is about to be closed: nobody begins a transaction any more, and what is open may end.

Transactions find the environment as an attribute of the store, and it is taken away. So one that begins now fails to do
so by the fast way, and comes to `OpenEnvironment.reopen`, which asks here. Nobody else has more to ask than before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Optional
from weakref import ref

from .. import errors
from ..engines import Environment
from ..shown import shown_path
from .environment import OpenEnvironment
from .readers import refuse_open


class Closing:
    """What is open in the store *opened*, whose environment *env* was taken away, and who may begin all the same.

    *env* is None in a forked child that has not used the database: then nothing is open.

    *exempts* says whether the current thread may: one that stores what was submitted before.
    """

    def __init__(self, opened: OpenEnvironment, env: Optional[Environment], exempts: Callable[[], bool]) -> None:
        self.env = env
        self._opened = opened
        self._exempts = exempts
        self._before: list[tuple[ref[Any], float]] = []  # no objects, which would keep transactions open
        self._reads_before: set[object] = set()

    def look(self) -> None:
        """See what is open, after the environment was taken away: what begins later does not find it."""
        # One that begins makes itself known before it looks for the environment.
        self._before = [(ref(live), live._since) for live in self._alive() if live.active]
        self._reads_before = set(self._opened.reads)

    def admitted(self) -> Environment:
        """The environment, for a thread that begins. Raises `DatabaseClosed`."""
        opened = self._opened
        if opened.users > 1:  # somebody has opened the file meanwhile: it stays open
            opened.go_on()
        elif not self._admits():
            raise errors.DatabaseClosed(
                f"the database {shown_path(opened.engine.path)} is being closed, and only what has begun before may go "
                f"on: end this thread, or open the database again afterwards"
            )
        if self.env is None:
            opened.closing = None
            return opened.reopen()
        return self.env

    def _admits(self) -> bool:
        """Whether the current thread may begin: also if what it has open may need that to come to its end."""
        me = threading.get_ident()
        return self._exempts() or any([one._begun and one._thread == me for one in self._alive()])

    def check(self, when: str = "", thread: Optional[int] = None) -> None:
        """Raise `DatabaseInUse` if transactions are open, of all threads, or of one *thread*."""
        refuse_open(self._opened.engine.path, self._in_use(thread), when)

    def is_over(self) -> bool:
        """Whether nothing is open any more."""
        self._reads_before &= self._opened.reads
        return not (self._reads_before or self._in_use())

    def _in_use(self, thread: Optional[int] = None) -> list[Any]:
        # Those that are about to begin since have no transaction of the engine, and do not get one. A thread that does
        # not give up to begin would be found at that each time, so they are not among these.
        before: dict[int, float] = {}
        for known, since in list(self._before):
            live = known()
            if live is not None and live.active and (live._begun or live._since == since):
                before[id(live)] = since
            else:
                self._before.remove((known, since))
        found = [one for one in self._alive() if one._begun or id(one) in before]
        return [one for one in found if thread is None or one._thread == thread]

    def _alive(self) -> list[Any]:
        return [*self._opened.live.alive()]


def stop_beginning(opened: OpenEnvironment, exempts: Callable[[], bool], timeout: float) -> Optional[Closing]:
    """Let nobody begin any more but whom it *exempts*. None: something takes longer than *timeout*, or it is closed.

    If another thread has done so already: as it said.
    """
    taken: list[bool] = []
    acquire: Callable[[bool, float], bool] = opened.lock.acquire
    try:
        taken.extend(map(acquire, (True,), (min(timeout, threading.TIMEOUT_MAX),)))  # see `locks`
        env = opened.env
        if True in taken and opened.closing is None:
            closing = Closing(opened, env, exempts)
            opened.closing = closing  # first: who does not find the environment looks for this
            opened.env = None
            closing.look()
        return opened.closing if True in taken else None
    finally:
        if True in taken:
            opened.lock.release()
