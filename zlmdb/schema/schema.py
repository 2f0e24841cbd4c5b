"""The tables of a database, inside a transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Optional, TypeVar, get_origin, overload

from .. import reserved
from ..missingattributes import has_no, lacking, public_names, tell, tell_more
from ..shown import nearest
from ..store.blocks import SchemaExit
from ..store.pool import IDLE, Pool, Unit, is_free, references
from ..store.transaction import Transaction
from ..store.transactionend import MOST_KEPT
from ..tables.advice import OF_OTHERS, OF_TRANSACTIONS, of_transaction
from ..tables.declares import Declares
from ..tables.table import Table
from ..tables.tableclass import calling_locals
from ..typeargs import annotated_names, is_mentioned, nested_types, own_annotations, type_hints
from .contents import tables
from .declaration import Declaration, declaration
from .runtimetables import MadeTable

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..classic.pmap import PersistentMap

M = TypeVar("M", bound="PersistentMap[Any, Any]")
S = TypeVar("S", bound="Schema")
T = TypeVar("T")


class _Attribute:
    """A declared table as an attribute: the first access binds it to the transaction, and later ones return it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, tables: Any, owner: type[Any]) -> Any:
        name = self._name
        if tables is None:
            raise AttributeError(f"{owner.__name__}.{name} is a table: tables {_WHERE}")
        try:
            unit = tables._unit
        except AttributeError:  # of a class that a program of zlmdb <= 26 has for itself
            raise lacking(tables, name) from None
        return bound(unit, name)


class _Several:
    """A table that consists of several, of the class *cls*: each access makes one of the parts."""

    def __init__(self, name: str, cls: Any, parts: Iterable[str]) -> None:
        self._name = name
        self._cls = cls
        self._parts = tuple(parts)

    def __get__(self, tables: Any, owner: type[Any]) -> Any:
        if tables is None:
            raise AttributeError(f"{owner.__name__}.{self._name} is a table: tables {_WHERE}")
        return _several(tables._unit, self._cls, self._parts)

    def __set__(self, tables: Any, value: Any) -> None:  # else the part of the same name would hide this
        raise AttributeError(f"{self._name!r} is a table, which cannot be replaced")


def _several(unit: Unit[Any], cls: Any, parts: Iterable[str]) -> Any:
    """The table of the class *cls* that consists of *parts*."""
    known = unit.txn._tables
    return cls._bound(*[known[part] if part in known else bound(unit, part) for part in parts])


def bound(unit: Unit[Any], name: str) -> Table[Any, Any]:
    """The declared table *name* in the transaction of *unit*."""
    txn = unit.txn
    if txn._raw is None:
        txn._refuse_use()
    table: Optional[Table[Any, Any]] = unit.tables.get(name)
    if table is not None and is_free(table):
        table._aim()
        txn._look_at_tables()
    else:
        cls: type[Table[Any, Any]]
        cls, storage = unit.storages[name]
        table = unit.tables[name] = cls._bound(txn, storage)
        unit.look_at_tables()
    # First: the end of the transaction looks there.
    txn._aimed.append((table, table._db, table._handles) if txn._write else (table, table._db))
    txn._tables[name] = unit.names[name] = table
    if len(txn._tables) > MOST_KEPT:
        txn._odd = True
    return table


_WHERE = "are attributes of t in `with db.write() as t:`"


