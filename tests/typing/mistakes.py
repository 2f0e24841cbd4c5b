"""Mistakes that type checkers must report: mypy by the code, pyright by the rule on the line. Never run.

Both are told that an ignore without an error is an error, so that a mistake which is not reported any more fails
`tox -e types`.
"""

# What comes of a mistake is of an unknown type, too.
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import zlmdb


@dataclass
class User:
    name: str
    email: str
    age: int


class Users(zlmdb.Table[UUID, User], key="email"):
    """Users by id."""

    by_email = zlmdb.UniqueIndex[str]("email")
    by_age = zlmdb.Index[int]("age")
    by_both = zlmdb.Index[tuple[int, str]]("age", "name")


class Store(zlmdb.Schema):
    users: Users
    logins: zlmdb.Table[str, int]
    readings: zlmdb.Table[tuple[UUID, datetime], zlmdb.Cbor[float]]


class Other(zlmdb.Schema):
    logins: zlmdb.Table[str, int]


class ClassicUsers(zlmdb.MapUuidCbor[User]):
    """Users by id, as zlmdb <= 26 has them."""


def opening(db: zlmdb.Database[Store]) -> None:
    zlmdb.open("data", Users)  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]
    zlmdb.open("data", Store, layout="tabels")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    zlmdb.open("data", Store, durability=True)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    zlmdb.open(None)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    zlmdb.open("data", maxsize=1)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    other: zlmdb.Database[Other] = db  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    db.run(lambda: 1)  # type: ignore[arg-type,misc]  # pyright: ignore[reportArgumentType]
    db.attach_table(Users)  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]
    _ = other


def names(t: Store, user: User) -> None:
    t.user  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    t.users.by_name  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    t.users.get_all([])  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    user.adress  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    t.users[UUID(int=1)].adress  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    t["users"].selct()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


def keys(t: Store, user: User, key: UUID) -> None:
    t.users["ann"]  # type: ignore[index]  # pyright: ignore[reportArgumentType]
    t.users["ann"] = user  # type: ignore[index]  # pyright: ignore[reportArgumentType]
    del t.users["ann"]  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    t.users.get("ann")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    t.users.pop(7)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    t.users.edit("ann")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    t.logins[b"ann"]  # type: ignore[index]  # pyright: ignore[reportArgumentType]
    t.readings[key]  # type: ignore[index]  # pyright: ignore[reportArgumentType]
    t.readings["attic", datetime.now()]  # type: ignore[index]  # pyright: ignore[reportArgumentType]
    t.users.get_many(["ann"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]


def values(t: Store, user: User, key: UUID) -> None:
    t.users[key] = "Ann"  # type: ignore[assignment]  # pyright: ignore[reportArgumentType]
    t.users[key] = None  # type: ignore[assignment]  # pyright: ignore[reportArgumentType]
    t.users.add("Ann")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    t.users.add(key)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    t.logins["ann"] = "once"  # type: ignore[assignment]  # pyright: ignore[reportArgumentType]
    t.logins.setdefault("ann", "once")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    t.logins.update({"ann": "once"})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType, reportCallIssue]
    t.readings[key, datetime.now()] = "warm"  # type: ignore[assignment]  # pyright: ignore[reportArgumentType]
    t.users.put_many([(key, "Ann")])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    t.users.put_many({key: user})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    number: int = t.users[key]  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    found: User = t.users.get(key)  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    with t.users.edit(key) as edited:
        edited.age = "old"  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]
    _ = number, found


def bounds(t: Store, key: UUID) -> None:
    t.users.select("a", "b")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    t.users.select(stop=7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    t.users.select(limit="10")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    t.logins.select(1, 2)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    t.readings.select((key, 7))  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
    t.users.select(30, limit=10, backwards=True)  # type: ignore[arg-type,call-arg]  # pyright: ignore[reportCallIssue]
    t.users.by_age.select("30", "40")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    t.users.by_both.select((30, 40))  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
    t.users.select(prefix="a")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    t.users.select(startswith="a")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    t.logins.select(prefix="a")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    t.logins.select(startswith=b"a")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    t.readings.select(prefix=key)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    t.readings.select(prefix=("a",))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    t.users.by_both.select(prefix="a")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]


