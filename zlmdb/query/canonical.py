"""What a condition says as a text that is the same for all conditions that say the same in the same words.

Unlike what `spelled` writes for people, it has the values of what is captured, all of them at length. It tells whether
two conditions are the same, in one program or by a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from types import MethodType
from typing import Any, Optional, cast

from ..values.base import is_a
from .following.known import PLAIN, kind_of
from .following.nodeof import has_fixed_zone
from .following.nodes import Argument, Called, Constant, Node, Parameter, walk


def said(node: Node, parameters: Sequence[Any]) -> Optional[str]:
    """*node*, with the captured *parameters*; None if it calls functions, or has values that no text says."""
    try:
        return _spell(node, parameters)
    except _Unsaid:
        return None


def why_unsaid(node: Node, parameters: Sequence[Any]) -> str:
    """Why `said` gives None."""
    for part in walk(node):
        if isinstance(part, Called):
            return "; ".join(part.reasons)
    try:
        _spell(node, parameters)
    except _Unsaid as error:
        return str(error)
    return ""


class _Unsaid(Exception):
    """No text says what a value is."""


def _spell(node: Node, parameters: Sequence[Any]) -> str:
    if isinstance(node, Called):
        raise _Unsaid("it is called")
    if isinstance(node, Argument):
        return f"record{node.position or ''}"
    if isinstance(node, Parameter):
        if not node.settled:
            raise _Unsaid(f"{node.name} may change")
        return _literal(parameters[node.number])
    if isinstance(node, Constant):
        return _literal(node.value)
    return node.source(lambda part: _spell(part, parameters))


def _literal(value: Any) -> str:
    kind = kind_of(value)
    if not has_fixed_zone(value):
        raise _Unsaid(f"{value!r} is of a zone whose clocks change: write it in UTC")
    if value is None or value is Ellipsis or kind in PLAIN or kind is range:
        return repr(value)
    if is_a(value, Enum):
        return f"{kind.__qualname__}.{value.name}"
    if kind in (tuple, frozenset, set):
        texts = [_literal(one) for one in cast("tuple[Any, ...]", value)]
        return f"({', '.join(texts)},)" if kind is tuple else "{" + ", ".join(sorted(texts)) + "}"
    if kind is MethodType:  # as PyPy has those of `unicodedata`
        return f"{kind_of(value.__self__).__module__}.{value.__name__}"
    name = getattr(value, "__qualname__", None)
    module = getattr(value, "__module__", None)
    if isinstance(name, str) and "<" not in name and callable(value):
        return name if module in (None, "builtins") else f"{module}.{name}"
    raise _Unsaid(f"no text says what {value!r} is")
