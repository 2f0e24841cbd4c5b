"""Look-ups that give None for a missing key: ``(x := t.users.get(o.user)) is not None and x.city == "Rome"``.

Where the function knows that the record is there, ``t.users.get(key)`` is the linked record ``t.users[key]``, of which
the rest of the query makes more: an index finds it, or it is read once.
"""

from __future__ import annotations

from .known import BOOL
from .linked import Got, Link
from .nested import Nested
from .nodes import Node, Nodes, replaced, walk
from .operations import Compare, Conditional, Each, IsNone, Joined, Not

_Found = frozenset[Node]
"""The look-ups that have surely found a record."""


def with_links(nodes: Nodes, node: Node) -> Node:
    """*node* with links in place of look-ups, where these have surely found a record."""
    if not any([isinstance(one, Got) for one in walk(node)]):
        return node
    return _Lookups(nodes).within(node, frozenset())


class _Lookups:
    """Puts links in place of look-ups, the same parts for the same ones."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._made: dict[tuple[Node, _Found], Node] = {}

    def within(self, node: Node, found: _Found) -> Node:
        """*node*, where all of *found* have found a record."""
        made = self._made.get((node, found))
        if made is None:
            made = self._made[node, found] = self._within(node, found)
        return made

    def _within(self, node: Node, found: _Found) -> Node:
        if isinstance(node, Got) and node in found:
            return self._nodes.make(Link, node.holder, self.within(node.arguments[0], found), True, node.known.required)
        if isinstance(node, IsNone) and isinstance(node.inner, Got):
            key = self.within(node.inner.arguments[0], found)
            there = self._nodes.make(Compare, "in", key, node.inner.holder, True, BOOL)
            return self._nodes.make(Not, there, BOOL)
        if isinstance(node, Not):
            inner = self.within(node.inner, found)
            return inner.inner if isinstance(inner, Not) else replaced(node, {node.inner: inner})
        parts: dict[Node, Node] = {}
        if isinstance(node, Joined):
            for one in node.conditions:
                parts[one] = self.within(one, found)
                found = found | _found_where(one, node.word == "and")
        elif isinstance(node, Conditional):
            parts[node.condition] = self.within(node.condition, found)
            parts[node.yes] = self.within(node.yes, found | _found_where(node.condition, True))
            parts[node.no] = self.within(node.no, found | _found_where(node.condition, False))
        elif isinstance(node, Each):
            parts[node.iterable] = self.within(node.iterable, found)
            parts[node.condition] = self.within(node.condition, found)
            parts[node.value] = self.within(node.value, found | _found_where(node.condition, True))
        elif not isinstance(node, Nested):
            parts = {one: self.within(one, found) for one in node.parts()}
        changed = any([one is not made for one, made in parts.items()])
        return replaced(node, parts) if changed else node


def _found_where(condition: Node, answer: bool) -> _Found:
    """The look-ups that have found a record where the truth of *condition* is *answer*."""
    if isinstance(condition, Not):
        return _found_where(condition.inner, not answer)
    if isinstance(condition, IsNone) and isinstance(condition.inner, Got):
        return frozenset() if answer else frozenset((condition.inner,))
    if isinstance(condition, Joined) and (condition.word == "and") is answer:
        return frozenset([one for part in condition.conditions for one in _found_where(part, answer)])
    return frozenset()
