"""Python objects in typed, ordered tables in a file, with indexes and ACID transactions, on LMDB."""
# ruff: noqa: F403, F405 - the classic maps, the formats and the errors come by their modules' __all__

from . import errors, keys, values
from ._version import __version__
from .compat import check_autobahn_flatbuffers_version_in_sync, lmdb, setup_flatbuffers_import
from .database.database import Database
from .database.opening import open as open
from .errors import *
from .names import *
from .query import Reads, desc
from .schema.runtimetables import MadeTable
from .schema.schema import Schema
from .store.readers import Reader
from .store.transaction import Transaction
from .tables.selection import Selection
from .tables.table import Table

# open is left out: `from zlmdb import *` keeps the builtin
# fmt: off
__all__ = [
    "TABLES_BY_UUID", "Array", "ArraySerializer", "Cache", "CacheDetails", "Cbor", "CborSerializer", "Change",
    "Changes", "ChangesLost", "CheckReport", "Checked", "Compressed", "Compression", "Conflict", "ConstraintError",
    "CorruptDatabase", "DanglingLink", "Database", "DatabaseClosed", "DatabaseFull", "DatabaseInUse", "DecodeError",
    "DecompressionLimit", "DiskError", "DuplicateKey", "EncodeError", "Error", "Feed", "FileRequired", "FlatBuffers",
    "FlatBuffersSerializer", "ForeignKey", "ForkedTransaction", "Index", "IndexNotAttached", "IndexNotBuilt",
    "IndexView", "InvalidDatabase", "Job", "Json", "JsonSerializer", "Lease", "LeaseLost", "ListTable", "MadeTable",
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
    "MapUuidUuidUuidUuidUuid", "Migration", "Msgpack", "MsgpackSerializer", "NestedTransaction", "NullValueConstraint",
    "OldTables", "Page", "PersistentMap", "Pickle", "PickleSerializer", "Plan", "Progress", "Queue", "Reader",
    "ReadonlyDatabase", "Reads", "Schema", "SchemaMismatch", "Selection", "SetTable", "Snappy", "StillLinked", "Table",
    "TableInfo", "Transaction", "TransactionClosed", "TransactionPoisoned", "TransactionStale", "TransactionStats",
    "Unchecked", "UniqueIndex", "UniqueIndexView", "ValueList", "ValueSet", "Was", "Worker", "WriterTimeout",
    "WrongThread", "Zlib", "Zstd", "__version__", "check_autobahn_flatbuffers_version_in_sync", "desc", "errors",
    "flatbuffers", "keys", "lmdb", "setup_flatbuffers_import", "table", "values",
]
