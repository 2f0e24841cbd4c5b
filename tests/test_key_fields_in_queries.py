"""A field that is the key is asked for by the key, if the table has had it so from its first record on."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path
from random import Random
from types import new_class
from typing import Any, Optional
from uuid import UUID

import pytest

import zlmdb
from zlmdb import desc


class Size(Enum):
    SMALL = "s"
    MIDDLE = "m"
    LARGE = "l"


KEYS: dict[Any, Callable[[int], Any]] = {
    int: lambda n: n * 7 - 300,
    str: lambda n: ("a", "B", "\u00e9", "")[n % 4] + str(n),
    bytes: lambda n: bytes((n % 5, n)),
    float: lambda n: n / 3 - 10,
    bool: lambda n: n % 2 == 1,
    UUID: lambda n: UUID(int=n * 7919 % 1009),
    date: lambda n: date(2026, 1, 1) + timedelta(days=n * 5),
    datetime: lambda n: datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=n % 3))) + timedelta(minutes=17 * n),
    Decimal: lambda n: Decimal(n) / 4 - 9,
    Size: lambda n: list(Size)[n % 3],
}
VALUES: dict[str, Callable[[Any], Any]] = {
    "default": lambda model: model,
    "json": lambda model: zlmdb.Json[model],
    "cbor": lambda model: zlmdb.Cbor[model],
    "pickle": lambda model: zlmdb.Pickle[model],
    "flatbuffers": lambda model: zlmdb.FlatBuffers[model],
}


MODELS: dict[Any, Any] = {
    kind: make_dataclass(
        f"Of_{kind.__name__}",
        [("id", kind), ("name", str), ("size", Optional[int], None), ("tags", list[str], field(default_factory=list))],
    )
    for kind in KEYS
}
for model in MODELS.values():  # where pickle finds them
    model.__module__ = __name__
    globals()[model.__name__] = model


def store_of(kind: Any, value: Any, **options: Any) -> Any:
    things = new_class("Things", (zlmdb.Table[kind, value],), options)
    return type("Store", (zlmdb.Schema,), {"__annotations__": {"things": things}})


CONDITIONS: list[Callable[[Any, Any, Any], Any]] = [
    lambda low, high, some: lambda v: v.id == low,
    lambda low, high, some: lambda v: v.id != low,
    lambda low, high, some: lambda v: low == v.id or v.name == "n1",
    lambda low, high, some: lambda v: v.id in some,
    lambda low, high, some: lambda v: v.id not in some,
    lambda low, high, some: lambda v: v.id in some and v.size is not None,
    lambda low, high, some: lambda v: v.size == 2 and v.id == high,
    lambda low, high, some: lambda k, v: v.id == low and k == low,
    lambda low, high, some: lambda k, v: v.id == low and k == high,
]
RANGES: list[Callable[[Any, Any, Any], Any]] = [
    lambda low, high, some: lambda v: v.id >= low,
    lambda low, high, some: lambda v: low < v.id <= high,
    lambda low, high, some: lambda v: not v.id > high,
    lambda low, high, some: lambda v: v.id < low or v.id > high,
    lambda low, high, some: lambda v: v.id > low and v.name in ("n0", "n2"),
    lambda low, high, some: lambda k, v: v.id > low and k < high,
]
ORDERS: list[Any] = [
    lambda v: v.id,
    lambda v: desc(v.id),
    lambda v: (v.id, v.name),
    lambda v: (v.name, v.id),
    lambda v: (desc(v.name), desc(v.id)),
    lambda v: (v.size is None, v.size or 0, desc(v.id)),
]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("kind", KEYS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("engine", ["memory", pytest.param("lmdb", marks=pytest.mark.once)])
def test_it_changes_no_answer(kind: Any, value: str, engine: str, tmp_path: Path) -> None:
    chance, model = Random(f"{kind} {value}"), MODELS[kind]
    stored = {}
    for n in range(60):
        key = KEYS[kind](n)
        stored[key] = model(key, f"n{n % 4}", (None, 1, 2)[n % 3], ["a", "b"][: n % 3])
    sorts = kind is not Size
    schema = store_of(kind, VALUES[value](model), key="id")
    with zlmdb.open(None if engine == "memory" else tmp_path / "db", schema) as db:
        with db.write() as t:
            for one in stored.values():
                t.things.add(one)
        with db.write() as t:
            keys = list(t.things)
            assert len(keys) == len(stored)
            for step in range(20):
                if step % 10 == 9 and len(keys) > 1:
                    gone = chance.choice(keys)
                    keys.remove(gone)
                    del t.things[gone]
                plain = [(key, stored[key]) for key in keys]
                low, high = (KEYS[kind](chance.randrange(70)) for _ in range(2))
                some = [KEYS[kind](chance.randrange(70)) for _ in range(3)]
                made = chance.choice(CONDITIONS + RANGES * sorts)(low, high, some)
                order = chance.choice([None, *ORDERS]) if sorts else None
                keyed = made.__code__.co_argcount == 2
                wanted = [(k, v) for k, v in plain if (made(k, v) if keyed else made(v))]
                asked = t.things.where(made)
                if order is not None:
                    wanted.sort(key=lambda pair: order(pair[1]))
                    asked = asked.order_by(order)
                skip, most = chance.randrange(3), chance.choice([None, 1, 5])
                if most is not None:
                    asked, wanted = asked.limit(most, skip=skip), wanted[skip : skip + most]
                for _ in range(3):  # planned, and as planned before
                    assert list(asked) == wanted
                assert asked.count() == len(wanted)
                assert asked.first() == (wanted[0] if wanted else None)
                assert asked.fields(lambda v: (v.id, v.name)).all() == [(v.id, v.name) for _, v in wanted]


# -- when it is certain ------------------------------------------------------------------------------------------------


@dataclass
class User:
    id: int
    name: str


def plan(db: Any) -> str:
    with db.read() as t:
        assert [user.id for user in t.things.where(lambda u: u.id == 7).values()] == [7]
        return str(t.things.where(lambda u: u.id == 7).explain())


def fill(db: Any) -> None:
    with db.write() as t:
        for n in range(20):
            t.things[n] = User(n, f"n{n}")


KEYED, UNKEYED = store_of(int, User, key="id"), store_of(int, User)


def test_a_plan_reads_one_record(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", KEYED) as db:
        fill(db)
        assert "the key: (u.id == 7)" in plan(db)
        with db.read() as t:
            newest = t.things.order_by(lambda u: desc(u.id)).limit(2)
            assert "order  desc(u.id): from the index" in str(newest.explain())
            assert newest.keys().all() == [19, 18]


def test_records_that_were_there_before_may_have_other_keys(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", UNKEYED) as db, db.write() as t:
        t.things[1] = User(7, "moved")
    with zlmdb.open(tmp_path / "db", KEYED) as db:
        for _ in range(3):
            with db.read() as t:
                assert t.things.where(lambda u: u.id == 7).keys().all() == [1]
                assert t.things.order_by(lambda u: desc(u.id)).keys().all() == [1]
                assert "the key: (u.id" not in str(t.things.where(lambda u: u.id == 7).explain())


def test_programs_that_do_not_declare_it_keep_to_it(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", KEYED) as db:
        fill(db)
    refused = pytest.raises(zlmdb.SchemaMismatch, match="key='id'")
    with zlmdb.open(tmp_path / "db", UNKEYED) as db, db.write() as t, refused:
        t.things[1] = User(7, "moved")
    with zlmdb.open(tmp_path / "db") as db, db.write() as t, pytest.raises(zlmdb.EncodeError, match="'id'"):
        t._undeclared("things", by_fields=True)[1] = {"id": 7, "name": "moved"}  # as commands do
    with zlmdb.open(tmp_path / "db", KEYED) as db:
        assert "the key: (u.id == 7)" in plan(db)


def edited(things: Any) -> None:
    with things.edit(1) as user:
        user.id = 7


WRITES: dict[str, Callable[[Any], Any]] = {
    "put": lambda things: things.__setitem__(1, User(7, "moved")),
    "put_many": lambda things: things.put_many([(1, User(7, "moved"))]),
    "replace": lambda things: things.replace(1, User(7, "moved")),
    "edit": edited,
    "change": lambda things: things.change(1, lambda user: User(7, user.name)),
    "selection": lambda things: things.where(lambda u: u.id == 1).change(lambda u: User(7, u.name)),
}


@pytest.mark.parametrize("way", WRITES)
def test_no_write_breaks_it(way: str) -> None:
    with zlmdb.open(None, KEYED) as db:
        fill(db)
        with db.write() as t, pytest.raises(zlmdb.EncodeError, match="takes its keys from the field 'id'"):
            WRITES[way](t.things)
        assert "the key: (u.id == 7)" in plan(db)


def test_copies_of_a_file_have_it_as_well(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", KEYED) as db:
        fill(db)
        db.backup(tmp_path / "copy")
        dumped = io.BytesIO()
        db.dump(dumped)
    with zlmdb.open(tmp_path / "loaded", zlmdb.Schema) as db:
        db.load(io.BytesIO(dumped.getvalue()))
    for path in ("copy", "loaded"):
        with zlmdb.open(tmp_path / path, KEYED) as db:
            assert "the key: (u.id == 7)" in plan(db)


def test_what_is_salvaged_is_read_as_it_is(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", KEYED) as db:
        fill(db)
    zlmdb.Database.salvage(tmp_path / "db", tmp_path / "new")
    with zlmdb.open(tmp_path / "new", KEYED) as db:
        assert "the key: (u.id" not in plan(db)


def test_a_check_finds_a_record_under_another_key(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", KEYED) as db:
        fill(db)
        with db.write() as t:
            raw, key = t.txn._engine_txn, t.things._storage.encode_key
            handle = db._open_store.space(t.things._storage.space).handle
            raw.put(key(100), bytes(raw.get(key(7), None, handle)), db=handle)
        (problem,) = db.check().problems
        assert (problem.kind, problem.table, problem.key) == ("record", "things", "100")
        assert "takes its keys from the field 'id', which is 7" in problem.text
