"""No exception of a thread, a task or a callback passes unseen, in no process that a test starts."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Callable

import pytest

from . import waiters, workers
from .loud.sitecustomize import STATUS
from .waiters import Caller


def fails(*_: Any) -> None:
    raise LookupError("told")


def in_thread() -> None:
    thread = threading.Thread(target=fails)
    thread.start()
    thread.join()


def in_finalizer() -> None:
    type("Fails", (), {"__del__": fails})()
    gc.collect()


WAYS: list[Callable[[], None]] = [in_thread, in_finalizer]


def test_a_failing_thread_of_pytest_itself_is_an_error(pytestconfig: pytest.Config) -> None:
    """pytest warns of it, and each warning is an error but two, of CPython 3.14."""
    first, *others = pytestconfig.getini("filterwarnings")
    assert first == "error"
    assert [one.split(":")[:2] for one in others] == [
        ["ignore", "'return' in a 'finally' block"], ["ignore", "It looks like `register_random` was passed"]
    ]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_program_ends(way: Callable[[], None], tmp_path: Path) -> None:
    program = f"from tests import test_unseen; test_unseen.{way.__name__}(); print('passed')"
    done = subprocess.run(
        [sys.executable, "-c", program], env=workers.surroundings(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (STATUS, "")
    assert "told" in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("way", WAYS)
def test_a_fork_ends(way: Callable[[], None]) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            way()
        finally:
            os._exit(0)
    assert os.waitpid(pid, 0)[1] == STATUS << 8


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_a_process_of_multiprocessing_ends(method: str) -> None:
    process: Any = multiprocessing.get_context(method).Process(target=in_thread)  # type: ignore[attr-defined]
    process.start()
    process.join(60)
    assert process.exitcode == STATUS


def test_what_is_only_logged_is_seen(unseen: list[str]) -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_soon(fails)
        await asyncio.sleep(0)

    asyncio.run(main())
    (told,) = unseen
    assert "told" in told
    unseen.clear()


def test_what_a_waiting_thread_raised_is_seen() -> None:
    caller = Caller(None, fails).ended()
    assert caller in waiters.unseen
    assert isinstance(caller.raised, AttributeError)
    assert caller not in waiters.unseen
