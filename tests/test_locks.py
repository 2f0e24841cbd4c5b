"""Locks that an interrupt leaves free, whatever instruction it comes in."""

from __future__ import annotations

import bdb
import os
import signal
import sys
import threading
import time
from typing import Any

import pytest

from zlmdb import locks

from .interrupts import INTERRUPTS, handled_at, interrupting, traces_instructions


@pytest.fixture(params=[threading.Lock, threading.RLock])
def safe(request: Any) -> Any:
    return locks._Safe(request.param())


def is_free(lock: Any) -> bool:
    """Whether another thread can take it."""
    got: list[bool] = []

    def take() -> None:
        got.append(lock.acquire(timeout=0.1))
        if got[0]:
            lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return got == [True]


def test_it_is_held_in_the_block_and_free_afterwards(safe: Any) -> None:
    with safe as taken:
        assert taken
        assert not is_free(safe)
    assert is_free(safe)
    with pytest.raises(KeyError), safe:
        raise KeyError
    assert is_free(safe)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="before Python 3.12 a handler may run elsewhere, too")
@traces_instructions
def test_an_interrupt_leaves_it_free_wherever_handlers_run(safe: Any) -> None:
    at, more = 1, True
    while more:
        try:
            with interrupting(at, lambda name: name == locks.__file__, handled_at) as count, safe:
                pass
        except INTERRUPTS:
            pass
        more = at <= count[0]
        assert is_free(safe), at
        at += 1
    assert at == 4  # as it begins, after the lock was taken, and none


def test_who_quits_the_debugger_at_any_line_of_it_leaves_it_free(safe: Any) -> None:
    lines = at = 0

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal lines
        if frame.f_code is not type(safe).__enter__.__code__:
            return None
        if event == "line":
            lines += 1
            if lines == at:
                raise bdb.BdbQuit
        return trace

    before = sys.gettrace()
    while lines == at:
        at, lines = at + 1, 0
        sys.settrace(trace)
        try:
            with safe:
                pass
        except bdb.BdbQuit:
            pass
        finally:
            sys.settrace(before)
        assert is_free(safe), at
    assert at > 3


@pytest.mark.skipif(sys.implementation.name != "pypy", reason="elsewhere py-lmdb is in C, and nothing is deferred")
def test_a_finaliser_that_runs_while_a_block_begins_or_ends_has_one_of_its_own() -> None:
    """It raised, and the transaction that it was to end stayed open: the next write waited for ever."""
    codes = [getattr(type(locks.undisturbed), name).__code__ for name in ("__enter__", "__exit__")]
    steps = wanted = 0
    heard: list[int] = []

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal steps
        if frame.f_code not in codes:
            return None
        steps += 1
        if steps == wanted:
            sys.settrace(None)
            with locks.undisturbed, locks.undisturbed:
                pass
        return trace

    before, tracer = signal.signal(signal.SIGUSR1, lambda *args: heard.append(1)), sys.gettrace()
    try:
        while steps == wanted or wanted <= 1:
            wanted, steps = wanted + 1, 0
            sys.settrace(trace)
            with locks.undisturbed:
                os.kill(os.getpid(), signal.SIGUSR1)
                inside = len(heard)
            sys.settrace(tracer)
            for _ in range(1000):
                if heard:
                    break
                time.sleep(0.001)  # the handler runs in one of the next steps
            assert (inside, len(heard)) == (0, 1), wanted
            heard.clear()
    finally:
        sys.settrace(tracer)
        signal.signal(signal.SIGUSR1, before)
    assert wanted > 8
