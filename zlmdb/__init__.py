"""Typed persistent maps over LMDB: dict-like tables with indexes, in ACID transactions."""

from . import errors, keys, values
from ._version import __version__ as __version__
from .classic.maps import MapBytes16FlatBuffers as MapBytes16FlatBuffers
from .classic.maps import MapBytes16TimestampUuid as MapBytes16TimestampUuid
from .classic.maps import MapBytes16TimestampUuidFlatBuffers as MapBytes16TimestampUuidFlatBuffers
from .classic.maps import MapBytes20Bytes16 as MapBytes20Bytes16
from .classic.maps import MapBytes20Bytes20 as MapBytes20Bytes20
from .classic.maps import MapBytes20Bytes20FlatBuffers as MapBytes20Bytes20FlatBuffers
from .classic.maps import MapBytes20Bytes20Timestamp as MapBytes20Bytes20Timestamp
from .classic.maps import MapBytes20FlatBuffers as MapBytes20FlatBuffers
from .classic.maps import MapBytes20StringFlatBuffers as MapBytes20StringFlatBuffers
from .classic.maps import MapBytes20TimestampBytes20 as MapBytes20TimestampBytes20
from .classic.maps import MapBytes20TimestampUuid as MapBytes20TimestampUuid
from .classic.maps import MapBytes20Uuid as MapBytes20Uuid
from .classic.maps import MapBytes32Bytes32 as MapBytes32Bytes32
from .classic.maps import MapBytes32Bytes32FlatBuffers as MapBytes32Bytes32FlatBuffers
from .classic.maps import MapBytes32FlatBuffers as MapBytes32FlatBuffers
from .classic.maps import MapBytes32StringFlatBuffers as MapBytes32StringFlatBuffers
from .classic.maps import MapBytes32Timestamp as MapBytes32Timestamp
from .classic.maps import MapBytes32Uuid as MapBytes32Uuid
from .classic.maps import MapBytes32UuidFlatBuffers as MapBytes32UuidFlatBuffers
from .classic.maps import MapOid3FlatBuffers as MapOid3FlatBuffers
from .classic.maps import MapOidCbor as MapOidCbor
from .classic.maps import MapOidFlatBuffers as MapOidFlatBuffers
from .classic.maps import MapOidJson as MapOidJson
from .classic.maps import MapOidOid as MapOidOid
from .classic.maps import MapOidOidFlatBuffers as MapOidOidFlatBuffers
from .classic.maps import MapOidOidOid as MapOidOidOid
from .classic.maps import MapOidOidSet as MapOidOidSet
from .classic.maps import MapOidPickle as MapOidPickle
from .classic.maps import MapOidString as MapOidString
from .classic.maps import MapOidStringOid as MapOidStringOid
from .classic.maps import MapOidTimestampFlatBuffers as MapOidTimestampFlatBuffers
from .classic.maps import MapOidTimestampOid as MapOidTimestampOid
from .classic.maps import MapOidTimestampStringOid as MapOidTimestampStringOid
from .classic.maps import MapOidUuid as MapOidUuid
from .classic.maps import MapSlotUuidUuid as MapSlotUuidUuid
from .classic.maps import MapStringCbor as MapStringCbor
from .classic.maps import MapStringFlatBuffers as MapStringFlatBuffers
from .classic.maps import MapStringJson as MapStringJson
from .classic.maps import MapStringOid as MapStringOid
from .classic.maps import MapStringOidOid as MapStringOidOid
from .classic.maps import MapStringPickle as MapStringPickle
from .classic.maps import MapStringString as MapStringString
from .classic.maps import MapStringStringStringUuid as MapStringStringStringUuid
from .classic.maps import MapStringStringUuid as MapStringStringUuid
from .classic.maps import MapStringTimestampCbor as MapStringTimestampCbor
from .classic.maps import MapStringUuid as MapStringUuid
from .classic.maps import MapTimestampBytes32FlatBuffers as MapTimestampBytes32FlatBuffers
from .classic.maps import MapTimestampFlatBuffers as MapTimestampFlatBuffers
from .classic.maps import MapTimestampStringCbor as MapTimestampStringCbor
from .classic.maps import MapTimestampStringFlatBuffers as MapTimestampStringFlatBuffers
from .classic.maps import MapTimestampUuidCbor as MapTimestampUuidCbor
from .classic.maps import MapTimestampUuidFlatBuffers as MapTimestampUuidFlatBuffers
from .classic.maps import MapTimestampUuidStringFlatBuffers as MapTimestampUuidStringFlatBuffers
from .classic.maps import MapUint16UuidTimestampFlatBuffers as MapUint16UuidTimestampFlatBuffers
from .classic.maps import MapUint64TimestampUuid as MapUint64TimestampUuid
from .classic.maps import MapUuidBytes20Bytes20Uint8UuidFlatBuffers as MapUuidBytes20Bytes20Uint8UuidFlatBuffers
from .classic.maps import MapUuidBytes20Uint8FlatBuffers as MapUuidBytes20Uint8FlatBuffers
from .classic.maps import MapUuidBytes20Uint8UuidFlatBuffers as MapUuidBytes20Uint8UuidFlatBuffers
from .classic.maps import MapUuidBytes32FlatBuffers as MapUuidBytes32FlatBuffers
from .classic.maps import MapUuidCbor as MapUuidCbor
from .classic.maps import MapUuidFlatBuffers as MapUuidFlatBuffers
from .classic.maps import MapUuidJson as MapUuidJson
from .classic.maps import MapUuidOid as MapUuidOid
from .classic.maps import MapUuidPickle as MapUuidPickle
from .classic.maps import MapUuidString as MapUuidString
from .classic.maps import MapUuidStringFlatBuffers as MapUuidStringFlatBuffers
from .classic.maps import MapUuidStringOid as MapUuidStringOid
from .classic.maps import MapUuidStringUuid as MapUuidStringUuid
from .classic.maps import MapUuidTimestampBytes32 as MapUuidTimestampBytes32
from .classic.maps import MapUuidTimestampCbor as MapUuidTimestampCbor
from .classic.maps import MapUuidTimestampFlatBuffers as MapUuidTimestampFlatBuffers
from .classic.maps import MapUuidTimestampUuid as MapUuidTimestampUuid
from .classic.maps import MapUuidTimestampUuidFlatBuffers as MapUuidTimestampUuidFlatBuffers
from .classic.maps import MapUuidUuid as MapUuidUuid
from .classic.maps import MapUuidUuidCbor as MapUuidUuidCbor
from .classic.maps import MapUuidUuidFlatBuffers as MapUuidUuidFlatBuffers
from .classic.maps import MapUuidUuidSet as MapUuidUuidSet
from .classic.maps import MapUuidUuidStringFlatBuffers as MapUuidUuidStringFlatBuffers
from .classic.maps import MapUuidUuidStringUuid as MapUuidUuidStringUuid
from .classic.maps import MapUuidUuidUuid as MapUuidUuidUuid
from .classic.maps import MapUuidUuidUuidStringUuid as MapUuidUuidUuidStringUuid
from .classic.maps import MapUuidUuidUuidUuid as MapUuidUuidUuidUuid
from .classic.maps import MapUuidUuidUuidUuidUuid as MapUuidUuidUuidUuidUuid
from .classic.pmap import PersistentMap as PersistentMap
from .classic.registered import TABLES_BY_UUID as TABLES_BY_UUID
from .compat import __getattr__ as __getattr__
from .compat import check_autobahn_flatbuffers_version_in_sync as check_autobahn_flatbuffers_version_in_sync
from .compat import lmdb as lmdb
from .compat import setup_flatbuffers_import as setup_flatbuffers_import
from .database import Database as Database
from .database import open as open
from .errors import ConstraintError as ConstraintError
from .errors import CorruptDatabase as CorruptDatabase
from .errors import DatabaseClosed as DatabaseClosed
from .errors import DatabaseFull as DatabaseFull
from .errors import DatabaseInUse as DatabaseInUse
from .errors import DecodeError as DecodeError
from .errors import DiskError as DiskError
from .errors import DuplicateKey as DuplicateKey
from .errors import EncodeError as EncodeError
from .errors import Error as Error
from .errors import FileRequired as FileRequired
from .errors import ForkedTransaction as ForkedTransaction
from .errors import IndexNotAttached as IndexNotAttached
from .errors import IndexNotBuilt as IndexNotBuilt
from .errors import InvalidDatabase as InvalidDatabase
from .errors import NestedTransaction as NestedTransaction
from .errors import NullValueConstraint as NullValueConstraint
from .errors import ReadonlyDatabase as ReadonlyDatabase
from .errors import SchemaMismatch as SchemaMismatch
from .errors import TransactionClosed as TransactionClosed
from .errors import TransactionPoisoned as TransactionPoisoned
from .errors import TransactionStale as TransactionStale
from .errors import WriterTimeout as WriterTimeout
from .errors import WrongThread as WrongThread
from .facts import TableInfo as TableInfo
from .index import Index as Index
from .index import UniqueIndex as UniqueIndex
from .indexview import IndexView as IndexView
from .indexview import UniqueIndexView as UniqueIndexView
from .operations.migrations import Migration as Migration
from .operations.progress import Progress as Progress
from .operations.report import CheckReport as CheckReport
from .query import Condition as Condition
from .query import F as F
from .query import Field as Field
from .query import Filtered as Filtered
from .readers import Reader as Reader
from .schema import Schema as Schema
from .selection import Selection as Selection
from .table import Table as Table
from .transaction import Transaction as Transaction
from .transaction import TransactionStats as TransactionStats
from .values import Array as Array
from .values import ArraySerializer as ArraySerializer
from .values import Cbor as Cbor
from .values import CborSerializer as CborSerializer
from .values import Checked as Checked
from .values import Compressed as Compressed
from .values import Compression as Compression
from .values import FlatBuffers as FlatBuffers
from .values import FlatBuffersSerializer as FlatBuffersSerializer
from .values import Json as Json
from .values import JsonSerializer as JsonSerializer
from .values import Msgpack as Msgpack
from .values import MsgpackSerializer as MsgpackSerializer
from .values import Pickle as Pickle
from .values import PickleSerializer as PickleSerializer
from .values import Snappy as Snappy
from .values import Unchecked as Unchecked
from .values import Zlib as Zlib
from .values import Zstd as Zstd

