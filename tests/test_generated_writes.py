"""Generated writes with what hangs on a table: several entries, carried values, a change feed, records that expire.

The general form is the measure: what it leaves, counts, records and raises, the generated functions do, too.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zlmdb
from zlmdb.feed import log
from zlmdb.store.access import NOBODY
from zlmdb.tables.compiled.oldrecords import WHOLE
from zlmdb.tables.recordwrites import RecordWrites
from zlmdb.tables.table import Table

from .interrupts import INTERRUPTS, interrupting, traces_instructions

pytestmark = pytest.mark.usefixtures("at_once")

NOW, LATER = 1_000_000.0, 2_000_000.0


@dataclass
class Row:
    a: Optional[str]
    b: Optional[int] = None
    tags: Optional[list[Optional[str]]] = field(default_factory=list)
    note: Optional[str] = None
    until: Optional[float] = None


class Plain(zlmdb.Table[int, Row], feed=True):
    """A feed and no index."""


class Tagged(zlmdb.Table[int, Row]):
    by_tag = zlmdb.Index[str]("tags", each=True)
    by_pair = zlmdb.Index[tuple[str, int]](
        lambda row: [(tag, row.b) for tag in row.tags or ()], version=1, each=True, key=tuple[str, int]
    )


class Carrying(zlmdb.Table[str, Row], feed=True):
    by_a = zlmdb.UniqueIndex[str]("a")


class All(zlmdb.Table[int, Row], feed=zlmdb.Feed(max_count=7), expires="until"):
    by_a = zlmdb.UniqueIndex[str]("a")
    by_tag = zlmdb.Index[str]("tags", each=True)
    by_b = zlmdb.Index[int]("b", carries=("note", "tags"))
    by_length = zlmdb.Index[int](lambda row: [len(tag) for tag in row.tags or () if tag], version=1, each=True)


KINDS: dict[str, Any] = {"a feed": Plain, "elements": Tagged, "text keys": Carrying, "all": All}


def open_both(cls: Any) -> Any:
    """Two tables of the class, ``fast`` and ``general``."""
    db = zlmdb.open(None, type("Both", (zlmdb.Schema,), {"__annotations__": {"fast": cls, "general": cls}}))
    db.clock = lambda: NOW
    return db


def stored(t: Any, name: str) -> list[Any]:
    """All that the engine has of a table, its indexes, and its feed without the times."""
    table, raw = t[name], t.txn._engine_txn
    found = [list(raw.cursor(handle).iternext()) for handle in (table._db, *(bound.handle for bound in table._indexes))]
    for follower in table._storage.followers:
        follower.aim(table)
        feed = follower.present.handle
        found.append([one._replace(time=0) for one in log.read(raw, feed, 0, 1000, 1 << 20)])
        found.append([(log.removed(raw, feed), log.last(raw, feed))])
    return found


ROWS = st.builds(
    Row,
    st.sampled_from(["one", "two", "", None, "x" * 600]),
    st.sampled_from([0, 1, None]),
    st.sampled_from([None, [], ["t"], ["t", "u", "t"], ["u", None], ["", "v" * 600], "text", [1]]),
    st.sampled_from([None, "", "note"]),
    st.sampled_from([None, LATER, LATER + 1, LATER, 1.0]),
)
STEPS = st.lists(
    st.tuples(st.sampled_from(["set", "set", "set", "del", "bulk", "save"]), st.integers(0, 3), ROWS), max_size=12
)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=max(8, settings.default.max_examples // 5))
@given(steps=STEPS)
def test_they_leave_what_the_general_form_leaves(kind: str, steps: list[tuple[str, int, Row]]) -> None:
    """And count the same, and raise the same."""
    key_of: Any = str if kind == "text keys" else int
    with open_both(KINDS[kind]) as db, db.write() as t:
        for verb, number, row in steps:
            told: list[Any] = []
            for name in ("fast", "general"):
                table, key = t[name], key_of(number)
                before, error = (t.txn._puts, t.txn._dels), ""
                if name == "general":
                    table._writer = NOBODY
                try:
                    if verb == "set":
                        table[key] = row
                    elif verb == "del":
                        del table[key]
                    elif verb == "bulk":
                        table.put_many([(key, row), (key_of(number + 1), row)])
                    else:
                        with t.txn.savepoint():
                            table._writer = table._writer if name == "fast" else NOBODY
                            table[key] = row
                            raise KeyError
                except (zlmdb.Error, KeyError) as refused:
                    error = repr(refused).replace("general", "fast")
                told.append((error, t.txn._puts - before[0], t.txn._dels - before[1]))
            assert told[0] == told[1]
            assert stored(t, "fast") == stored(t, "general")


GOOD = [Row("one", 1, ["t", "u"], "n", LATER), Row("uno", 1, ["u"], "m"), Row(None, None, None), Row("two", 2, ["t"])]


@pytest.fixture
def generally(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The uses of the general forms."""
    used: list[str] = []
    for cls, name in ((Table, "__setitem__"), (RecordWrites, "_write"), (RecordWrites, "_remove_alone")):
        monkeypatch.setattr(cls, name, lambda *args, name=name: used.append(name))
    return used


