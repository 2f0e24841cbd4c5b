"""Steps from one version of a schema to the next, each applied once and recorded in the file.

A step is a function of the tables in a write transaction. It is committed together with the record that it was applied,
or not at all. The version of a file is that of the last applied step, 0 before the first. `oldtables` defines what a
step can do with tables of another shape than the schema's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from typing import Any, Optional, Union

from .. import errors
from ..engines import Transaction
from ..namedtuples import NamedTuple
from ..schema.contents import open_all
from ..schema.declaration import Declaration
from ..schema.schema import declarations as tables_of
from ..store.catalogue import catalogue_of
from ..store.slots import Slot
from ..store.store import Store
from ..tables.table import Table
from .oldtables import OldTables, Step, settle, settle_links
from .progress import Progress, Told, silent


@dataclass(frozen=True)
class Migration:
    """A step to the *version* of the schema, an int above 0: *run* is called with the tables in a write transaction.

    A *run* with two parameters also gets the tables as they were before the step, as plain data: `OldTables`. A schema
    lists its steps, in order, as ``migrations``::

        def lower_addresses(t: Store) -> None:
            for key, user in t.users.items():
                t.users[key] = replace(user, email=user.email.lower())

        class Store(zlmdb.Schema):
            users: Users
            migrations = (zlmdb.Migration(1, "addresses in lower case", lower_addresses),)
    """

    version: int
    name: str
    run: Union[Callable[[Any], object], Callable[[Any, OldTables], object]]


class Applied(NamedTuple):
    """A step that was applied, or would be in a dry run; *puts* and *dels* count records and entries."""

    version: int
    name: str
    puts: int
    dels: int


class _Undo(Exception):
    """Ends a dry run."""


def declared(schema: type[Any]) -> Sequence[Migration]:
    """The steps that *schema* lists. Raises ValueError unless their versions ascend."""
    steps: Sequence[Any] = getattr(schema, "migrations", ())
    last = 0
    if isinstance(steps, Migration):
        raise TypeError(f"{schema.__name__}.migrations is one migration: expected a tuple, (zlmdb.Migration(...),)")
    for step in steps:
        if not isinstance(step, Migration):
            raise TypeError(
                f"{schema.__name__}.migrations has {step!r}: expected zlmdb.Migration(version, name, function)"
            )
        if type(step.version) is not int or step.version <= last:
            raise ValueError(
                f"{schema.__name__}.migrations: version {step.version} of {step.name!r} is not after {last}"
            )
        last = step.version
    return steps


def _check_functions(schema: type[Any], steps: Sequence[Migration]) -> None:
    """Raise `TypeError` for a step that cannot be called, before any of them runs."""
    for step in steps:
        run: Any = step.run
        if not (callable(run) and (_takes(run, 1) or _takes(run, 2))):
            raise TypeError(
                f"{schema.__name__}.migrations: version {step.version} has {run!r}: expected a function of the tables, "
                f"def step(t), or of the tables and the old ones as plain data, def step(t, old)"
            )


def _takes(run: Callable[..., object], count: int) -> bool:
    """Whether the function of a step can be called with so many arguments; true where that is not known."""
    try:
        inspect.signature(run).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:
        pass
    return True


def recorded(store: Store) -> dict[int, str]:
    """The steps applied to the file: names by version, in order."""
    with store.reading() as txn:
        return _recorded(store, txn)


def _recorded(store: Store, txn: Transaction) -> dict[int, str]:
    return {int(one["version"]): str(one["name"]) for one in catalogue_of(store).migrations(txn)}


def _recorded_in(t: Any) -> dict[int, str]:
    """The steps applied to the file, as the transaction of *t* sees them."""
    try:
        return _recorded(t.txn._store, t.txn._engine_txn)
    except Exception as error:
        errors.raise_as(t.txn._translate(error), error)


def check(store: Store, schema: type[Any]) -> bool:
    """Whether the file lacks steps of *schema*.

    Raises `SchemaMismatch` if the file has steps that *schema*, if it lists any, does not have.
    """
    steps = {step.version: step.name for step in declared(schema)}
    if not steps:
        return False
    found = recorded(store)
    _compare(store, steps, found)
    return not steps.keys() <= found.keys()


def _compare(store: Store, steps: dict[int, str], found: dict[int, str]) -> None:
    for version, name in found.items():
        if version > max(steps):
            raise errors.SchemaMismatch(
                f"{store.engine.path!r} has version {version} of its schema ({name}), this program knows {max(steps)}: "
                f"use a newer program",
                path=store.engine.path,
            )
        if steps.get(version) != name:
            raise errors.SchemaMismatch(
                f"{store.engine.path!r}: version {version} was {name!r} when it was applied, the program calls it "
                f"{steps.get(version)!r}: an applied step must not change",
                path=store.engine.path,
            )


def migrate(db: Any, schema: type[Any], *, dry_run: bool = False, told: Optional[Told] = None) -> list[Applied]:
    """Apply the steps of *schema* that the file open in *db* lacks, in order, each in a transaction of its own."""
    steps = declared(schema)
    store: Store = db._open_store
    if not steps:
        return []
    _check_functions(schema, steps)
    _compare(store, {step.version: step.name for step in steps}, recorded(store))
    running = _Running(db, store, tables_of(schema), steps, told or silent)
    if dry_run:
        open_all(store)
        return _tried(running)
    if not check(store, schema):
        return []
    _prepare(running)
    applied: list[Applied] = []
    for count, step in enumerate(steps, 1):
        done = db.run(partial(_apply, running, step))
        if done is not None:
            applied.append(done)
        if step is not steps[-1] and any(one.file_indexes.unreadable for _, one in db._storages.values()):
            db._attach_again(migrating=True)  # perhaps this step has taken the table, and the next one uses it
        running.told(Progress("migrations", count, len(steps)))
    db._attach_again()
    return applied


class _Running(NamedTuple):
    """The steps to apply, and the database; *tables* are those of the schema, by attribute."""

    db: Any
    store: Store
    tables: Mapping[str, tuple[type[Table[Any, Any]], Declaration]]
    steps: Sequence[Migration]
    told: Told

    def step(self, t: Any, before: Transaction, step: Migration) -> Step:
        """The objects that *step* works with."""
        declared = {one.name: one for _, one in self.tables.values()}
        attributes = {one.name: (attribute, cls) for attribute, (cls, one) in self.tables.items()}
        return Step(self.store, t, before, declared, attributes, f"{step.version} {step.name}", self.told, {})


def _prepare(running: _Running) -> None:
    """Create the tables that the file lacks, and the keyspaces of new indexes and feeds: a step cannot create one."""
    store = running.store
    if store.readonly:
        store.refuse_write()
    running.db._attach_tables(create=True, migrating=True)
    names = [
        catalogue_of(store).index_keyspace(Slot(one.name, 0, indexes={name: dict(definition)}), name).space
        for _, one in running.tables.values()
        for name, definition in one.definitions.items()
        if store.traits.by_name
    ]
    names += [catalogue_of(store).feed_space(one.name) for _, one in running.tables.values() if one.feed is not None]
    missing = [name for name in names if name is not None and name not in store.spaces]
    if missing:
        store.change(lambda _, open_space: [open_space(name) for name in missing], timeout=running.db._timeout)
    open_all(store)


def _apply(running: _Running, step: Migration, t: Any) -> Optional[Applied]:
    """Apply a step in the transaction of *t*; returns None if another process has applied it meanwhile."""
    if step.version in _recorded_in(t):
        return None
    with running.store.reading() as before:
        return _applied(running, step, t, before)


def _applied(running: _Running, step: Migration, t: Any, before: Transaction) -> Applied:
    txn, store = t.txn, running.store
    txn._catalogue_changed()
    puts, dels = txn._puts, txn._dels
    works_with = running.step(t, before, step)
    run: Any = step.run
    if _takes_two(run):
        run(t, OldTables(works_with))
    else:
        run(t)
    if step is running.steps[-1]:
        settle(works_with)
    settle_links(works_with, last=step is running.steps[-1])
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    catalogue_of(store).write_migration(txn._engine_txn, {"version": step.version, "name": step.name, "applied": now})
    return Applied(step.version, step.name, txn._puts - puts, txn._dels - dels)


def _takes_two(run: Callable[..., object]) -> bool:
    """Whether the function of a step also takes the old tables."""
    try:
        signature = inspect.signature(run)
        signature.bind(None, None)
    except (TypeError, ValueError):
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [one for one in signature.parameters.values() if one.kind in kinds and one.default is one.empty]
    return len(required) == 2


def _tried(running: _Running) -> list[Applied]:
    """The effects of the steps: all of them run in one transaction, which is aborted.

    So the first step reads the file, and later steps read the results of earlier ones in this transaction.
    """
    tried: list[Applied] = []
    store = running.store
    try:
        with running.db.write() as t, store.reading() as before:
            found = _recorded_in(t)
            for step in running.steps:
                if step.version not in found:
                    source = t.txn._engine_txn if tried else before
                    tried.append(_applied(running, step, t, source))
            raise _Undo
    except _Undo:
        return tried
