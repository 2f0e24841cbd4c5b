"""This zlmdb, one operation a transaction: in ``with`` blocks, and by ``db.run``. "zlmdb" does it by ``db.auto``."""

from __future__ import annotations

from functools import partial
from typing import Any

from .base import Cannot, Open
from .zlmdb27 import NEEDS as NEEDS
from .zlmdb27 import Zlmdb, store

WORKLOADS = ("transactions", "transactions_durable")
"""Those that tell the ways apart."""


class Way(Zlmdb):
    """Many at once are ``db.submit`` and ``db.arun`` in any case."""

    def put_in_flight(self, pairs: list[tuple[Any, Any]], most: int) -> None:
        raise Cannot('by db.submit: see "zlmdb"')

    async def aput(self, key: Any, record: Any) -> None:
        raise Cannot('by db.arun: see "zlmdb"')


class Blocks(Way):
    def put(self, key: Any, record: Any) -> None:
        with self.db.write() as t:
            t.records[key] = record

    def get(self, key: Any) -> Any:
        with self.db.read() as t:
            return t.records[key]


def read(key: Any, t: Any) -> Any:
    return t.records[key]


class Calls(Way):
    def put(self, key: Any, record: Any) -> None:
        self.db.run(partial(store, key, record))

    def get(self, key: Any) -> Any:
        return self.db.run(partial(read, key), write=False)


VARIANTS: dict[str, Open] = {
    "zlmdb, with blocks": partial(Blocks, codec="default"),
    "zlmdb, run": partial(Calls, codec="default"),
}
