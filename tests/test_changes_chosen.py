"""Random edits, changes and deletions of selections, beside the same of a dict: indexes change while they are used."""

from __future__ import annotations

import random
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Callable, Optional

import pytest

import zlmdb
from zlmdb import desc
from zlmdb.keys.tuples import TupleKey
from zlmdb.tables import followedchanges

pytestmark = pytest.mark.twice  # what is done does not depend on the version of Python


@dataclass
class User:
    rank: int


@dataclass
class Order:
    user: int
    x: int
    a: int
    b: int
    tags: list[str]
    due: Optional[int]
    note: str


class Users(zlmdb.Table[int, User]):
    by_rank = zlmdb.Index[int]("rank")


class Orders(zlmdb.Table[int, Order]):
    by_user = zlmdb.ForeignKey[Users]("user", on_delete="cascade")
    by_x = zlmdb.Index[int]("x", carries=("note",))
    by_a_b = zlmdb.Index[tuple[int, int]]("a", "b")
    highest = zlmdb.Index[int](desc("b"))
    by_tag = zlmdb.Index[str]("tags", each=True)
    by_due = zlmdb.Index[int]("due")
    firsts = zlmdb.Index[int]("x", where=lambda o: o.a == 1)


class Store(zlmdb.Schema):
    users: Users
    orders: Orders


Keys = Callable[[Order], list[Any]]
ENTRIES: dict[str, Keys] = {
    "by_user": lambda o: [o.user],
    "by_x": lambda o: [o.x],
    "by_a_b": lambda o: [(o.a, o.b)],
    "highest": lambda o: [o.b],
    "by_tag": lambda o: [*o.tags],
    "by_due": lambda o: [] if o.due is None else [o.due],
    "firsts": lambda o: [o.x] if o.a == 1 else [],
}

Where = Callable[[Any, int, int, str], Callable[[int, Order], bool]]
WHERE: list[Where] = [
    lambda t, n, m, tag: lambda k, o: o.x == n,
    lambda t, n, m, tag: lambda k, o: o.x < n,
    lambda t, n, m, tag: lambda k, o: o.a == m and o.b > n,
    lambda t, n, m, tag: lambda k, o: o.a in (n, m, 1),
    lambda t, n, m, tag: lambda k, o: o.b >= n,
    lambda t, n, m, tag: lambda k, o: tag in o.tags,
    lambda t, n, m, tag: lambda k, o: any(one > tag for one in o.tags),
    lambda t, n, m, tag: lambda k, o: o.due is not None and o.due < n,
    lambda t, n, m, tag: lambda k, o: o.a == 1 and o.x > n,
    lambda t, n, m, tag: lambda k, o: o.x == n or tag in o.tags,
    lambda t, n, m, tag: lambda k, o: k > 40 and o.x < n,
    lambda t, n, m, tag: lambda k, o: t.users[o.user].rank == m,
    lambda t, n, m, tag: lambda k, o: (o.a, o.b) in [(n, m), (m, n), (1, 2)],
]
ORDERS: list[Any] = [
    None,
    lambda o: o.x,
    lambda o: desc(o.x),
    lambda o: desc(o.b),
    lambda o: (o.a, o.b),
    lambda o: (desc(o.a), desc(o.b)),
    lambda o: (o.b, o.x),
    lambda o: o.note,
]
CHANGES: list[Callable[[int, int, str], Callable[[Order], Order]]] = [
    lambda n, m, tag: lambda o: replace(o, x=o.x + 1),
    lambda n, m, tag: lambda o: replace(o, b=o.b + 3, a=1),
    lambda n, m, tag: lambda o: replace(o, due=o.x),
    lambda n, m, tag: lambda o: replace(o, due=None, tags=[*o.tags, tag]),
    lambda n, m, tag: lambda o: replace(o, a=m, b=n) if o.x > n else replace(o, note="z"),
    lambda n, m, tag: lambda o: replace(o, note="y"),
]


class _Rows:
    """What a condition looks up in of the dict."""

    def __init__(self, users: dict[int, User]) -> None:
        self.users = users


def check(t: Any, rows: dict[int, Order]) -> None:
    assert dict(t.orders.select().all()) == rows
    for name, keys_of in ENTRIES.items():
        index = getattr(t.orders, name)
        for key in {key for order in rows.values() for key in keys_of(order)}:
            assert index[key].keys().all() == [one for one, order in rows.items() if key in keys_of(order)], name
        assert {key for key, _ in index.select()} == {key for key, order in rows.items() if keys_of(order)}


