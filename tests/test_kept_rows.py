"""What sorting and grouping keep in memory of each row: the row and what it is sorted by, and nothing around them.

Python's garbage collector looks at every container that is alive, again and again: one more for each row made sorting
slower than a loop with `sorted`.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass
from typing import Any

import pytest

import zlmdb

cpython = pytest.mark.skipif(
    not hasattr(gc, "freeze"),
    reason="PyPy frees objects later: those that nobody keeps would be counted, too",
)


@dataclass
class Person:
    name: str
    age: int


class Store(zlmdb.Schema):
    people: zlmdb.Table[int, Person]


@pytest.fixture(scope="module")
def db() -> Any:
    with zlmdb.open(None, Store) as opened:
        with opened.write() as t:
            t.people.put_many([(n, Person(f"name {n % 7}", n * 7 % 50)) for n in range(300)])
        yield opened


def around() -> int:
    """How many tuples hold a person."""
    found: list[Any] = gc.get_objects()
    return sum(1 for one in found if type(one) is tuple and any(type(part) is Person for part in one))


@cpython
def test_a_sort_keeps_no_pair_for_each_row(db: Any) -> None:
    with db.read() as t:
        for order in (lambda p: p.age, lambda p: p.age / 2):
            rows = iter(t.people.order_by(order).values())
            next(rows)
            assert around() < 10
            assert len(list(rows)) == 299


@cpython
def test_a_group_keeps_no_pair_for_each_row(db: Any) -> None:
    kept: list[int] = []

    def into(group: Any) -> int:
        kept.append(around())
        found: int = group.count() if group else 0
        return found

    with db.read() as t:
        assert sum(t.people.group_by(lambda p: p.name, into).values()) == 300
    assert max(kept) < 10


def test_a_group_is_asked_as_a_selection_is(db: Any) -> None:
    limit = 20

    def into(g: Any) -> Any:
        older = g.where(lambda p: p.age > limit)
        return (
            g.count(), older.count(), g.keys().all(), g.values().first(), g.last(), older.fields(lambda p: p.age).max(),
            g.fields(lambda k, p: (k, p.name)).first(), g.order_by(lambda p: p.age, reverse=True).limit(2, 1).all(),
            g.group_by(lambda p: p.age % 2, lambda h: h.keys().all()), g.limit(3, 1).count(), len(g.all()), bool(older),
        )  # fmt: skip

    with db.read() as t:
        groups: dict[str, dict[int, Person]] = {}
        for key, person in t.people.items():
            groups.setdefault(person.name, {})[key] = person
        found = t.people.group_by(lambda p: p.name, into)
        assert list(found) == list(groups)
        for name, rows in groups.items():
            older = [one for one in rows.values() if one.age > limit]
            by_age = list(reversed(sorted(rows.items(), key=lambda pair: pair[1].age)))
            halves: dict[int, list[int]] = {}
            for key, one in rows.items():
                halves.setdefault(one.age % 2, []).append(key)
            pairs = list(rows.items())
            assert found[name] == (
                len(rows), len(older), list(rows), pairs[0][1], pairs[-1], max(one.age for one in older),
                (pairs[0][0], name), by_age[1:3], halves, 3, len(rows), True,
            )  # fmt: skip
