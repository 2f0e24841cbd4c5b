"""Filters and projections of FlatBuffers give what a comprehension gives, whatever the fields and their ids."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, NamedTuple, Optional, TypedDict
from uuid import UUID

import pytest

import zlmdb
from zlmdb.values import FlatBuffers, FlatBuffersView, InStruct, serializer

from .asking import F, ask, give

pytestmark = pytest.mark.twice  # encodings do not depend on the version of Python


@dataclass
class User:
    oid: UUID
    age: int


class Users(zlmdb.Schema):
    users: zlmdb.Table[int, FlatBuffers[User]]


class Spot(NamedTuple):
    x: int
    y: float


def small(rng: random.Random) -> int:
    return rng.randrange(6)


DAY = datetime(2026, 1, 1, tzinfo=timezone.utc)
KINDS: dict[str, tuple[Any, Callable[[random.Random], Any]]] = {
    "uuid": (UUID, lambda rng: UUID(int=small(rng))),
    "int": (int, small),
    "float": (float, lambda rng: small(rng) / 2),
    "bool": (bool, lambda rng: small(rng) < 3),
    "str": (str, lambda rng: "\u00e4b" * small(rng)),
    "bytes": (bytes, lambda rng: b"ab" * small(rng)),
    "date": (date, lambda rng: date(2026, 1, 1 + small(rng))),
    "datetime": (datetime, lambda rng: DAY + timedelta(hours=small(rng))),
    "time": (time, lambda rng: time(small(rng))),
    "timedelta": (timedelta, lambda rng: timedelta(days=small(rng))),
    "decimal": (Decimal, lambda rng: Decimal(small(rng))),
    "struct": (Annotated[Spot, InStruct], lambda rng: Spot(small(rng), 0.5)),
    "list": (list[int], lambda rng: [1] * small(rng)),
}
OPERATORS = {
    "==": operator.eq, "!=": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def test_a_uuid_field_leaves_the_other_constants_alone() -> None:
    with zlmdb.open(None, Users) as db, db.write() as t:
        for number in range(40):
            t.users[number] = User(UUID(int=number), number)
        third, fourth = UUID(int=3), UUID(int=4)
        assert t.users.where(lambda u: u.oid == third).count() == 1
        assert list(t.users.where(lambda u: u.age == 3 and u.oid != fourth).keys()) == [3]
        between = t.users.where(lambda u: 3 <= u.age < 5)
        assert list(between.fields(lambda u: (u.oid, u.age))) == [(UUID(int=3), 3), (UUID(int=4), 4)]
        assert t.users.where(lambda u: u.oid != third).delete() == 39
        assert list(t.users) == [3]


@pytest.mark.parametrize("values", [FlatBuffers, FlatBuffersView], ids=["objects", "views"])
@pytest.mark.parametrize(  # as Hypothesis, it looks further on one interpreter
    "seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.once) for seed in range(5, 30))]
)
def test_filters_find_what_a_comprehension_finds(seed: int, values: Any) -> None:
    rng = random.Random(seed)
    chosen = ["uuid", *rng.choices(list(KINDS), k=rng.randrange(1, 7))]
    rng.shuffle(chosen)
    optional = [rng.random() < 0.3 for _ in chosen]
    names = [f"f{number}" for number in range(len(chosen))]
    row = make_dataclass("Row", [
        (name, Optional[KINDS[kind][0]] if maybe else KINDS[kind][0], field(metadata={"id": number}))
        for number, (name, kind, maybe) in enumerate(zip(names, chosen, optional))
    ])  # fmt: skip

    def value(number: int) -> Any:
        return None if optional[number] and rng.random() < 0.3 else KINDS[chosen[number]][1](rng)

    rows = {key: row(*[value(number) for number in range(len(names))]) for key in range(40)}
    schema = type("Rows", (zlmdb.Schema,), {"__annotations__": {"rows": zlmdb.Table[int, values[row]]}})
    with zlmdb.open(None, schema) as db, db.write() as t:
        t.rows.update(rows)
        for _ in range(12):
            condition, holds = _condition(rng, names, chosen, value, rng.randrange(1, 6))
            question = ask(condition)
            wanted = [key for key, one in rows.items() if holds(one)]
            projected = rng.sample(names, rng.randrange(1, len(names) + 1))
            fields = [tuple(getattr(rows[key], name) for name in projected) for key in wanted]
            found = [one if len(projected) > 1 else (one,) for one in t.rows.where(question).fields(give(*projected))]
            assert found == fields
            backwards = t.rows.select(reverse=True)
            found = [
                one if len(projected) > 1 else (one,) for one in backwards.where(question).fields(give(*projected))
            ]
            assert found == fields[::-1]
            assert list(backwards.where(question).keys()) == wanted[::-1]
            assert t.rows.where(question).count() == len(wanted)
        assert t.rows.where(question).delete() == len(wanted)
        assert list(t.rows) == [key for key in rows if key not in wanted]


def _condition(
    rng: random.Random, names: list[str], kinds: list[str], value: Callable[[int], Any], leaves: int
) -> tuple[Any, Callable[[Any], bool]]:
    """A condition of so many *leaves*, and the same in Python."""
    if leaves > 1:
        first = rng.randrange(1, leaves)
        left, left_holds = _condition(rng, names, kinds, value, first)
        right, right_holds = _condition(rng, names, kinds, value, leaves - first)
        if rng.random() < 0.5:
            return left & right, lambda one: left_holds(one) and right_holds(one)
        return left | right, lambda one: left_holds(one) or right_holds(one)
    number = rng.randrange(len(names))
    asked, found = F[names[number]], operator.attrgetter(names[number])
    if rng.random() < 0.2:
        among = [value(number) for _ in range(3)]
        return asked.in_(among), lambda one: found(one) in among
    sign, given = rng.choice(list(OPERATORS)), value(number)
    if given is None:
        sign = rng.choice(["==", "!="])
    compare = OPERATORS[sign]
    if sign in ("==", "!="):
        return compare(asked, given), lambda one: bool(compare(found(one), given))
    return compare(asked, given), lambda one: found(one) is not None and bool(compare(found(one), given))


@dataclass
class Named:
    name: str
    other: Optional[str] = None


class Names(zlmdb.Schema):
    names: zlmdb.Table[int, FlatBuffers[Named]]


def test_texts_of_any_length_are_found() -> None:
    """Their lengths are compared first."""
    texts = ["", "a", "\u00e4", "ab", "\u00e4b", "ba", "abc", "ab\0", "a" * 300]
    with zlmdb.open(None, Names) as db:
        with db.write() as t:
            for number, text in enumerate(texts * 2):
                t.names[number] = Named(text, text if number % 3 else None)
        with db.read() as t:
            for text in [*texts, "x", "b\u00e4", "\0"]:
                expected = [key for key, one in t.names.items() if one.name == text]
                assert t.names.where(lambda n: n.name == text).keys().all() == expected  # noqa: B023
                others = [key for key, one in t.names.items() if one.name != text and one.other == text]
                assert not others
                either = t.names.where(lambda n: n.name == text or n.other == "ab")  # noqa: B023
                assert either.count() == len([one for one in t.names.values() if one.name == text or one.other == "ab"])
                both = t.names.where(lambda n: n.name == text and n.other == text)  # noqa: B023
                assert both.count() == len([one for one in t.names.values() if one.name == text == one.other])


@dataclass
class Texts:
    id: int
    name: str
    maybe: Optional[int] = None
    more: str = ""


class TextStore(zlmdb.Schema):
    names: zlmdb.Table[int, FlatBuffers[Texts]]


LENGTHS = (0, 1, 2, 62, 63, 64, 65, 127, 128, 255, 256, 257, 300, 319, 320, 512, 70_000)


def test_the_text_that_is_read_with_numbers_may_have_any_length() -> None:
    texts = [text * length for length in LENGTHS for text in ("x", "\0", "\u00e4")]
    with zlmdb.open(None, TextStore) as db:
        with db.write() as t:
            for number, text in enumerate(texts):
                t.names[number] = Texts(number, text, number % 2 or None, text[:9])
        with db.read() as t:
            assert t.names.fields(lambda r: r.name).all() == texts
            assert t.names.fields(lambda r: (r.name, r.id)).all() == [(text, n) for n, text in enumerate(texts)]
            found = t.names.fields(lambda r: (r.more, r.name, r.maybe)).all()
            assert found == [(text[:9], text, n % 2 or None) for n, text in enumerate(texts)]
            sizes = t.names.group_by(lambda r: r.name, lambda g: g.count())
            assert sizes == {text: texts.count(text) for text in texts}


@pytest.mark.parametrize("length", [0, 3, 63, 64, 256])
def test_a_text_that_is_broken_is_no_value(length: int) -> None:
    with zlmdb.open(None, TextStore) as db:
        with db.write() as t:
            for number in range(5):
                t.names[number] = Texts(number, "x" * length)
            key = t.names._storage.encode_key(3)
            stored = t.names._raw.get(key, None, t.names._db)
        layout = serializer(FlatBuffers[Texts]).columns().layout  # type: ignore[union-attr]
        at = len(layout.head(layout.full)) - 4 + layout.fixed
        assert stored[at : at + 4] == length.to_bytes(4, "little")
        end = at + 4 + length
        broken = [stored[:end] + b"!" + stored[end + 1 :], stored[:end], stored[: at + 1], stored[:at], stored[:5], b""]
        broken += [stored[: at + n] + b"\xff" + stored[at + n + 1 :] for n in range(4)]
        for data in broken:
            with db.write() as t:
                t.names._raw.put(key, data, db=t.names._db)
            with db.read() as t:
                with pytest.raises(zlmdb.DecodeError, match="3"):
                    t.names.fields(lambda r: r.name).all()
                seen = iter(t.names.fields(lambda r: r.name))
                assert [next(seen) for _ in range(3)] == ["x" * length] * 3
                with pytest.raises(zlmdb.DecodeError, match="3"):
                    next(seen)


COMPUTED: dict[str, Callable[[Any], Any]] = {
    "sum": lambda r: (r.name, (r.id or 0) + 1),
    "text": lambda r: f"{r.name[:2]}{r.more}",
    "twice": lambda r: [r.name, len(r.name), r.name],
    "either": lambda r: r.more if r.maybe is None else r.maybe,
    "each": lambda r: [letter + r.more for letter in r.name[:3]],
    "nothing": lambda r: (1, r.id),
    "itself": lambda r: (r.id, r),
    "raises": lambda r: 1 // (r.id - 1000),
}


@pytest.mark.parametrize("values", [FlatBuffers, FlatBuffersView], ids=["objects", "views"])
@pytest.mark.parametrize("name", COMPUTED)
def test_what_is_computed_of_fields_is_what_the_function_gives(name: str, values: Any) -> None:
    function = COMPUTED[name]
    schema = type("Store", (zlmdb.Schema,), {"__annotations__": {"names": zlmdb.Table[int, values[Texts]]}})
    with zlmdb.open(None, schema) as db:
        with db.write() as t:
            for n in range(40):
                t.names[n] = Texts(n, "xy\u00e4" * (n % 5), n % 3 or None, "m" * (n * 7 % 70))
        with db.read() as t:
            for _ in range(3):
                expected = [function(value) for value in t.names.values()]
                assert repr(t.names.fields(function).all()) == repr(expected)
                assert repr(list(t.names.fields(function))) == repr(expected)
                found = t.names.where(lambda r: r.id >= 7 and len(r.name) + r.id > 11)
                some = [function(v) for v in t.names.values() if v.id >= 7 and len(v.name) + v.id > 11]
                assert repr(found.fields(function).all()) == repr(some)
                assert repr(found.limit(3, 1).fields(function).all()) == repr(some[1:4])
                ordered = t.names.order_by(lambda r: (r.id * 7 % 10, r.name)).fields(function).all()
                values_in_order = sorted(t.names.values(), key=lambda r: (r.id * 7 % 10, r.name))
                assert repr(ordered) == repr([function(value) for value in values_in_order])


def test_what_is_computed_of_fields_reads_no_other_field() -> None:
    with zlmdb.open(None, TextStore) as db:
        with db.write() as t:
            for number in range(20):
                t.names[number] = Texts(number, f"n{number}", more="more")
            key = t.names._storage.encode_key(13)
            stored = t.names._raw.get(key, None, t.names._db)
            t.names._raw.put(key, stored.replace(b"more", b"\xff\xff\xff\xff"), db=t.names._db)
        with db.read() as t:
            with pytest.raises(zlmdb.DecodeError, match="13"):
                t.names.select().values().all()
            for _ in range(3):
                found = t.names.where(lambda r: r.name + "!" != "n2!").fields(lambda k, r: (k, r.name + "!")).all()
                assert found == [(n, f"n{n}!") for n in range(20) if n != 2]
            with pytest.raises(zlmdb.DecodeError, match="13"):
                t.names.fields(lambda r: r.more + r.name).all()


class Size(TypedDict):
    wide: int


class Thing(TypedDict):
    name: str
    size: Optional[Size]
    get: int


def test_views_of_typed_dicts_have_the_items_that_queries_and_indexes_ask_for() -> None:
    class Things(zlmdb.Table[int, FlatBuffersView[Thing]]):
        by_name = zlmdb.Index[str]("name")
        by_width = zlmdb.Index[int]("size.wide")

    class Store(zlmdb.Schema):
        things: Things

    def has_seven(thing: Thing) -> bool:
        letters = [letter for letter in thing["name"] if letter == "7"]  # which cannot be followed
        return len(letters) == 1

    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            for n in range(20):
                t.things[n] = {"name": f"n{n}", "size": None if n % 2 else {"wide": n}, "get": 5}
        with db.read() as t:
            assert t.things.where(has_seven).keys().all() == [7, 17]
            assert t.things.where(lambda v: v["name"] > "n8").keys().all() == [9]
            assert t.things.where(lambda v: v["size"] is not None and v["size"]["wide"] == 4).keys().all() == [4]
            assert t.things.by_name["n3"].count() == t.things.by_width[4].count() == 1
            thing = t.things[3]
            assert (thing["get"], "size" in thing, "depth" in thing) == (5, True, False)
            with pytest.raises(KeyError, match="depth"):
                thing["depth"]  # type: ignore[typeddict-item] # pyright: ignore
