r"""A database as one portable stream of text: schema, typed keys, values and checksums, each a line of JSON.

It does not depend on the layout of the file, the LMDB version, the engine or the machine, and never unpickles. The
lines:

* ``{"zlmdb": "dump", "version": 1}``, with ``"migrations"`` where steps of the schema were applied
* for each table ``{"table": name, "uuid": ..., "name": ..., "key": "uuid", "value": "cbor", ...}``, what the catalogue
  says of it, with the key type of the tables layout; for a slot given by hand ``{"slot": 7, "layout": "classic"}``
* for each record ``{"k": key, "v": value}``: the key as `zlmdb.keytext` writes it, the stored bytes of the value in
  base64. Where the file names no types it is ``{"r": ...}``, the stored bytes of the key in hexadecimal.
* after the records of a table ``{"end": name, "records": 2, "sha256": ...}``, of the lines of its records
* ``{"end": null, "tables": 1, "records": 2}``

Entries of declared indexes are not in it: they are built again when a program that declares them opens the database.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple, Optional, Union
from uuid import UUID

from .. import errors
from ..engines import Transaction
from ..keys import KeyCodec, tables_codec
from ..keys import from_name as key_from_name
from ..store import layout
from ..store.catalogue import (
    Catalogue,
    Keyspace,
    Slot,
    catalogue_of,
    checked_migration,
    slot_of,
    slot_prefix,
    uuid_of,
)
from ..store.ranges import prefixed
from ..store.store import OpenSpace, Store
from ..values.base import is_a
from .filling import Filler, Writer
from .keytext import from_plain, to_plain
from .progress import Progress, Told, silent

VERSION = 1
MAX_LINE = 512 << 20
"""The bytes that a line may have, unless told otherwise: one of a value of 384 MiB."""

_EVERY = 10_000
Filling = Union[Filler, Writer]


class Streamed(NamedTuple):
    """What went through a stream: the number of tables, and of their records."""

    tables: int
    records: int


class Section(NamedTuple):
    """A table of a stream: its name, what is said of it, and the codec of its keys (None: they are raw bytes)."""

    name: str
    header: dict[str, Any]
    codec: Optional[KeyCodec[Any]]


# -- writing --------------------------------------------------------------------------------------------------------


def dump(
    source: Store, target: IO[bytes], tables: Optional[Sequence[str]] = None, told: Optional[Told] = None
) -> Streamed:
    """Write the tables of *source*, all or those named, in one snapshot."""
    catalogue = catalogue_of(source)
    opened: Optional[list[bytes]] = None
    while True:
        with source.reading() as txn:
            slots = catalogue.read(txn)
            unknown = [name for name in tables or () if name not in slots]
            if unknown:
                raise KeyError(
                    f"no table {unknown[0]!r} in the file; there are {', '.join(map(repr, slots)) or 'none'}"
                )
            chosen = [slot for slot in slots.values() if tables is None or slot.name in tables]
            spaces = [keyspace.space for slot in chosen if (keyspace := catalogue.keyspace(slot)).space is not None]
            if spaces == opened:
                by_hand = [] if tables is not None else _numbers(source, txn, slots)
                return _write(_Writer(source, target, txn, told or silent), catalogue, chosen, by_hand)
        # A transaction sees only what was opened before it began; another program may make tables in between.
        source.open_spaces(spaces)
        opened = spaces


def _write(writer: _Writer, catalogue: Catalogue, chosen: Sequence[Slot], by_hand: Sequence[int]) -> Streamed:
    applied = catalogue.migrations(writer.txn)
    _line(writer.target, {"zlmdb": "dump", "version": VERSION, **({"migrations": applied} if applied else {})})
    done = sum(writer.table(slot, catalogue.keyspace(slot)) for slot in chosen)
    for number in by_hand:
        done += writer.section(f"slot {number}", {"slot": number}, catalogue.slot_keyspace(number), None)
    count = len(chosen) + len(by_hand)
    _line(writer.target, {"end": None, "tables": count, "records": done})
    return Streamed(count, done)


class _Writer:
    """Writes sections, all from one transaction."""

    def __init__(self, source: Store, target: IO[bytes], txn: Transaction, told: Told) -> None:
        self._source = source
        self.target = target
        self.txn = txn
        self._told = told

    def table(self, slot: Slot, keyspace: Keyspace) -> int:
        """Write a table; the number of its records."""
        try:
            codec = None if slot.key is None else key_from_name(slot.key)
        except ValueError:  # of a program's own: as it is, like one that the file does not name
            codec = None
        header: dict[str, Any] = {
            "table": slot.name,
            "uuid": None if slot.uuid is None else str(slot.uuid),
            "name": slot.class_name,
            "description": slot.description,
            "key": None if codec is None else tables_codec(codec).name,
            "value": slot.value,
            "model": slot.model,
            "attached": slot.attached or None,
            "shape": _shape(slot),
        }
        if not self._source.traits.by_name and slot.uuid == uuid_of(slot.name):
            del header["uuid"]
        return self.section(slot.name, header, keyspace, codec)

    def section(self, name: str, header: dict[str, Any], keyspace: Keyspace, codec: Optional[KeyCodec[Any]]) -> int:
        """Write the records of one keyspace; how many."""
        header = {key: entry for key, entry in header.items() if entry is not None}
        if codec is None:
            header["layout"] = self._source.layout  # in which the keys, whose type is not known, are as they are
        _line(self.target, header)
        count, digest = 0, hashlib.sha256()
        for count, (key, data) in enumerate(_rows(self._source, self.txn, keyspace), 1):
            try:
                line = _record(key, data, codec)
            except errors.EncodeError as error:
                raise errors.DecodeError(
                    f"table {name!r}: the stored key {key.hex()} could not be loaded again: {error}; delete the record "
                    f"first, or store it under another key",
                    table=name,
                    key=key,
                ) from error
            digest.update(line)
            self.target.write(line)
            if count % _EVERY == 0:
                self._told(Progress(name, count))
        _line(self.target, {"end": name, "records": count, "sha256": digest.hexdigest()})
        self._told(Progress(name, count, count))
        return count


def _record(key: bytes, data: bytes, codec: Optional[KeyCodec[Any]]) -> bytes:
    value = base64.b64encode(data)
    if codec is None:
        return b'{"r": "%s", "v": "%s"}\n' % (key.hex().encode(), value)
    decoded = codec.decode(key)
    codec.encode(decoded)  # raises for old timestamps of before 1970, which are read and not written any more
    return b'{"k": %s, "v": "%s"}\n' % (json.dumps(to_plain(codec, decoded)).encode(), value)


def _line(target: IO[bytes], content: dict[str, Any]) -> None:
    target.write(json.dumps(content, ensure_ascii=False).encode() + b"\n")


def _rows(source: Store, txn: Transaction, keyspace: Keyspace) -> Iterator[tuple[bytes, bytes]]:
    """The keys, without the prefix, and values in a keyspace."""
    space = source.space(keyspace.space)
    if space is None:
        return
    skip = len(keyspace.prefix)
    for key, data in prefixed(txn.cursor(space.handle), keyspace.prefix):
        yield bytes(key[skip:]), bytes(data)


def _numbers(source: Store, txn: Transaction, slots: dict[str, Slot]) -> list[int]:
    """The slots given by hand that have records."""
    catalogue = catalogue_of(source)
    keyspaces = [catalogue.keyspace(slot) for slot in slots.values()]
    keyspaces += [catalogue.index_keyspace(slot, name) for slot in slots.values() for name in slot.indexes]
    taken = {keyspace.prefix for keyspace in keyspaces if keyspace.space is None} | {b"\0\0"}
    space = source.space(source.traits.slots)
    if space is None:
        return []
    found: list[int] = []
    cursor = txn.cursor(space.handle)
    more = cursor.first()
    while more:
        prefix = bytes(cursor.key()[:2])
        number = int.from_bytes(prefix, "big")
        if prefix not in taken and number <= 65534:
            found.append(number)
        more = number < 65535 and cursor.set_range((number + 1).to_bytes(2, "big"))
    return found


# -- reading --------------------------------------------------------------------------------------------------------


class _Checked(NamedTuple):
    """What is in a stream that was read to its end; *slots* are those given by hand."""

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
) -> Streamed:
    """Store the tables of the stream *source* in *target*, which has none of them. The stream is checked first.

    All is stored in one transaction, except in a *new* file, which is thrown away as a whole when that fails.
    No line may be longer than *max_line* bytes.
    """
    if target.readonly:
        raise errors.ReadonlyDatabase(f"{target.engine.path!r} is open read-only: open it writable to load into it")
    with target.writing(None):
        pass  # raises inside a transaction of this thread
    with tempfile.TemporaryFile() as copy:
        if not source.seekable():
            shutil.copyfileobj(source, copy)
            copy.seek(0)
            source = copy
        start = source.tell()
        checked = _verify(_Lines(source, max_line))

        def work(filling: Filling) -> None:
            source.seek(start)
            _load(filling, _Lines(source, max_line), told or silent)

        if new:
            with Filler(target, checked.slots) as filler:
                work(filler)
        else:

            def at_once(txn: Transaction, open_space: OpenSpace) -> None:
                _refuse_present(target, txn, checked)
                work(Writer(target, txn, open_space, checked.slots))

            target.change(at_once)
    return checked.streamed


def _refuse_present(target: Store, txn: Transaction, checked: _Checked) -> None:
    """Raise where *target* has a table or slot of the stream, or the versions of another schema."""
    catalogue = catalogue_of(target)
    slots = catalogue.read(txn)
    used = _numbers(target, txn, slots)
    taken = [number for number in checked.slots if number in used or catalogue.registered(txn, number) is not None]
    for name in (*sorted(slots.keys() & set(checked.names)), *(f"slot {number}" for number in taken)):
        raise errors.ConstraintError(
            f"table {name!r} is in the database already: load into one that does not have it", table=name
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
        line = self._source.readline(self._longest + 1)
        if len(line) > self._longest:
            raise errors.DecodeError(
                f"a line of the stream is longer than {self._longest} bytes: if it is that of a large value, allow "
                "more by max_line= (--max-line)",
                limit=self._longest,
            )
        return line


def _verify(source: _Lines) -> _Checked:
    """Read a stream to its end. Raises `DecodeError` when it is none or is damaged."""
    tables = records = 0
    names: list[str] = []
    slots: list[int] = []
    digest, count, name = hashlib.sha256(), 0, ""
    header = _parsed(source.next())
    if header.get("zlmdb") != "dump":
        raise errors.DecodeError("this is no stream of zlmdb: its first line is not that of a dump")
    if header.get("version") != VERSION:
        raise errors.DecodeError(
            f"a stream of version {header.get('version')}, this zlmdb reads {VERSION}: use a newer one"
        )
    migrations = _migrations(header)
    for line in source:
        if line.startswith((b'{"k"', b'{"r"')):
            digest.update(line)
            count += 1
            continue
        header = _parsed(line)
        if "end" not in header:
            name, digest, count = _section_name(header), hashlib.sha256(), 0
            names.append(name)
            if "slot" in header:
                slot_prefix(header["slot"])  # raises for a number that is none
                slots.append(header["slot"])
        elif header["end"] is None:
            if (tables, records) != (header.get("tables"), header.get("records")):
                raise errors.DecodeError(f"the stream has {tables} tables and {records} records, its end says {header}")
            return _Checked(Streamed(tables, records), names, slots, migrations)
        else:
            if (header["end"], header.get("records"), header.get("sha256")) != (name, count, digest.hexdigest()):
                raise errors.DecodeError(f"table {name!r} of the stream has changed: its checksum does not match")
            tables, records = tables + 1, records + count
    raise errors.DecodeError("the stream was cut off: its end is missing")


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


def _load(filling: Filling, source: _Lines, told: Told) -> None:
    attached: dict[str, Any] = {}
    names: set[str] = set()
    filling.copy_migrations(_migrations(_parsed(source.next())))
    for section, records in _sections(source):
        keyspace = _keyspace(filling, section)
        names.add(section.name)
        codec = section.codec
        if codec is not None:
            codec = filling.store.traits.codec(codec)
        count = 0
        for count, (key, data) in enumerate(records, 1):
            if not filling.put(keyspace, _key(section, codec, key), data):
                raise errors.DuplicateKey(f"table {section.name!r}: the stream has the key {key!r} twice", key=key)
            if count % _EVERY == 0:
                told(Progress(section.name, count))
        told(Progress(section.name, count, count))
        if section.header.get("attached"):
            attached[section.name] = section.header["attached"]
    for name, indexes in attached.items():
        # One whose entries are not in the stream is new here: recorded, it would read as empty instead of being built.
        present = {index: record for index, record in indexes.items() if record.get("target") in names}
        if present:
            filling.attached(name, present)


def _sections(source: _Lines) -> Iterator[tuple[Section, Iterator[tuple[Any, bytes]]]]:
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


def _records(source: _Lines) -> Iterator[tuple[Any, bytes]]:
    for line in source:
        record = _parsed(line)
        if "end" in record:
            return
        yield record.get("k", record.get("r")), base64.b64decode(record["v"])


def _key(section: Section, codec: Optional[KeyCodec[Any]], key: Any) -> bytes:
    if codec is None:
        return bytes.fromhex(key)
    return codec.encode(from_plain(codec, key))


def _keyspace(filling: Filling, section: Section) -> Keyspace:
    """Where the records of a section go, after entering the table into the catalogue."""
    header, store = section.header, filling.store
    if section.codec is None and header.get("layout") != store.layout:
        raise errors.SchemaMismatch(
            f"{section.name!r} was dumped from the {header.get('layout')} layout, and its types are not known: load "
            f"it into that layout, or migrate the database with its maps first",
            table=section.name,
        )
    if "slot" in header:
        return filling.catalogue.slot_keyspace(header["slot"])
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
    return filling.table(slot)


def _shape(slot: Slot) -> Optional[str]:
    """What the catalogue records of the shape of records, as its bytes: JSON has no bytes, which a default may be."""
    found = {"fields": slot.fields, "history": slot.history, "unsettled": slot.unsettled}
    found = {name: entry for name, entry in found.items() if entry not in (None, [])}
    return base64.b64encode(layout.encode(found)).decode() if found else None


def _of_shape(table: str, shape: Optional[str]) -> dict[str, Any]:
    """What `_shape` has put into the stream, as arguments of a `Slot`. Raises `DecodeError` where it is damaged."""
    if shape is None:
        return {}
    try:
        slot = slot_of(table, layout.decode(base64.b64decode(shape)))
    except (TypeError, ValueError) as error:
        raise errors.DecodeError(f"the stream's fields of table {table!r} are damaged: {error}", table=table) from error
    return {"fields": slot.fields, "history": slot.history, "unsettled": slot.unsettled}