def indexes(t: Store, key: UUID) -> None:
    t.users.by_email[7]  # type: ignore[index]  # pyright: ignore[reportArgumentType]
    t.users.by_email[key]  # type: ignore[index]  # pyright: ignore[reportArgumentType]
    t.users.by_email.key(7)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    t.users.by_email.get(b"ann@example.com")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    t.users.by_age["32"]  # type: ignore[index]  # pyright: ignore[reportArgumentType]
    t.users.by_both[32]  # type: ignore[index]  # pyright: ignore[reportArgumentType]
    t.users.by_age.key(32)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    t.users.by_email.groups()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    name: str = t.users.by_email["ann@example.com"]  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    one: User = t.users.by_age[32]  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    t.users.by_age[32] = one  # type: ignore[index]  # pyright: ignore[reportIndexIssue]
    t.users.by_email["ann@example.com"] = one  # type: ignore[index]  # pyright: ignore[reportIndexIssue]
    del t.users.by_email["ann@example.com"]  # type: ignore[attr-defined]  # pyright: ignore[reportIndexIssue]
    for _ in t.users.by_age:  # type: ignore[misc]  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]
        pass
    list(t.users.by_email)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    _ = name


def selections(t: Store, user: User, key: UUID) -> None:
    t.users.select()["ann"]  # type: ignore[index]  # pyright: ignore[reportArgumentType]
    t.users.select()[key] = user  # type: ignore[index]  # pyright: ignore[reportIndexIssue]
    t.users.by_age[32][key] = user  # type: ignore[index]  # pyright: ignore[reportIndexIssue]
    len(t.users.select())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    first: User = t.users.select().first()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    for found in t.users.select():
        found.age  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    for found_key, _ in t.users.select():
        found_key + 1  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnusedExpression]
    _ = first


