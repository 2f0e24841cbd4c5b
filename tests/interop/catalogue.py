"""The classic maps as data: every named map, its key parts, its values, and sample records with their bytes.

Imported by the tests and by the scripts that the predecessor runs, so that both sides speak of the same records.
It knows nothing of zlmdb: names are spelled from the table of the format's description, and the bytes of a key are made
here from scratch, as a third opinion beside the two packages. What crosses between the two processes is JSON: a part or
a value is *described* by a list of its kind and plain data, ``["uuid", "1011..."]``.
"""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

Described = list[Any]

_ATOMS = {
    "Uuid": "uuid",
    "String": "string",
    "Oid": "oid",
    "Timestamp": "timestamp",
    "Bytes32": "bytes32",
    "Bytes20": "bytes20",
    "Bytes16": "bytes16",
    "Uint64": "uint64",
    "Uint16": "uint16",
    "Uint8": "uint8",
    "Slot": "slot",
}

# Key type, a space-separated list of its parts -> value types. A map's name is "Map", the parts, the value type.
_MAPS = """
Uuid: String Oid Uuid Json Cbor Pickle FlatBuffers UuidSet
Uuid Uuid: Uuid Cbor FlatBuffers
Uuid Uuid Uuid: Uuid
Uuid Uuid Uuid Uuid: Uuid
Uuid String: Uuid Oid FlatBuffers
Uuid Uuid String: Uuid FlatBuffers
Uuid Uuid Uuid String: Uuid
Uuid Timestamp: Uuid Bytes32 Cbor FlatBuffers
Uuid Timestamp Uuid: FlatBuffers
Uuid Bytes20 Uint8: FlatBuffers
Uuid Bytes20 Uint8 Uuid: FlatBuffers
Uuid Bytes20 Bytes20 Uint8 Uuid: FlatBuffers
Timestamp: FlatBuffers
Timestamp Uuid: Cbor FlatBuffers
Timestamp String: Cbor FlatBuffers
Timestamp Uuid String: FlatBuffers
Timestamp Bytes32: FlatBuffers
Uint64 Timestamp: Uuid
Uint16 Uuid Timestamp: FlatBuffers
String: String Oid Uuid Json Cbor Pickle FlatBuffers
String String: Uuid
String String String: Uuid
String Oid: Oid
String Timestamp: Cbor
Oid: String Oid Uuid Json Cbor Pickle FlatBuffers OidSet
Oid Oid: Oid FlatBuffers
Oid Oid Oid: FlatBuffers
Oid String: Oid
Oid Timestamp: Oid FlatBuffers
Oid Timestamp String: Oid
Bytes32: Uuid Timestamp Bytes32 FlatBuffers
Bytes32 Bytes32: FlatBuffers
Bytes32 Uuid: FlatBuffers
Bytes32 String: FlatBuffers
Bytes20: Uuid Bytes16 Bytes20 Bytes20Timestamp FlatBuffers
Bytes20 Bytes20: FlatBuffers
Bytes20 String: FlatBuffers
Bytes20 Timestamp: Bytes20 Uuid
Bytes16: FlatBuffers
Bytes16 Timestamp: Uuid
Bytes16 Timestamp Uuid: FlatBuffers
Slot Uuid: Uuid
"""

# Stored little-endian by the predecessor, hence not in the order of their values.
LITTLE_ENDIAN = {("oid", "timestamp"): 1, ("oid", "timestamp", "string"): 1, ("uint16", "uuid", "timestamp"): 0}

# Keys that the predecessor writes, but cannot give back: its `select` raises, or returns something else.
KEYS_IT_CANNOT_DECODE = {
    ("oid", "timestamp"),
    ("oid", "timestamp", "string"),
    ("uuid", "timestamp", "uuid"),
    ("string", "string"),
    ("string", "string", "string"),
    ("string", "oid"),
    ("uint16", "uuid", "timestamp"),
    ("uuid", "bytes20", "uint8"),
    ("uuid", "bytes20", "uint8", "uuid"),
    ("uuid", "bytes20", "bytes20", "uint8", "uuid"),
}

# Values it writes, but reads back with most elements missing.
VALUES_IT_CANNOT_DECODE = {"OidSet", "UuidSet"}

# An empty last text part is a legal key that the predecessor's decoder refuses; it refuses some in the encoder as well.
_NO_EMPTY_TEXT = {
    ("oid", "string"),
    ("oid", "timestamp", "string"),
    ("string", "timestamp"),
    ("timestamp", "string"),
    ("timestamp", "uuid", "string"),
    ("uuid", "uuid", "string"),
    ("bytes32", "string"),
    ("bytes20", "string"),
}


def _catalogue() -> dict[str, tuple[tuple[str, ...], str]]:
    found = {}
    for line in _MAPS.split("\n"):
        key, _, values = line.partition(":")
        for value in values.split():
            parts = key.split()
            spelled = "Oid3" if parts == ["Oid", "Oid", "Oid"] else "".join(parts)
            found["Map" + spelled + value] = (tuple(_ATOMS[part] for part in parts), value)
    return found


