"""SQLAlchemy's ORM on SQLite: mapped objects, each question in a session of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .base import Asker
from .sqlite import filled

NEEDS = {"sqlalchemy": "SQLAlchemy>=2"}


class SqlAlchemy(Asker):
    def __init__(self, directory: Path, size: int) -> None:
        import sqlalchemy as sa
        from sqlalchemy import orm

        self.sa = sa
        self.engine = sa.create_engine(f"sqlite:///{filled(directory, size)}")

        class Base(orm.DeclarativeBase):
            pass

        column = orm.mapped_column
        self.Person: Any = type("Person", (Base,), {
            "__tablename__": "persons", "id": column(sa.Integer, primary_key=True), "name": column(sa.String),
            "email": column(sa.String), "age": column(sa.Integer), "city": column(sa.String), "score": column(sa.Float),
        })  # fmt: skip
        self.Order: Any = type("Order", (Base,), {
            "__tablename__": "orders", "id": column(sa.Integer, primary_key=True),
            "person": column(sa.Integer, sa.ForeignKey("persons.id")), "total": column(sa.Float),
        })  # fmt: skip
        self.session: Any = orm.sessionmaker(self.engine)

    def close(self) -> None:
        self.engine.dispose()

    def objects(self, query: Any) -> list[Any]:
        with self.session() as session:
            return list(session.scalars(query))

    def rows(self, query: Any) -> list[Any]:
        with self.session() as session:
            return list(session.execute(query).tuples())

    def one(self, email: str) -> Any:
        with self.session() as session:
            return session.scalars(self.sa.select(self.Person).where(self.Person.email == email)).first()

    def equal(self, age: int) -> list[Any]:
        return self.objects(self.sa.select(self.Person).where(self.Person.age == age))

    def within(self, low: int, high: int) -> list[Any]:
        return self.objects(self.sa.select(self.Person).where(self.Person.age >= low, self.Person.age < high))

    def among(self, ages: tuple[int, ...]) -> list[Any]:
        return self.objects(self.sa.select(self.Person.name).where(self.Person.age.in_(ages)))

    def ordered(self, count: int) -> list[Any]:
        return self.objects(self.sa.select(self.Person).order_by(self.Person.age, self.Person.id).limit(count))

    def page(self, count: int, cursor: Any) -> list[Any]:
        Person, behind = self.Person, self.sa.tuple_(self.Person.age, self.Person.id) > self.sa.tuple_(*cursor)
        return self.objects(self.sa.select(Person).where(behind).order_by(Person.age, Person.id).limit(count))

    def orders_of(self, person: int) -> list[Any]:
        return self.objects(self.sa.select(self.Order).where(self.Order.person == person))

    def orders_by(self, email: str) -> list[Any]:
        return self.objects(self.sa.select(self.Order).join(self.Person).where(self.Person.email == email))

    def nobody(self, name: str) -> list[Any]:
        return self.objects(self.sa.select(self.Person).where(self.Person.name == name))

    def names(self) -> list[Any]:
        return self.objects(self.sa.select(self.Person.name).order_by(self.Person.id))

    def top(self, count: int) -> list[Any]:
        return self.objects(self.sa.select(self.Person).order_by(self.Person.score.desc()).limit(count))

    def groups(self) -> Any:
        Person, func = self.Person, self.sa.func
        return self.rows(self.sa.select(Person.city, func.count(), func.sum(Person.score)).group_by(Person.city))


ASKERS = {"SQLAlchemy ORM": SqlAlchemy}
