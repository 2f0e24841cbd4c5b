"""The tables of a database, inside a transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Optional, TypeVar, get_origin, get_type_hints

from .attach import Declaration, declaration, tables, undeclared
from .storage import Storage
from .table import Table
from .tableclass import calling_locals
from .transaction import Transaction
from .typeargs import annotated_names, nested_types

if TYPE_CHECKING:
    from typing_extensions import Self

    from .classic.pmap import PersistentMap

M = TypeVar("M", bound="PersistentMap[Any, Any]")


class _Attribute:
    """A declared table as an attribute: bound to the transaction when it is first asked for, and kept from then on.

    It stands in the class, since `Schema.__getattr__` runs only after a look-up has failed, which takes longer than it.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, tables: Any, owner: type[Any]) -> Any:
        name = self._name
        if tables is None:
            raise AttributeError(f"{owner.__name__}.{name} is a table: tables {_WHERE}")
        own: dict[str, Any] = tables.__dict__
        storages = own.get("_storages")
        if storages is None:
            raise AttributeError(name)  # upon which `Schema.__getattr__` says more
        table = own[name] = tables._table(name, *storages[name])
        return table


_WHERE = "are attributes of t in `with db.write() as t:`"


class Schema:
    """What a database holds: subclass it, and annotate an attribute for each table.

    ``db.read()`` and ``db.write()`` give an instance, whose attributes are the tables in one transaction::

        class Store(zlmdb.Schema):
            users: Users
            logins: zlmdb.Table[str, int]

        with db.write() as t:
            t.logins["ann"] = 1

    ``t["name"]`` is any table of the file, those that no attribute declares as plain data; iterating gives the names.
    Extra tables in a file are left alone. Programs written for zlmdb <= 26 subclass it for their own purposes.
    """

    _locals_seen: ClassVar[Optional[dict[str, Any]]] = None
    _txn: Transaction
    _storages: Mapping[str, tuple[type[Table[Any, Any]], Storage[Any, Any]]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._locals_seen = calling_locals()

    @classmethod
    def _in(cls, txn: Transaction, storages: Mapping[str, tuple[type[Table[Any, Any]], Storage[Any, Any]]]) -> Self:
        """The tables in *txn*. Not by ``__init__``, which belongs to the classic subclasses."""
        self = cls.__new__(cls)
        own = self.__dict__
        own["_txn"], own["_storages"] = txn, storages
        return self

    @property
    def txn(self) -> Transaction:
        """The transaction: ``t.txn.commit()``, ``t.txn.abort()``, ``t.txn.savepoint()``."""
        return self._txn

    def __enter__(self) -> Self:
        self._txn.raw  # noqa: B018 - raises when the transaction has ended
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._txn.__exit__(kind, error, trace)

    def __getitem__(self, name: str) -> Table[Any, Any]:
        """The table *name*: as declared, or with the values as plain data. Raises `KeyError` with the nearest name."""
        found = self._storages.get(name)
        if found is not None:
            return self._table(name, *found)
        storage = undeclared(self._txn.store, name)
        if storage is None:
            raise KeyError(f"no table {name!r} in the file; {_nearest(name, list(self))}")
        return self._table(name, Table, storage)

    def __iter__(self) -> Iterator[str]:
        """The names of all tables, declared ones first."""
        return iter(names(self._storages, self._txn))

    def _table(self, name: str, cls: type[Table[Any, Any]], storage: Storage[Any, Any]) -> Table[Any, Any]:
        table = self._txn.tables.get(name)
        if table is None:
            table = self._txn.tables[name] = cls.bound(self._txn, storage)
        return table

    if not TYPE_CHECKING:  # checkers know the annotations, and report a name that is none of them

        def __getattr__(self, name):
            storages = self.__dict__.get("_storages")
            if storages is None or name.startswith("__"):
                raise AttributeError(
                    f"{type(self).__name__!r} object has no attribute {name!r}"
                    + (f": tables {_WHERE}" if name in annotated_names(type(self)) else "")
                )
            error = AttributeError(f"{type(self).__name__} declares no table {name!r}; {_nearest(name, storages)}")
            error.name = name  # else Python 3.12 and later would add a suggestion of their own
            raise error

        def __setattr__(self, name, value):
            if name in self.__dict__.get("_storages", ()):
                raise AttributeError(
                    f"{name!r} is a table, which cannot be replaced: t.{name}[key] = value stores a record, "
                    f"t.{name}.clear() and t.{name}.update(...) replace all of them"
                )
            super().__setattr__(name, value)

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
            pmap.place(slot_index, compress or None, marshal=marshal, unmarshal=unmarshal, build=build, cast=cast)
            taken[slot_index] = pmap
            return pmap

        return decorate


def names(storages: Mapping[str, Any], txn: Transaction) -> list[str]:
    """The declared names, then those of the other tables of the file."""
    declared = {storage.label for _, storage in storages.values()}
    return [*storages, *(identity for identity in tables(txn.store) if identity not in declared)]


def declarations(schema: type[Schema]) -> dict[str, tuple[type[Table[Any, Any]], Declaration]]:
    """The tables that a schema class declares, by attribute.

    Raises `TypeError` for an annotation that is no table, and for two attributes that are one table of the file.
    """
    found: dict[str, tuple[type[Table[Any, Any]], Declaration]] = {}
    localns: dict[str, Any] = {}
    for base in reversed(schema.__mro__):
        localns.update(vars(base).get("_locals_seen") or {})
    localns.update(nested_types(schema))
    try:
        hints = get_type_hints(schema, localns=localns, include_extras=True) if schema is not Schema else {}
    except NameError as error:
        raise TypeError(
            f"{schema.__name__}: {error}, and an attribute is annotated with it: define or import it in the module, "
            f"the function or the body of the schema, not for type checkers only"
        ) from error
    for name, hint in hints.items():
        if name.startswith("_") or get_origin(hint) is ClassVar:
            continue
        cls: Any = get_origin(hint) or hint
        if not (isinstance(cls, type) and issubclass(cls, Table)):
            raise TypeError(
                f"{schema.__name__}.{name} is annotated with {hint!r}, which is no table: annotate it with "
                "a subclass of "
                f"zlmdb.Table, or with zlmdb.Table[KeyType, ValueType]"
            )
        if name == "txn":
            raise TypeError(f"{schema.__name__}.{name}: a table cannot be called {name!r}, rename it")
        if not isinstance(vars(schema).get(name), _Attribute):
            setattr(schema, name, _Attribute(name))  # a method for programs of zlmdb <= 26 makes way
        found[name] = cls, declaration(hint, name, localns)
    _refuse_twins(schema, found)
    return found


def _refuse_twins(schema: type[Schema], found: Mapping[str, tuple[type[Table[Any, Any]], Declaration]]) -> None:
    """Raise `TypeError` where two attributes are one table: a class derived from another one has its name and uuid."""
    first: dict[str, str] = {}
    for name, (_, declared) in found.items():
        other = first.setdefault(declared.identity, name)
        if other != name:
            raise TypeError(
                f"{schema.__name__}.{other} and {schema.__name__}.{name} are the same table of the file, "
                f"{declared.identity!r}: give one a name of its own, class {declared.title}(..., name={name!r}); a "
                f"class derived from a table class has its name and uuid"
            )


def _nearest(name: str, known: Any) -> str:
    import difflib  # late: for this message only

    close = difflib.get_close_matches(name, list(known), 1)
    return f"did you mean {close[0]!r}?" if close else f"there are {', '.join(map(repr, known)) or 'none'}"
