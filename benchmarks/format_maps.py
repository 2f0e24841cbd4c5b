"""How fast are maps of a dataclass as pickle, JSON and CBOR, beside the maps of zlmdb 26?

    ZLMDB_INTEROP_PYTHON=old/bin/python python benchmarks/format_maps.py            about a minute
    ZLMDB_INTEROP_PYTHON=old/bin/python python benchmarks/format_maps.py --smoke    seconds: that it runs

The predecessor needs a virtual environment of its own with zlmdb 26, whose python the variable names. Its JSON and CBOR
maps are given ``marshal`` and ``parse``, written by hand as its users do; ours are given the class. Each round fills a
new database with users of 11 fields in one transaction, then reads each by its key and looks at every field; what is
read is compared first. Every measurement is a fresh process, and the two take turns within each round. Told are
records a second in the fastest round of each, and their ratio.

What it cannot tell: what a commit to a disk costs (there is none: sync is off), or anything about other records.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from time import perf_counter
from typing import Any
from uuid import UUID

FORMATS = ("pickle", "json", "cbor")


@dataclass
class User:
    """The user, all 11 fields."""

    oid: int
    name: str
    authid: str
    uuid: UUID
    email: str
    birthday: date
    is_friendly: bool
    tags: list[str]
    ratings: dict[str, float]
    friends: list[int]
    referred_by: int

    def marshal(self) -> dict[str, Any]:
        """Plain data, as the predecessor's users write it."""
        born = self.birthday
        return {
            "oid": self.oid,
            "name": self.name,
            "authid": self.authid,
            "uuid": self.uuid.hex,
            "email": self.email,
            "birthday": {"year": born.year, "month": born.month, "day": born.day},
            "is_friendly": self.is_friendly,
            "tags": self.tags,
            "ratings": self.ratings,
            "friends": self.friends,
            "referred_by": self.referred_by,
        }

    @staticmethod
    def parse(data: dict[str, Any]) -> User:
        """The user of plain data."""
        born = data["birthday"]
        return User(
            oid=data["oid"],
            name=data["name"],
            authid=data["authid"],
            uuid=UUID(hex=data["uuid"]),
            email=data["email"],
            birthday=date(born["year"], born["month"], born["day"]),
            is_friendly=data["is_friendly"],
            tags=data["tags"],
            ratings=data["ratings"],
            friends=data["friends"],
            referred_by=data["referred_by"],
        )


def users(count: int) -> list[User]:
    rng = random.Random(7)
    return [
        User(
            oid=number,
            name=f"Test {number}",
            authid=f"test-{number}",
            uuid=UUID(int=rng.getrandbits(128)),
            email=f"test-{number}@example.com",
            birthday=date(1950, 12, 24),
            is_friendly=True,
            tags=["geek", "sudoko", "yellow"],
            ratings={f"test-rating-{j}": 1 / (j + 1) for j in range(10)},
            friends=[rng.randrange(2**53) for _ in range(10)],
            referred_by=rng.randrange(2**53),
        )
        for number in range(count)
    ]


# In the process that measures: one of these imports zlmdb, whichever version is there.


def ours(form: str, directory: str, rows: list[User]) -> dict[str, float]:
    import zlmdb

    value: Any = {"pickle": zlmdb.Pickle[User], "json": zlmdb.Json[User], "cbor": zlmdb.Cbor[User]}[form]

    class Store(zlmdb.Schema):
        users: zlmdb.Table[int, value]

    with zlmdb.open(directory, Store, durability="none") as db:
        start = perf_counter()
        with db.write() as t:
            table = t.users
            for row in rows:
                table[row.oid] = row
        write = perf_counter() - start
        with db.read() as t:
            table = t.users
            check(table[row.oid] for row in rows)
            start = perf_counter()
            for row in rows:
                touch(table[row.oid])
            return {"write": write, "read": perf_counter() - start}


def theirs(form: str, directory: str, rows: list[User]) -> dict[str, float]:
    import zlmdb

    base: Any = {"pickle": zlmdb.MapOidPickle, "json": zlmdb.MapOidJson, "cbor": zlmdb.MapOidCbor}[form]
    callables: Any = {} if form == "pickle" else {"marshal": User.marshal, "unmarshal": User.parse}
    table: Any = base(1, **callables)
    with zlmdb.Database(directory, maxsize=2**30, sync=False) as db:
        start = perf_counter()
        with db.begin(write=True) as txn:
            for row in rows:
                table[txn, row.oid] = row
        write = perf_counter() - start
        with db.begin() as txn:
            check(table[txn, row.oid] for row in rows)
            start = perf_counter()
            for row in rows:
                touch(table[txn, row.oid])
            return {"write": write, "read": perf_counter() - start}


def check(found: Any) -> None:
    for one, row in zip(found, users(100)):
        if one != row:
            raise SystemExit("what was stored does not come back")


def touch(user: User) -> None:
    """Look at every field."""
    _ = (
        user.oid, user.name, user.authid, user.uuid, user.email, user.birthday, user.is_friendly, user.tags,
        user.ratings, user.friends, user.referred_by,
    )  # fmt: skip


# In the process that tells.


def measured(python: str, side: str, form: str, count: int) -> dict[str, float]:
    """Seconds of writing and reading in a fresh process of *python*."""
    with tempfile.TemporaryDirectory() as directory:
        command = [
            python,
            str(Path(__file__).resolve()),
            "--side",
            side,
            "--form",
            form,
            "--count",
            str(count),
            directory,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{side} {form}: {done.stderr}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def tell(count: int, rounds: int) -> None:
    from rich.console import Console
    from rich.table import Table

    old = os.environ.get("ZLMDB_INTEROP_PYTHON")
    if old is None:
        raise SystemExit("set ZLMDB_INTEROP_PYTHON to the python of a virtual environment with zlmdb 26")
    pythons = {"zlmdb 26": old, "zlmdb": sys.executable}
    fastest: dict[tuple[str, str, str], float] = {}
    for _ in range(rounds):
        for form in FORMATS:
            for side, python in pythons.items():
                for operation, took in measured(python, side, form, count).items():
                    place = (form, operation, side)
                    fastest[place] = min(took, fastest.get(place, took))
    heading = f"{platform.python_implementation()} {platform.python_version()}, {count:,} users, fastest of {rounds}"
    picture = Table("map of a dataclass", "zlmdb 26", "zlmdb", "x (>= 1.5)", title=heading)
    for form in FORMATS:
        for operation in ("write", "read"):
            then, now = (fastest[form, operation, side] for side in pythons)
            picture.add_row(
                f"{form}, {operation}", f"{count / then:,.0f}/s", f"{count / now:,.0f}/s", f"{then / now:.2f}"
            )
    Console(width=100).print(picture)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--smoke", action="store_true", help="small, to see that it runs; the figures mean nothing")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--side", choices=["zlmdb", "zlmdb 26"], help=argparse.SUPPRESS)
    parser.add_argument("--form", choices=FORMATS, help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("directory", nargs="?", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side is None:
        tell(*((200, 1) if given.smoke else (given.count, given.rounds)))
        return
    measure = ours if given.side == "zlmdb" else theirs
    print(json.dumps(measure(given.form, given.directory, users(given.count))))


if __name__ == "__main__":
    main()
