"""Pauses at random where a thread or process may be stopped by the system: two that meet in a short window do so often.

Before and after calls by zlmdb of the system, of LMDB and of locks a thread sleeps with a given chance, and with a
smaller one where functions of zlmdb begin and end. Without them a window of a few microseconds was met in one of some
thousand openings, and only on a loaded machine. CPython only, which calls profilers for functions in C.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import zlmdb

_PACKAGE = os.path.dirname(zlmdb.__file__) + os.sep
_MODULES = frozenset(("posix", "fcntl", "_thread", "mmap", "lmdb", "lmdb.cpython", "select", "_queue", "time"))
_RARER = 50  # of functions of zlmdb there are as many more calls


def install(chance: float, longest: float = 0.03) -> None:
    """Pause this thread, those that begin after it, and what is forked from them: up to *longest* seconds each time."""
    dice, sleep = random.random, time.sleep

    def pause(frame: FrameType, event: str, called: Any) -> None:
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return
        if event in ("call", "return"):
            likely = chance / _RARER
        else:
            owner = getattr(called, "__self__", None)
            module = owner.__name__ if isinstance(owner, type(sys)) else type(owner).__module__
            if module not in _MODULES:
                return
            likely = chance
        if dice() < likely:
            sleep(dice() ** 4 * longest)  # most are short

    sys.setprofile(pause)
    threading.setprofile(pause)


@contextmanager
def paused(chance: float) -> Iterator[None]:
    """A block whose threads and forked processes pause, if there is a *chance*."""
    if not chance:
        yield
        return
    install(chance)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
