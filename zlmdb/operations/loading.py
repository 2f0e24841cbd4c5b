"""Loads the stream that `stream` describes: first checks it, then stores it."""

from __future__ import annotations

import base64
import hashlib
import json
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import IO, Any, Optional, Union
from uuid import UUID

from .. import errors
from ..engines import Transaction
from ..keys import KeyCodec
from ..keys import from_name as key_from_name
from ..namedtuples import NamedTuple
from ..shown import shortened
from ..store import layout
from ..store.catalogue import catalogue_of
from ..store.slotrecords import checked_migration, slot_of
from ..store.slots import Keyspace, Slot, slot_prefix
from ..store.store import OpenSpace, Store
from ..tables.indexstorage import IndexStorage
from ..tables.storage import Storage
from ..values.bare import BYTES
from ..values.base import is_a
from ..values.recorded import recorded
from ..values.resolve import from_name
from .filling import Filler, Writer
from .keyspaces import by_hand
from .keytext import from_plain
from .progress import EVERY, Progress, Told, silent
from .stream import MAX_LINE, SHAPE, VERSION, Section, Streamed
from .triedentries import no_copy
from .undeclaredindexes import index_storage

Filling = Union[Filler, Writer]

_BLOCK = 1 << 20
_NOT_OF_DUMP = (AttributeError, KeyError, TypeError, ValueError)
"""What reading a line raises that is JSON, and no line of a dump."""


class _Checked(NamedTuple):
    """The content of a stream that was read to its end; *slots* are those given by hand."""

    streamed: Streamed
    names: list[str]
    slots: list[int]
    migrations: list[dict[str, Any]]


def load(
    target: Store,
    source: IO[bytes],
    told: Optional[Told] = None,
    *,
    new: bool = False,
    max_line: int = MAX_LINE,
    check: bool = True,
    timeout: Optional[float] = None,
) -> Streamed:
    """Store the tables of the stream *source* in *target*, which has none of them. The stream is checked first.

    With *check* each value is read as its type, and as the fields that the file records of it.
    All is stored in one transaction, except in a *new* file, which is thrown away as a whole when that fails.
    No line may be longer than *max_line* bytes. *timeout*: seconds to wait for another writer.
    """
    if target.readonly:
        raise errors.ReadonlyDatabase(f"{target.engine.path!r} is open read-only: open it writable to load into it")
    with target.writing(timeout):
        pass  # raises inside a transaction of this thread
    with nullcontext(source) if source.seekable() else _copied(source) as source:
        start = source.tell()
        checked = _verify(_Lines(source, max_line))

        def work(filling: Filling) -> None:
            source.seek(start)
            _load(filling, _Lines(source, max_line), told or silent, check)

        if new:
            with Filler(target, checked.slots) as filler:
                work(filler)
        else:

            def at_once(txn: Transaction, open_space: OpenSpace) -> None:
                _refuse_present(target, txn, checked)
                work(Writer(target, txn, open_space, checked.slots))

            target.change(at_once, timeout=timeout)
    return checked.streamed


@contextmanager
def _copied(source: IO[bytes]) -> Generator[IO[bytes], None, None]:
    """A copy of a stream that can be read only once, such as a pipe. Raises `DiskError`, and what *source* raises."""
    with _written():
        copy = tempfile.TemporaryFile()  # noqa: SIM115 - only what this raises is another matter
    try:
        while block := source.read(_BLOCK):
            with _written():
                copy.write(block)
        with _written():
            copy.seek(0)
        yield copy
    finally:
        with suppress(OSError):  # it writes again what could not be written
            copy.close()


@contextmanager
def _written() -> Generator[None, None, None]:
    try:
        yield
    except OSError as error:
        raise no_copy("stream", error) from error


