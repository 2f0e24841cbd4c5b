r"""A database as one portable stream of text: schema, typed keys, values and checksums, each a line of JSON.

It does not depend on the layout of the file, the LMDB version, the engine or the machine, and never unpickles. The
lines:

* ``{"zlmdb": "dump", "version": 1}``, with ``"migrations"`` where steps of the schema were applied
* for each table ``{"table": name, "uuid": ..., "name": ..., "key": "uuid", "value": "cbor", ...}``, what the catalogue
  says of it, with the key type of the tables layout; for a slot given by hand ``{"slot": 7, "layout": "classic"}``
* for each record ``{"k": key, "v": value}``: the key as `keytext` writes it, the stored bytes of the value in
  base64. Where the file names no types it is ``{"r": ...}``, the stored bytes of the key in hexadecimal.
* for each entry of a declared index ``{"i": index, "k": index key, "p": key of the record}``; the definitions of the
  indexes are in the line of the table
* after the records of a table ``{"end": name, "records": 2, "entries": 1, "sha256": ...}``, of the lines of its records
  and entries
* ``{"end": null, "tables": 1, "records": 2}``
"""

from __future__ import annotations

import base64
import hashlib
import json
from binascii import b2a_base64
from collections.abc import Iterator, Sequence
from typing import IO, Any, Optional

from .. import errors
from ..engines import Transaction
from ..keys import KeyCodec, tables_codec
from ..namedtuples import NamedTuple
from ..shown import nearest
from ..store import layout
from ..store.catalogue import Catalogue, catalogue_of, spaces_of
from ..store.slots import Keyspace, Slot, uuid_of
from ..store.store import Store
from ..tables.indexstorage import IndexStorage
from ..tables.storage import Storage
from ..values.base import is_a
from .keyspaces import numbers_by_hand, of_bytes, rows
from .keytext import to_plain
from .progress import Told, counted, silent
from .undeclaredindexes import entries as read_entries
from .undeclaredindexes import index_storage

VERSION = 1
SHAPE = ("fields", "history", "unsettled", "key_field", "keyed", "was")
"""Attributes of a `Slot`: what the file says of the shape of records, and of its past."""
MAX_LINE = 512 << 20
"""The bytes that a line may have, unless told otherwise: one of a value of 384 MiB."""


class Streamed(NamedTuple):
    """The size of a stream: the number of its tables and of their records."""

    tables: int
    records: int


