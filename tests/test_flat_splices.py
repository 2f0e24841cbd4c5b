"""Changes of some fields of FlatBuffers, which leave the other bytes as they are."""

from __future__ import annotations

import dataclasses
import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import zlmdb
from zlmdb import Table
from zlmdb.values import FlatBuffers, serializer

pytestmark = pytest.mark.twice  # encodings do not depend on the version of Python


@dataclass
class Person:
    name: str
    email: str
    age: int
    address: str


@dataclass
class Wide:
    key: UUID
    title: str
    on: bool
    at: datetime
    price: Decimal
    tags: list[str]
    blob: bytes
    ratio: float


DICE = random.Random(1)
MAKERS: dict[Any, Callable[[], Any]] = {
    "str": lambda: "".join(DICE.choices("aé中", k=DICE.choice([0, 1, 3, 4, 9, 400]))),
    "int": lambda: DICE.randint(-(2**60), 2**60),
    "float": DICE.random,
    "bool": lambda: DICE.random() < 0.5,
    "UUID": lambda: UUID(int=DICE.getrandbits(128)),
    "datetime": lambda: datetime.fromtimestamp(DICE.randint(0, 2**31), timezone.utc),
    "Decimal": lambda: Decimal(DICE.randint(0, 10**9)) / 100,
    "list[str]": lambda: [MAKERS["str"]() for _ in range(DICE.randint(0, 3))],
    "bytes": lambda: DICE.getrandbits(40).to_bytes(5, "big")[: DICE.randint(0, 5)],
}


def made(cls: Any) -> Any:
    return cls(*[MAKERS[field.type]() for field in dataclasses.fields(cls)])


def splices(cls: Any, fields: Sequence[str], read: Sequence[str] = ()) -> Any:
    codec = serializer(FlatBuffers[cls])
    return codec, codec.rewriter(fields, read)


@pytest.mark.parametrize("cls", [Person, Wide])
def test_a_change_of_some_fields_stores_the_same_bytes_as_the_whole_record(cls: Any) -> None:
    names, tried = [field.name for field in dataclasses.fields(cls)], 0
    for fields in [*combinations(names, 1), *DICE.sample([*combinations(names, 2)], 6)]:
        codec, found = splices(cls, fields, DICE.sample(names, 1))
        for _ in range(8 if found is not None else 0):
            value, other = made(cls), made(cls)
            one = found[0](codec.encode(value))
            assert type(one) is not cls
            for name in fields:
                setattr(one, name, getattr(other, name))
                setattr(value, name, getattr(other, name))
            assert found[1](one) == codec.encode(value)
            tried += 1
    assert tried > 20


def test_what_is_read_is_the_field() -> None:
    codec, (load, _) = splices(Person, ["age"], ["age", "email", "address"])
    one = load(codec.encode(Person("n", "e é", 7, "")))
    assert (one.age, one.email, one.address) == (7, "e é", "")


def test_a_text_that_two_fields_share_stays_that_of_the_other() -> None:
    codec, (load, dump) = splices(Person, ["name"])
    data = bytearray(codec.encode(Person("ann", "bob", 7, "c")))
    ann, bob = data.index(b"ann") - 4, data.index(b"bob") - 4
    reference = next(at for at in range(0, ann, 4) if at + struct.unpack_from("<I", data, at)[0] == bob)
    struct.pack_into("<I", data, reference, ann - reference)
    assert codec.decode(bytes(data)) == Person("ann", "ann", 7, "c")
    one = load(bytes(data))
    one.name = "eve"
    assert codec.decode(dump(one)) == Person("eve", "ann", 7, "c")


@pytest.mark.parametrize(("fields", "read", "kept"), [(["name"], ["address"], 66), (["address"], [], 60)])
def test_a_record_that_was_cut_is_not_changed(fields: Sequence[str], read: Sequence[str], kept: int) -> None:
    codec, (load, _) = splices(Person, fields, read)
    data = codec.encode(Person("ann", "bob", 7, "c"))
    assert len(data) == 68
    for cut in range(kept):
        with pytest.raises(Exception):  # noqa: B017, PT011  # anything: the table then asks the decoder
            load(data[:cut])


def test_values_that_do_not_fit_are_refused_and_older_records_are_changed(tmp_path: Path) -> None:
    @dataclass
    class Old:
        name: str
        age: int

    @dataclass
    class New:
        name: str
        age: int
        town: str = "Rome"

    class Before(zlmdb.Schema):
        people: Table[int, FlatBuffers[Old]]

    class After(zlmdb.Schema):
        people: Table[int, FlatBuffers[New]]

    with zlmdb.open(tmp_path / "db", Before) as db, db.write() as t:
        t.people.put_many((n, Old(f"n{n}", n)) for n in range(100))
    with zlmdb.open(tmp_path / "db", After) as db:
        with db.write() as t:
            t.people[7] = New("n7", 7, "Oslo")
            assert t.people.select().change(lambda p: replace(p, name="x" * p.age)) == 100
            assert t.people[7] == New("x" * 7, 7, "Oslo")
            assert t.people[99] == New("x" * 99, 99)
        wrong: Any = 5
        with db.write() as t, pytest.raises(zlmdb.EncodeError, match="name: expected str"):
            t.people.select().change(lambda p: replace(p, name=wrong))
