"""ZipponDB's links, limits inside links, updates and deletes by filter: what its ten published queries leave out.

Its users, categories and items, and as many orders as users, of one to three items each. The links have indexes, as
ZipponDB has them; nothing else has. Each store writes a query or a change in one transaction, without sync. What a
deletion takes out is put back before the next turn, outside the clock.
"""

from __future__ import annotations

import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

from ..records import CHUNK, Category, Item, Order, Person, goods, persons
from .inside import Inside, Prepared, Question, Timed

BASE = "sqlite3"
FIRST = datetime(2026, 1, 1, tzinfo=timezone.utc)
GONE = "Eve"
"""The name of the users who are deleted."""
REPEATED = 20
"""So often a query that takes less than a tenth of a millisecond is asked in a round."""


def orders(size: int) -> Iterator[tuple[UUID, Order]]:
    """As many as users, a second apart; keys ascend."""
    dice, users = random.Random(3), [key for key, _ in persons(size)]
    items, step = [key for key, _ in goods()[1]], (1 << 128) // (size + 1)
    for start in range(0, size, CHUNK):
        numbers = range(start, min(start + CHUNK, size))
        for n, user in zip(numbers, dice.choices(users, k=len(numbers))):
            chosen = dice.sample(items, dice.randint(1, 3))
            order = Order(chosen, [dice.randint(1, 9) for _ in chosen], FIRST + timedelta(seconds=n), user)
            yield UUID(int=n * step + 1), order


class Shop:
    """The records in a store, and what is asked and done; texts are given as texts, times as texts of ISO 8601."""

    def close(self) -> None:
        raise NotImplementedError

    def items_with_category(self) -> list[tuple[str, str]]:
        raise NotImplementedError

    def two_items_each(self) -> list[Any]:
        """The name of each category, and of its first two items the name and price."""
        raise NotImplementedError

    def first_order_each(self) -> list[Any]:
        """Of ten users older than 60 the name, and the time of the first order or none."""
        raise NotImplementedError

    def orders_of(self, name: str) -> list[Any]:
        """The times of the orders of users with this name."""
        raise NotImplementedError

    def orders_in(self, category: str) -> list[Any]:
        """The times of the orders that have an item of this category."""
        raise NotImplementedError

    def move(self, name: str, address: str) -> int:
        """Change the address of users with this name, by one statement; how many there are."""
        raise NotImplementedError

    def move_each(self, name: str, address: str) -> int:
        """The same in a loop of the program, which might give each user another address."""
        raise NotImplementedError

    def delete_before(self, at: datetime) -> int:
        """Delete the orders before a time; how many."""
        raise NotImplementedError

    def delete_users(self, name: str) -> int:
        """Delete users with this name, with their orders; how many users."""
        raise NotImplementedError

    def restore(self) -> None:
        """Put back what is missing."""
        raise NotImplementedError


