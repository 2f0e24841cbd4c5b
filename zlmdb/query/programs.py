"""What is compiled for the records of one table: loops and what they read records with, kept for the next queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Optional

from ..values.flatbuffers import FlatBuffersViewSerializer
from ..values.narrow import Parts
from ..values.paths import Path
from .fieldconditions import FieldCompare
from .fieldtypes import vouches
from .following import Following
from .following.known import Home
from .loops import Writer
from .nestedrows import Keys
from .projection import Projection
from .recordlines import Body

KEPT = 128
"""Loops that are kept for a table."""


class Programs:
    """The loops over the records of one table, kept by all that they depend on but the values compared with."""

    def __init__(self, storage: Any) -> None:
        annotation, names = (Any, None) if storage.model is None else storage.model
        self.load, self.load_key = storage.load, storage.load_key
        self.keys: Keys = storage.key, storage.prefix
        self.key_in_place = storage.key.load_source(storage.prefix)
        self.name = storage.name
        self._value = storage.value
        self.columns = storage.value.columns()
        self.vouched = vouches(storage.value.name)
        viewed = isinstance(storage.value, FlatBuffersViewSerializer) and hasattr(annotation, "__total__")
        self.following = Following(Any if viewed else annotation, storage.key_type, names)  # it has attributes
        self._record = Home(names).known(annotation) if viewed else self.following.value_type
        self.kept: dict[Any, Any] = {}  # what else is made once for the table, by whoever makes it
        self.running: Any = None  # what runs queries, put here by whoever does, as what runs known ones
        self.cached_plan: Any = None
        self.known: Any = None  # what the planner knows of a state of the indexes: see `tables.executor.execution`
        self.prepared: dict[Any, Any] = {}  # loops, by the functions of queries
        self._made: dict[Any, Callable[..., Any]] = {}

    def keep(self, key: Any, prepared: Any) -> None:
        """Keep what is *prepared*, unless the *key* is None."""
        if key is not None:
            if len(self.prepared) >= KEPT:
                self.prepared.clear()
            self.prepared[key] = prepared

    def once(self, key: Any, make: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
        """What *make* makes, kept for the *key*."""
        made = self._made.get(key)
        if made is None:
            made = make()
            if len(self._made) >= KEPT:
                self._made.clear()
            self._made[key] = made
        return made

    def type_of(self, name: str) -> Any:
        """The type of a field of `columns`, without None; Any if no model was declared."""
        found = self._record.fields().get(name)
        return Any if found is None else found.annotation

    def narrow(self, paths: Sequence[Path]) -> Optional[Callable[[Any], Any]]:
        """The function that decodes *paths* of a record only, if there is one that takes less time than all."""
        if self.columns is not None:
            return None
        key = "narrow", *paths
        if key not in self.kept:
            self.kept[key] = self._value.narrow(paths)
        return self.kept[key]

    def of_linked(self, paths: Sequence[Path]) -> Optional[Callable[[Any], Any]]:
        """As `narrow`, of a record that others refer to, of bytes; *paths* are of its fields. Of FlatBuffers, too."""
        columns = self.columns
        if columns is None:
            return self.narrow(paths)
        key = "of linked", *paths
        if key not in self.kept:
            whole = columns.lazy or not paths or not all([path[0] in columns.fields for path in paths])
            body = Body((), (), (), Projection(tuple(paths), one=False))
            self.kept[key] = None if whole else Writer(self, body).reading(paths)
        return self.kept[key]

    def parts(self) -> Optional[Parts]:
        """How values are made in a loop without a call, if they can be."""
        if "parts" not in self.kept:
            self.kept["parts"] = self._value.parts()
        return self.kept["parts"]

    def constants(self, compares: Sequence[FieldCompare]) -> tuple[list[Any], tuple[bool, ...]]:
        """What the fields are compared with, and of each whether it is in the form that is stored."""
        found = [self._constant(compare) for compare in compares]
        return [value for value, _ in found], tuple(stored for _, stored in found)

    def _constant(self, compare: FieldCompare) -> tuple[Any, bool]:
        columns, value = self.columns, compare.value
        if compare.operator != "in":
            convert = None if value is None else columns.convert(compare.name, value)
            return (value, False) if convert is None else (convert(value), True)
        converts = [(one, None if one is None else columns.convert(compare.name, one)) for one in value]
        told = {convert is not None for one, convert in converts if one is not None}
        if told != {True}:
            return value, False
        return frozenset(one if convert is None else convert(one) for one, convert in converts), True
