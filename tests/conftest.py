"""What all tests share: databases of every engine and layout, how long Hypothesis searches, what pytest ignores."""

from __future__ import annotations

import gc
import logging
import os
import re
import sys
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Callable, Optional
from zlib import crc32

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings
from newcomers import blog, books, magazine, notebook, planner, shop, t  # noqa: F401 - fixtures

import zlmdb
from tests import toy_engine, waiters
from tests.combinations import COMBINATIONS
from tests.loud import sitecustomize
from tests.watchdog import Watchdog
from zlmdb import codegen

# Whole programs and type-checker samples, which tests run in processes of their own, and what wrote the golden files:
# pytest must not import them.
collect_ignore_glob = ["programs/*", "typing/*", "golden/*"]

# The mark of all tests of a file, where it is the first.
_OF_ALL_TESTS = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.(once|twice|interop)\b", re.MULTILINE)

# No exception passes unseen in processes that tests start, and in those that they fork.
_LOUD = Path(sitecustomize.__file__).parent
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_LOUD), os.environ.get("PYTHONPATH")]))
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=sitecustomize.install)


class _Unseen(logging.Handler):
    """Keeps what asyncio and the executors only log: exceptions that nobody fetched, and those of callbacks."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(self.format(record))


_log = _Unseen()
for _name in ("asyncio", "concurrent.futures"):
    logging.getLogger(_name).addHandler(_log)

# Nearly all that tests do is over before machine code pays. Without any, the tests take twice as long.
sitecustomize.compile_less(3)

# No deadline and no health check of speed: PyPy is slow until it is warm, which it is anew for each property, and
# machines of a CI are shared.
_few = 10 if sys.implementation.name == "pypy" else 15
_patient = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}
settings.register_profile("ci", max_examples=25, stateful_step_count=30, derandomize=True, **_patient)
settings.register_profile("brief", max_examples=_few, stateful_step_count=30, derandomize=True, **_patient)
settings.register_profile("thorough", max_examples=5000, stateful_step_count=100, **_patient)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part",
        metavar="K/N",
        default="1/1",
        help="only the Kth of N parts of the test files: on PyPy, whose collections look through all that tests "
        "before have left, all parts take half as long as the whole",
    )
    parser.addoption(
        "--of-each",
        metavar="N",
        type=int,
        help="of each test with more parameters, so many: all of them are tried on another interpreter",
    )
    parser.addoption(
        "--hangs-after",
        metavar="SECONDS",
        type=float,
        help="end the run where a test takes longer, and show where it is",
    )


def pytest_configure(config: pytest.Config) -> None:
    seconds = config.getoption("--hangs-after")
    if seconds is not None:
        config.pluginmanager.register(Watchdog(seconds))


def _of_another_part(path: Path, config: pytest.Config) -> bool:
    part, parts = map(int, config.getoption("--part").split("/"))
    is_file = path.suffix == ".py" and Path(__file__).parent in path.parents
    return is_file and crc32(path.name.encode()) % parts != part - 1


@cache
def _collects(path: Path) -> bool:
    return b"gc.collect" in path.read_bytes()


def _not_asked_for(path: Path, config: pytest.Config) -> bool:
    """Whether ``-m "not once and not twice"`` leaves out all tests of a file, by the mark at its beginning."""
    asked = config.option.markexpr
    if path.suffix != ".py" or " or " in asked or "(" in asked:
        return False
    mark = _OF_ALL_TESTS.search(path.read_text("utf-8"))
    return mark is not None and f"not {mark[1]}" in asked.split(" and ")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> Optional[bool]:
    """Do not import the files of other parts, nor those of which no test is asked for."""
    return True if _of_another_part(collection_path, config) or _not_asked_for(collection_path, config) else None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[Any], list[Any]]:
    """Nor look for examples in every class and function of the tests, which have none."""
    found = yield
    return [collector for collector in found if not isinstance(collector, DoctestModule)]


def _some_of_each(items: list[pytest.Item], most: int) -> list[pytest.Item]:
    """At most so many of each test: a mixture, whatever the order of its parameters, and the same one in each run."""
    tests = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        tests[item.nodeid.partition("[")[0]].append(item)
    chosen = {one for group in tests.values() for one in sorted(group, key=lambda one: crc32(one.name.encode()))[:most]}
    return [item for item in items if item in chosen]


@pytest.hookimpl(trylast=True)  # after those were left out that are not asked for
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Nor run them if they were asked for by name. Files whose tests collect garbage come first on PyPy.

    A collection looks through all that the tests before have left: ten times as much at the end as at the beginning.
    """
    items[:] = [item for item in items if not _of_another_part(item.path, config)]
    most = config.getoption("--of-each")
    if most is not None:
        every, items[:] = list(items), _some_of_each(items, most)
        config.hook.pytest_deselected(items=list(set(every).difference(items)))
    if sys.implementation.name == "pypy":
        items.sort(key=lambda item: not _collects(item.path))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A part may have none of the files that were asked for."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and session.config.getoption("--part") != "1/1":
        session.exitstatus = pytest.ExitCode.OK


