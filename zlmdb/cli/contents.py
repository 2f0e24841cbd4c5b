"""The table of a command: opened by its name, or as one of the named maps, with its values as JSON."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Optional
from uuid import UUID

import click

import zlmdb

from ..engines import registry
from ..namedtuples import NamedTuple
from ..operations.keytext import from_plain, is_bytes, parse
from ..shown import nearest
from ..values.base import is_a
from ..values.recorded import Recorded
from .output import to_json

COMPRESSION = {"zlib": 1, "snappy": 2}


class Contents(NamedTuple):
    """A table in a transaction; *value* names the type of its values, *unpickle* says whether to load pickles."""

    table: Any
    value: str
    unpickle: bool

    def shown(self, value: Any) -> Any:
        """A value as JSON. Pickles are shown as bytes unless *unpickle* is true."""
        if self.pickled and is_a(value, (bytes, memoryview)):
            if not self.unpickle:
                return {"$pickle": to_json(value)["$bytes"]}
            try:
                value = pickle.loads(value)
            except Exception as error:  # there is no other limit to what pickles raise
                raise zlmdb.DecodeError(f"a pickle of {len(value)} bytes cannot be loaded: {error!r}") from error
        return to_json(value)

    @property
    def pickled(self) -> bool:
        """Whether the values are pickles."""
        return innermost(self.value) == "pickle"

    def key(self, text: str) -> Any:
        """The key that *text* describes."""
        return parse(self.table._storage.key, text)

    def bound(self, text: str) -> Any:
        """A bound of a range: a key, or a JSON list of the leading parts of a key."""
        codec = self.table._storage.key
        return self._leading("a bound", text) if isinstance(codec, zlmdb.keys.TupleKey) else parse(codec, text)

    def prefix(self, text: str) -> tuple[Any, ...]:
        """The leading parts of keys, from the JSON list *text*."""
        codec = self.table._storage.key
        if not isinstance(codec, zlmdb.keys.TupleKey):
            raise click.UsageError(
                f"--prefix {text}: keys here are {codec.name} and have no parts: --startswith selects those that begin "
                f"with a text"
            )
        return self._leading("--prefix", text)

    def _leading(self, option: str, text: str) -> tuple[Any, ...]:
        codec = self.table._storage.key
        try:
            parts: Any = json.loads(text)
        except ValueError:
            parts = None
        if not is_a(parts, list) or len(parts) > len(codec.parts):
            raise click.UsageError(
                f"{option} {text}: expected a JSON list of leading parts, of which a key has {len(codec.parts)} "
                f"({', '.join([part.name for part in codec.parts])})"
            )
        return tuple(from_plain(part, one) for part, one in zip(codec.parts, parts))

    def startswith(self, text: str, prefix: Sequence[Any]) -> Any:
        """The beginning of the keys, or of the parts after *prefix*: text, or hexadecimal bytes."""
        codec = self.table._storage.key
        if isinstance(codec, zlmdb.keys.TupleKey):
            if len(prefix) == len(codec.parts):
                raise click.UsageError("--startswith: --prefix gives all parts of the keys, which leaves none to begin")
            codec = codec.parts[len(prefix)]
        if is_bytes(codec):
            try:
                return bytes.fromhex(text)
            except ValueError as error:
                raise click.UsageError(f"--startswith {text}: expected hexadecimal digits: {error}") from error
        return text

    def parsed(self, text: str) -> Any:
        """The value that *text* means: JSON for documents and numbers, itself for texts, hexadecimal for bytes.

        Where the file records the fields of the values, it has these. Raises ValueError for one that does not fit.
        """
        codec = self.table._storage.value
        if isinstance(codec, Recorded):
            return self._by_fields(codec, text)
        kind = innermost(self.value)
        if kind == "string":
            return text
        if kind in ("uuid", "timestamp") or re.fullmatch(r"bytes\d*", kind):
            return _scalar(kind, text)
        if kind not in ("json", "cbor", "msgpack", "int64", "oid", "float64", "bool"):
            raise click.UsageError(f"values of type {self.value} are written by programs only")
        try:
            return json.loads(text)
        except ValueError as error:
            number = kind in ("int64", "oid", "float64")
            expected = (
                "a number" if number else "true or false" if kind == "bool" else "JSON, such as '\"a text\"' or 3"
            )
            raise click.UsageError(
                f"{text!r} is no value of type {self.value}: expected {expected} ({error})"
            ) from error

    def _by_fields(self, codec: Recorded, text: str) -> Any:
        try:
            return codec.from_json(text)
        except (zlmdb.Error, ValueError) as error:
            raise zlmdb.EncodeError(f"{text} does not fit {codec.shown}: {error.__cause__ or error}") from error


def _scalar(kind: str, text: str) -> Any:
    try:
        if kind == "uuid":
            return UUID(text)
        if kind == "timestamp":
            import numpy

            return numpy.datetime64(int(text), "ns")
        return bytes.fromhex(text)
    except ValueError as error:
        raise click.UsageError(f"{text!r} is no {kind}: {error}") from error


def innermost(name: str) -> str:
    """The format inside its wrappers: ``cbor`` for ``zlib(checked(cbor))``."""
    found = re.fullmatch(r"(?:\w+\()*([\w-]+)\)*", name)
    return name if found is None else found[1]


def for_reading(path: Path) -> zlmdb.Database[Any]:
    """The database at *path*; of another program's LMDB file its sub-databases, as tables of bytes."""
    try:
        return zlmdb.open(path, readonly=True)
    except zlmdb.InvalidDatabase as error:
        try:
            db = zlmdb.open(path, zlmdb.Schema, layout="raw", readonly=True)
        except zlmdb.InvalidDatabase:
            raise error from None
        if not db.tables():
            db.close()
            raise
        return db


