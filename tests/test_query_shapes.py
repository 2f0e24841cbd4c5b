"""Queries in the many ways in which programs write them: the rows of plain Python, by an index where one helps."""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, Optional

import pytest

import zlmdb
from zlmdb import desc

pytestmark = pytest.mark.twice  # plans do not depend on the version of Python


class Status(enum.Enum):
    NEW = "new"
    PAID = "paid"
    SENT = "sent"


@dataclass
class User:
    name: str
    age: int
    country: str
    nick: Optional[str] = None
    tags: list[str] = field(default_factory=list)


@dataclass
class Order:
    user: int
    status: Status
    cents: int
    day: date
    coupon: Optional[str] = None


class Users(zlmdb.Table[int, User]):
    by_name = zlmdb.Index[str]("name")
    by_age = zlmdb.Index[int]("age")
    by_place = zlmdb.Index[tuple[str, int]]("country", "age")
    by_nick = zlmdb.Index[str]("nick")
    by_tag = zlmdb.Index[str]("tags", each=True)


class Orders(zlmdb.Table[int, Order]):
    by_user = zlmdb.ForeignKey[Users]("user")
    by_status = zlmdb.Index[tuple[Status, int]]("status", "cents")
    by_day = zlmdb.Index[date]("day")


class Shop(zlmdb.Schema):
    users: Users
    orders: Orders


COUNT = 400


def user(n: int) -> User:
    nick = f"nick{n}" if n % 40 == 7 else "" if n % 50 == 9 else None
    return User(
        f"{'ABCDE'[n % 5]}{n:03}", n % 90, ("NO", "SE", "DE")[n % 7 % 3], nick, [f"t{n % 60}", f"u{n % 70}"][: n % 3]
    )


def order(n: int) -> Order:
    # Those of the first users all have a coupon: what is compared with the first records does not tell.
    coupon = "C7" if n % 100 < 12 else None
    return Order(n % 100, list(Status)[min(n % 12, 2)], n * 37 % 1000, date(2024, 1, 1) + timedelta(n % 300), coupon)


USERS = {n: user(n) for n in range(COUNT)}
ORDERS = {n: order(n) for n in range(COUNT)}


@pytest.fixture(scope="module")
def db() -> Iterator[Any]:
    with zlmdb.open(None, Shop) as db:
        with db.write() as t:
            t.users.update(USERS)
            t.orders.update(ORDERS)
        yield db


def ordered(key: int) -> list[Order]:
    return [one for one in ORDERS.values() if one.user == key]


# -- what refers, as a selection that the function does not read ------------------------------------------------

Asked = Callable[[Any, int], Any]


@pytest.mark.parametrize(
    "asked",
    [
        lambda t, k: t.orders.by_user[k].where(lambda o: o.coupon == "C7"),
        lambda t, k: t.orders.by_user[k].where(lambda o: o.coupon == "C7").keys(),
        lambda t, k: t.orders.by_user[k].where(lambda o: o.coupon == "C7").values(),
        lambda t, k: t.orders.by_user[k].where(lambda o: o.coupon == "C7").fields(lambda o: o.cents),
        lambda t, k: t.orders.by_user[k].order_by(lambda o: o.cents).where(lambda o: o.coupon == "C7"),
        lambda t, k: k >= 0 and t.orders.by_user[k].where(lambda o: o.coupon == "C7"),
        lambda t, k: t.orders.by_user[k].where(lambda o: o.coupon == "C7").limit(5) or k < 0,
        lambda t, k: t.orders.by_user[k].where(lambda o: o.coupon == "C7") if k > 3 else t.orders.by_user[k].limit(2),
        lambda t, k: k < 12 and t.orders.by_user[k].limit(1),
    ],
)
@pytest.mark.parametrize("mode", ["read", "write"])
def test_a_selection_as_the_answer_of_a_condition_is_asked_with_its_conditions(
    db: Any, asked: Asked, mode: str
) -> None:
    """The expression had lost them: records of the users whose first orders fit were found with all others."""
    with getattr(db, mode)() as t:
        found = t.users.where(lambda k, u: asked(t, k))
        assert found.keys().all() == list(range(12))
        assert found.explain().called == ()
        within = t.users.where(lambda k, u: bool(t.orders.by_user[k].where(lambda q, o: asked(t, o.user))))
        assert within.keys().all() == list(range(12))


