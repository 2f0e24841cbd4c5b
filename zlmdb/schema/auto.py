"""Tables without a block: each operation is a transaction of its own. `Database.auto` returns them.

Reading one record takes about as long as beginning a transaction of LMDB and ending it, so the fast path has nothing
else: no schema object, no bound table, no statement to leave. What these would find out (the handle, and whether the
file still has the shape that the class declares) is learnt from a read by the general form, and holds as long as the
store has opened no handles and nobody but this store has written; see the eras of `Store`. Everything else, and
whatever fails, is done by the general form: the same operation of a bound table, in a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from operator import attrgetter, getitem, itemgetter
from threading import get_ident
from typing import TYPE_CHECKING, Any, NoReturn, Optional

from ..codegen import Recipe
from ..engines import Transaction as EngineTransaction
from ..handlers import let_through
from ..shown import nearest
from ..store.store import Store
from ..tables.advice import OF_OTHERS
from ..tables.compiled.boundclass import bound_class
from ..tables.indexview import UniqueIndexView
from ..tables.storage import Storage
from ..tables.table import Table
from .autowrites import RUN_AGAIN, Known, OutdatedError, Single, compiled, is_plain
from .runtimetables import MadeTable

if TYPE_CHECKING:
    from ..database.database import Database

_ALWAYS = float("inf")

# The common part of the functions below: the bytes of *key*, or None.
_FETCHING = """\
        single = take()
        try:
            single._since = always
{enter}            if store.sequence != known.sequence:
                raise outdated
            raw = single._raw = store.env.begin()
            try:
                data = raw.get({encode}, None, known.handle)
                if raw.id() != known.snapshot:
                    compare(raw)
            finally:
                raw.abort()
                single._raw = None
        finally:
{leave}            single._since = 0.0
            give(single)
"""

# Where the map may move. What has entered the gate is odd, so that the end after an interrupt leaves it.
_ENTER = """\
            single._thread = thread()
            store._gate.admit(single)
"""
_LEAVE = """\
            gate = single._odd
            if gate is not False:
                gate.leave(single)
                single._odd = False
"""

_READING = """\
def __getitem__(self, key):
    try:
{fetching}\
        if data is not None:
            return load(data)
    except Exception as error:
        let_through(error)
    return general___getitem__(self, key)

def get(self, key, default=None, /):
    try:
{fetching}\
        if data is not None:
            return load(data)
    except Exception as error:
        let_through(error)
        return general_get(self, key, default)
    encode_key(key)
    return default

def __contains__(self, key):
    try:
{fetching}\
    except Exception as error:
        let_through(error)
        return general___contains__(self, key)
    if data is None:
        encode_key(key)
    return data is not None