def step(dice: random.Random, t: Any, users: dict[int, User], rows: dict[int, Order]) -> None:
    """One edit, change or deletion of random records."""
    n, m, tag = dice.randrange(9), dice.randrange(6), f"t{dice.randrange(4)}"
    where, order = dice.choice(WHERE), dice.choice(ORDERS)
    selection = t.orders.where(where(t, n, m, tag))
    condition = where(_Rows(users), n, m, tag)
    chosen = [key for key, one in rows.items() if condition(key, one)]
    if order is not None:
        reverse = dice.random() < 0.2
        selection = selection.order_by(order, reverse=reverse)
        chosen.sort(key=lambda key: order(rows[key]))
        chosen = chosen[::-1] if reverse else chosen
    limit = dice.choice([None, None, 1, 3, 20])
    if limit is not None:
        skip = dice.choice([0, 0, 2])
        selection, chosen = selection.limit(limit, skip), chosen[skip : skip + limit]
    verb = dice.choice(["change", "change", "edit", "edit", "delete"])
    if verb == "delete":
        assert selection.delete() == len(chosen)
        for key in chosen:
            del rows[key]
    elif verb == "change":
        how = dice.choice(CHANGES)(n, m, tag)
        assert selection.change(how) == len(chosen)
        for key in chosen:
            rows[key] = how(rows[key])
    else:
        seen: list[Order] = []
        with selection.edit() as orders:
            for one in orders:
                seen.append(deepcopy(one))
                one.x, one.b, one.tags = (one.x + 5) % 9, one.b + m, [*one.tags, tag]
        assert seen == [rows[key] for key in chosen]
        for key in chosen:
            one = rows[key]
            rows[key] = replace(one, x=(one.x + 5) % 9, b=one.b + m, tags=[*one.tags, tag])


@pytest.mark.parametrize("seed", range(8))
def test_chosen_records_change_as_those_of_a_dict(seed: int) -> None:
    dice = random.Random(seed)
    users = {n: User(dice.randrange(6)) for n in range(20)}
    rows = {
        key: Order(
            dice.randrange(20), dice.randrange(9), dice.randrange(6), dice.randrange(8),
            [f"t{dice.randrange(4)}" for _ in range(dice.randrange(3))], dice.choice([None, 1, 2, 3]), "x",
        )
        for key in sorted(dice.sample(range(300), 120))
    }  # fmt: skip
    with zlmdb.open(None, Store) as db, db.write() as t:
        t.users.update(users)
        t.orders.update(rows)
        for number in range(40):
            step(dice, t, users, rows)
            if number % 8 == 0:
                check(t, rows)
        check(t, rows)
        gone = {key for key, user in users.items() if user.rank == 3}
        assert t.users.where(lambda u: u.rank == 3).delete() == len(gone)
        check(t, {key: one for key, one in rows.items() if one.user not in gone})


@pytest.fixture
def filled() -> Any:
    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            t.users[1] = User(1)
            t.orders.put_many([(n, Order(1, n % 9, n % 3, n % 5, [], None, "x")) for n in range(200)])
        yield db


def test_keys_of_several_fields_are_not_taken_apart_for_each_record(
    filled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Any] = []
    flatten = TupleKey._flatten

    def noted(self: Any, key: Any, **options: Any) -> Any:
        taken.append(key)
        return flatten(self, key, **options)

    monkeypatch.setattr(TupleKey, "_flatten", noted)
    with filled.write() as t:
        with t.orders.select().edit() as orders:
            for order in orders:
                order.b += 1
        assert t.orders.by_a_b[(1, 3)].count() == 13
    assert len(taken) < 10


def test_a_function_that_changes_a_few_records_often_is_followed(filled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    followed: list[Any] = []
    original = followedchanges.replacing

    def noted(*arguments: Any) -> Any:
        followed.append(original(*arguments))
        return followed[-1]

    monkeypatch.setattr(followedchanges, "replacing", noted)
    with filled.write() as t:
        for n in range(30):
            assert t.orders.select(n * 5, n * 5 + 5).change(lambda o: replace(o, note=f"n{n}")) == 5  # noqa: B023
        assert [o.note for o in t.orders.values()] == [f"n{k // 5}" if k < 150 else "x" for k in range(200)]
    assert 15 <= len(followed) <= 20
    assert None not in followed