def test_a_selection_that_a_function_gives_has_its_conditions_and_its_limit(db: Any) -> None:
    with db.read() as t:
        few = t.users.select(0, 40)
        given = few.fields(lambda k, u: (k, t.orders.by_user[k].where(lambda o: o.coupon == "C7")))
        assert [found.count() for _, found in given] == [4] * 12 + [0] * 28
        (reason,) = given.explain().called
        assert reason == "a selection of t.orders.by_user[k] that nothing reads: write .all(), .first() or .count()"
        assert [found.count() for found in few.fields(lambda k, u: t.orders.by_user[k].limit(3))] == [3] * 40
        fields = few.fields(lambda k, u: (k, t.orders.by_user[k].fields(lambda o: o.cents)))
        assert [found.all() for _, found in fields] == [[one.cents for one in ordered(k)] for k in range(40)]
        values = few.fields(lambda k, u: (k, t.orders.by_user[k].where(lambda o: o.coupon == "C7").values()))
        assert [found.count() for _, found in values] == [4] * 12 + [0] * 28
        first = few.fields(lambda k, u: t.orders.by_user[k].order_by(lambda o: desc(o.cents)))
        assert [found.values().first() for found in first] == [
            max(ordered(k), key=lambda o: o.cents) for k in range(40)
        ]


def test_whether_there_are_keys_or_values_is_whether_there_are_records(db: Any) -> None:
    with db.read() as t:
        plain = t.users.where(lambda k, u: t.orders.by_user[k])
        for found in (
            t.users.where(lambda k, u: t.orders.by_user[k].keys()),
            t.users.where(lambda k, u: bool(t.orders.by_user[k].values())),
        ):
            assert found.keys().all() == plain.keys().all() == list(range(100))
            assert found.explain().scanned == plain.explain().scanned


# -- captured values ---------------------------------------------------------------------------------------------------


def test_attributes_of_a_namespace_are_captured_values(db: Any) -> None:
    with db.read() as t:
        for age in (20, 33):
            asked = types.SimpleNamespace(age=age, place="NO")
            found = t.users.where(lambda u, asked=asked: u.age == asked.age and u.country == asked.place)
            assert found.explain().indexes
            assert found.explain().called == ()
            assert found.keys().all() == [k for k, u in USERS.items() if u.age == age and u.country == "NO"]


total = sum  # as a field might be called
Found = Callable[[Any], Any]


def expected(matches: Callable[[int, User], Any]) -> list[int]:
    return [k for k, u in USERS.items() if matches(k, u)]


LIST, FEW, SET, WANTED, FORM = [88, 89], [3], {87, 88}, ["t7", "u61"], {"age": " 88 ", "status": "paid", "place": "no"}
PAIR, PAIRS = ("NO", 87), ("A", "B07")


