"""Partial indexes: which records they have, what the file says of it, and what implies their condition."""

from __future__ import annotations

import enum
import itertools
import math
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, Optional
from unicodedata import normalize
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zlmdb
from zlmdb.query.canonical import said
from zlmdb.query.following import Following
from zlmdb.query.implied import implied
from zlmdb.query.terms import Asking, conjuncts
from zlmdb.tables.executor.execution import Running


class State(enum.Enum):
    OPEN = "open"
    DONE = "done"


@dataclass
class Task:
    name: str
    state: State = State.OPEN
    due: Optional[int] = None
    size: int = 0
    weight: float = 0.0
    tags: list[str] = field(default_factory=list)
    gone: bool = False


TASKS = Following(Task)
LIMIT = 3
SETTINGS = {"limit": 3}


def askings(condition: Callable[..., Any]) -> list[Asking]:
    followed = TASKS.condition(condition)
    return [Asking(node, followed.parameters, keyed=False) for node in conjuncts(followed.node)]


two = 2
IMPLIED: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = [
    (lambda t: t.state is State.OPEN, lambda task: task.state is State.OPEN),
    (lambda t: t.state == State.OPEN and t.size > 1, lambda t: t.state == State.OPEN),
    (lambda t: t.state == State.OPEN, lambda t: t.state in (State.OPEN, State.DONE)),
    (lambda t: t.size == two, lambda t: (t.size > 1 and t.size != 1) or t.size < 5),
    (lambda t: t.size == 2, lambda t: t.size == two),
    (lambda t: t.size in (1, 2), lambda t: 0 < t.size <= 2),
    (lambda t: t.size < 2, lambda t: t.size <= 2),
    (lambda t: t.size < 2.5, lambda t: t.size < 3),
    (lambda t: 5 < t.size < 9, lambda t: t.size >= 5),
    (lambda t: t.name.startswith("abc"), lambda t: t.name.startswith("ab")),
    (lambda t: t.name == "abc", lambda t: t.name.startswith("ab")),
    (lambda t: t.due is not None and t.due > 1, lambda t: t.due is not None),
    (lambda t: t.due == 2, lambda t: t.due is not None),
    (lambda t: not t.gone, lambda t: not t.gone),
    (lambda t: "a" in t.tags and len(t.tags) > 2, lambda t: len(t.tags) > 2),
    (lambda t: t.size == 1, lambda t: t.size == 1 or t.name == "x"),
    (lambda t: t.size in {3, 1, 2}, lambda t: t.size in {1, 2, 3}),
]
NOT_IMPLIED: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = [
    (lambda t: t.size <= 2, lambda t: t.size < 2),
    (lambda t: t.size == 2, lambda t: t.weight == 2),
    (lambda t: t.size > 2, lambda t: t.size < 2),
    (lambda t: t.size in (1, 2), lambda t: t.size in (1, 3)),
    (lambda t: t.size == 1 or t.name == "x", lambda t: t.size == 1),
    (lambda t: t.due in (None, 2), lambda t: t.due is not None),
    (lambda t: t.name.startswith("a"), lambda t: t.name.startswith("ab")),
    (lambda t: t.name > "a", lambda t: t.name.startswith("a")),
    (lambda t: t.state == State.OPEN, lambda t: t.state == State.DONE),
    (lambda t: not t.gone, lambda t: t.gone),
    (lambda t: t.weight < float("nan"), lambda t: t.weight < 1.0),
    (lambda t: any(tag == "a" for tag in t.tags), lambda t: "a" in t.tags),
]


@pytest.mark.parametrize(("one", "other"), IMPLIED, ids=itertools.count())
def test_a_condition_implies(one: Callable[[Any], Any], other: Callable[[Any], Any]) -> None:
    assert implied(askings(one), askings(other))


@pytest.mark.parametrize(("one", "other"), NOT_IMPLIED, ids=itertools.count())
def test_a_condition_does_not_imply(one: Callable[[Any], Any], other: Callable[[Any], Any]) -> None:
    assert not implied(askings(one), askings(other))


