"""The 83 named maps: each does what its name spells."""

from __future__ import annotations

import pickle
import re
import struct
from typing import Any, Callable

import pytest

import zlmdb
from zlmdb.classic import maps

pytestmark = pytest.mark.twice  # encodings do not depend on the version of Python

NAMES = sorted(name for name in vars(maps) if name.startswith("Map"))
ATOMS = ["Uuid", "String", "Oid", "Timestamp", "Bytes32", "Bytes20", "Bytes16", "Uint64", "Uint16", "Uint8", "Slot"]
VALUES = {  # the type of the values as it ends a name -> the name of their serializer, longer ends first
    "Bytes20Timestamp": "tuple(bytes20,timestamp)",
    "FlatBuffers": "flatbuffers",
    "UuidSet": "uuidset",
    "OidSet": "oidset",
    "Pickle": "pickle",
    "Json": "json",
    "Cbor": "cbor",
    **{atom: atom.lower() for atom in ATOMS[:7]},
}
# Bytes20Timestamp is a type of values; behind another key it would be (Bytes20, Timestamp) -> ... and does not occur.
each_map = pytest.mark.parametrize("name", NAMES)


def spelled(name: str) -> tuple[str, str]:
    """The names of key codec and serializer that the name of a map spells."""
    end = next(end for end in VALUES if name.endswith(end) and name != f"Map{end}")
    atoms = re.sub(r"^Oid3$", "OidOidOid", name[len("Map") : -len(end)])
    parts = re.findall("|".join(ATOMS), atoms)
    assert "".join(parts) == atoms
    names = ",".join(part.lower() for part in parts)
    return (names if len(parts) == 1 else f"tuple({names})"), VALUES[end]


def build(pair: tuple[int, str], builder: Any) -> int:
    text = builder.CreateString(pair[1])
    builder.StartObject(2)
    builder.PrependUint64Slot(0, pair[0], 0)
    builder.PrependUOffsetTRelativeSlot(1, text, 0)
    return int(builder.EndObject())


def cast(data: Any) -> tuple[int, str]:
    from zlmdb import flatbuffers

    table = flatbuffers.table.Table(data, struct.unpack_from("<I", data)[0])
    number, text = table.Offset(4), table.Offset(6)
    flags = flatbuffers.number_types.Uint64Flags
    return (int(table.Get(flags, number + table.Pos)) if number else 0, bytes(table.String(text + table.Pos)).decode())


def make(name: str, slot: int) -> Any:
    cls = getattr(zlmdb, name)
    return cls(slot, build=build, cast=cast) if name.endswith("FlatBuffers") else cls(slot)


def times() -> list[Any]:
    import numpy as np

    return [np.datetime64(n, "ns") for n in (0, 1, 1700000000123456789, 2**63 - 1)]


OTHER_VALUES: dict[str, Callable[[], list[Any]]] = {
    "flatbuffers": lambda: [(n, f"text {n}") for n in range(5)],
    "timestamp": times,
    "tuple(bytes20,timestamp)": lambda: [(bytes([n] * 20), time) for n, time in enumerate(times())],
}


def samples(table: Any) -> list[tuple[Any, Any]]:
    """A dozen keys, spread over the examples of their codec, in ascending order; with values."""
    key, value = table._both_codecs()
    keys = list(key.examples)
    keys = keys[:: max(1, len(keys) // 12)]
    values = list(value.examples) or OTHER_VALUES[value.name]()
    return [(one, values[n % len(values)]) for n, one in enumerate(keys)]


def test_there_are_83_of_them() -> None:
    assert len(NAMES) == 83
    assert set(NAMES) <= set(zlmdb.__all__)


@pytest.mark.once  # the same on every interpreter
@each_map
def test_the_name_spells_the_types(name: str) -> None:
    key, value = getattr(zlmdb, name)(1)._both_codecs()
    assert (key.name, value.name) == spelled(name)


@pytest.mark.once  # the same on every interpreter
@each_map
def test_the_class_is_exported_documented_and_pickled(name: str) -> None:
    cls = getattr(zlmdb, name)
    assert cls is getattr(maps, name)
    assert issubclass(cls, zlmdb.PersistentMap)
    assert cls.__doc__.partition("\n")[0].endswith(".")
    assert pickle.loads(pickle.dumps(cls)) is cls


@pytest.mark.once  # the same on every interpreter
@each_map
def test_the_documentation_spells_the_types(name: str) -> None:
    left, _, right = getattr(zlmdb, name).__doc__.rstrip(".").partition(" -> ")
    key, value = spelled(name)
    parts = re.findall(r"\w+", left)
    assert (parts[0].lower() if len(parts) == 1 else f"tuple({','.join(parts).lower()})") == key
    assert VALUES[right] == value


@each_map
def test_records_come_back(name: str, combo: str, make_db: Callable[..., zlmdb.Database[Any]]) -> None:
    if "Timestamp" in name:
        pytest.importorskip("numpy", reason="timestamps need numpy")
    table = make(name, 7)
    records = samples(table)
    db = make_db(zlmdb.Schema)
    with db.begin(write=True) as txn:
        for key, value in reversed(records):
            table[txn, key] = value
    with db.begin() as txn:
        for key, value in records:
            assert table[txn, key] == value
        # Some classic files are not in the order of the keys: little-endian numbers, texts without an end.
        stored = table.bind(txn)._storage.key
        ordered = sorted(records, key=lambda record: stored.encode(record[0]))
        assert list(table.select(txn)) == ordered
        assert list(table.select(txn, reverse=True)) == ordered[::-1]
        assert ordered == records or combo.endswith("classic")
        if stored.sorts:
            assert table.count_range(txn, ordered[3][0], ordered[-1][0]) == len(records) - 4
        assert table.count(txn) == len(records)
        assert (txn, records[0][0]) in table