@pytest.mark.parametrize(
    ("matches", "index"),
    [
        (lambda u: not u.age < 87, "by_age"),
        (lambda u: not (u.age < 87 or u.country != "NO"), "by_place"),
        (lambda u: not u.name > "A020", "by_name"),
        (lambda u: not (u.nick is None or u.nick <= "nick3"), "by_nick"),
        (lambda u: u.nick, "by_nick"),
        (lambda u: bool(u.nick), "by_nick"),
        (lambda u: u.nick and u.age > 40, "by_nick"),
        (lambda u: u.name.startswith(("A01", "B02")), "by_name"),
        (lambda u: not u.name.startswith(("A", "B", "C", "D")) and u.name.startswith(("E01", "E01")), "by_name"),
        (lambda u: (u.country, u.age) == PAIR, "by_place"),
        (lambda u: (u.country, u.age) > ("SE", 80), "by_place"),
        (lambda u: u.age in set(LIST), "by_age"),
        (lambda u: u.age in sorted(SET), "by_age"),
        (lambda u: u.age in LIST + FEW, "by_age"),
        (lambda u: u.age > max(SET), "by_age"),
        (lambda u: u.age == min(LIST), "by_age"),
        (lambda u: u.age == int(FORM["age"]), "by_age"),
        (lambda u: u.country == FORM["place"].upper() and u.age == int(FORM["age"].strip()) - 1, "by_place"),
        (lambda u: any(one in u.tags for one in WANTED), "by_tag"),
        (lambda u: all(one in u.tags for one in WANTED), "by_tag"),
        (lambda u: not set(WANTED).isdisjoint(u.tags), "by_tag"),
        (lambda u: set(u.tags) & set(WANTED), "by_tag"),
        (lambda u: set(WANTED).intersection(u.tags), "by_tag"),
        (lambda u: set(WANTED) <= set(u.tags), "by_tag"),
        (lambda u: set(u.tags) >= set(WANTED), "by_tag"),
        (lambda u: set(WANTED).issubset(u.tags), "by_tag"),
    ],
)
def test_an_index_serves_what_a_person_expects_it_to_serve(db: Any, matches: Any, index: str) -> None:
    wanted = expected(lambda k, u: matches(u))
    for mode in ("read", "write"):
        with getattr(db, mode)() as t:
            plan = t.users.where(matches).explain()
            assert plan.called == ()
            assert index in plan.indexes
            for _ in range(2):
                assert t.users.where(matches).keys().all() == wanted
                assert t.users.where(matches).count() == len(wanted)
                assert t.users.where(matches).order_by(lambda u: u.age).limit(500).count() == len(wanted)


@pytest.mark.parametrize("wanted", [["t7"], [], ["t7", "u7"], ["t7", "none"], ["none"], ["t1", "t2"]])
def test_captured_elements_may_be_others_or_none(db: Any, wanted: list[str]) -> None:
    """All elements of an empty list are in each record: the index tells nothing then."""
    with db.read() as t:
        for _ in range(2):
            every = t.users.where(lambda u: all(one in u.tags for one in wanted))
            assert every.keys().all() == expected(lambda k, u: all(one in u.tags for one in wanted))
            assert t.users.where(lambda u: set(wanted) <= set(u.tags)).keys().all() == every.keys().all()
            some = t.users.where(lambda u: any(one in u.tags for one in wanted))
            assert some.keys().all() == expected(lambda k, u: any(one in u.tags for one in wanted))
            long = t.users.where(lambda u: all(one in u.tags for one in wanted if len(one) > 2))
            assert long.keys().all() == expected(lambda k, u: all(one in u.tags for one in wanted if len(one) > 2))


def test_a_condition_with_its_contrary_is_each_record(db: Any) -> None:
    with db.read() as t:
        for bound in (0, 30, 30.5, 200):
            below = t.users.where(lambda u: u.age < bound).count()  # noqa: B023
            assert t.users.where(lambda u: not u.age < bound).count() == COUNT - below  # noqa: B023


# -- members of an Enum ------------------------------------------------------------------------------------------------


def test_a_member_is_looked_up_by_its_value_within_the_function(db: Any) -> None:
    with db.read() as t:
        for text in ("new", "paid"):
            form = {"status": text}
            for found in (
                t.orders.where(lambda o: o.status == Status(text)),  # noqa: B023
                t.orders.where(lambda o: o.status == Status(form["status"])),  # noqa: B023
            ):
                assert found.explain().indexes == ("by_status",)
                assert found.keys().all() == [k for k, o in ORDERS.items() if o.status is Status(text)]
        assert t.orders.where(lambda o: o.status in (Status("new"), Status("sent"))).explain().called == ()
        other = t.orders.where(lambda o: o.status == Status("lost"))
        with pytest.raises(ValueError, match="'lost' is not a valid Status"):
            other.count()


