"""SQLAlchemy's ORM on SQLite: mapped objects in a session; bulk inserts by add_all, as its tutorial does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..records import Shape, column_from_store, column_to_store
from .base import Open, Tables
from .sqlite import NOTES, SYNCHRONOUS

NEEDS = {"sqlalchemy": "SQLAlchemy>=2"}


class SqlAlchemy(Tables):
    processes = True

    def __init__(self, path: Path, shape: Shape, durability: str) -> None:
        import sqlalchemy as sa
        from sqlalchemy import event

        super().__init__(path, shape, durability)
        self.sa, self.note = sa, NOTES.get(durability, "")
        path.mkdir(exist_ok=True)
        self.engine = sa.create_engine(f"sqlite:///{path / 'records.sqlite'}", connect_args={"timeout": 60})

        @event.listens_for(self.engine, "connect")
        def configure(connection: Any, _: Any) -> None:
            connection.execute("PRAGMA journal_mode=WAL").close()
            connection.execute(f"PRAGMA synchronous={SYNCHRONOUS[durability]}").close()

        self.use("records")

    def use(self, name: str) -> None:
        from sqlalchemy import orm

        sa, shape = self.sa, self.shape

        class Text(sa.TypeDecorator):  # type: ignore[misc, name-defined]
            impl = sa.String
            cache_ok = True

            def __init__(self, kind: str) -> None:
                super().__init__()
                self.kind = kind

            def process_bind_param(self, value: Any, dialect: Any) -> Any:
                return column_to_store(self.kind)(value)

            def process_result_value(self, value: Any, dialect: Any) -> Any:
                return column_from_store(self.kind)(value)

        types: dict[str, Any] = {
            "int": sa.BigInteger, "str": sa.String, "float": sa.Float, "bool": sa.Boolean, "bytes": sa.LargeBinary,
            "uuid": sa.Uuid, "date": sa.Date, "json": sa.JSON, "datetime": Text("datetime"), "uuids": Text("uuids"),
        }  # fmt: skip
        keys: dict[str, Any] = {"int": sa.Integer, "str": sa.String, "bytes": sa.LargeBinary, "UUID": sa.Uuid}

        class Base(orm.DeclarativeBase):
            pass

        columns: dict[str, Any] = {"key": orm.mapped_column(keys[shape.key.__name__], primary_key=True)}
        for field, kind in shape.columns.items():
            if field == shape.key_field:
                columns[field] = orm.synonym("key")
            else:
                # "metadata" is the name of something else on declarative classes
                columns[_attribute(field)] = orm.mapped_column(field, types[kind])
        self.model: Any = type("Record", (Base,), {"__tablename__": name, **columns})
        Base.metadata.create_all(self.engine)
        self.session: Any = orm.sessionmaker(self.engine, expire_on_commit=False)

    def native(self, pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        names, model, key_field = list(self.shape.columns), self.model, self.shape.key_field
        return [
            (
                key,
                model(
                    key=key,
                    **{_attribute(n): v for n, v in zip(names, self.shape.values(record)) if n != key_field},
                ),
            )
            for key, record in pairs
        ]

    def put_many(self, pairs: list[tuple[Any, Any]]) -> None:
        with self.session.begin() as session:
            session.add_all([record for _, record in pairs])

    def put(self, key: Any, record: Any) -> None:
        with self.session.begin() as session:
            session.merge(record)

    def get_many(self, keys: list[Any]) -> list[Any]:
        with self.session() as session:
            return [session.get(self.model, key) for key in keys]

    def get_field(self, keys: list[Any], field: str) -> list[Any]:
        query = self.sa.select(getattr(self.model, field)).where(self.model.key == self.sa.bindparam("key"))
        with self.session() as session:
            return [session.scalar(query, {"key": key}) for key in keys]

    def scan(self) -> Iterator[Any]:
        with self.session() as session:
            query = self.sa.select(self.model).execution_options(yield_per=1000)
            yield from session.scalars(query)

    def delete_many(self, keys: list[Any]) -> None:
        with self.session.begin() as session:
            for key in keys:
                session.execute(self.sa.delete(self.model).where(self.model.key == key))

    def where(self, field: str, value: Any) -> list[Any]:
        with self.session() as session:
            return list(session.scalars(self.sa.select(self.model).where(getattr(self.model, field) == value)))

    def project(self, *fields: str) -> list[Any]:
        query = self.sa.select(*[getattr(self.model, field) for field in fields])
        with self.session() as session:
            return list(session.scalars(query) if len(fields) == 1 else session.execute(query).tuples())

    def first(self) -> Any:
        with self.session() as session:
            return session.scalars(self.sa.select(self.model).limit(1)).first()

    def count(self) -> int:
        with self.session() as session:
            return int(session.scalar(self.sa.select(self.sa.func.count()).select_from(self.model)))

    def clear(self) -> None:
        with self.session.begin() as session:
            session.execute(self.sa.delete(self.model))

    def close(self) -> None:
        self.engine.dispose()


def _attribute(name: str) -> str:
    return "metadata_" if name == "metadata" else name


VARIANTS: dict[str, Open] = {"SQLAlchemy ORM": SqlAlchemy}
