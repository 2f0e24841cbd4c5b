"""Failures that a test orders: a full database, a full disk, a conflict with another writer."""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from .. import errors
from ..database.database import Database
from .watched import WatchedEngine, WatchedEnvironment, Watcher


class Faults(Watcher):
    """The failures of one database. `inject`, and the fixture ``zlmdb_faults``, return one.

    Each method orders a failure for transactions that begin afterwards; several may be ordered at once. The failures
    are raised where the engine raises them, so transactions, indexes and ``db.run`` treat them as real ones. They
    affect this process only, also other handles of the same database.
    """

    def __init__(self) -> None:
        self._writes_left = self._commits_left = math.inf
        self._conflicts = 0

    def full(self, after: int = 0) -> None:
        """The database is full: *after* further writes of the engine, each write raises `DatabaseFull`.

        Each record and each index entry is one write; a ``put_many`` may be a single one. Deleting works. The
        transaction cannot be committed.
        """
        self._writes_left = _count(after)

    def disk_full(self, after: int = 0) -> None:
        """The disk is full: *after* further commits, each commit raises `DiskError` and stores nothing."""
        self._commits_left = _count(after)

    def conflict(self, times: int = 1) -> None:
        """Another writer is first: the next commits, *times* in number, raise `Conflict` and store nothing.

        ``db.run`` then runs its function again, as it does with an engine on a network. LMDB and the memory engine
        have no conflicts of their own.
        """
        self._conflicts = _count(times)

    def clear(self) -> None:
        """No more failures: the database works again."""
        self._writes_left = self._commits_left = math.inf
        self._conflicts = 0

    # -- what the engine is asked ---------------------------------------------------------------------------------

    def put(self) -> None:
        """Raise `DatabaseFull` if it is time to."""
        if self._writes_left <= 0:
            raise errors.DatabaseFull("the database is full, by order of zlmdb.testing: clear() ends this")
        self._writes_left -= 1

    def commit(self) -> None:
        """Raise `Conflict` or `DiskError` if it is time to."""
        if self._conflicts:
            self._conflicts -= 1
            raise errors.Conflict("another writer was first, by order of zlmdb.testing: run the transaction again")
        if self._commits_left <= 0:
            raise errors.DiskError("the disk is full, by order of zlmdb.testing: clear() ends this")
        self._commits_left -= 1

    def allows_growth(self) -> bool:
        """Not if the database is to be full."""
        return self._writes_left == math.inf

    def retries(self, error: Exception) -> bool:
        """After a conflict."""
        return isinstance(error, errors.Conflict)


@contextmanager
def inject(db: Database[Any]) -> Generator[Faults, None, None]:
    """A block in which *db* fails as its `Faults` say; afterwards it works again.

    ::

        with inject(db) as faults:
            faults.disk_full()
            ...  # each commit raises DiskError
    """
    faults = Faults()
    store: Any = db._open_store
    inner = store.engine
    store.engine, store.env = WatchedEngine(inner, faults), WatchedEnvironment(store.environment, faults)
    try:
        yield faults
    finally:
        faults.clear()
        store.engine = inner
        _unwatch(store, faults)


def _unwatch(store: Any, faults: Faults) -> None:
    """Use the environment itself again, which may have been opened anew since, or closed."""
    env = store.env
    if isinstance(env, WatchedEnvironment) and env._watcher is faults:
        store.env = env._inner


def _count(number: int) -> int:
    if number < 0:
        raise ValueError(f"{number!r}: expected a number of calls, 0 or more")
    return number
