"""Cached plans of queries of a table with partial indexes: captured values decide which of these may serve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Optional

from ...query.accesses import IndexFacts, has_all
from ...query.following import Followed, Node, walk
from ...query.following.known import PLAIN
from ...query.following.nodes import Argument, Parameter
from ...query.following.operations import Attribute
from ...query.terms import Asking

_KEPT = 256


class CachedPartial:
    """A query of which all is known but the captured values, and the indexes that these allow.

    An index is partial by a condition on some fields. Only what the query asks of the same fields can imply it, so
    which indexes may serve is kept by the values in there.
    """

    __slots__ = ("_facts", "_made", "_parts", "_sources", "_usable")

    def __init__(self, facts: Sequence[IndexFacts], parts: Sequence[Asking]) -> None:
        """*facts* of all indexes, and the *parts* of the query's conditions."""
        self._facts = facts
        names = _names([one.node for index in facts for one in index.where])
        deciding = [part for part in parts if _meet(names, _names([part.node]))]
        self._parts = [part._replace(parameters=()) for part in deciding]  # what is captured must not be kept
        numbers = [(part.number, one.number) for part in deciding for one in walk(part.node) if type(one) is Parameter]
        self._sources = sorted(set(numbers))
        self._usable: dict[Any, tuple[int, ...]] = {}
        self._made: dict[tuple[int, ...], Any] = {}

    def of(self, where: Sequence[Followed], make: Callable[[Sequence[IndexFacts]], Any]) -> Any:
        """The cached plan for what *where* has captured, which *make* makes for the indexes that may be used.

        False if there is none.
        """
        values = [where[function].parameters[number] for function, number in self._sources]
        kinds = tuple(map(type, values))
        if not all([kind in PLAIN for kind in kinds]):
            return False
        key = kinds, *values
        usable = self._usable.get(key)
        if usable is None:
            if len(self._usable) >= _KEPT:
                self._usable.clear()
            usable = self._usable[key] = self._allowed(where)
        made = self._made.get(usable)
        if made is None:
            made = self._made[usable] = make([self._facts[number] for number in usable])
        return made

    def _allowed(self, where: Sequence[Followed]) -> tuple[int, ...]:
        """The numbers of the indexes that have all records for which *where* is true."""
        said = [part._replace(parameters=where[part.number].parameters) for part in self._parts]
        return tuple([n for n, index in enumerate(self._facts) if not index.where or has_all(index, said)])


def _meet(names: Optional[set[str]], others: Optional[set[str]]) -> bool:
    return names is None or others is None or not names.isdisjoint(others)


def _names(nodes: Sequence[Node]) -> Optional[set[str]]:
    """The names of the fields that *nodes* ask for; None if they ask for more than fields."""
    found: set[str] = set()
    for one in [part for node in nodes for part in walk(node)]:
        if isinstance(one, Attribute):
            found.add(one.name)
        elif any([isinstance(part, Argument) for part in (*one.parts(), *([one] if one in nodes else []))]):
            return None
    return found
