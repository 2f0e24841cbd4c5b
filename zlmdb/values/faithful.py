"""Refuses, on writing, plain data that a format would return as another value."""

from __future__ import annotations

from typing import Any, Optional

from ..errors import EncodeError
from .base import KEEP, is_a, show, typename


def refuse_changed(value: Any, back: Any, form: str) -> None:
    """Raise `EncodeError` unless *back*, what is read of the bytes of *value*, is the same, types included."""
    found = _difference(value, back, "the value")
    if found is not None:
        path, given, read = found
        raise EncodeError(
            f"{path} is {show(given)} ({typename(type(given))}), and {form} would return it as {show(read)} "
            f"({typename(type(read))}): store that, {KEEP}; Unchecked stores it nevertheless"
        )


def _difference(value: Any, back: Any, path: str) -> Optional[tuple[str, Any, Any]]:
    """Where *value* and *back* differ, and what is there in each."""
    if type(value) is not type(back):
        return path, value, back
    if is_a(value, dict):
        return _of_dicts(value, back, path)
    if is_a(value, (list, tuple)):
        if len(value) == len(back):
            for position, (one, other) in enumerate(zip(value, back)):
                found = _difference(one, other, f"{path}[{position}]")
                if found is not None:
                    return found
            return None
    elif value == back or value != value:
        return None
    return path, value, back


def _of_dicts(value: Any, back: Any, path: str) -> Optional[tuple[str, Any, Any]]:
    if len(value) != len(back):
        return path, value, back
    for (key, one), (read, other) in zip(value.items(), back.items()):
        found = _difference(key, read, f"a key of {path}") or _difference(one, other, f"{path}[{show(key)}]")
        if found is not None:
            return found
    return None
