"""The tables of a database: those of its schema, those made at run time, and those of classes of zlmdb 26."""

from __future__ import annotations

import threading
from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Optional, TypeVar, get_origin, overload

from .. import errors
from ..missingattributes import tell_more
from ..schema.attach import attach
from ..schema.declaration import Declaration, declaration
from ..schema.runtimetables import Made, MadeTable
from ..schema.schema import declarations, is_table
from ..shown import NotGiven
from ..store.pool import Pool
from ..store.slots import FIRST_SLOT
from ..tables.storage import Storage
from ..tables.table import Table
from .advice import tables_of_file
from .state import DatabaseState

if TYPE_CHECKING:
    from ..classic.pmap import PersistentMap
    from ..schema.multi import Several

P = TypeVar("P", bound="PersistentMap[Any, Any]")
T = TypeVar("T", bound=Table[Any, Any])
M = TypeVar("M", bound="Several[Any, Any]")
K = TypeVar("K")
V = TypeVar("V")
_MISSING: Any = NotGiven()
_declaration_of: Callable[[tuple[Any, Declaration]], Declaration] = itemgetter(1)


def _parts(name: str, key: Any, value: Any) -> tuple[Any, dict[str, tuple[Any, Declaration]]]:
    """The tables that `Attaching.table` is to make, by name, and the class of the one that consists of them, if any."""
    table: Any = Table
    declared = key if value is _MISSING else table[key, value]
    cls: Any = get_origin(declared) or declared
    if not name or not is_table(cls):
        raise TypeError(
            f"table({name!r}, {key!r}): give a name and the types of keys and values, or a class of zlmdb.Table"
        )
    if hasattr(cls, "_parts"):
        return cls, cls._parts(declared, name)
    return None, {name: (cls, declaration(declared, name))}


