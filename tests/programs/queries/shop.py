"""A shop: orders with lines, revenue, customers without orders, stock."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Optional

from typing_extensions import assert_type

import zlmdb


class State(Enum):
    OPEN = "open"
    PAID = "paid"
    SENT = "sent"


@dataclass
class Customer:
    name: str
    country: str


@dataclass
class Product:
    name: str
    price: Decimal
    stock: int


@dataclass
class Line:
    product: int
    count: int


@dataclass
class Order:
    customer: int
    day: date
    state: State = State.OPEN
    lines: list[Line] = field(default_factory=list[Line])


class Customers(zlmdb.Table[int, Customer]): ...


class Products(zlmdb.Table[int, Product]):
    by_name = zlmdb.UniqueIndex[str]("name")


class Orders(zlmdb.Table[int, Order]):
    by_customer = zlmdb.ForeignKey["Customers"]("customer")
    by_day = zlmdb.Index[date]("day")


class Shop(zlmdb.Schema):
    customers: Customers
    products: Products
    orders: Orders


def fill(t: Shop) -> None:
    for i in range(8):
        t.customers.add(Customer(f"c{i}", "NO" if i % 2 else "SE"))
    for i in range(6):
        t.products.add(Product(f"p{i}", Decimal(i) + Decimal("0.5"), i * 3))
    c, p = list(t.customers), list(t.products)
    for i in range(40):
        t.orders.add(
            Order(
                c[i * i % 7],
                date(2025, 1 + i % 12, 1 + i % 28),
                list(State)[i % 3],
                [Line(p[(i + j) % 6], j + 1) for j in range(i % 4)],
            )
        )


def total(t: Shop, o: Order) -> Decimal:
    return sum((t.products[line.product].price * line.count for line in o.lines), Decimal(0))


def revenue(t: Shop) -> dict[str, Decimal]:
    paid = t.orders.where(lambda o: o.state != State.OPEN)
    return paid.group_by(lambda o: t.customers[o.customer].country, lambda g: g.fields(lambda o: total(t, o)).sum())


def without_orders(t: Shop) -> list[str]:
    return t.customers.where(lambda k, c: not t.orders.by_customer[k]).fields(lambda c: c.name).all()


def big(t: Shop) -> zlmdb.Reads[tuple[str, Decimal]]:
    return t.orders.where(lambda o: total(t, o) > 12).fields(lambda o: (t.customers[o.customer].name, total(t, o)))


def sold(t: Shop) -> dict[int, int]:
    """By product: how many; of rows inside records, which is a loop of Python."""
    found: dict[int, int] = {}
    for lines in t.orders.where(lambda o: o.state == State.SENT).fields(lambda o: o.lines):
        for line in lines:
            found[line.product] = found.get(line.product, 0) + line.count
    return found


def send(t: Shop, until: date) -> int:
    return t.orders.where(lambda o: o.state == State.PAID and o.day <= until).change(
        lambda o: replace(o, state=State.SENT)
    )


def reorder(t: Shop) -> None:
    with t.products.where(lambda p: p.stock < 5).edit() as few:
        for product in few:
            product.stock += 10


def best_customer(t: Shop) -> Optional[str]:
    best = t.customers.select().order_by(lambda k, c: t.orders.by_customer[k].count(), reverse=True).values().first()
    assert_type(best, Optional[Customer])
    return best.name if best is not None else None


def run() -> None:
    db = zlmdb.open(None, Shop)
    with db.write() as t:
        fill(t)
    with db.read() as t:
        want: dict[str, Decimal] = {}
        for o in t.orders.values():
            if o.state is not State.OPEN:
                c = t.customers[o.customer].country
                want[c] = want.get(c, Decimal(0)) + total(t, o)
        assert revenue(t) == want, (revenue(t), want)
        assert without_orders(t) == [
            c.name for k, c in t.customers.items() if not any(o.customer == k for o in t.orders.values())
        ]
        assert big(t).all() == [
            (t.customers[o.customer].name, total(t, o)) for o in t.orders.values() if total(t, o) > 12
        ]
        assert sum(sold(t).values()) == sum(
            line.count for o in t.orders.values() if o.state is State.SENT for line in o.lines
        )
    with db.write() as t:
        n = sum(1 for o in t.orders.values() if o.state is State.PAID and o.day <= date(2025, 6, 30))
        assert send(t, date(2025, 6, 30)) == n
        few = {k: p.stock for k, p in t.products.items()}
        reorder(t)
        assert {k: p.stock for k, p in t.products.items()} == {k: s + 10 if s < 5 else s for k, s in few.items()}


if __name__ == "__main__":
    run()
