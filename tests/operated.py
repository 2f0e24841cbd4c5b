"""What the tests of operations share: a database with a table of every kind, and ways to damage a file."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Optional
from uuid import UUID

import zlmdb

START = datetime(2024, 1, 1, tzinfo=timezone.utc)


@dataclass
class User:
    name: str
    email: str
    age: int
    joined: datetime
    boss: Optional[UUID] = None


class Users(zlmdb.Table[UUID, User]):
    """Users by id."""

    by_email = zlmdb.UniqueIndex[str]("email")
    by_age = zlmdb.Index[int]("age")
    by_joined = zlmdb.Index[datetime]("joined")
    by_boss = zlmdb.Index[UUID]("boss")
    by_both = zlmdb.Index[tuple[int, str]]("age", "name")
    by_initial = zlmdb.Index[str](lambda user: user.name[:1], version=1)


class Store(zlmdb.Schema):
    users: Users
    logins: zlmdb.Table[str, int]
    weather: zlmdb.Table[tuple[str, datetime], zlmdb.Zlib[zlmdb.Json[dict[str, float]]]]
    objects: zlmdb.Table[int, zlmdb.Pickle[object]]
    blobs: zlmdb.Table[bytes, zlmdb.Checked[bytes]]


def user(n: int) -> User:
    boss = UUID(int=n - 1) if n % 3 == 1 and n > 1 else None
    return User(f"user {n}", f"u{n}@example.com", n % 50, START + timedelta(hours=n), boss)


def fill(db: zlmdb.Database[Store], count: int = 100) -> None:
    with db.write() as t:
        for n in range(count):
            t.users[UUID(int=n)] = user(n)
            t.logins[f"user {n}"] = n
            t.weather["Lima", START + timedelta(days=n)] = {"degrees": n + 0.5}
            t.objects[n] = {"n": n}
            t.blobs[b"%06d" % n] = bytes([n % 256]) * (20 if n % 10 else 9000)


def content(db: zlmdb.Database[Any]) -> dict[str, dict[Any, Any]]:
    with db.read() as t:
        return {name: dict(t[name]) for name in t}


def make(path: Path, count: int = 100, **options: Any) -> None:
    with zlmdb.open(path, Store, **{"durability": "none", **options}) as db:
        fill(db, count)


def data_file(path: Path) -> Path:
    return path / "data.mdb" if path.is_dir() else path


def flip(path: Path, needle: bytes, offset: int = 0) -> int:
    """Flip one bit in every place of the file that holds *needle*; how many. One transaction leaves several copies."""
    file = data_file(path)
    data = bytearray(file.read_bytes())
    found, start = 0, data.find(needle)
    while start >= 0:
        data[start + offset] ^= 1
        found, start = found + 1, data.find(needle, start + 1)
    file.write_bytes(data)
    return found


def mutated(data: bytes, rnd: random.Random) -> bytes:
    """*data* with a few bits flipped, a stretch overwritten, or an end cut off."""
    copy = bytearray(data)
    kind = rnd.randrange(10)
    if kind < 6:
        for _ in range(rnd.choice([1, 1, 1, 4, 40])):
            copy[rnd.randrange(len(copy))] ^= 1 << rnd.randrange(8)
    elif kind < 8:
        start = rnd.randrange(len(copy))
        length = min(rnd.choice([1, 8, 100, 4096]), len(copy) - start)
        copy[start : start + length] = bytes(length) if kind == 6 else rnd.randbytes(length)
    else:
        del copy[rnd.randrange(len(copy)) :]
    return bytes(copy)


def child(program: str) -> list[str]:
    """The command of a process that runs *program*."""
    return [sys.executable, "-c", program]
