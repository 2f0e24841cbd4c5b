"""What a condition says of one field of a record, or of its key: the terms that an index can be asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Optional, Protocol, Union

from ..handlers import let_through
from ..namedtuples import NamedTuple
from .following import Given, Node
from .following.known import CONTAINERS, NONE, PLAIN, SOMETHING, Known, is_bare_enum, is_enum, kind_of
from .following.linked import Link
from .following.nodeof import has_plain_zone, is_constant
from .following.nodes import Argument, Constant, Parameter, Variable
from .following.operations import (
    Apply,
    Attribute,
    Binary,
    Compare,
    Conditional,
    Display,
    Each,
    IsNone,
    Item,
    Joined,
    Method,
    Not,
)
from .remembered import can_be_read
from .texttransforms import transformed

Subject = tuple[Union[str, int], ...]
"""What of a record: the path of a field, or beginning with ``KEY`` the key, or a part of it.

The path goes on with the names of transforms: ``("title", "casefold()")``.
"""

KEY = "(key)"

DESCENDING = "(descending)"
"""What a part of a sort key begins with that sorts the other way round."""

NEGATIVE = "(negative)"
"""What a part of a sort key begins with that is the negative of a number: of numbers, the other way round, too."""

ELEMENT = "(element)"
"""What in a path is one of the elements of what comes before."""

CAP = 1000
"""Entries up to which several indexes are compared by counting."""


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
        """The value for other captured values; `NOTHING` where it raises."""
        node, parameters = self.node, askings[self.number].parameters
        if isinstance(node, Parameter):
            return parameters[node.number]
        return members_of(node, parameters)


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
    wide: bool = False
    """Whether it may be true of records that *node* is not true of."""
    half: bool = False
    """Whether it is so unless another term of *node* is true, too."""


class Asking(NamedTuple):
    """A condition with the values that it captured; *elements* says what each variable of it runs through.

    *still*: no record changes while the query runs, in a write transaction either.
    """

    node: Node
    parameters: Sequence[Any]
    keyed: bool
    elements: Mapping[Node, Subject] = MappingProxyType({})
    number: int = 0
    still: bool = False

    def of(self, node: Node) -> Asking:
        """A part of it."""
        return self._replace(node=node)

    def subject(self, node: Node) -> Optional[Subject]:
        """As `subject_of`, or a part of an element."""
        return subject_of(node, self.keyed, self.elements)

    def value(self, node: Node) -> Any:
        """As `value_of`."""
        return value_of(node, self.parameters, still=self.still)


def not_none(asking: Asking) -> Optional[Subject]:
    """What *asking* says not to be None, if that is all."""
    node = asking.node
    return asking.subject(node.inner.inner) if isinstance(node, Not) and isinstance(node.inner, IsNone) else None


def conjuncts(node: Node) -> Iterator[Node]:
    """Conditions that all have to hold for *node* to be true."""
    if isinstance(node, Joined) and node.word == "and":
        for one in node.conditions:
            yield from conjuncts(one)
    else:
        yield node


def cases(node: Node) -> Sequence[Sequence[Node]]:
    """Conditions of which all those of one case hold, or of another one, where *node* is true; none if it has no cases.

    They may hold where it is not true, too.
    """
    if isinstance(node, Joined) and node.word == "or":
        return [list(conjuncts(one)) for one in node.conditions]
    if not isinstance(node, Conditional):
        return ()
    found = [[*conjuncts(node.condition), *conjuncts(node.yes)], list(conjuncts(node.no))]
    return [one for one in found if not any([isinstance(part, Constant) and not part.value for part in one])]


def subject_of(node: Node, keyed: bool, elements: Mapping[Node, Subject] = MappingProxyType({})) -> Optional[Subject]:
    """What of the record *node* is; None if it is not simply a part of it. *elements* are those of variables."""
    path: list[Union[str, int]] = []
    while True:
        if isinstance(node, Link):
            break
        if isinstance(node, Attribute):
            path.append(node.name)
            node = node.holder
        elif isinstance(node, Item) and (key := _part_of(node)) is not None:
            path.append(key)
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


def _part_of(node: Item) -> Optional[Union[str, int]]:
    """The number of a part of a tuple, or the name of an item of a TypedDict."""
    key = node.key.value if isinstance(node.key, Constant) else None
    return key if type(key) is int or (type(key) is str and hasattr(node.holder.known.cls, "__total__")) else None


_VALUES: Any = type(dict[Any, Any]().values())

MEMBERS: tuple[Any, ...] = (tuple, frozenset, list, set, dict, range, _VALUES)
"""What an index may look for one of."""

SIDES = {"<": "upper", "<=": "upper", ">": "lower", ">=": "lower"}
"""The bound that a comparison is."""

FLIPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""What a comparison is from the other side."""

