"""What a web developer, an analyst, a user of caches and queues and an operator wrote next: the last line says it."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Optional

import pytest

import zlmdb


@dataclass
class User:
    name: str
    age: int
    nick: Optional[str] = None
    tags: list[str] = field(default_factory=list)


class Shop(zlmdb.Schema):
    users: zlmdb.Table[int, User]
    times: zlmdb.Table[int, datetime]
    jobs: zlmdb.Queue[str]


@pytest.fixture
def t() -> Iterator[Any]:
    with zlmdb.open(None, Shop) as db:
        with db.write() as t:
            t.users.add(User("Ann", 31))
        with db.read() as t:
            yield t


WANTED = "Bob"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda u: u.name == "Ann" or "Bob", r"u.name == 'Ann'\) is False, it is 'Bob', .*; write u.name in \('Ann', "),
        (lambda u: (u.age > 9 and u.name == "Ann") or "Bob", r"write u.name in \('Ann', 'Bob'\)"),
        (lambda u: u.age == 1 or 2, r"write u.age in \(1, 2\)"),
        (lambda u: u.nick == "Ann" or "Bob", "it is 'Bob', which is true; compare it with a field"),
        (lambda u: u.name != "Ann" or "Bob", "it is 'Bob', which is true; compare it with a field"),
        (lambda u: "a" in u.tags or "b", "it is 'b', which is true; compare it with a field"),
    ],
)
def test_a_constant_in_place_of_a_comparison_is_refused_where_it_makes_a_condition_true(
    t: Any, asked: Any, said: str
) -> None:
    with pytest.raises(TypeError, match="^the condition is true for all records: where .*" + said):
        t.users.where(asked)


@pytest.mark.parametrize(
    "asked",
    [
        lambda u: u.name == "Bob" or True,
        lambda u: u.name == "Bob" or WANTED,
        lambda u: u.name == "Ann" and "Bob",
        lambda u: 1,
        lambda u: u.nick is None or u.nick == "Bob" or 0,
        lambda u: 1 if u.age > 9 else 0,
    ],
)
def test_a_condition_that_is_meant_to_be_true_is_not_refused(t: Any, asked: Any) -> None:
    assert t.users.where(asked).count() == 1


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda u: u == 2, r"^u == 2: u is the record, of .*User: compare a field of it, u.name, or its key, .*= 2"),
        (lambda key: key > 2, "^key > 2: key is the record, of "),
        (lambda u: u in (1, 2), r"^u in ...: u is the record, of "),
        (lambda u: u["name"] == "Ann", r"^u\['name'\]: .*User has no items; write u.name"),
        (lambda u: u.name == "Ann" | u.age == 1, r"'Ann' \| u.age: \| joins .*; between conditions, write `or`"),
        (lambda u: u.age > 1.5 & u.age, r"1.5 & u.age: & joins .*; between conditions, write `and`"),
    ],
)
def test_what_is_never_asked_of_a_record_is_refused_with_what_to_write(t: Any, asked: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        t.users.where(asked)


def test_whole_numbers_and_conditions_in_parentheses_are_joined(t: Any) -> None:
    assert t.users.where(lambda u: u.age & 1 == 1).count() == 1
    assert t.users.where(lambda u: (u.name == "Bob") | (u.age == 31)).count() == 1
    assert t.users.where(lambda u: u == User("Ann", 31)).count() == 1


ANY: Any = zlmdb


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda t: t.users.get_or_create(name="Ann"), r"'get_or_create': .*by_field.key\(value, None\) is None$"),
        (lambda t: t.users.nunique(), r"'nunique': write .fields\(lambda record: ...\).distinct\(\)"),
        (
            lambda t: t.users.fields(lambda u: u.age).value_counts(),
            r"'value_counts': write collections.Counter\(rows\)",
        ),
        (lambda t: t.users.fields(lambda u: u.age).sort(), r"'sort': write sorted\(rows\)"),
        (lambda t: t.jobs.failed, "'failed': write .dead"),
        (lambda t: ANY.Lock, "'Lock': there are zlmdb.Cache, zlmdb.Queue"),
        (lambda t: ANY.Cache(None).pipeline(), r"'pipeline': write `with cache.transact\(\):`"),
        (lambda t: ANY.Cache(None).lock("a"), r"'lock': .*; cache.add\('lock', 1, expire=60\) is true for one caller"),
    ],
)
def test_methods_of_others_are_answered_with_what_to_write(t: Any, asked: Any, said: str) -> None:
    with pytest.raises(AttributeError, match=said):
        asked(t)


def test_what_the_package_lacks_gets_no_second_suggestion() -> None:
    """Python adds the nearest name to an error that names the object, when it shows a traceback."""
    with pytest.raises(AttributeError, match="there are zlmdb.Cache") as caught:
        _ = ANY.Lock
    assert "".join(traceback.format_exception_only(AttributeError, caught.value)).endswith("of the documentation\n")
    assert getattr(caught.value, "obj", None) is None


def test_a_table_of_a_database_without_a_schema_is_answered_with_the_block(tmp_path: Path) -> None:
    zlmdb.open(tmp_path / "db", Shop).close()
    with zlmdb.open(tmp_path / "db") as db:
        with pytest.raises(
            AttributeError, match=r"'users': without a schema, a table is t\['users'\] in a block, `with"
        ):
            _ = db.users  # type: ignore[attr-defined]
        assert not hasattr(db, "users")


def test_rows_for_async_for_say_so_to_a_loop_and_to_await() -> None:
    async def awaited(db: Any) -> None:
        await db.arows(lambda t: t.users)

    async def read(db: Any, snapshot: bool) -> list[Any]:
        rows = db.arows(lambda t: t.users.fields(lambda u: u.name), snapshot=snapshot)
        first = await rows.__anext__()
        rest = [row async for row in rows]
        await rows.aclose()
        return [first, rest]

    with zlmdb.open(None, Shop) as db:
        with db.write() as t:
            t.users.update({1: User("Ann", 31), 2: User("Bob", 35)})
        rows: Any = db.arows(lambda t: t.users)
        with pytest.raises(TypeError, match="write `async for row in db.arows"):
            list(rows)
        with pytest.raises(TypeError, match="write `async for row in db.arows"):
            asyncio.run(awaited(db))
        assert asyncio.run(read(db, False)) == asyncio.run(read(db, True)) == ["Ann", ["Bob"]]


def test_a_cache_says_which_value_it_cannot_store() -> None:
    with zlmdb.Cache(None) as cache:

        @cache.memoize("pair")
        def pair(number: int) -> Any:
            return (number, number)

        with pytest.raises(zlmdb.EncodeError, match=r"^the cache, key 'pair\(number=1\)': the value: .*\(1, 1\)"):
            pair(1)
        with pytest.raises(zlmdb.EncodeError, match=r"^the cache, key 'a': the value: .*declare the type"):
            cache.set("a", {1, 2})


def test_a_time_without_a_zone_that_the_function_makes_is_told_with_the_record() -> None:
    with zlmdb.open(None, Shop) as db:
        with db.write() as t:
            t.times[1] = datetime(2026, 1, 1, tzinfo=timezone.utc)
        with db.read() as t, pytest.raises(TypeError, match=r"key 1: .*zone, such as datetime.now\(timezone.utc\)$"):
            t.times.where(lambda time: time > datetime.now()).count()
