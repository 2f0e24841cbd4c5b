"""ObjectBox: an entity with a property for each column; int keys are its object ids, others an indexed property."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from ..records import Shape, column_from_store, column_to_store
from .base import Cannot, Open, Store, Tables

NEEDS = {"objectbox": "objectbox"}
AT_ONCE = 10_000
"""The most objects that its ``put`` takes."""

TEXTS = ("date", "datetime", "uuids", "json")
"""Kinds of columns that it has no type for."""


class Box(Tables):
    def __init__(self, path: Path, shape: Shape, durability: str) -> None:
        import objectbox as ob

        if durability != "full":
            self.note = "always commits in full: its Python API has no weaker level"
        super().__init__(path, shape, durability)
        self.durability = "full"
        path.mkdir(exist_ok=True)
        model = ob.Model()
        self.entities = {one.name: entity(one) for one in (shape, *shape.beside)}
        for made in self.entities.values():
            model.entity(made)
        self.store = ob.Store(
            model=model, model_json_file=str(path / "model.json"), directory=str(path / "data"),
            max_db_size_in_kb=64 << 20, max_readers=1024,
        )  # fmt: skip
        self.use(shape.name)

    def use(self, name: str) -> None:
        shape = self.shape
        self.by_id = shape.key is int
        self.names = [field for field in shape.columns if field != shape.key_field]
        self.entity = self.entities[name]
        self.box = self.store.box(self.entity)
        self.local = threading.local()
        writers = {"uuid": str, **{kind: column_to_store(kind) for kind in TEXTS}}
        self.writers = [(field, writers.get(shape.columns[field])) for field in self.names]
        readers = {"uuid": UUID, "bytes": bytes, **{kind: column_from_store(kind) for kind in TEXTS}}
        self.readers = [(field, readers[kind]) for field, kind in shape.columns.items() if kind in readers]

    def found(self, key: Any) -> Any:
        """The query for a key; a query is one a thread, and used again, as its documentation recommends."""
        query = getattr(self.local, "query", None)
        if query is None:
            query = self.local.query = self.box.query(self.entity.key.equals("")).build()
        return query.set_parameter("key", self.text(key))

    def text(self, key: Any) -> str:
        return key.hex() if isinstance(key, bytes) else str(key)

    def _identity(self, key: Any) -> dict[str, Any]:
        return {"obx_id": key} if self.by_id else {"obx_id": 0, "key": self.text(key)}

    def native(self, pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        shape, entity, made = self.shape, self.entity, []
        at = {name: number for number, name in enumerate(shape.columns)}
        for key, record in pairs:
            values = shape.values(record)
            facts = {name: values[at[name]] for name in self.names}
            made.append((key, entity(**facts, **self._identity(key))))
        return made

    def _written(self, record: Any) -> Any:
        for name, write in self.writers:
            if write is not None:
                value = getattr(record, name)
                setattr(record, name, value if isinstance(value, str) else write(value))
        return record

    def _read(self, record: Any) -> Any:
        if record is None:
            return None
        for name, read in self.readers:
            setattr(record, name, read(getattr(record, name)))
        if self.shape.key_field is not None:
            setattr(record, self.shape.key_field, record.obx_id if self.by_id else record.key)
        return record

    def put_many(self, pairs: list[tuple[Any, Any]]) -> None:
        written = [self._written(record) for _, record in pairs]
        with self.store.write_tx():
            for start in range(0, len(written), AT_ONCE):
                self.box.put(written[start : start + AT_ONCE])

    def put(self, key: Any, record: Any) -> None:
        if not self.by_id and not record.obx_id:
            found = self.found(key).find_ids()
            if found:
                record.obx_id = found[0]
        self.box.put(self._written(record))

    def get_many(self, keys: list[Any]) -> list[Any]:
        with self.store.read_tx():
            return [self.get(key) for key in keys]

    def get(self, key: Any) -> Any:
        if self.by_id:
            return self._read(self.box.get(key))
        return self._read(self.found(key).find_first())

    def scan(self) -> Iterator[Any]:
        return map(self._read, self.box.get_all())

    def delete_many(self, keys: list[Any]) -> None:
        with self.store.write_tx():
            for key in keys:
                self.delete(key)

    def delete(self, key: Any) -> None:
        if self.by_id:
            self.box.remove(key)
        else:
            self.found(key).remove()

    def where(self, field: str, value: Any) -> list[Any]:
        return [
            self._read(record) for record in self.box.query(getattr(self.entity, field).equals(value)).build().find()
        ]

    def count(self) -> int:
        return int(self.box.count())

    def clear(self) -> None:
        self.box.remove_all()

    def close(self) -> None:
        self.store.close()


def entity(shape: Shape) -> Any:
    """The class of an entity with a property for each column."""
    import objectbox as ob

    types: dict[str, Callable[[], Any]] = {
        "int": ob.Int64, "str": ob.String, "float": ob.Float64, "bool": ob.Bool, "bytes": ob.Bytes,
    }  # fmt: skip
    properties: dict[str, Any] = {"obx_id": ob.Id(assignable=True)}
    if shape.key is not int:
        properties["key"] = ob.String(index=ob.Index())
    for name, kind in shape.columns.items():
        if name != shape.key_field:
            properties[name] = types.get(kind, ob.String)()
    return ob.Entity()(type(shape.name.capitalize(), (), properties))


def opened(path: Path, shape: Shape, durability: str) -> Store:
    if sys.implementation.name != "cpython":
        raise Cannot("its library is loaded by ctypes for CPython only")
    return Box(path, shape, durability)


VARIANTS: dict[str, Open] = {"ObjectBox": opened}
