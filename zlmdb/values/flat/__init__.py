"""FlatBuffers of model classes, written and read by generated Python (https://flatbuffers.dev/internals)."""

from .markers import F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, Id, InStruct

__all__ = ["F32", "F64", "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "Id", "InStruct"]
