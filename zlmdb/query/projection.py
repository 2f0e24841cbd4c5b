"""The projection of a query: what its loop gives of each record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Union, cast

from ..namedtuples import NamedTuple

if TYPE_CHECKING:
    from ..values.paths import Path
    from .expressionsource import Asked

_SOURCES = {"key": "load_key(key)", "engine key": "key", "value": "value", "data": "data", "nothing": "None"}


class Projection(NamedTuple):
    """What a loop gives of each record that matches: *parts* in a tuple, or *one* of them as it is.

    A part is ``key``, ``engine key``, ``value``, ``data``, ``nothing``, the path of a field, what a function gives, or
    a Projection.
    """

    parts: tuple[Any, ...]
    one: bool = True

    def leaves(self) -> Iterator[Union[str, Path, Asked]]:
        """The parts, those within parts too."""
        for part in self.parts:
            if isinstance(part, Projection):
                yield from part.leaves()
            else:
                yield part

    @property
    def whole(self) -> bool:
        """Whether the value itself is asked for."""
        return any([leaf == "value" or not isinstance(leaf, (str, tuple)) for leaf in self.leaves()])

    @property
    def keyed(self) -> bool:
        """Whether the key is."""
        return any([leaf in _KEYS if isinstance(leaf, (str, tuple)) else leaf.keyed for leaf in self.leaves()])

    @property
    def paths(self) -> list[Path]:
        """The paths of the fields."""
        return [leaf for leaf in self.leaves() if isinstance(leaf, tuple)]

    @property
    def asked(self) -> list[Asked]:
        """The functions."""
        return [leaf for leaf in self.leaves() if not isinstance(leaf, (str, tuple))]

    def shape(self) -> Any:
        """What is the same for two that differ in nothing but captured values. Hashable."""
        shapes = [part.shape() if hasattr(part, "shape") else part for part in self.parts]
        return self.one, tuple(shapes)

    def source(self, of_path: Callable[[Path], str], of_asked: Callable[[Asked], str]) -> str:
        """The expression; of whole values it uses ``value``."""
        parts = [self._part(part, of_path, of_asked) for part in self.parts]
        return parts[0] if self.one else f"({', '.join(parts)},)"

    @staticmethod
    def _part(part: Any, of_path: Callable[[Path], str], of_asked: Callable[[Asked], str]) -> str:
        if isinstance(part, Projection):
            return part.source(of_path, of_asked)
        if isinstance(part, str):
            return _SOURCES[part]
        return of_path(cast("Path", part)) if isinstance(part, tuple) else of_asked(part)


_KEYS = ("key", "engine key")
KEYS, ENGINE_KEYS = Projection(("key",)), Projection(("engine key",))
VALUES, HITS = Projection(("value",)), Projection(("nothing",))
PAIRS = Projection(("key", "value"), one=False)
RECORDS = Projection(("engine key", "data"), one=False)
"""The engine's key, and what is stored: only in loops over records, which an index does not answer."""
