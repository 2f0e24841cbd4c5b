"""`BaseType` of a binary schema."""

from __future__ import annotations


class BaseType:
    """The kinds of types, as numbers."""

    None_, UType, Bool, Byte, UByte, Short, UShort, Int, UInt, Long = range(10)
    ULong, Float, Double, String, Vector, Obj, Union, Array, Vector64, MaxBaseType = range(10, 20)
