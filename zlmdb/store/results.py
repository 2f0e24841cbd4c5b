"""What a function that runs in a transaction returns: not a coroutine, whose body would never run."""

from __future__ import annotations

from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, NoReturn

BODIES = frozenset({CoroutineType, GeneratorType, AsyncGeneratorType})
"""Types of what a call of a function with ``async`` or ``yield`` returns, before anything of its body has run."""


def refuse_body(result: Any) -> None:
    """Raise TypeError for *result*, one of `BODIES`, unless it is that of a generator expression."""
    if isinstance(result, GeneratorType):
        if result.gi_code.co_name != "<genexpr>":
            _refuse(result, "yield")
    else:
        if isinstance(result, CoroutineType):
            result.close()  # else Python warns that nobody awaited it
        _refuse(result, "async")


def _refuse(result: Any, word: str) -> NoReturn:
    raise TypeError(
        f"{result.__qualname__}() has {word!r} in it, and calling it runs nothing of its body: give a plain function, "
        f"which does all its work in the transaction before it returns, without await and yield"
    )
