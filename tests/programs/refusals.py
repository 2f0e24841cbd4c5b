"""What is refused, by which error, and that nothing of it is stored: run by test_errors.py, also under ``python -O``.

No assert here: it would vanish with the option under which this must hold.
"""

from __future__ import annotations

import datetime as dt
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID, uuid4

import zlmdb
from zlmdb import keys as k


@dataclass
class User:
    name: str
    age: int


class Users(zlmdb.Table[UUID, User]):
    """Users by id."""

    by_name = zlmdb.UniqueIndex[str]("name")


class Store(zlmdb.Schema):
    users: Users
    ints: zlmdb.Table[int, str]
    oids: zlmdb.Table[k.Oid, str]
    texts: zlmdb.Table[str, int]
    floats: zlmdb.Table[float, int]
    times: zlmdb.Table[dt.datetime, int]
    days: zlmdb.Table[dt.date, int]
    blobs: zlmdb.Table[k.Bytes32, bytes]
    pairs: zlmdb.Table[tuple[k.String, k.String], str]
    bare: zlmdb.Table[tuple[str, int], bool]


class ClassicPairs(zlmdb.PersistentMap[tuple[k.String, k.String], zlmdb.values.String]):
    """Texts by two texts."""


UTC = dt.timezone.utc
ANN = User("Ann", 31)
checked = 0


def refuses(what: str, call: Callable[[], object], error: type[Exception], *said: str) -> None:
    """*call* raises *error*, whose text says each of *said*."""
    global checked
    checked += 1
    try:
        call()
    except error as caught:
        text = str(caught)
        if not isinstance(caught, (zlmdb.Error, KeyError, TypeError, ValueError)):
            raise SystemExit(f"{what}: {caught!r} is no error of ours") from caught
        for word in said:
            if word not in text:
                raise SystemExit(f"{what}: {text!r} does not say {word!r}") from caught
    else:
        raise SystemExit(f"{what}: not refused")


def setting(table: Any, key: Any, value: Any) -> Callable[[], object]:
    return lambda: table.__setitem__(key, value)


def wrong(name: Any, age: Any) -> User:
    """A user whose fields are not what the class says."""
    return User(name, age)


# To type checkers the tables hold anything: every use here is a mistake that they would report.
def refused_writes(t: Any, limit: int) -> Iterator[tuple[Any, Any, Any, tuple[str, str]]]:
    """Table, key and value of a write that is refused, the error, and what its text says."""
    bad_key: list[tuple[str, Any, Any, str]] = [
        ("ints", "1", "x", "'1'"), ("ints", True, "x", "True"), ("ints", 2**63, "x", str(2**63)),
        ("ints", 1.5, "x", "1.5"), ("oids", -1, "x", "-1"), ("oids", 2**53 + 1, "x", str(2**53 + 1)),
        ("texts", b"x", 1, "b'x'"), ("texts", "\ud800", 1, "surrogate"),
        ("floats", float("nan"), 1, "nan"), ("floats", "1", 1, "'1'"),
        ("times", dt.datetime(2024, 1, 1), 1, "time zone"), ("times", dt.date(2024, 1, 1), 1, "datetime"),
        ("days", dt.datetime(2024, 1, 1, tzinfo=UTC), 1, "date"), ("blobs", b"short", b"", "32"),
        ("pairs", ("a\0b", "c"), "x", "NUL"), ("pairs", ("a",), "x", "2"), ("bare", ("a", "b"), True, "'b'"),
        ("users", "not a uuid", ANN, "UUID"), ("users", None, ANN, "None"),
    ]  # fmt: skip
    for name, key, value, said in bad_key:
        yield t[name], key, value, (repr(name), said)
    bad_value: list[tuple[str, Any, Any, str]] = [
        ("ints", 1, 2, "2"), ("ints", 1, None, "None"), ("texts", "x", "1", "'1'"), ("texts", "x", 2**64, "64"),
        ("blobs", bytes(32), "x", "'x'"), ("bare", ("a", 1), 1, "1"), ("users", uuid4(), {"name": "Ann"}, "User"),
        ("users", uuid4(), wrong("Ann", "old"), "age"), ("users", uuid4(), wrong(None, 1), "name"),
    ]  # fmt: skip
    for name, key, value, said in bad_value:
        yield t[name], key, value, (repr(name), said)
    yield t.texts, "x" * (limit + 1), 1, ("'texts'", str(limit))
    yield t.users, uuid4(), User("x" * limit * 2, 1), ("by_name", str(limit))


def refuse_in(db: zlmdb.Database[Any], limit: int) -> None:
    with db.write() as t:
        t.users.add(ANN)
    with db.write() as t:
        for table, key, value, said in refused_writes(t, limit):
            refuses(f"{table!r}[{key!r}] = {value!r}", setting(table, key, value), zlmdb.EncodeError, *said)
            if table is not t.users and len(table) != 0:
                raise SystemExit(f"something of {key!r} was stored")
        refuses("reading by a wrong key", lambda: t.ints["1"], zlmdb.EncodeError, "'ints'")
        refuses("get by a wrong key", lambda: t.oids.get(2**60), zlmdb.EncodeError, "'oids'")
        refuses("in with a wrong key", lambda: "x" in t.ints, zlmdb.EncodeError, "'ints'")
        refuses("a wrong bound", lambda: t.ints.select("a"), zlmdb.EncodeError, "'ints'")
        refuses("a second owner", lambda: t.users.add(User("Ann", 5)), zlmdb.DuplicateKey, "by_name", "'Ann'")
        refuses("a missing record", lambda: t.ints[1], KeyError, "1")
        refuses("a negative limit", lambda: t.ints.select(limit=-1), ValueError, "-1")
        refuses("a wrong index key", lambda: t.users.by_name[5], zlmdb.EncodeError, "by_name", "5")
        refuses("a table unknown", lambda: t["user"], KeyError, "users")
        t.ints[1] = "the transaction is usable"
    with db.read() as t:
        refuses("writing in a read transaction", setting(t.ints, 2, "x"), zlmdb.ReadonlyDatabase, "write()")
        if len(t.users) != 1 or dict(t.ints) != {1: "the transaction is usable"} or t.users.by_name["Ann"] != ANN:
            raise SystemExit("the refused statements changed something")
    refuses("a table after its transaction", lambda: t.ints[1], zlmdb.TransactionClosed, "ended")
    refuses("a selection after its transaction", lambda: list(t.ints.select()), zlmdb.TransactionClosed, "ended")


def main() -> None:
    layouts: list[Literal["tables", "classic"]] = ["tables", "classic"]
    for layout in layouts:
        for lib_version, limit in (("0.9", 511), ("1.0", 1978)):
            path = os.path.join(tempfile.mkdtemp(), "data")
            zlmdb.Database(path, lib_version=lib_version, layout=layout).close()
            with zlmdb.open(path, Store) as db:
                refuse_in(db, limit)
            refuses("a closed database", db.read, zlmdb.DatabaseClosed, "not open")
            with zlmdb.open(path, Store, readonly=True) as db:
                refuses("writing to a read-only database", db.write, zlmdb.ReadonlyDatabase, "read-only")
    with zlmdb.open(None, Store) as db:
        refuse_in(db, 511)
        with db.write() as t:
            refuses("an empty key", setting(t.texts, "", 1), zlmdb.EncodeError, "'texts'", "empty")
    print(checked, "refused" if sys.flags.optimize == 0 else "refused under -O")


if __name__ == "__main__":
    main()
