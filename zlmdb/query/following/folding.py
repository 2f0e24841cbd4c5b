"""From the ways through a function back to one expression: ``and``, ``or``, ``not``, ``in`` and ``if``.

The ways are a tree of questions. It is folded from its leaves upwards. Every rule keeps the order in which Python asks,
so that nothing is evaluated that the function would not have evaluated, and nothing that may raise is left out.
"""

from __future__ import annotations

from typing import Any, Optional

from .known import BOOL, SOMETHING, is_bare_enum, is_enum, kind_of
from .nodes import Called, Constant, Node, Nodes
from .operations import Binary, Compare, Conditional, Display, IsNone, Joined, Not, joined_known
from .trace import Ways


class Changed(Exception):
    """The function does not ask the same each time it is called."""


class Folding:
    """Folds the ways through one function. As a *condition* only counts whether the result is true.

    *members*: a field of an Enum was followed as each of its members, so what is none of the others is the last one.
    """

    def __init__(self, nodes: Nodes, *, condition: bool, members: bool) -> None:
        self.nodes = nodes
        self.condition = condition
        self.members = members

    def folded(self, ways: Ways, depth: int = 0) -> Node:
        """The expression of *ways*, which have the same first *depth* answers."""
        taken, leaf = ways[0]
        if len(ways) == 1 and len(taken) == depth:
            return self.settled(leaf, dict(taken))
        if any(len(taken) <= depth for taken, _ in ways):
            raise Changed
        question = taken[depth][0]
        if any(taken[depth][0] is not question for taken, _ in ways):
            raise Changed
        yes = [way for way in ways if way[0][depth][1]]
        no = [way for way in ways if not way[0][depth][1]]
        if not yes or not no:
            raise Changed
        return self.choice(self.truth(question), self.folded(yes, depth + 1), self.folded(no, depth + 1))

    def settled(self, leaf: Node, answers: dict[Node, bool]) -> Node:
        """*leaf*, which is known where it was asked on the way."""
        if not self.condition:
            known = answers.get(leaf)
            return leaf if known is None or leaf.known.cls is not bool else self.nodes.constant(known)
        known = answers.get(leaf)
        if known is not None:
            return self.nodes.constant(known)
        node = self.truth(leaf)
        inner = node.inner if isinstance(node, Not) else node
        known = answers.get(inner)
        return node if known is None else self.nodes.constant(known is (inner is node))

    def truth(self, node: Node) -> Node:
        """*node* where only counts whether it is true."""
        if isinstance(node, Constant):
            return self.nodes.constant(bool(node.value))
        if isinstance(node, Conditional):
            return self.choice(node.condition, self.truth(node.yes), self.truth(node.no))
        if isinstance(node, Compare) and (node.denies or (node.operator == "!=" and is_enum(node.left.known))):
            return self.negated(self.nodes.make(Compare, "==", node.left, node.right, False, BOOL))
        if isinstance(node, Binary) and node.operator in ("&", "|") and node.known.cls is bool and not node.right.risky:
            return self.joined("and" if node.operator == "&" else "or", self.truth(node.left), self.truth(node.right))
        return node

    def negated(self, node: Node) -> Node:
        """The contrary of *node*."""
        if isinstance(node, Constant):
            return self.nodes.constant(not node.value)
        if isinstance(node, Compare) and node.contrary:
            return self.nodes.make(Compare, node.contrary, node.left, node.right, node.raises, node.known)
        return node.inner if isinstance(node, Not) else self.nodes.make(Not, node, BOOL)

    def choice(self, condition: Node, yes: Node, no: Node) -> Node:
        """*yes* where *condition* is true, else *no*."""
        if isinstance(condition, Constant):
            return yes if condition.value else no
        if isinstance(condition, Not):
            return self.choice(condition.inner, no, yes)
        if yes is no and not condition.risky:
            return yes
        if isinstance(yes, Called) and isinstance(no, Called):
            return self._called(condition, yes, no)
        return (
            self._of_none(condition, yes, no)
            or self._of_display(condition, yes, no)
            or self._of_truth(condition, yes, no)
            or self._of_shared(condition, yes, no)
            or self._bounded(condition, yes, no)
            or self.nodes.make(Conditional, condition, yes, no, joined_known(yes.known, no.known))
        )

    def _called(self, condition: Node, yes: Called, no: Called) -> Node:
        """Calls on both ways: the function asks *condition* itself, and need not be asked twice."""
        return self.nodes.once((yes, no), lambda: Called(tuple(dict.fromkeys(yes.reasons + no.reasons))))

    def _of_none(self, condition: Node, yes: Node, no: Node) -> Optional[Node]:
        """Where *no* says of None the same as *yes*, nobody needs to ask what is None."""
        if not isinstance(condition, IsNone) or (condition.risky and not is_evaluated(condition.inner, no)):
            return None
        return no if self.of_none(no, condition.inner) is yes else None

    def of_none(self, node: Node, inner: Node) -> Optional[Node]:
        """What *node* is where *inner* is None; None if that cannot be told."""
        nodes = self.nodes
        if node is inner:
            return nodes.false if self.condition else nodes.constant(None)
        if isinstance(node, (Constant, Called)):
            return node if isinstance(node, Constant) else None
        if isinstance(node, Compare):
            return self._compared_none(node, inner)
        if isinstance(node, Not):
            found = self.of_none(node.inner, inner)
            return None if found is None else self.negated(found)
        if isinstance(node, Joined):
            return self._joined_none(node, inner)
        if isinstance(node, Display):
            parts = [self.of_none(part, inner) for part in node.elements]
            found_parts = tuple([part for part in parts if part is not None])
            return nodes.make(Display, node.kind, found_parts, node.known) if len(found_parts) == len(parts) else None
        return None if mentions(node, inner) else node

    def _compared_none(self, node: Compare, inner: Node) -> Optional[Node]:
        if not mentions(node, inner):
            return node
        if node.left is not inner or mentions(node.right, inner) or node.right.risky:
            return None
        plain = node.right.known.plain or (isinstance(node.right, Constant) and node.right.value is not None)
        if node.operator in ("==", "!=") and plain:
            return self.nodes.constant(node.operator == "!=")
        value: Any = node.right.value if isinstance(node.right, Constant) else None
        if node.operator == "in" and kind_of(value) in (tuple, frozenset):
            return self.nodes.false if None not in value else None
        return None

    def _joined_none(self, node: Joined, inner: Node) -> Optional[Node]:
        """Python asks no further than the first part that decides."""
        first = self.of_none(node.conditions[0], inner)
        if not isinstance(first, Constant):
            return None
        if bool(first.value) is (node.word == "or"):
            return first
        return self.of_none(self.many(node.word, node.conditions[1:]), inner)

    def _of_display(self, condition: Node, yes: Node, no: Node) -> Optional[Node]:
        """Two displays that differ in some parts are one of which these parts differ."""
        if not (isinstance(yes, Display) and isinstance(no, Display) and yes.kind is no.kind):
            return None
        if condition.risky or len(yes.elements) != len(no.elements):
            return None
        pairs = list(zip(yes.elements, no.elements))
        if yes.kind is dict and any(one is not other for one, other in pairs[::2]):
            return None
        parts = tuple([self.choice(condition, one, other) for one, other in pairs])
        return self.nodes.make(Display, yes.kind, parts, yes.known)

    def _of_truth(self, condition: Node, yes: Node, no: Node) -> Optional[Node]:
        """One side is True or False."""
        if not self.condition and not (_is_bool(yes) and _is_bool(no)):
            return None
        if not self.condition and condition.known.cls is not bool and (yes, no) != (self.nodes.false, self.nodes.true):
            return None
        if no is self.nodes.false:
            return self.joined("and", condition, yes)
        if no is self.nodes.true:
            return self.joined("or", self.negated(condition), yes)
        if yes is self.nodes.true:
            return self.joined("or", condition, no)
        if yes is self.nodes.false:
            return self.joined("and", self.negated(condition), no)
        return None

    def _of_shared(self, condition: Node, yes: Node, no: Node) -> Optional[Node]:
        """Both sides end in the same."""
        if isinstance(no, Conditional) and no.yes is yes:
            return self.choice(self.joined("or", condition, no.condition), yes, no.no)
        if isinstance(yes, Conditional) and yes.no is no:
            return self.choice(self.joined("and", condition, yes.condition), yes.yes, no)
        if not self.condition:
            return None
        contrary = self.negated(condition)
        return (
            self._shortened("and", "or", condition, no, yes)
            or self._shortened("or", "and", condition, yes, no)
            or self._shortened("or", "and", contrary, no, yes)
            or self._shortened("and", "or", contrary, yes, no)
        )

    def _bounded(self, condition: Node, yes: Node, no: Node) -> Optional[Node]:
        """``y if a == b else a < b`` is true within a bound, that an index knows: ``a <= b and ...``.

        So tuples are compared: ``(b.year, key) < (1990, 7)`` are the books of the next page.
        """
        if not (self.condition and isinstance(condition, Compare) and isinstance(no, Compare)):
            return None
        if condition.operator != "==" or not no.contrary or (condition.left, condition.right) != (no.left, no.right):
            return None
        bound = self.nodes.make(Compare, f"{no.operator[0]}=", no.left, no.right, no.raises, BOOL)
        made = self.nodes.make(Conditional, condition, yes, no, joined_known(yes.known, no.known))
        return self.joined("and", bound, made)

    def _shortened(self, word: str, other: str, condition: Node, long: Node, short: Node) -> Optional[Node]:
        """``d and x`` beside x, where *condition* gives x: ``(condition or d) and x``. The same the other way round."""
        if not isinstance(long, Joined) or long.word != word:
            return None
        tail = short.conditions if isinstance(short, Joined) and short.word == word else (short,)
        at = len(long.conditions) - len(tail)
        if at < 1 or long.conditions[at:] != tail:
            return None
        head = self.joined(other, condition, self.many(word, long.conditions[:at]))
        return self.joined(word, head, short)

    def many(self, word: str, conditions: tuple[Node, ...]) -> Node:
        """*conditions* joined by *word*."""
        if len(conditions) == 1:
            return conditions[0]
        known = BOOL if all([one.known.cls is bool for one in conditions]) else SOMETHING
        return self.nodes.make(Joined, word, conditions, known)

    def joined(self, word: str, first: Node, second: Node) -> Node:
        """*first* and *second* joined by *word*, with what can be one ``in`` made one."""
        if self.condition or (_is_bool(first) and _is_bool(second)):
            absorbed = self._absorbed(word, first, second)
            if absorbed is not None:
                return absorbed
        parts: list[Node] = []
        for one in (first, second):
            parts.extend(one.conditions if isinstance(one, Joined) and one.word == word else (one,))
        return self.many(word, tuple(self._gathered(word, parts)))

    def _absorbed(self, word: str, first: Node, second: Node) -> Optional[Node]:
        """Where one side is True or False."""
        stop = self.nodes.constant(word == "or")
        go_on = self.nodes.constant(word == "and")
        if first is go_on:
            return second
        if second is go_on or first is stop:
            return first
        return None

    def _gathered(self, word: str, parts: list[Node]) -> list[Node]:
        """``x == 1 or x == 2``, side by side, is ``x in (1, 2)``; of ``and`` with ``!=`` it is ``not in``."""
        found: list[Node] = []
        for part in parts:
            before = self._members(found[-1], word) if found else None
            members = self._members(part, word)
            if before is not None and members is not None and before[0] is members[0]:
                values = before[1] + members[1]
                test = self.nodes.make(Compare, "in", before[0], self.nodes.constant(values), False, BOOL)
                part, members = test if word == "or" else self.negated(test), (before[0], values)
                found.pop()
            elif before is not None and self._says_more(part, before, word):
                found.pop()
            only = None if members is None else self._only(word, *members, found)
            found.append(part if only is None else only)
        return found

    def _says_more(self, part: Node, before: tuple[Node, tuple[Any, ...]], word: str) -> bool:
        """Whether *part* alone decides: ``x not in (A, B) and x == C``. So members of an Enum are asked by ``is``."""
        subject, values = before
        other = self._members(part, "or" if word == "and" else "and")
        if other is None or other[0] is not subject or not is_enum(subject.known):
            return False
        return not any([one in values for one in other[1]])

    def _only(self, word: str, subject: Node, values: tuple[Any, ...], found: list[Node]) -> Optional[Node]:
        """For ``x not in values`` that *subject* is the only other member of its Enum; for ``or`` the contrary.

        If it may be None, the last one of *found* has to ask that, and is taken away.
        """
        known = subject.known
        cls: Any = known.cls
        if not self.members or not is_enum(known) or not is_bare_enum(cls):
            return None
        others = [one for one in cls if one not in values]
        if len(others) != 1:
            return None
        equal = self.nodes.make(Compare, "==", subject, self.nodes.constant(others[0]), False, BOOL)
        if known.optional:
            none = self.nodes.make(IsNone, subject, BOOL)
            if not found or found[-1] is not (none if word == "or" else self.negated(none)):
                return None
            found.pop()
        return self.negated(equal) if word == "or" else equal

    def _members(self, node: Node, word: str) -> Optional[tuple[Node, tuple[Any, ...]]]:
        """Of ``x == 1``, x and 1."""
        if word == "and":
            if not isinstance(node, Not):
                return None
            node = node.inner
        if not isinstance(node, Compare) or not isinstance(node.right, Constant):
            return None
        value: Any = node.right.value
        if node.operator == "==" and (node.right.known.plain or is_enum(node.left.known)) and value == value:
            return node.left, (value,)
        if node.operator == "in" and kind_of(value) is tuple and value:
            return node.left, value
        return None


def _is_bool(node: Node) -> bool:
    return node.known.cls is bool and not node.known.optional


def mentions(node: Node, inner: Node) -> bool:
    """Whether *inner* is a part of *node*."""
    return node is inner or any([mentions(part, inner) for part in node.parts()])


def is_evaluated(inner: Node, node: Node) -> bool:
    """Whether *inner* is evaluated whenever *node* is."""
    return node is inner or any([is_evaluated(inner, part) for part in node.certain()])