def _refuse_present(target: Store, txn: Transaction, checked: _Checked) -> None:
    """Raise if *target* has a table or slot of the stream, or the versions of another schema."""
    catalogue = catalogue_of(target)
    slots = catalogue.read(txn)
    used = set(by_hand(target, txn, slots))
    taken = [
        number for number in checked.slots
        if slot_prefix(number) in used or catalogue.registered(txn, number) is not None
    ]  # fmt: skip
    for name in (*sorted(slots.keys() & set(checked.names)), *(f"slot {number}" for number in taken)):
        raise errors.ConstraintError(
            f"table {name!r} is in the database already: load into one that does not have it, such as a new one, "
            f"opened with zlmdb.Schema, which declares no tables",
            table=name,
        )
    theirs, ours = _versions(checked.migrations), _versions(catalogue.migrations(txn))
    if theirs and ours and theirs != ours:
        raise errors.SchemaMismatch(
            f"the stream has the versions {theirs} of its schema, {target.engine.path!r} has {ours}: load it into a "
            "new database",
            path=target.engine.path,
        )


def _versions(migrations: Sequence[dict[str, Any]]) -> dict[int, str]:
    return {int(one["version"]): str(one["name"]) for one in migrations}


class _Lines:
    """The lines of a stream, one after the other. Raises `DecodeError` for one longer than *longest* bytes."""

    def __init__(self, source: IO[bytes], longest: int) -> None:
        self._source = source
        self._longest = longest

    def __iter__(self) -> Iterator[bytes]:
        while line := self.next():
            yield line

    def next(self) -> bytes:
        """The next line, empty at the end."""
        try:
            line = self._source.readline(self._longest + 1)
        except OSError as error:
            name: object = getattr(self._source, "name", "the stream")
            raise errors.DiskError(f"{name!r} could not be read: {error}") from error
        if len(line) > self._longest:
            raise errors.DecodeError(
                f"a line of the stream is longer than {self._longest} bytes: if it is that of a large value, allow "
                "more by max_line= (--max-line)",
                limit=self._longest,
            )
        return line


def _verify(source: _Lines) -> _Checked:
    """Read a stream to its end. Raises `DecodeError` when it is none or is damaged."""
    tables = records = entries = 0
    names: list[str] = []
    slots: list[int] = []
    digest, count, name = hashlib.sha256(), 0, ""
    migrations = _begun(source.next())
    for line in source:
        if line.startswith((b'{"k"', b'{"r"', b'{"i"')):
            digest.update(line)
            count, entries = (count, entries + 1) if line.startswith(b'{"i"') else (count + 1, entries)
            continue
        header = _parsed(line)
        if "end" not in header:
            name, digest, count, entries = _section_name(header), hashlib.sha256(), 0, 0
            names.append(name)
            if "slot" in header:
                slot_prefix(header["slot"])  # raises for a number that is none
                slots.append(header["slot"])
        elif header["end"] is None:
            if (tables, records) != (header.get("tables"), header.get("records")):
                raise errors.DecodeError(f"the stream has {tables} tables and {records} records, its end says {header}")
            return _Checked(Streamed(tables, records), names, slots, migrations)
        else:
            said = (header["end"], header.get("records"), header.get("entries", 0), header.get("sha256"))
            if said != (name, count, entries, digest.hexdigest()):
                raise errors.DecodeError(f"table {name!r} of the stream has changed: its checksum does not match")
            tables, records = tables + 1, records + count
    raise errors.DecodeError("the stream was cut off: its end is missing")


def _begun(first: bytes) -> list[dict[str, Any]]:
    """The migrations of a stream whose *first* line this is. Raises `DecodeError` for a line of no dump."""
    if not first:
        raise errors.DecodeError("the stream is empty: expected what dump writes")
    header = _parsed(first) if first.startswith(b"{") else {}
    if header.get("zlmdb") != "dump":
        raise errors.DecodeError(
            f"this is no stream of zlmdb: its first line is not that of a dump, but {first[:60]!r}"
        )
    if header.get("version") != VERSION:
        raise errors.DecodeError(
            f"a stream of version {header.get('version')}, this zlmdb reads {VERSION}: use a newer one"
        )
    return _migrations(header)


def _migrations(header: dict[str, Any]) -> list[dict[str, Any]]:
    found: Any = header.get("migrations", [])
    if not is_a(found, list):
        raise errors.DecodeError(f"the migrations of the stream are no list: {found!r}")
    return [checked_migration(one) for one in found]