class Zlmdb(Shop):
    def __init__(self, directory: Path, size: int, codec: str = "") -> None:
        import zlmdb

        self.opened, self.size = ExitStack(), size
        kept: Any = getattr(zlmdb, codec) if codec else None
        person, item, order = (kept[model] if kept else model for model in (Person, Item, Order))

        class Users(zlmdb.Table[UUID, person]):  # type: ignore[valid-type]
            """Users by key."""

        class Categories(zlmdb.Table[UUID, Category]):
            """Categories by key."""

        class Items(zlmdb.Table[UUID, item]):  # type: ignore[valid-type]
            by_category = zlmdb.ForeignKey[Categories]("category")

        class Orders(zlmdb.Table[UUID, order]):  # type: ignore[valid-type]
            by_user = zlmdb.ForeignKey[Users]("from_", on_delete="cascade")
            by_item = zlmdb.ForeignKey[Items]("items", each=True)

        class Tables(zlmdb.Schema):
            users: Users
            categories: Categories
            items: Items
            orders: Orders

        self.db = self.opened.enter_context(zlmdb.open(directory / f"ours{codec}", Tables, durability="none"))
        categories, items = goods()
        with self.db.write() as t:
            t.users.put_many(persons(size), append=True)
            t.categories.put_many(categories)
            t.items.put_many(items)
            t.orders.put_many(orders(size), append=True)

    def close(self) -> None:
        self.opened.close()

    def items_with_category(self) -> Any:
        with self.db.read() as t:
            return t.items.fields(lambda i: (i.name, t.categories[i.category].name)).all()

    def two_items_each(self) -> Any:
        with self.db.read() as t:
            return t.categories.fields(
                lambda k, c: (c.name, t.items.by_category[k].limit(2).fields(lambda i: (i.name, i.price)).all())
            ).all()

    def first_order_each(self) -> Any:
        with self.db.read() as t:
            return t.users.where(lambda u: u.age > 60).limit(10).fields(
                lambda k, u: (u.name, t.orders.by_user[k].limit(1).fields(lambda o: o.at).all())
            ).all()  # fmt: skip

    def orders_of(self, name: str) -> Any:
        with self.db.read() as t:
            return t.orders.where(lambda o: t.users[o.from_].name == name).fields(lambda o: o.at).all()

    def orders_in(self, category: str) -> Any:
        with self.db.read() as t:
            return t.orders.where(
                lambda o: any(t.categories[t.items[i].category].name == category for i in o.items)
            ).fields(lambda o: o.at).all()  # fmt: skip

    def move(self, name: str, address: str) -> int:
        with self.db.write() as t:
            found: int = t.users.where(lambda u: u.name == name).change(lambda u: replace(u, address=address))
            return found

    def move_each(self, name: str, address: str) -> int:
        done = 0
        with self.db.write() as t, t.users.where(lambda u: u.name == name).edit() as users:
            for user in users:
                user.address = address
                done += 1
        return done

    def delete_before(self, at: datetime) -> Any:
        with self.db.write() as t:
            return t.orders.where(lambda o: o.at < at).delete()

    def delete_users(self, name: str) -> Any:
        with self.db.write() as t:
            return t.users.where(lambda u: u.name == name).delete()

    def restore(self) -> None:
        with self.db.write() as t:
            if len(t.users) < self.size:
                t.users.put_many((key, user) for key, user in persons(self.size) if user.name == GONE)
            if len(t.orders) < self.size:
                t.orders.put_many((key, order) for key, order in orders(self.size) if key not in t.orders)


