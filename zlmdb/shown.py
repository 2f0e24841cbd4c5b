"""How values and names are shown in messages."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from types import FunctionType
from typing import Optional

_LIMIT = 80
_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = _repr.maxlong = 60


class NotGiven:
    """The default of a parameter that may be left out, where None is a value. `help` shows signatures with it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<not given>"


def shortened(value: object) -> str:
    """The repr of *value*, cut to 80 characters. Also if its own repr fails, as that of what is nested very deeply."""
    if isinstance(value, FunctionType):  # its repr names the function around it, and an address
        return f"<function {value.__name__}>"
    try:
        text = repr(value)
    except Exception:
        text = show(value)
    return text if len(text) <= _LIMIT else text[: _LIMIT - 3] + "..."


def show(value: object) -> str:
    """A short repr of *value*: less of long texts and of large containers. Also if its own repr fails."""
    try:
        return _repr.repr(value)
    except Exception:
        return object.__repr__(value)


def shown_path(path: Optional[str]) -> str:
    """The path of a database, or words for one that has none."""
    return "in memory" if path is None else repr(path)


def nearest(name: str, known: Iterable[str], *, listed: bool = True) -> str:
    """Words for a message that misses *name*: the most similar one of those *known*.

    If none is similar: a list of them, or nothing if *listed* is False.
    """
    import difflib  # late: for this message only

    names = list(known)
    close = difflib.get_close_matches(name, names, 1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"there are {', '.join(map(repr, names)) or 'none'}" if listed else ""


def refuse_options(call: str, given: Iterable[str], known: Iterable[str], instead: Mapping[str, str]) -> None:
    """Raise TypeError if *call* is *given* an option that is not *known*. *instead* says what those of others are."""
    for name in given:
        if name not in known:
            advice = instead.get(name) or nearest(name, known)
            raise TypeError(f"{call}(..., {name}=...): there is no such option; {advice}")
