"""Fields of an index as a declaration spells them: a path, ``address.city``, and what is done to the text there.

``title.casefold()`` and ``normalize('NFKC', title).casefold()`` are written as a query writes them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, Optional

from ...namedtuples import NamedTuple
from ...query.texttransforms import FORMS, METHODS, transform

Texts = tuple[str, ...]
"""The names of transforms, in the order in which they are applied."""


class FieldText(NamedTuple):
    """The *path* of a field and the transforms of its text."""

    path: str
    texts: Texts = ()


def field_text(spelled: str) -> FieldText:
    """What *spelled* means. Raises `TypeError` for a call of anything but the named transforms."""
    if "(" not in spelled:
        return FieldText(spelled)
    try:
        node = ast.parse(spelled, mode="eval").body
    except SyntaxError:  # the key of a dict may be anything
        return FieldText(spelled)
    found = _read(node)
    if found is None:
        known = [f"x.{name}()" for name in METHODS] + [f"normalize({form!r}, x)" for form in FORMS]
        raise TypeError(
            f"an index of {spelled!r}: expected a field, or one of these with a field for x: {', '.join(known)}; for "
            f"other functions declare an index of a function, Index[str](lambda ..., version=1)"
        )
    return found


def _read(node: ast.expr) -> Optional[FieldText]:
    path = _path(node)
    if path is not None:
        return FieldText(path)
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    function, arguments = node.func, node.args
    if isinstance(function, ast.Attribute) and function.attr in METHODS and not arguments:
        inner, name = _read(function.value), f"{function.attr}()"
    elif isinstance(function, ast.Name) and function.id == "normalize" and len(arguments) == 2:
        form = arguments[0]
        if not isinstance(form, ast.Constant) or form.value not in FORMS:
            return None
        inner, name = _read(arguments[1]), f"normalize({form.value!r})"
    else:
        return None
    return None if inner is None else FieldText(inner.path, (*inner.texts, name))


def _path(node: ast.expr) -> Optional[str]:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        holder = _path(node.value)
        return None if holder is None else f"{holder}.{node.attr}"
    return None


def with_texts(take: Callable[[Any], Any], texts: Sequence[Sequence[str]]) -> Callable[[Any], Any]:
    """*take*, which gives an index key of as many parts as *texts*, with the texts among them transformed."""
    functions = [composed(names) for names in texts]
    if len(functions) == 1:
        (only,) = functions
        return lambda value: only(take(value))
    return lambda value: tuple([function(part) for function, part in zip(functions, take(value))])


def composed(names: Sequence[str]) -> Callable[[Any], Any]:
    """The function that applies the transforms *names* to a text, and leaves all else as it is. Raises `ValueError`."""
    functions = [transform(name) for name in names]

    def apply(value: Any) -> Any:
        if isinstance(value, str):
            for function in functions:
                value = function(value)
        return value

    return apply