class Schema:
    """The tables of a database: subclass it, and annotate an attribute for each table.

    ``db.read()`` and ``db.write()`` return an instance, whose attributes are the tables in one transaction::

        class Store(zlmdb.Schema):
            users: Users
            logins: zlmdb.Table[str, int]

        with db.write() as t:
            t.logins["ann"] = 1

    ``t["name"]`` is any table of the file; a table that no attribute declares is read as plain data. Iterating returns
    the names. Tables of the file that the schema does not declare are not changed. Programs written for zlmdb 26
    subclass `Schema` for their own purposes.
    """

    __slots__ = ("__dict__", "__weakref__", "_unit")

    _locals_seen: ClassVar[Optional[dict[str, Any]]] = None
    _declared: ClassVar[Any] = None
    _unit: Unit[Any]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        annotations = own_annotations(cls)
        cls._locals_seen = calling_locals(mentioned=annotations.values())
        for name, value in vars(cls).items():
            _check_attribute(cls, name, value, annotations)
        tell_more(cls, [name for name in annotations if not name.startswith("_")])  # until a database declares them

    @property
    def txn(self) -> Transaction:
        """The transaction: ``t.txn.commit()``, ``t.txn.abort()``, ``t.txn.savepoint()``."""
        return self._unit.txn

    def __enter__(self) -> Self:
        unit = self._unit
        txn = unit.txn
        if not txn._write:
            try:
                if txn._raw is None:
                    txn._refuse_use()
                # When this is called by hand, nobody has the method that a statement gets.
                txn._in_with = references(unit.exit) > IDLE
            except BaseException:  # the block is not entered
                if txn._raw is not None:
                    txn._clear()
                raise
        elif txn._raw is None:
            if txn._thread:
                txn._refuse_use()
            try:
                txn._begin()
                return self
            except BaseException:  # an interrupt may have come when it had begun
                txn._clear_begun()
                raise
        return self

    if TYPE_CHECKING:

        def __exit__(
            self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
        ) -> None: ...

    else:
        __exit__ = SchemaExit()

    @overload
    def __getitem__(self, name: str) -> Table[Any, Any]: ...
    @overload
    def __getitem__(self, name: MadeTable[T]) -> T: ...
    def __getitem__(self, name: Any) -> Any:
        """The table *name*: as declared or made, or with the values as plain data.

        Raises `KeyError` with the nearest name.
        """
        if isinstance(name, MadeTable):
            several: Any = name._several
            name = name.name
            if name not in self._unit.storages:
                raise KeyError(f"table {name!r} was made for another database: make it with the table() of this one")
            if several is not None:
                return _several(self._unit, several, several._names(name))
        unit = self._unit
        table: Optional[Table[Any, Any]] = unit.txn._tables.get(name)
        if table is None:
            if name not in unit.storages:
                return self._undeclared(name)
            table = bound(unit, name)
        return getattr(self, name, table) if table._part else table

    def _query_table(self, name: str) -> Any:
        """What is known of the values and keys of the declared table *name*, for queries; None if there is none."""
        cls, storage = (_storages_of(self) or {}).get(name, (None, None))
        if cls is None or cls._part or self._unit.txn.buffers or _reads_otherwise(cls):
            return None
        from ..tables.executor.execution import types_of  # late: few programs follow links

        return types_of(storage)

    def _undeclared(self, name: str, *, by_fields: bool = False) -> Table[Any, Any]:
        """The table *name* that the schema does not declare, from `undeclared.undeclared`."""
        from .undeclared import undeclared  # late: few programs use such tables

        unit = self._unit
        storage = undeclared(unit.txn._store, name, by_fields=by_fields)
        if storage is None:
            raise KeyError(f"no table {name!r} in the file; {nearest(name, list(self))}")
        table: Table[Any, Any] = Table._bound(unit.txn, storage)
        unit.txn._tables[name] = table
        unit.txn._mix()
        return table

    def __iter__(self) -> Iterator[str]:
        """The names of all tables, declared ones first."""
        return iter(names(self._unit.storages, self._unit.txn))

    if not TYPE_CHECKING:  # checkers know the annotations, and report a name that is none of them

        def __init__(self, *given, **named):
            if given or named:
                cls = type(self).__name__
                raise TypeError(f"{cls}() opens no database: write `with zlmdb.open(path, {cls}) as db:`")

        if not hasattr(AttributeError(), "obj"):  # before Python 3.10: the end of a block could not say more

            def __getattr__(self, name):
                raise lacking(self, name)

        def __setattr__(self, name, value):
            if name in (_storages_of(self) or ()):
                raise AttributeError(
                    f"{name!r} is a table, which cannot be replaced: t.{name}[key] = value stores a record, "
                    f"t.{name}.clear() and t.{name}.update(...) replace all of them"
                )
            unit = getattr(self, "_unit", None)  # classic schemas have none
            if unit is not None:
                close = nearest(name, unit.storages, listed=False)
                if close and not hasattr(type(self), name):
                    raise AttributeError(
                        f"{type(self).__name__} declares no table {name!r}, and what is assigned to t.{name} would not "
                        f"be stored; {close}"
                    )
                unit.txn._mix()
            super().__setattr__(name, value)

        def __dir__(self):
            return [name for name in super().__dir__() if not name.startswith("SLOT_DATA_")]  # as shells show them

        def __aenter__(self):
            raise TypeError(
                "a transaction has no `async with`: write `with db.write() as t:` without `await` in it, or `await "
                "db.arun(function)`"
            )

        __aexit__ = __aenter__

        def __await__(self):
            raise TypeError(
                "a transaction is not awaited: write `with db.read() as t:` or `with db.write() as t:` without "
                "`await`, or `await db.aread(function)` or `await db.arun(function)`"
            )

        def __reduce_ex__(self, protocol):
            if _storages_of(self) is None:  # a schema of zlmdb 26
                return super().__reduce_ex__(protocol)
            raise TypeError(
                f"{self!r} is neither copied nor pickled: begin another transaction, or pickle the database"
            )

        def __repr__(self):
            unit = getattr(self, "_unit", None)
            return object.__repr__(self) if unit is None else f"<{type(self).__name__} in {unit.txn!r}>"

    # -- for programs of zlmdb <= 26 ------------------------------------------------------------------------------

    SLOT_DATA_EMPTY, SLOT_DATA_METADATA, SLOT_DATA_TYPE, SLOT_DATA_SEQUENCE = 0, 1, 2, 3
    SLOT_DATA_TABLE, SLOT_DATA_INDEX, SLOT_DATA_REPLICATION, SLOT_DATA_MATERIALIZATION = 4, 5, 6, 7

    def slot(
        self,
        slot_index: int,
        marshal: Optional[Callable[[Any], Any]] = None,
        unmarshal: Optional[Callable[[Any], Any]] = None,
        build: Optional[Callable[[Any, Any], Any]] = None,
        cast: Optional[Callable[[Any], Any]] = None,
        compress: Any = False,
    ) -> Callable[[M], M]:
        """Give a map instance a slot of this schema: ``users = schema.slot(1)(zlmdb.MapOidJson())``."""
        taken: dict[int, Any] = self.__dict__.setdefault("_slots_taken", {})

        def decorate(pmap: M) -> M:
            if isinstance(pmap, type):
                raise TypeError(f"slot() decorates an instance of a map, not the class {pmap!r}: use @zlmdb.table")
            if slot_index in taken:
                raise ValueError(f"slot {slot_index} belongs to {taken[slot_index]!r} already: choose another number")
            pmap._configure(slot_index, compress or None, marshal=marshal, unmarshal=unmarshal, build=build, cast=cast)
            taken[slot_index] = pmap
            return pmap

        return decorate