def _section_name(header: dict[str, Any]) -> str:
    return str(header.get("table", f"slot {header.get('slot')}"))


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        parsed: dict[str, Any] = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise errors.DecodeError(f"a line of the stream is not JSON: {line[:60]!r}") from error
    return parsed if is_a(parsed, dict) else {}


def _load(filling: Filling, source: _Lines, told: Told, check: bool) -> None:
    attached: dict[str, Any] = {}
    adopting: list[tuple[_Target, str, dict[str, Any]]] = []
    names: set[str] = set()
    filling.copy_migrations(_migrations(_parsed(source.next())))
    for section, records in _sections(source):
        target = _Target(filling, section, check)
        names.add(section.name)
        for name, definition in section.indexes.items():
            if definition.get("table") is None:
                target.add_index(name, definition)
            else:
                adopting.append((target, name, definition))
        for count, record in enumerate(records, 1):
            target.store(record)
            if count % EVERY == 0:
                told(Progress(section.name, count))
        told(Progress(section.name, target.count, target.count))
        if section.header.get("attached"):
            attached[section.name] = section.header["attached"]
    # One whose entries are not in the stream is new here: recorded, it would read as empty instead of being built.
    for target, name, definition in adopting:
        if definition["table"] in names:
            target.add_index(name, definition)
    for name, indexes in attached.items():
        present = {index: record for index, record in indexes.items() if record.get("target") in names}
        if present:
            filling.attached(name, present)
    filling.links()


class _Target:
    """A table that is loaded: where its records and the entries of its indexes go."""

    def __init__(self, filling: Filling, section: Section, check: bool) -> None:
        self._filling = filling
        self._name = section.name
        self.count = 0
        try:
            self._slot, self._keyspace = _entered(filling, section)
            self._read = _reader(self._slot) if check else None
        except errors.Error:
            raise
        except _NOT_OF_DUMP as error:
            raise self._damaged(section.header, error) from error
        codec = section.codec
        self._codec = None if codec is None else filling.store.traits.codec(codec)
        self._indexes: dict[str, tuple[IndexStorage, KeyCodec[Any]]] = {}

    def add_index(self, name: str, definition: dict[str, Any]) -> None:
        """Enter an index of the table into the catalogue."""
        store, keyspace = self._filling.store, self._keyspace
        if self._slot is None or self._codec is None:
            raise errors.DecodeError(f"table {self._name!r} of the stream has indexes and no types")
        size = store.environment.max_key_size()
        table = Storage(self._name, keyspace.space, keyspace.prefix, self._codec, BYTES, size)
        try:
            key = key_from_name(str(definition.get("key")))
            entries = self._filling.index(self._slot, name, dict(definition))
            self._indexes[name] = index_storage(store, entries, name, definition, table), key
        except _NOT_OF_DUMP as error:
            raise errors.DecodeError(f"index {self._name}.{name} of the stream: {error}") from error

    def store(self, record: dict[str, Any]) -> None:
        """Store a record, or the entry of an index. Raises `DuplicateKey`, `DecodeError`."""
        try:
            if "i" in record:
                self._store_entry(record)
            else:
                self._store_record(record)
        except errors.Error:
            raise
        except _NOT_OF_DUMP as error:
            raise self._damaged(record, error) from error

    def _damaged(self, line: dict[str, Any], error: Exception) -> errors.DecodeError:
        """The error for a *line* that dump does not write."""
        return errors.DecodeError(
            f"table {self._name!r} of the stream has a damaged line, {shortened(line)}: {error!r}"
        )

    def _store_record(self, record: dict[str, Any]) -> None:
        self.count += 1
        key: Any = record.get("k", record.get("r"))
        data = base64.b64decode(record["v"])
        if self._read is not None:
            try:
                self._read(data)
            except errors.DecodeError as error:
                raise errors.DecodeError(
                    f"table {self._name!r}: the value of {key!r} in the stream cannot be read: {error}; load it with "
                    f"check=False (--no-check) to have it as it is",
                    table=self._name,
                    key=key,
                ) from error
        encoded = bytes.fromhex(key) if self._codec is None else self._codec.encode(from_plain(self._codec, key))
        if not self._filling.put(self._keyspace, encoded, data):
            raise errors.DuplicateKey(f"table {self._name!r}: the stream has the key {key!r} twice", key=key)

    def _store_entry(self, record: dict[str, Any]) -> None:
        """Store the entry of an index, after a look at the record that it is of."""
        found = self._indexes.get(record["i"])
        codec = self._codec
        if found is None or codec is None:
            raise errors.DecodeError(f"table {self._name!r} of the stream has no index {record['i']!r}")
        index, portable = found
        storage = index.storage
        try:
            primary, key = from_plain(codec, record.get("p")), from_plain(portable, record.get("k"))
            owner = codec.encode(primary)
            entry = storage.key.encode(key) if index.joined is None else index.joined.encode((key, primary))
        except errors.EncodeError as error:
            raise errors.DecodeError(f"index {index.full_name} of the stream: {error}") from error
        entries = Keyspace(storage.space, storage.prefix)
        if not self._filling.has(self._keyspace, owner):
            raise errors.DecodeError(
                f"index {index.full_name}: the stream has an entry of {record.get('p')!r}, and no such record"
            )
        if not self._filling.put(entries, entry, index.owned(primary, owner)):
            raise index.conflict(key, primary)


