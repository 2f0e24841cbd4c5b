"""What a signal handler raises in the midst of zlmdb comes out as it is, and nothing is half stored because of it."""

from __future__ import annotations

import functools
import gc
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional

import pytest
from hypothesis import settings

import zlmdb
from zlmdb import handlers
from zlmdb.handlers import let_through
from zlmdb.query.following import code
from zlmdb.store.blocks import COUNTS_REFERENCES

from .interrupts import handled_at, is_mark, traces_instructions

PACKAGE = os.path.dirname(zlmdb.__file__)
LOCKING = re.compile(r"engines.memory|zlmdb.locks\.py$")  # of zlmdb, where a lock is taken and where that is written

pytestmark = [
    pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="this system has no signals that a program may use"),
    pytest.mark.skipif(
        threading.current_thread() is not threading.main_thread(), reason="signals come to the main thread"
    ),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@dataclass
class Person:
    name: str
    age: int


class Persons(zlmdb.Table[int, Person]):
    by_age = zlmdb.Index[int]("age")
    by_name = zlmdb.UniqueIndex[str]("name")


class Store(zlmdb.Schema):
    numbers: zlmdb.Table[int, int]
    persons: Persons


class OfHandler(Exception):
    """An error of the program."""


class OfHandlerValue(ValueError):
    """One of a class that zlmdb itself catches when a codec raises it."""


class Lost(Exception):
    """The signal came, and what the handler raised did not come out."""


@pytest.fixture(autouse=True)
def _what_comes_into_a_finaliser_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)


