"""ObjectBox: its queries are built once and asked again with other parameters, as its documentation recommends.

Its Python API has no queries of one property, and no aggregates. To order, it sorts all that match.
"""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from ..contenders.base import Cannot
from .base import Asker, orders, persons

NEEDS = {"objectbox": "objectbox"}
AT_ONCE = 10_000
"""The most objects that its ``put`` takes."""


class Box(Asker):
    slow = frozenset({"ordered", "page"})
    unable: ClassVar = {
        "names": "its Python API has no query of one property: it would make all objects",
        "groups": "its Python API has no aggregates: it would make all objects",
    }

    def __init__(self, directory: Path, size: int) -> None:
        if sys.implementation.name != "cpython":
            raise Cannot("its library is loaded by ctypes for CPython only")
        import objectbox as ob

        @ob.Entity()
        class Person:
            id = ob.Id(assignable=True)
            name, email, city = ob.String(), ob.String(index=ob.Index()), ob.String()
            age, score = ob.Int64(index=ob.Index()), ob.Float64()

        @ob.Entity()
        class Order:
            id = ob.Id(assignable=True)
            person = ob.Relation(Person)
            total = ob.Float64()

        model = ob.Model()
        model.entity(Person)
        model.entity(Order)
        place = directory / "objectbox"
        place.mkdir()
        self.store = ob.Store(
            model=model, model_json_file=str(place / "model.json"), directory=str(place / "data"),
            max_db_size_in_kb=16 << 20,
        )  # fmt: skip
        self.persons, self.orders = self.store.box(Person), self.store.box(Order)
        with self.store.write_tx():
            for box, entity, records in ((self.persons, Person, persons(size)), (self.orders, Order, orders(size))):
                rest = iter(records)
                while batch := [entity(**vars(record)) for record in islice(rest, AT_ONCE)]:
                    box.put(batch)
        self.Person, self.Order = Person, Order
        self.by_email = self.persons.query(Person.email.equals("")).build()
        self.by_age = self.persons.query(Person.age.equals(0)).build()
        self.by_ages = self.persons.query(Person.age.between(0, 1)).build()
        self.in_ages = self.persons.query(Person.age.one_of([0, 1])).build()
        self.in_order = self.persons.query().order(Person.age).build()
        behind = Person.age.greater_than(0).alias("above") | (
            Person.age.equals(0).alias("at") & Person.id.greater_than(0).alias("behind")
        )
        self.next = self.persons.query(behind).order(Person.age).build()
        self.by_person = self.orders.query(Order.person.equals(0)).build()
        linked = self.orders.query()
        linked.link(Order.person, Person.email.equals("").alias("email"))
        self.by_link = linked.build()
        self.by_name = self.persons.query(Person.name.equals("")).build()
        self.best = self.persons.query().order_desc(Person.score).build()

    def close(self) -> None:
        self.store.close()

    def one(self, email: str) -> Any:
        return self.by_email.set_parameter(self.Person.email, email).find_first()

    def equal(self, age: int) -> list[Any]:
        return self.by_age.set_parameter(self.Person.age, age).find()

    def within(self, low: int, high: int) -> list[Any]:
        return self.by_ages.set_parameters(self.Person.age, low, high - 1).find()

    def among(self, ages: tuple[int, ...]) -> list[Any]:
        return [person.name for person in self.in_ages.set_parameter(self.Person.age, list(ages)).find()]

    def ordered(self, count: int) -> list[Any]:
        return self.in_order.limit(count).find()

    def page(self, count: int, cursor: Any) -> list[Any]:
        age, id = cursor
        query = self.next.set_parameter_alias("above", age).set_parameter_alias("at", age)
        return query.set_parameter_alias("behind", id).limit(count).find()

    def orders_of(self, person: int) -> list[Any]:
        return self.by_person.set_parameter(self.Order.person, person).find()

    def orders_by(self, email: str) -> list[Any]:
        return self.by_link.set_parameter_alias("email", email).find()

    def nobody(self, name: str) -> list[Any]:
        return self.by_name.set_parameter(self.Person.name, name).find()

    def top(self, count: int) -> list[Any]:
        return self.best.limit(count).find()


ASKERS = {"ObjectBox": Box}
