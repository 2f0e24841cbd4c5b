"""Types of plain data from the text by which a file names them: ``dict[str, list[int]]``."""

from __future__ import annotations

import ast
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Optional, Union
from uuid import UUID

_NAMES: dict[str, Any] = {
    "None": None, "NoneType": None, "Any": Any, "object": Any, "bool": bool, "int": int, "float": float, "str": str,
    "bytes": bytes, "uuid.UUID": UUID, "datetime.datetime": datetime, "datetime.date": date, "datetime.time": time,
    "datetime.timedelta": timedelta, "decimal.Decimal": Decimal,
}  # fmt: skip
_CONTAINERS: dict[str, Any] = {
    "list": list, "List": list, "set": set, "Set": set, "frozenset": frozenset, "FrozenSet": frozenset, "dict": dict,
    "Dict": dict, "tuple": tuple, "Tuple": tuple,
}  # fmt: skip
_DEEPEST = 50


class _Unknown(Exception):
    """The text names a class, which only the program has."""


def plain_type(text: Optional[str]) -> Any:
    """The type that *text* spells, if it consists of the types of plain data only; otherwise None.

    Nothing is imported or run: a file may hold anything.

    >>> plain_type("dict[str, list[int]]")
    dict[str, list[int]]
    >>> plain_type("Optional[int]") == plain_type("int | None")
    True
    >>> plain_type("User"), plain_type("__import__('os')")
    (None, None)
    """
    if text is None or len(text) > 10_000:
        return None
    try:
        return _type(ast.parse(text, mode="eval").body, 0)
    except (_Unknown, SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return None


def _type(node: ast.AST, depth: int) -> Any:
    if depth > _DEEPEST:
        raise _Unknown
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([_type(node.left, depth + 1), _type(node.right, depth + 1)])
    if isinstance(node, ast.Subscript):
        return _generic(_dotted(node.value), node.slice, depth + 1)
    if isinstance(node, ast.Constant) and node.value is None:
        return None
    name = _dotted(node)
    if name in _CONTAINERS:
        return _CONTAINERS[name]
    if name not in _NAMES:
        raise _Unknown
    return _NAMES[name]


def _generic(name: str, given: ast.AST, depth: int) -> Any:
    nodes: list[ast.AST] = [*given.elts] if isinstance(given, ast.Tuple) else [given]
    last = nodes[-1] if nodes else None
    if name in ("tuple", "Tuple") and isinstance(last, ast.Constant) and last.value is Ellipsis:
        return _CONTAINERS[name][_type(nodes[0], depth), Ellipsis]
    parts = [_type(node, depth) for node in nodes]
    if name == "Union":
        return _union(parts)
    if name == "Optional":
        return _union([*parts, None])
    if name not in _CONTAINERS:
        raise _Unknown
    return _CONTAINERS[name][parts[0] if len(parts) == 1 else tuple(parts)]


def _union(parts: list[Any]) -> Any:
    joined: Any = Union
    return joined[tuple(parts)]


def _dotted(node: ast.AST) -> str:
    """A name with dots; those of `typing` without."""
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}".replace("typing.", "")
    if not isinstance(node, ast.Name):
        raise _Unknown
    return node.id
