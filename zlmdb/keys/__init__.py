"""Key types and their codecs: order-preserving, readable bytes for keys."""
# ruff: noqa: F403, F405 - most key types come by `names`

from __future__ import annotations

from .base import Data as Data
from .base import Inline as Inline
from .base import KeyCodec as KeyCodec
from .names import *
from .plain import BlobKey as BlobKey
from .plain import BoolKey as BoolKey
from .plain import FloatKey as FloatKey
from .plain import IntKey as IntKey
from .plain import StrKey as StrKey
from .plain import key_codec as key_codec

# fmt: off
__all__ = [
    "ATOMS", "NAMED", "PLAIN", "BlobKey", "BoolKey", "Bytes16", "Bytes20", "Bytes32", "BytesKey", "ChoiceKey",
    "Data", "DateKey", "DatetimeKey", "DecimalKey", "FloatKey", "Inline", "IntKey", "KeyCodec", "Oid", "Slot",
    "StrKey", "String", "StringKey", "TimeKey", "TimedeltaKey", "Timestamp", "TimestampKey", "TupleKey", "Uint8",
    "Uint16", "Uint32", "Uint64", "Uint128", "Uint128Key", "UintKey", "Uuid", "UuidKey", "from_name", "key_codec",
    "tables_codec",
]