MAPS = _catalogue()
"""Map name -> (kinds of the key's parts, value type)."""

SLOTS = {name: slot for slot, name in enumerate(sorted(MAPS), 1)}
"""The slot in which the shared files hold each map."""

_UUIDS = [bytes(range(n, n + 16)).hex() for n in (0x10, 0x20, 0x80, 0xF0)] + ["00" * 16, "ff" * 16, "00" * 15 + "01"]
_PARTS: dict[str, list[Any]] = {
    "uuid": _UUIDS,
    "string": ["ab", "abc", "a", "b", "M\u00fcnchen", "\u65e5\u672c\u8a9e", "\U0001f600 x"],
    "oid": [5, 6, 0, 255, 256, 2**32, 2**53],
    "timestamp": [1700000000123456789, 0, 1, 255, 256, 1700000000123456788, 2**62],
    "uint64": [5, 0, 255, 256, 2**32, 2**63 + 1, 2**64 - 1],
    "uint16": [258, 0, 1, 255, 256, 513, 65535],
    "slot": [3, 1, 255, 256, 513, 4096, 65535],
    "uint8": [7, 0, 1, 127, 128, 254, 255],
}
for _size in (16, 20, 32):
    _PARTS[f"bytes{_size}"] = [
        bytes(range(_size)).hex(),
        bytes(range(255, 255 - _size, -1)).hex(),
        "01" * _size,
        "00" * _size,
        "ff" * _size,
        "80" * _size,
        "00" * (_size - 1) + "61",
    ]

_PLAIN: list[Any] = [
    {"name": "Ann", "tags": ["a", "b"], "n": 1, "x": 2.5, "none": None, "yes": True},
    {"a": "\u00e9", "b": [1, 2.5, None]},
    [],
    {},
    "text",
    {"nested": {"deep": [{"k": [0, -1, 2**53]}]}},
    False,
]
_SET_SIZES = [1, 2, 3, 9, 17, 20, 300]
_VALUES: dict[str, list[Any]] = {
    "String": ["hello", "M\u00fcnchen \u65e5\u672c", "", "x" * 5000, "a\0b", " ", "0"],
    "Oid": _PARTS["oid"],
    "Uuid": _UUIDS,
    "Timestamp": _PARTS["timestamp"],
    "Bytes16": _PARTS["bytes16"],
    "Bytes20": _PARTS["bytes20"],
    "Bytes32": _PARTS["bytes32"],
    "Bytes20Timestamp": [list(pair) for pair in zip(_PARTS["bytes20"], _PARTS["timestamp"])],
    "OidSet": [sorted({(i * 7919) % 2**53 for i in range(size)}) for size in _SET_SIZES],
    "UuidSet": [sorted(UUID(int=i * 7919 + 1).hex for i in range(size)) for size in _SET_SIZES],
    "Json": _PLAIN,
    "Cbor": _PLAIN,
    "Pickle": _PLAIN,
    "FlatBuffers": [[i, f"row {i}"] for i in (1, 0, 255, 65536, 2**40, 7, 8)],
}


def records(name: str, generation: int = 0) -> list[tuple[Described, Any]]:
    """The sample records of map *name*, in the order of their bytes; another *generation* has other keys and values.

    Keys share first parts and differ in the later ones, and the other way round.
    """
    parts, value = MAPS[name]
    picks = [[i] * len(parts) for i in range(7)]
    picks += [[0] * p + [i] + [0] * (len(parts) - p - 1) for p in range(len(parts)) for i in range(7)]
    keys = {}
    for pick in picks:
        key = [[kind, _PARTS[kind][i]] for kind, i in zip(parts, pick)]
        keys[key_bytes(key)] = key
    if parts[-1] == "string" and parts not in _NO_EMPTY_TEXT:
        key = [[kind, _PARTS[kind][0]] for kind in parts[:-1]] + [["string", ""]]
        keys[key_bytes(key)] = key
    chosen = [keys[data] for data in sorted(keys)]
    if generation:
        others = {key_bytes(other): other for other in (_other(key, generation) for key in chosen)}
        chosen = [others[data] for data in sorted(others) if data not in keys]
    values = _VALUES[value]
    return [(key, [value, values[(i + generation) % len(values)]]) for i, key in enumerate(chosen)]


def _other(key: Described, generation: int) -> Described:
    """*key* with its first part changed."""
    kind, part = key[0]
    if kind == "string":
        part = f"g{generation} {part}"
    elif isinstance(part, int):
        part = part // 2 + 1000 * generation if kind != "uint8" else part
        part %= 65535
    else:
        part = f"{0x30 + generation:02x}{part[2:]}"
    return [[kind, part], *key[1:]]


def key_bytes(key: Described) -> bytes:
    """The bytes of a described key after the slot, written from the format's description, without zlmdb."""
    kinds = tuple(kind for kind, _ in key)
    out = b""
    for position, (kind, part) in enumerate(key):
        little = LITTLE_ENDIAN.get(kinds) == position
        data = _part_bytes(kind, part)
        out += data[::-1] if little else data
        if kind == "string" and kinds[position + 1 :][:1] == ("string",):
            out += b"\0"
    return out


