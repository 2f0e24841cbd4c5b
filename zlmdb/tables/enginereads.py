"""What selections and views read of a bound table, by the functions of the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .. import errors
from ..handlers import let_through
from ..shown import shortened
from .indexstorage import IndexStorage
from .tablestate import TableState

K = TypeVar("K")
V = TypeVar("V")


class EngineReads(TableState[K, V]):
    """The part of a `Table` that selections and views read."""

    __slots__ = ()

    def _cursor(self, handle: Any = None) -> Any:
        """A new cursor of the engine over the records, or over the index *handle*."""
        try:
            return self._raw.cursor(self._db if handle is None else handle)
        except Exception as error:
            self._txn._fail(error, table=self._name)

    def _entries(self, handle: Any = None) -> int:
        """The engine's number of records in the whole keyspace, in O(1)."""
        try:
            count: int = self._raw.stat(self._db if handle is None else handle)["entries"]
        except Exception as error:
            self._txn._fail(error, table=self._name)
        return count

    def _engine_get(self, key: bytes, default: Any, handle: Any) -> Any:
        """The engine's ``get``."""
        return self._raw.get(key, default, handle)

    def _engine_getter(self) -> tuple[Callable[[bytes, Any, Any], Any], Any]:
        """The function that returns the bytes of a record, until the next write, and the handle to call it with."""
        return self._get, self._db

    def _owned(self, primary: bytes, index: IndexStorage) -> V:
        """The record to which an entry of *index* belongs."""
        try:
            data = self._get(self._storage.prefix + primary, None, self._db)
        except Exception as error:
            self._txn._fail(error, table=self._name, index=index.name)
        if data is None:
            raise errors.DecodeError(
                f"index {index.storage.name!r} has an entry for "
                f"{shortened(self._storage.key.decode(primary))}, which is "
                f"not in the table: rebuild the index",
                table=self._name,
                index=index.name,
            )
        try:
            return self._load(data)
        except Exception as error:
            let_through(error)
            return self._storage.decode_value(data, self._storage.key.decode(primary))
