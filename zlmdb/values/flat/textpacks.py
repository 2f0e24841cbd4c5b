"""Functions that pack short texts, by their lengths."""

from __future__ import annotations

import struct
from typing import Any, Callable

FEW = 64
"""Texts of fewer bytes than these have what packs them at hand."""

TOGETHER = 2
"""How many short texts are packed at once: there are 16 sizes of each."""


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
    forms = [f"{codes}{4 * words + 4}s" for words in range(FEW // 4)]
    if count > 1:
        return [pack_short(f"{form}I", count - 1) for form in forms]
    return [struct.Struct(form).pack for form in forms]


SHORT = {count: pack_short("<I", count) for count in range(1, TOGETHER + 1)}
"""What packs short texts, by how many they are."""