def _of_schema(tables: Schema, name: str) -> str:
    """What to write for *name*, which *tables* do not have; empty where that is not known."""
    storages = _storages_of(tables)
    if storages is None or name.startswith("__"):
        return has_no(tables, name, f"tables {_WHERE}") if name in annotated_names(type(tables)) else ""
    if hasattr(Transaction, name) and not (storages and name in OF_TRANSACTIONS):
        advice = f"the transaction has it: t.txn.{name}"
    elif storages:
        known = [one for one in list(storages) if one.isidentifier()]  # and no part of a table of several values
        advice = of_transaction(name, known[0], Table) or nearest(name, known)
    elif type(tables) is Schema:  # the database is open without one
        return has_no(tables, name, f"without a schema, a table of the file is t[{name!r}]; sorted(t) lists them")
    else:
        advice = f"annotate it in the class, {name}: Table[KeyType, ValueType]"
    return f"{type(tables).__name__} declares no table {name!r}; {advice}"


tell(Schema, [*OF_TRANSACTIONS, *public_names(Transaction), *OF_OTHERS, *public_names(Table)], _of_schema)


def _reads_otherwise(cls: Any) -> bool:
    """Whether a look-up of a record may be anything, because the class of the table has methods of its own for it."""
    own = (cls.__getitem__, cls.get, cls.__contains__)
    return own != (Table.__getitem__, Table.get, Table.__contains__)


def unit_of(pool: Pool[S], txn: Transaction, schema: type[S], storages: Mapping[str, Any]) -> Unit[S]:
    """A new unit of *pool*: *txn*, and an object of *schema* for the tables of *storages*."""
    view = schema.__new__(schema)  # not by __init__, which belongs to the classic subclasses
    unit = Unit(pool, txn, view, storages)
    _SET_UNIT(view, unit)
    return unit


_SET_UNIT: Any = vars(Schema)["_unit"].__set__


def _storages_of(tables: Schema) -> Optional[Mapping[str, Any]]:
    """The declared tables; None if *tables* was not created by a database."""
    try:
        unit: Unit[Any] = _GET_UNIT(tables)
    except AttributeError:
        return None
    return unit.storages


_GET_UNIT: Any = vars(Schema)["_unit"].__get__


def names(storages: Mapping[str, Any], txn: Transaction) -> list[str]:
    """The declared names, then those of the other tables of the file."""
    listed = list(storages.items())  # another thread may make tables meanwhile
    declared = {storage.name for _, (_, storage) in listed}
    shown = [name for name, (cls, _) in listed if not cls._part or name.isidentifier()]
    return [*shown, *(table for table in tables(txn._store) if table not in declared)]


def declarations(schema: type[Schema]) -> dict[str, tuple[type[Table[Any, Any]], Declaration]]:
    """The tables that a schema class declares, by attribute: computed once, and the same for every file.

    Raises `TypeError` for an annotation that is not a table, and for two attributes that are the same table of the
    file.
    """
    found: Optional[dict[str, Any]] = vars(schema).get("_declared")  # not that of a parent
    if found is None:
        found = _declarations(schema)
        type.__setattr__(schema, "_declared", found)
    return found


