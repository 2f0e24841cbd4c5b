"""Functions that the generated loops of queries call, for values whose class is not known when a loop is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..values.base import is_a


def take(holder: Any, name: str) -> Any:
    """The field *name* of *holder*, of a dict its item; None where there is nothing to take it from."""
    if holder is None:
        return None
    return holder.get(name) if is_a(holder, Mapping) else getattr(holder, name)


def take_if_any(holder: Any, name: str) -> Any:
    """As `take`, of one of several types: None where it is one without such a field."""
    return holder.get(name) if is_a(holder, Mapping) else getattr(holder, name, None)


def among(value: Any, given: Any) -> bool:
    """Whether *value* equals one of *given*, also when it can be in no set."""
    try:
        return value in given
    except TypeError:
        return any(value == one for one in given)
