"""A test that hangs ends the run, and shows where each thread is."""

from __future__ import annotations

import faulthandler
import os
import time

_OFTEN = 30  # seconds: a timer for each test would take as long as some tests do


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

    def pytest_sessionfinish(self) -> None:
        faulthandler.cancel_dump_traceback_later()
