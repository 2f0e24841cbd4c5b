"""The 83 named maps of zlmdb 26: each name spells its parts, key types first, then the value type.

This module only has the names; `zlmdb.keys` and `zlmdb.values` define their meaning. The maps of JSON, CBOR, pickle and
FlatBuffers values take the type of the values: ``MapUuidCbor[User](1, marshal=..., unmarshal=...)``; without it they
contain plain data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import keys as k
from .. import values as v
from .pmap import PersistentMap

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    V = TypeVar("V", default=Any)
else:
    from typing import TypeVar

    V = TypeVar("V")

# fmt: off
# ruff: noqa: E501, E701

__all__ = [
    "MapBytes16FlatBuffers", "MapBytes16TimestampUuid", "MapBytes16TimestampUuidFlatBuffers", "MapBytes20Bytes16",
    "MapBytes20Bytes20", "MapBytes20Bytes20FlatBuffers", "MapBytes20Bytes20Timestamp", "MapBytes20FlatBuffers",
    "MapBytes20StringFlatBuffers", "MapBytes20TimestampBytes20", "MapBytes20TimestampUuid", "MapBytes20Uuid",
    "MapBytes32Bytes32", "MapBytes32Bytes32FlatBuffers", "MapBytes32FlatBuffers", "MapBytes32StringFlatBuffers",
    "MapBytes32Timestamp", "MapBytes32Uuid", "MapBytes32UuidFlatBuffers", "MapOid3FlatBuffers", "MapOidCbor",
    "MapOidFlatBuffers", "MapOidJson", "MapOidOid", "MapOidOidFlatBuffers", "MapOidOidOid", "MapOidOidSet",
    "MapOidPickle", "MapOidString", "MapOidStringOid", "MapOidTimestampFlatBuffers", "MapOidTimestampOid",
    "MapOidTimestampStringOid", "MapOidUuid", "MapSlotUuidUuid", "MapStringCbor", "MapStringFlatBuffers",
    "MapStringJson", "MapStringOid", "MapStringOidOid", "MapStringPickle", "MapStringString",
    "MapStringStringStringUuid", "MapStringStringUuid", "MapStringTimestampCbor", "MapStringUuid",
    "MapTimestampBytes32FlatBuffers", "MapTimestampFlatBuffers", "MapTimestampStringCbor",
    "MapTimestampStringFlatBuffers", "MapTimestampUuidCbor", "MapTimestampUuidFlatBuffers",
    "MapTimestampUuidStringFlatBuffers", "MapUint16UuidTimestampFlatBuffers", "MapUint64TimestampUuid",
    "MapUuidBytes20Bytes20Uint8UuidFlatBuffers", "MapUuidBytes20Uint8FlatBuffers", "MapUuidBytes20Uint8UuidFlatBuffers",
    "MapUuidBytes32FlatBuffers", "MapUuidCbor", "MapUuidFlatBuffers", "MapUuidJson", "MapUuidOid", "MapUuidPickle",
    "MapUuidString", "MapUuidStringFlatBuffers", "MapUuidStringOid", "MapUuidStringUuid", "MapUuidTimestampBytes32",
    "MapUuidTimestampCbor", "MapUuidTimestampFlatBuffers", "MapUuidTimestampUuid", "MapUuidTimestampUuidFlatBuffers",
    "MapUuidUuid", "MapUuidUuidCbor", "MapUuidUuidFlatBuffers", "MapUuidUuidSet", "MapUuidUuidStringFlatBuffers",
    "MapUuidUuidStringUuid", "MapUuidUuidUuid", "MapUuidUuidUuidStringUuid", "MapUuidUuidUuidUuid",
    "MapUuidUuidUuidUuidUuid",
]

class MapUuidString(PersistentMap[k.Uuid, v.String]): """Uuid -> String."""
class MapUuidOid(PersistentMap[k.Uuid, v.Oid]): """Uuid -> Oid."""
class MapUuidUuid(PersistentMap[k.Uuid, v.Uuid]): """Uuid -> Uuid."""
class MapUuidJson(PersistentMap[k.Uuid, v.Json[V]]): """Uuid -> Json."""
class MapUuidCbor(PersistentMap[k.Uuid, v.Cbor[V]]): """Uuid -> Cbor."""
class MapUuidPickle(PersistentMap[k.Uuid, v.Pickle[V]]): """Uuid -> Pickle."""
class MapUuidFlatBuffers(PersistentMap[k.Uuid, v.FlatBuffers[V]]): """Uuid -> FlatBuffers."""
class MapUuidUuidSet(PersistentMap[k.Uuid, v.UuidSet]): """Uuid -> UuidSet."""
class MapUuidUuidUuid(PersistentMap[tuple[k.Uuid, k.Uuid], v.Uuid]): """(Uuid, Uuid) -> Uuid."""
class MapUuidUuidCbor(PersistentMap[tuple[k.Uuid, k.Uuid], v.Cbor[V]]): """(Uuid, Uuid) -> Cbor."""
class MapUuidUuidFlatBuffers(PersistentMap[tuple[k.Uuid, k.Uuid], v.FlatBuffers[V]]): """(Uuid, Uuid) -> FlatBuffers."""
class MapUuidUuidUuidUuid(PersistentMap[tuple[k.Uuid, k.Uuid, k.Uuid], v.Uuid]): """(Uuid, Uuid, Uuid) -> Uuid."""
class MapUuidUuidUuidUuidUuid(PersistentMap[tuple[k.Uuid, k.Uuid, k.Uuid, k.Uuid], v.Uuid]): """(Uuid, Uuid, Uuid, Uuid) -> Uuid."""
class MapUuidStringUuid(PersistentMap[tuple[k.Uuid, k.String], v.Uuid]): """(Uuid, String) -> Uuid."""
class MapUuidStringOid(PersistentMap[tuple[k.Uuid, k.String], v.Oid]): """(Uuid, String) -> Oid."""
class MapUuidStringFlatBuffers(PersistentMap[tuple[k.Uuid, k.String], v.FlatBuffers[V]]): """(Uuid, String) -> FlatBuffers."""
class MapUuidUuidStringUuid(PersistentMap[tuple[k.Uuid, k.Uuid, k.String], v.Uuid]): """(Uuid, Uuid, String) -> Uuid."""
class MapUuidUuidStringFlatBuffers(PersistentMap[tuple[k.Uuid, k.Uuid, k.String], v.FlatBuffers[V]]): """(Uuid, Uuid, String) -> FlatBuffers."""
class MapUuidUuidUuidStringUuid(PersistentMap[tuple[k.Uuid, k.Uuid, k.Uuid, k.String], v.Uuid]): """(Uuid, Uuid, Uuid, String) -> Uuid."""
class MapUuidTimestampUuid(PersistentMap[tuple[k.Uuid, k.Timestamp], v.Uuid]): """(Uuid, Timestamp) -> Uuid."""
class MapUuidTimestampBytes32(PersistentMap[tuple[k.Uuid, k.Timestamp], v.Bytes32]): """(Uuid, Timestamp) -> Bytes32."""
class MapUuidTimestampCbor(PersistentMap[tuple[k.Uuid, k.Timestamp], v.Cbor[V]]): """(Uuid, Timestamp) -> Cbor."""
class MapUuidTimestampFlatBuffers(PersistentMap[tuple[k.Uuid, k.Timestamp], v.FlatBuffers[V]]): """(Uuid, Timestamp) -> FlatBuffers."""
class MapUuidTimestampUuidFlatBuffers(PersistentMap[tuple[k.Uuid, k.Timestamp, k.Uuid], v.FlatBuffers[V]]): """(Uuid, Timestamp, Uuid) -> FlatBuffers."""
class MapUuidBytes32FlatBuffers(PersistentMap[tuple[k.Uuid, k.Bytes32], v.FlatBuffers[V]]): """(Uuid, Bytes32) -> FlatBuffers."""
class MapUuidBytes20Uint8FlatBuffers(PersistentMap[tuple[k.Uuid, k.Bytes20, k.Uint8], v.FlatBuffers[V]]): """(Uuid, Bytes20, Uint8) -> FlatBuffers."""
class MapUuidBytes20Uint8UuidFlatBuffers(PersistentMap[tuple[k.Uuid, k.Bytes20, k.Uint8, k.Uuid], v.FlatBuffers[V]]): """(Uuid, Bytes20, Uint8, Uuid) -> FlatBuffers."""
class MapUuidBytes20Bytes20Uint8UuidFlatBuffers(PersistentMap[tuple[k.Uuid, k.Bytes20, k.Bytes20, k.Uint8, k.Uuid], v.FlatBuffers[V]]): """(Uuid, Bytes20, Bytes20, Uint8, Uuid) -> FlatBuffers."""
class MapTimestampFlatBuffers(PersistentMap[k.Timestamp, v.FlatBuffers[V]]): """Timestamp -> FlatBuffers."""
class MapTimestampUuidCbor(PersistentMap[tuple[k.Timestamp, k.Uuid], v.Cbor[V]]): """(Timestamp, Uuid) -> Cbor."""
class MapTimestampUuidFlatBuffers(PersistentMap[tuple[k.Timestamp, k.Uuid], v.FlatBuffers[V]]): """(Timestamp, Uuid) -> FlatBuffers."""
class MapTimestampStringCbor(PersistentMap[tuple[k.Timestamp, k.String], v.Cbor[V]]): """(Timestamp, String) -> Cbor."""
class MapTimestampStringFlatBuffers(PersistentMap[tuple[k.Timestamp, k.String], v.FlatBuffers[V]]): """(Timestamp, String) -> FlatBuffers."""
class MapTimestampUuidStringFlatBuffers(PersistentMap[tuple[k.Timestamp, k.Uuid, k.String], v.FlatBuffers[V]]): """(Timestamp, Uuid, String) -> FlatBuffers."""
class MapTimestampBytes32FlatBuffers(PersistentMap[tuple[k.Timestamp, k.Bytes32], v.FlatBuffers[V]]): """(Timestamp, Bytes32) -> FlatBuffers."""
class MapUint64TimestampUuid(PersistentMap[tuple[k.Uint64, k.Timestamp], v.Uuid]): """(Uint64, Timestamp) -> Uuid."""
class MapUint16UuidTimestampFlatBuffers(PersistentMap[tuple[k.Uint16, k.Uuid, k.Timestamp], v.FlatBuffers[V]]): """(Uint16, Uuid, Timestamp) -> FlatBuffers."""
class MapStringString(PersistentMap[k.String, v.String]): """String -> String."""
class MapStringOid(PersistentMap[k.String, v.Oid]): """String -> Oid."""
class MapStringUuid(PersistentMap[k.String, v.Uuid]): """String -> Uuid."""
class MapStringJson(PersistentMap[k.String, v.Json[V]]): """String -> Json."""
class MapStringCbor(PersistentMap[k.String, v.Cbor[V]]): """String -> Cbor."""
class MapStringPickle(PersistentMap[k.String, v.Pickle[V]]): """String -> Pickle."""
class MapStringFlatBuffers(PersistentMap[k.String, v.FlatBuffers[V]]): """String -> FlatBuffers."""
class MapStringStringUuid(PersistentMap[tuple[k.String, k.String], v.Uuid]): """(String, String) -> Uuid."""
class MapStringStringStringUuid(PersistentMap[tuple[k.String, k.String, k.String], v.Uuid]): """(String, String, String) -> Uuid."""
class MapStringOidOid(PersistentMap[tuple[k.String, k.Oid], v.Oid]): """(String, Oid) -> Oid."""
class MapStringTimestampCbor(PersistentMap[tuple[k.String, k.Timestamp], v.Cbor[V]]): """(String, Timestamp) -> Cbor."""
class MapOidString(PersistentMap[k.Oid, v.String]): """Oid -> String."""
class MapOidOid(PersistentMap[k.Oid, v.Oid]): """Oid -> Oid."""
class MapOidUuid(PersistentMap[k.Oid, v.Uuid]): """Oid -> Uuid."""
class MapOidJson(PersistentMap[k.Oid, v.Json[V]]): """Oid -> Json."""
class MapOidCbor(PersistentMap[k.Oid, v.Cbor[V]]): """Oid -> Cbor."""
class MapOidPickle(PersistentMap[k.Oid, v.Pickle[V]]): """Oid -> Pickle."""
class MapOidFlatBuffers(PersistentMap[k.Oid, v.FlatBuffers[V]]): """Oid -> FlatBuffers."""
class MapOidOidSet(PersistentMap[k.Oid, v.OidSet]): """Oid -> OidSet."""
class MapOidOidOid(PersistentMap[tuple[k.Oid, k.Oid], v.Oid]): """(Oid, Oid) -> Oid."""
class MapOidOidFlatBuffers(PersistentMap[tuple[k.Oid, k.Oid], v.FlatBuffers[V]]): """(Oid, Oid) -> FlatBuffers."""
class MapOid3FlatBuffers(PersistentMap[tuple[k.Oid, k.Oid, k.Oid], v.FlatBuffers[V]]): """(Oid, Oid, Oid) -> FlatBuffers."""
class MapOidStringOid(PersistentMap[tuple[k.Oid, k.String], v.Oid]): """(Oid, String) -> Oid."""
class MapOidTimestampOid(PersistentMap[tuple[k.Oid, k.Timestamp], v.Oid]): """(Oid, Timestamp) -> Oid."""
class MapOidTimestampFlatBuffers(PersistentMap[tuple[k.Oid, k.Timestamp], v.FlatBuffers[V]]): """(Oid, Timestamp) -> FlatBuffers."""
class MapOidTimestampStringOid(PersistentMap[tuple[k.Oid, k.Timestamp, k.String], v.Oid]): """(Oid, Timestamp, String) -> Oid."""
class MapBytes32Uuid(PersistentMap[k.Bytes32, v.Uuid]): """Bytes32 -> Uuid."""
class MapBytes32Timestamp(PersistentMap[k.Bytes32, v.Timestamp]): """Bytes32 -> Timestamp."""
class MapBytes32Bytes32(PersistentMap[k.Bytes32, v.Bytes32]): """Bytes32 -> Bytes32."""
class MapBytes32FlatBuffers(PersistentMap[k.Bytes32, v.FlatBuffers[V]]): """Bytes32 -> FlatBuffers."""
class MapBytes32Bytes32FlatBuffers(PersistentMap[tuple[k.Bytes32, k.Bytes32], v.FlatBuffers[V]]): """(Bytes32, Bytes32) -> FlatBuffers."""
class MapBytes32UuidFlatBuffers(PersistentMap[tuple[k.Bytes32, k.Uuid], v.FlatBuffers[V]]): """(Bytes32, Uuid) -> FlatBuffers."""
class MapBytes32StringFlatBuffers(PersistentMap[tuple[k.Bytes32, k.String], v.FlatBuffers[V]]): """(Bytes32, String) -> FlatBuffers."""
class MapBytes20Uuid(PersistentMap[k.Bytes20, v.Uuid]): """Bytes20 -> Uuid."""
class MapBytes20Bytes16(PersistentMap[k.Bytes20, v.Bytes16]): """Bytes20 -> Bytes16."""
class MapBytes20Bytes20(PersistentMap[k.Bytes20, v.Bytes20]): """Bytes20 -> Bytes20."""
class MapBytes20Bytes20Timestamp(PersistentMap[k.Bytes20, v.Bytes20Timestamp]): """Bytes20 -> Bytes20Timestamp."""
class MapBytes20FlatBuffers(PersistentMap[k.Bytes20, v.FlatBuffers[V]]): """Bytes20 -> FlatBuffers."""
class MapBytes20Bytes20FlatBuffers(PersistentMap[tuple[k.Bytes20, k.Bytes20], v.FlatBuffers[V]]): """(Bytes20, Bytes20) -> FlatBuffers."""
class MapBytes20StringFlatBuffers(PersistentMap[tuple[k.Bytes20, k.String], v.FlatBuffers[V]]): """(Bytes20, String) -> FlatBuffers."""
class MapBytes20TimestampBytes20(PersistentMap[tuple[k.Bytes20, k.Timestamp], v.Bytes20]): """(Bytes20, Timestamp) -> Bytes20."""
class MapBytes20TimestampUuid(PersistentMap[tuple[k.Bytes20, k.Timestamp], v.Uuid]): """(Bytes20, Timestamp) -> Uuid."""
class MapBytes16FlatBuffers(PersistentMap[k.Bytes16, v.FlatBuffers[V]]): """Bytes16 -> FlatBuffers."""
class MapBytes16TimestampUuid(PersistentMap[tuple[k.Bytes16, k.Timestamp], v.Uuid]): """(Bytes16, Timestamp) -> Uuid."""
class MapBytes16TimestampUuidFlatBuffers(PersistentMap[tuple[k.Bytes16, k.Timestamp, k.Uuid], v.FlatBuffers[V]]): """(Bytes16, Timestamp, Uuid) -> FlatBuffers."""
class MapSlotUuidUuid(PersistentMap[tuple[k.Slot, k.Uuid], v.Uuid]): """(Slot, Uuid) -> Uuid."""
