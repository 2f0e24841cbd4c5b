"""Writes texts fast: what packs short ones, and the vectors of lists that come again and again, such as tags."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Callable

from ..recurring import Known
from .runtime import put_strs

BRIEF = 64
"""Texts of fewer bytes than these have what packs them at hand."""

TOGETHER = 2
"""How many short texts are packed at once: there are 16 sizes of each."""

FEW = 9
"""Lists of fewer texts than these are looked at."""

LONG = 512
"""And of no more bytes than these."""

_only_str = frozenset({str}).issuperset


class TextPacks(dict[int, tuple[Callable[..., bytes], int]]):
    """By the length of a text, what packs a table that it ends, and the size of that."""

    def __init__(self, codes: str, align: int) -> None:
        super().__init__()
        self._codes, self._align = codes, align

    def __missing__(self, length: int) -> tuple[Callable[..., bytes], int]:
        codes = f"{self._codes}{length}s{4 - length % 4}x"
        form = struct.Struct(f"{codes}{-struct.calcsize(codes) % self._align}x")
        made: tuple[Callable[..., bytes], int] = form.pack, form.size
        if len(self) < 1024:
            self[length] = made
        return made


def pack_short(codes: str, count: int) -> list[Any]:
    """What packs *count* short texts that follow one another, by a quarter of each length, in lists inside lists.

    *codes* are of what comes before, and of the length of the first text.
    """
    # A text that is shorter than its room is filled up with NULs: its end, and the padding.
    forms = [f"{codes}{4 * words + 4}s" for words in range(BRIEF // 4)]
    if count > 1:
        return [pack_short(f"{form}I", count - 1) for form in forms]
    return [struct.Struct(form).pack for form in forms]


SHORT = {count: pack_short("<I", count) for count in range(1, TOGETHER + 1)}
"""What packs short texts, by how many they are."""


class TextLists(Known[tuple[Any, ...], bytes]):
    """By the texts of a list, its vector: it has the same bytes at any position."""

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
