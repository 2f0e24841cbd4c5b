"""Persons and their orders, and the questions about them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

CITIES = tuple(f"city {number}" for number in range(50))
AGES = range(1000)
CHUNK = 10_000


@dataclass
class Person:
    """*id* is the key, *email* unique, *age* has an index; the other fields have none."""

    id: int
    name: str
    email: str
    age: int
    city: str
    score: float


@dataclass
class Order:
    """*id* is the key, *person* that of a person; it has an index."""

    id: int
    person: int
    total: float


def persons(size: int) -> Iterator[Person]:
    """The same for the same size; keys from 1."""
    dice = random.Random(size)
    for start in range(1, size + 1, CHUNK):
        numbers = range(start, min(start + CHUNK, size + 1))
        ages, cities = dice.choices(AGES, k=len(numbers)), dice.choices(CITIES, k=len(numbers))
        for n, age, city in zip(numbers, ages, cities):
            yield Person(n, f"name {n}", email(n), age, city, dice.random())


def orders(size: int) -> Iterator[Order]:
    """As many as persons, who have none, one or several; keys from 1."""
    dice = random.Random(size + 1)
    for start in range(1, size + 1, CHUNK):
        numbers = range(start, min(start + CHUNK, size + 1))
        for n, person in zip(numbers, dice.choices(range(1, size + 1), k=len(numbers))):
            yield Order(n, person, n / 4)


def email(number: int) -> str:
    return f"p{number}@example.com"


class Asker:
    """A store with the persons and orders in it. What is given is what the store gives: objects, tuples.

    Persons and orders come as whole records, with all fields, except where one field or sums are asked for.
    """

    scans_only: ClassVar[bool] = False
    """Whether it answers the questions without an index only."""

    slow: ClassVar[frozenset[str]] = frozenset()
    """Questions that it answers by sorting everything: they are asked once a turn."""

    unable: ClassVar[Mapping[str, str]] = {}
    """Questions that it has no way to answer, and why."""

    def __init__(self, directory: Path, size: int) -> None:
        """Make the store in *directory*, and fill it."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    # -- by an index -------------------------------------------------------------------------------------------------

    def one(self, email: str) -> Any:
        """The person with this e-mail address."""
        raise NotImplementedError

    def one_by_view(self, email: str) -> Any:
        """The same, where an index can be read without a query."""
        return self.one(email)

    def equal(self, age: int) -> list[Any]:
        """The persons of this age: one thousandth."""
        raise NotImplementedError

    def within(self, low: int, high: int) -> list[Any]:
        """The persons of ``low <= age < high``."""
        raise NotImplementedError

    def among(self, ages: tuple[int, ...]) -> list[Any]:
        """The names of the persons whose age is one of these."""
        raise NotImplementedError

    def ordered(self, count: int) -> list[Any]:
        """The first persons by age, those of one age by key."""
        raise NotImplementedError

    def cursor(self, count: int) -> Any:
        """Where the page of so many ends that begins the order of `ordered`."""
        last = self.ordered(count)[-1]
        return last.age, last.id

    def page(self, count: int, cursor: Any) -> list[Any]:
        """So many persons behind *cursor*."""
        raise NotImplementedError

    def orders_of(self, person: int) -> list[Any]:
        """The orders of the person with this key."""
        raise NotImplementedError

    def orders_by(self, email: str) -> list[Any]:
        """The orders of the person with this e-mail address."""
        raise NotImplementedError

    # -- without an index ----------------------------------------------------------------------------------------------

    def nobody(self, name: str) -> list[Any]:
        """The persons with this name."""
        raise NotImplementedError

    def names(self) -> list[Any]:
        """The names of all persons, by key."""
        raise NotImplementedError

    def top(self, count: int) -> list[Any]:
        """The persons with the highest scores."""
        raise NotImplementedError

    def groups(self) -> Any:
        """How many persons live in each city, and the sum of their scores."""
        raise NotImplementedError
