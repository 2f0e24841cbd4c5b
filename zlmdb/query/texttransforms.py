"""The named transforms of texts: those by which a text may be indexed, and which are recognised in a function.

``Index[str]("title.casefold()")`` serves ``b.title.casefold() == "x"``. A transform is a line here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

from .following import Node, spelled
from .following.nodes import Constant
from .following.operations import Apply, Method

METHODS = ("casefold", "lower", "upper", "strip")
"""Methods of a text, without arguments."""

FORMS = ("NFC", "NFD", "NFKC", "NFKD")
"""The first arguments of `unicodedata.normalize`."""

NAMES = (*[f"{name}()" for name in METHODS], *[f"normalize({form!r})" for form in FORMS])
"""What the transforms are called in the path of a field, and in a file."""


def transform(name: str) -> Callable[[str], str]:
    """The function of the transform *name*. Raises `ValueError` if it is none of `NAMES`."""
    if name not in NAMES:
        raise ValueError(f"there is no transform of texts named {name!r}; there are {', '.join(NAMES)}")
    method = name[:-2]
    if method in METHODS:
        return getattr(str, method)
    from unicodedata import normalize  # late: few need it

    form: Any = name[len("normalize('") : -2]
    return lambda text: normalize(form, text)


def transformed(node: Node) -> Optional[tuple[Node, str]]:
    """The text of which *node* is a named transform, and the name."""
    if isinstance(node, Method):
        if node.name in METHODS and not node.arguments and node.holder.known.cls is str:
            return node.holder, f"{node.name}()"
    elif isinstance(node, Apply) and not node.names and len(node.arguments) == 2:
        form, text = node.arguments
        named = isinstance(form, Constant) and form.value in FORMS and text.known.cls is str
        if named and _is_normalize(node.function.value):
            return text, f"normalize({form.source(spelled)})"
    return None


def _is_normalize(function: object) -> bool:
    from unicodedata import normalize  # late, as above

    return function is normalize
