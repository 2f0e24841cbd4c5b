"""Whether what a program gives is a number, or seconds: to Python a bool is one, which is hardly ever meant."""

from __future__ import annotations

from math import inf
from typing import Any

from .shown import shortened


def is_whole(given: object) -> bool:
    """Whether *given* is an int, and no bool."""
    return isinstance(given, int) and not isinstance(given, bool)


def is_number(given: object) -> bool:
    """Whether *given* is an int or a float, and no bool."""
    return isinstance(given, (int, float)) and not isinstance(given, bool)


def checked_seconds(name: str, given: Any, more: str = "", *, most: float = inf, negative: bool = False) -> Any:
    """*given*, the argument *name*, if it is a number of seconds, 0 or more; *negative* ones, too, if there are such.

    An int beyond all floats is returned as infinity. *more* ends the sentence of the error: what else is possible.
    Raises TypeError for what is no number, else ValueError.
    """
    expected = f"expected seconds{'' if negative else ', 0 or more'}{more}"
    try:
        seconds = given + 0.0
    except OverflowError:
        given = seconds = inf if given > 0 else -inf
    except TypeError:
        seconds = None
    if seconds is None or isinstance(seconds, complex):
        raise TypeError(f"{name}={shortened(given)}: {expected}")
    if isinstance(given, bool) or not (-inf if negative else 0) <= seconds <= most:
        raise ValueError(f"{name}={shortened(given)}: {expected}")
    return given
