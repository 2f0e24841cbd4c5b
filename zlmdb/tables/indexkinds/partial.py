"""Partial indexes: ``where=`` is a condition, and only the records for which it is true are in the index.

The condition is read as that of a query. What is read decides which records have entries, the file records it as a
text, and the planner compares it with the conditions of a query. A function that cannot be read completely, or uses
values that may change, needs a version that says when it has changed, as the function of an index does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Optional

from ...codegen import Recipe
from ...query.canonical import said, why_unsaid
from ...query.expressionsource import Asked
from ...query.following import Followed, Following
from ...query.following.nodes import Argument, Node
from ...query.following.operations import Attribute

_CONDITIONS = Recipe("index condition")


class Where:
    """The condition *function* of the index *name*, on records of the type *model*."""

    def __init__(
        self, name: str, function: Callable[[Any], Any], model: Any, names: Optional[Mapping[str, Any]],
        version: Optional[int],
    ) -> None:  # fmt: skip
        self.followed: Followed = Following(model, Any, names).condition(function)
        if self.followed.keyed:
            raise TypeError(f"index {name!r}: where= takes a function of the value, and not of its key")
        node, parameters = self.followed.node, self.followed.parameters
        text = said(node, parameters)
        if text is None and version is None:
            raise TypeError(
                f"index {name!r}: where= cannot be read completely ({why_unsaid(node, parameters)}): write it without "
                f"that, or give version=1, and increase it when the function changes"
            )
        self.definition: dict[str, Any] = {"where": text or "a function"}
        if version is not None:
            self.definition["version"] = version
        asked = Asked(self.followed, node)
        known: dict[str, Any] = {}
        source = f"def where(value):\n    return {asked.source(0, known)}\n"
        known.update(zip(asked.names(0), asked.arguments()))
        self.holds: Callable[[Any], Any] = _CONDITIONS.functions(name, source, known)["where"]

    def limited(self, take: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """*take*, which gives an index key, for the records in the index; None for the others."""
        holds = self.holds
        return lambda value: take(value) if holds(value) else None

    def fields(self) -> Optional[list[str]]:
        """The fields of a record that it asks for; None if it asks for the record itself."""
        found = list(_fields(self.followed.node))
        return None if None in found else [name for name in found if name is not None]


def _fields(node: Node) -> Iterator[Optional[str]]:
    if isinstance(node, Attribute) and isinstance(node.holder, Argument):
        yield node.name
    elif isinstance(node, Argument) or not (node.parts() or node.settled):
        yield None
    else:
        for part in node.parts():
            yield from _fields(part)