def _part_bytes(kind: str, part: Any) -> bytes:
    if kind == "string":
        return str(part).encode("utf8")
    if kind in ("oid", "timestamp", "uint64"):
        return struct.pack(">Q", part)
    if kind in ("uint16", "slot"):
        return struct.pack(">H", part)
    return bytes([part]) if kind == "uint8" else bytes.fromhex(part)


def value_bytes(value: Described) -> Any:
    """The bytes of a described value where the format leaves one choice only, else None.

    Sets are listed sorted here; the predecessor writes them in the order of a Python set.
    """
    kind, data = value
    if kind in ("Json", "Cbor", "Pickle", "FlatBuffers"):
        return None
    if kind == "OidSet":
        return b"".join(struct.pack(">Q", oid) for oid in data)
    if kind == "UuidSet":
        return b"".join(bytes.fromhex(one) for one in data)
    if kind == "Bytes20Timestamp":
        return bytes.fromhex(data[0]) + struct.pack(">Q", data[1])
    return _part_bytes(kind.lower(), data)


def python_key(key: Described) -> Any:
    """The Python key that a described key stands for: one part bare, several as a tuple."""
    parts = tuple(_python(kind, part) for kind, part in key)
    return parts[0] if len(parts) == 1 else parts


def python_value(value: Described) -> Any:
    """The Python value that a described value stands for."""
    kind, data = value
    if kind == "OidSet":
        return set(data)
    if kind == "UuidSet":
        return {UUID(hex=one) for one in data}
    if kind == "Bytes20Timestamp":
        return (bytes.fromhex(data[0]), _python("timestamp", data[1]))
    if kind == "FlatBuffers":
        return Row(*data)
    return _python(kind.lower(), data)


def _python(kind: str, data: Any) -> Any:
    if kind == "uuid":
        return UUID(hex=data)
    if kind == "timestamp":
        import numpy

        return numpy.datetime64(data, "ns")
    return bytes.fromhex(data) if kind.startswith("bytes") else data


def describe(kind: str, value: Any) -> Any:
    """The plain data of a part or value that was read, the opposite of `python_key` and `python_value`."""
    if kind == "OidSet":
        return sorted(value)
    if kind == "UuidSet":
        return sorted(one.hex for one in value)
    if kind == "Bytes20Timestamp":
        return [value[0].hex(), describe("timestamp", value[1])]
    if kind == "FlatBuffers":
        return [value.number, value.text]
    kind = kind.lower()
    if kind == "uuid":
        return value.hex
    if kind == "timestamp":
        return int(value.astype("datetime64[ns]").astype("int64"))
    return bytes(value).hex() if kind.startswith("bytes") else value


def describe_key(parts: tuple[str, ...], key: Any) -> Described:
    """The described form of a key that was read."""
    given = (key,) if len(parts) == 1 else key
    return [[kind, describe(kind, part)] for kind, part in zip(parts, given)]


def make(zlmdb: Any, name: str, slot: int, compress: Any = None) -> Any:
    """The map *name* of the package *zlmdb*, whichever one it is, with the callables that its values take."""
    value = MAPS[name][1]
    options = {}
    if value in ("Json", "Cbor"):
        options = {"marshal": _same, "unmarshal": _same}
    elif value == "FlatBuffers":
        options = {"build": build_row, "cast": cast_row}
    return getattr(zlmdb, name)(slot, compress=compress, **options)


def _same(value: Any) -> Any:
    return value


class Row:
    """What the FlatBuffers samples hold: ``table Row { number: uint64; text: string; }``, as flatc would lay it out."""

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Row) and (self.number, self.text) == (other.number, other.text)

    def __hash__(self) -> int:
        return hash(self.number)

    def __repr__(self) -> str:
        return f"Row({self.number!r}, {self.text!r})"


def build_row(row: Row, builder: Any) -> Any:
    """The offset of *row*, as code generated by flatc builds it."""
    text = builder.CreateString(row.text)
    builder.StartObject(2)
    builder.PrependUint64Slot(0, row.number, 0)
    builder.PrependUOffsetTRelativeSlot(1, text, 0)
    return builder.EndObject()


def cast_row(buffer: Any) -> Row:
    """The row in *buffer*, read without a FlatBuffers library: a root table with two fields."""
    data = bytes(buffer)
    table = struct.unpack_from("<I", data)[0]
    vtable = table - struct.unpack_from("<i", data, table)[0]
    size = struct.unpack_from("<H", data, vtable)[0]
    offsets = struct.unpack_from(f"<{size // 2 - 2}H", data, vtable + 4)
    number = struct.unpack_from("<Q", data, table + offsets[0])[0] if offsets[0] else 0
    start = table + offsets[1]
    start += struct.unpack_from("<I", data, start)[0]
    length = struct.unpack_from("<I", data, start)[0]
    return Row(number, data[start + 4 : start + 4 + length].decode("utf8"))
