"""What a function returns that runs in a transaction, or after it: not a coroutine, whose body would never run."""

from __future__ import annotations

from collections.abc import Callable
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, NoReturn

from ..handlers import SUSPENDS, code_of
from ..shown import shortened

BODIES = frozenset({CoroutineType, GeneratorType, AsyncGeneratorType})
"""Types of what a call of a function with ``async`` or ``yield`` returns, before anything of its body has run."""

_YIELDS = 0x20  # `co_flags` of a generator; the others have ``async``


def refuse_body(result: Any) -> None:
    """Raise TypeError for *result*, one of `BODIES`, unless it is that of a generator expression."""
    if not _is_expression(result):
        _refuse(result, _AT_ONCE)


def refuse_uncallable(called: str, given: Any) -> NoReturn:
    """Raise TypeError for *given*, which the method *called* of a database got in place of a function."""
    shown = shortened(given)
    if isinstance(given, CoroutineType):
        given.close()  # else Python warns that nobody awaited it
    raise TypeError(
        f"{called}() takes a function of the tables, which it calls in a transaction, and got {shown}: "
        f"write db.{called}(function) without parentheses after its name, or db.{called}(lambda t: function(t, ...))"
    )


def called_after(fn: Callable[[], object]) -> Callable[[bool], object]:
    """What calls *fn* if its transaction is stored. Raises TypeError for what is no plain function."""
    if not callable(fn):
        raise TypeError(
            f"after_commit({fn!r}): expected a function without arguments, which is called after the commit"
        )
    code = code_of(fn)
    if code is not None and code.co_flags & SUSPENDS:
        raise _error(code.co_name, "yield" if code.co_flags & _YIELDS else "async", _LATER)

    def stored(kept: bool) -> None:
        if kept:
            result: Any = fn()
            if type(result) in BODIES and not _is_expression(result):
                _refuse(result, _LATER)

    return stored


_AT_ONCE = (
    "give a plain function, which does all its work in the transaction before it returns, without await and yield"
)
_LATER = (
    "nobody awaits it after the commit: give a plain function; in asyncio, "
    "`lambda: asyncio.run_coroutine_threadsafe(work(), loop)` lets the event loop run work()"
)


def _is_expression(result: Any) -> bool:
    """Whether it is that of a generator expression, which somebody else may iterate over."""
    return isinstance(result, GeneratorType) and result.gi_code.co_name == "<genexpr>"


def _refuse(result: Any, advice: str) -> NoReturn:
    word = "yield" if isinstance(result, GeneratorType) else "async"
    if isinstance(result, CoroutineType):
        result.close()  # else Python warns that nobody awaited it
    raise _error(result.__qualname__, word, advice)


def _error(name: str, word: str, advice: str) -> TypeError:
    return TypeError(f"{name}() has {word!r} in it, and calling it runs nothing of its body: {advice}")
