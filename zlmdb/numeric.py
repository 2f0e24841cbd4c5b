"""Whether what a program gives is a number: to Python a bool is one, which is hardly ever what was meant."""

from __future__ import annotations


def is_whole(given: object) -> bool:
    """Whether *given* is an int, and no bool."""
    return isinstance(given, int) and not isinstance(given, bool)


def is_number(given: object) -> bool:
    """Whether *given* is an int or a float, and no bool."""
    return isinstance(given, (int, float)) and not isinstance(given, bool)
