"""peewee on SQLite, with the pragmas its documentation recommends; bulk_create in batches, in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..records import Shape, column_from_store, column_to_store
from .base import Open, Tables
from .sqlite import NOTES

NEEDS = {"peewee": "peewee"}
SYNCHRONOUS = {"none": 0, "commit": 1, "full": 2}


class Peewee(Tables):
    processes = True

    def __init__(self, path: Path, shape: Shape, durability: str) -> None:
        import peewee as pw

        super().__init__(path, shape, durability)
        self.note = NOTES.get(durability, "")
        path.mkdir(exist_ok=True)
        pragmas = {"journal_mode": "wal", "synchronous": SYNCHRONOUS[durability]}
        self.db = pw.SqliteDatabase(str(path / "records.sqlite"), pragmas=pragmas, timeout=60)

        self.use("records")

    def use(self, name: str) -> None:
        import peewee as pw

        shape = self.shape

        class JsonField(pw.TextField):  # type: ignore[misc]
            db_value = staticmethod(column_to_store("json"))
            python_value = staticmethod(column_from_store("json"))

        class InstantField(pw.TextField):  # type: ignore[misc]
            db_value = staticmethod(column_to_store("datetime"))
            python_value = staticmethod(column_from_store("datetime"))

        class UuidsField(pw.TextField):  # type: ignore[misc]
            db_value = staticmethod(column_to_store("uuids"))
            python_value = staticmethod(column_from_store("uuids"))

        types: dict[str, Any] = {
            "int": pw.BigIntegerField, "str": pw.TextField, "float": pw.DoubleField, "bool": pw.BooleanField,
            "bytes": pw.BlobField, "uuid": pw.BinaryUUIDField, "date": pw.DateField, "json": JsonField,
            "datetime": InstantField, "uuids": UuidsField,
        }  # fmt: skip
        keys: dict[str, Any] = {
            "int": pw.BigIntegerField, "str": pw.TextField, "bytes": pw.BlobField, "UUID": pw.BinaryUUIDField,
        }  # fmt: skip
        columns: dict[str, Any] = {"key": keys[shape.key.__name__](primary_key=True)}
        self.names = [field for field in shape.columns if field != shape.key_field]
        columns.update({field: types[shape.columns[field]]() for field in self.names})
        meta = type("Meta", (), {"database": self.db, "table_name": name})
        self.model: Any = type("Record", (pw.Model,), {**columns, "Meta": meta})
        if shape.key_field is not None:
            setattr(self.model, shape.key_field, property(lambda record: record.key))
        self.db.create_tables([self.model])

    def native(self, pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        shape, model = self.shape, self.model
        used = [(at, name) for at, name in enumerate(shape.columns) if name != shape.key_field]
        made = []
        for key, record in pairs:
            values = shape.values(record)
            made.append((key, model(key=key, **{name: values[at] for at, name in used})))
        return made

    def put_many(self, pairs: list[tuple[Any, Any]]) -> None:
        with self.db.atomic():
            self.model.bulk_create([record for _, record in pairs], batch_size=32_000 // (len(self.names) + 1))

    def put(self, key: Any, record: Any) -> None:
        self.model.replace(record.__data__).execute()

    def get_many(self, keys: list[Any]) -> list[Any]:
        get, key_field = self.model.get, self.model.key
        with self.db.atomic():
            return [get(key_field == key) for key in keys]

    def get_field(self, keys: list[Any], field: str) -> list[Any]:
        model, key_field = self.model, self.model.key
        with self.db.atomic():
            return [model.select(getattr(model, field)).where(key_field == key).scalar() for key in keys]

    def get(self, key: Any) -> Any:
        return self.model.get(self.model.key == key)

    def scan(self) -> Iterator[Any]:
        return iter(self.model.select().iterator())

    def delete_many(self, keys: list[Any]) -> None:
        with self.db.atomic():
            for key in keys:
                self.model.delete().where(self.model.key == key).execute()

    def where(self, field: str, value: Any) -> list[Any]:
        return list(self.model.select().where(getattr(self.model, field) == value))

    def project(self, *fields: str) -> list[Any]:
        found = self.model.select(*[getattr(self.model, field) for field in fields]).tuples()
        return [value for (value,) in found] if len(fields) == 1 else list(found)

    def first(self) -> Any:
        return self.model.select().first()

    def count(self) -> int:
        return int(self.model.select().count())

    def clear(self) -> None:
        self.model.delete().execute()

    def close(self) -> None:
        self.db.close()


VARIANTS: dict[str, Open] = {"peewee": Peewee}