NOTHING: Any = object()


def term_of(asking: Asking) -> Optional[Term]:
    """What *asking* says, if an index could serve it."""
    node = asking.node
    if isinstance(node, Compare):
        return _compared(asking, node)
    if isinstance(node, Method) and node.name == "startswith" and len(node.arguments) == 1 and not node.names:
        subject, value = asking.subject(node.holder), asking.value(node.arguments[0])
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
        subject, value = asking.subject(left), members_of(right, asking.parameters, still=asking.still)
        if subject is not None and type(value) in MEMBERS and len(value) <= CAP:
            return Term(subject, "in", tuple(value), node, Origin(asking.number, right))
        return None
    if operator == "!=":
        return None
    subject = asking.subject(left)
    if subject is None:
        subject, right, operator = asking.subject(right), left, FLIPPED[operator]
    if not subject:
        return None
    value = asking.value(right)
    if value is NOTHING or value is None:
        return None
    return Term(subject, operator, value, node, Origin(asking.number, right))


def element_terms(asking: Asking) -> list[Term]:
    """What *asking* says of one element of a field: ``x in b.tags``, or ``any(...)`` of conditions on the element."""
    node = asking.node
    if isinstance(node, Compare) and node.operator == "in":
        subject, value = asking.subject(node.right), asking.value(node.left)
        if not subject or value is None or value is NOTHING:
            return []
        return [Term((*subject, ELEMENT), "==", value, node, Origin(asking.number, node.left))]
    wanted = wanted_of(node)
    if wanted is not None and (subject := asking.subject(wanted.field)):
        among = members_of(wanted.values, asking.parameters, still=asking.still)
        if type(among) in MEMBERS and (among or not wanted.every) and len(among) <= CAP:
            return [Term((*subject, ELEMENT), "in", tuple(among), node, Origin(asking.number, wanted.values))]
        return []
    if not isinstance(node, Apply) or node.function.value is not any or len(node.arguments) != 1:
        return []
    each = node.arguments[0]
    subject = asking.subject(each.iterable) if isinstance(each, Each) else None
    if not isinstance(each, Each) or not subject:
        return []
    inner = asking._replace(elements={**asking.elements, each.variable: (*subject, ELEMENT)})
    found = [term_of(inner.of(one)) for part in (each.condition, each.value) for one in conjuncts(part)]
    return [term._replace(node=node) for term in found if term is not None]


class Wanted(NamedTuple):
    """That a *field* has an element in common with *values*, or *every* one of these."""

    field: Node
    values: Node
    every: bool


def wanted_of(node: Node) -> Optional[Wanted]:
    """What *node* wants of the elements of a field, which are not asked one by one; None if it is something else.

    ``any(one in b.tags for one in wanted)``, ``all(...)``, ``not wanted.isdisjoint(b.tags)``, ``wanted & set(b.tags)``,
    ``wanted <= set(b.tags)`` and the like.
    """
    if isinstance(node, Apply) and node.function.value in (any, all) and isinstance(each := node.arguments[0], Each):
        part, every = each.value, node.function.value is all
        if not isinstance(part, Compare) or part.operator != "in" or part.left is not each.variable:
            return None
        if every and not (isinstance(each.condition, Constant) and each.condition.value):
            return None
        return _wanted(each.iterable, part.right, every=every)
    if isinstance(node, Not) and isinstance(node.inner, Method) and node.inner.name == "isdisjoint":
        return _wanted(node.inner.holder, *node.inner.arguments, every=False)
    if isinstance(node, Method) and node.name in ("intersection", "issubset") and len(node.arguments) == 1:
        return _wanted(node.holder, *node.arguments, every=node.name == "issubset")
    if isinstance(node, Binary) and node.operator == "&":
        return _wanted(node.left, node.right, every=False)
    if isinstance(node, Compare) and node.operator in ("<=", ">="):
        few, many = (node.left, node.right) if node.operator == "<=" else (node.right, node.left)
        return _wanted(few, many, every=True)
    return None