NUMBERS = st.sampled_from([0, 1, 2, 1.5, True])
MANY = st.lists(st.integers(0, 3), max_size=3).map(tuple)
MAKE: list[Callable[[Any, Any], Callable[[Any], Any]]] = [
    lambda n, m: lambda t: t.size == n,
    lambda n, m: lambda t: t.size < n,
    lambda n, m: lambda t: t.size <= n,
    lambda n, m: lambda t: t.size > n,
    lambda n, m: lambda t: t.size >= n,
    lambda n, m: lambda t: t.size in m,
    lambda n, m: lambda t: t.size not in m,
    lambda n, m: lambda t: t.size > n or t.size in m,
    lambda n, m: lambda t: t.size > n and t.size != 2,
    lambda n, m: lambda t: t.due is not None and t.due < n,
    lambda n, m: lambda t: t.due in m,
]
SOME = st.builds(lambda make, n, m: make(n, m), st.sampled_from(MAKE), NUMBERS, MANY)
RECORDS = [Task("", size=size, due=due) for size in range(4) for due in (None, *range(4))]


@given(st.lists(SOME, min_size=1, max_size=3), SOME)
def test_what_is_implied_is_true(given_conditions: list[Any], wanted: Any) -> None:
    try:
        known = [asking for one in given_conditions for asking in askings(one)]
        asked = askings(wanted)
    except TypeError:  # a bool is no number for a field of the type int
        return
    if implied(known, asked):
        for record in RECORDS:
            if all(one(record) for one in given_conditions):
                assert wanted(record)


# -- what the file records ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (lambda b: b.size > LIMIT, "(record.size > 3)"),
        (lambda xyz: not xyz.gone and xyz.name == "a" * 300, f"((not record.gone) and (record.name == '{'a' * 300}'))"),
        (lambda t: t.state in {State.OPEN}, "(record.state == State.OPEN)"),
        (lambda t: t.name in {"c", "a", "b"}, "(record.name in {'a', 'b', 'c'})"),
        (lambda t: len(t.tags) > 1, "(len(record.tags) > 1)"),
        (lambda t: any(tag == "x" for tag in t.tags), "any((x0 == 'x') for x0 in record.tags)"),
        (lambda t: t.due is not None, "(record.due is not None)"),
        (lambda t: normalize("NFC", t.name) > "", "(unicodedata.normalize('NFC', record.name) > '')"),
        (lambda t: math.floor(t.weight) == 3, "(math.floor(record.weight) == 3)"),
    ],
)
def test_the_file_has_the_whole_condition(condition: Callable[..., Any], text: str) -> None:
    followed = TASKS.condition(condition)
    assert said(followed.node, followed.parameters) == text


def opened(path: Any, *indexes: Any, **options: Any) -> Any:
    names = {f"by{number}": index for number, index in enumerate(indexes)}
    table: Any = type(zlmdb.Table)("Tasks", (zlmdb.Table,), {"__orig_bases__": (zlmdb.Table[int, Task],), **names})
    schema: Any = type(zlmdb.Schema)("Store", (zlmdb.Schema,), {"__annotations__": {"tasks": table}})
    return zlmdb.open(path, schema, **options)


def definition(path: Any) -> Any:
    from zlmdb.schema.contents import tables

    db = zlmdb.open(path, zlmdb.Schema)
    found = tables(db._open_store)["tasks"].indexes["by0"]
    db.close()
    return found


