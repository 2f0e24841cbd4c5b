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
from ..engines import Engine, Environment
from ..shown import shown_path
from .live import LiveTransactions
from .readers import shown_with_origin

_SHOWN = 5  # of the transactions that keep a store from being closed, in the error


class Closing:
    """What is open in a store whose environment *env* was taken away, and who may begin all the same.

    *live* and *reads* are those of the store. *exempts* says whether the current thread may: one that stores what was
    submitted before.
    """

    def __init__(
        self, env: Environment, live: LiveTransactions, reads: set[object], exempts: Callable[[], bool]
    ) -> None:  # fmt: skip
        self.env = env
        self._live = live
        self._reads = reads
        self._exempts = exempts
        self._before: list[tuple[ref[Any], float]] = []  # no objects, which would keep transactions open
        self._reads_before: set[object] = set()

    def look(self) -> None:
        """See what is open, after the environment was taken away: what begins later does not find it."""
        # One that begins makes itself known before it looks for the environment.
        self._before = [(ref(live), live._since) for live in self._alive() if live.active]
        self._reads_before = set(self._reads)

    def admits(self) -> bool:
        """Whether the current thread may begin: also if what it has open may need that to come to its end."""
        me = threading.get_ident()
        return self._exempts() or any([one._begun and one._thread == me for one in self._alive()])

    def in_use(self, thread: Optional[int] = None) -> list[Any]:
        """The transactions that are open, of all threads, or of one *thread*."""
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

    def is_over(self) -> bool:
        """Whether nothing is open any more."""
        self._reads_before &= self._reads
        return not (self._reads_before or self.in_use())

    def _alive(self) -> list[Any]:
        return [*self._live.alive()]


class Closable:
    """The part of a store that lets nobody begin any more, before it is closed."""

    engine: Engine
    env: Optional[Environment]
    live: LiveTransactions
    lock: Any
    reads: set[object]
    users: int

    closing: Optional[Closing] = None

    @property
    def present(self) -> Optional[Environment]:
        """The environment, also while nobody begins any more; None where it is not open."""
        closing = self.closing
        return self.env if closing is None else closing.env

    def stop_beginning(self, exempts: Callable[[], bool], timeout: float) -> Optional[Closing]:
        """Let nobody begin any more but whom it *exempts*. None: something takes longer than *timeout*.

        If another thread has done so already: as it said.
        """
        taken: list[bool] = []
        acquire: Callable[[bool, float], bool] = self.lock.acquire
        try:
            taken.extend(map(acquire, (True,), (min(timeout, threading.TIMEOUT_MAX),)))  # see `locks`
            env = self.env
            if True in taken and self.closing is None and env is not None:
                closing = Closing(env, self.live, self.reads, exempts)
                self.closing = closing  # first: who does not find the environment looks for this
                self.env = None
                closing.look()
            return self.closing if True in taken else None
        finally:
            if True in taken:
                self.lock.release()

    def go_on(self) -> None:
        """Let others begin again."""
        closing = self.closing
        if closing is not None:
            with self.lock:
                if self.closing is closing:
                    self.env = closing.env
                    self.closing = None

    def _admitted(self, closing: Closing) -> Environment:
        """The environment, for a thread that begins. Raises `DatabaseClosed`."""
        if self.users > 1:  # somebody has opened the file meanwhile: it stays open
            self.go_on()
        elif not closing.admits():
            raise errors.DatabaseClosed(
                f"the database {shown_path(self.engine.path)} is being closed, and only what has begun before may go "
                f"on: end this thread, or open the database again afterwards"
            )
        return closing.env

    def refuse_to_close(self, when: str = "", thread: Optional[int] = None) -> None:
        """Raise `DatabaseInUse` if transactions are open, of all threads, or of one *thread*."""
        closing = self.closing
        # Texts, as objects would keep the transactions open.
        if closing is None:
            in_use = [shown_with_origin(live) for live in self.live.alive() if live.active]
        else:
            in_use = [shown_with_origin(live) for live in closing.in_use(thread)]
        if in_use:
            shown = ", ".join(in_use[:_SHOWN]) + (", ..." if len(in_use) > _SHOWN else "")
            raise errors.DatabaseInUse(
                f"the database {shown_path(self.engine.path)} has open transactions{when} ({len(in_use)}): [{shown}]; "
                "end them before close()"
            )
