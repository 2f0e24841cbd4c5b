"""The field of a value that is its key, if the class of the table names one: ``Users(Table[...], key="id")``."""

from __future__ import annotations

from collections.abc import Mapping
from keyword import iskeyword
from operator import attrgetter
from typing import Any

from .. import errors
from ..shown import shortened
from ..values.base import is_a


class KeyField:
    """The field *path* of values, ``id`` or ``head.id``."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._attribute = attrgetter(path)

    def of(self, value: Any) -> Any:
        """The key in *value*."""
        return value[self.path] if is_a(value, Mapping) else self._attribute(value)

    @property
    def source(self) -> str:
        """A line of Python that raises if the values named ``value`` and ``key`` do not belong together.

        For values other than objects with attributes it raises any exception: the caller then calls `check`.
        """
        simple = self.path.isidentifier() and not iskeyword(self.path)
        taken = f"value.{self.path}" if simple else "key_field.of(value)"
        return f"if {taken} != key: raise ValueError(key)"

    def check(self, table: str, key: Any, value: Any) -> None:
        """Raise `EncodeError` unless *value* is the record of *key*."""
        try:
            found = self.of(value)
        except (AttributeError, KeyError):
            raise errors.EncodeError(
                f"table {table!r} takes its keys from the field {self.path!r}, which {shortened(value)} does not have",
                table=table,
                key=key,
            ) from None
        if found != key:
            raise errors.EncodeError(
                f"table {table!r} takes its keys from the field {self.path!r}, which is {shortened(found)} in the "
                f"value for the key {shortened(key)}: store it under its own key, table[{shortened(found)}] = value or "
                f"table.add(value), and delete the record {shortened(key)} if it has moved",
                table=table,
                key=key,
            )