def _wanted(one: Node, other: Node, *, every: bool) -> Optional[Wanted]:
    """Of both, if one is made of a field of the record, and the other one of captured values."""
    values, field = (other, one) if not every and _is_of_record(one) else (one, other)
    if isinstance(field, Apply) and field.function.value in (set, frozenset) and len(field.arguments) == 1:
        field = field.arguments[0]
    if every:  # of no values it says nothing, and with others it is planned anew
        values = Joined("or", (values, Constant(None, NONE)), SOMETHING)
    return Wanted(field, values, every)


def _is_of_record(node: Node) -> bool:
    return isinstance(node, (Argument, Link)) or any([_is_of_record(part) for part in node.parts()])


def value_of(node: Node, parameters: Sequence[Any], *, still: bool = False) -> Any:
    """The value of *node* with the captured *parameters*; `NOTHING` if it depends on more than these, or raises.

    *still*: see `Asking`.
    """
    try:
        if not (node.settled or _is_held(node, parameters, still)):
            return NOTHING
        value = node.evaluate(Given((), parameters))
    except Exception as error:  # it raises for each record, then
        let_through(error)
        return NOTHING
    return value if node.settled or (is_constant(value) and has_plain_zone(value)) else NOTHING


def _is_held(node: Node, parameters: Sequence[Any], still: bool) -> bool:
    """Whether *node* is an element of a captured dict or list, or computed with one: ``form["year"] - 1``.

    Or a record with such a key, ``t.orders[number].user``, in a read transaction or *still*: it stays while the query
    runs.
    """
    if isinstance(node, Link):
        held = _is_held(node.key, parameters, still)
        return held and can_be_read(node.holder.evaluate(Given((), parameters)), still=still)
    if isinstance(node, Attribute) and not node.settled:
        return isinstance(node.holder, (Attribute, Link)) and _is_held(node.holder, parameters, still)
    if isinstance(node, Parameter):
        return node.settled or kind_of(parameters[node.number]) in CONTAINERS
    if isinstance(node, (Item, Binary, Apply, Display, Joined)):
        return all([_is_held(part, parameters, still) for part in node.parts()])
    if isinstance(node, Method) and not node.settled:
        held = all([_is_held(part, parameters, still) for part in node.parts()])
        return held and (node.name == "get" or kind_of(node.holder.evaluate(Given((), parameters))) in PLAIN)
    return node.settled


def members_of(node: Node, parameters: Sequence[Any], *, still: bool = False) -> Any:
    """As `value_of`, or what is now in a captured list or set, or made of some: it stays while the query runs."""
    if isinstance(node, Parameter) and not node.settled:
        return parameters[node.number]
    if _is_values(node):
        return node.evaluate(Given((), parameters))
    if node.settled or not isinstance(node, (Apply, Binary, Display, Joined)):
        return value_of(node, parameters, still=still)
    try:
        return node.evaluate(Given((), parameters)) if _is_held(node, parameters, still) else NOTHING
    except Exception as error:  # it raises for each record, then
        let_through(error)
        return NOTHING


def _is_values(node: Node) -> bool:
    """Whether *node* is ``given.values()`` of a captured dict."""
    if not isinstance(node, Method) or node.name != "values" or node.arguments or node.names:
        return False
    return isinstance(node.holder, Parameter) and node.holder.known.cls is dict


def is_present(known: Known) -> bool:
    """Whether a value of which *known* is known is never None."""
    return not known.unknown and not known.optional
