"""What an index offers: the entries that fit the terms of some conditions, or the order of a query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, Optional

from ..namedtuples import NamedTuple
from ..values.base import is_a
from .derived import derived_terms, months
from .following import Node
from .following.known import kind_of
from .following.nodes import spelled
from .following.operations import Apply, Conditional, Display, IsNone, Unary
from .ordering import Descending, desc
from .terms import (
    CAP,
    DESCENDING,
    KEY,
    MEMBERS,
    NEGATIVE,
    SIDES,
    Asking,
    Capturing,
    Subject,
    Term,
    element_terms,
    not_none,
    subject_of,
    term_of,
)


class Part(NamedTuple):
    """One part of an index's key: what of a record it is, its class, and whether it is never None.

    *descending*: the index has the greatest first. *sorts*: values are ordered in the index as they compare.
    """

    subject: Subject
    kind: Any
    present: bool
    descending: bool = False
    sorts: bool = True

    @property
    def ordered(self) -> Subject:
        """As a part of a sort key, in the direction of the index."""
        return (DESCENDING, *self.subject) if self.descending else self.subject

    @property
    def opposite(self) -> Subject:
        """As a part of a sort key, in the direction in which the index is not."""
        return self.subject if self.descending else (DESCENDING, *self.subject)


class IndexFacts(NamedTuple):
    """What the planner has to know of an index, or of the primary key, whose name is `KEY`.

    *several*: it has an entry for each element of a field, and serves conditions on one element.
    """

    name: str
    parts: tuple[Part, ...]
    unique: bool
    several: bool = False
    where: tuple[Any, ...] = ()  # of `Asking`
    then_by_key: bool = False
    """Whether entries of one index key are in an order of the primary keys that Python has, too."""


ONE_SIDED = 6
"""The rank of a range with one end."""


class Bound(NamedTuple):
    """Where a range ends: the value, and whether it belongs to the range."""

    value: Any
    inclusive: bool


class Access(NamedTuple):
    """Ranges of an index of which *facts* are known.

    Its first parts are *equal* to values, the next one is among *members*, begins with a text, or is within bounds.

    *rank* says how few records this will be: less is better.
    """

    facts: IndexFacts
    equal: tuple[Any, ...] = ()
    members: Optional[tuple[Any, ...]] = None
    begins: Optional[Any] = None
    lower: Optional[Bound] = None
    upper: Optional[Bound] = None
    rank: int = 9
    nodes: tuple[Node, ...] = ()
    terms: tuple[tuple[Part, Term], ...] = ()
    """Those that it serves, in the order of its parts."""
    signs: tuple[int, ...] = ()
    """Of an order: -1 for each part of the sort key that is the negative of the part of the index, else 1."""
    flipped: bool = False
    """Of an order: whether the index has it the other way round."""
    ties: int = 0
    """Of an order: so many parts are equal in entries that are equal in it, which are not in the order of their keys;
    0 if they are."""

    def renewed(self, askings: Sequence[Capturing]) -> Optional[Access]:
        """The same for other captured values; None where these do not fit in its place."""
        equal: list[Any] = []
        found: dict[str, Any] = {}
        for part, term in self.terms:
            operator = term.operator
            value = term.value if term.origin is None else term.origin.value(askings)
            if operator == "==":
                if not _is_of(value, part):
                    return None
                equal.append(value)
            elif operator == "in":
                if type(value) not in MEMBERS or len(value) > CAP or not all([_is_of(one, part) for one in value]):
                    return None
                found["members"] = tuple(dict.fromkeys(value))
            elif operator == "startswith":
                if type(value) is not part.kind:
                    return None
                found["begins"] = value
            elif not _is_of(value, part):
                return None
            else:
                found[SIDES[operator]] = Bound(value, "=" in operator)
        return self._replace(equal=tuple(equal), **found)

    def from_key(self, key: Any, *, backwards: bool) -> Access:
        """Of it from the sort key *key* on, in the order of its parts behind the equal ones: at least what is there."""
        values, parts = self._sort_values(key), self.facts.parts[len(self.equal) :]
        if not (parts and values) or not _is_of(values[0], parts[0]) or self.members is not None:
            return self
        bound, found = Bound(values[0], True), self._replace(begins=None)
        return found._replace(upper=bound) if parts[0].descending is not backwards else found._replace(lower=bound)

    def whole_key(self, key: Any) -> Optional[tuple[Any, ...]]:
        """The key of the index for the sort key *key*; None if it is a part of one only."""
        values = (*self.equal, *self._sort_values(key))
        parts = self.facts.parts
        fits = len(values) == len(parts) and all([_is_of(one, part) for one, part in zip(values, parts)])
        return values if fits else None

    def _sort_values(self, key: Any) -> tuple[Any, ...]:
        """The values of the parts of the index for the sort key *key*."""
        values = sort_values(key)
        if -1 not in self.signs:
            return values
        return tuple([-one if sign < 0 and type(one) in _NUMBERS else one for one, sign in zip(values, self.signs)])

    def serves(self, parts: Iterable[Asking]) -> bool:
        """Whether it is asked for each of *parts*, and finds no records that do not fit."""
        return not self.wide and {one.node for one in parts}.issubset(self.nodes)

    @property
    def wide(self) -> bool:
        """Whether it may find records of which what it is asked for is not true."""
        nodes = [term.node for _, term in self.terms]
        return any([term.wide or (term.half and nodes.count(term.node) == 1) for _, term in self.terms])

    @property
    def exact(self) -> bool:
        """Whether it is one whole key of the index."""
        return len(self.equal) == len(self.facts.parts)

    @property
    def in_order(self) -> bool:
        """Whether its entries, those of one whole key of an index, are in the order of the keys of their records."""
        return self.exact and not self.facts.several and self.facts.name != KEY

    @property
    def bounds(self) -> tuple[Optional[Bound], Optional[Bound]]:
        """Where the range begins and ends in the index."""
        down = len(self.equal) < len(self.facts.parts) and self.facts.parts[len(self.equal)].descending
        return (self.upper, self.lower) if down else (self.lower, self.upper)

    @property
    def is_range_of_keys(self) -> bool:
        """Whether it is one range of the table itself, which is read as fast as all of it."""
        return self.facts.name == KEY and self.members is None

    def __str__(self) -> str:
        name = "the key" if self.facts.name == KEY else f"index {self.facts.name}"
        return f"{name}: {' and '.join(map(spelled, self.nodes))}" if self.nodes else name


def is_indexed(subject: Subject, indexes: Iterable[IndexFacts]) -> bool:
    """Whether one of *indexes* begins with *subject*."""
    return any([not one.where and one.parts[0].subject == subject for one in indexes])


def accesses(
    askings: Sequence[Asking], indexes: Sequence[IndexFacts], known: Callable[[], Sequence[Asking]] = tuple
) -> list[Access]:
    """The ways to find what all of *askings* want, the most promising first. *known*: what else is true of these."""
    by = _by_subject([
        *months(askings),
        *[term for one in askings for term in (term_of(one), *derived_terms(one)) if term is not None],
    ])  # fmt: skip
    # What is said of one element: another one says nothing of it.
    elements = [_by_subject(terms) for one in askings if (terms := element_terms(one))]
    ways = [
        (index, said)
        for index in indexes
        for said in (elements if index.several else [by])
        if not index.where or has_all(index, (*askings, *known()))
    ]
    found = [one for one in (_access(index, said, askings) for index, said in ways) if one is not None]
    found.sort(key=lambda one: one.rank)
    return found


def has_all(index: IndexFacts, known: Sequence[Asking]) -> bool:
    """Whether all records for which *known* is true satisfy the condition of the partial *index*."""
    from .implied import implied  # late: few programs have such an index

    return implied(known, index.where)


def _by_subject(terms: Iterable[Term]) -> dict[Subject, list[Term]]:
    found: dict[Subject, list[Term]] = {}
    for term in terms:
        found.setdefault(term.subject, []).append(term)
    return found


def _access(index: IndexFacts, by: dict[Subject, list[Term]], askings: Sequence[Asking]) -> Optional[Access]:
    """How *index* serves the terms of *askings*, if it can."""
    equal: list[Any] = []
    used: list[tuple[Part, Term]] = []
    found: dict[str, Any] = {}
    rank = 9
    for part in index.parts:
        terms = [term for term in by.get(part.subject, ()) if part.present or not term.negative]
        same = next((term for term in terms if term.operator == "==" and _is_of(term.value, part)), None)
        if same is None:
            rank = _next_part(part, terms, found, used)
            break
        equal.append(same.value)
        used.append((part, same))
    named = len(equal) + bool(found)
    lacking = any([not part.present for part in index.parts[named:]])  # that all are there is worth something, too
    if not (named or index.where or lacking):
        return None
    if lacking and (index.several or not _all_present(index.parts[named:], askings)):
        return None
    if len(equal) == len(index.parts):
        rank = 0 if index.unique else 1
    elif found.get("members") is not None:
        rank = 2 if named == len(index.parts) else 3
    elif equal:
        rank = 3 if not found else 2
    nodes = tuple(dict.fromkeys([term.node for _, term in used]))
    return Access(index, tuple(equal), rank=rank, nodes=nodes, terms=tuple(used), **found)


def _next_part(part: Part, terms: list[Term], found: dict[str, Any], used: list[tuple[Part, Term]]) -> int:
    """Put into *found* what *terms* say of the part behind those that are equal to something; its rank."""
    for term in terms:
        if term.operator == "in" and all([_is_of(value, part) for value in term.value]):
            found["members"] = tuple(dict.fromkeys(term.value))
            used.append((part, term))
            return 2
    for term in terms:
        if term.operator == "startswith" and part.kind is type(term.value):
            found["begins"] = term.value
            used.append((part, term))
            return 4
    for term in terms:
        side = SIDES.get(term.operator)
        if side is not None and part.sorts and side not in found and _is_of(term.value, part):
            found[side] = Bound(term.value, "=" in term.operator)
            used.append((part, term))
    return 5 if len(found) == 2 else ONE_SIDED


_NUMBERS = (int, float)


def _is_of(value: Any, part: Part) -> bool:
    """Whether *value* compares with the part of the key as with what the record holds."""
    kind = kind_of(value)
    return kind is part.kind or (kind in _NUMBERS and part.kind in _NUMBERS) or (kind is int and part.kind is Decimal)


def ordered_by(node: Node, keyed: bool) -> Optional[tuple[Subject, ...]]:
    """The parts of the record that a sort key is, if it is nothing else."""
    there: list[Optional[Subject]] = []  # `desc` of what may be None is another thing for None
    while isinstance(node, Conditional) and isinstance(node.condition, IsNone):
        there.append(subject_of(node.condition.inner, keyed))
        node = node.no
    nodes = node.elements if isinstance(node, Display) and node.kind is tuple else (node,)
    subjects = [_ordered(one, keyed) for one in nodes]
    found = tuple([one for one in subjects if one])
    named = [one[1:] if one[0] in (DESCENDING, NEGATIVE) else one for one in found]  # an index of these has no None
    return found if subjects and all(subjects) and all([one in named for one in there]) else None


def _ordered(node: Node, keyed: bool) -> Optional[Subject]:
    if isinstance(node, Apply) and node.function.value is desc and len(node.arguments) == 1:
        subject = subject_of(node.arguments[0], keyed)
        return (DESCENDING, *subject) if subject else None
    if isinstance(node, Unary) and node.sign == "-":
        subject = subject_of(node.inner, keyed)
        return (NEGATIVE, *subject) if subject else None
    return subject_of(node, keyed)


def sort_values(key: Any) -> tuple[Any, ...]:
    """The values of the parts of a sort key."""
    parts: tuple[Any, ...] = key if is_a(key, tuple) else (key,)
    return tuple([one.value if type(one) is Descending else one for one in parts])


def order_access(
    index: IndexFacts, subjects: tuple[Subject, ...], askings: Sequence[Asking], *, tied: bool = False
) -> Optional[Access]:  # fmt: skip
    """The range of *index* that has all records that *askings* want, in the order of *subjects*.

    *tied*: what is equal in that order may come in another one, and the index may be read backwards for it.
    """
    if len(subjects) > 1 and subjects[-1] in _KEYS and index.then_by_key:
        return _then_by_key(order_access(index, subjects[:-1], askings, tied=tied), subjects)
    if index.several or () in subjects or (index.where and not has_all(index, askings)):
        return None
    said = _by_subject([
        *months(askings),
        *[term for term in map(term_of, askings) if term is not None],
        *[term for one in askings for term in derived_terms(one)],
    ])  # fmt: skip
    equal: list[Any] = []
    used: list[tuple[Part, Term]] = []
    signs = tuple([-1 if one[0] == NEGATIVE else 1 for one in subjects])
    subjects = tuple([one if sign > 0 else (DESCENDING, *one[1:]) for sign, one in zip(signs, subjects)])
    rest = len(index.parts) - len(subjects)
    for number, part in enumerate(index.parts):  # a part that is asked for by a value of its type is not None
        terms = said.get(part.subject, ())
        if (number == rest or (tied and number < rest)) and _all_present(index.parts[number:], askings):
            order = _order_from(index, number, subjects, signs, tied=tied)
            if order is not None:
                found: dict[str, Any] = {}
                _next_part(part, [one for one in terms if one.operator not in ("==", "in")], found, used)
                nodes = (*[one.node for one in askings if in_all(index, one)], *[term.node for _, term in used])
                flipped, ties = order
                return Access(
                    index, tuple(equal), rank=3, nodes=nodes, terms=tuple(used), signs=signs, flipped=flipped,
                    ties=ties, **found,
                )  # fmt: skip
        term = next((one for one in terms if one.operator == "=="), None)
        if term is None or not _is_of(term.value, part):
            return None
        equal.append(term.value)
        used.append((part, term))
    return None


def _order_from(
    index: IndexFacts, number: int, subjects: tuple[Subject, ...], signs: tuple[int, ...], *, tied: bool
) -> Optional[tuple[bool, int]]:  # fmt: skip
    """Whether the parts of *index* from that *number* on are *subjects* the other way round, and `Access.ties`.

    None if they do not give this order.
    """
    end = number + len(subjects)
    flipped, whole = _direction(index.parts[number:end], subjects, signs), end == len(index.parts)
    straight = flipped is False and whole
    if flipped is None or not (straight or tied) or (index.name == KEY and not whole):
        return None
    return flipped, 0 if straight or index.name == KEY else end


_KEYS = ((KEY,), (DESCENDING, KEY))


def _then_by_key(access: Optional[Access], subjects: tuple[Subject, ...]) -> Optional[Access]:
    """*access*, of all but the last of *subjects*, which is the key: what is equal in it is in the order of the keys.

    It is so in whole keys of an index, which is read the other way round for the opposite order of both.
    """
    if access is None or access.flipped is (subjects[-1] == (KEY,)):
        return None
    whole = len(access.equal) + len(subjects) - 1 == len(access.facts.parts)
    return access._replace(ties=0, signs=(*access.signs, 1)) if whole else None


def _all_present(parts: Sequence[Part], askings: Sequence[Asking]) -> bool:
    """Whether no record that *askings* want has None in one of *parts*, whatever values they have captured."""
    return all([part.present or any([_is_there(one, part.subject) for one in askings]) for part in parts])


def _is_there(asking: Asking, subject: Subject) -> bool:
    """Whether *asking* is not true of None in *subject*. A value that it captured might be None another time."""
    if (given := not_none(asking)) is not None:
        return given == subject
    if asking.subject(asking.node) == subject:  # it is true, and None is not
        return True
    term = term_of(asking)
    return term is not None and term.subject == subject and term.operator in (*SIDES, "startswith")


def in_all(index: IndexFacts, asking: Asking) -> bool:
    """Whether *asking* is true of each record in *index*, whatever entries are read."""
    if not_none(asking) in [part.subject for part in index.parts]:
        return True
    if not index.where:
        return False
    from .implied import implied  # late: few programs have such an index

    return implied(index.where, [asking])


def _direction(parts: Sequence[Part], subjects: tuple[Subject, ...], signs: tuple[int, ...]) -> Optional[bool]:
    """Whether *parts* are *subjects* the other way round; None if they are neither so nor as they stand."""
    for part, sign in zip(parts, signs):  # of integers and floats alone the negative is the same order, not rounded
        if not part.sorts or (sign < 0 and part.kind not in _NUMBERS):
            return None
    if tuple([part.ordered for part in parts]) == subjects:
        return False
    return True if tuple([part.opposite for part in parts]) == subjects else None
