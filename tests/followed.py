"""Models and records that the tests of following functions share, and what it means that an answer is the same."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from functools import cached_property
from typing import Any, Optional
from uuid import UUID

from zlmdb.query.expressionsource import Asked
from zlmdb.query.following import Followed, Following

UTC = timezone.utc


class Kind(enum.Enum):
    A = 1
    B = 2
    C = 3


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 9


@dataclass
class Address:
    city: str
    zip: Optional[str] = None

    def is_in(self, *cities: str) -> bool:
        return self.city in cities


@dataclass
class User:
    name: str
    age: int
    country: str = "NO"
    mayor: Optional[str] = None
    active: bool = True
    tags: list[str] = field(default_factory=list)
    address: Optional[Address] = None
    homes: list[Address] = field(default_factory=list)
    kind: Kind = Kind.A
    level: Level = Level.LOW
    born: date = date(2000, 1, 1)
    seen: datetime = datetime(2020, 1, 1, tzinfo=UTC)
    spent: timedelta = timedelta(0)
    score: float = 1.0
    price: Decimal = Decimal(3)
    extra: dict[str, Any] = field(default_factory=dict)
    marks: dict[str, int] = field(default_factory=dict)
    pair: tuple[int, str] = (1, "x")
    blob: bytes = b""
    id: UUID = UUID(int=1)  # noqa: RUF009  # it cannot change
    anything: Any = None

    LIMIT = 18

    @property
    def adult(self) -> bool:
        return self.age >= self.LIMIT

    def older(self, age: int) -> bool:
        return self.age > age

    @property
    def capital(self) -> Optional[str]:
        return None if self.mayor is None else self.mayor.upper()

    @staticmethod
    def twice(number: int) -> int:
        return number * 2

    @classmethod
    def limit(cls) -> int:
        return cls.LIMIT

    @cached_property
    def initial(self) -> str:
        return self.name[:1]

    @property
    def first_tag(self) -> str:
        return self.tags[0] if self.tags else ""


def users() -> list[User]:
    """Records in which every field has values that matter: none, empty, equal to another one, not a number."""
    return [
        User("Ann", 31, "NO", None, True, ["x"], None, [], Kind.A, extra={"a": 3}, anything=3),
        User(
            "Bob",
            17,
            "SE",
            "Bea",
            False,
            [],
            Address("Oslo"),
            [Address("Oslo"), Address("Bonn", "5")],
            Kind.B,
            Level.HIGH,
            date(2005, 1, 1),
            datetime(2019, 1, 1, tzinfo=UTC),
            timedelta(days=2),
            float("nan"),
            Decimal(5),
            {"a": None},
            {"m": 3},
            (2, "y"),
            b"ab",
            UUID(int=2),
            "text",
        ),
        User("Cid", 65, "DE", "Ann", True, ["x", "y"], Address("Bonn", "5"), [Address("Rome")], Kind.C, score=-0.0),
        User("", 0, "DK", "", False, ["z"], Address("", ""), kind=Kind.B, score=9.5, extra={"a": 0}, anything=[1]),
        User(
            "ann",
            -3,
            "",
            None,
            True,
            ["", "x"],
            None,
            extra={"a": 3.5, "b": "t"},
            marks={"m": 0, "n": 7},
            anything=True,
        ),
    ]


def outcome(function: Callable[..., Any], arguments: Sequence[Any], *, condition: bool = False) -> str:
    """What *function* gives, as a text in which different results differ, or which error it raises."""
    try:
        found = function(*arguments)
        found = bool(found) if condition else found
    except RecursionError:
        return "RecursionError"
    except Exception as error:
        return type(error).__name__
    return f"{type(found).__name__} {found!r}"


def agree(followed: Followed, function: Callable[..., Any], records: Sequence[Any], *, condition: bool) -> None:
    """See that *followed* gives for each of *records* what *function* gives, without comparing with it by itself."""
    compiled = written(followed) if records else followed
    for record in records:
        wanted = outcome(function, (record,), condition=condition)
        assert outcome(followed.evaluated, (record,)) == wanted, (followed, followed.reasons, record)
        assert outcome(compiled, (record,), condition=condition) == wanted, (followed, record, compiled)
        again = outcome(followed, (record,))
        assert again == wanted, (again, wanted, getattr(function, "__code__", None), followed.reasons, record)


def written(followed: Followed) -> Callable[[Any], Any]:
    """What the loops of queries ask, on its own: the expression as source."""
    asked = Asked(followed, followed.node)
    names: dict[str, Any] = {}
    source = asked.source(0, names)
    loop = eval(f"lambda {', '.join(asked.names(0))}: lambda value: {source}", names)
    function: Callable[[Any], Any] = loop(*asked.arguments())
    return function


def following(value: Any = User, key: Any = Any) -> Following:
    """A new reader of functions."""
    return Following(value, key)


def all_agree(functions: Iterable[Callable[..., Any]], *, condition: bool, times: int = 1) -> None:
    """What is read of each of *functions*, so many *times*, gives what calling it gives, or was right to be refused."""
    reader, refused = following(), list[Any]()
    read = reader.condition if condition else reader.value
    for function in functions:
        for _ in range(times):
            try:
                followed = read(function)
            except TypeError as error:
                refused.append((function, error))
                continue
            agree(followed, function, users(), condition=condition)
            assert repr(followed)
    for function, error in refused:  # it was right to refuse it: it fails for some record, or is never or always true
        outcomes = {_outcome_class(function, record) for record in users()}
        same = {"True"} if condition and "true for all records" in str(error) else {"False"}
        assert outcomes & {"AttributeError", "TypeError"} or outcomes == same, (function, error)


def _outcome_class(function: Callable[..., Any], record: User) -> str:
    try:
        return str(bool(function(record)))
    except Exception as error:
        return type(error).__name__
