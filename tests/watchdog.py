"""A test that hangs ends the run, and shows where each thread is; one that fails shows it of the threads that go on."""

from __future__ import annotations

import faulthandler
import gc
import os
import sys
import threading
import time
import traceback
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from zlmdb.store.writerlock import WriterLock

_OFTEN = 30  # seconds: a timer for each test would take as long as some tests do
_INNERMOST = 12


class Watchdog:
    """Ends the process when a test takes longer than some *seconds*, up to half a minute less."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._stderr = os.dup(2)  # during tests, pytest has another one
        self._set = 0.0

    def pytest_runtest_logstart(self) -> None:
        now = time.monotonic()
        if not self._set or now - self._set > _OFTEN:
            self._set = now
            faulthandler.dump_traceback_later(self._seconds, exit=True, file=self._stderr)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed and call.when == "call":
            shown = [f"E   {line}" for line in [*_threads(), *_writers()]]  # as CI shows the lines that say why
            if shown:
                report.sections.append(("Other threads, and who holds or awaits a writer lock", "\n".join(shown)))
        return report

    def pytest_sessionfinish(self) -> None:
        faulthandler.cancel_dump_traceback_later()


def _threads() -> Iterator[str]:
    """Where the threads are but this one, the innermost call first."""
    names = {one.ident: one.name for one in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        if ident != threading.get_ident():
            calls = [f"{Path(one.filename).name}:{one.lineno} {one.name}" for one in traceback.extract_stack(frame)]
            yield f"thread {ident} {names.get(ident)}: {', '.join(calls[: -_INNERMOST - 1 : -1])}"


def _writers() -> Iterator[str]:
    """The writer locks that are taken, by whom, and for what."""
    for lock in [one for one in gc.get_objects() if isinstance(one, WriterLock)]:
        claims = list(lock._claims.values())
        if claims or lock._waiters or lock._next:
            asked = {"called": lock._next, "lent": [one.hold for one in lock.lent()], "waiting": [*lock._waiters]}
            yield f"writer lock {lock.path}: {asked}"
        for hold in claims:
            holder = hold.holder()
            block = getattr(holder, "_block", None)
            statement = None if block is None else block()
            yield f"  held by thread {hold.thread}, turn {hold.turn}, kept {hold.kept}, for {holder!r}, {statement!r}"
            for one in [] if statement is None else gc.get_referrers(statement):
                yield f"    to whose statement refers {one!r:.300}"
