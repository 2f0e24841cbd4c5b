"""The functions that may be called while following, and in place of which a call can stand in an expression.

Each of them gives the same for the same arguments, changes nothing, asks neither the time nor the world, and calls
nothing that is not given to it. What is not listed here and cannot be followed is never called while following.
"""

from __future__ import annotations

import builtins
import fnmatch
import functools
import itertools
import math
import operator
import re
import unicodedata
import uuid
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ..ordering import desc
from .known import BOOL, DATE, DATETIME, FLOAT, INT, LIST, SOMETHING, STR, TIMEDELTA, UNKNOWN, Known

_HOME = SOMETHING.home

PURE: Mapping[Any, Known] = {
    **{
        one: INT if name in ("ceil", "floor", "trunc", "factorial", "gcd", "isqrt", "comb", "perm", "lcm") else FLOAT
        for name, one in vars(math).items()
        if callable(one) and not name.startswith("_") and name not in ("prod", "modf", "frexp")
    },
    math.isnan: BOOL,
    math.isinf: BOOL,
    math.isfinite: BOOL,
    math.isclose: BOOL,
    math.prod: SOMETHING,
    math.modf: SOMETHING,
    math.frexp: SOMETHING,
    builtins.len: INT,
    builtins.ord: INT,
    builtins.chr: STR,
    builtins.bin: STR,
    builtins.hex: STR,
    builtins.oct: STR,
    re.match: UNKNOWN,
    re.search: UNKNOWN,
    re.fullmatch: UNKNOWN,
    re.findall: LIST,
    re.split: LIST,
    re.sub: STR,
    re.escape: STR,
    re.compile: _HOME.known(re.Pattern),
    fnmatch.fnmatchcase: BOOL,
    unicodedata.normalize: STR,
    unicodedata.category: STR,
    date.fromisoformat: DATE,
    date.fromordinal: DATE,
    datetime.fromisoformat: DATETIME,
    datetime.combine: DATETIME,
    datetime.strptime: DATETIME,
    int.from_bytes: INT,
    float.fromhex: FLOAT,
    desc: SOMETHING,
}
"""Pure functions, with what is known of what they give."""

CLASSES: Mapping[Any, Known] = {
    **{one: _HOME.known(one) for one in (int, float, str, bytes, complex, list, tuple, set, frozenset, dict)},
    date: DATE,
    datetime: DATETIME,
    timedelta: TIMEDELTA,
    **{one: _HOME.known(one) for one in (time, timezone, Decimal, Fraction, uuid.UUID)},
}
"""Classes whose instances are made by nothing but the arguments."""

_NO_OPERATORS = ("attrgetter", "itemgetter", "methodcaller", "call", "is_", "is_not", "is_none", "is_not_none")
_OPERATORS = {name for name in operator.__all__ if name not in _NO_OPERATORS}

TRANSPARENT: frozenset[Any] = frozenset(
    {
        *[getattr(operator, name) for name in _OPERATORS],
        *[one for name, one in vars(itertools).items() if not name.startswith("_") and callable(one)],
        functools.reduce,
        *(builtins.abs, builtins.divmod, builtins.pow, builtins.round, builtins.iter, builtins.next),
        *(builtins.enumerate, builtins.zip, builtins.map, builtins.filter, builtins.reversed),
        builtins.slice,
        functools.partial,
        operator.itemgetter,
    }
)
"""Functions that do nothing but what operators and loops do: they are called with recorders as they are."""