@pytest.mark.parametrize("kind", KINDS)
def test_they_need_no_general_form_in_the_ordinary_case(kind: str, generally: list[str]) -> None:
    key_of: Any = str if kind == "text keys" else int
    with open_both(KINDS[kind]) as db:
        for _ in range(2):
            with db.write() as t:
                for number, row in enumerate(GOOD):
                    t.fast[key_of(number)] = row
                for row in reversed(GOOD):
                    t.fast[key_of(9)] = Row(row.a and "nine" + row.a, row.b, row.tags, row.note)
                del t.fast[key_of(0)]
                assert t.fast._writer[0]._is_owned()
            with db.write() as t:
                for key in list(t.fast):
                    del t.fast[key]
            assert db.check().ok
    assert not generally


PARTS = tuple([str(Path(zlmdb.__file__).parent / part) for part in ("tables", "feed", "store")])


def calls_of(work: Any) -> int:
    """The calls of functions of tables, feeds and transactions while *work* runs: those of codecs do not count."""
    calls = 0

    def count(frame: Any, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename.startswith((*PARTS, "<zlmdb indexed"))

    before = sys.getprofile()
    sys.setprofile(count)
    work()
    sys.setprofile(before)
    return calls


@pytest.mark.skipif(
    sys.implementation.name != "cpython", reason="PyPy reports calls that it has inlined, and calls of its own"
)
@pytest.mark.parametrize(("kind", "most"), [("a feed", 4), ("text keys", 4), ("elements", 11), ("all", 12)])
def test_a_put_takes_few_calls(kind: str, most: int) -> None:
    """One of its own, and three more to record the change; elements that are tuples take more."""
    key_of: Any = str if kind == "text keys" else int
    with open_both(KINDS[kind]) as db, db.write() as t:
        table = t.fast
        for number, row in enumerate(GOOD):
            table[key_of(number)] = row

        def put() -> None:
            table[key_of(2)] = Row("three", 3, ["t", "v"], "note")

        for _ in range(WHOLE):  # they make the decoder of old records
            table[key_of(2)] = GOOD[2]
        assert calls_of(put) <= most


def test_what_has_expired_is_written_over_by_the_general_form() -> None:
    now = NOW
    with open_both(All) as db:
        db.clock = lambda: now
        with db.write() as t:
            t.fast[1] = Row("one", 1, ["t"], "n", NOW + 1)
        now = NOW + 2
        with db.write() as t:
            assert t.fast._writer is NOBODY
            t.fast[2] = Row("one", 2, ["t"], "n")
            assert t.fast._writer is not NOBODY  # nothing that has expired is left
            t.fast[3] = Row("three", 3, [], None, NOW)
            assert 3 not in t.fast
            assert t.fast._writer is NOBODY
            t.fast[3] = Row("three", 3)
            assert t.fast._writer is not NOBODY
            with suppress(KeyError), t.txn.savepoint():
                t.fast[4] = Row("four", 3, [], None, NOW)
                raise KeyError
            assert t.fast._writer is not NOBODY
            assert list(t.fast) == [2, 3]
        assert db.check().ok


@traces_instructions
@pytest.mark.parametrize("kind", ["a feed", "all"])
@pytest.mark.parametrize("verb", ["insert", "change", "delete"])
def test_an_interrupted_write_is_whole_or_not_committed(kind: str, verb: str) -> None:
    """Whatever instruction it comes in; the program goes on in the block and commits."""

    def write(table: Any, at: int) -> bool:
        with interrupting(at, lambda name: name.startswith((*PARTS, "<zlmdb indexed"))) as count:
            if verb == "insert":
                table[7] = Row("seven", 7, ["t", "new"], "n")
            elif verb == "change":
                table[1] = Row("changed", 7, ["u", "new"], "n")
            else:
                del table[1]
        return at <= count[0]

    at, more, refused = 1, True, 0
    with open_both(KINDS[kind]) as db:
        while more:
            with db.write() as t:
                t.fast.update(enumerate(GOOD))
                with suppress(KeyError):
                    del t.fast[7]
            try:
                with db.write() as t, suppress(*INTERRUPTS):
                    t.fast[2] = GOOD[2]
                    more = write(t.fast, at)
            except zlmdb.TransactionPoisoned:
                refused += 1
            assert db.check().ok
            at += 7
    assert refused
