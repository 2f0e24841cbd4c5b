"""Methods and attributes of plain values that may be used while following: pure ones, and what they give."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Optional, Union
from uuid import UUID

from .known import (
    BOOL,
    BYTES,
    DATE,
    FLOAT,
    INT,
    SOMETHING,
    STR,
    TEXTS,
    TIME,
    UNKNOWN,
    Home,
    Known,
    derives,
)

SAME = "same"
"""What a method gives is of the type of what it was called on."""

Result = Union[Known, str]


def _methods(*lines: tuple[Result, str]) -> dict[str, Result]:
    return {name: result for result, names in lines for name in names.split()}


_TEXT = _methods(
    (SAME, "capitalize center expandtabs join ljust lower lstrip removeprefix removesuffix replace rjust rstrip strip"),
    (SAME, "swapcase title translate upper zfill"),
    (BOOL, "endswith isalnum isalpha isascii isdigit islower isspace istitle isupper startswith"),
    (INT, "count find index rfind rindex"),
    (SOMETHING, "partition rpartition split rsplit splitlines"),
)
_DATE = _methods(
    (INT, "isoweekday toordinal weekday"),
    (STR, "ctime isoformat strftime"),
    (SAME, "replace"),
    (SOMETHING, "isocalendar"),
)
_SET = _methods(
    (BOOL, "isdisjoint issubset issuperset"), (SAME, "copy difference intersection symmetric_difference union")
)

METHODS: dict[Any, dict[str, Result]] = {
    str: {
        **_TEXT,
        **_methods(
            (SAME, "casefold format"), (BOOL, "isdecimal isidentifier isnumeric isprintable"), (BYTES, "encode")
        ),
        **_methods((TEXTS, "split rsplit splitlines")),
    },
    bytes: {**_TEXT, **_methods((STR, "decode hex"))},
    bool: _methods((INT, "bit_length")),
    int: _methods((INT, "bit_length conjugate"), (BYTES, "to_bytes"), (SOMETHING, "as_integer_ratio")),
    float: _methods((BOOL, "is_integer"), (STR, "hex"), (SOMETHING, "as_integer_ratio")),
    complex: _methods((SAME, "conjugate")),
    Decimal: _methods(
        (BOOL, "is_finite is_infinite is_nan is_signed is_zero"),
        (SAME, "copy_abs copy_negate normalize quantize sqrt to_integral_value"),
        (INT, "adjusted"),
        (SOMETHING, "as_tuple as_integer_ratio"),
    ),
    date: {**_DATE, **_methods((SOMETHING, "timetuple"))},
    datetime: {
        **_DATE,
        **_methods((DATE, "date"), (TIME, "time timetz"), (FLOAT, "timestamp"), (SAME, "astimezone")),
        **_methods((UNKNOWN, "utcoffset tzname dst"), (SOMETHING, "timetuple utctimetuple")),
    },
    time: _methods((STR, "isoformat strftime"), (SAME, "replace"), (UNKNOWN, "utcoffset tzname dst")),
    timedelta: _methods((FLOAT, "total_seconds")),
    UUID: {},
    list: _methods((INT, "count index"), (SAME, "copy")),
    tuple: _methods((INT, "count index")),
    set: _SET,
    frozenset: _SET,
    dict: _methods((UNKNOWN, "get"), (SOMETHING, "items keys values"), (SAME, "copy")),
    re.Pattern: _methods((UNKNOWN, "fullmatch match search"), (SOMETHING, "findall split sub subn")),
    re.Match: _methods((UNKNOWN, "group"), (SOMETHING, "groupdict groups span"), (INT, "end start")),
}
"""The pure methods of each class. None of them changes anything, or asks the time, or calls what is not given to it."""

ATTRIBUTES: dict[Any, dict[str, Result]] = {
    int: _methods((INT, "denominator imag numerator real")),
    bool: _methods((INT, "denominator imag numerator real")),
    float: _methods((FLOAT, "imag real")),
    complex: _methods((FLOAT, "imag real")),
    date: _methods((INT, "day month year")),
    datetime: _methods((INT, "day fold hour microsecond minute month second year"), (UNKNOWN, "tzinfo")),
    time: _methods((INT, "fold hour microsecond minute second"), (UNKNOWN, "tzinfo")),
    timedelta: _methods((INT, "days microseconds seconds")),
    UUID: _methods((INT, "int node time version"), (STR, "hex urn"), (BYTES, "bytes")),
    re.Pattern: _methods((SOMETHING, "pattern"), (INT, "flags")),
}

ALL_METHODS = {name for methods in METHODS.values() for name in methods}
"""Names of pure methods, for values of which nothing is known: plain data has no others by these names."""

_CHANGING = """
    add append clear difference_update discard extend insert intersection_update pop popitem remove reverse setdefault
    sort symmetric_difference_update update
"""
CHANGING = frozenset(_CHANGING.split())
"""Methods that change what they are called on."""

_NEVER_RAISING = """
    bit_length capitalize casefold copy date endswith find get is_integer isalnum isalpha isascii isdecimal isdigit
    isidentifier islower isnumeric isoformat isoweekday isprintable isspace istitle isupper items keys lower lstrip
    rfind rstrip startswith strip swapcase title toordinal total_seconds upper values weekday
"""
NEVER_RAISING = frozenset(_NEVER_RAISING.split())
"""Methods that raise nothing, however they are called on what has them."""

ENUM: Mapping[str, Known] = {"name": STR, "value": UNKNOWN}


def base(cls: Any) -> Any:
    """The class in `METHODS` whose methods values of *cls* have: of a TypedDict dict; None if there is none."""
    if cls is None or cls in METHODS:
        return cls
    return dict if derives(cls, dict) and hasattr(cls, "__total__") else None


def result_of(known: Known, name: str) -> Known:
    """What is known of what the method *name* gives."""
    found = METHODS[base(known.cls)][name]
    if isinstance(found, Known):
        return _of_mapping(known, name) if known.cls is dict else found
    return known.required


def _of_mapping(known: Known, name: str) -> Known:
    key, value = known.element(), known.item()
    home: Home = known.home
    if name == "get":
        return home.known(Optional[value.annotation]) if not value.optional else value
    if name == "items":
        return home.known(Iterable[tuple[key.annotation, _annotation(value)]])  # type: ignore[misc, name-defined]
    if name in ("keys", "values"):
        return home.known(Iterable[_annotation(key if name == "keys" else value)])  # type: ignore[misc]
    return SOMETHING


def _annotation(known: Known) -> Any:
    return Optional[known.annotation] if known.optional and not known.unknown else known.annotation


def is_enum_class(value: object) -> bool:
    """Whether *value* is an Enum class."""
    return isinstance(value, enum.EnumMeta)
