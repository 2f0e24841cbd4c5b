"""The public names that `zlmdb` imports on first use: the classic maps, formats, reports.

Type checkers see all of them, and report names that do not exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .late import on_first_use
from .shown import nearest

if TYPE_CHECKING:
    from . import _flatbuffers_vendor as _flatbuffers_vendor
    from . import flatbuffers as flatbuffers
    from .cache.cache import Cache as Cache
    from .cache.cache import CacheDetails as CacheDetails
    from .classic.maps import *  # noqa: F403
    from .classic.pmap import PersistentMap as PersistentMap
    from .classic.registered import TABLES_BY_UUID as TABLES_BY_UUID
    from .classic.registered import table as table
    from .feed.change import Change as Change
    from .feed.changes import Changes as Changes
    from .feed.policy import Feed as Feed
    from .operations.migrations import Migration as Migration
    from .operations.oldtables import OldTables as OldTables
    from .operations.progress import Progress as Progress
    from .operations.report import CheckReport as CheckReport
    from .operations.statistics import TableInfo as TableInfo
    from .query.explained import Plan as Plan
    from .query.pages import Page as Page
    from .queue import Job as Job
    from .queue import Lease as Lease
    from .queue import Queue as Queue
    from .schema.multi import ListTable as ListTable
    from .schema.multi import SetTable as SetTable
    from .schema.multivalues import ValueList as ValueList
    from .schema.multivalues import ValueSet as ValueSet
    from .store.transactionstats import TransactionStats as TransactionStats
    from .tables.foreignkey import ForeignKey as ForeignKey
    from .tables.index import Index as Index
    from .tables.index import UniqueIndex as UniqueIndex
    from .tables.indexview import IndexView as IndexView
    from .tables.indexview import UniqueIndexView as UniqueIndexView
    from .values import ArraySerializer as ArraySerializer
    from .values import CborSerializer as CborSerializer
    from .values import Compression as Compression
    from .values import DecompressionLimit as DecompressionLimit
    from .values import FlatBuffersSerializer as FlatBuffersSerializer
    from .values import JsonSerializer as JsonSerializer
    from .values import MsgpackSerializer as MsgpackSerializer
    from .values import PickleSerializer as PickleSerializer
    from .values.aliases import *  # noqa: F403
    from .values.was import Was as Was
    from .worker import Worker as Worker
else:
    _OPEN = "write zlmdb.open(path, Schema), with the class that declares the tables"
    _OPENED = (
        "DB", "Environment", "FileStorage", "MongoClient", "Redis", "Shelf", "SqliteDict", "Store", "TinyDB", "connect",
        "create", "create_database", "create_engine", "open_database", "sessionmaker",
    )  # fmt: skip
    _MODEL = "a model is a dataclass, and its table is declared: class Users(zlmdb.Table[int, User])"
    _TASKS = "there are zlmdb.Cache, zlmdb.Queue and zlmdb.Worker; see `Coming from another store` of the documentation"
    _OTHERS = {
        **dict.fromkeys(_OPENED, _OPEN),
        **dict.fromkeys(
            ("Base", "Column", "Document", "Entity", "Field", "Model", "Persistent", "declarative_base"), _MODEL
        ),
        **dict.fromkeys(
            ("Key", "PrimaryKey"),
            'the key has no field: class Users(zlmdb.Table[int, User]) has int keys; key="id" names one',
        ),
        **dict.fromkeys(
            ("Abort", "Rollback"), "any exception that leaves the block undoes it, and so does t.txn.abort()"
        ),
        **dict.fromkeys(("Query", "where"), "a query is a function of a record: t.table.where(lambda record: ...)"),
        **dict.fromkeys(("Deque", "FanoutCache", "Lock", "RLock", "Celery"), _TASKS),
        **dict.fromkeys(("Session", "WriteBatch", "atomic", "session", "transaction"), "write `with db.write() as t:`"),
        **dict.fromkeys(
            ("ManyToMany", "ManyToManyField"), "write ForeignKey[Tags]('tags', each=True) for a list of keys"
        ),
    }
    __all__ = ["__dir__", "__getattr__"]
    __getattr__, __dir__ = on_first_use(
        __package__,
        {
            "._flatbuffers_vendor": "",
            ".flatbuffers": "",  # which takes longer to import than all of zlmdb
            ".cache.cache": "Cache CacheDetails",
            ".classic.pmap": "PersistentMap",
            ".classic.registered": "TABLES_BY_UUID table",
            ".feed.change": "Change",
            ".feed.changes": "Changes",
            ".feed.policy": "Feed",
            ".operations.statistics": "TableInfo",
            ".operations.migrations": "Migration",
            ".operations.oldtables": "OldTables",
            ".operations.progress": "Progress",
            ".operations.report": "CheckReport",
            ".query.explained": "Plan",
            ".query.pages": "Page",
            ".schema.multi": "ListTable SetTable",
            ".schema.multivalues": "ValueList ValueSet",
            ".queue": "Job Lease Queue",
            ".values.aliases": "Array Cbor Checked Compressed FlatBuffers Json Msgpack Pickle Snappy Unchecked Zlib "
            "Zstd",
            ".values.array": "ArraySerializer",
            ".values.cbor": "CborSerializer",
            ".values.compression": "Compression DecompressionLimit",
            ".values.flatbuffers": "FlatBuffersSerializer",
            ".values.json": "JsonSerializer",
            ".values.msgpack": "MsgpackSerializer",
            ".values.pickle": "PickleSerializer",
            ".values.was": "Was",
            ".store.transactionstats": "TransactionStats",
            ".tables.foreignkey": "ForeignKey",
            ".tables.index": "Index UniqueIndex",
            ".tables.indexview": "IndexView UniqueIndexView",
            ".worker": "Worker",
        },
        prefixes={"Map": ".classic.maps"},
        advice=lambda name, known: (
            _OTHERS.get(name) or nearest(name, [one for one in known if one[0] != "_"], listed=False)
        ),
    )
