"""What a loop is given for each part of a function that asks for the records that refer to a record: see `Nested`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..handlers import let_through
from .following import Given, Node
from .following.nested import Nested


def outermost(node: Node) -> Iterator[Nested]:
    """The `Nested` in *node* that are in no other one."""
    if isinstance(node, Nested):
        yield node
    else:
        for part in node.parts():
            yield from outermost(part)


def reading(node: Nested, parameters: Sequence[Any]) -> Callable[..., Any]:
    """The function of a key in the index, and of the outer leaves of *node*, that gives what *node* is then."""
    question = _Question(node, parameters)
    try:
        found: Any = question.view()._reader(node, parameters, question)
    except Exception as error:  # if a record asks, it raises again
        let_through(error)
        return question
    return question if found is None else found


class _Question:
    """As `reading`, in the way of the program itself."""

    __slots__ = ("_node", "_parameters")

    def __init__(self, node: Nested, parameters: Sequence[Any]) -> None:
        self._node, self._parameters = node, parameters

    def view(self) -> Any:
        """The index."""
        rows: Any = self._node.rows
        return rows.holder.evaluate(Given((), self._parameters))

    def __call__(self, key: Any, *outer: Any) -> Any:
        return self._node.asked(self.view()[key], self._parameters, outer)
