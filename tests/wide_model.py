"""A wide model class, and what it holds, for tests of generated encoders."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Literal, NamedTuple, Optional, Union
from uuid import UUID


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Pair(NamedTuple):
    left: int
    right: str = "r"


@dataclass
class Inner:
    a: int
    b: Optional[str] = None


@dataclass
class Wide:
    """A field of most kinds; those with defaults are for who inherits it."""

    number: int
    real: float
    text: str
    yes: bool
    data: bytes
    id: UUID
    born: date
    when: datetime
    wakes: time
    lasting: timedelta
    price: Decimal
    color: Color
    role: Literal["a", 1]
    pair: Pair
    inner: Inner
    perhaps: Optional[Inner]
    either: Union[int, str, None]
    maybe: Optional[UUID]
    numbers: list[int]
    reals: list[float]
    texts: list[str]
    inners: list[Inner]
    groups: set[str]
    path: tuple[int, ...]
    scores: dict[str, float]
    by_number: dict[int, str]
    by_name: dict[str, Inner]
