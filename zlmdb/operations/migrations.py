"""Steps from one version of a schema to the next, each applied once and recorded in the file.

A step is a function of the tables in a write transaction. It is committed together with the record that it was
applied, or not at all. The version of a file is that of the last step applied to it, 0 before the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from typing import Any, NamedTuple, Optional

from .. import errors
from ..catalogue import catalogue_of
from ..store import Store
from .progress import Progress, Told, silent


@dataclass(frozen=True)
class Migration:
    """A step to the *version* of the schema, an int above 0: *run* is called with the tables in a write transaction.

    A schema lists its steps, in order, as ``migrations``::

        def lower_addresses(t: Store) -> None:
            for key, user in t.users.items():
                t.users[key] = replace(user, email=user.email.lower())

        class Store(zlmdb.Schema):
            users: Users
            migrations = (zlmdb.Migration(1, "addresses in lower case", lower_addresses),)
    """

    version: int
    name: str
    run: Callable[[Any], object]


class Applied(NamedTuple):
    """A step that was applied, or in a dry run would be: records and index entries written and deleted."""

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


def recorded(store: Store) -> dict[int, str]:
    """The steps applied to the file: names by version, in order."""
    with store.reading() as txn:
        return _recorded(store, txn)


def _recorded(store: Store, txn: Any) -> dict[int, str]:
    return {int(one["version"]): str(one["name"]) for one in catalogue_of(store).migrations(txn)}


def check(store: Store, schema: type[Any]) -> None:
    """Raise `SchemaMismatch` when the file has steps that *schema*, if it lists any, does not have."""
    steps = {step.version: step.name for step in declared(schema)}
    if steps:
        _compare(store, steps, recorded(store))


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
                f"{steps.get(version)!r}: a step that was applied somewhere must stay as it is",
                path=store.engine.path,
            )


def migrate(db: Any, schema: type[Any], *, dry_run: bool = False, told: Optional[Told] = None) -> list[Applied]:
    """Apply the steps of *schema* that the file open in *db* lacks, in order, each in a transaction of its own."""
    steps = declared(schema)
    store: Store = db.store
    if not steps:
        return []
    _compare(store, {step.version: step.name for step in steps}, recorded(store))
    if dry_run:
        return _tried(db, steps)
    applied: list[Applied] = []
    for count, step in enumerate(steps, 1):
        done = db.run(partial(_apply, store, step))
        if done is not None:
            applied.append(done)
        (told or silent)(Progress("migrations", count, len(steps)))
    return applied


def _apply(store: Store, step: Migration, t: Any) -> Optional[Applied]:
    """Apply a step in the transaction of *t*; None when another process has done so meanwhile."""
    txn = t.txn
    if step.version in _recorded(store, txn.raw):
        return None
    puts, dels = txn.puts, txn.dels
    step.run(t)
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    catalogue_of(store).write_migration(txn.raw, {"version": step.version, "name": step.name, "applied": now})
    return Applied(step.version, step.name, txn.puts - puts, txn.dels - dels)


def _tried(db: Any, steps: Sequence[Migration]) -> list[Applied]:
    """What the steps would do: all of them in one transaction, which is aborted."""
    tried: list[Applied] = []
    try:
        with db.write() as t:
            for step in steps:
                done = _apply(db.store, step, t)
                if done is not None:
                    tried.append(done)
            raise _Undo
    except _Undo:
        return tried
