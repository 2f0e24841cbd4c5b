"""Whether conditions imply another one: what a query asks, and what the records of a partial index have in common.

Only what is certain counts: the same condition, or one on the same part of a record with values that decide it. Each
rule here is one of logic, for values of one type whose comparison is that of their type.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any

from ..handlers import let_through
from ..values.base import is_a
from .canonical import said
from .following.known import PLAIN, kind_of
from .following.nodeof import has_fixed_zone
from .following.operations import Joined
from .terms import Asking, Term, conjuncts, not_none, term_of

_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "startswith": lambda value, start: value.startswith(start),
}
_NUMBERS = (int, float)


def implied(given: Sequence[Asking], wanted: Iterable[Asking]) -> bool:
    """Whether a record for which all of *given* is true has all of *wanted* true."""
    return all([_implied(given, one) for one in wanted])


def _implied(given: Sequence[Asking], wanted: Asking) -> bool:
    text = said(wanted.node, wanted.parameters)
    if text is not None and any([said(one.node, one.parameters) == text for one in given]):
        return True
    node = wanted.node
    if isinstance(node, Joined) and node.word == "or":
        return any([implied(given, [wanted.of(one) for one in conjuncts(way)]) for way in node.conditions])
    terms = [term for term in map(term_of, given) if term is not None]
    if (subject := not_none(wanted)) is not None:
        true = any([one.subject(one.node) == subject for one in given])
        return true or any([term.subject == subject and _says_something(term) for term in terms])
    term = term_of(wanted)
    return term is not None and any([one.subject == term.subject and _covers(one, term) for one in terms])


def _says_something(term: Term) -> bool:
    """Whether *term* is true only of what is not None."""
    return not term.negative and (term.operator != "in" or None not in term.value)


def _covers(given: Term, wanted: Term) -> bool:
    """Whether what *given* says of a value implies what *wanted* says of it."""
    try:
        if given.operator == "==":
            return _is_true(wanted, given.value)
        if given.operator == "in":
            return all([_is_true(wanted, one) for one in given.value])
        if given.operator != wanted.operator and {given.operator, wanted.operator} not in ({"<", "<="}, {">", ">="}):
            return False
        if not _alike(given.value, wanted.value):
            return False
        if given.operator == "startswith":
            return bool(given.value.startswith(wanted.value))
        strict = "=" in given.operator and "=" not in wanted.operator  # x <= 5 does not imply x < 5
        compare = wanted.operator[0] if strict else f"{wanted.operator[0]}="
        return bool(_HOLDS[compare](given.value, wanted.value))
    except Exception as error:  # of values that have no order
        let_through(error)
        return False


def _is_true(wanted: Term, value: Any) -> bool:
    """Whether *wanted* is true of *value*."""
    if wanted.operator in ("==", "in"):
        return any([_same(value, one) for one in (wanted.value if wanted.operator == "in" else (wanted.value,))])
    return _alike(value, wanted.value) and bool(_HOLDS[wanted.operator](value, wanted.value))


def _same(one: Any, other: Any) -> bool:
    """Whether both are equal, and nothing that equals one of them can differ from the other."""
    return one is other if is_a(one, Enum) else _alike(one, other) and bool(one == other)


def _alike(one: Any, other: Any) -> bool:
    """Whether both are of one type whose values compare by what they are.

    Times of one zone compare by what its clocks show, and as bounds of what is stored by their moments: at the end of
    summer these differ.
    """
    kinds = kind_of(one), kind_of(other)
    if not (has_fixed_zone(one) and has_fixed_zone(other)):
        return False
    return (kinds[0] is kinds[1] and kinds[0] in PLAIN) or (kinds[0] in _NUMBERS and kinds[1] in _NUMBERS)
