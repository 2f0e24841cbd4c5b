"""Tables that a program makes at run time, on an open database: what `Database.table` returns."""

from __future__ import annotations

from typing import Any, Generic, Optional, TypeVar

from ..namedtuples import NamedTuple
from ..tables.table import Table
from .declaration import Declaration

T_co = TypeVar("T_co", covariant=True)


class MadeTable(Generic[T_co]):
    """A table that a program has made with `Database.table`. ``t[made]`` is the table in the transaction of ``t``.

    It belongs to its database, and can be kept and used in any transaction that begins after it was made.
    """

    __slots__ = ("_several", "_types", "name")

    def __init__(self, name: str, types: Any, several: Optional[type[Any]] = None) -> None:
        self.name = name
        self._types = types
        self._several = several  # the class of a table that consists of several

    def __repr__(self) -> str:
        return f"<table {self.name!r} made at run time>"


class Made(NamedTuple):
    """What a database keeps of a table that was made: the object of the program, its class, and its declaration."""

    made: MadeTable[Any]
    cls: type[Table[Any, Any]]
    declared: Declaration
