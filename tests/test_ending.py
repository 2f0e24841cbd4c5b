"""The end of a program: what it has submitted is stored, and nothing waits for a thread that Python has stopped."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import zlmdb

from . import workers

cpython = pytest.mark.skipif(
    sys.implementation.name != "cpython", reason="this interpreter calls no finalisers as it ends"
)

BEGINS = """
    import atexit, os, sys, threading, time, weakref
    from functools import partial

    before = []
    atexit.register(lambda: [one() for one in before])  # it is called after all functions that are registered later
    import zlmdb
    from tests import test_ending

    db = test_ending.open_store(sys.argv[1])

    def put(n):
        def stores(t):
            t.numbers[n] = n
            return n
        return stores

    def in_daemon(work):
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        return thread
"""


class Store(zlmdb.Schema):
    numbers: zlmdb.Table[int, int]


def open_store(path: Any, **options: Any) -> Any:
    return zlmdb.open(path, Store, **options)


class AtTheEnd:
    """Calls *work* when the interpreter clears its modules, and says what came of that."""

    def __init__(self, work: Any) -> None:
        self.work = work

    def __del__(self, say: Any = sys.__stderr__) -> None:
        try:
            came: Any = self.work()
        except BaseException as error:
            came = error
        say.write(f"{came!r}\n")
        say.flush()


def holds(lock: Any, held: Any, never: Any) -> None:
    """For a daemon thread that is stopped inside of the block."""
    with lock:
        held.set()
        never.wait()


def ended(path: Path, program: str) -> str:
    """What a program writes that ends by itself."""
    command = [sys.executable, "-c", textwrap.dedent(BEGINS) + textwrap.dedent(program), str(path)]
    done = subprocess.run(
        command, env=workers.surroundings(), capture_output=True, text=True, timeout=60, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def stored(path: Path) -> list[int]:
    with open_store(path, timeout=5) as db, db.read() as t:
        return list(t.numbers)


def test_what_a_daemon_thread_has_submitted_is_stored_before_the_program_ends(tmp_path: Path) -> None:
    said = ended(tmp_path, "in_daemon(lambda: [db.submit(put(n)) for n in range(200)]).join(); sys.exit()")
    assert said == ""
    assert stored(tmp_path) == list(range(200))


def test_what_functions_submit_that_are_called_at_the_end_is_stored(tmp_path: Path) -> None:
    """Whenever they were registered, and while daemon threads go on to submit."""
    said = ended(
        tmp_path / "alone",
        """
        before.append(lambda: [db.submit(put(n)) for n in range(50)])  # nothing was submitted before
        """,
    )
    assert stored(tmp_path / "alone") == list(range(50))
    said = ended(
        tmp_path,
        """
        told = []

        def goes_on():
            for n in range(1000, 1_000_000):
                db.submit(put(n))
                told[:] = [n]

        before.append(lambda: [db.submit(put(n)) for n in range(50)])
        before.append(lambda: print(told[0]))
        atexit.register(lambda: [db.submit(put(n)) for n in range(50, 100)])
        in_daemon(goes_on)
        while not told:
            time.sleep(0.001)
        """,
    )
    assert stored(tmp_path)[:100] == list(range(100))
    assert set(range(1000, int(said) + 1)) <= set(stored(tmp_path))


def test_where_python_begins_no_more_threads_as_it_ends_the_caller_stores_what_it_submits(tmp_path: Path) -> None:
    """As in Python 3.12, also in threads that go on after the main one."""
    said = ended(
        tmp_path,
        """
        def refuses(thread):
            raise RuntimeError("can't create new thread at interpreter shutdown")

        def goes_on():
            while threading.main_thread().is_alive():  # to wait in join() may fail in Python up to 3.12
                time.sleep(0.01)
            threading.Thread.start = refuses
            print(db.submit(put(1)).result())
            with db.write():
                try:
                    db.submit(put(2))
                except RuntimeError as error:
                    print(error)

        threading.Thread(target=goes_on).start()
        """,
    )
    assert said == "1\ncan't create new thread at interpreter shutdown\n"
    assert stored(tmp_path) == [1]


@cpython
@pytest.mark.parametrize(
    "work",
    [
        "db.write().__enter__()",
        "db.begin(write=True).__enter__()",
        "db.run(put(1))",
        "db.auto.numbers.__setitem__(1, 1)",
        "db.submit(put(1)).result()",
    ],
)
def test_a_finaliser_at_the_end_is_told_of_a_writer_that_python_has_stopped(tmp_path: Path, work: str) -> None:
    """It would wait for ever."""
    said = ended(
        tmp_path,
        f"""
        from zlmdb.store import blockgroups, members  # nothing can be imported later
        db.submit(put(0)).result(), db.auto.numbers.get(0)
        held = threading.Event()
        in_daemon(partial(test_ending.holds, db.write(), held, threading.Event()))
        held.wait()
        at_the_end = test_ending.AtTheEnd(partial(lambda db, put: {work}, db, put))
        """,
    )
    assert "WriterTimeout" in said
    assert "the program ends" in said


@cpython
def test_a_finaliser_can_close_a_database_that_is_flushed(tmp_path: Path) -> None:
    """The thread that flushes has been stopped already."""
    said = ended(
        tmp_path,
        """
        flushed = test_ending.open_store(sys.argv[1] + "-2", durability="commit", flush_every=0.01)
        flushed.run(put(1))
        at_the_end = test_ending.AtTheEnd(flushed.close)
        """,
    )
    assert said == "None\n"


@cpython
def test_a_finaliser_can_close_a_database_that_a_daemon_is_in_a_call_of(tmp_path: Path) -> None:
    """py-lmdb would wait for the end of the call, in which Python has stopped the thread for ever."""
    said = ended(
        tmp_path,
        """
        db.run(lambda t: t.numbers.put_many((n, n) for n in range(10_000)))
        read, write = os.pipe()
        in_daemon(partial(db._open_store.env.copyfd, write))
        os.read(read, 1)  # nobody reads the rest
        at_the_end = test_ending.AtTheEnd(db.close)
        """,
    )
    assert said == "None\n"


@cpython
def test_the_end_does_not_wait_for_a_thread_that_was_opening_a_database(tmp_path: Path) -> None:
    """The module that has this one is cleared after Python has stopped the daemon."""
    said = ended(
        tmp_path,
        """
        from zlmdb.store import openstores
        held = threading.Event()
        in_daemon(partial(test_ending.holds, openstores.lock, held, threading.Event()))
        held.wait()
        """,
    )
    assert said == ""
