"""What the tables of a binary schema are made of: a reader, and methods that read one field by its number.

The encoding is that of https://flatbuffers.dev/internals. A field that is not in the bytes has its default.
"""

# The package carries no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional, TypeVar

from flatbuffers import encode, packer, util
from flatbuffers import number_types as numbers
from flatbuffers.table import Table as _Table

_IDENTIFIER = b"BFBS"
_OFFSET = 4  # bytes, of an element of a vector of texts or tables

T = TypeVar("T")
R = TypeVar("R", bound="Reader")


class Reader:
    """A table of a binary schema. Each method reads one field."""

    __slots__ = ("_tab",)
    _tab: Any

    def __init_subclass__(cls) -> None:
        """Give *cls* the two class methods whose names contain its own."""

        def get_root(of: type[R], buf: Any, offset: int = 0) -> R:
            return of.GetRootAs(buf, offset)

        def has_identifier(of: type[R], buf: Any, offset: int, size_prefixed: bool = False) -> bool:
            return bool(util.BufferHasIdentifier(buf, offset, _IDENTIFIER, size_prefixed=size_prefixed))

        setattr(cls, f"GetRootAs{cls.__name__}", classmethod(get_root))
        setattr(cls, f"{cls.__name__}BufferHasIdentifier", classmethod(has_identifier))

    @classmethod
    def GetRootAs(cls: type[R], buf: Any, offset: int = 0) -> R:
        """The root of the bytes *buf*, which begin at *offset*."""
        return cls._at(buf, encode.Get(packer.uoffset, buf, offset) + offset)

    @classmethod
    def _at(cls: type[R], buf: Any, pos: int) -> R:
        made = cls()
        made.Init(buf, pos)
        return made

    def Init(self, buf: Any, pos: int) -> None:
        """Read the table at *pos* in *buf*."""
        self._tab = _Table(buf, pos)

    def _place(self, number: int) -> int:
        """Where field *number* is in the bytes, or 0 if it has its default."""
        offset = int(self._tab.Offset(4 + 2 * number))
        return offset and offset + int(self._tab.Pos)


def scalar(number: int, default: T, flags: Any) -> Callable[[Reader], T]:
    """A field that is a number or a truth value, of the type of *default*."""
    of: Any = type(default)

    def read(self: Reader) -> T:
        place = self._place(number)
        return of(self._tab.Get(flags, place)) if place else default

    return read


def text(number: int) -> Callable[[Reader], Optional[bytes]]:
    """A field that is a text in UTF-8, or None."""

    def read(self: Reader) -> Optional[bytes]:
        place = self._place(number)
        return bytes(self._tab.String(place)) if place else None

    return read


def table(number: int, kind: type[R]) -> Callable[[Reader], Optional[R]]:
    """A field that is a table, or None."""

    def read(self: Reader) -> Optional[R]:
        place = self._place(number)
        return kind._at(self._tab.Bytes, self._tab.Indirect(place)) if place else None

    return read


def texts(number: int) -> tuple[Callable[[Reader, int], Any], Callable[[Reader], int], Callable[[Reader], bool]]:
    """Of a field that is a vector of texts: one by its index (``""`` without a vector), how many, if there is none."""
    return _vector(number, "", lambda tab, place: bytes(tab.String(place)))


def tables(
    number: int, kind: type[R]
) -> tuple[Callable[[Reader, int], Optional[R]], Callable[[Reader], int], Callable[[Reader], bool]]:
    """Of a field that is a vector of tables: one by its index (None without a vector), how many, if there is none."""
    nothing: Optional[R] = None
    return _vector(number, nothing, lambda tab, place: kind._at(tab.Bytes, tab.Indirect(place)))


def _vector(
    number: int, missing: T, read: Callable[[Any, int], T]
) -> tuple[Callable[[Reader, int], T], Callable[[Reader], int], Callable[[Reader], bool]]:
    def vector(self: Reader) -> Optional[int]:
        place = self._place(number)
        return place - int(self._tab.Pos) if place else None  # what `Table` wants for vectors

    def element(self: Reader, j: int) -> T:
        found = vector(self)
        return missing if found is None else read(self._tab, self._tab.Vector(found) + j * _OFFSET)

    def length(self: Reader) -> int:
        found = vector(self)
        return 0 if found is None else int(self._tab.VectorLen(found))

    def is_none(self: Reader) -> bool:
        return vector(self) is None

    return element, length, is_none


__all__ = ["Reader", "numbers", "scalar", "table", "tables", "text", "texts"]
