"""Key types and their codecs: order-preserving, readable bytes for keys."""

from __future__ import annotations

from .base import Data as Data
from .base import Inline as Inline
from .base import KeyCodec as KeyCodec
from .choices import ChoiceKey as ChoiceKey
from .decimals import DecimalKey as DecimalKey
from .durations import TimedeltaKey as TimedeltaKey
from .durations import TimeKey as TimeKey
from .named import BytesKey as BytesKey
from .named import StringKey as StringKey
from .named import Uint128Key as Uint128Key
from .named import UintKey as UintKey
from .named import UuidKey as UuidKey
from .plain import BlobKey as BlobKey
from .plain import BoolKey as BoolKey
from .plain import DateKey as DateKey
from .plain import DatetimeKey as DatetimeKey
from .plain import FloatKey as FloatKey
from .plain import IntKey as IntKey
from .plain import StrKey as StrKey
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
from .registry import key_codec as key_codec
from .registry import tables_codec as tables_codec
from .timestamp import TimestampKey as TimestampKey
from .tuples import TupleKey as TupleKey