def _reader(slot: Optional[Slot]) -> Optional[Callable[[Any], Any]]:
    """What reads a value of a table to check it; None where the stream does not say what it is."""
    if slot is None or slot.value is None:
        return None
    found = recorded(slot.value, slot.fields)
    if found is not None:
        return found.decode
    try:
        return from_name(slot.value).decode
    except (TypeError, ValueError):  # of a program's own
        return None


def _sections(source: _Lines) -> Iterator[tuple[Section, Iterator[dict[str, Any]]]]:
    """The tables of a verified stream, each with its records."""
    for line in source:
        header = _parsed(line)
        if "end" in header:
            return
        name = _section_name(header)
        key = header.get("key")
        try:
            codec = None if key is None else key_from_name(str(key))
        except ValueError as error:
            raise errors.DecodeError(f"table {name!r}: {error}") from error
        yield Section(name, header, codec), _records(source)


def _records(source: _Lines) -> Iterator[dict[str, Any]]:
    for line in source:
        record = _parsed(line)
        if "end" in record:
            return
        yield record


def _entered(filling: Filling, section: Section) -> tuple[Optional[Slot], Keyspace]:
    """The table of a section, entered into the catalogue, and where its records go; None for a slot given by hand."""
    header, store = section.header, filling.store
    if section.codec is None and header.get("layout") != store.layout:
        raise errors.SchemaMismatch(
            f"{section.name!r} was dumped from the {header.get('layout')} layout, and its types are not known: load "
            f"it into that layout, or migrate the database with its maps first",
            table=section.name,
        )
    if "slot" in header:
        return None, filling.catalogue.slot_keyspace(header["slot"])
    codec = section.codec
    slot = Slot(
        section.name,
        0,
        UUID(header["uuid"]) if "uuid" in header else None,
        str(header.get("name", "")),
        header.get("description"),
        None if codec is None else store.traits.codec(codec).name,
        header.get("value"),
        header.get("model"),
        **_of_shape(section.name, header.get("shape")),
    )
    if store.layout != "tables":
        slot.keyed = None
    return slot, filling.table(slot)


def _of_shape(table: str, shape: Optional[str]) -> dict[str, Any]:
    """What `_shape` has put into the stream, as arguments of a `Slot`. Raises `DecodeError` where it is damaged."""
    if shape is None:
        return {}
    try:
        slot = slot_of(table, layout.decode(base64.b64decode(shape)))
    except (TypeError, ValueError) as error:
        raise errors.DecodeError(f"the stream's fields of table {table!r} are damaged: {error}", table=table) from error
    return {name: getattr(slot, name) for name in (*SHAPE, "feed")}