def test_the_definition_is_the_condition_and_a_change_builds_the_index_again(tmp_path: Any) -> None:
    path = str(tmp_path / "db")
    db = opened(path, zlmdb.Index[int]("size", where=lambda t: t.state is State.OPEN))
    with db.write() as t:
        t.tasks.put_many([(n, Task("", State.OPEN if n % 2 else State.DONE, size=n)) for n in range(10)])
        assert t.tasks.by0.select().count() == 5
    db.close()
    assert definition(path) == {
        "unique": False, "key": "int", "fields": ["size"], "where": "(record.state == State.OPEN)"
    }  # fmt: skip
    db = opened(path, zlmdb.Index[int]("size", where=lambda other: other.state == State.OPEN))  # the same
    with db.read() as t:
        assert t.tasks.by0.select().count() == 5
    db.close()
    db = opened(path, zlmdb.Index[int]("size", where=lambda t: t.state is State.OPEN and t.size > 6))
    with db.read() as t:
        assert t.tasks.by0.select().keys().all() == [7, 9]
    assert db.check().ok
    db.close()
    db = opened(path, zlmdb.Index[int]("size"))
    with db.read() as t:
        assert t.tasks.by0.select().count() == 10
    db.close()


def test_a_captured_value_is_the_one_at_the_declaration(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 3
    db = opened(
        None,
        zlmdb.Index[int]("size", where=lambda t: t.size > limit),
        zlmdb.Index[int]("size", where=lambda t: t.size > LIMIT),
    )
    limit = 100
    monkeypatch.setitem(globals(), "LIMIT", 100)
    with db.write() as t:
        t.tasks[1] = Task("", size=5)
        assert [t.tasks.by0[5].count(), t.tasks.by1[5].count()] == [1, 1]
    db.close()
    assert limit == LIMIT


def by_hand(task: Task) -> bool:
    for tag in task.tags:
        if tag == "x":
            return True
        if tag == "y":
            break
    return False


@pytest.mark.parametrize(
    "where",
    [
        by_hand,
        lambda t: by_hand(t) and t.size > 1,
        lambda t: t.size > SETTINGS["limit"],
        lambda t: t.name in [*SETTINGS],
    ],
)
def test_what_cannot_be_read_completely_needs_a_version(tmp_path: Any, where: Any) -> None:
    with pytest.raises(TypeError, match=r"index 'by0': where= cannot be read completely \(.*version=1"):
        opened(None, zlmdb.Index[int]("size", where=where))
    path = str(tmp_path / "db")
    opened(path, zlmdb.Index[int]("size", where=where, version=1)).close()
    assert definition(path)["version"] == 1
    opened(path, zlmdb.Index[int]("size", where=where, version=2)).close()
    assert definition(path)["version"] == 2


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (lambda t: t.nane == "x", "no field 'nane'"),
        (lambda t: t.due > 3, "may be None"),
        (lambda k, t: t.size > k, "function of the value"),
        (lambda t: t.size == "x", "is of type int"),
    ],
)
def test_a_mistake_in_the_condition_is_reported(where: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        opened(None, zlmdb.Index[int]("size", where=where))


def test_it_uses_no_table_of_zlmdb_26() -> None:
    with pytest.raises(TypeError, match="takes no where"):
        zlmdb.Index[int]("size", where=lambda t: t.size > 1, table="6f0a3b0e-5f3c-5d0c-9a58-7a6c6d646200")


# -- writing -----------------------------------------------------------------------------------------------------------


def test_a_unique_index_enforces_its_records_only() -> None:
    db = opened(None, zlmdb.UniqueIndex[str]("name", where=lambda t: not t.gone))
    with db.write() as t:
        t.tasks[1] = Task("a")
        t.tasks[2] = Task("a", gone=True)
        with pytest.raises(zlmdb.DuplicateKey):
            t.tasks[3] = Task("a")
        with pytest.raises(zlmdb.DuplicateKey):
            t.tasks[2] = Task("a")
        t.tasks[1] = replace(t.tasks[1], gone=True)
        t.tasks[2] = Task("a")
        assert t.tasks.by0.key("a") == 2
        assert t.tasks.where(lambda t: t.name == "a" and not t.gone).explain().indexes == ("by0",)
        assert t.tasks.where(lambda t: t.name == "a").keys().all() == [1, 2]
    assert db.check().ok
    db.close()


def test_whether_a_plan_fits_depends_on_the_captured_values() -> None:
    db = opened(None, zlmdb.Index[int]("size", where=lambda t: t.size > 2))
    with db.write() as t:
        t.tasks.put_many([(n, Task("", size=n)) for n in range(100)])
    with db.read() as t:
        for least in (90, 1, 95, 0, 93):

            def within(task: Task, least: int = least) -> bool:
                return least < task.size < least + 9

            found = t.tasks.where(within)
            assert found.keys().all() == [n for n in range(100) if least < n < least + 9]
            assert found.explain().indexes == (("by0",) if least >= 2 else ())
    db.close()


@dataclass
class Made:
    name: str
    big: bool = False

    def __post_init__(self) -> None:
        self.big = len(self.name) > 3


class MadeOnes(zlmdb.Table[int, Made]):
    by_name = zlmdb.Index[str]("name", where=lambda made: made.big)


class Things(zlmdb.Schema):
    made: MadeOnes


def test_the_condition_is_asked_of_the_record_as_it_is_read() -> None:
    with zlmdb.open(None, Things) as db:
        with db.write() as t:
            made = Made("long name")
            made.big = False
            t.made[1] = made
            assert t.made[1].big
            assert t.made.by_name["long name"].count() == 1
        assert db.check().ok


def test_only_a_condition_on_plain_fields_spares_reading_the_record() -> None:
    from zlmdb.schema.declaration import declaration

    class Tasks(zlmdb.Table[int, Task]):
        plain = zlmdb.Index[int]("size", where=lambda t: t.name > "a" and t.state is State.OPEN)
        more = zlmdb.Index[int]("size", where=lambda t: "a" in t.tags)
        called = zlmdb.Index[int]("size", where=by_hand, version=1)

    assert [form.as_stored for form in declaration(Tasks, "tasks").indexes.values()] == [False, True, True]


def small(least: int, name: str) -> Callable[[Task], bool]:
    return lambda t: t.size > least and t.name == name


def some(low: float, high: int, state: Any) -> Callable[[Task], bool]:
    return lambda t: low <= t.size < high and t.state is state


def either(one: int, other: int) -> Callable[[Task], bool]:
    return lambda t: t.size == one or t.size == other


def weighed(weight: float, due: int) -> Callable[[Task], bool]:
    return lambda t: t.weight == weight and t.due == due


def without(due: int) -> Callable[[Task], bool]:
    return lambda t: not t.gone and t.due == due


SIZES = [-1, 0, 2, 3, 50, 97, 100]
WEIGHTS = [0.0, -0.0, 1.0, 1, True, math.nan]
QUERIES: list[tuple[Any, list[list[Any]]]] = [
    (small, [SIZES, ["n1", "n2", "none"]]),
    (some, [[0, 2.0, 2.5, 3, 90], [3, 5, 40, 99], [State.OPEN, State.DONE]]),
    (either, [SIZES, SIZES]),
    (weighed, [WEIGHTS, [0, 3]]),
    (without, [[0, 3, 7]]),
]


@pytest.mark.twice  # how what was read is answered does not depend on the version of Python
@pytest.mark.parametrize(("make", "values"), QUERIES)
def test_known_queries_follow_what_the_captured_values_allow(make: Any, values: Any) -> None:
    db = opened(
        None, zlmdb.Index[int]("size", where=lambda t: t.size > 2), zlmdb.Index[int]("due", where=lambda t: not t.gone),
        zlmdb.Index[str]("name", where=lambda t: t.size > 60), zlmdb.Index[int]("due", where=lambda t: t.weight == 0.0),
        zlmdb.Index[int]("size", where=lambda t: t.state is State.OPEN), zlmdb.Index[str]("name"),
    )  # fmt: skip
    rows = {
        n: Task(f"n{n % 5}", State.DONE if n % 3 else State.OPEN, n % 8 or None, n, WEIGHTS[n % 3], [], n % 2 == 0)
        for n in range(100)
    }
    with db.write() as t:
        t.tasks.put_many(rows.items())
    with db.read() as t:
        captured = [*itertools.product(*values)]
        for chosen in [*captured, *reversed(captured)]:
            matches = make(*chosen)
            found = t.tasks.where(matches)
            assert found.keys().all() == [key for key, row in rows.items() if matches(row)], chosen
            assert found.order_by(lambda t: (t.name, t.size)).limit(3).fields(lambda t: t.size).all() == [
                row.size for row in sorted(filter(matches, rows.values()), key=lambda row: (row.name, row.size))[:3]
            ], chosen
            assert found.values().first() == next(filter(matches, rows.values()), None), chosen
    db.close()


def test_a_known_query_by_a_partial_index_is_not_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    db = opened(None, zlmdb.Index[int]("size", where=lambda t: t.size > 2), zlmdb.UniqueIndex[str]("name"))
    with db.write() as t:
        t.tasks.put_many([(n, Task(f"n{n}", size=n)) for n in range(100)])
    planned: list[Running] = []
    choice = Running.choice
    monkeypatch.setattr(Running, "choice", lambda running, **more: planned.append(running) or choice(running, **more))
    with db.read() as t:
        for n in range(10, 60):
            if n == 20:
                planned.clear()
            assert [task.size for task in t.tasks.where(lambda t, n=n: t.size == n).values().all()] == [n]
            named = t.tasks.where(lambda t, name=f"n{n}": t.name == name and t.size > 5)
            assert named.fields(lambda t: t.size).all() == [n]
        assert planned == []
    db.close()


def test_explain_says_what_a_partial_index_would_need() -> None:
    class Tasks(zlmdb.Table[int, Task]):
        by_size = zlmdb.Index[int]("size", where=lambda task: not task.gone and task.state is State.DONE)
        by_due = zlmdb.Index[int]("due", where=lambda task: not task.gone)

    class Store(zlmdb.Schema):
        tasks: Tasks

    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            t.tasks.put_many([(n, Task("x", size=n, due=n)) for n in range(50)])
        with db.read() as t:
            asked = "(not task.gone) and (task.state == State.DONE)"
            why = f"it has only records with {asked}, which the condition does not imply"
            few = t.tasks.where(lambda task: task.size < 3 and not task.gone)
            assert few.explain().rejected == (f"index by_size: (task.size < 3): {why}",)
            assert (
                t.tasks.where(lambda task: task.size < 3 and task.due == 5 and not task.gone).explain().rejected == ()
            )
            assert t.tasks.where(lambda task: task.name == "x").explain().rejected == ()
            assert t.tasks.by_due.select().where(lambda task: task.size < 3).explain().rejected == ()


@dataclass
class Event:
    at: datetime
    number: int


def test_times_that_come_twice_do_not_imply_by_what_the_clock_shows() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    since, earlier = (datetime(2026, 10, 25, 2, n, tzinfo=berlin, fold=f) for n, f in ((30, 1), (45, 0)))
    assert since < earlier
    assert since.astimezone(timezone.utc) > earlier.astimezone(timezone.utc)

    class Unversioned(zlmdb.Table[int, Event]):
        late = zlmdb.Index[int]("number", where=lambda e: e.at >= since)

    class Refused(zlmdb.Schema):
        events: Unversioned

    with pytest.raises(TypeError, match="write it in UTC"):
        zlmdb.open(None, Refused)

    class Events(zlmdb.Table[int, Event]):
        late = zlmdb.Index[int]("number", where=lambda e: e.at >= since, version=1)

    class Log(zlmdb.Schema):
        events: Events

    with zlmdb.open(None, Log) as db:
        with db.write() as t:
            for n in range(500):
                t.events[n] = Event(datetime(2026, 10, 24, 20, tzinfo=timezone.utc) + timedelta(minutes=n), n)
        with db.read() as t:
            found = t.events.where(lambda e: e.at >= earlier and e.number < 320)
            assert found.keys().all() == list(range(285, 320))
