"""Which index answers a query: conditions and facts about indexes in, a plan out. No table is read here.

What is read through an index may be more than what matches, and never less: every condition is asked again of the
record. So a plan only decides the time that a query takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Optional, Protocol, Union

from ..handlers import let_through
from ..values.base import is_a
from .following import Given, Node, calls
from .following.known import Known, is_bare_enum, is_enum, kind_of
from .following.linked import Link
from .following.nodes import Argument, Constant, Parameter, Variable, spelled
from .following.operations import Apply, Attribute, Compare, Display, Each, Item, Joined, Method, Not
from .ordering import Descending, desc
from .texts import transformed

Subject = tuple[Union[str, int], ...]
"""What of a record: the path of a field, or beginning with ``KEY`` the key, or a part of it.

The path goes on with the names of transforms: ``("title", "casefold()")``.
"""

KEY = "(key)"

DESCENDING = "(descending)"
"""What a part of a sort key begins with that sorts the other way round."""

ELEMENT = "(element)"
"""What in a path is one of the elements of what comes before."""

CAP = 1000
"""Entries up to which several indexes are compared by counting."""

SMALL = 20
"""Records of a table up to which any index is as good as reading it all."""

_MOST_KEPT = 256

SHARE = 4
"""An index is used for less than this part of the table; more is read faster in its own order."""


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


class IndexFacts(NamedTuple):
    """What the planner has to know of an index, or of the primary key, whose name is `KEY`.

    *complete*: a record whose parts are there, and for which *where* is true, is in it for sure. *several*: it has an
    entry for each element of a field, and serves conditions on one element.
    """

    name: str
    parts: tuple[Part, ...]
    unique: bool
    complete: bool = True
    several: bool = False
    where: tuple[Any, ...] = ()  # of `Asking`


class Capturing(Protocol):
    """A condition, as far as its captured values go."""

    @property
    def parameters(self) -> Sequence[Any]:
        """The captured values."""
        ...


class Origin(NamedTuple):
    """Where a value of a plan comes from: *node*, evaluated with what the function with that *number* has captured."""

    number: int
    node: Node

    def value(self, askings: Sequence[Capturing]) -> Any:
        """The value for other captured values."""
        node, parameters = self.node, askings[self.number].parameters
        if isinstance(node, Parameter):
            return parameters[node.number]
        return node.evaluate(Given((), parameters))


class Term(NamedTuple):
    """A condition that an index can serve: ``==``, ``in``, ``startswith``, or a bound, of what one subject is."""

    subject: Subject
    operator: str
    value: Any
    node: Node
    origin: Optional[Origin] = None
    """None where the value is always the same."""
    negative: bool = False
    """Whether it is true of None, too, if there should be one: it serves only what is certainly there."""


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
        """The part of it from the sort key *key* on, if it is read in the order of its parts behind the equal ones."""
        values, parts = sort_values(key), self.facts.parts[len(self.equal) :]
        if not parts or not _is_of(values[0], parts[0]) or self.members is not None or self.begins is not None:
            return self
        bound = Bound(values[0], True)
        return self._replace(upper=bound) if parts[0].descending is not backwards else self._replace(lower=bound)

    def whole_key(self, key: Any) -> Optional[tuple[Any, ...]]:
        """The key of the index for the sort key *key*; None if it is a part of one only."""
        values = (*self.equal, *sort_values(key))
        parts = self.facts.parts
        fits = len(values) == len(parts) and all([_is_of(one, part) for one, part in zip(values, parts)])
        return values if fits else None

    @property
    def exact(self) -> bool:
        """Whether it is one whole key of the index."""
        return len(self.equal) == len(self.facts.parts)

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


class Asking(NamedTuple):
    """A condition with the values that it captured; *elements* says what each variable of it runs through.

    *linked* returns the term that a condition on a linked record comes to.
    """

    node: Node
    parameters: Sequence[Any]
    keyed: bool
    elements: Mapping[Node, Subject] = MappingProxyType({})
    number: int = 0
    linked: Optional[Callable[[Asking], Optional[Term]]] = None

    def of(self, node: Node) -> Asking:
        """A part of it."""
        return self._replace(node=node)

    def subject(self, node: Node) -> Optional[Subject]:
        """As `subject_of`, or a part of an element."""
        return subject_of(node, self.keyed, self.elements)


class Choice(NamedTuple):
    """What the planner chose: ranges to read and sort, or one index that gives the *order*, or neither."""

    accesses: tuple[Access, ...] = ()
    order: Optional[Access] = None
    rejected: tuple[tuple[Access, str], ...] = ()


Kept = dict[tuple[tuple[Node, int], ...], list[Access]]
"""Accesses that were found for conditions, by these and the numbers of the functions that they are of."""

Measure = Callable[[Access, int], Optional[int]]
"""How many entries an access has, counted up to a number; None where its values cannot be in the index."""


# -- conditions ------------------------------------------------------------------------------------------------------


def conjuncts(node: Node) -> Iterator[Node]:
    """Conditions that all have to hold for *node* to be true."""
    if isinstance(node, Joined) and node.word == "and":
        for one in node.conditions:
            yield from conjuncts(one)
    else:
        yield node


def subject_of(node: Node, keyed: bool, elements: Mapping[Node, Subject] = MappingProxyType({})) -> Optional[Subject]:
    """What of the record *node* is; None if it is not simply a part of it. *elements* are those of variables."""
    path: list[Union[str, int]] = []
    while True:
        if isinstance(node, Link):
            break
        if isinstance(node, Attribute):
            path.append(node.name)
            node = node.holder
        elif isinstance(node, Item) and isinstance(node.key, Constant) and type(node.key.value) is int:
            path.append(node.key.value)
            node = node.holder
        elif (text := transformed(node)) is not None:
            node, name = text
            path.append(name)
        else:
            break
    if isinstance(node, (Variable, Link)) and node in elements:
        return (*elements[node], *reversed(path))
    if not isinstance(node, Argument):
        return None
    if keyed and node.position == 0:
        path.append(KEY)
    return tuple(reversed(path))


MEMBERS = (tuple, frozenset, list, set, range)
"""What an index may look for one of."""

SIDES = {"<": "upper", "<=": "upper", ">": "lower", ">=": "lower"}
"""The bound that a comparison is."""

_FLIPPED = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NOTHING: Any = object()


def term_of(asking: Asking) -> Optional[Term]:
    """What *asking* says, if an index could serve it."""
    found = _term_of(asking)
    return found if found is not None or asking.linked is None else asking.linked(asking)


def is_indexed(subject: Subject, indexes: Iterable[IndexFacts]) -> bool:
    """Whether one of *indexes* begins with *subject*."""
    return any([one.complete and not one.where and one.parts[0].subject == subject for one in indexes])


def _term_of(asking: Asking) -> Optional[Term]:
    node = asking.node
    if isinstance(node, Compare):
        return _compared(asking, node)
    if isinstance(node, Method) and node.name == "startswith" and len(node.arguments) == 1 and not node.names:
        subject, value = asking.subject(node.holder), _value(node.arguments[0], asking)
        if subject is not None and type(value) in (str, bytes):
            return Term(subject, "startswith", value, node, Origin(asking.number, node.arguments[0]))
        return None
    truth, inner = (False, node.inner) if isinstance(node, Not) else (True, node)
    if not truth and isinstance(inner, Compare):
        return _of_other_members(asking, inner)
    if inner.known.cls is bool and (subject := asking.subject(inner)) is not None:
        return None if inner.known.optional else Term(subject, "==", truth, node, negative=not truth)
    return None


def _of_other_members(asking: Asking, node: Compare) -> Optional[Term]:
    """What the opposite of *node* says of a member of an Enum: not to be among some is to be among the others."""
    known, right = node.left.known, node.right
    members: Any = known.cls
    if not is_enum(known) or known.optional or not is_bare_enum(members) or not isinstance(right, Constant):
        return None
    subject, given = asking.subject(node.left), right.value
    if not subject or node.operator not in ("==", "in") or (node.operator == "in" and type(given) not in MEMBERS):
        return None
    among = given if node.operator == "in" else (given,)
    others = tuple([one for one in members if one not in among])
    if len(others) == 1:
        return Term(subject, "==", others[0], asking.node, negative=True)
    return Term(subject, "in", others, asking.node, negative=True)


def _compared(asking: Asking, node: Compare) -> Optional[Term]:
    operator, left, right = node.operator, node.left, node.right
    if operator == "in":
        subject, value = asking.subject(left), _value(right, asking)
        if subject is not None and type(value) in MEMBERS and len(value) <= CAP:
            return Term(subject, "in", tuple(value), node, Origin(asking.number, right))
        return None
    if operator not in _FLIPPED:
        return None
    subject = asking.subject(left)
    if subject is None:
        subject, right, operator = asking.subject(right), left, _FLIPPED[operator]
    if not subject:
        return None
    value = _value(right, asking)
    if value is _NOTHING or value is None:
        return None
    return Term(subject, operator, value, node, Origin(asking.number, right))


def element_terms(asking: Asking) -> list[Term]:
    """What *asking* says of one element of a field: ``x in b.tags``, or ``any(...)`` of conditions on the element."""
    node = asking.node
    if isinstance(node, Compare) and node.operator == "in":
        subject, value = asking.subject(node.right), _value(node.left, asking)
        if not subject or value is None or value is _NOTHING:
            return []
        return [Term((*subject, ELEMENT), "==", value, node, Origin(asking.number, node.left))]
    if not isinstance(node, Apply) or node.function.value is not any or len(node.arguments) != 1:
        return []
    each = node.arguments[0]
    subject = asking.subject(each.iterable) if isinstance(each, Each) else None
    if not isinstance(each, Each) or not subject:
        return []
    inner = asking._replace(elements={**asking.elements, each.variable: (*subject, ELEMENT)})
    found = [term_of(inner.of(one)) for part in (each.condition, each.value) for one in conjuncts(part)]
    return [term._replace(node=node) for term in found if term is not None]


def _value(node: Node, asking: Asking) -> Any:
    """The value of *node* where it does not depend on the record."""
    if not node.settled:
        return _NOTHING
    try:
        return node.evaluate(Given((), asking.parameters))
    except Exception as error:  # it raises for each record, then
        let_through(error)
        return _NOTHING


# -- indexes ---------------------------------------------------------------------------------------------------------


def accesses(
    askings: Sequence[Asking], indexes: Sequence[IndexFacts], known: Callable[[], Sequence[Asking]] = tuple
) -> list[Access]:
    """The ways to find what all of *askings* want, the most promising first. *known*: what else is true of these."""
    by: dict[Subject, list[Term]] = {}
    elements: list[dict[Subject, list[Term]]] = []  # what is said of one element: another one says nothing of it
    for asking in askings:
        term = term_of(asking)
        if term is not None:
            by.setdefault(term.subject, []).append(term)
        terms = element_terms(asking)
        if terms:
            elements.append(_by_subject(terms))
    ways = [
        (index, said)
        for index in indexes
        for said in (elements if index.several else [by] if by or index.where else [])
        if not index.where or _has_all(index, (*askings, *known()))
    ]
    found = [one for one in (_access(index, said) for index, said in ways) if one is not None]
    found.sort(key=lambda one: one.rank)
    return found


def _has_all(index: IndexFacts, known: Sequence[Asking]) -> bool:
    """Whether all records for which *known* is true satisfy the condition of the partial *index*."""
    from .implied import implied  # late: few programs have such an index

    return implied(known, index.where)


def _by_subject(terms: Iterable[Term]) -> dict[Subject, list[Term]]:
    found: dict[Subject, list[Term]] = {}
    for term in terms:
        found.setdefault(term.subject, []).append(term)
    return found


def _access(index: IndexFacts, by: dict[Subject, list[Term]]) -> Optional[Access]:
    """How *index* serves the terms, if it can."""
    if not index.complete:
        return None
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
    if not (named or index.where) or any([not part.present for part in index.parts[named:]]):
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
    return 5 if len(found) == 2 else 6


_NUMBERS = (int, float)


def _is_of(value: Any, part: Part) -> bool:
    """Whether *value* compares with the part of the key as with what the record holds."""
    kind = kind_of(value)
    return kind is part.kind or (kind in _NUMBERS and part.kind in _NUMBERS)


def ordered_by(node: Node, keyed: bool) -> Optional[tuple[Subject, ...]]:
    """The parts of the record that a sort key is, if it is nothing else."""
    nodes = node.elements if isinstance(node, Display) and node.kind is tuple else (node,)
    subjects = [_ordered(one, keyed) for one in nodes]
    return None if None in subjects or not subjects else tuple([one for one in subjects if one])


def _ordered(node: Node, keyed: bool) -> Optional[Subject]:
    if isinstance(node, Apply) and node.function.value is desc and len(node.arguments) == 1:
        subject = subject_of(node.arguments[0], keyed)
        return (DESCENDING, *subject) if subject else None
    return subject_of(node, keyed)


def sort_values(key: Any) -> tuple[Any, ...]:
    """The values of the parts of a sort key."""
    parts: tuple[Any, ...] = key if is_a(key, tuple) else (key,)
    return tuple([one.value if type(one) is Descending else one for one in parts])


def order_access(index: IndexFacts, subjects: tuple[Subject, ...], askings: Sequence[Asking]) -> Optional[Access]:
    """The range of *index* that has all records that *askings* want, in the order of *subjects*."""
    usable = index.complete and not index.several and all([part.present for part in index.parts])
    if not usable or () in subjects or (index.where and not _has_all(index, askings)):
        return None
    same: dict[Subject, Term] = {}
    for asking in askings:
        term = term_of(asking)
        if term is not None and term.operator == "==":
            same.setdefault(term.subject, term)
    equal: list[Any] = []
    nodes: list[Node] = []
    for part in index.parts[: len(index.parts) - len(subjects)]:
        term = same.get(part.subject)
        if term is None or not _is_of(term.value, part):
            return None
        equal.append(term.value)
        nodes.append(term.node)
    rest = index.parts[len(equal) :]
    if tuple([part.ordered for part in rest]) != subjects or not all([part.sorts for part in rest]):
        return None
    return Access(index, tuple(equal), rank=3, nodes=tuple(nodes))


class Question:
    """What is planned: conditions, indexes, how many records there are, the order wanted and the limit.

    *rejected* are the indexes that will not be used, and why not. *kept*, if given, has the accesses that these indexes
    offer to conditions which came before, and gets those of new ones.
    """

    __slots__ = ("askings", "indexes", "kept", "limit", "order", "rejected", "total")

    def __init__(
        self, askings: Sequence[Asking], indexes: Sequence[IndexFacts], total: int,
        order: Optional[tuple[Subject, ...]] = None, limit: Optional[int] = None, kept: Optional[Kept] = None,
    ) -> None:  # fmt: skip
        self.kept = kept
        self.askings, self.indexes, self.total, self.order, self.limit = askings, indexes, total, order, limit
        self.rejected: list[tuple[Access, str]] = []

    def accesses(self, parts: Sequence[Asking]) -> list[Access]:
        """As `accesses`, for the values that are captured now."""
        if self.kept is None:
            return accesses(parts, self.indexes, self.parts)
        # Whether a partial index may be used depends on the values that a query compares with.
        partial = [index for index in self.indexes if index.where]
        found = self._kept_accesses(parts, self.kept, [index for index in self.indexes if not index.where])
        if partial:
            found.extend(accesses(parts, partial, self.parts))
            found.sort(key=lambda one: one.rank)
        return found

    def _kept_accesses(self, parts: Sequence[Asking], kept: Kept, indexes: Sequence[IndexFacts]) -> list[Access]:
        key = tuple([(part.node, part.number) for part in parts])
        known = kept.get(key)
        if known is not None:
            found = [one.renewed(self.askings) for one in known]
            if None not in found:
                return [one for one in found if one is not None]
        made = accesses(parts, indexes)
        if known is None:
            if len(kept) >= _MOST_KEPT:
                kept.clear()
            kept[key] = made[:]
        return made

    def parts(self) -> list[Asking]:
        """Conditions that all have to hold."""
        return [asking.of(node) for asking in self.askings for node in conjuncts(asking.node)]


def choose(question: Question, measure: Measure) -> Choice:
    """The plan for *question*; *measure* counts entries."""
    found = _filters(question, measure)
    order = _order(question, found, measure)
    if order is not None:
        return Choice((), order, tuple([one for one in question.rejected if one[0].facts is not order.facts]))
    return Choice(found, None, tuple(question.rejected))


def _order(question: Question, found: tuple[Access, ...], measure: Measure) -> Optional[Access]:
    """The index that gives the order, where that is better than to read *found* and sort."""
    if question.order is None:
        return None
    parts = question.parts()
    for index in question.indexes:
        access = order_access(index, question.order, parts)
        if access is None or measure(access, 0) is None:
            continue
        alike = len(found) == 1 and found[0].facts.name == index.name and found[0].equal == access.equal
        if not found:
            return access
        if alike and found[0].members is None:
            return found[0]  # with its bounds
        many = question.limit is not None and all([one.rank > 0 for one in found])
        if many and sum([measure(one, CAP) or 0 for one in found]) >= CAP:
            return access
    return None


def _filters(question: Question, measure: Measure) -> tuple[Access, ...]:
    """The ranges to read for the conditions; none to read all records."""
    parts = question.parts()
    one = _best(parts, question, measure)
    if one is not None:
        return (one,)
    for part in parts:
        if isinstance(part.node, Joined) and part.node.word == "or":
            each = [
                _best([part.of(node) for node in conjuncts(way)], question, measure) for way in part.node.conditions
            ]
            if None not in each:
                return tuple([access for access in each if access is not None])
    return ()


def _best(parts: Sequence[Asking], question: Question, measure: Measure) -> Optional[Access]:
    """The best access that finds what all of *parts* want."""
    found = question.accesses(parts)
    if not found:
        return None
    if found[0].rank == 0 and measure(found[0], 0) is not None:
        return found[0]
    most = CAP if question.total <= SMALL else max(question.total // SHARE, 1)
    counted: list[tuple[int, int, Access]] = []
    for number, access in enumerate(found):
        entries = measure(access, min(CAP, most) if len(found) > 1 else most)
        if entries is None:
            question.rejected.append((access, "it cannot hold such a value"))
        elif entries >= most and question.total > SMALL and not access.is_range_of_keys:
            why = f"{entries:,} or more of {question.total:,} records, all are read faster"
            question.rejected.append((access, why))
        else:
            counted.append((entries, number, access))
    if not counted:
        return None
    best = min(counted)[2] if len(counted) > 1 else counted[0][2]
    question.rejected.extend([(one, f"{entries:,} entries") for entries, _, one in counted if one is not best])
    return best


def reasons(nodes: Iterable[Node]) -> tuple[str, ...]:
    """Why the functions are called for records."""
    return tuple(dict.fromkeys([reason for node in nodes for reason in calls(node)]))


def is_present(known: Known) -> bool:
    """Whether a value of which *known* is known is never None."""
    return not known.unknown and not known.optional
