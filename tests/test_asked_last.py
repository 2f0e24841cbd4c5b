"""After ``limit``, functions of ``fields`` and ``group_by`` are asked of the records that come out, of no others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import zlmdb
from zlmdb import desc

pytestmark = pytest.mark.twice  # how a query that was read is answered


@dataclass
class Row:
    size: int
    name: str


class Rows(zlmdb.Table[int, Row]):
    by_name = zlmdb.Index[str]("name")


class Store(zlmdb.Schema):
    rows: Rows


QUERIES: dict[str, tuple[Callable[[Any], Any], list[int]]] = {
    "range": (lambda t: t.rows.limit(3, 1), [1, 2, 3]),
    "index": (lambda t: t.rows.by_name.select().limit(3, 1), [2, 4, 1]),
    "where": (lambda t: t.rows.where(lambda row: row.size < 5).limit(3, 1), [1, 2, 3]),
    "where by an index": (lambda t: t.rows.where(lambda row: row.name == "a").limit(3, 1), [2, 4]),
    "order": (lambda t: t.rows.order_by(lambda row: desc(row.size)).limit(3), [5, 4, 3]),
    "order, skipped": (lambda t: t.rows.order_by(lambda row: row.size).limit(3, 1), [1, 2, 3]),
    "where, order": (lambda t: t.rows.where(lambda r: r.size < 5).order_by(lambda r: -r.size).limit(2, 1), [3, 2]),
    "order by an index": (lambda t: t.rows.order_by(lambda row: row.name).limit(3, 1), [2, 4, 1]),
    "order by parts": (lambda t: t.rows.order_by(lambda r: (desc(r.name), -r.size)).limit(3), [5, 3, 1]),
}  # fmt: skip

READS: dict[str, tuple[Callable[[Any], Any], Callable[[list[int]], Any]]] = {
    "all": (lambda reads: reads.all(), list),
    "a loop": (lambda reads: [row for row in reads], list),
    "first": (lambda reads: reads.first(), lambda rows: rows[0]),
    "sum": (lambda reads: reads.sum(), sum),
    "max": (lambda reads: reads.max(), max),
    "distinct": (lambda reads: reads.distinct().all(), lambda rows: list(dict.fromkeys(rows))),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_function_of_fields_is_asked_of_no_record_that_does_not_come_out(name: str) -> None:
    asked: list[int] = []

    def called(row: Row) -> int:
        asked.append(row.size)
        return 10 // row.size

    query, sizes = QUERIES[name]
    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            t.rows.update({size: Row(size, "ab"[size % 2]) for size in range(6)})
        for begin in (db.read, db.write) * 2:  # a cached plan may answer it the second time
            with begin() as t:
                for how, (read, expected) in READS.items():
                    expect = expected([10 // size for size in sizes])
                    for give in (called, lambda row: 10 // row.size):
                        assert read(query(t).fields(give)) == expect, (how, begin)
        assert 0 not in asked


def _shares(row: Row) -> int:
    return 10 // row.size


GROUPS: dict[str, tuple[Callable[[Any], Any], Callable[[list[int]], Any]]] = {
    "count": (lambda group: group.count(), len),
    "sum": (lambda group: group.fields(_shares).sum(), lambda sizes: sum(10 // size for size in sizes)),
    "rows": (lambda group: [row.size for row in group.values()], list),
    "keys": (lambda group: group.keys().all(), list),
}


@pytest.mark.parametrize("name", QUERIES)
def test_the_functions_of_groups_are_asked_of_no_record_that_does_not_come_out(name: str) -> None:
    query, sizes = QUERIES[name]
    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            t.rows.update({size: Row(size, "ab"[size % 2]) for size in range(6)})
        for begin in (db.read, db.write) * 2:
            with begin() as t:
                for how, (into, expected) in GROUPS.items():
                    for by in (_shares, lambda row: 10 // row.size % 2):
                        names = [by(Row(size, "")) for size in sizes]
                        members = {one: [size for size in sizes if by(Row(size, "")) == one] for one in names}
                        expect = {one: expected(member) for one, member in members.items()}
                        found = query(t).group_by(by, into)
                        assert list(found.items()) == list(expect.items()), (how, begin)