class Section(NamedTuple):
    """A table of a stream: its name, what is said of it, and the codec of its keys (None: they are raw bytes)."""

    name: str
    header: dict[str, Any]
    codec: Optional[KeyCodec[Any]]

    @property
    def indexes(self) -> dict[str, dict[str, Any]]:
        """The definitions of the indexes. Raises `DecodeError` for what is none."""
        found: Any = self.header.get("indexes", {})
        if not is_a(found, dict) or not all(is_a(one, dict) for one in found.values()):
            raise errors.DecodeError(f"the indexes of table {self.name!r} of the stream are none: {found!r}")
        return dict(found)


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
                raise KeyError(f"no table {unknown[0]!r} in the file; {nearest(unknown[0], slots)}")
            chosen = [slot for slot in slots.values() if tables is None or slot.name in tables]
            spaces = spaces_of(catalogue, chosen)
            if spaces == opened:
                by_hand = [] if tables is not None else numbers_by_hand(source, txn, slots)
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
        table = of_bytes(self._source, slot)
        codec = None if table is None else table.key  # one of a program's own is as it is, like one that nobody names
        header: dict[str, Any] = {
            "table": slot.name,
            "uuid": None if slot.uuid is None else str(slot.uuid),
            "name": slot.class_name,
            "description": slot.description,
            "key": None if codec is None else tables_codec(codec).name,
            "value": slot.value,
            "model": slot.model,
            "attached": slot.attached or None,
            "shape": _shape(slot, self._feed(slot)),
        }
        if not self._source.traits.by_name and slot.uuid == uuid_of(slot.name):
            del header["uuid"]
        indexes = [] if table is None else list(self._indexes(slot, table))
        header["indexes"] = {index.name: _portable(slot.indexes[index.name]) for index in indexes} or None
        return self.section(slot.name, header, keyspace, codec, indexes)

    def _feed(self, slot: Slot) -> Optional[dict[str, Any]]:
        """The change feed of the table without its changes: the next one has the number that it would have here."""
        if not slot.has_feed:
            return slot.feed
        from ..feed.log import last  # late: few programs use a feed

        name = catalogue_of(self._source).feed_space(slot.name)
        space = None if name is None else self._source.space(name)
        return slot.feed if space is None else {"after": last(self.txn, space.handle)}

    def _indexes(self, slot: Slot, table: Storage[Any, Any]) -> Iterator[IndexStorage]:
        """The indexes of a table that are in the file, and whose keys are of a type that is known here."""
        store = self._source
        for name, definition in slot.indexes.items():
            if name in slot.building:
                continue
            entries = catalogue_of(store).index_keyspace(slot, name)
            try:
                index = index_storage(store, entries, name, definition, table)
            except ValueError:  # of a program's own
                continue
            if store.space(entries.space) is not None:
                yield index

    def section(
        self, name: str, header: dict[str, Any], keyspace: Keyspace, codec: Optional[KeyCodec[Any]],
        indexes: Sequence[IndexStorage] = (),
    ) -> int:  # fmt: skip
        """Write the records of one keyspace, and the entries of its *indexes*; how many records."""
        header = {key: entry for key, entry in header.items() if entry is not None}
        if codec is None:
            header["layout"] = self._source.layout  # in which the keys, whose type is not known, are as they are
        _line(self.target, header)
        count, digest = 0, hashlib.sha256()
        for key, data in counted(rows(self._source, self.txn, keyspace), name, self._told):
            count += 1
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
        entries = 0
        for index in indexes:
            for line in self._entries(index, codec):
                digest.update(line)
                self.target.write(line)
                entries += 1
        counts = {"records": count, "entries": entries} if entries else {"records": count}
        _line(self.target, {"end": name, **counts, "sha256": digest.hexdigest()})
        return count

    def _entries(self, index: IndexStorage, codec: Any) -> Iterator[bytes]:
        """The lines of the entries of an index, unless it is a table of its own."""
        storage = index.storage
        if index.adopted:
            return
        name = json.dumps(index.name)
        space = Keyspace(storage.space, storage.prefix)
        for key, primary in read_entries(index, codec, rows(self._source, self.txn, space)):
            plain = to_plain(storage.key, key), to_plain(codec, primary)
            yield f'{{"i": {name}, "k": {json.dumps(plain[0])}, "p": {json.dumps(plain[1])}}}\n'.encode()


def _portable(definition: dict[str, Any]) -> dict[str, Any]:
    """The definition of an index without the number that it has in this file."""
    return {name: entry for name, entry in definition.items() if name != "slot"}


def _record(key: bytes, data: bytes, codec: Optional[KeyCodec[Any]]) -> bytes:
    value = b2a_base64(data, newline=False)
    if codec is None:
        return b'{"r": "%s", "v": "%s"}\n' % (key.hex().encode(), value)
    decoded = codec.decode(key)
    codec.encode(decoded)  # raises for old timestamps of before 1970, which are read and not written any more
    return b'{"k": %s, "v": "%s"}\n' % (json.dumps(to_plain(codec, decoded)).encode(), value)


def _line(target: IO[bytes], content: dict[str, Any]) -> None:
    target.write(json.dumps(content, ensure_ascii=False).encode() + b"\n")


def _shape(slot: Slot, feed: Optional[dict[str, Any]]) -> Optional[str]:
    """What the catalogue records of the shape of records, as its bytes: JSON has no bytes, which a default may be."""
    found = {**{name: getattr(slot, name) for name in SHAPE}, "feed": feed}
    found = {name: entry for name, entry in found.items() if entry not in (None, [])}
    return base64.b64encode(layout.encode(found)).decode() if found else None
