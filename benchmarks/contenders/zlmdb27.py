"""This zlmdb: a table in a schema, with the codec of each variant.

"key by key" puts without ``put_many``; "plain dict" is ``Pickle[dict]``, where the others have ``dict[str, Any]``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cached_property, partial
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from types import new_class
from typing import Any

from ..records import Document, Shape
from .base import Cannot, Open, Store

NEEDS = {"zlmdb": "zlmdb"}


def store(key: Any, record: Any, t: Any) -> None:
    t.records[key] = record


class Zlmdb(Store):
    processes = True

    def __init__(
        self, path: Path, shape: Shape, durability: str, codec: str, name: str = "records", by_key: bool = False
    ) -> None:
        import zlmdb

        super().__init__(path, shape, durability)
        self.codec, self.by_key = codec, by_key
        value = shape.model
        if codec == "Pickle, plain dict":
            if shape.model is not Document:
                raise Cannot("for documents only, which are dicts")
            value = zlmdb.Pickle[dict]
        elif codec == "unchecked":
            value = zlmdb.Unchecked[zlmdb.Msgpack[shape.model]]
        elif codec != "default":
            value = getattr(zlmdb, codec)[shape.model]
        if codec == "FlatBuffers" and shape.model is Document:
            raise Cannot("FlatBuffers has no dict of anything: the types of all members must be declared")
        if codec == "Cbor" and find_spec("libipld") is not None:
            self.note = "libipld reads the CBOR"
        table: Any = zlmdb.Table[shape.key, value]
        if name != "records":
            table = new_class("Records", (table,), {"name": name})
        schema = type("Schema", (zlmdb.Schema,), {"__annotations__": {"records": table}})
        self.opened = ExitStack()
        self.db: Any = self.opened.enter_context(zlmdb.open(path, schema, durability=durability))
        self.records: Any = self.db.auto.records

    def table(self, shape: Shape) -> Store:
        """Of the same database: what is opened twice in a process is one environment."""
        return Zlmdb(self.path, shape, self.durability, self.codec, shape.name)

    def put_many(self, pairs: list[tuple[Any, Any]]) -> None:
        with self.db.write() as t:
            if self.by_key:
                records = t.records
                for key, record in pairs:
                    records[key] = record
            else:
                t.records.put_many(pairs)

    def get_many(self, keys: list[Any]) -> list[Any]:
        with self.db.read() as t:
            records = t.records
            return [records[key] for key in keys]

    @cached_property
    def views(self) -> Any:
        """The same database, with FlatBuffers read where they are."""
        import zlmdb
        from zlmdb.values import FlatBuffersView

        table: Any = zlmdb.Table[self.shape.key, FlatBuffersView[self.shape.model]]
        schema = type("Schema", (zlmdb.Schema,), {"__annotations__": {"records": table}})
        return self.opened.enter_context(zlmdb.open(self.path, schema, durability=self.durability))

    def get_field(self, keys: list[Any], field: str) -> list[Any]:
        if self.codec != "FlatBuffers":
            return super().get_field(keys, field)
        with self.views.read() as t:
            records, read = t.records, attrgetter(field)
            return [read(records[key]) for key in keys]

    def scan(self) -> Iterator[Any]:
        with self.db.read() as t:
            yield from t.records.select().values()

    def delete_many(self, keys: list[Any]) -> None:
        with self.db.write() as t:
            records = t.records
            for key in keys:
                try:  # noqa: SIM105 - as in `delete`
                    del records[key]
                except KeyError:
                    pass

    # As the pages advise for single operations; where a commit waits for the disk, threads share commits.

    def put(self, key: Any, record: Any) -> None:
        self.records[key] = record

    def get(self, key: Any) -> Any:
        return self.records[key]

    def delete(self, key: Any) -> None:
        with self.db.write() as t:
            try:  # noqa: SIM105 - suppress() is an object and two calls in what is timed
                del t.records[key]
            except KeyError:
                pass

    # Many at once: calls whose commits are shared.

    def put_in_flight(self, pairs: list[tuple[Any, Any]], most: int) -> None:
        submit, futures = self.db.submit, deque[Any]()
        for key, record in pairs:
            if len(futures) == most:
                futures.popleft().result()
            futures.append(submit(partial(store, key, record)))
        for future in futures:
            future.result()

    async def aput(self, key: Any, record: Any) -> None:
        await self.db.arun(partial(store, key, record))

    def where(self, field: str, value: Any) -> list[Any]:
        with self.db.read() as t:
            found: list[Any] = t.records.where(lambda record: getattr(record, field) == value).values().all()
            return found

    def project(self, *fields: str) -> list[Any]:
        source = ", ".join([f"record.{field}" for field in fields])
        give = eval(f"lambda record: {source if len(fields) == 1 else f'({source})'}")
        with self.db.read() as t:
            found: list[Any] = t.records.fields(give).all()
            return found

    def first(self) -> Any:
        with self.db.read() as t:
            return t.records.limit(1).values().first()

    def count(self) -> int:
        with self.db.read() as t:
            return len(t.records)

    def clear(self) -> None:
        with self.db.write() as t:
            t.records.clear()

    def close(self) -> None:
        super().close()
        self.opened.close()


VARIANTS: dict[str, Open] = {
    "zlmdb": partial(Zlmdb, codec="default"),
    "zlmdb Unchecked": partial(Zlmdb, codec="unchecked"),
    "zlmdb Pickle": partial(Zlmdb, codec="Pickle"),
    "zlmdb Pickle, plain dict": partial(Zlmdb, codec="Pickle, plain dict"),
    "zlmdb Json": partial(Zlmdb, codec="Json"),
    "zlmdb Cbor": partial(Zlmdb, codec="Cbor"),
    "zlmdb FlatBuffers": partial(Zlmdb, codec="FlatBuffers"),
    "zlmdb FlatBuffers, key by key": partial(Zlmdb, codec="FlatBuffers", by_key=True),
}