def test_members_are_counted_by_the_entries_of_an_index(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted: dict[Status, int] = {}
    for one in ORDERS.values():
        wanted[one.status] = wanted.get(one.status, 0) + 1
    with db.read() as t:
        for _ in range(2):
            assert list(t.orders.group_by(lambda o: o.status, lambda g: g.count()).items()) == list(wanted.items())
            assert t.orders.fields(lambda o: o.status).distinct().all() == list(wanted)
        assert t.orders.fields(lambda o: o.status).distinct().explain().indexes == ("by_status",)
        loads: list[Any] = []
        monkeypatch.setattr(t.orders._storage, "load", loads.append)
        assert t.orders.fields(lambda o: o.status).distinct().count() == len(wanted)


# -- groups ------------------------------------------------------------------------------------------------------------


@dataclass
class Sale:
    id: int
    total: int
    type: str


class Sales(zlmdb.Schema):
    sales: zlmdb.Table[int, Sale]


def test_a_field_with_the_name_of_something_global_is_added_up_without_its_records(monkeypatch: Any) -> None:
    """A field `id`, `type`, or what else Python or a module has a name for: that was captured, and all rows kept."""
    from zlmdb.tables import grouped

    monkeypatch.setattr(grouped, "_kept", None)
    with zlmdb.open(None, Sales) as db:
        with db.write() as t:
            t.sales.update({n: Sale(n, n * 3, "ab"[n % 2]) for n in range(20)})
        with db.read() as t:
            for into, even, odd in (
                (lambda g: g.fields(lambda s: s.total).sum(), 270, 300),
                (lambda g: g.fields(lambda s: s.id).max(), 18, 19),
                (lambda g: g.fields(lambda s: float(s.total)).sum(), 270.0, 300.0),
                (lambda g: g.fields(lambda s: abs(s.total - total([s.id, 1]))).sum(), 172, 190),
            ):
                assert t.sales.group_by(lambda s: s.type, into) == {"a": even, "b": odd}
            assert t.sales.where(lambda s: s.type == "a" and s.id > 5).explain().called == ()


class Settings:
    status = Status.NEW

    def __init__(self, status: Any) -> None:
        self.wanted = status

    def fits(self, order: Order) -> bool:
        return order.status is self.wanted


class Slotted:
    __slots__ = ("wanted",)

    def __init__(self, wanted: Any) -> None:
        self.wanted = wanted


MODULE = types.ModuleType("models")
MODULE.Status = Status  # type: ignore[attr-defined]


def test_a_member_that_is_an_attribute_may_be_asked_for_by_is(db: Any) -> None:
    """The function was called for each record, also for ``is models.Status.NEW``."""
    with db.read() as t:
        for wanted in (Status.NEW, Status.PAID):
            here, space, slots = Settings(wanted), types.SimpleNamespace(inner=Settings(wanted)), Slotted(wanted)
            fits = [k for k, o in ORDERS.items() if o.status is wanted]
            for found in (
                t.orders.where(lambda o: o.status is here.wanted),  # noqa: B023
                t.orders.where(lambda o: o.status is space.inner.wanted),  # noqa: B023
                t.orders.where(lambda o: o.status is slots.wanted),  # noqa: B023
            ):
                assert found.explain().indexes == ("by_status",)
                assert found.keys().all() == fits
            assert t.orders.where(here.fits).keys().all() == fits
        for found in (
            t.orders.where(lambda o: o.status is MODULE.Status.NEW),
            t.orders.where(lambda o: o.status is Settings.status),
        ):
            assert found.explain().indexes == ("by_status",)
            assert found.keys().all() == [k for k, o in ORDERS.items() if o.status is Status.NEW]


@pytest.mark.parametrize("wanted", [None, "new", 5, Ellipsis, [Status.NEW]])
def test_an_attribute_that_is_no_member_is_asked_as_python_does(db: Any, wanted: Any) -> None:
    here, slots = Settings(Status.NEW), Slotted(wanted)
    with db.read() as t:
        fits = t.orders.where(lambda o: o.status is here.wanted).count()
        here.wanted = wanted
        assert t.orders.where(lambda o: o.status is here.wanted).count() == 0
        assert t.orders.where(lambda o: o.status is slots.wanted).count() == 0
        assert t.orders.where(here.fits).count() == 0
        here.wanted = Status.NEW
        del slots.wanted
        assert t.orders.where(lambda o: o.status is here.wanted).count() == fits
        with pytest.raises(AttributeError):
            t.orders.where(lambda o: o.status is slots.wanted).count()


# -- pages by the last row ---------------------------------------------------------------------------------------------


def test_the_next_page_by_the_last_row_of_the_one_before_uses_the_index(db: Any) -> None:
    with db.read() as t:
        for way, by in (
            (lambda k, u: (u.name, k), lambda k, u: (u.name, k)),
            (lambda k, u: (u.age, k), lambda k, u: (u.age, k)),
        ):
            wanted = sorted(USERS, key=lambda k: way(k, USERS[k]))
            for at in (0, 37, 390):
                k = wanted[at]
                last = way(k, USERS[k])[0]
                found = t.users.where(lambda key, u: by(key, u) > (last, k)).order_by(by).limit(7)  # noqa: B023
                assert found.keys().all() == wanted[at + 1 : at + 8]
                if at == 390:
                    assert len(found.explain().indexes) == 1
                back = t.users.where(lambda key, u: by(key, u) < (last, k))  # noqa: B023
                assert back.order_by(by, reverse=True).limit(7).keys().all() == wanted[:at][::-1][:7]
                assert back.count() == at


def test_what_captured_values_raise_is_raised_only_where_the_function_comes_to_it(db: Any) -> None:
    """The planner raised it for other values than those of the first query, although no record was asked."""
    with db.read() as t:
        for text in ("88", "x", "x", "89"):
            for _ in range(2):
                assert t.users.where(lambda u: u.age < 0 and u.age == int(text)).limit(2, 3).first() is None  # noqa: B023
                assert t.users.where(lambda k, u: u.age < 0 and k == int(text)).first() is None  # noqa: B023
                assert t.users.where(lambda u: u.age < 0 and u.age > int(text)).all() == []  # noqa: B023
                if text == "x":
                    with pytest.raises(ValueError, match="invalid literal"):
                        t.users.where(lambda u: u.age >= 0 and u.age == int(text)).limit(2, 3).first()  # noqa: B023


def test_an_order_that_ends_with_the_key_is_that_of_an_index(db: Any) -> None:
    with db.read() as t:
        for by, ordered_by_index in (
            (lambda k, u: (u.age, k), True),
            (lambda k, u: (desc(u.age), desc(k)), True),
            (lambda k, u: (desc(u.age), k), False),
            (lambda k, u: (u.country, u.age, k), True),
            (lambda k, u: (u.country, k), False),
        ):
            for backwards in (False, True):
                wanted = sorted(USERS, key=lambda k: by(k, USERS[k]))
                found = t.users.order_by(by, reverse=backwards)
                for limit, skip in ((7, 0), (7, 33), (1000, 0)):
                    rows = (wanted[::-1] if backwards else wanted)[skip : skip + limit]
                    assert found.limit(limit, skip).keys().all() == rows
                if ordered_by_index:
                    assert found.limit(7).explain().order.endswith(": from the index")
                page, seen = found.keys().page(150), list[int]()
                while page.next is not None:
                    seen += page.rows
                    page = found.keys().page(150, page.next)
                assert [*seen, *page.rows] == (wanted[::-1] if backwards else wanted)


def test_a_function_that_may_give_something_else_each_time_is_called_and_told(db: Any) -> None:
    with db.read() as t:
        (reason,) = t.orders.where(lambda o: o.day > date.today()).explain().called
        assert reason.endswith("a function that is not listed as pure: call it before the query")
        assert "None" not in reason
