"""What table classes know the declarations in their bodies by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..values.base import typenames


class Declares:
    """The base of all declarations of indexes and links. A table without any does without the module of indexes."""

    if not TYPE_CHECKING:  # checkers report it
        _of_several = "an index of several fields has one type, that of their tuple: {cls}[tuple[{types}]](...)"

        def __class_getitem__(cls, types):
            if type(types) is tuple:
                name, given = cls.__name__, typenames(types)
                raise TypeError(f"{name}[{given}]: {cls._of_several.format(cls=name, types=given)}")
            return super().__class_getitem__(types)