# Last: to type checkers the import of Table makes zlmdb.table the module of that name.
from .classic.registered import table as table  # isort: skip

__all__ = [  # open is left out: `from zlmdb import *` keeps the builtin
    "TABLES_BY_UUID",
    "Array",
    "ArraySerializer",
    "Cbor",
    "CborSerializer",
    "CheckReport",
    "Checked",
    "Compressed",
    "Compression",
    "Condition",
    "ConstraintError",
    "CorruptDatabase",
    "Database",
    "DatabaseClosed",
    "DatabaseFull",
    "DatabaseInUse",
    "DecodeError",
    "DiskError",
    "DuplicateKey",
    "EncodeError",
    "Error",
    "F",
    "Field",
    "FileRequired",
    "Filtered",
    "FlatBuffers",
    "FlatBuffersSerializer",
    "ForkedTransaction",
    "Index",
    "IndexNotAttached",
    "IndexNotBuilt",
    "IndexView",
    "InvalidDatabase",
    "Json",
    "JsonSerializer",
    "MapBytes16FlatBuffers",
    "MapBytes16TimestampUuid",
    "MapBytes16TimestampUuidFlatBuffers",
    "MapBytes20Bytes16",
    "MapBytes20Bytes20",
    "MapBytes20Bytes20FlatBuffers",
    "MapBytes20Bytes20Timestamp",
    "MapBytes20FlatBuffers",
    "MapBytes20StringFlatBuffers",
    "MapBytes20TimestampBytes20",
    "MapBytes20TimestampUuid",
    "MapBytes20Uuid",
    "MapBytes32Bytes32",
    "MapBytes32Bytes32FlatBuffers",
    "MapBytes32FlatBuffers",
    "MapBytes32StringFlatBuffers",
    "MapBytes32Timestamp",
    "MapBytes32Uuid",
    "MapBytes32UuidFlatBuffers",
    "MapOid3FlatBuffers",
    "MapOidCbor",
    "MapOidFlatBuffers",
    "MapOidJson",
    "MapOidOid",
    "MapOidOidFlatBuffers",
    "MapOidOidOid",
    "MapOidOidSet",
    "MapOidPickle",
    "MapOidString",
    "MapOidStringOid",
    "MapOidTimestampFlatBuffers",
    "MapOidTimestampOid",
    "MapOidTimestampStringOid",
    "MapOidUuid",
    "MapSlotUuidUuid",
    "MapStringCbor",
    "MapStringFlatBuffers",
    "MapStringJson",
    "MapStringOid",
    "MapStringOidOid",
    "MapStringPickle",
    "MapStringString",
    "MapStringStringStringUuid",
    "MapStringStringUuid",
    "MapStringTimestampCbor",
    "MapStringUuid",
    "MapTimestampBytes32FlatBuffers",
    "MapTimestampFlatBuffers",
    "MapTimestampStringCbor",
    "MapTimestampStringFlatBuffers",
    "MapTimestampUuidCbor",
    "MapTimestampUuidFlatBuffers",
    "MapTimestampUuidStringFlatBuffers",
    "MapUint16UuidTimestampFlatBuffers",
    "MapUint64TimestampUuid",
    "MapUuidBytes20Bytes20Uint8UuidFlatBuffers",
    "MapUuidBytes20Uint8FlatBuffers",
    "MapUuidBytes20Uint8UuidFlatBuffers",
    "MapUuidBytes32FlatBuffers",
    "MapUuidCbor",
    "MapUuidFlatBuffers",
    "MapUuidJson",
    "MapUuidOid",
    "MapUuidPickle",
    "MapUuidString",
    "MapUuidStringFlatBuffers",
    "MapUuidStringOid",
    "MapUuidStringUuid",
    "MapUuidTimestampBytes32",
    "MapUuidTimestampCbor",
    "MapUuidTimestampFlatBuffers",
    "MapUuidTimestampUuid",
    "MapUuidTimestampUuidFlatBuffers",
    "MapUuidUuid",
    "MapUuidUuidCbor",
    "MapUuidUuidFlatBuffers",
    "MapUuidUuidSet",
    "MapUuidUuidStringFlatBuffers",
    "MapUuidUuidStringUuid",
    "MapUuidUuidUuid",
    "MapUuidUuidUuidStringUuid",
    "MapUuidUuidUuidUuid",
    "MapUuidUuidUuidUuidUuid",
    "Migration",
    "Msgpack",
    "MsgpackSerializer",
    "NestedTransaction",
    "NullValueConstraint",
    "PersistentMap",
    "Pickle",
    "PickleSerializer",
    "Progress",
    "Reader",
    "ReadonlyDatabase",
    "Schema",
    "SchemaMismatch",
    "Selection",
    "Snappy",
    "Table",
    "TableInfo",
    "Transaction",
    "TransactionClosed",
    "TransactionPoisoned",
    "TransactionStale",
    "TransactionStats",
    "Unchecked",
    "UniqueIndex",
    "UniqueIndexView",
    "WriterTimeout",
    "WrongThread",
    "Zlib",
    "Zstd",
    "__version__",
    "check_autobahn_flatbuffers_version_in_sync",
    "errors",
    "keys",
    "lmdb",
    "setup_flatbuffers_import",
    "table",
    "values",
]