class Sqlite(Shop):
    """Normal forms: the items of an order are rows of their own, in an order."""

    def __init__(self, directory: Path, size: int) -> None:
        self.size = size
        self.connection = sqlite3.connect(directory / "theirs.sqlite", isolation_level=None)
        self.execute = self.connection.execute
        self.connection.executescript(
            """
            PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA foreign_keys=ON;
            CREATE TABLE users (
                key BLOB PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL, age INTEGER NOT NULL,
                address TEXT NOT NULL
            ) WITHOUT ROWID;
            CREATE TABLE categories (key BLOB PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID;
            CREATE TABLE items (
                key BLOB PRIMARY KEY, name TEXT NOT NULL, price REAL NOT NULL, category BLOB REFERENCES categories (key)
            ) WITHOUT ROWID;
            CREATE TABLE orders (
                key BLOB PRIMARY KEY, at TEXT NOT NULL, from_ BLOB REFERENCES users (key) ON DELETE CASCADE
            ) WITHOUT ROWID;
            CREATE TABLE parts (
                "order" BLOB REFERENCES orders (key) ON DELETE CASCADE, place INTEGER NOT NULL,
                item BLOB REFERENCES items (key), quantity INTEGER NOT NULL, PRIMARY KEY ("order", place)
            ) WITHOUT ROWID;
            CREATE INDEX by_category ON items (category); CREATE INDEX by_user ON orders (from_);
            CREATE INDEX by_item ON parts (item);
            """
        )
        categories, items = goods()
        self.execute("BEGIN")
        self.put("categories", ((key.bytes, category.name) for key, category in categories))
        self.put("items", ((key.bytes, item.name, item.price, item.category.bytes) for key, item in items))
        self.put_users(persons(size))
        self.put_orders(orders(size))
        self.execute("COMMIT")
        self.execute("ANALYZE")

    def put(self, table: str, rows: Iterator[tuple[Any, ...]]) -> None:
        marks = {"categories": 2, "items": 4, "users": 5, "orders": 3, "parts": 4}[table]
        self.connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * marks)})", rows)

    def put_users(self, pairs: Iterator[tuple[UUID, Person]]) -> None:
        self.put("users", ((key.bytes, one.name, one.email, one.age, one.address) for key, one in pairs))

    def put_orders(self, pairs: Iterator[tuple[UUID, Order]]) -> None:
        for key, order in pairs:
            self.execute("INSERT INTO orders VALUES (?, ?, ?)", (key.bytes, order.at.isoformat(), order.from_.bytes))
            chosen = zip(count(), order.items, order.quantity)
            self.put("parts", ((key.bytes, place, item.bytes, number) for place, item, number in chosen))

    def close(self) -> None:
        self.connection.close()

    def items_with_category(self) -> Any:
        return self.execute(
            "SELECT items.name, categories.name FROM items JOIN categories ON categories.key = items.category"
        ).fetchall()

    def two_items_each(self) -> Any:
        query = "SELECT name, price FROM items WHERE category = ? ORDER BY key LIMIT 2"
        categories = self.execute("SELECT key, name FROM categories ORDER BY key").fetchall()
        return [(name, self.execute(query, (key,)).fetchall()) for key, name in categories]

    def first_order_each(self) -> Any:
        return self.execute(
            "SELECT users.name, (SELECT at FROM orders WHERE orders.from_ = users.key ORDER BY orders.key LIMIT 1)"
            " FROM users WHERE age > 60 ORDER BY users.key LIMIT 10"
        ).fetchall()

    def orders_of(self, name: str) -> Any:
        return self.execute(
            "SELECT orders.at FROM orders JOIN users ON users.key = orders.from_ WHERE users.name = ?", (name,)
        ).fetchall()

    def orders_in(self, category: str) -> Any:
        return self.execute(
            'SELECT at FROM orders WHERE key IN (SELECT "order" FROM parts JOIN items ON items.key = parts.item'
            " JOIN categories ON categories.key = items.category WHERE categories.name = ?)", (category,)
        ).fetchall()  # fmt: skip

    def move(self, name: str, address: str) -> int:
        return self.execute("UPDATE users SET address = ? WHERE name = ?", (address, name)).rowcount

    def move_each(self, name: str, address: str) -> int:
        self.execute("BEGIN")
        keys = self.execute("SELECT key FROM users WHERE name = ?", (name,)).fetchall()
        self.connection.executemany("UPDATE users SET address = ? WHERE key = ?", ((address, key) for (key,) in keys))
        self.execute("COMMIT")
        return len(keys)

    def delete_before(self, at: datetime) -> int:
        return self.execute("DELETE FROM orders WHERE at < ?", (at.isoformat(),)).rowcount

    def delete_users(self, name: str) -> int:
        return self.execute("DELETE FROM users WHERE name = ?", (name,)).rowcount

    def restore(self) -> None:
        self.execute("BEGIN")
        if self.execute("SELECT count(*) FROM users").fetchone()[0] < self.size:
            self.put_users((key, user) for key, user in persons(self.size) if user.name == GONE)
        if self.execute("SELECT count(*) FROM orders").fetchone()[0] < self.size:
            there = {key for (key,) in self.execute("SELECT key FROM orders")}
            self.put_orders((key, order) for key, order in orders(self.size) if key.bytes not in there)
        self.execute("COMMIT")


@dataclass(frozen=True)
class Asked:
    """*do* is handed a shop, the number of records, and a text that differs from turn to turn.

    *changes*: it gives the number of records that it changed. *unit*: what the time is told for; one query, or each of
    the users or orders that are searched.
    """

    name: str
    do: Callable[[Shop, int, str], Any]
    changes: bool = False
    unit: str = "record searched"


