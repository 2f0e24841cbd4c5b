"""Markers in annotations that determine how a field is stored: ``Annotated[int, U16]`` and others."""

from __future__ import annotations

from ...namedtuples import NamedTuple


class Width(NamedTuple):
    """A number of FlatBuffers: its name there, its code in `struct`, its bytes."""

    fbs: str
    code: str
    size: int
    vector: str
    """The name by which the runtime has functions for vectors of it."""


I8 = Width("byte", "b", 1, "i8")
U8 = Width("ubyte", "B", 1, "u8")
I16 = Width("short", "h", 2, "i16")
U16 = Width("ushort", "H", 2, "u16")
I32 = Width("int", "i", 4, "i32")
U32 = Width("uint", "I", 4, "u32")
I64 = Width("long", "q", 8, "i64")
U64 = Width("ulong", "Q", 8, "u64")
F32 = Width("float", "f", 4, "f32")
F64 = Width("double", "d", 8, "f64")
BOOL = Width("bool", "?", 1, "bool")

INTEGERS = (I8, U8, I16, U16, I32, U32, I64, U64)
FLOATS = (F32, F64)


class InStruct:
    """The marker of a model class that is stored as a FlatBuffers struct: inline, so it can never change.

    Its fields are numbers, bools, enums and other such structs. ``Annotated[Point, InStruct]``.
    """


class Id(NamedTuple):
    """The id of a field, for classes whose fields have no metadata: ``Annotated[int, Id(3)]``.

    A dataclass or attrs class may also use ``field(metadata={"id": 3})``. Either all fields of a class have an id, or
    none: then they are numbered in their order. The ids of removed fields are left out and never used again.
    """

    number: int
