"""Changing the records of a selection: `edit`, `change` and `delete`. Which ones these are is known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Generic, Optional, TypeVar

from ..query.want import ENGINE_KEYS, KEYS

if TYPE_CHECKING:
    from .selection import Selection
    from .table import Table

K = TypeVar("K")
V = TypeVar("V")

_GONE: Any = object()


def delete(selection: Selection[Any, Any]) -> int:
    """Delete the records of *selection*, or none if one is refused; how many."""
    table = selection._table
    table._check_write()
    keys = selection._all_at_once(ENGINE_KEYS)
    if not keys:
        return 0
    if table._storage.referrers:
        from .removal import remove  # late: few tables have links to them

        return remove(table, keys)
    with table._txn._statement():
        return sum([table._remove(key) for key in keys])


def change(selection: Selection[Any, V], how: Callable[[V], V]) -> int:
    """Store what *how* makes of each record of *selection*, or change none if one is refused; how many."""
    table = selection._table
    table._check_write()
    keys = selection._all_at_once(KEYS)
    changed = 0
    if keys:
        with table._txn._statement():
            for key in keys:
                value: Any = table.get(key, _GONE)
                if value is not _GONE:
                    table[key] = how(value)
                    changed += 1
    return changed


@contextmanager
def edit(selection: Selection[Any, V]) -> Generator[Iterator[V], None, None]:
    """A block with an iterator over the objects of *selection*, each stored again when its turn is over."""
    table = selection._table
    table._check_write()
    editing = _Editing(table, selection._all_at_once(KEYS))
    try:
        yield iter(editing)
    except BaseException as error:
        editing.end(error)
        raise
    editing.end(None)


class _Editing(Generic[V]):
    """The objects of records, one at a time."""

    def __init__(self, table: Table[Any, V], keys: list[Any]) -> None:
        self._table, self._keys = table, keys
        self._open: Optional[AbstractContextManager[V]] = None
        self._over = False

    def __iter__(self) -> Iterator[V]:
        for key in self._keys:
            if self._over:
                raise RuntimeError("the block of edit() is over: iterate over its objects inside the block")
            if key not in self._table:  # deleted meanwhile
                continue
            self._open = self._table.edit(key)
            yield self._open.__enter__()
            self.leave(None)

    def end(self, error: Optional[BaseException]) -> None:
        """The block is over."""
        self._over = True
        self.leave(error)

    def leave(self, error: Optional[BaseException]) -> None:
        """The turn of the current object is over: it is stored, unless there was an *error*."""
        opened, self._open = self._open, None
        if opened is not None:
            if error is None:
                opened.__exit__(None, None, None)
            else:
                opened.__exit__(type(error), error, error.__traceback__)
