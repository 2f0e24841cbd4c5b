from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import zlmdb


@dataclass
class Page:
    text: str
    made: datetime


class Pages(zlmdb.Table[str, Page], expires="made", ttl=timedelta(minutes=1)):
    """Pages by their address. Each is gone a minute after it was made."""


class Store(zlmdb.Schema):
    pages: Pages


def page(db: zlmdb.Database[Store], address: str, render: Callable[[str], str]) -> str:
    with db.read() as t:
        known = t.pages.get(address)
    if known is not None:
        return known.text
    text = render(address)
    with db.write() as t:
        t.pages[address] = Page(text, made=datetime.now(timezone.utc))
    return text


def slow(address: str) -> str:
    print("rendering", address)
    return f"<h1>{address}</h1>"


with zlmdb.open(None, Store) as db:
    print(page(db, "/", slow))
    print(page(db, "/", slow))
