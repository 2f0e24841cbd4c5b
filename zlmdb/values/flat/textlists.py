"""Recurring lists of texts, such as tags: their vectors have the same bytes at any position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..recurring import Known
from .runtime import put_strs

FEW = 9
"""Lists of fewer texts than these are looked at."""

LONG = 512
"""And of no more bytes than these."""

_only_str = frozenset({str}).issuperset


class TextLists(Known[tuple[Any, ...], bytes]):
    """By the texts of a list, its vector."""

    def write(self, texts: Sequence[Any]) -> bytes:
        """The vector of *texts*. Raises `Misfit` for what is no str."""
        few = len(texts) < FEW
        if self and few:
            data = self.get(tuple(texts))
            if data is not None and _only_str(map(type, texts)):  # what is equal need not be text
                return data
        data = put_strs(texts)
        wait = self.wait
        wait[0] -= 1
        if wait[0] < 0 and few and len(data) <= LONG:
            self._look(tuple(texts), data)
        return data

    def _look(self, key: tuple[Any, ...], data: bytes) -> None:
        if self.often(key):
            self.learn(key, lambda: data)
