"""ZipponDB's queries: GRAB User [10; name, orders [1]] {age > 30 AND (...)}."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from typing_extensions import assert_type

import zlmdb


@dataclass
class User:
    name: str
    email: str
    age: int
    best_friend: Optional[int] = None
    friends: list[int] = field(default_factory=list[int])


@dataclass
class Order:
    user: int
    at: int
    products: list[int]


@dataclass
class Product:
    name: str
    category: int


@dataclass
class Category:
    name: str


class Users(zlmdb.Table[int, User]):
    by_name = zlmdb.Index[str]("name")
    by_best_friend = zlmdb.ForeignKey["Users"]("best_friend", on_delete="set_none", deferred=True)
    by_friend = zlmdb.ForeignKey["Users"]("friends", each=True, on_delete="set_none", deferred=True)


class Orders(zlmdb.Table[int, Order]):
    by_user = zlmdb.ForeignKey["Users"]("user", on_delete="cascade")
    by_product = zlmdb.ForeignKey["Products"]("products", each=True)


class Products(zlmdb.Table[int, Product]):
    by_category = zlmdb.ForeignKey["Categories"]("category")


class Categories(zlmdb.Table[int, Category]): ...


class Zip(zlmdb.Schema):
    users: Users
    orders: Orders
    products: Products
    categories: Categories


def grab(t: Zip) -> list[tuple[str, list[int]]]:
    # GRAB User [10; name, orders [1; at]] {age > 30 AND (best_friend IN {name = 'Bob'}
    # OR orders IN {products.category.name IN ['Book', 'Food']})}
    return (
        t.users.where(
            lambda k, u: (
                u.age > 30
                and (
                    (u.best_friend is not None and t.users[u.best_friend].name == "Bob")
                    or any(
                        any(t.categories[t.products[p].category].name in ("Book", "Food") for p in o.products)
                        for o in t.orders.by_user[k].values()
                    )
                )
            )
        )
        .limit(10)
        .fields(lambda k, u: (u.name, t.orders.by_user[k].limit(1).fields(lambda o: o.at).all()))
        .all()
    )


def grab_nested(t: Zip) -> list[tuple[str, list[tuple[str, list[str]]]]]:
    # GRAB User [2; name, friends [3; name, orders...]] ORDER BY name: links in links, each with its own limit
    rows = (
        t.users.select()
        .order_by(lambda u: u.name)
        .limit(2)
        .fields(
            lambda k, u: (
                u.name,
                t.users.by_friend[k]
                .limit(3)
                .fields(
                    lambda fk, f: (
                        f.name,
                        t.orders.by_user[fk].limit(2).fields(lambda o: t.products[o.products[0]].name).all(),
                    )
                )
                .all(),
            )
        )
    )
    assert_type(rows, zlmdb.Reads[tuple[str, list[tuple[str, list[str]]]]])
    return rows.all()


def update(t: Zip) -> int:
    # UPDATE User {name = 'Bob'} TO (email = 'x')
    with t.users.by_name["Bob"].edit() as bobs:
        n = 0
        for bob in bobs:
            bob.email = "x"
            n += 1
    return n


def delete(t: Zip) -> int:
    # DELETE User [1] {age < 18}
    return t.users.where(lambda u: u.age < 18).limit(1).delete()


def fill(t: Zip) -> None:
    for n in ("Book", "Food", "Toy"):
        t.categories.add(Category(n))
    c = list(t.categories)
    for i in range(9):
        t.products.add(Product(f"p{i}", c[i % 3]))
    for i in range(25):
        t.users.add(
            User(
                "Bob" if i % 6 == 1 else f"u{i}",
                "",
                15 + i * 3,
                None if i % 4 == 0 else 1 + i * 5 % 25,
                [1 + (i + j) % 25 for j in range(i % 4)],
            )
        )
    u, p = list(t.users), list(t.products)
    for i in range(30):
        t.orders.add(Order(u[i * 3 % 25], i, [p[(i + j) % 9] for j in range(1 + i % 2)]))


def run() -> None:
    db = zlmdb.open(None, Zip)
    with db.write() as t:
        fill(t)
    with db.read() as t:
        want: list[tuple[str, list[int]]] = []
        for k, u in t.users.items():
            bob = u.best_friend is not None and t.users[u.best_friend].name == "Bob"
            mine = [o for o in t.orders.values() if o.user == k]
            food = any(t.categories[t.products[p].category].name in {"Book", "Food"} for o in mine for p in o.products)
            if u.age > 30 and (bob or food):
                want.append((u.name, [o.at for o in mine][:1]))
        assert grab(t) == want[:10], (grab(t), want[:10])
        nested: list[tuple[str, list[tuple[str, list[str]]]]] = []
        for k, u in sorted(t.users.items(), key=lambda r: r[1].name)[:2]:
            nested.append(
                (
                    u.name,
                    [
                        (f.name, [t.products[o.products[0]].name for o in t.orders.values() if o.user == fk][:2])
                        for fk, f in t.users.items()
                        if k in f.friends
                    ][:3],
                )
            )
        assert grab_nested(t) == nested, (grab_nested(t), nested)
    with db.write() as t:
        assert update(t) == 4
        assert delete(t) == 1


if __name__ == "__main__":
    run()