class Attaching(DatabaseState):
    """The part of `Database` that attaches tables to the open file."""

    # -- of the schema ------------------------------------------------------------------------------------------------

    def _attach_tables(self, *, create: bool, migrating: bool, rename: bool = False) -> None:
        """Compare schema and file, and create what is missing. *migrating*: tables that differ wait for migrations.

        *rename*: tables get their new names, also if nothing is created.
        """
        declared = declarations(self._schema)
        if self._made:
            declared = {**declared, **{name: (one.cls, one.declared) for name, one in self._made.items()}}
        store = self._store
        found = attach(
            self._open_store if store is None else store,
            list(map(_declaration_of, declared.values())),
            create=create,
            timeout=self._timeout,
            drop_indexes=self._opening.drop_indexes,
            migrating=migrating,
            build=self._opening.build_indexes,
            rename=rename,
            whole=True,
        )
        self._storages = {name: (cls, storage) for (name, (cls, _)), storage in zip(declared.items(), found)}
        if not declared.keys() <= vars(type(self)).keys():  # else that has been done
            tell_more(type(self), declared)
        if not declared:
            tell_more(type(self), tables_of_file(self))
        self.__dict__.pop("auto", None)
        for _, one in declared.values():
            if one.linked:
                from ..schema.links import wire  # late: few schemas have links

                wire(declared, self._storages)
                break

    def _attach_again(self, *, migrating: bool = False) -> None:
        """Use the new shape of tables in all transactions from now on; *migrating*: some may not have it yet."""
        self._attach_tables(create=not migrating, migrating=migrating)
        self._readers, self._writers = Pool(), Pool()

    # -- made at run time ---------------------------------------------------------------------------------------------

    @overload
    def table(self, name: str, cls: type[T], /) -> MadeTable[T]: ...
    @overload
    def table(self, name: str, cls: type[M], /) -> MadeTable[M]: ...
    @overload
    def table(self, name: str, key: type[K], value: type[V], /) -> MadeTable[Table[K, V]]: ...
    @overload
    def table(self, name: str, key: Any, value: Any, /) -> MadeTable[Table[Any, Any]]: ...
    def table(self, name: str, key: Any = _MISSING, value: Any = _MISSING, /) -> MadeTable[Any]:
        """The table *name*, which no schema has to declare: created if the file lacks it, with its types compared.

        Give the types of keys and values, ``db.table("counts", str, int)``, or a table class, for its indexes:
        ``db.table("users", Users)``, ``db.table("tags", SetTable[str, str])``. What is returned is the key to the table
        in a transaction: ``t[counts]["a"] = 1``.
        The next call with the same arguments costs a look-up. Creating a table takes a transaction of its own, so it
        cannot be done inside a write transaction of this thread.

        Raises TypeError for types that cannot be stored, `SchemaMismatch` where the file or an earlier call has others,
        ValueError for a name that the schema has, `NestedTransaction`.
        """
        types = (key, value)
        known = self._made.get(name)
        if known is not None and known.made._types == types:
            return known.made
        return self._make_table(name, key, value, known)

    def _make_table(self, name: str, key: Any, value: Any, known: Optional[Made]) -> MadeTable[Any]:
        if key is _MISSING:
            if isinstance(name, type):
                raise TypeError(f"table() takes a name, and then a class: write db.table('...', {name.__name__})")
            raise TypeError(
                f"table({name!r}) needs a table class, or types of keys and values, as db.table({name!r}, str, int); "
                f"one that is there already is t[{name!r}] in `with db.read() as t:`"
            )
        several, parts = _parts(name, key, value)
        if known is not None:
            if all([self._is_made(part, one) for part, (_, one) in parts.items()]):
                return known.made
            raise errors.SchemaMismatch(
                f"table {name!r} was made with the types {known.made._types!r} before: use these, or another name",
                table=name,
            )
        taken = declarations(self._schema)
        names = {*taken, *(one.name for _, one in taken.values())}
        if not names.isdisjoint([*parts, *(one.name for _, one in parts.values())]):
            raise ValueError(f"table {name!r} is declared by {self._schema.__name__}: use t.{name}, or another name")
        opening = self._opening
        declared = [one for _, one in parts.values()]
        try:
            storages = attach(self._open_store, declared, create=opening.create, timeout=self._timeout)
        except errors.NestedTransaction as error:
            raise errors.NestedTransaction(
                f"table {name!r} cannot be made inside a write transaction of this thread: call "
                f"db.table({name!r}, ...) before the block, and use what it returns inside, as t[table]"
            ) from error
        # Another thread may have made it meanwhile: both give the same object. That of *name*, by which others find it,
        # comes last; each comes after what it is used with, also where an interrupt comes in between.
        made: MadeTable[Any] = MadeTable(name, (key, value), several)
        for (part, (part_cls, one)), storage in reversed(list(zip(parts.items(), storages))):
            cls, _ = self._storages.setdefault(part, (part_cls, storage))
            self._made.setdefault(part, Made(made, cls, one))
        tell_more(type(self), parts)
        return self._made[name].made

    def _is_made(self, name: str, declared: Declaration) -> bool:
        known = self._made.get(name)
        return known is not None and known.declared.fingerprint == declared.fingerprint

    # -- of other programs, and of zlmdb 26 ---------------------------------------------------------------------------

    def adopt(self) -> int:
        """Make a file of another program, open with ``layout="raw"``, one of zlmdb; returns the number of records.

        The sub-databases become tables: those that the schema declares with its types, others with keys and values of
        bytes. The records are stored again under the names that zlmdb uses, in one transaction, after each was read by
        its type. The other program cannot find them any more. The database stays open, as one of the tables layout;
        open it with other schemas, for example with indexes, from then on.

        Raises `DecodeError` for the first record that does not fit, `SchemaMismatch` for a sub-database that cannot be
        a table, `ConstraintError` for records outside of sub-databases, `WriterTimeout`,
        ValueError for a file of zlmdb.
        """
        from ..operations.adoption import adopt

        store = self._open_store
        if store.layout != "raw":
            raise ValueError(f"{self._opening.path!r} is a file of zlmdb already: adopt() is for layout='raw'")
        if store.users > 1:
            raise errors.DatabaseInUse(
                f"{self._opening.path!r} is open more than once in this process: close the others first"
            )
        declared = {one.name: (one, self._storages[name][1]) for name, (_, one) in declarations(self._schema).items()}
        count = adopt(store, declared, self._timeout)
        self._opening = self._opening._replace(layout="tables", create=True)
        self._attach_again()
        return count

    def attach_table(self, klass: type[P]) -> P:
        """The map of *klass*, a class decorated by `table`; it gets a slot if it has none.

        Must not be called while this thread has an open transaction. Raises `SchemaMismatch` if the table in the file
        has other types.
        """
        return self._attach(klass, record=True)

    def _attach(self, klass: type[P], *, record: bool) -> P:
        """As `attach_table`; without *record* only in a slot that the file has, and without storing the types there."""
        from ..classic.pmap import PersistentMap  # late, as below, what not every program uses

        given: Any = klass
        if not (isinstance(given, type) and issubclass(given, PersistentMap)):
            types = given.__name__ if isinstance(given, type) and issubclass(given, Table) else "KeyType, ValueType"
            raise TypeError(
                f"cannot attach {klass!r}: a subclass of zlmdb.PersistentMap is required; a table made at run time is "
                f"db.table(name, {types})"
            )
        self._refuse_in_transaction(klass)
        # A constructor of the user's own has a say in the codecs, and the number is in the catalogue.
        storage = self._classic_storage(klass._in_slot(FIRST_SLOT), record=record)
        if storage.number == 0:
            raise errors.ReadonlyDatabase(
                f"table {storage.name} of {klass.__name__} is not in {self._opening.path!r}, which is open read-only: "
                "attach it writable first"
            )
        pmap = klass._in_slot(storage.number)
        pmap._adopt(self._open_store, storage)
        self._maps.add(pmap)
        return pmap

    def _classic_storage(self, pmap: PersistentMap[Any, Any], *, record: bool = True) -> Storage[Any, Any]:
        [storage] = attach(self._open_store, [pmap._declaration()], create=record, timeout=self._timeout, maps=True)
        return storage

    def _refuse_in_transaction(self, klass: type) -> None:
        me = threading.get_ident()
        if any(txn.active and txn._thread == me for txn in self._open_store.live.alive()):
            raise errors.NestedTransaction(
                f"{klass.__name__} cannot be attached inside a transaction of this thread: attach tables before you "
                "begin one"
            )
