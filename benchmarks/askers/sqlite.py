"""sqlite3 of the standard library, which gives tuples. The ORMs on SQLite read the file that this one fills."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from .base import Asker, orders, persons

NEEDS = {"sqlite3": "Python itself, built with sqlite"}
FILE = "persons.sqlite"


def filled(directory: Path, size: int) -> Path:
    """The file with the records and indexes; made by who comes first."""
    path = directory / FILE
    if path.exists():
        return path
    connection = sqlite3.connect(path)
    connection.executescript(
        """
        PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;
        CREATE TABLE persons (
            id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL UNIQUE, age INTEGER NOT NULL,
            city TEXT NOT NULL, score REAL NOT NULL
        );
        CREATE TABLE orders (
            id INTEGER PRIMARY KEY, person INTEGER NOT NULL REFERENCES persons (id), total REAL NOT NULL
        );
        """
    )
    rows = ((p.id, p.name, p.email, p.age, p.city, p.score) for p in persons(size))
    connection.executemany("INSERT INTO persons VALUES (?, ?, ?, ?, ?, ?)", rows)
    connection.executemany("INSERT INTO orders VALUES (?, ?, ?)", ((o.id, o.person, o.total) for o in orders(size)))
    connection.commit()
    connection.executescript(
        "CREATE INDEX by_age ON persons (age); CREATE INDEX by_person ON orders (person); ANALYZE;"
    )
    connection.close()
    return path


class Sqlite(Asker):
    def __init__(self, directory: Path, size: int) -> None:
        self.connection = sqlite3.connect(filled(directory, size))
        self.execute = self.connection.execute

    def close(self) -> None:
        self.connection.close()

    def one(self, email: str) -> Any:
        return self.execute("SELECT * FROM persons WHERE email = ?", (email,)).fetchone()

    def equal(self, age: int) -> list[Any]:
        return self.execute("SELECT * FROM persons WHERE age = ?", (age,)).fetchall()

    def within(self, low: int, high: int) -> list[Any]:
        return self.execute("SELECT * FROM persons WHERE age >= ? AND age < ?", (low, high)).fetchall()

    def among(self, ages: tuple[int, ...]) -> list[Any]:
        marks = ",".join("?" * len(ages))
        return self.execute(f"SELECT name FROM persons WHERE age IN ({marks})", ages).fetchall()

    def ordered(self, count: int) -> list[Any]:
        return self.execute("SELECT * FROM persons ORDER BY age, id LIMIT ?", (count,)).fetchall()

    def cursor(self, count: int) -> Any:
        last = self.ordered(count)[-1]
        return last[3], last[0]

    def page(self, count: int, cursor: Any) -> list[Any]:
        query = "SELECT * FROM persons WHERE (age, id) > (?, ?) ORDER BY age, id LIMIT ?"
        return self.execute(query, (*cursor, count)).fetchall()

    def orders_of(self, person: int) -> list[Any]:
        return self.execute("SELECT * FROM orders WHERE person = ?", (person,)).fetchall()

    def orders_by(self, email: str) -> list[Any]:
        query = "SELECT orders.* FROM orders JOIN persons ON persons.id = orders.person WHERE persons.email = ?"
        return self.execute(query, (email,)).fetchall()

    def nobody(self, name: str) -> list[Any]:
        return self.execute("SELECT * FROM persons WHERE name = ?", (name,)).fetchall()

    def names(self) -> list[Any]:
        return self.execute("SELECT name FROM persons ORDER BY id").fetchall()

    def top(self, count: int) -> list[Any]:
        return self.execute("SELECT * FROM persons ORDER BY score DESC LIMIT ?", (count,)).fetchall()

    def groups(self) -> Any:
        return self.execute("SELECT city, count(*), sum(score) FROM persons GROUP BY city").fetchall()


ASKERS = {"sqlite3": Sqlite}
