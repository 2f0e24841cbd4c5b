"""sqlite3 of the standard library in WAL mode: a typed column each, or one column of JSON text."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from ..records import Document, Shape, column_from_store, column_to_store
from .base import Cannot, Open, Store, Tables

NEEDS = {"sqlite3": "Python itself, built with sqlite"}
SQL = {
    "int": "INTEGER", "bool": "INTEGER", "float": "REAL", "str": "TEXT", "date": "TEXT", "json": "TEXT",
    "bytes": "BLOB", "uuid": "BLOB", "datetime": "TEXT", "uuids": "TEXT",
}  # fmt: skip
SYNCHRONOUS = {"none": "OFF", "commit": "NORMAL", "full": "FULL"}
PLAIN = ("int", "str", "float", "bytes")
"""What comes back as it was put."""

KEYS: dict[type, str] = {int: "INTEGER", str: "TEXT", bytes: "BLOB"}


class Sqlite(Tables):
    """Connections are one a thread: the module's own rule."""

    processes = True

    def __init__(self, path: Path, shape: Shape, durability: str, columns: bool) -> None:
        super().__init__(path, shape, durability)
        self.columns = columns
        path.mkdir(exist_ok=True)
        self.file = path / "records.sqlite"
        self.local = threading.local()
        self.opened: list[sqlite3.Connection] = []
        self.use("records")

    def use(self, name: str) -> None:
        shape = self.shape
        self.name = name
        self.key: Callable[[Any], Any] = (lambda key: key) if shape.key in KEYS else (lambda key: key.bytes)
        if self.columns:
            self.names = [name for name in shape.columns if name != shape.key_field]
            declared = [f'"{name}" {SQL[shape.columns[name]]}' for name in self.names]
            self.selected = ", ".join(f'"{"key" if name == shape.key_field else name}"' for name in shape.columns)
            self.from_row = self.row_reader()
        else:
            declared, self.names, self.selected = ["data TEXT"], ["data"], "data"
        key = f'"key" {KEYS.get(shape.key, "BLOB")} PRIMARY KEY'
        # Without the hidden integer key where the key is none: SQLite's own advice for such tables.
        suffix = "" if shape.key is int else " WITHOUT ROWID"
        with self.connection as connection:
            connection.execute(f"CREATE TABLE IF NOT EXISTS {name} ({', '.join([key, *declared])}){suffix}")
        marks = ", ".join("?" * (len(self.names) + 1))
        self.insert = f"INSERT OR REPLACE INTO {name} VALUES ({marks})"

    @property
    def connection(self) -> sqlite3.Connection:
        found = getattr(self.local, "connection", None)
        if found is None:
            found = sqlite3.connect(str(self.file), timeout=60, isolation_level=None, check_same_thread=False)
            found.execute("PRAGMA journal_mode=WAL").close()
            found.execute(f"PRAGMA synchronous={SYNCHRONOUS[self.durability]}").close()
            self.local.connection = found
            self.opened.append(found)
        return found  # type: ignore[no-any-return]

    def row_reader(self) -> Callable[[Any], Any]:
        readers = [column_from_store(kind) for kind in self.shape.columns.values()]
        plain = all(kind in PLAIN for kind in self.shape.columns.values())
        make, model = self.shape.make, self.shape.model
        if plain:
            return make if self.shape.is_bytes else lambda row: model(*row)
        return lambda row: make([read(value) for read, value in zip(readers, row)])

    def rows(self, pairs: list[tuple[Any, Any]]) -> Iterator[tuple[Any, ...]]:
        shape = self.shape
        if not self.columns:
            for key, record in pairs:
                yield self.key(key), json.dumps(record if isinstance(record, dict) else self.plain(record))
            return
        used = [
            (at, column_to_store(shape.columns[name])) for at, name in enumerate(shape.columns) if name in self.names
        ]
        for key, record in pairs:
            values = shape.values(record)
            yield (self.key(key), *[write(values[at]) for at, write in used])

    def plain(self, record: Any) -> Any:
        """What JSON can hold of *record*."""
        columns = self.shape.columns
        if self.shape.is_bytes:
            return record
        writers: dict[str, Callable[[Any], Any]] = {
            "uuid": str, "date": str, "datetime": datetime.isoformat, "uuids": lambda value: [one.hex for one in value],
        }  # fmt: skip
        found = zip(columns.items(), self.shape.values(record))
        return {name: writers[kind](value) if kind in writers else value for (name, kind), value in found}

    def record(self, row: tuple[Any, ...]) -> Any:
        if self.columns:
            return self.from_row(row)
        data = json.loads(row[0])
        if self.shape.model is Document or self.shape.is_bytes:
            return data
        readers: dict[str, Callable[[Any], Any]] = {
            "uuid": UUID, "date": date.fromisoformat, "datetime": datetime.fromisoformat,
            "uuids": lambda value: [UUID(one) for one in value],
        }  # fmt: skip
        for name, kind in self.shape.columns.items():
            if kind in readers:
                data[name] = readers[kind](data[name])
        return self.shape.model(**data)

    def put_many(self, pairs: list[tuple[Any, Any]]) -> None:
        connection = self.connection
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(self.insert, self.rows(pairs))
        connection.execute("COMMIT")

    def get_many(self, keys: list[Any]) -> list[Any]:
        query = f'SELECT {self.selected} FROM {self.name} WHERE "key" = ?'
        execute, key, record = self.connection.execute, self.key, self.record
        return [record(execute(query, (key(one),)).fetchone()) for one in keys]

    def scan(self) -> Iterator[Any]:
        return map(self.record, self.connection.execute(f'SELECT {self.selected} FROM {self.name} ORDER BY "key"'))

    def delete_many(self, keys: list[Any]) -> None:
        connection = self.connection
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(f'DELETE FROM {self.name} WHERE "key" = ?', ((self.key(key),) for key in keys))
        connection.execute("COMMIT")

    def where(self, field: str, value: Any) -> list[Any]:
        column = f'"{field}"' if self.columns else f"json_extract(data, '$.{field}')"
        return list(
            map(
                self.record,
                self.connection.execute(f"SELECT {self.selected} FROM {self.name} WHERE {column} = ?", (value,)),
            )
        )

    def project(self, *fields: str) -> list[Any]:
        if not all(self.shape.columns[field] in PLAIN for field in fields):
            return super().project(*fields)
        columns = [f'"{field}"' if self.columns else f"json_extract(data, '$.{field}')" for field in fields]
        found = self.connection.execute(f"SELECT {', '.join(columns)} FROM {self.name}")
        return [value for (value,) in found] if len(fields) == 1 else list(found)

    def count(self) -> int:
        return int(self.connection.execute(f"SELECT count(*) FROM {self.name}").fetchone()[0])

    def clear(self) -> None:
        self.connection.execute(f"DELETE FROM {self.name}")

    def close(self) -> None:
        for connection in self.opened:
            connection.close()


def columns(path: Path, shape: Shape, durability: str) -> Store:
    return Sqlite(path, shape, durability, True)


def json_text(path: Path, shape: Shape, durability: str) -> Store:
    if shape.model is bytes:
        raise Cannot("JSON has no bytes")
    return Sqlite(path, shape, durability, False)


VARIANTS: dict[str, Open] = {"sqlite3, typed columns": columns, "sqlite3, JSON text": json_text}
