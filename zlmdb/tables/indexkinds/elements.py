"""Indexes with ``each=True``: an entry for each element of a list, set or tuple, or of what a function returns.

Elements that are equal have one entry. A None, and a tuple that contains None, has none, and neither has a field that
is None. In all else the entries are those of a plain index whose key is the element.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Optional, get_args, get_origin

from ... import errors
from ...query.fieldtypes import without_none
from ...shown import shortened
from ...typeargs import present_type
from ...values.base import is_a
from ..indexstorage import IndexStorage
from ..modelfields import shown_type

CONTAINERS = (list, set, frozenset, tuple)


def element_type(annotation: Any) -> Any:
    """The type of the elements of a field of the type *annotation*, without their None; None if it does not say.

    Raises `TypeError` for a type that has no elements, or elements of several types.
    """
    annotation = without_none(annotation)
    origin, args = get_origin(annotation) or annotation, get_args(annotation)
    if annotation is Any or annotation in CONTAINERS:
        return None
    if origin is tuple:
        kinds = set(args) - {Ellipsis}
        if len(kinds) == 1:
            return present_type(kinds.pop())
    elif len(args) == 1 and isinstance(origin, type) and issubclass(origin, Iterable):
        return present_type(args[0])
    raise TypeError(f"each=True needs a list, set or tuple with elements of one type, not {shown_type(annotation)}")


class ElementStorage(IndexStorage):
    """An index with an entry for each element: ``get_key`` returns all index keys of a record."""

    several = True

    def entry(self, value: Any, primary: bytes, *, stored: bool = False) -> Optional[bytes]:
        """The first of `entries`, or None."""
        return min(self.entries(value, primary, stored=stored), default=None)

    def entries(self, value: Any, primary: bytes, *, stored: bool = False) -> Collection[bytes]:
        """The keys of the entries of a record, each once. Raises `EncodeError` for what does not fit."""
        return {self.entry_of(key, primary) for key in self.keys(value)}

    def keys(self, value: Any) -> Iterable[Any]:
        """The index keys of a record, without None. Raises `EncodeError` for what has no elements."""
        keys = self.get_key(value)
        if keys is None:
            return ()
        if is_a(keys, (str, bytes, Mapping)) or not is_a(keys, Iterable):
            raise errors.EncodeError(
                f"index {self.full_name!r}: each=True needs a list, set or tuple of index keys, not {shortened(keys)} "
                f"({type(keys).__name__})",
                index=self.name,
                table=self.table,
                key=keys,
            )
        return [key for key in keys if key is not None and not (type(key) is tuple and None in key)]
