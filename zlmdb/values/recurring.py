"""Recurring parts of values, such as the keys of their dicts: a part that occurs often gets its own function."""

from __future__ import annotations

import struct
from typing import Callable, TypeVar

EVERY = 8
"""One unknown dict in so many is looked at."""

SELDOM = 4096
"""Or at the fewest one in so many."""

OFTEN = 8
"""How many times the same keys are found when one looks, until there is a function: that takes as long as 100 dicts."""

MISSES = 64
"""How many times it may be the wrong one."""

MANY = 16
"""How many functions there are for one kind of dict."""

Key = TypeVar("Key")
Made = TypeVar("Made")


class Known(dict[Key, Made]):
    """Functions for sets of keys, and how they come to be known.

    Looking at unknown ones costs more than they do: one in so many is looked at, and the less comes of it the fewer.
    """

    def __init__(self) -> None:
        super().__init__()
        self.wait = [EVERY]
        """How many unknown ones are still passed by before one is looked at."""
        self._every, self._sampled = EVERY, 0
        self._met: dict[int, int] = {}
        self._missed: dict[Key, int] = {}

    def often(self, key: Key) -> bool:
        """Whether *key*, which is now looked at, has been met often enough."""
        number = hash(key)  # keys may be large, and one that is taken for another is only early
        self._met[number] = self._met.get(number, 0) + 1
        self._sampled += 1
        if len(self) >= MANY or self._sampled > 64 * OFTEN:
            self.fewer()
        self.wait[0] = self._every
        return self._met.get(number, 0) >= OFTEN and len(self) < MANY

    def fewer(self) -> None:
        """Look at fewer of those to come."""
        self._every = min(8 * self._every, SELDOM)
        self._sampled = 0
        self._met.clear()

    def learn(self, key: Key, make: Callable[[], Made]) -> None:
        """Have what *make* makes for *key*."""
        self._sampled = self._met[hash(key)] = 0
        try:
            self[key] = make()
        except (ValueError, IndexError, struct.error):
            self.fewer()

    def miss(self, key: Key) -> None:
        """*key* was taken for one that it is not. Where that is common it is forgotten."""
        missed = self._missed[key] = self._missed.get(key, 0) + 1
        if missed > MISSES:
            self.pop(key, None)
            self._missed.pop(key, None)
            self.fewer()
