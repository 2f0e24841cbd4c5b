"""peewee on SQLite: model objects, and tuples where one field or sums are asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .base import Asker
from .sqlite import filled

NEEDS = {"peewee": "peewee"}


class Peewee(Asker):
    def __init__(self, directory: Path, size: int) -> None:
        import peewee as pw

        self.pw = pw
        self.db = pw.SqliteDatabase(str(filled(directory, size)), pragmas={"journal_mode": "wal"})
        self.db.connect()
        db = self.db

        class Person(pw.Model):  # type: ignore[misc]
            id = pw.BigIntegerField(primary_key=True)
            name, email, city = pw.TextField(), pw.TextField(unique=True), pw.TextField()
            age, score = pw.BigIntegerField(index=True), pw.DoubleField()

            class Meta:
                database, table_name = db, "persons"

        class Order(pw.Model):  # type: ignore[misc]
            id = pw.BigIntegerField(primary_key=True)
            person = pw.ForeignKeyField(Person, column_name="person", backref="orders")
            total = pw.DoubleField()

            class Meta:
                database, table_name = db, "orders"

        self.Person, self.Order = Person, Order

    def close(self) -> None:
        self.db.close()

    def one(self, email: str) -> Any:
        return self.Person.get_or_none(self.Person.email == email)

    def equal(self, age: int) -> list[Any]:
        return list(self.Person.select().where(self.Person.age == age))

    def within(self, low: int, high: int) -> list[Any]:
        return list(self.Person.select().where((self.Person.age >= low) & (self.Person.age < high)))

    def among(self, ages: tuple[int, ...]) -> list[Any]:
        return list(self.Person.select(self.Person.name).where(self.Person.age.in_(ages)).tuples())

    def ordered(self, count: int) -> list[Any]:
        return list(self.Person.select().order_by(self.Person.age, self.Person.id).limit(count))

    def page(self, count: int, cursor: Any) -> list[Any]:
        Person = self.Person
        behind = self.pw.Tuple(Person.age, Person.id) > cursor
        return list(Person.select().where(behind).order_by(Person.age, Person.id).limit(count))

    def orders_of(self, person: int) -> list[Any]:
        return list(self.Order.select().where(self.Order.person == person))

    def orders_by(self, email: str) -> list[Any]:
        return list(self.Order.select().join(self.Person).where(self.Person.email == email))

    def nobody(self, name: str) -> list[Any]:
        return list(self.Person.select().where(self.Person.name == name))

    def names(self) -> list[Any]:
        return list(self.Person.select(self.Person.name).order_by(self.Person.id).tuples().iterator())

    def top(self, count: int) -> list[Any]:
        return list(self.Person.select().order_by(self.Person.score.desc()).limit(count))

    def groups(self) -> Any:
        Person, fn = self.Person, self.pw.fn
        query = Person.select(Person.city, fn.COUNT(Person.id), fn.SUM(Person.score)).group_by(Person.city)
        return list(query.tuples())


ASKERS = {"peewee": Peewee}
