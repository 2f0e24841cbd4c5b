"""Whether a function takes a value, or a key and a value: ``lambda b: ...`` and ``lambda k, b: ...``."""

from __future__ import annotations

import inspect
import types
from typing import Any, Callable

from ...shown import shortened
from ..ordering import Descending


def takes_key(function: Callable[..., Any]) -> bool:
    """Whether *function* takes a key and a value. Raises `TypeError` for what takes neither one nor two.

    Arguments with defaults do not count: ``lambda b, low=low: ...`` takes a value.
    """
    if type(function) is types.FunctionType and not function.__code__.co_flags & inspect.CO_VARARGS:
        code = function.__code__
        required = code.co_argcount - len(function.__defaults__ or ())
        if required in (1, 2) and not _needs_names(function):
            return required == 2
    return _from_signature(function)


def _needs_names(function: types.FunctionType) -> bool:
    return function.__code__.co_kwonlyargcount > len(function.__kwdefaults__ or {})


def _written(given: Any) -> str:
    """What a function gives for what is *given* in place of one: the name of a field, perhaps, or `desc` of it."""
    down = isinstance(given, Descending)
    text = given.value if isinstance(given, Descending) else given
    if not isinstance(text, str) or not text.lstrip("+-").isidentifier():
        return "..."
    field = f"v.{text.lstrip('+-')}"
    return f"desc({field})" if down or text.startswith("-") else field


def _from_signature(function: Callable[..., Any]) -> bool:
    if not callable(function):
        computed = " (a condition outside of a function is computed at once)" if isinstance(function, bool) else ""
        raise TypeError(
            f"expected a function of a record, got {shortened(function)}{computed}; "
            f"write `lambda v: {_written(function)}`"
        )
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):  # some functions in C do not tell
        return False
    positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    required = [one for one in positional if one.default is one.empty]
    open_ended = any(one.kind is one.VAR_POSITIONAL for one in parameters)
    names = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY and one.default is one.empty]
    if names or len(required) > 2 or not (positional or open_ended):
        takes = ", ".join(map(str, parameters)) or "nothing"
        raise TypeError(
            f"expected a function of a value, or of a key and a value, got one of ({takes}); write `lambda v: ...` or "
            f"`lambda k, v: ...`"
        )
    return len(required) == 2
