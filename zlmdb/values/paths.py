"""Paths to parts of a value that can be read without the rest: names of fields, each of an object in the one before.

A path may end in what is asked of the part, if that is no more than whether it is None, or how many items it has, or in
how it is read.
"""

from __future__ import annotations

from collections.abc import Iterable

Path = tuple[str, ...]

IS_NONE, LENGTH = "is None", "len()"
"""What a path may end in. No field is called so."""

AS_TEXT = "as text"
"""The end of the path of a UUID that is read as the text that is stored, whatever that is: in a third of the time."""


def without_parts(paths: Iterable[Path]) -> list[Path]:
    """*paths*, sorted, without those that lead to a part of what another one leads to."""
    found: list[Path] = []
    for path in sorted(set(paths)):  # a path comes before its parts
        if not any([path[:size] in found for size in range(1, len(path))]):
            found.append(path)
    return found
