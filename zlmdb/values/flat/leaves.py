"""The nodes of types of the standard library that contain no others."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from .markers import I64, U8, U16
from .nodes import Blob, InPlace, Node, Scalar, Struct, Text
from .runtime import DURATION, INSTANT

LEAVES: dict[Any, Callable[[], Node]] = {
    str: lambda: Text("str", "type($) is str", plain=True),
    bytes: lambda: Blob("bytes", "type($) is bytes"),
    UUID: lambda: Blob("UUID", "type($) is UUID", '$.int.to_bytes(16, "big")', "uuid_from_bytes($)", length=16),
    datetime: lambda: Scalar("datetime", I64, "type($) is datetime and is_aware($)", "micros($ - EPOCH)", INSTANT),
    timedelta: lambda: Scalar("timedelta", I64, "type($) is timedelta", "micros($)", DURATION),
    time: lambda: Scalar("time", I64, "type($) is time and $.tzinfo is None", "day_micros($)", "day_time($)"),
    Decimal: lambda: Text("Decimal", "type($) is Decimal", "str($).encode()", "Decimal($)"),
}
"""What makes the node of each of the types that are stored as one text, number or piece of bytes."""


def date_struct() -> Struct:
    """The struct of dates."""
    parts: list[tuple[str, str, InPlace]] = [
        ("year", "$.year", Scalar("int", U16, "True")),
        ("month", "$.month", Scalar("int", U8, "True")),
        ("day", "$.day", Scalar("int", U8, "True")),
    ]
    return Struct("date", "Date", "type($) is date", parts, "date($0, $1, $2)")
