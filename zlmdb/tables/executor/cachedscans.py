"""Cached plans of queries that no index answers: one generated function lists the rows of all records of a range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Optional

from ...handlers import let_through
from ...query.following import Followed, walk
from ...query.following.known import PLAIN
from ...query.following.nodes import Parameter
from ...query.prepared import Prepared
from ...query.projection import HITS
from ...query.translated import Give
from ...store.blocks import COUNTS_REFERENCES
from ...store.ranges import pairs_from, seek, values_from

if TYPE_CHECKING:
    from ..selection import Selection
    from .execution import Running


def scanned(running: Running, give: Give) -> Any:
    """The cached plan of the query of *running*, for which no index is of use; False if there is none."""
    where = running.query.where
    functions = [*where, give] if isinstance(give, Followed) else [*where]
    captured: list[tuple[int, int, type[Any]]] = [
        (function, one.number, type(followed.parameters[one.number]))
        for function, followed in enumerate(where)
        for one in walk(followed.node)
        if isinstance(one, Parameter)
    ]
    if not {kind for _, _, kind in captured}.issubset(PLAIN):  # the size of a set decides whether an index is of use
        return False
    prepared = running.prepared(functions, (give,), True)
    return ScanReady(prepared, captured) if prepared.renewable else False


class ScanReady:
    """A query of which all is known but the captured values, and which reads all records of a range."""

    __slots__ = ("_captured", "_prepared")

    def __init__(self, prepared: Prepared, captured: Sequence[tuple[int, int, type[Any]]]) -> None:
        """*captured*: of each captured value in a condition the numbers of both, and its type.

        If it is of another type, an index may be of use.
        """
        self._prepared, self._captured = prepared, captured

    def all(
        self, selection: Selection[Any, Any], give: Give, limit: Optional[int]
    ) -> Optional[list[Any]]:  # fmt: skip
        """At most *limit* of the rows of *selection*; None where somebody else has to find out."""
        return self._listed(selection, give, limit, None)

    def part(
        self, selection: Selection[Any, Any], give: Give, most: int
    ) -> tuple[list[Any], Optional[Selection[Any, Any]]]:  # fmt: skip
        """The rows of the first *most* records, none skipped, and what is behind these; None if there is nothing.

        Raises LookupError where somebody else has to find out.
        """
        keys = selection._record_keys(most + 1)
        rows = self._listed(selection, give, most, most)
        if rows is None:
            raise LookupError("something is unusual")
        return rows, behind(selection, keys[most - 1]) if len(keys) > most else None

    def _listed(
        self, selection: Selection[Any, Any], give: Give, limit: Optional[int], most: Optional[int]
    ) -> Optional[list[Any]]:  # fmt: skip
        """As `all`; with *most* of the first so many records, and nothing is skipped."""
        table, query = selection._table, selection._query
        where, skip, raw = query.where, query.skip if most is None else 0, table._raw
        if limit == 0:
            return []
        limited = limit is not None or skip > 0
        if give is HITS and not limited:  # to count them takes no list
            return None
        for function, number, kind in self._captured:
            if type(where[function].parameters[number]) is not kind:
                return None
        try:
            functions = (*where, give) if isinstance(give, Followed) else where
            prepared = self._prepared.renewed(functions)
            if prepared is None:
                return None
            cursor, lower, upper = raw.cursor(table._db), selection._lower, selection._upper
            reverse = bool(selection._reverse)
            if not seek(cursor, lower, upper, reverse):
                return []
            rows: Any = (pairs_from if prepared.keyed else values_from)(cursor, lower, upper, reverse)
            if most is not None:
                rows = islice(rows, most)
            found: list[Any]
            if limited:
                left = -1 if limit is None else limit
                found = prepared.scanning(limited=True)(rows, functions, skip, left, *prepared.given)
            else:
                found = prepared.scanning(limited=False)(rows, functions, *prepared.given)
            if not COUNTS_REFERENCES:
                cursor.close()
        except Exception as error:  # the general form tells what it is
            let_through(error)
            return None
        return found if table._raw is raw else None

    def rows(self, selection: Selection[Any, Any], give: Give) -> Iterator[Any]:
        """The rows of *selection*, which the caller may not want all."""
        return selection._running().rows(give)


def behind(selection: Selection[Any, Any], key: bytes) -> Selection[Any, Any]:
    """The part of *selection* behind the engine's *key* of one of its records."""
    return selection._with(upper=key) if selection._reverse else selection._with(lower=key + b"\0")
