"""Cached plans of queries that no index answers: the same rows as without them, and nothing is planned again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Callable, Optional

import pytest

import zlmdb
from tests.answers import CODECS, STORED, answers
from zlmdb import Index, Table
from zlmdb.tables.executor import execution
from zlmdb.tables.executor.cachedscans import CachedScan

pytestmark = pytest.mark.twice  # plans do not depend on the version of Python


@dataclass
class Row:
    name: str
    number: int
    share: float = 0.5
    note: Optional[str] = None


def schema(codec: Any) -> Any:
    row: Any = codec[Row] if codec else Row

    class Rows(Table[int, row]):  # type: ignore[valid-type]
        by_note = Index[str]("note")

    class Some(zlmdb.Schema):
        rows: Rows
        empty: Table[int, row]  # type: ignore[valid-type]

    return Some


ROWS = {n: Row(f"n{n % 7}", n * 3 % 11, n / 4, None if n % 3 else f"x{n % 4}") for n in range(40)}


@pytest.fixture(params=STORED)
def db(request: Any) -> Iterator[Any]:
    codec, layout = request.param
    with zlmdb.open(None, schema(CODECS[codec]), layout=layout) as db:
        with db.write() as t:
            t.rows.update(ROWS)
        yield db


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each cached plan that was asked gave the rows."""
    return answers(monkeypatch, CachedScan, "all")


LEAST, NAME, KEY = 5, "n3", 20
WHERE: dict[str, Optional[Callable[..., bool]]] = {
    "all": None,
    "a number": lambda r: r.number > 5,
    "captured": lambda r: r.number > LEAST,
    "two": lambda r: r.name == NAME and r.share < 9,
    "none": lambda r: r.note is None,
    "or": lambda r: r.number == 3 or r.note == "x1",
    "with the key": lambda k, r: k % 3 == 1 and r.number != 2,
    "nothing fits": lambda r: r.number > 100,
}
GIVE: dict[str, Callable[..., Any]] = {
    "one": lambda r: r.name,
    "several": lambda r: (r.name, r.number, r.note),
    "made": lambda r: (r.name + "!", r.number * 2 if r.note is None else 0),
    "value": lambda r: (r, 1),
    "key": lambda k, r: (k, r.share),
    "captured": lambda r: (r.number, LEAST, NAME),
}


def asked(function: Callable[..., Any], key: int, row: Row) -> Any:
    return function(key, row) if function.__code__.co_argcount == 2 else function(row)


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("give", GIVE)
def test_rows_are_those_of_the_functions(db: Any, where: str, give: str, listed: list[bool]) -> None:
    matches, gives = WHERE[where], GIVE[give]
    pairs = [(k, r) for k, r in ROWS.items() if matches is None or asked(matches, k, r)]
    for _ in range(3):
        listed.clear()
        with db.read() as t:
            for lower, upper, backwards in ((None, None, False), (None, None, True), (10, 31, False), (10, 31, True)):
                some = t.rows.select(lower, upper, reverse=backwards)
                some = some if matches is None else some.where(matches)
                chosen = [(k, r) for k, r in pairs if lower is None or lower <= k < upper]
                rows = [asked(gives, k, r) for k, r in (reversed(chosen) if backwards else chosen)]
                assert some.fields(gives).all() == list(some.fields(gives)) == rows
                for limit, skip in ((0, 0), (3, 0), (3, 2), (100, 0), (2, 100), (100, 4)):
                    assert some.limit(limit, skip).fields(gives).all() == rows[skip : skip + limit]
                assert some.fields(gives).first() == (rows[0] if rows else None)
                assert some.fields(gives).last() == (rows[-1] if rows else None)
                assert some.fields(gives).count() == len(rows)
                assert bool(some.fields(gives)) is bool(rows)
            assert t.empty.fields(gives).all() == t.empty.fields(gives).all() == []
    assert sum(listed) > 20


def test_nothing_is_planned_again(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(t: Any, least: int) -> Any:
        few = t.rows.where(lambda r: r.number > least).limit(4)
        return t.rows.fields(lambda r: (r.name, r.number)).all(), few.fields(lambda k, r: (k, r.name)).all()

    with db.read() as t:
        for _ in range(3):
            ask(t, 5)

    def refuse(*arguments: Any, **named: Any) -> Any:
        raise AssertionError("a query was planned")

    monkeypatch.setattr(execution.Running, "__init__", refuse)
    with db.read() as t:
        assert ask(t, 8) == (
            [(r.name, r.number) for r in ROWS.values()],
            [(k, r.name) for k, r in ROWS.items() if r.number > 8][:4],
        )


def test_a_value_of_another_type_is_planned_for(db: Any) -> None:
    def ask(t: Any, note: Any) -> Any:
        found = t.rows.where(lambda r: r.note == note).fields(lambda k, r: k)
        return found.all(), str(found.explain()).split("\n")[0]

    with db.read() as t:
        for note in (None, None, None, "x1", "x1", "x2", None, "x1"):
            rows, read = ask(t, note)
            assert rows == [k for k, r in ROWS.items() if r.note == note]
            assert ("by_note" in read) is (type(note) is str)


def test_what_a_function_raises_is_raised(db: Any) -> None:
    with db.read() as t:
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                t.rows.fields(lambda r: 1 // (r.number - 4)).all()
            with pytest.raises(ZeroDivisionError):
                t.rows.where(lambda r: 1 // (r.number - 4) > 0).fields(lambda r: r.name).all()
            assert t.rows.where(lambda r: r.number != 4).fields(lambda r: 1 // (r.number - 4)).count() == 36


def test_a_broken_record_is_named(db: Any) -> None:
    def ask(t: Any) -> Any:
        few = t.rows.where(lambda r: r.number > 5).fields(lambda r: r.share)
        return t.rows.fields(lambda r: (r.name, r.number)).all(), few.all()

    for _ in range(3):
        with db.read() as t:
            ask(t)
    with db.write() as t:
        t.txn._engine_txn.put(t.rows._storage.encode_key(7), b"\xc1", db=t.rows._db)
    for _ in range(2):
        with db.read() as t, pytest.raises(zlmdb.DecodeError) as caught:
            ask(t)
        assert caught.value.key == 7


def test_a_transaction_that_has_ended_is_not_read(db: Any) -> None:
    for _ in range(3):
        with db.read() as t:
            rows = t.rows.fields(lambda r: r.name)
            assert len(rows.all()) == 40
    with pytest.raises(zlmdb.TransactionClosed):
        rows.all()


def test_what_was_written_before_is_read(db: Any) -> None:
    for n in range(4):
        with db.write() as t:
            t.rows[100 + n] = Row("new", n)
            assert t.rows.where(lambda r: r.name == "new").fields(lambda r: r.number).all() == [*range(n + 1)]
        with db.read() as t:
            assert t.rows.where(lambda r: r.name == "new").fields(lambda r: r.number).all() == [*range(n + 1)]
