"""Checks of what a program gives to `Database.changes`, and asks of what that returns."""

from __future__ import annotations

from typing import Any

from ..numeric import is_whole
from ..shown import shortened
from .change import Change

_LONGEST_NAME = 255  # bytes


def check_number(given: Any, what: str, meant: str) -> None:
    """Raise TypeError or ValueError unless *given* is a whole number, 0 or more. *what* is it, as it is *meant*."""
    check_whole(given, what, meant)
    if given < 0:
        raise ValueError(f"{what}{shortened(given)}{_end(what)}: expected {meant}")


def check_whole(given: Any, what: str, meant: str) -> None:
    """Raise TypeError unless *given* is a whole number."""
    if is_whole(given):
        return
    kind: Any = given.__class__
    advice = f"; write {what}change.number" if kind is Change and what.endswith("=") else ""
    raise TypeError(f"{what}{shortened(given)}{_end(what)}: expected {meant}{advice}")


def _end(what: str) -> str:
    return ")" if "(" in what else ""


def check_consumer(given: Any) -> None:
    """Raise TypeError or ValueError unless *given* is the name of a consumer."""
    if not isinstance(given, str):
        raise TypeError(f"consumer={shortened(given)}: expected a name, which is a text")
    try:
        size = len(given.encode())
    except UnicodeEncodeError:  # a part of a character, as of a file's name that is no text
        size = 0
    if not 0 < size <= _LONGEST_NAME:
        raise ValueError(f"consumer={shortened(given)}: expected a name of 1 to {_LONGEST_NAME} bytes in UTF-8")
