"""A notifier: it wakes threads and tasks that wait."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import AsyncGenerator, Awaitable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Callable, Optional

from .loops import running_loop


class Notifier:
    """Wakes those who listen, in this process: a ring wakes all who began to listen before it.

    Begin to listen, then look, then wait: a ring that comes after the look is heard.
    """

    latest: object
    """A new one for each ring: a number that two threads count at once may come twice."""

    def __init__(self) -> None:
        self._reset()
        _bells.add(self)

    def _reset(self) -> None:
        # Without a lock: an interrupt may come as a lock is let go, and then whoever rings would wait for ever.
        self._listening: dict[object, Callable[[], object]] = {}  # each step with it is one call
        self.rung()
        self.idle: tuple[object, float] = None, 0.0
        """After which ring somebody has looked and found nothing, and until when that holds."""
        self.claims: dict[object, float] = {}
        """Since when threads and tasks of this process have been about to take what it rang for."""
        self.missed = False
        """Whether somebody has left something to them, and is to look again if they leave something."""

    def rung(self) -> None:
        """It rings, or is heard by other means: nobody has looked since then."""
        self.latest = object()

    def ring(self) -> None:
        """Wake all who listen."""
        self.rung()  # first: who is woken compares it
        if self._listening:
            for wake in list(self._listening.values()):
                wake()

    def claiming(self, since: float) -> int:
        """How many claims have begun after the time *since*."""
        began = list(self.claims.values())  # the oldest first
        return len(began) if not began or began[0] > since else sum([one > since for one in began])

    @contextmanager
    def _registered(self, wake: Callable[[], object]) -> Generator[None, None, None]:
        me = object()
        try:
            self._listening[me] = wake
            yield
        finally:
            self._listening.pop(me, None)

    @contextmanager
    def listen(self) -> Generator[Callable[[Optional[float]], bool], None, None]:
        """A block that hears the bell; its object waits at most the given seconds, and says whether the bell rang."""
        rung = threading.Event()

        def wait(seconds: Optional[float]) -> bool:
            heard = rung.wait(seconds)
            rung.clear()
            return heard

        with self._registered(rung.set):
            yield wait

    @asynccontextmanager
    async def alisten(self) -> AsyncGenerator[Callable[[Optional[float]], Awaitable[bool]], None]:
        """As `listen`, for a task of asyncio."""
        loop, woken = running_loop(), asyncio.Event()
        rung: list[bool] = []

        async def wait(seconds: Optional[float]) -> bool:
            # Not asyncio.wait_for, which before Python 3.12 may swallow a cancellation.
            alarm = None if seconds is None else loop.call_later(seconds, woken.set)
            try:
                await woken.wait()
            finally:
                if alarm is not None:
                    alarm.cancel()
            heard = bool(rung)
            rung.clear()  # first: who rings from now on sets the event again
            woken.clear()
            return heard

        # A task whose loop was closed, or is run no more, never ends, and nothing else may keep it.
        sleeping, running = weakref.ref(woken), weakref.ref(loop)

        def wake() -> None:
            event, where = sleeping(), running()
            if event is not None and where is not None and not rung:
                rung.append(True)
                with suppress(RuntimeError):  # the loop is closed, and whoever rings must not learn of that
                    where.call_soon_threadsafe(event.set)

        with self._registered(wake):
            yield wait


_bells: weakref.WeakSet[Notifier] = weakref.WeakSet()


def ring_all() -> None:
    """Ring every bell of this process."""
    while True:
        try:
            bells = list(_bells)
            break
        except RuntimeError:  # another thread has made one meanwhile
            continue
    for bell in bells:
        bell.ring()


def _reset_all() -> None:
    """In the child of a fork nobody listens."""
    for bell in list(_bells):
        bell._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_all)
