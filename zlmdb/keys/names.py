"""The names of `zlmdb.keys` that are imported on first use, because a program uses few types of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..late import on_first_use

if TYPE_CHECKING:
    from .choices import ChoiceKey as ChoiceKey
    from .dates import DateKey as DateKey
    from .dates import DatetimeKey as DatetimeKey
    from .decimals import DecimalKey as DecimalKey
    from .durations import TimedeltaKey as TimedeltaKey
    from .durations import TimeKey as TimeKey
    from .named import BytesKey as BytesKey
    from .named import StringKey as StringKey
    from .named import Uint128Key as Uint128Key
    from .named import UintKey as UintKey
    from .named import UuidKey as UuidKey
    from .registry import ATOMS as ATOMS
    from .registry import NAMED as NAMED
    from .registry import PLAIN as PLAIN
    from .registry import Bytes16 as Bytes16
    from .registry import Bytes20 as Bytes20
    from .registry import Bytes32 as Bytes32
    from .registry import Oid as Oid
    from .registry import Slot as Slot
    from .registry import String as String
    from .registry import Timestamp as Timestamp
    from .registry import Uint8 as Uint8
    from .registry import Uint16 as Uint16
    from .registry import Uint32 as Uint32
    from .registry import Uint64 as Uint64
    from .registry import Uint128 as Uint128
    from .registry import Uuid as Uuid
    from .registry import from_name as from_name
    from .registry import tables_codec as tables_codec
    from .timestamp import TimestampKey as TimestampKey
    from .tuples import TupleKey as TupleKey
else:
    __all__ = ["__dir__", "__getattr__"]
    __getattr__, __dir__ = on_first_use(
        __package__,
        {
            ".choices": "ChoiceKey",
            ".dates": "DateKey DatetimeKey",
            ".decimals": "DecimalKey",
            ".durations": "TimedeltaKey TimeKey",
            ".named": "BytesKey StringKey Uint128Key UintKey UuidKey",
            ".registry": "ATOMS NAMED PLAIN Bytes16 Bytes20 Bytes32 Oid Slot String Timestamp Uint8 Uint16 Uint32 "
            "Uint64 Uint128 Uuid from_name tables_codec",
            ".timestamp": "TimestampKey",
            ".tuples": "TupleKey",
        },
    )
