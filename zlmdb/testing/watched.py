"""An engine whose writes and commits are announced to a watcher, which may raise instead of letting them happen."""

from __future__ import annotations

from typing import Any

from ..engines import Engine


class Watcher:
    """Is told before each write and around each commit. This one lets everything happen."""

    def put(self) -> None:
        """A record, or several by one call of the engine, are about to be stored."""

    def delete(self) -> None:
        """Records are about to be deleted."""

    def commit(self) -> None:
        """A transaction is about to be committed, a savepoint not."""

    def committed(self) -> None:
        """It was committed."""

    def allows_growth(self) -> bool:
        """Whether the store may make room."""
        return True

    def retries(self, error: Exception) -> bool:
        """Whether ``db.run`` is to run its function again after *error*."""
        return False


class WatchedEngine:
    """*inner*, an engine of any kind, with a watcher of its transactions."""

    def __init__(self, inner: Engine, watcher: Watcher) -> None:
        self._inner: Any = inner
        self._watcher = watcher

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def can_grow(self) -> bool:
        """Whether the store may make room."""
        return bool(self._inner.can_grow) and self._watcher.allows_growth()

    def open(self, *, readonly: bool = False) -> WatchedEnvironment:
        """A new environment, watched."""
        return WatchedEnvironment(self._inner.open(readonly=readonly), self._watcher)

    def retry(self, error: Exception) -> bool:
        """Whether to run a transaction again that failed with *error*."""
        return self._watcher.retries(error) or bool(self._inner.retry(error))


class WatchedEnvironment:
    """Its write transactions are watched; those that read are the engine's own."""

    def __init__(self, inner: Any, watcher: Watcher) -> None:
        self._inner = inner
        self._watcher = watcher

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def begin(self, db: Any = None, parent: Any = None, write: bool = False, buffers: Any = False) -> Any:
        """A transaction of the engine."""
        txn = self._inner.begin(db=db, parent=_unwrapped(parent), write=write, buffers=buffers)
        return WatchedTransaction(txn, self._watcher, nested=parent is not None) if write else txn

    def open_db(self, key: Any = None, txn: Any = None, **options: Any) -> Any:
        """The handle of a keyspace."""
        return self._inner.open_db(key, txn=_unwrapped(txn), **options)


class WatchedTransaction:
    """A write transaction of the engine. A commit that the watcher refuses aborts it, as a failed commit does."""

    def __init__(self, inner: Any, watcher: Watcher, nested: bool) -> None:
        self._inner = inner
        self._watcher = watcher
        self._nested = nested

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def put(self, *args: Any, **options: Any) -> Any:
        """Store a record."""
        self._watcher.put()
        return self._inner.put(*args, **options)

    def delete(self, *args: Any, **options: Any) -> Any:
        """Delete a record."""
        self._watcher.delete()
        return self._inner.delete(*args, **options)

    def drop(self, *args: Any, **options: Any) -> Any:
        """Delete all records of a keyspace."""
        self._watcher.delete()
        return self._inner.drop(*args, **options)

    def cursor(self, *args: Any, **options: Any) -> WatchedCursor:
        """A cursor, which may write."""
        return WatchedCursor(self._inner.cursor(*args, **options), self._watcher)

    def commit(self) -> None:
        """Make the changes durable."""
        if self._nested:
            self._inner.commit()
            return
        try:
            self._watcher.commit()
        except BaseException:
            self._inner.abort()
            raise
        self._inner.commit()
        self._watcher.committed()


class WatchedCursor:
    """A cursor of a write transaction."""

    def __init__(self, inner: Any, watcher: Watcher) -> None:
        self._inner = inner
        self._watcher = watcher

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __enter__(self) -> WatchedCursor:
        return self

    def __exit__(self, *exc: object) -> None:
        self._inner.__exit__(*exc)

    def putmulti(self, *args: Any, **options: Any) -> Any:
        """Store many records."""
        self._watcher.put()
        return self._inner.putmulti(*args, **options)


def _unwrapped(txn: Any) -> Any:
    return txn._inner if isinstance(txn, WatchedTransaction) else txn
