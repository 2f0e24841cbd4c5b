"""Records that are skipped are not read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

import zlmdb
from tests.filled import filled_once
from zlmdb.tables.storage import Storage

pytestmark = pytest.mark.twice  # plans do not depend on the version of Python


@dataclass
class Person:
    name: str
    age: int
    tags: list[str] = field(default_factory=list)


class People(zlmdb.Table[int, Person]):
    by_age = zlmdb.Index[int]("age")
    by_name = zlmdb.UniqueIndex[str]("name")
    by_tag = zlmdb.Index[str]("tags", each=True)


class Named(zlmdb.Table[str, Person]):
    by_age = zlmdb.Index[int]("age")


class Store(zlmdb.Schema):
    people: People
    named: Named


ROWS = [(n, Person(f"name{n:03}", n * 7 % 10, ["a", "b"][: n % 3])) for n in range(200)]
db = filled_once(Store, lambda: {"people": ROWS, "named": [(f"key{n}", one) for n, one in ROWS]}, ["tables", "classic"])


def selections(t: Any) -> dict[str, Any]:
    return {
        "all": t.people.select(),
        "backwards": t.people.select(reverse=True),
        "a range": t.people.select(20, 150),
        "a range backwards": t.people.select(20, 150, reverse=True),
        "texts": t.named.select(),
        "an index": t.people.by_age.select(2, 6),
        "an index backwards": t.people.by_age.select(2, 6, reverse=True),
        "a unique index": t.people.by_name.select("name02"),
        "elements": t.people.by_tag.select(),
        "elements backwards": t.people.by_tag.select(reverse=True),
    }


NAMES = [
    "all", "backwards", "a range", "a range backwards", "texts", "an index", "an index backwards", "a unique index",
    "elements", "elements backwards",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("writing", [False, True])
def test_what_is_behind_skipped_records_is_a_slice(db: Any, name: str, writing: bool) -> None:
    with (db.write if writing else db.read)() as t:
        found = selections(t)[name]
        rows = list(found)
        for skip in (1, 7, 50, len(rows) - 1, len(rows), 500):
            for limit in (0, 1, 5, 500):
                part, expected = found.limit(limit, skip), rows[skip : skip + limit]
                assert part.all() == list(part) == expected
                assert list(part.keys()) == [key for key, _ in expected]
                assert part.values().all() == [value for _, value in expected]
                assert part.fields(lambda p: p.name).all() == [value.name for _, value in expected]
                assert part.first() == (expected[0] if expected else None)
                assert (part.count(), bool(part)) == (len(expected), bool(expected))
        assert found.limit(100, 3).limit(9, 4).all() == rows[7:16]


@pytest.mark.parametrize("name", NAMES[:7])
def test_skipped_records_are_not_decoded(db: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with db.read() as t:
        found = selections(t)[name]
        rows = found.all()
        decoded: list[Any] = []
        storage: Storage[Any, Any] = found._table._storage
        load = storage.load
        monkeypatch.setattr(storage, "load", lambda data: decoded.append(data) or load(data))
        assert found.limit(3, 50).values().all() == [value for _, value in rows[50:53]]
        assert [value for _, value in found.limit(3, 50)] == [value for _, value in rows[50:53]]
        assert len(decoded) == 6
