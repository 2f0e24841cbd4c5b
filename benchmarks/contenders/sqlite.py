"""sqlite3 of the standard library in WAL mode: a typed column each, or one column of JSON text."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from datetime import date, datetime
from operator import attrgetter
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
NOTES = {"commit": "SQLite syncs here when it copies its log, not at each commit: a power loss may cost many"}
"""What a durability means with a log."""

PLAIN = ("int", "str", "float", "bytes")
"""What comes back as it was put."""

KEYS: dict[type, str] = {int: "INTEGER", str: "TEXT", bytes: "BLOB"}


class Sqlite(Tables):
    """Connections are one a thread: the module's own rule."""

    processes = True

    def __init__(self, path: Path, shape: Shape, durability: str, columns: bool) -> None:
        super().__init__(path, shape, durability)
        self.columns = columns
        self.note = NOTES.get(durability, "")
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
        self.query = f'SELECT {self.selected} FROM {name} WHERE "key" = ?'
        self.remove = f'DELETE FROM {name} WHERE "key" = ?'
        self.take = self.column_taker()

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

    def column_taker(self) -> Callable[[Any], Any]:
        """What makes the columns of a record: of its fields as they are, where SQLite has all of their types."""
        shape = self.shape
        if not self.columns:
            return lambda record: (json.dumps(record if isinstance(record, dict) else self.plain(record)),)
        is_object = not shape.is_bytes and shape.model is not Document
        if is_object and len(self.names) > 1 and all(shape.columns[name] in PLAIN for name in self.names):
            return attrgetter(*self.names)
        values = shape.values
        used = [
            (at, column_to_store(kind)) for at, (name, kind) in enumerate(shape.columns.items()) if name in self.names
        ]

        def converted(record: Any) -> list[Any]:
            found = values(record)
            return [write(found[at]) for at, write in used]

        return converted

    def row(self, key: Any, record: Any) -> tuple[Any, ...]:
        return (self.key(key), *self.take(record))

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
        row = self.row
        connection.executemany(self.insert, (row(key, record) for key, record in pairs))
        connection.execute("COMMIT")

    def put(self, key: Any, record: Any) -> None:
        self.connection.execute(self.insert, self.row(key, record))  # a statement by itself is a transaction

    def get_many(self, keys: list[Any]) -> list[Any]:
        query, execute, key, record = self.query, self.connection.execute, self.key, self.record
        execute("BEGIN")
        found = [record(execute(query, (key(one),)).fetchone()) for one in keys]
        execute("COMMIT")
        return found

    def get_field(self, keys: list[Any], field: str) -> list[Any]:
        if self.shape.columns[field] not in PLAIN:
            return super().get_field(keys, field)
        query = f'SELECT {self.column(field)} FROM {self.name} WHERE "key" = ?'
        execute, key = self.connection.execute, self.key
        execute("BEGIN")
        found = [execute(query, (key(one),)).fetchone()[0] for one in keys]
        execute("COMMIT")
        return found

    def column(self, field: str) -> str:
        return f'"{field}"' if self.columns else f"json_extract(data, '$.{field}')"

    def get(self, key: Any) -> Any:
        return self.record(self.connection.execute(self.query, (self.key(key),)).fetchone())

    def scan(self) -> Iterator[Any]:
        return map(self.record, self.connection.execute(f'SELECT {self.selected} FROM {self.name} ORDER BY "key"'))

    def delete_many(self, keys: list[Any]) -> None:
        connection = self.connection
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(self.remove, ((self.key(key),) for key in keys))
        connection.execute("COMMIT")

    def delete(self, key: Any) -> None:
        self.connection.execute(self.remove, (self.key(key),))

    def where(self, field: str, value: Any) -> list[Any]:
        query = f"SELECT {self.selected} FROM {self.name} WHERE {self.column(field)} = ?"
        return list(map(self.record, self.connection.execute(query, (value,))))

    def project(self, *fields: str) -> list[Any]:
        if not all(self.shape.columns[field] in PLAIN for field in fields):
            return super().project(*fields)
        found = self.connection.execute(f"SELECT {', '.join(map(self.column, fields))} FROM {self.name}")
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
