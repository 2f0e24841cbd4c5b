"""This zlmdb: queries of its tables in one read transaction; in FlatBuffers, too, for what has no index."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from .base import Asker, Order, Person, orders, persons

NEEDS = {"zlmdb": "zlmdb"}


class Scans(Asker):
    """What needs no index."""

    scans_only = True
    t: Any

    def close(self) -> None:
        self.opened.close()

    def __init__(self, directory: Path, size: int) -> None:
        import zlmdb

        class Tables(zlmdb.Schema):
            persons: zlmdb.Table[int, zlmdb.FlatBuffers[Person]]

        self.opened = ExitStack()
        db = self.opened.enter_context(zlmdb.open(directory / "flat", Tables, durability="none"))
        with db.write() as t:
            t.persons.put_many(((person.id, person) for person in persons(size)), append=True)
        self.t = self.opened.enter_context(db.read())

    def nobody(self, name: str) -> list[Any]:
        found: list[Any] = self.t.persons.where(lambda p: p.name == name).values().all()
        return found

    def names(self) -> list[Any]:
        found: list[Any] = self.t.persons.fields(lambda p: p.name).all()
        return found

    def top(self, count: int) -> list[Any]:
        found: list[Any] = self.t.persons.order_by(lambda p: p.score, reverse=True).limit(count).values().all()
        return found

    def groups(self) -> Any:
        return self.t.persons.group_by(lambda p: p.city, lambda g: (g.count(), g.fields(lambda p: p.score).sum()))


class Zlmdb(Scans):
    """A table with indexes, and one that refers to it."""

    scans_only = False

    def __init__(self, directory: Path, size: int) -> None:
        import zlmdb

        class Persons(zlmdb.Table[int, Person]):
            by_email = zlmdb.UniqueIndex[str]("email")
            by_age = zlmdb.Index[int]("age")

        class Orders(zlmdb.Table[int, Order]):
            by_person = zlmdb.ForeignKey[Persons]("person")

        class Tables(zlmdb.Schema):
            persons: Persons
            orders: Orders

        self.opened = ExitStack()
        db = self.opened.enter_context(zlmdb.open(directory / "ours", Tables, durability="none"))
        with db.write() as t:
            t.persons.put_many(((person.id, person) for person in persons(size)), append=True)
            t.orders.put_many(((order.id, order) for order in orders(size)), append=True)
        self.t = self.opened.enter_context(db.read())

    def one(self, email: str) -> Any:
        return self.t.persons.where(lambda p: p.email == email).values().first()

    def one_by_view(self, email: str) -> Any:
        return self.t.persons.by_email[email]

    def equal(self, age: int) -> list[Any]:
        found: list[Any] = self.t.persons.where(lambda p: p.age == age).values().all()
        return found

    def within(self, low: int, high: int) -> list[Any]:
        found: list[Any] = self.t.persons.where(lambda p: low <= p.age < high).values().all()
        return found

    def among(self, ages: tuple[int, ...]) -> list[Any]:
        found: list[Any] = self.t.persons.where(lambda p: p.age in ages).fields(lambda p: p.name).all()
        return found

    def ordered(self, count: int) -> list[Any]:
        found: list[Any] = self.t.persons.order_by(lambda p: p.age).limit(count).values().all()
        return found

    def cursor(self, count: int) -> Any:
        return self.t.persons.order_by(lambda p: p.age).values().page(count).next

    def page(self, count: int, cursor: Any) -> list[Any]:
        found: list[Any] = self.t.persons.order_by(lambda p: p.age).values().page(count, cursor).rows
        return found

    def orders_of(self, person: int) -> list[Any]:
        found: list[Any] = self.t.orders.by_person[person].values().all()
        return found

    def orders_by(self, email: str) -> list[Any]:
        t = self.t
        found: list[Any] = t.orders.where(lambda o: t.persons[o.person].email == email).values().all()
        return found


ASKERS = {"zlmdb": Zlmdb, "zlmdb FlatBuffers": Scans}