"""
_READS = Recipe("single reads", raw=EngineTransaction, single=Single, known=Known)


class AutoTables:
    """The tables of a database, by name: attributes, or items. Each operation is a transaction of its own."""

    _db: Database[Any]
    _idle: list[Single]
    _tables: dict[str, AutoTable]

    def __init__(self, db: Database[Any]) -> None:
        self.__dict__.update(_db=db, _idle=[], _tables={})

    def __getattr__(self, name: str) -> AutoTable:
        db: Database[Any] = self.__dict__["_db"]
        if name not in db._storages:
            if name == "txn":
                raise AttributeError("db.auto has no transaction: each operation has its own, and commits it")
            if not db._storages:
                raise AttributeError(
                    f"db.auto has the tables that a schema declares, and there are none: write `with db.read() as t:`, "
                    f"and t[{name!r}] for a table of the file"
                )
            raise AttributeError(f"the schema declares no table {name!r}; {nearest(name, db._storages)}")
        return self.__dict__.setdefault(name, self._table(name))

    def __getitem__(self, name: Any) -> AutoTable:
        if isinstance(name, MadeTable):
            name = name.name
        if name not in self._db._storages:
            raise KeyError(f"the schema declares no table {name!r}; {nearest(name, self._db._storages)}")
        return self._table(name)

    def _table(self, name: str) -> AutoTable:
        """The table *name*. One that was made at run time may have the name of an attribute."""
        db, known = self._db, self._tables
        if name in known:
            return known[name]
        if db._storages[name][0]._part:
            raise AttributeError(
                f"db.auto has no sets and lists of values: write `with db.write() as t:`, and t.{name}"
            )
        return known.setdefault(name, _made(db, name, self._idle))

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, (cls, _) in list(self._db._storages.items()) if not cls._part])

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self})  # as shells complete them

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{name!r} cannot be set: db.auto.{name}[key] = value stores a record")

    def __reduce__(self) -> Any:
        return getattr, (self._db, "auto")

    def _forget(self) -> None:
        for table in list(self._tables.values()):
            table._forget()

    def __enter__(self) -> NoReturn:
        raise TypeError("db.auto is no block, each operation has its own: write `with db.write() as t:` for a block")

    def __exit__(self, *error: object) -> None: ...

    def __repr__(self) -> str:
        return f"<tables without a block: {', '.join(self)}>"


class AutoTable:
    """A table without a block: operations of `Table` on single records, each in a transaction of its own."""

    _plain = False  # a generated function stores records
    _gated = False  # generated functions go through the gate of the store

    __slots__ = (
        "_db", "_idle", "_known", "_name", "_never_waits", "_of", "_storage", "_store",
    )  # fmt: skip

    def __init__(self, db: Database[Any], name: str, idle: list[Single], known: Known) -> None:
        self._db = db
        self._name = name
        self._of: Callable[[Any], Any] = (attrgetter if name in vars(db._schema) else itemgetter)(name)
        self._idle = idle
        self._store = db._open_store
        self._never_waits = self._store.engine.options.durability == "none"  # for a disk, with which commits are shared
        self._storage = db._storages[name][1]
        self._known = known

    def __reduce__(self) -> Any:
        return getitem, (self._db.auto, self._name)

    def _read(self, view: Optional[str], method: str, *args: Any) -> Any:
        """The result of a *method* of the table, or of the *view* of an index, in a block."""
        with self._db.read() as tables:
            table = self._of(tables)
            result = getattr(table if view is None else getattr(table, view), method)(*args)
            self._learn(table)
        return result

    def __setitem__(self, key: Any, value: Any) -> None:
        # As `_write`, with less around it, since this is called most.
        db = self._db
        if self._never_waits or db._writes_alone():
            try:
                with db.write() as tables:
                    table = self._of(tables)
                    table[key] = value
                    if self._plain:
                        self._learn(table)
                    return
            except RUN_AGAIN:
                pass
        db.run(partial(self._apply, "__setitem__", (key, value), {}))

    def _share(self, key: Any, value: Any) -> None:
        """As `__setitem__`, where others write, too, whose commit may store this."""
        db = self._db
        db._group_commit().run(db, partial(self._apply, "__setitem__", (key, value), {}), db._timeout)

    def _write(self, method: str, *args: Any, **more: Any) -> Any:
        """The result of a *method* of the table, stored."""
        db = self._db
        if self._never_waits or db._writes_alone():  # then as `Database.run` does, with less around it
            try:
                with db.write() as tables:
                    return getattr(self._of(tables), method)(*args, **more)
            except RUN_AGAIN:
                pass  # nothing is stored, and `run` does what the engine asks for
        return db.run(partial(self._apply, method, args, more))

    def _apply(self, method: str, args: Any, more: Any, tables: Any) -> Any:
        return getattr(self._of(tables), method)(*args, **more)

    def _learn(self, table: Table[Any, Any]) -> None:
        """Remember, for the fast path, what holds in the transaction of the bound *table* and may hold in others."""
        store, txn = self._store, table._txn
        same = self._db._storages[self._name][1] is self._storage and txn._store is store
        gated = (store.gate is not None) == self._gated and not store.provisional
        if same and gated and table._steady and table._found.unreadable is None:
            known = self._known
            known.sequence = -1  # another thread is not to take some of this for all
            known.handle, known.era = table._db, table._era if table._checked else None
            known.snapshot = None if txn._write else txn.id()  # what is not stored yet may never be
            known.writes = table._generated
            if txn._write and (txn._turn is not None or txn._era is None or txn._era != known.era):
                return
            known.sequence = txn._sequence
            if not self._idle:
                self._idle.append(Single(store))

    def _forget(self) -> None:
        """Know nothing any more: the database is closed, and the general form says so."""
        self._known.sequence = -1

    # These may run twice, so what they are given is fetched first.

    def get_many(self, keys: Iterable[Any], /) -> list[Any]:
        """The values of *keys*, all of one snapshot; None for a key without a record."""
        with self._db.read() as tables:
            return list(self._of(tables).get_many(keys))

    def put_many(self, items: Iterable[tuple[Any, Any]], /, *, append: bool = False) -> int:
        """As `Table.put_many`, all in one transaction."""
        return self._write("put_many", items if isinstance(items, Mapping) else list(items), append=append)

    def update(self, *other: Any, **more: Any) -> None:
        """As of a dict, all in one transaction."""
        self._write("update", *[[*one.items()] if hasattr(one, "items") else [*one] for one in other], **more)

    def __iter__(self) -> NoReturn:
        raise TypeError(f"an iteration takes a block: `with db.read() as t:`, and then t.{self._name}")

    def __getattr__(self, name: str) -> Any:
        if any(index.name == name for index in self._storage.indexes):
            return AutoView(self, name)
        advice = None if hasattr(Table, name) else _OF_OTHERS.get(name) or OF_OTHERS.get(name)
        if advice is not None:
            raise AttributeError(
                f"db.auto.{self._name} has no {name!r}: {advice}; what is not about single records takes a block, "
                f"`with db.read() as t:`, or db.write(), and t.{self._name}"
            )
        raise AttributeError(
            f"db.auto.{self._name} has no {name!r}, only what reads or writes single records: write "
            f"`with db.read() as t:`, or db.write(), and use t.{self._name}.{name}"
        )

    def __repr__(self) -> str:
        return f"<table {self._name!r} without a block>"


_OF_OTHERS = {
    **dict.fromkeys(("commit", "flush", "sync"), "a write is stored when it returns"),
    "close": "db.close() closes the database",
}


class AutoView:
    """An index of a table without a block."""

    __slots__ = ("_name", "_table")

    __iter__ = None

    def __init__(self, table: AutoTable, name: str) -> None:
        self._table = table
        self._name = name

    def __repr__(self) -> str:
        return f"<index '{self._table._name}.{self._name}' without a block>"

    def __reduce__(self) -> Any:
        return getattr, (self._table, self._name)

    def __getitem__(self, key: Any) -> Any:
        """The record with this key of a unique index. Raises KeyError if there is none."""
        table, name = self._table, self._name
        if not any(index.unique for index in table._storage.indexes if index.name == name):
            raise TypeError(
                f"the index {name} is not unique, and a selection takes a block: `with db.read() as t:`, and then "
                f"t.{table._name}.{name}[key]"
            )
        return table._read(name, "__getitem__", key)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"db.auto.{self._table._name}.{self._name} has no {name!r}, only what reads single records: write "
            f"`with db.read() as t:`, and use t.{self._table._name}.{self._name}.{name}"
        )


def _reading(method: str) -> Any:
    def read(self: AutoTable, *args: Any) -> Any:
        return self._read(None, method, *args)

    return read


def _viewing(method: str) -> Any:
    def read(self: AutoView, *args: Any) -> Any:
        return self._table._read(self._name, method, *args)

    return read


def _writing(method: str) -> Any:
    def write(self: AutoTable, *args: Any, **more: Any) -> Any:
        return self._write(method, *args, **more)

    return write


READS = ("__getitem__", "get", "__contains__", "__len__", "__bool__", "first", "last", "count")
"""The operations of a table that read, each in one snapshot."""

WRITES = (
    "__setitem__", "__delitem__", "add", "put_new", "replace", "change", "increment", "pop", "popitem", "setdefault",
    "clear", "truncate",
)  # fmt: skip
"""Those that write, each in one transaction."""

VIEW_READS = ("get", "key", "__contains__")
"""Those of an index. `__getitem__` of an index that is not unique returns a selection, which takes a block."""


def _made(db: Database[Any], name: str, idle: list[Single]) -> AutoTable:
    cls, storage = db._storages[name]
    kind = bound_class(cls, Table, storage)
    store = db._open_store
    known = Known()
    gated = store.engine.moves
    methods: dict[str, Any] = {"_gated": True} if gated else {}
    if kind._point_reads and kind.__contains__ is Table.__contains__:
        methods.update(_compiled(storage, store, idle, known, gated))
    if is_plain(cls, storage, store):
        methods["__setitem__"] = compiled(storage, store, AutoTable.__setitem__, AutoTable, known, gated)
        methods["__setitem__"].__doc__ = AutoTable.__setitem__.__doc__
        methods["_plain"] = True
    made: type[AutoTable] = AutoTable if not methods else type("AutoTable", (AutoTable,), {"__slots__": (), **methods})
    return made(db, name, idle, known)


def _compiled(
    storage: Storage[Any, Any], store: Store, idle: list[Single], known: Known, gated: bool
) -> Mapping[str, Any]:  # fmt: skip
    encode, names = storage.key.lookup_source(storage.prefix)
    methods = ("__getitem__", "get", "__contains__")
    names = {
        **names,
        **{f"general_{name}": getattr(AutoTable, name) for name in methods},
        "encode_key": storage.encode_key,
        "load": storage.value.bytes_decode,
        "let_through": let_through,
        "take": idle.pop,
        "give": idle.append,
        "store": store,
        "known": known,
        "compare": partial(known.compare, store),
        "always": _ALWAYS,
        "thread": get_ident,
        "outdated": OutdatedError,
    }
    subject = f"{storage.key.name} at {storage.prefix.hex() or 'no prefix'}"
    fetching = _FETCHING.format(encode=encode, enter=_ENTER if gated else "", leave=_LEAVE if gated else "")
    source = _READING.format(fetching=fetching)
    made = _READS.functions(subject, source, names, self=AutoTable)
    for name in methods:
        made[name].__doc__ = getattr(AutoTable, name).__doc__
    return {name: made[name] for name in methods}


def _fill(cls: Any, methods: Iterable[str], make: Callable[[str], Any], of: Any) -> None:
    for name in methods:
        method = make(name)
        method.__name__, method.__doc__ = name, getattr(of, name).__doc__
        setattr(cls, name, method)


_fill(AutoTable, READS, _reading, Table)
_fill(AutoTable, WRITES[1:], _writing, Table)
AutoTable.__setitem__.__doc__ = Table.__setitem__.__doc__
_fill(AutoView, VIEW_READS, _viewing, UniqueIndexView)