def declarations() -> None:
    class Wrong(zlmdb.Table[str, int], uuid=7, nme="w"):  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportGeneralTypeIssues]
        by_length = zlmdb.Index[int](7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    class Numbers(zlmdb.Table[int]):
        by_length = zlmdb.Index[int](len, version="1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    class Kinds(zlmdb.Table[str, User]):
        by_name = zlmdb.Index[str]("name", each="yes")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        by_age = zlmdb.Index[int]("age", where="age > 18")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        by_email = zlmdb.UniqueIndex[str]("email", each=True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

    _ = Wrong, Numbers, Kinds


def classic(db: zlmdb.Database, user: User, key: UUID) -> None:
    users = ClassicUsers(1)
    texts = zlmdb.MapOidString(2)
    with db.begin(write=True) as txn:
        users[txn, "ann"]  # type: ignore[index]  # pyright: ignore[reportArgumentType]
        users[txn, "ann"] = user  # type: ignore[index]  # pyright: ignore[reportArgumentType]
        users[txn, key] = "Ann"  # type: ignore[assignment]  # pyright: ignore[reportArgumentType]
        users[key] = user  # type: ignore[index]  # pyright: ignore[reportArgumentType]
        users[key]  # type: ignore[index]  # pyright: ignore[reportArgumentType]
        del users[txn, 7]  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        users[txn, key].name  # type: ignore[union-attr]  # pyright: ignore[reportOptionalMemberAccess]
        found: User = users[txn, key]  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
        users.select(txn, from_key=1)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
        users.select(txn, to_key="b")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
        users.count_range(txn, 1, 2)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        users.bind(txn)["ann"]  # type: ignore[index]  # pyright: ignore[reportArgumentType]
        texts[txn, 1] = 1  # type: ignore[assignment]  # pyright: ignore[reportArgumentType]
        texts[txn, "1"] = "one"  # type: ignore[index]  # pyright: ignore[reportArgumentType]
        users.attach_index("email", zlmdb.MapStringUuid(3), lambda user: user.adress)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
        zlmdb.MapUuidCbor[User](4)[txn, key] = "Ann"  # type: ignore[assignment]  # pyright: ignore[reportArgumentType]
    _ = found


def queries(t: Store, key: UUID) -> None:
    t.users.where(lambda u: u.aeg > 30)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    t.users.where(lambda u: u.age > "30")  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue]
    t.users.where(lambda u: u.age == "30")  # type: ignore[comparison-overlap]  # pyright: ignore[reportUnnecessaryComparison]
    t.users.where(lambda u: u.name in {1, 2})  # type: ignore[comparison-overlap]  # pyright: ignore[reportUnnecessaryContains]
    t.users.where(lambda u: u.name)  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType, reportAttributeAccessIssue, reportCallIssue]
    t.users.where(lambda u: t.users[u.name].age == 3)  # type: ignore[index]  # pyright: ignore[reportArgumentType]
    t.users.where(lambda u: t.users[key].aeg == 3)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    t.users.where(lambda k, u: k > 3)  # type: ignore  # versions of mypy tell different codes  # pyright: ignore[reportOperatorIssue]
    t.users.where(lambda a, b, c: True)  # type: ignore[arg-type, misc]  # pyright: ignore[reportArgumentType, reportCallIssue]
    t.users.where(lambda k, u: t.users.by_age[u.age])  # type: ignore[arg-type, misc]  # pyright: ignore[reportArgumentType, reportCallIssue]
    t.users.where(t.users.by_age[30])  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
    t.users.where(lambda u: not u.name.startwith("x"))  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    t.users.where(lambda u: u.age > 30 or "no")  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType, reportAttributeAccessIssue, reportCallIssue]
    t.users.fields(lambda u: u.nam)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    t.users.fields(lambda u: u.name).sum()  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    t.users.fields(lambda u: u.age).mean() + 1  # type: ignore[operator]  # pyright: ignore[reportOptionalOperand, reportUnusedExpression]
    t.users.order_by(lambda u: u.nam)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    t.users.order_by(lambda u: None)  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType, reportCallIssue]
    t.users.values().where(lambda u: u.age > 1)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    t.users.select().page("20")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    t.users.select().change(lambda u: u.name)  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType]
    t.users.group_by(lambda u: u.age, lambda g: g.cuont())  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    rows: zlmdb.Reads[tuple[str, str]] = t.users.fields(lambda u: (u.name, u.age))  # type: ignore[arg-type, return-value]  # pyright: ignore[reportAssignmentType]
    least: int = t.users.fields(lambda u: u.age).min()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    groups: dict[str, int] = t.users.group_by(lambda u: u.age, lambda g: g.count())  # type: ignore[arg-type, return-value]  # pyright: ignore[reportAssignmentType]
    with t.users.select().edit() as users:
        for user in users:
            user.age = "3"  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]
    _ = rows, least, groups


def a_name_that_there_is_not() -> None:
    zlmdb.Tabel  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


class Login(NamedTuple):
    user: UUID


class Logins(zlmdb.Table[int, Login]):
    by_user = zlmdb.ForeignKey["Users"]("user")


class Site(zlmdb.Schema):
    users: Users
    logins: Logins


def links(t: Site) -> None:
    t.logins.by_user["ann"]  # type: ignore[index]  # pyright: ignore[reportArgumentType]
    zlmdb.ForeignKey["Users"]("user", on_delete="explode")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    t.logins.where(lambda v: t.users["ann"].age > 3)  # type: ignore[index]  # pyright: ignore[reportArgumentType]
    t.logins.where(lambda v: t.users[v.user].name > 3)  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue]
    t.logins.fields(lambda v: t.users[v.usr].age)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
