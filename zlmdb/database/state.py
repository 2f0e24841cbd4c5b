"""What an open database is made of, and what its parts ask of it."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Any, Optional, Union

from .. import errors
from ..schema.runtimetables import Made
from ..shown import shown_path
from ..store.openstores import Opening
from ..store.store import Store
from ..tables.storage import Storage
from ..tables.table import Table

if TYPE_CHECKING:
    from ..classic.pmap import PersistentMap

StrPath = Union[str, "os.PathLike[str]"]


class DatabaseState:
    """The state of a `Database`. The database itself opens and closes the store."""

    _opening: Opening
    _lasting: Optional[str]  # its path from any working directory, once it was open
    _schema: type[Any]
    _store: Optional[Store]
    _storages: dict[str, tuple[type[Table[Any, Any]], Storage[Any, Any]]]
    """The tables of the schema and those made at run time, by name, with their classes."""
    _made: dict[str, Made]
    _maps: weakref.WeakSet[PersistentMap[Any, Any]]
    _readers: Any
    _writers: Any  # the pools of units
    _context: Any
    _log: Any
    _temporary: Optional[str]
    _open_now: bool
    _timeout: Optional[float]
    """Seconds to wait for another writer; None: for ever."""
    _called = "database"
    """What the user has opened: a cache has a database inside."""

    @property
    def _open_store(self) -> Store:
        """The open environment. Raises `DatabaseClosed`."""
        store = self._store
        if store is None:
            raise errors.DatabaseClosed(
                f"the {self._called} {shown_path(self._opening.path)} is not open: open it again, or use it in its "
                f"with block"
            ) from None
        if store.env is None:  # in a forked child
            store.reopen()
        return store