@contextmanager
def opened(
    path: Path, name: str, *, write: bool = False, as_map: Optional[str] = None, unpickle: bool = False,
    raw: bool = False,
) -> Generator[Contents, None, None]:  # fmt: skip
    """A block with the table *name* of the database at *path*; *as_map* is the named map of a table without types.

    FlatBuffers are read by the fields that the file records, if it does; with *raw*, as bytes.
    """
    if as_map is not None:
        if not registry.engine(str(path)).exists():  # in an empty directory, Database() would make one
            raise FileNotFoundError(f"no database at {str(path)!r}: check the path")
        with zlmdb.Database(path, readonly=not write, create=False) as db:
            pmap = _attached(db, name, as_map)
            with db.begin(write=write) as txn:
                table = pmap.bind(txn)
                yield Contents(table, table._storage.value.name, unpickle)
        return
    with zlmdb.open(path) if write else for_reading(path) as db:
        infos = db.tables()
        with db.write() if write else db.read() as t:
            table = t._undeclared(name, by_fields=True) if write else t[name]
            if not (write or raw) and innermost(table._storage.value.name) == "flatbuffers":
                table = t._undeclared(name, by_fields=True)
            yield Contents(table, infos[table._name].value or "bytes", unpickle)


def _attached(db: Any, name: str, as_map: str) -> Any:
    number = re.fullmatch(r"slot[ :](\d+)", name)
    if number is not None:
        cls, compress = map_class(as_map)
        return _plain(cls)(int(number[1]), compress)
    infos = db.tables()
    found = next((one for one in infos.values() if name in (one.name, str(one.uuid))), None)
    if found is None:
        raise KeyError(f"no table {name!r} in the file; {nearest(name, infos)}")
    if found.uuid is None:
        raise click.UsageError(f"--map {as_map}: the file records the types of the table {name!r}: leave --map out")
    return db._attach(registered(as_map, found.uuid), record=False)  # a wrong guess must not stay in the file


def registered(as_map: str, uuid: UUID) -> Any:
    """A class of the named map *as_map* for the table *uuid*. Pickles are read as bytes."""
    cls, compress = map_class(as_map)
    made: Any = type(as_map.partition(":")[0], (_plain(cls),), {"__doc__": cls.__doc__})
    known = zlmdb.TABLES_BY_UUID.get(uuid)
    try:
        return zlmdb.table(uuid, compress=compress)(made)
    finally:
        if known is not None:
            zlmdb.TABLES_BY_UUID[uuid] = known
        else:
            zlmdb.TABLES_BY_UUID.pop(uuid, None)


class _AsBytes(zlmdb.values.FunctionSerializer[Any]):
    """Pickles as bytes: a command loads them only if it was told to."""

    def __init__(self) -> None:
        super().__init__("pickle", bytes, bytes)


def _plain(cls: Any) -> Any:
    """*cls*, or for a class of pickles a subclass that reads them as bytes."""
    if not cls.__name__.endswith("Pickle"):
        return cls

    def codecs(self: Any) -> Any:
        return cls._both_codecs(self)[0], zlmdb.values.compressed(_AsBytes(), self._compress)

    return type(cls.__name__, (cls,), {"__doc__": cls.__doc__, "_both_codecs": codecs})


def map_class(text: str) -> tuple[Any, Optional[int]]:
    """The class and the compression of ``MapUuidCbor`` or ``MapUuidCbor:zlib``."""
    name, _, method = text.partition(":")
    cls = getattr(zlmdb, name, None) if name.startswith("Map") else None
    if cls is None or (method and method not in COMPRESSION):
        close = nearest(name, [one for one in zlmdb.__all__ if one.startswith("Map")], listed=False)
        raise click.UsageError(
            f"{text!r} is no named map: expected one such as MapUuidCbor, or MapUuidCbor:zlib{close and '; '}{close}"
        )
    return cls, COMPRESSION.get(method)
