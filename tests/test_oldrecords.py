"""Of records that are replaced or deleted, only the fields of the indexes are decoded, where that is faster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Optional

import pytest

import zlmdb
from zlmdb.tables.compiled.oldrecords import WHOLE, fields_of

pytestmark = pytest.mark.usefixtures("at_once")

msgspec = pytest.importorskip("msgspec")


@dataclass
class Note:
    name: str
    size: int
    tags: list[str] = field(default_factory=list)
    text: str = ""
    score: float = 0.0
    more: Optional[dict[str, int]] = None
    other: int = 0
    last: Optional[str] = None


class Notes(zlmdb.Table[int, Note], feed=True):
    by_name = zlmdb.UniqueIndex[str]("name")
    by_tag = zlmdb.Index[str]("tags", each=True)
    by_size = zlmdb.Index[int]("size", carries=("last",))


class Named(zlmdb.Table[int, Note]):
    by_name = zlmdb.UniqueIndex[str]("name")


class Conditional(zlmdb.Table[int, Note]):
    by_name = zlmdb.UniqueIndex[str]("name", where=lambda note: note.other > 2)


class Computed(zlmdb.Table[int, Note]):
    by_name = zlmdb.UniqueIndex[str](lambda note: note.name + note.text, version=1)


class Paired(zlmdb.Table[int, Note]):
    by_both = zlmdb.Index[tuple[str, int]]("name", "size")


class Store(zlmdb.Schema):
    notes: Notes
    named: Named
    conditional: Conditional
    computed: Computed
    paired: Paired


TABLES = ("notes", "named", "conditional", "computed", "paired")


def note(number: int, turn: int = 0) -> Note:
    kept = number % 3  # a third keeps its entries, others lose or change some
    return Note(f"n{number}.{turn * kept}", turn % 4 * kept, ["a", f"t{turn}"][: kept + 1], other=(turn + number) % 5)


@pytest.mark.parametrize("name", TABLES)
def test_the_entries_are_right_before_and_after_the_decoder_of_fields_is_made(name: str) -> None:
    with zlmdb.open(None, Store) as db:
        for turn in range(4):
            with db.write() as t:
                for number in range(WHOLE):
                    t[name][number] = note(number, turn)
            assert db.check().ok
        with db.write() as t:
            for number in range(WHOLE):
                del t[name][number]
            t[name].update((number, note(number)) for number in range(WHOLE))
            for number in range(WHOLE // 2):
                del t[name][number]
        assert db.check().ok
        with db.read() as t:
            assert len(t[name]) == WHOLE - WHOLE // 2


@pytest.mark.parametrize(("name", "found"), [("notes", 4), ("named", 1), *[(one, None) for one in TABLES[2:]]])
def test_fields_are_decoded_where_no_function_is_given_the_record(name: str, found: Optional[int]) -> None:
    with zlmdb.open(None, Store) as db, db.read() as t:
        fields = fields_of(t[name]._storage.indexes)
        assert (None if fields is None else len(fields)) == found


def broken(data: bytes) -> bytes:
    """The record *data*, with a text in place of its number ``other``."""
    return bytes(msgspec.msgpack.encode({**msgspec.msgpack.decode(data), "other": "text"}))


def breaks(t: Any, name: str, key: int, change: Callable[[bytes], bytes] = broken) -> None:
    table = t[name]
    encoded, raw = table._storage.encode_key(key), t.txn._engine_txn
    raw.put(encoded, change(bytes(raw.get(encoded, None, table._db))), True, True, False, table._db)


def test_a_field_that_no_index_asks_for_is_not_looked_at() -> None:
    with zlmdb.open(None, Store) as db, db.write() as t:
        table = t.named
        for turn in range(WHOLE + 1):
            table[1] = note(1, turn)
            table[2] = note(2)
            del table[2]
        for _ in range(2):
            breaks(t, "named", 1)
            with pytest.raises(zlmdb.DecodeError):
                table[1]
            table[1] = note(1, 7)
            assert table[1] == note(1, 7)
            assert table.by_name["n1.7"] == note(1, 7)
        breaks(t, "named", 1)
        del table[1]
        assert not len(table)
        assert not list(table.by_name.keys())


def test_a_field_that_an_index_asks_for_must_be_readable() -> None:
    with zlmdb.open(None, Store) as db, db.write() as t:
        table = t.named
        for turn in range(WHOLE + 1):
            table[1] = note(1, turn)
            table[2] = note(2)
            del table[2]
        breaks(t, "named", 1, lambda data: bytes(msgspec.msgpack.encode({**msgspec.msgpack.decode(data), "name": 1})))
        with pytest.raises(zlmdb.DecodeError):
            del table[1]
        with pytest.raises(zlmdb.DecodeError):
            table[1] = note(1)
        assert len(table) == 1
