"""What every contender offers. A contender overrides what its own documents have a better way for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar

from ..records import Shape

DURABILITIES = ("none", "commit", "full")
"""From "the end of the process loses nothing, a power loss may" to "fsync before every commit returns"."""


class Cannot(Exception):
    """The contender has no way to do this; the text says why."""


class Store:
    """One open database. *data* are pairs of a key and what `native` made of a record."""

    processes: ClassVar[bool] = False
    """Whether several processes may have it open at once."""

    in_memory: ClassVar[bool] = False
    """Whether closing loses the records."""

    helpers: ClassVar[int] = 1
    """Threads that write for a program of asyncio. More are faster only where they share commits."""

    note: str = ""
    """What a reader of its figures must know."""

    def __init__(self, path: Path, shape: Shape, durability: str) -> None:
        self.path = path
        self.shape = shape
        self.durability = durability
        self.tables: dict[str, Store] = {}

    def native(self, pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """The pairs with each record as what a program that uses this store has in hand. Not timed."""
        return list(pairs)

    # -- to be given by each ----------------------------------------------------------------------------------------

    def put_many(self, pairs: list[tuple[Any, Any]]) -> None:
        """Insert or replace all of them, in one transaction where there are transactions."""
        raise NotImplementedError

    def get_many(self, keys: list[Any]) -> list[Any]:
        """The records of these keys, in this order, from one snapshot where there are snapshots."""
        raise NotImplementedError

    def get_field(self, keys: list[Any], field: str) -> list[Any]:
        """One field of each of these records; a store that can read it without the others does."""
        return list(map(attrgetter(field), self.get_many(keys)))

    def scan(self) -> Iterator[Any]:
        """Every record, decoded."""
        raise NotImplementedError

    def delete_many(self, keys: list[Any]) -> None:
        """Delete the records of these keys, those that are there, in one transaction."""
        raise NotImplementedError

    def count(self) -> int:
        """The number of records."""
        return sum(1 for _ in self.scan())

    def flush(self) -> None:
        """Give what is written to the operating system."""

    def close(self) -> None:
        """Close the database, and those beside it."""
        for store in self.tables.values():
            store.close()

    # -- other tables -------------------------------------------------------------------------------------------------

    def beside(self, shape: Shape) -> Store:
        """The table of another shape in the same database. Opened once, and closed with this one."""
        if shape.name not in self.tables:
            self.tables[shape.name] = self.table(shape)
        return self.tables[shape.name]

    def table(self, shape: Shape) -> Store:
        """Opens it. Where there are no tables it is a database beside this one; see `Tables`."""
        return type(self)(self.path / shape.name, shape, self.durability)

    # -- one operation, one transaction -----------------------------------------------------------------------------

    def put(self, key: Any, record: Any) -> None:
        self.put_many([(key, record)])

    def get(self, key: Any) -> Any:
        return self.get_many([key])[0]

    def delete(self, key: Any) -> None:
        self.delete_many([key])

    # -- many writes at once ----------------------------------------------------------------------------------------

    def put_in_flight(self, pairs: list[tuple[Any, Any]], most: int) -> None:
        """Put each in a transaction of its own, from one thread, of which *most* may be unfinished; then wait for all.

        A store whose calls return when they are done has one unfinished.
        """
        for key, record in pairs:
            self.put(key, record)

    async def aput(self, key: Any, record: Any) -> None:
        """`put` in a program of asyncio: a call that blocks goes to a thread of the executor, as asyncio advises."""
        await asyncio.get_running_loop().run_in_executor(None, self.put, key, record)

    # -- queries; a store without a query language scans --------------------------------------------------------------

    def where(self, field: str, value: Any) -> list[Any]:
        """The records with this value in a field, decoded; there is no index on it."""
        return [record for record in self.scan() if getattr(record, field) == value]

    def project(self, *fields: str) -> list[Any]:
        """One field of every record, or tuples of several."""
        return list(map(attrgetter(*fields), self.scan()))

    def first(self) -> Any:
        """Some record."""
        return next(iter(self.scan()))

    def clear(self) -> None:
        """Delete every record."""
        raise Cannot("no way to delete all records but one by one")


Open = Callable[[Path, Shape, str], Store]


class Tables(Store):
    """A database that has tables. Those beside the first are copies of the store that `use` another."""

    def use(self, name: str) -> None:
        """Make what the methods need of the table *name*, which holds records of `shape`."""
        raise NotImplementedError

    def table(self, shape: Shape) -> Store:
        other = copy(self)
        other.shape, other.tables = shape, {}
        other.use(shape.name)
        return other


class Bytes(Store):
    """A store that holds bytes: *dumps* and *loads* make values of records, *pack* makes keys."""

    def __init__(self, path: Path, shape: Shape, durability: str, codec: str) -> None:
        super().__init__(path, shape, durability)
        self.codec = codec
        self.encode_shape()

    def encode_shape(self) -> None:
        """Make what encodes the keys and records of its shape."""
        from ..codecs import CODECS, key_encoder

        self.pack = key_encoder(self.shape)
        self.dumps, self.loads = CODECS[self.codec](self.shape)
