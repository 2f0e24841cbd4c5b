"""Objects inside a FlatBuffers record, and lists, which a query reads alone, are those of the whole record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Optional, TypedDict, Union

import pytest

import zlmdb
from zlmdb.values import FlatBuffers, FlatBuffersView, load, serializer

pytestmark = pytest.mark.twice  # encodings do not depend on the version of Python


class Size(TypedDict):
    wide: int
    note: Optional[str]


@dataclass
class Spot:
    lat: float
    lon: float = 0.0
    name: Optional[str] = None


@dataclass
class Circle:
    radius: int


@dataclass
class Address:
    street: str
    city: str
    number: int
    spot: Optional[Spot]
    size: Optional[Size] = None


@dataclass
class Person:
    name: str
    home: Address
    work: Optional[Address]
    tags: list[str]
    scores: Optional[tuple[int, ...]]
    shape: Optional[Union[Circle, Spot]]
    spots: list[Spot] = field(default_factory=list[Spot])


def people() -> dict[int, Person]:
    cities, spots = ("Rome", "Oslo", "Bergen"), (None, Spot(1.5), Spot(2.5, 3.5, "here"))
    found = {}
    for n in range(36):
        size: Size = {"wide": n, "note": None if n % 2 else "n"}
        home = Address(f"street {n}", cities[n % 3], n, spots[n % 4 % 3], size if n % 5 else None)
        work = None if n % 4 == 0 else Address("work", cities[n % 2], -n, spots[n % 5 % 3])
        shapes = (None, Circle(n), Spot(float(n)))
        tags = [f"t{one}" for one in range(n % 6)]
        scores = None if n % 3 == 0 else tuple(range(n % 4))
        found[n] = Person(f"p{n}", home, work, tags, scores, shapes[n % 3], [Spot(1.0)] * (n % 3))
    return found


CONDITIONS: list[Callable[[Person], Any]] = [
    lambda p: p.home.city == "Rome",
    lambda p: p.home.number > 7 and p.name != "p9",
    lambda p: p.work is not None and p.work.city == "Oslo",
    lambda p: p.work is None or p.work.spot is None or p.work.spot.lat > 2,
    lambda p: p.home.spot is not None and p.home.spot.name is None,
    lambda p: p.home.size is not None and p.home.size["note"] is not None and p.home.size["wide"] < 20,
    lambda p: "t3" in p.tags,
    lambda p: any(one == "t4" for one in p.tags) or not p.spots,
    lambda p: len(p.tags) > 2,
    lambda p: p.scores is not None and len(p.scores) == 2,
    lambda p: sum(one.lat for one in p.spots) > 1.5,
    lambda p: isinstance(p.shape, Circle) and p.shape.radius > 9,
]
GIVEN: list[Callable[[Person], Any]] = [
    lambda p: p.home.city,
    lambda p: (p.name, p.home.spot, p.tags),
    lambda p: (p.home, p.home.city, len(p.spots)),
    lambda p: None if p.work is None or p.work.spot is None else p.work.spot.lat,
    lambda p: (p.shape, p.scores),
    lambda p: (p.work is None, p.home.size),
]


class Kept(zlmdb.PersistentMap[int, FlatBuffers[Person]]):
    """People, in a map of the older interface, whose transactions lend buffers."""


def schema(values: Any) -> type[Any]:
    return type("Store", (zlmdb.Schema,), {"__annotations__": {"people": zlmdb.Table[int, values]}})


def test_parts_of_records_are_those_of_the_whole_records() -> None:
    rows = people()
    with zlmdb.open(None, schema(FlatBuffers[Person])) as db:
        with db.write() as t:
            t.people.update(rows)
        for condition, given in zip(CONDITIONS, GIVEN * 2):
            wanted = [key for key, one in rows.items() if condition(one)]
            with db.read() as t:
                assert t.people.where(condition).values().all() == [rows[key] for key in wanted]
                assert list(t.people.where(condition).fields(given)) == [given(rows[key]) for key in wanted]
        with db.read() as t:
            ordered = t.people.select().order_by(lambda p: (p.home.city, p.home.number)).limit(9)
            assert [p.name for p in ordered.values()] == [
                p.name for p in sorted(rows.values(), key=lambda p: (p.home.city, p.home.number))[:9]
            ]
            groups = t.people.select().group_by(lambda p: p.home.city, lambda g: g.count())
            assert list(groups.items()) == [("Rome", 12), ("Oslo", 12), ("Bergen", 12)]


def test_parts_of_lent_buffers_are_found() -> None:
    rows = people()
    table = Kept(1)
    with zlmdb.Database() as db:
        with db.begin(write=True) as txn:
            for key, person in rows.items():
                table[txn, key] = person
        with db.begin(buffers=True) as txn:
            bound = table.bind(txn)
            for condition, given in zip(CONDITIONS, GIVEN * 2):
                wanted = [key for key, one in rows.items() if condition(one)]
                assert list(bound.where(condition).fields(given)) == [given(rows[key]) for key in wanted]


def test_parts_of_views_are_found() -> None:
    rows = people()
    with zlmdb.open(None, schema(FlatBuffersView[Person])) as db:
        with db.write() as t:
            t.people.update(rows)
        with db.read() as t:
            for condition in CONDITIONS[:-1]:
                wanted = [key for key, one in rows.items() if condition(one)]
                assert list(t.people.where(condition).keys()) == wanted
                given = t.people.where(condition).fields(lambda p: (p.home.city, p.work is None, len(p.spots)))
                assert list(given) == [(p.home.city, p.work is None, len(p.spots)) for p in map(rows.get, wanted) if p]
            views = t.people.select().fields(lambda p: (p.home, p.spots)).all()
            assert [(load(home), [load(one) for one in spots]) for home, spots in views] == [
                (p.home, p.spots) for p in rows.values()
            ]


@dataclass
class OldAddress:
    street: str
    city: str
    number: int
    spot: Optional[Spot]


@dataclass
class OldPerson:
    name: str
    home: OldAddress
    work: Optional[OldAddress]
    tags: list[str]
    scores: Optional[tuple[int, ...]]
    shape: Optional[Union[Circle, Spot]]
    spots: list[Spot] = field(default_factory=list[Spot])


def test_objects_that_an_older_class_wrote_are_read_as_a_whole() -> None:
    rows, write = people(), serializer(FlatBuffers[OldPerson]).encode

    def old(one: Address) -> OldAddress:
        return OldAddress(one.street, one.city, one.number, one.spot)

    with zlmdb.open(None, schema(FlatBuffers[Person])) as db:
        with db.write() as t:
            t.people.update(rows)
            for key, one in rows.items():
                if key % 2:
                    work = None if one.work is None else old(one.work)
                    person = OldPerson(one.name, old(one.home), work, one.tags, one.scores, one.shape, one.spots)
                    t.people._raw.put(t.people._storage.encode_key(key), write(person), db=t.people._db)
        with db.read() as t:
            stored = dict(t.people.items())
            assert stored[1].home.size is None
            assert stored[2] == rows[2]
            for condition, given in zip(CONDITIONS, GIVEN * 2):
                wanted = [key for key, one in stored.items() if condition(one)]
                assert list(t.people.where(condition).fields(given)) == [given(stored[key]) for key in wanted]


def test_a_part_that_is_missing_raises_what_python_raises() -> None:
    with zlmdb.open(None, schema(FlatBuffers[Person])) as db, db.write() as t:
        t.people.update(people())
        assert t.people.where(lambda p: p.home.number >= 0).count() == 36
        for ask in (lambda p: (p.work or p.home).spot.lat > 0, lambda p: p.name != "" and p.work.spot.lat > 0):
            with pytest.raises((AttributeError, TypeError), match="'NoneType' object has no attribute"):
                list(t.people.where(ask).keys())


def test_a_broken_part_is_no_value_and_what_is_beside_it_is_not_read() -> None:
    with zlmdb.open(None, schema(FlatBuffers[Person])) as db:
        with db.write() as t:
            t.people.update(people())
            key = t.people._storage.encode_key(13)
            stored = t.people._raw.get(key, None, t.people._db)
            t.people._raw.put(key, stored.replace(b"Oslo", b"\xff\xff\xff\xff"), db=t.people._db)
        with db.read() as t:
            assert t.people.where(lambda p: p.home.street == "street 13" and len(p.tags) == 1).count() == 1
            with pytest.raises(zlmdb.DecodeError, match="13"):
                t.people.where(lambda p: p.home.city == "Rome").count()
            with pytest.raises(zlmdb.DecodeError, match="13"):
                t.people.fields(lambda p: (p.name, p.home.city)).all()


@dataclass
class Visit:
    guest: int
    host: int = 0


class Visits(zlmdb.Schema):
    guests: zlmdb.Table[int, FlatBuffers[Guest]]
    visits: zlmdb.Table[int, FlatBuffers[Visit]]


@dataclass
class OldGuest:
    name: str
    mail: str


@dataclass
class Guest:
    name: str
    mail: str
    age: Optional[int] = None
    host: int = 0
    tags: list[str] = field(default_factory=list[str])


LINKED: tuple[Callable[[Any], Callable[[Visit], Any]], ...] = (
    lambda t: lambda v: (v.host, t.guests[v.guest].name),
    lambda t: lambda v: (t.guests[v.guest].age, t.guests[v.guest].name.upper()),
    lambda t: lambda v: t.guests[t.guests[v.guest].host].name,
    lambda t: lambda v: (t.guests[t.guests[v.guest].host].age, t.guests[v.guest].host),
)


def test_of_linked_records_the_fields_that_are_asked_for_are_read_alone() -> None:
    with zlmdb.open(None, Visits) as db:
        with db.write() as t:
            t.guests.update({n: Guest(f"n{n}", "mail", n if n % 3 else None, n // 2, ["a"] * n) for n in range(40)})
            t.visits.update({n: Visit(n * 7 % 40, n) for n in range(80)})
            old, raw = serializer(FlatBuffers[OldGuest]).encode, t.guests._raw
            for n in range(0, 40, 5):  # in another layout
                raw.put(t.guests._storage.encode_key(n), old(OldGuest(f"o{n}", "mail")), db=t.guests._db)
        with db.read() as t:
            stored = {n: t.guests[n] for n in range(40)}
            assert stored[5] == Guest("o5", "mail")
            for function in LINKED:
                wanted = [function(t)(visit) for visit in t.visits.values()]
                assert t.visits.fields(function(t)).all() == list(t.visits.fields(function(t))) == wanted
                first = [key for key, visit in t.visits.items() if function(t)(visit) == wanted[1]]
                assert t.visits.where(lambda v: function(t)(v) == wanted[1]).keys().all() == first  # noqa: B023
            with pytest.raises(KeyError, match="42"):
                t.visits.fields(lambda v: t.guests[t.guests[v.guest].host + 28].name).all()
        with db.write() as t:  # the other text is broken
            for n in range(40):
                key = t.guests._storage.encode_key(n)
                data = t.guests._raw.get(key, None, t.guests._db).replace(b"mail", b"\xff\xff\xff\xff")
                t.guests._raw.put(key, data, db=t.guests._db)
        with db.read() as t:
            fits = {n for n, visit in t.visits.items() if visit.guest % 5 and (visit.guest // 2) % 5}
            some = t.visits.where(lambda k, v: v.guest % 5 != 0 and v.guest // 2 % 5 != 0)
            assert some.fields(lambda v: t.guests[v.guest].name).all() == [
                stored[n * 7 % 40].name for n in range(80) if n in fits
            ]
            assert some.fields(lambda v: t.guests[t.guests[v.guest].host].age).all() == [
                stored[stored[n * 7 % 40].host].age for n in range(80) if n in fits
            ]
            with pytest.raises(zlmdb.DecodeError, match="guests"):
                t.visits.fields(lambda v: t.guests[v.guest].mail).all()
