"""Expressions made of others: a condition on a linked record, as one of that record, and as one of its key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Optional, TypeVar

from ...query.following import Followed, Node, walk
from ...query.following.following import Reading
from ...query.following.known import BOOL, SOMETHING
from ...query.following.linked import Link
from ...query.following.nested import Nested
from ...query.following.nodes import Argument, Called, Constant, Parameter, Spell, Variable, replaced
from ...query.following.operations import Apply, Compare, Each

N = TypeVar("N")


class Among(Compare):
    """``key in found``, where *found* is a captured set of keys. Of UUIDs, *numbers* is that of their numbers.

    To find a UUID in a set takes two calls of Python functions, to find its number takes none.
    """

    __slots__ = ("numbers",)

    def __init__(self, key: Node, found: Parameter, numbers: Optional[Parameter]) -> None:
        self.numbers = numbers
        super().__init__("in", key, found, False, BOOL)

    def parts(self) -> Sequence[Node]:
        return (self.left, self.right) if self.numbers is None else (self.left, self.right, self.numbers)

    def source(self, spell: Spell) -> str:
        if self.numbers is None:
            return super().source(spell)
        return f"({spell(self.left)}.int in {spell(self.numbers)})"


class AnyAmong(Apply):
    """``any(key in found for key in keys)``, where *found* is a captured set."""

    __slots__ = ()

    @classmethod
    def of(cls, node: Apply) -> Optional[AnyAmong]:
        """*node*, if it is such a call."""
        each = node.arguments[0]
        if node.function.value is not any or not isinstance(each, Each) or not isinstance(each.value, Among):
            return None
        if each.value.left is not each.variable or not isinstance(each.condition, Constant) or not each.condition.value:
            return None
        return cls(node.function, node.arguments, node.names, node.raises, node.known)

    def source(self, spell: Spell) -> str:
        each: Any = self.arguments[0]
        keys, among = spell(each.iterable), each.value
        if among.numbers is None:
            return f"(not {spell(among.right)}.isdisjoint({keys}))"
        variable = spell(each.variable)
        return f"(not {spell(among.numbers)}.isdisjoint([{variable}.int for {variable} in {keys}]))"


def link_of(node: Node) -> Optional[Link]:
    """The linked record that *node* asks something of, if it asks nothing of anything else."""
    found: set[Link] = set()
    own: set[Node] = set()  # what runs through something of the linked record
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Link):
            found.add(one)
        elif isinstance(one, (Argument, Called, Nested)) or (isinstance(one, Variable) and one not in own):
            return None
        else:
            if isinstance(one, Each):
                own.add(one.variable)
            waiting.extend(one.parts())
    return found.pop() if len(found) == 1 and not own.intersection(walk(next(iter(found)))) else None


class Making:
    """Makes expressions of parts of the function of *followed*, the same ones each time: one loop serves them."""

    def __init__(self, followed: Followed) -> None:
        self._kept = followed.reading.kept

    def once(self, key: Any, make: Callable[[], N]) -> N:
        """What *make* made for *key* when it was asked for first."""
        found: Optional[N] = self._kept.get(key)
        if found is None:
            found = self._kept[key] = make()
        return found

    def among(self, key: Node, number: int, *, numbers: bool = False) -> Node:
        """The condition that *key* is one of those that the captured value with that *number* holds.

        *numbers*: these are UUIDs, and the next captured value holds their numbers.
        """
        more = self.given(number + 1) if numbers else None
        return self.once(("among", key, number, numbers), lambda: Among(key, self.given(number), more))

    def of_record(self, node: Node, link: Link) -> Reading:
        """*node*, a condition on *link*, as a condition on the record that this is."""
        return self.once(
            ("linked", node),
            lambda: Reading(replaced(node, {link: Argument(0, "value", link.known)}), keyed=False),
        )

    def of_value(self, node: Node, link: Link) -> Reading:
        """*node*, a value of what *link* is, as one of the record that this is."""
        made = replaced(node, {link: Argument(0, "value", link.known)})
        return self.once(("value", node), lambda: Reading(made, keyed=False, condition=False))

    def of_variable(self, node: Node, variable: Variable) -> Reading:
        """*node*, a condition on what *variable* runs through, as a condition on the record that this is."""
        return Reading(replaced(node, {variable: Argument(0, "value", variable.known.required)}), keyed=False)

    def given(self, number: int) -> Parameter:
        """The captured value with that *number*, which was found while the query runs."""
        return self.once(("found", number), lambda: Parameter(number, "found", SOMETHING, True))

    def with_parts(self, node: Node, parts: dict[str, Any]) -> Node:
        """*node* with other *parts*."""
        if all([getattr(node, name) is part or getattr(node, name) == part for name, part in parts.items()]):
            return node
        return self.once(("made", node, *parts.values()), lambda: _changed(node, parts))

    def reading(self, node: Node, keyed: bool) -> Reading:
        """The condition *node*."""
        return self.once(("reading", node), lambda: Reading(node, keyed=keyed))


def _changed(node: Node, parts: dict[str, Any]) -> Node:
    made = copy(node)
    for name, part in parts.items():
        setattr(made, name, part)
    return (AnyAmong.of(made) or made) if isinstance(made, Apply) else made


def nothing(*arguments: Any) -> Any:
    """In the place of the function of a condition that is made here."""
