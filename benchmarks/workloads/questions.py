"""Questions that an index answers, beside sqlite3 with the same indexes, which gives tuples: persons as of ZipponDB.

Each question is asked with other values each time, as a service asks it. zlmdb gives objects, and `fields` where the
name says so.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from .inside import Inside, Question, Timed

ASKED = 200
"""How often a question is asked in a turn."""


@dataclass
class Person:
    id: int
    name: str
    email: str
    age: int
    city: str


@dataclass
class Order:
    person: int
    total: float


class Data:
    """Persons and their orders, in zlmdb and in SQLite."""

    def __init__(self, directory: Path, size: int, stack: ExitStack) -> None:
        import zlmdb

        dice = random.Random(size)
        self.size = size
        self.persons = [
            Person(n, f"name {n}", f"p{n}@example.com", dice.randrange(1000), f"city {dice.randrange(500)}")
            for n in range(size)
        ]
        orders = [Order(dice.randrange(size), n / 4) for n in range(size)]

        class Persons(zlmdb.Table[int, Person]):
            by_email = zlmdb.UniqueIndex[str]("email")
            by_age = zlmdb.Index[int]("age")
            by_city = zlmdb.Index[str]("city")

        class Orders(zlmdb.Table[int, Order]):
            by_person = zlmdb.ForeignKey[Persons]("person")

        class Tables(zlmdb.Schema):
            persons: Persons
            orders: Orders

        db = stack.enter_context(zlmdb.open(directory / "ours", Tables, durability="none"))
        with db.write() as t:
            t.persons.put_many([(person.id, person) for person in self.persons])
            t.orders.put_many(list(enumerate(orders)))
        self.t: Any = stack.enter_context(db.read())
        self.sql = sqlite3.connect(directory / "theirs.db")
        stack.callback(self.sql.close)
        self.sql.executescript(
            """
            CREATE TABLE persons (id INTEGER PRIMARY KEY, name TEXT, email TEXT UNIQUE, age INT, city TEXT);
            CREATE TABLE orders (id INTEGER PRIMARY KEY, person INT, total REAL);
            """
        )
        rows = [(p.id, p.name, p.email, p.age, p.city) for p in self.persons]
        self.sql.executemany("INSERT INTO persons VALUES (?, ?, ?, ?, ?)", rows)
        self.sql.executemany("INSERT INTO orders (person, total) VALUES (?, ?)", [(o.person, o.total) for o in orders])
        self.sql.executescript(
            """
            CREATE INDEX by_age ON persons (age); CREATE INDEX by_city ON persons (city);
            CREATE INDEX by_person ON orders (person); ANALYZE;
            """
        )
        self.picks = [dice.randrange(size) for _ in range(ASKED)]
        self.ages = [dice.randrange(980) for _ in range(ASKED)]


Ask = Callable[[Data], tuple[Callable[[int], Any], Callable[[int], Any]]]
"""Of the data, two functions of the number of the question: what zlmdb gives, and what SQLite does."""


def one(data: Data) -> Any:
    persons, picks, execute = data.t.persons, data.picks, data.sql.execute

    def ours(n: int) -> Any:
        email = f"p{picks[n]}@example.com"
        return persons.where(lambda p: p.email == email).first()

    def theirs(n: int) -> Any:
        return execute("SELECT * FROM persons WHERE email = ?", (f"p{picks[n]}@example.com",)).fetchone()

    return ours, theirs


def by_view(data: Data) -> Any:
    by_email, picks = data.t.persons.by_email, data.picks
    return lambda n: by_email[f"p{picks[n]}@example.com"], one(data)[1]


def several(data: Data) -> Any:
    persons, ages, execute = data.t.persons, data.ages, data.sql.execute

    def ours(n: int) -> Any:
        age = ages[n]
        return persons.where(lambda p: p.age == age).all()

    return ours, lambda n: execute("SELECT * FROM persons WHERE age = ?", (ages[n],)).fetchall()


def within(data: Data) -> Any:
    persons, ages, execute = data.t.persons, data.ages, data.sql.execute

    def ours(n: int) -> Any:
        age = ages[n]
        return persons.where(lambda p: age <= p.age < age + 10).all()

    def theirs(n: int) -> Any:
        return execute("SELECT * FROM persons WHERE age >= ? AND age < ?", (ages[n], ages[n] + 10)).fetchall()

    return ours, theirs


def among(data: Data) -> Any:
    persons, ages, execute = data.t.persons, data.ages, data.sql.execute
    marks = ",".join("?" * 10)

    def ours(n: int) -> Any:
        chosen = tuple(range(ages[n], ages[n] + 10))
        return persons.where(lambda p: p.age in chosen).fields(lambda p: p.name).all()

    def theirs(n: int) -> Any:
        return execute(f"SELECT name FROM persons WHERE age IN ({marks})", range(ages[n], ages[n] + 10)).fetchall()

    return ours, theirs


def ordered(data: Data) -> Any:
    persons, execute = data.t.persons, data.sql.execute
    return (
        lambda n: persons.order_by(lambda p: p.age).limit(20).all(),
        lambda n: execute("SELECT * FROM persons ORDER BY age, id LIMIT 20").fetchall(),
    )


def paged(data: Data) -> Any:
    persons, execute = data.t.persons, data.sql.execute
    after = persons.order_by(lambda p: p.age).page(50).next
    age, id = persons.order_by(lambda p: p.age).fields(lambda p: (p.age, p.id)).all()[49]
    sql = "SELECT * FROM persons WHERE (age, id) > (?, ?) ORDER BY age, id LIMIT 50"
    return (
        lambda n: persons.order_by(lambda p: p.age).page(50, after).rows,
        lambda n: execute(sql, (age, id)).fetchall(),
    )


def backwards(data: Data) -> Any:
    by_person, picks, execute = data.t.orders.by_person, data.picks, data.sql.execute
    return (
        lambda n: by_person[picks[n]].all(),
        lambda n: execute("SELECT * FROM orders WHERE person = ?", (picks[n],)).fetchall(),
    )


def linked(data: Data) -> Any:
    t, picks, execute = data.t, data.picks, data.sql.execute
    sql = "SELECT orders.* FROM orders JOIN persons ON persons.id = orders.person WHERE persons.email = ?"

    def ours(n: int) -> Any:
        email = f"p{picks[n]}@example.com"
        return t.orders.where(lambda o: t.persons[o.person].email == email).all()

    return ours, lambda n: execute(sql, (f"p{picks[n]}@example.com",)).fetchall()


@contextmanager
def ask(directory: Path, size: int, question: Ask) -> Iterator[Timed]:
    with ExitStack() as stack:
        data = Data(directory, size, stack)
        ours, theirs = question(data)
        for n in range(0, ASKED, 20):
            mine, other = ours(n), theirs(n)
            assert mine is None or not isinstance(mine, list) or len(mine) == len(other)

        def run(function: Callable[[int], Any]) -> int:
            for n in range(ASKED):
                function(n)
            return ASKED

        yield {"sqlite3": partial(run, theirs), "zlmdb": partial(run, ours)}


class Questions(Inside):
    name = "questions"
    title = "Questions that an index answers"
    sizes = {"tiny": (200,), "small": (2_000,), "window": (100_000,), "full": (100_000, 1_000_000)}
    labels = ("sqlite3", "zlmdb")
    questions = tuple(
        Question(name, partial(ask, question=question), "sqlite3", "question")
        for name, question in (
            ("one record, where() on a unique field", one), ("one record, by the unique index", by_view),
            ("where() equal, one thousandth", several), ("where() in a range, one hundredth", within),
            ("where() in ten values, one field", among), ("order by an index, the first 20", ordered),
            ("a page of 50 by its cursor", paged), ("the way back of a link", backwards),
            ("where() over a link, unique", linked),
        )
    )  # fmt: skip
