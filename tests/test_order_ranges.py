# ruff: noqa: B023  # queries are asked within the loop that they capture a variable of
"""What is read of an index in its order: from a bound on, from its end, and only where there are values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Callable, Optional

import pytest

import zlmdb
from tests.pagewalk import rows_of_pages
from zlmdb import desc
from zlmdb.tables.executor.accesspaths import AccessPath
from zlmdb.tables.executor.execution import Running

pytestmark = pytest.mark.twice  # plans do not depend on the version of Python


@dataclass
class Job:
    queue: str
    year: int
    name: str
    open: bool
    due: Optional[int] = None
    note: Optional[str] = None


class Jobs(zlmdb.Table[int, Job]):
    by_queue = zlmdb.Index[str]("queue")
    by_year = zlmdb.Index[int]("year")
    by_due = zlmdb.Index[int]("due")
    by_name_year = zlmdb.Index[tuple[str, int]]("name", "year")
    by_name_due = zlmdb.Index[tuple[str, int]]("name", "due")
    by_note = zlmdb.Index[str]("note")
    unfinished = zlmdb.Index[int]("year", where=lambda j: j.open)


class Texts(zlmdb.Table[str, Job]):
    by_queue = zlmdb.Index[str]("queue")
    by_year = zlmdb.Index[int]("year")
    by_due = zlmdb.Index[int]("due")
    unfinished = zlmdb.Index[int]("year", where=lambda j: j.open)


class Store(zlmdb.Schema):
    jobs: Jobs
    texts: Texts


COUNT = 300


@pytest.fixture(scope="module", params=["tables", pytest.param("classic", marks=pytest.mark.once)])
def db(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    jobs = [
        Job(f"q{n % 3}", n * 7 % 50, f"name {n % 90}", n % 3 == 0, n * 11 % 70 if n % 2 else None)
        for n in range(COUNT)
    ]  # fmt: skip
    for job in jobs[::40]:
        job.note = "x"
    with zlmdb.open(tmp_path_factory.mktemp("ranges") / "db", Store, layout=request.param) as opened:
        with opened.write() as t:
            t.jobs.put_many(list(enumerate(jobs)))
            t.texts.put_many([(f"{n:04}", job) for n, job in enumerate(jobs)])
        yield opened


Rows = list[tuple[Any, Job]]
ORDERS: dict[str, tuple[Callable[[Any, int], Any], Callable[[Rows, int], Rows], str]] = {
    "the last before a bound": (
        lambda t, y: t.where(lambda j: j.year < y).order_by(lambda j: desc(j.year)),
        lambda rows, y: sorted([row for row in rows if row[1].year < y], key=lambda row: -row[1].year),
        "by_year",
    ),
    "the last before a bound, all reversed": (
        lambda t, y: t.where(lambda j: j.year <= y).order_by(lambda j: j.year, reverse=True),
        lambda rows, y: sorted([row for row in rows if row[1].year <= y], key=lambda row: row[1].year)[::-1],
        "by_year",
    ),
    "the first behind a bound": (
        lambda t, y: t.where(lambda j: j.year > y).order_by(lambda j: j.year),
        lambda rows, y: sorted([row for row in rows if row[1].year > y], key=lambda row: row[1].year),
        "by_year",
    ),
    "between bounds": (
        lambda t, y: t.where(lambda j: 5 <= j.year < y).order_by(lambda j: -j.year),
        lambda rows, y: sorted([row for row in rows if 5 <= row[1].year < y], key=lambda row: -row[1].year),
        "by_year",
    ),
    "what may be None": (
        lambda t, y: t.where(lambda j: j.due is not None).order_by(lambda j: j.due or 0).order_by(lambda j: j.due),
        lambda rows, y: sorted([row for row in rows if row[1].due is not None], key=lambda row: row[1].due or 0),
        "by_due",
    ),
    "what may be None, backwards behind a bound": (
        lambda t, y: t.where(lambda j: j.due is not None and j.due > y).order_by(lambda j: desc(j.due)),
        lambda rows, y: sorted([row for row in rows if (row[1].due or -1) > y], key=lambda row: -(row[1].due or 0)),
        "by_due",
    ),
    "a partial index": (
        lambda t, y: t.where(lambda j: j.open and j.year < y).order_by(lambda j: desc(j.year)),
        lambda rows, y: sorted([row for row in rows if row[1].open and row[1].year < y], key=lambda row: -row[1].year),
        "unfinished",
    ),
}  # fmt: skip


@pytest.mark.twice
@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("of", ["jobs", "texts"])
def test_an_index_is_read_from_a_bound_on_for_the_first_few_in_its_order(db: Any, name: str, of: str) -> None:
    ask, plain, index = ORDERS[name]
    for begin in (db.read, db.write):
        with begin() as t:
            rows = list(getattr(t, of).items())
            for y in (30, 0, 70):
                found, expected = ask(getattr(t, of), y), plain(rows, y)
                assert found.limit(7).all() == expected[:7]
                assert found.limit(7, 3).all() == expected[3:10]
                assert found.all() == expected
                assert found.first() == (expected[0] if expected else None)
                assert found.last() == (expected[-1] if expected else None)
                assert found.limit(7).explain().indexes == (index,)
                assert rows_of_pages(found, 40) == expected
            t.txn.abort()


def test_an_order_begins_at_its_bound_and_not_at_the_end_of_the_index(db: Any) -> None:
    with db.read() as t:
        found = t.jobs.where(lambda j: j.year >= 45).order_by(lambda j: j.year).limit(3).explain()
        assert "index by_year: (j.year >= 45)" in str(found)
        found = t.jobs.where(lambda j: j.name == "name 1" and j.year < 30).order_by(lambda j: desc(j.year)).limit(3)
        assert found.explain().ordered
        assert found.explain().indexes == ("by_name_year",)


def test_a_value_that_is_None_another_time_leaves_the_index_alone(db: Any) -> None:
    with db.read() as t:
        for due in (3, None, 5, None):
            found = t.jobs.where(lambda j: j.name > "name 7" and j.due == due)
            expected = [(key, job) for key, job in t.jobs.items() if job.name > "name 7" and job.due == due]
            assert found.all() == expected
            assert (
                found.order_by(lambda j: (j.year, j.name)).limit(5).all()
                == sorted(expected, key=lambda row: (row[1].year, row[1].name))[:5]
            )


def test_few_records_with_a_value_are_found_by_its_index(db: Any) -> None:
    with db.read() as t:
        expected = [(key, job) for key, job in t.jobs.items() if job.note is not None]
        for _ in range(3):
            found = t.jobs.where(lambda j: j.note is not None)
            assert found.all() == expected
            assert found.count() == len(expected)
            assert found.explain().indexes == ("by_note",)
            assert t.jobs.where(lambda j: j.due is not None).count() == COUNT // 2


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    read: list[int] = []
    general = AccessPath.ends

    def counted(path: AccessPath, selection: Any, most: int) -> Any:
        found = general(path, selection, most)
        read.append(-1 if found is None else len(found))
        return found

    monkeypatch.setattr(AccessPath, "ends", counted)
    return read


@pytest.fixture
def general(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    asked: list[Any] = []
    begin = Running.__init__

    def noted(running: Running, selection: Any, **given: Any) -> None:
        asked.append(selection)
        begin(running, selection, **given)

    monkeypatch.setattr(Running, "__init__", noted)
    return asked


def test_the_last_and_the_pages_of_one_key_read_the_entries_that_they_need(
    db: Any, ends: list[int], general: list[Any]
) -> None:
    for of in ("jobs", "texts"):
        with db.read() as t:
            table = getattr(t, of)
            rows = [row for row in table.items() if row[1].queue == "q1"]

            def ask(table: Any, queue: str) -> Any:
                return table.where(lambda j: j.queue == queue)

            def name_of(job: Job) -> str:
                return job.name

            for _ in range(3):
                ask(table, "q1").first(), ask(table, "q1").keys().first(), ask(table, "q1").fields(name_of).first()
                ask(table, "q1").page(2)
            general.clear()
            ends.clear()
            assert ask(table, "q1").last() == rows[-1]
            assert ask(table, "q1").fields(name_of).last() == rows[-1][1].name
            assert ends == [1, 1]
            page = ask(table, "q1").page(5)
            assert page.rows == rows[:5]
            if of == "jobs":  # entries end with keys of fixed width
                assert ask(table, "q1").page(5, page.next).rows == rows[5:10]
                assert rows_of_pages(ask(table, "q1"), 5, most=3) == rows[:15]
                assert table.select(rows[3][0], rows[9][0]).where(lambda j: j.queue == "q1").limit(9).all() == rows[3:9]
                backwards = table.select(rows[3][0], rows[9][0], reverse=True).where(lambda j: j.queue == "q1")
                assert backwards.limit(4).all() == rows[3:9][::-1][:4]
                assert max(ends) <= 64


def test_the_first_of_what_is_common_counts_no_entries(db: Any, general: list[Any]) -> None:
    with db.read() as t:
        for year in (5, 6, 7, 8):
            general.clear()
            found = t.jobs.where(lambda j: j.year > year)
            expected = [row for row in t.jobs.items() if row[1].year > year]
            assert found.first() == expected[0]
            assert bool(found)
            assert found.limit(3, 1).all() == expected[1:4]
            assert found.keys().first() == expected[0][0]
        assert not general


def test_extremes_within_bounds_come_from_an_index(db: Any, general: list[Any]) -> None:
    with db.read() as t:
        jobs = list(t.jobs.values())
        for bound in (20, 0, 60):
            years = [job.year for job in jobs if job.year < bound]
            dues = [job.due for job in jobs if job.due is not None and job.due >= bound]
            unfinished = [job.year for job in jobs if job.open and job.year < bound]
            for _ in range(2):
                general.clear()
                before = t.jobs.where(lambda j: j.year < bound).fields(lambda j: j.year)
                behind = t.jobs.where(lambda j: j.due is not None and j.due >= bound).fields(lambda j: j.due)
                partial = t.jobs.where(lambda j: j.open and j.year < bound).fields(lambda j: j.year)
                assert (before.min(), before.max()) == (min(years, default=None), max(years, default=None))
                assert (behind.min(), behind.max()) == (min(dues, default=None), max(dues, default=None))
                assert (partial.min(), partial.max()) == (min(unfinished, default=None), max(unfinished, default=None))
        assert not general


def test_an_order_is_not_read_from_an_index_if_few_of_its_records_fit() -> None:
    """All records are read faster then, as they are without the index."""
    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            t.jobs.update((n, Job("q", n * 7 % 3001, f"name {n % 2}", n % 2 == 0, note=str(n))) for n in range(3000))
        with db.read() as t:
            records = list(t.jobs.items())
            for note in ("77", "none"):
                few = t.jobs.where(lambda j: j.note is not None and j.note + "" == note).order_by(lambda j: j.year)
                expected = sorted([one for one in records if one[1].note == note], key=lambda one: one[1].year)
                assert few.all() == list(few) == few.limit(3).all() == expected
                assert few.limit(3).explain().indexes == few.explain().indexes == ()
                assert any(["are read faster" in one for one in few.limit(3).explain().rejected])
            many = t.jobs.where(lambda j: j.open).order_by(lambda j: j.year)
            expected = sorted([one for one in records if one[1].open], key=lambda one: one[1].year)
            assert many.all() == expected
            assert many.limit(5).all() == expected[:5]
            assert many.limit(5).explain().indexes


def test_an_index_gives_the_order_of_what_a_field_that_may_be_none_is_asked_to_equal() -> None:
    class Queued(Jobs, name="jobs"):
        by_note_year = zlmdb.Index[tuple[str, int]]("note", "year")
        by_note_due = zlmdb.Index[tuple[str, int]]("note", "due")

    class Other(zlmdb.Schema):
        jobs: Queued

    with zlmdb.open(None, Other) as other:
        with other.write() as t:
            for n in range(COUNT):
                due = n % 5 or None
                t.jobs[n] = Job("q", n * 7 % 50, "", True, due, (None, "a", "b", "c", "d")[n % 5 if n % 3 else 0])
        with other.read() as t:
            jobs = list(t.jobs.items())
            for note in ("a", None, "b", "nothing", None, "c"):
                for order in (lambda j: j.year, lambda j: desc(j.year)):
                    found = t.jobs.where(lambda j: j.note == note).order_by(order)
                    expected = sorted([one for one in jobs if one[1].note == note], key=lambda one: order(one[1]))
                    assert (found.limit(7).all(), found.count()) == (expected[:7], len(expected))
                    if note is not None:
                        assert "from the index" in str(found.limit(3).explain())
            lacking = t.jobs.where(lambda j: j.note == "a").order_by(lambda j: j.due or 0)
            assert lacking.count() == sum(job.note == "a" for _, job in jobs)
