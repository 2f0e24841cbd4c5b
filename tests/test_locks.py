"""Locks that an interrupt leaves free, whatever instruction it comes in."""

from __future__ import annotations

import sys
import threading
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
