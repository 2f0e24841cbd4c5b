"""What the methods `keys`, `values` and `items` of a table return: the views of a mapping, read as selections are."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from typing import TYPE_CHECKING, Any, Generic, Optional, TypeVar

from ..missingattributes import public_names, tell
from ..query import SOME, Reads, shown_position

if TYPE_CHECKING:
    from .table import Table

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")


class _View(Generic[R]):
    """What the views have beside those of a dict: the methods of a selection that say which row."""

    _mapping: Table[Any, Any]  # set by the view of a mapping, which is the other base

    def _reads(self, *, reverse: bool = False) -> Reads[R]:
        raise NotImplementedError

    def __iter__(self) -> Iterator[R]:
        return iter(self._reads())

    def __reversed__(self) -> Iterator[R]:
        return iter(self._reads(reverse=True))

    def first(self) -> Optional[R]:
        """The first one; None when the table is empty."""
        return self._reads().first()

    def last(self) -> Optional[R]:
        """The last one; None when the table is empty. O(log n)."""
        return self._reads().last()

    def count(self) -> int:
        """How many there are, as `len` of the table."""
        return len(self._mapping)

    def __bool__(self) -> bool:
        return bool(self._mapping)

    def __repr__(self) -> str:
        return repr(self._reads())

    def __getitem__(self, position: object) -> Any:
        raise TypeError(f"[{shown_position(position)}]: a view of a table has no positions: {SOME}")


_COMPUTED = ("max", "mean", "min", "sum")  # of values and pairs only a field can be computed with


def _of_view(view: object, name: str) -> str:
    """What to write for *name*, which *view* does not have."""
    kind, advice = type(view).__name__.lower(), ""
    if name in _COMPUTED and kind != "keys":
        advice = f": write .fields(lambda record: ...).{name}() of the table"
    elif not name.startswith("_") and hasattr(Reads, name):
        advice = f": write .select(){'' if kind == 'items' else f'.{kind}()'}.{name}(...)"
    return f"the {kind} of a table have no attribute {name!r}{advice}"


tell(_View, public_names(Reads), _of_view)


class Keys(_View[K], KeysView[K]):
    """The keys of a table, in their order."""

    def _reads(self, *, reverse: bool = False) -> Reads[K]:
        return self._mapping.select(reverse=reverse).keys()


class Values(_View[V], ValuesView[V]):
    """The values of a table, in the order of their keys."""

    def _reads(self, *, reverse: bool = False) -> Reads[V]:
        return self._mapping.select(reverse=reverse).values()


class Items(_View["tuple[K, V]"], ItemsView[K, V]):
    """The pairs of key and value of a table, in the order of the keys."""

    def _reads(self, *, reverse: bool = False) -> Reads[tuple[K, V]]:
        return self._mapping.select(reverse=reverse)
