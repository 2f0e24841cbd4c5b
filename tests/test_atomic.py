"""Changes of one record: `change`, `increment`, `replace`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Optional

import pytest

import zlmdb


@dataclass
class User:
    name: str
    age: int = 0
    tags: list[str] = field(default_factory=list)


class Users(zlmdb.Table[int, User]):
    by_name = zlmdb.UniqueIndex[str]("name")


class Store(zlmdb.Schema):
    users: Users
    plain: zlmdb.Table[int, User]
    counts: zlmdb.Table[str, int]
    sums: zlmdb.Table[str, float]


@pytest.fixture
def db(make_db: Callable[..., Any]) -> Any:
    db = make_db(Store)
    with db.write() as t:
        for table in (t.users, t.plain):
            table[1] = User("Ann", 31)
            table[2] = User("Bob", 20)
    return db


@pytest.fixture(params=["users", "plain"])
def name(request: pytest.FixtureRequest) -> str:
    """A table with an index, and one without."""
    found: str = request.param
    return found


def test_change_stores_what_the_function_returns_and_returns_it(db: Any, name: str) -> None:
    with db.write() as t:
        new = t[name].change(1, lambda user: User("Cid", user.age + 1))
        assert new == t[name][1] == User("Cid", 32)
    with db.read() as t:
        assert t[name][1] == User("Cid", 32)
        if name == "users":
            assert t.users.by_name["Cid"] == User("Cid", 32)
            assert "Ann" not in t.users.by_name


def test_change_of_an_object_in_place(db: Any, name: str) -> None:
    def grow(user: User) -> User:
        user.tags.append("x")
        return user

    with db.write() as t:
        t[name].change(1, grow)
        assert t[name][1].tags == ["x"]


def test_none_deletes_the_record(db: Any, name: str) -> None:
    with db.write() as t:
        assert t[name].change(1, lambda user: None) is None
        assert sorted(t[name]) == [2]
        assert t[name].change(9, lambda user: None, default=User("Dee")) is None
        assert sorted(t[name]) == [2]
        if name == "users":
            assert "Ann" not in t.users.by_name
            assert "Bob" in t.users.by_name


def test_a_function_that_forgets_to_return_the_object_it_changed_deletes_nothing(db: Any, name: str) -> None:
    def forgets(user: User) -> None:
        user.age = 99

    with db.write() as t:
        with pytest.raises(TypeError, match="return the object"):
            t[name].change(1, forgets)
        assert t[name][1] == User("Ann", 31)


def test_an_exception_changes_nothing(db: Any, name: str) -> None:
    def fails(user: User) -> User:
        user.age = 99
        raise LookupError

    with db.write() as t:
        with pytest.raises(LookupError):
            t[name].change(1, fails)
        with pytest.raises(zlmdb.EncodeError):
            t[name].change(1, lambda user: User(name=5))  # type: ignore[arg-type]
        assert t[name][1] == User("Ann", 31)


def test_a_default_is_for_a_record_that_is_missing(db: Any, name: str) -> None:
    seen: list[Optional[User]] = []

    def born(user: User) -> User:
        seen.append(user)
        return User(user.name, user.age + 1)

    with db.write() as t:
        with pytest.raises(KeyError):
            t[name].change(9, born)
        t[name].change(9, born, default=User("Dee", -1))
        assert t[name][9] == User("Dee", 0)
        t[name].change(1, born, default=User("Dee", -1))
        assert t[name][1] == User("Ann", 32)
    assert seen == [User("Dee", -1), User("Ann", 31)]


def test_a_change_that_breaks_a_unique_index_changes_nothing(db: Any) -> None:
    with db.write() as t:
        with pytest.raises(zlmdb.DuplicateKey):
            t.users.change(1, lambda user: User("Bob"))
        assert t.users[1] == User("Ann", 31)


def test_a_change_inside_of_an_edit_of_the_record_is_refused(db: Any, name: str) -> None:
    with db.write() as t, t[name].edit(1) as user:
        with pytest.raises(ValueError, match="edits the record"):
            t[name].change(1, lambda user: user)
        t[name].change(2, lambda other: User("Eve"))
        user.age = 40
    with db.read() as t:
        assert t[name][1].age == 40
        assert t[name][2].name == "Eve"


def test_increment_adds_and_begins_with_the_amount(db: Any) -> None:
    with db.write() as t:
        assert t.counts.increment("a") == 1
        assert t.counts.increment("a") == 2
        assert t.counts.increment("a", by=-5) == -3
        assert t.sums.increment("x", by=0.5) == 0.5
        assert t.sums.increment("x", 0.25) == 0.75
        with pytest.raises(TypeError, match="expected a number"):
            t.counts.increment("a", by="2")
        with pytest.raises(zlmdb.EncodeError):
            t.counts.increment("b", by=0.5)
        with pytest.raises(
            zlmdb.EncodeError, match=r"table 'sums': increment\(\) cannot add 1000.* to the value of 'x', 0\.75"
        ):
            t.sums.increment("x", 10**400)
        assert (dict(t.counts), dict(t.sums)) == ({"a": -3}, {"x": 0.75})


def test_increment_of_what_is_no_number_says_what_to_write(db: Any, name: str) -> None:
    with db.write() as t, pytest.raises(TypeError, match=r"use change\(\)"):
        t[name].increment(1)


def test_replace_stores_only_where_a_record_is(db: Any, name: str) -> None:
    with db.write() as t:
        assert t[name].replace(1, User("Zoe")) is True
        assert t[name].replace(9, User("Dee")) is False
        with pytest.raises(zlmdb.EncodeError):
            t[name].replace(9, "no user")
        assert {key: user.name for key, user in t[name].items()} == {1: "Zoe", 2: "Bob"}


def test_changes_in_a_read_transaction_are_refused(db: Any, name: str) -> None:
    with db.read() as t:
        for call in (
            lambda: t[name].change(1, lambda user: user),
            lambda: t[name].replace(1, User("Zoe")),
            lambda: t.counts.increment("a"),
        ):
            with pytest.raises(zlmdb.ReadonlyDatabase):
                call()