CHARLIE, OTHER = "Charlie", "Other"
ASKED = (
    Asked("GRAB Item [name, category [name]]", lambda shop, *_: shop.items_with_category(), unit="query"),
    Asked("GRAB Category [name, items [2; name, price]]", lambda shop, *_: shop.two_items_each(), unit="query"),
    Asked("GRAB User [10; name, orders [1; at]] {age > 60}", lambda shop, *_: shop.first_order_each(), unit="query"),
    Asked("GRAB Order [at] {from IN {name = 'Charlie'}}", lambda shop, *_: shop.orders_of(CHARLIE)),
    Asked("GRAB Order [at] {items IN {category IN {name = 'Other'}}}", lambda shop, *_: shop.orders_in(OTHER)),
    Asked("UPDATE User {name = 'Charlie'} TO (address = ...)", lambda shop, _, text: shop.move(CHARLIE, text), True),
    Asked("UPDATE User {name = 'Charlie'}, each by a loop", lambda shop, _, text: shop.move_each(CHARLIE, text), True),
    Asked("DELETE Order {at < ...}, one hundredth", lambda shop, size, _: shop.delete_before(hundredth(size)), True),
    Asked("DELETE User {name = 'Eve'}, with the orders", lambda shop, *_: shop.delete_users(GONE), True),
)


def hundredth(size: int) -> datetime:
    return FIRST + timedelta(seconds=size // 100 + 1)


def plain(answer: Any) -> Any:
    """The same of tuples and lists, of times and their texts; one order, or None, for a list of at most one."""
    if isinstance(answer, datetime):
        return answer.isoformat()
    if isinstance(answer, (list, tuple)):
        found = [plain(one) for one in answer]
        return found[0] if len(found) == 1 else found or None
    return answer


@contextmanager
def ask(directory: Path, size: int, asked: Asked, shops: dict[str, Shop]) -> Iterator[Timed]:
    turns = count()
    expected = None
    for label, shop in shops.items():
        found = asked.do(shop, size, "Here")
        found = found if asked.changes else sorted(map(repr, map(plain, found)))
        if found != (expected := expected or found):
            raise AssertionError(f"{label} answers otherwise to: {asked.name}")

    def run(shop: Shop) -> int:
        if asked.unit == "query":
            for _ in range(REPEATED):
                asked.do(shop, size, "")
            return REPEATED
        asked.do(shop, size, f"street {next(turns)}")
        return size

    def before(shop: Shop) -> None:
        if asked.changes:
            shop.restore()

    yield {label: Prepared(partial(run, shop), partial(before, shop)) for label, shop in shops.items()}
    for shop in shops.values():
        before(shop)


class ZippondbLinks(Inside):
    name = "zippondb_links"
    title = "ZipponDB: links, updates and deletes by filter"
    filled_once = True
    sizes = {"tiny": (60,), "small": (500,), "window": (100_000,), "full": (100_000, 1_000_000)}
    labels = ("sqlite3", "zlmdb", "zlmdb FlatBuffers")
    questions = tuple(Question(one.name, partial(ask, asked=one), BASE, one.unit) for one in ASKED)

    def measure(self, size: int, rounds: int) -> dict[str, Any]:
        """As of all, but each store is filled once, for all questions."""
        rows: dict[str, Any] = {}
        with tempfile.TemporaryDirectory(prefix="zlmdb-bench-") as name, ExitStack() as stack:
            directory = Path(name)
            shops: dict[str, Shop] = {
                "sqlite3": Sqlite(directory, size), "zlmdb": Zlmdb(directory, size),
                "zlmdb FlatBuffers": Zlmdb(directory, size, "FlatBuffers"),
            }  # fmt: skip
            for shop in shops.values():
                stack.callback(shop.close)
            for question in self.questions:
                with question.ask(directory, size, shops=shops) as timed:
                    self._interleave(question, timed, rounds, rows, size)
        return rows