def pytest_collection_finish() -> None:
    """What is imported and collected stays to the end: no later collection of garbage has to look through it."""
    _freeze()


@pytest.fixture(autouse=True)
def unseen() -> Iterator[list[str]]:
    _log.told.clear()
    waiters.unseen.clear()
    yield _log.told
    assert _log.told == []
    assert waiters.unseen == {}


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: Optional[pytest.Item]) -> None:
    """Nor through the reports and caches that the tests of a file leave: some tests collect hundreds of times."""
    if nextitem is not None and nextitem.path != item.path:
        _freeze()


def _freeze() -> None:
    if hasattr(gc, "freeze"):  # not on PyPy
        gc.collect()
        gc.freeze()


@pytest.fixture(params=COMBINATIONS)
def combo(request: pytest.FixtureRequest) -> str:
    """Each combination of engine and layout: ``"lmdb-tables"``, ..."""
    name: str = request.param
    return name


@pytest.fixture
def make_db(combo: str, tmp_path: Path) -> Iterator[Callable[..., zlmdb.Database[Any]]]:
    """Opens a database of the combination: ``make_db(schema, **options)``.

    With LMDB it is the same file in every call, so that a database closed and made again is reopened; so it is with
    the toy engine, which plays a server.
    """
    engine, layout = combo.split("-")
    path = {"lmdb": str(tmp_path / "db"), "memory": None, "toy": f"toy://{tmp_path}"}[engine]
    opened: list[zlmdb.Database[Any]] = []

    def make(schema: type[zlmdb.Schema], **options: Any) -> zlmdb.Database[Any]:
        options = {"layout": layout, "durability": "none", **options}
        db = zlmdb.open(path, schema, **options)
        opened.append(db)
        return db

    yield make
    with suppress(zlmdb.DatabaseInUse):  # a test that failed inside a transaction: its own error is the one to see
        for db in opened:
            db.close()
    toy_engine.SERVERS.pop(str(path), None)


@pytest.fixture
def check_indexes() -> Callable[..., None]:
    """Compares the entries of all indexes of a table with those computed anew from its records."""

    def check(table: Any) -> None:
        for storage, handle in table._indexes:
            place = storage.storage
            expected = {}
            for key, value in table.items():
                primary = table._storage.key.encode(key)
                for entry in storage.entries(value, primary, stored=True):
                    assert entry not in expected, f"two records under one entry of {place.name}"
                    expected[entry] = storage.entry_value(value, key, primary)
            cursor = table._cursor(handle)
            rows = cursor.iternext() if cursor.set_range(place.lower or b"\0") else ()
            actual = {bytes(key): bytes(data) for key, data in rows if bytes(key) < place.upper}
            assert actual == expected, place.name

    return check


@pytest.fixture(scope="module")
def at_once() -> Iterator[None]:
    """The first call of a method is that of the generated one: for files whose tests are about these."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codegen, "PATIENCE", 0)
        yield