@pytest.fixture(params=["disk", "memory"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param == "memory" and sys.version_info < (3, 11):
        pytest.skip("a signal may come between a lock and its with statement, before Python 3.11")
    path = tmp_path / "db" if request.param == "disk" else None
    db = zlmdb.open(path, Store, **({} if path is None else {"durability": "none"}))
    with db.write() as t:
        t.numbers.update((n, n) for n in range(5))
        t.persons.update((n, Person(f"p{n}", n)) for n in range(5))
    yield db
    gc.collect()
    with suppress(zlmdb.DatabaseInUse):
        db.close()


@contextmanager
def handled(error: type[BaseException]) -> Iterator[None]:
    """A block in which SIGUSR1 raises *error*."""

    def handler(*args: Any) -> None:
        raise error("of the handler")

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


class Sending:
    """A block with a signal at the instruction number *at* of zlmdb and of what it generates."""

    def __init__(self, at: int) -> None:
        self.at, self.count = at, 0
        self.where: Optional[tuple[Any, ...]] = None
        # One object for all frames: CPython 3.11.2 has called one that was gone, a traceback in its place.
        self._traced = self._trace

    def _trace(self, frame: Any, event: str, arg: Any) -> Any:
        code = frame.f_code
        # A finaliser loses what is raised in it, and so does what Python calls to end a generator.
        if not code.co_filename.startswith((PACKAGE, "<zlmdb")) or code.co_name in ("__del__", "<genexpr>"):
            return None
        frame.f_trace_opcodes = True
        if (
            event == "opcode"
            and frame.f_lineno is not None  # Python's own, by which a generator ends: 3.14 loses what is raised there
            and not is_mark(frame)
            and (LOCKING.search(code.co_filename) is None or frame.f_lasti in handled_at(code))
        ):
            self.count += 1
            if self.count == self.at:
                sys.settrace(None)
                self.where = (code.co_filename, code.co_name, frame.f_lineno)
                signal.raise_signal(signal.SIGUSR1)
        return self._traced

    def __enter__(self) -> Sending:
        self._before = sys.gettrace()
        sys.settrace(self._traced)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(self._before)


def scan(t: Any) -> None:
    for _ in t.numbers.items():
        pass


def scan_of_an_index(t: Any) -> None:
    for _ in t.persons.by_age.select():
        pass


def scan_that_writes(t: Any) -> None:
    for key, value in t.numbers.items():
        t.numbers[key] = value + 1


def scan_of_an_index_that_writes(t: Any) -> None:
    for key, person in t.persons.by_age.select(0, 2):
        person.age += 1
        t.persons[key] = person


def condition(t: Any) -> None:
    list(t.persons.where(lambda person: person.age > 2))


def savepoint(t: Any) -> None:
    with t.txn.savepoint():
        t.numbers[1] = 1


def savepoint_undone(t: Any) -> None:
    with suppress(KeyError), t.txn.savepoint():
        t.numbers[1] = 1
        raise KeyError


def writes(t: Any) -> None:
    t.numbers[5] = 5
    t.persons[7] = Person("x", 9)
    del t.persons[7]
    t.persons.put_many([(n, Person(f"a{n}", n)) for n in range(20, 23)])
    with t.persons.edit(1) as person:
        person.age = 77


def reads(t: Any) -> None:
    assert t.numbers[1] == 1
    assert 9 not in t.numbers
    assert t.persons.by_name["p2"].age == 2
    assert t.numbers.select(2).count() == 3
    assert t.numbers.select().last() == (4, 4)


WORK: dict[Callable[[Any], None], int] = {
    scan: 7, scan_of_an_index: 10, scan_that_writes: 19, scan_of_an_index_that_writes: 43, condition: 19, savepoint: 3,
    savepoint_undone: 4, writes: 25, reads: 7,
}  # fmt: skip
"""With how many instructions from one signal to the next: all, one by one, were tried when this was written."""


@pytest.mark.parametrize(("name", "known"), [("zlmdb/handlers.py", "zlmdb/"), ("handlers.py", PACKAGE + os.sep)])
def test_functions_of_a_packed_package_are_known_by_the_names_that_their_code_has(name: str, known: str) -> None:
    source = Path(handlers.__file__).read_text("utf-8")
    space: dict[str, Any] = {"__name__": handlers.__name__, "__file__": handlers.__file__}
    exec(compile(source, name, "exec"), space)
    assert space["OURS"] == (known, "<zlmdb ")


@traces_instructions
@pytest.mark.parametrize("error", [OfHandler, OfHandlerValue])
@pytest.mark.parametrize("work", list(WORK), ids=lambda work: work.__name__)
def test_what_a_handler_raises_at_any_instruction_surfaces_as_itself(
    db: Any, work: Callable[[Any], None], error: type[Exception]
) -> None:
    def once(at: int) -> bool:
        sending = Sending(at)
        with db.write(timeout=5) as t:
            assert t.numbers
            assert t.persons
            with sending:
                work(t)
            if sending.where is None:
                return False
            raise Lost(sending.where)

    at, found = 1 if error is OfHandler else 1 + WORK[work] // 2, True  # the two are tried at instructions between
    with handled(error):
        while found:
            try:
                found = once(at)
            except error as surfaced:
                assert str(surfaced) == "of the handler"  # noqa: PT017
            except SystemError as surfaced:  # where it came beside the result of a function in C
                assert isinstance(surfaced.__cause__, error)  # noqa: PT017
            at += WORK[work] * (1 if settings.default.max_examples > 100 else 3)  # closest in thorough runs
    assert at > 50
    with db.write(timeout=5) as t:
        work(t)
    assert db.check().ok


@traces_instructions
def test_a_savepoint_that_is_interrupted_is_undone_or_the_transaction_is(db: Any) -> None:
    at, outcomes = 0, set[str]()
    sending = Sending(1)
    sending.where = ()
    with handled(OfHandler):
        while sending.where is not None:
            at += 2
            sending = Sending(at)
            try:
                with db.write() as t:
                    t.numbers[0] = at
                    try:
                        with sending, t.txn.savepoint():
                            t.numbers[1] = -at
                    except (OfHandler, SystemError):
                        pass
                    outcomes.add("went on")
            except (zlmdb.TransactionPoisoned, zlmdb.DatabaseInUse):
                outcomes.add("refused")
            with db.read() as t:
                first, second = t.numbers[0], t.numbers[1]
            assert first <= at
            if sending.where is not None and sending.where[1] != "savepoint":  # where it ends: it is over
                assert second != -at, sending.where
    assert outcomes == {"went on", "refused"}


def for_a_while(work: Callable[[Any], None], t: Any) -> None:
    """Until the signal has come, or was lost in a finaliser. Around a loop, Python 3.13 may miss an ``except``."""
    deadline = time.monotonic() + 0.1
    while time.monotonic() < deadline:
        work(t)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers that send signals")
@pytest.mark.parametrize("work", [scan, scan_that_writes, savepoint], ids=lambda work: work.__name__)
def test_real_signals_surface_as_what_their_handler_raises(db: Any, work: Callable[[Any], None]) -> None:
    armed = False

    def handler(*args: Any) -> None:
        if armed:
            raise OfHandlerValue("of the handler")

    with db.write() as t:
        work(t)  # it imports, which on PyPy makes an ImportError of what a handler raises
    before = signal.signal(signal.SIGALRM, handler)
    surfaced = 0
    try:
        for n in range(80):
            try:
                with db.write(timeout=5) as t:
                    armed = True
                    try:
                        signal.setitimer(signal.ITIMER_REAL, 0.0003 + n * 2e-6)
                        for_a_while(work, t)
                    finally:
                        armed = False
            except OfHandlerValue as error:
                surfaced += str(error) == "of the handler"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert surfaced > 60


def test_a_handler_that_interrupts_the_look_at_what_this_python_does_ends_no_reading_of_functions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patched, handled(OfHandler):
        patched.setattr(code, "_tried", [])
        patched.setattr(code, "_try", lambda: signal.raise_signal(signal.SIGUSR1))
        with pytest.raises(OfHandler):
            code.understood()
        assert code._tried == []


_SMALL_WRITES = """
import signal, sys, threading, time
import zlmdb

class Store(zlmdb.Schema):
    numbers: zlmdb.Table[int, int]

class OfHandler(Exception):
    pass

armed, kept, surfaced = False, None, 0

def handler(*args):
    if armed:
        raise OfHandler

signal.signal(signal.SIGALRM, handler)
sys.unraisablehook = lambda unraisable: None  # what comes into a finaliser is lost
db = zlmdb.open(sys.argv[1], Store, durability="none")
with db.write() as t:
    t.numbers.update({1: 0, 2: 0})
until, n = time.monotonic() + 1, 0
while time.monotonic() < until:
    n, armed = n + 1, False
    signal.setitimer(signal.ITIMER_REAL, 0.0001 + n * 7 % 1000 * 1e-6)
    try:
        armed = True
        for _ in range(100):
            with db.write(timeout=5) as t:
                t.numbers[1] = n
                t.numbers[2] = n
        armed = False  # it may come late, where nobody waits for it
    except OfHandler as error:
        armed, kept, surfaced = False, error, surfaced + 1  # with the frames
signal.setitimer(signal.ITIMER_REAL, 0)
with db.write(timeout=5) as t:
    assert t.numbers[1] == t.numbers[2]

def other():
    with db.write(timeout=5) as t:
        t.numbers[3] = surfaced

thread = threading.Thread(target=other)
thread.start()
thread.join()
assert db.auto.numbers[3] > 5
db.close()
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers that send signals")
def test_real_signals_leave_no_write_transaction_open(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _SMALL_WRITES, str(tmp_path / "db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


class Handler:
    def __call__(self, *args: Any) -> None:
        raise OfHandler

    def method(self, *args: Any) -> None:
        raise OfHandler


def plain(extra: object, *args: Any) -> None:
    raise OfHandler


@pytest.mark.parametrize(
    "handler", [Handler(), Handler().method, functools.partial(plain, None), lambda *args: plain(*args)],
    ids=["object", "method", "partial", "lambda"],
)  # fmt: skip
def test_a_handler_is_known_whatever_it_is(handler: Any) -> None:
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(OfHandler) as found:
            signal.raise_signal(signal.SIGUSR1)
        with pytest.raises(OfHandler):
            let_through(found.value)
    finally:
        signal.signal(signal.SIGUSR1, before)
    let_through(found.value)  # nobody handles the signal any more


def test_errors_of_others_are_left_to_be_explained() -> None:
    let_through(raised(ValueError("of the program")))
    let_through(ValueError("never raised"))


@pytest.mark.skipif(not COUNTS_REFERENCES, reason="checked where what is raised is the same at each run")
def test_a_codec_that_a_handler_interrupts_blames_no_value() -> None:
    @dataclass
    class Late:
        name: str

        def __post_init__(self) -> None:
            if self.name == "signal":
                signal.raise_signal(signal.SIGUSR1)

    class Lates(zlmdb.Schema):
        rows: zlmdb.Table[int, Late]

    with handled(OfHandlerValue), zlmdb.open(None, Lates) as db:
        late = Late("")
        late.name = "signal"
        with pytest.raises(OfHandlerValue), db.write() as t:  # noqa: PT012
            t.rows[1] = late
            t.rows[1]


@traces_instructions
@pytest.mark.skipif(sys.version_info < (3, 11), reason="a signal may come between a lock and its with statement there")
@pytest.mark.parametrize("read", [False, True], ids=["alone", "read"])
def test_an_interrupted_commit_in_memory_is_whole_or_not_at_all(read: bool) -> None:
    db = zlmdb.open(None, Store)
    with db.write() as t:
        t.numbers.update((n, n) for n in range(5))
    kept: list[BaseException] = []
    stored: set[bool] = set()
    at, sending = 0, Sending(1)
    sending.where = ()
    with handled(KeyboardInterrupt):
        while sending.where is not None:
            at += 1
            sending = Sending(at)
            with db.read() as t:
                before = dict(t.numbers)
            after = {**{key: value for key, value in before.items() if key != at}, 1: -at, at + 10: at}
            snapshot = db.read() if read else None
            try:
                with sending, db.write(timeout=5) as t:
                    t.numbers[1] = -at
                    t.numbers[at + 10] = at
                    t.numbers.pop(at, None)
            except KeyboardInterrupt as error:
                kept = [error]  # with the frames
            if snapshot is not None:
                with snapshot:
                    assert dict(snapshot.numbers) == before, sending.where
            with db.read() as t:
                found = dict(t.numbers)
            assert found in (before, after), sending.where
            stored.add(found == after)
            with db.write(timeout=5) as t:
                t.numbers[0] = at
    assert stored == {True, False}
    del kept[:]
    assert db.check().ok
    db.close()


def test_a_handler_of_a_package_whose_name_begins_as_that_of_zlmdb_is_one_of_the_program() -> None:
    space: dict[str, Any] = {}
    exec(compile("def handler(*args): raise OSError('of the handler')", f"{PACKAGE}_tools.py", "exec"), space)
    before = signal.signal(signal.SIGUSR1, space["handler"])
    try:
        with pytest.raises(OSError, match="of the handler") as caught:
            signal.raise_signal(signal.SIGUSR1)
        with pytest.raises(OSError, match="of the handler"):
            let_through(caught.value)
    finally:
        signal.signal(signal.SIGUSR1, before)