def _check_attribute(schema: type[Schema], name: str, value: Any, annotations: Mapping[str, Any]) -> None:
    """Raise `TypeError`, with the line to write, for an attribute to which the class assigns a table."""
    cls: Any = get_origin(value) or value
    if isinstance(value, Declares):
        raise TypeError(
            f"{schema.__name__}.{name} = {value!r} declares no index: an index belongs to a table class, "
            f"class ...(zlmdb.Table[KeyType, ValueType]): {name} = {value!r}"
        )
    if not is_table(cls):
        return
    shown: str = getattr(value, "__name__", "") if cls is value else repr(value).replace("zlmdb.tables.table.", "")
    if name not in annotations:
        inside = getattr(value, "__qualname__", "") == f"{schema.__qualname__}.{name}"
        if inside or any(is_mentioned(name, value, one) for one in annotations.values()):
            return  # a table class or an alias for the annotations of this body
    raise TypeError(
        f"{schema.__name__}.{name} = {shown} does not declare a table: annotate the attribute, and give it no value, "
        f"{name}: {shown}"
    )


def _declarations(schema: type[Schema]) -> dict[str, tuple[type[Table[Any, Any]], Declaration]]:
    found: dict[str, tuple[type[Table[Any, Any]], Declaration]] = {}
    localns: dict[str, Any] = {}
    for base in reversed(schema.__mro__):
        localns.update(vars(base).get("_locals_seen") or {})
    localns.update(nested_types(schema))
    try:
        hints = type_hints(schema, localns) if schema is not Schema else {}
    except NameError as error:
        raise TypeError(
            f"{schema.__name__}: {error}, and an attribute is annotated with it: define or import it in the module, "
            f"the function or the body of the schema, not for type checkers only"
        ) from error
    for name, hint in hints.items():
        cls: Any = get_origin(hint) or hint
        if cls is ClassVar or (name.startswith("_") and not is_table(cls)):
            continue
        _check_annotation(schema, name, hint, cls)
        if not issubclass(cls, Table):
            parts: dict[str, tuple[type[Table[Any, Any]], Declaration]] = cls._parts(hint, name, localns)
            setattr(schema, name, _Several(name, cls, parts))
            found.update(parts)
            continue
        if not isinstance(vars(schema).get(name), _Attribute):
            setattr(schema, name, _Attribute(name))  # a method for programs of zlmdb <= 26 makes way
        found[name] = cls, declaration(hint, name, localns)
    _refuse_twins(schema, found)
    for _, one in found.values():
        for index in one._declared.values():
            if index._links:
                from .links import resolve  # late: few schemas have links

                resolve(schema.__name__, found)
                return found
    return found


_INSTEAD = {
    "dict": "; a dict is a Table with the same types",
    "set": ", such as zlmdb.Table[str, bool]",
    "list": ", such as zlmdb.Table[int, str], whose add() counts",
    "Cache": "; a cache is a file of its own, zlmdb.Cache(path)",
}
"""What to write in place of some classes that are no tables."""


def _check_annotation(schema: type[Schema], name: str, hint: Any, cls: Any) -> None:
    """Raise `TypeError` unless *hint*, of the class *cls*, is a table, and *name* a name for one."""
    if not is_table(cls):
        advice = _INSTEAD.get(getattr(cls, "__name__", ""), "")
        raise TypeError(
            f"{schema.__name__}.{name} is annotated with {hint!r}, which is not a table: annotate it with a "
            f"subclass of zlmdb.Table, or with zlmdb.Table[KeyType, ValueType]{advice}"
        )
    if name.startswith("_"):
        raise TypeError(
            f"{schema.__name__}.{name} is annotated with a table, and names of tables do not begin with an "
            f"underscore: rename it, {name.lstrip('_')}: {cls.__name__}"
        )
    why = reserved.refused(name, reserved.TABLES)
    if why:
        raise TypeError(f"{schema.__name__}.{name}: a table cannot be called {name!r}, {why}: rename it")


def is_table(cls: Any) -> bool:
    """Whether *cls* is a table class, or one of `schema.multi`, which need not be imported for that."""
    if not isinstance(cls, type):
        return False
    known: type[Any] = cls
    return issubclass(known, Table) or hasattr(known, "_parts")


def _refuse_twins(schema: type[Schema], found: Mapping[str, tuple[type[Table[Any, Any]], Declaration]]) -> None:
    """Raise `TypeError` if two attributes are one table: a subclass of a table class has its name and uuid."""
    first: dict[str, str] = {}
    for name, (_, declared) in found.items():
        other = first.setdefault(declared.name, name)
        if other != name:
            raise TypeError(
                f"{schema.__name__}.{other} and {schema.__name__}.{name} are the same table of the file, "
                f"{declared.name!r}: give one a name of its own, class {declared.class_name}(..., name={name!r}); a "
                f"class derived from a table class has its name and uuid"
            )
