"""The different values of the fields of an index, and how many records have each: from its entries alone.

The values are in the order of the records that have them first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Optional

from ...handlers import let_through
from ...namedtuples import NamedTuple
from ...query.accesses import Access, IndexFacts, order_access
from ...query.following import Followed
from ...query.following.operations import Display
from ...query.recordpaths import needed
from ...query.terms import KEY, Subject, subject_of
from ..scan import while_open
from .accessreads import AccessReads
from .cachedplans import keep, parts_of
from .counted import fits, is_all, known_of
from .covered import EXACT
from .groupedentries import Entries
from .indexfacts import vouches

if TYPE_CHECKING:
    from ...query.explained import Plan
    from ...query.translated import Give
    from ..selection import Selection
    from .execution import Known


def different(
    selection: Selection[Any, Any], give: Give, more: Sequence[Followed] = ()
) -> Optional[Different]:  # fmt: skip
    """What tells the different things that *give* says of the records of *selection*; None if no index does.

    It also tells what *more* says of them.
    """
    if not isinstance(give, Followed) or selection._query.order is not None or selection._reverse:
        return None
    written = selection._table._txn._write  # the body of a loop over them may write
    known = None if written or selection._limit is not None or selection._query.skip else known_of(selection)
    if known is None:
        return None
    where = selection._query.where
    key = ("different", give.reading, *[one.reading for one in more], None, *[one.reading for one in where])
    found: Any = known.cached.get(key)
    if found is not None and found is not False and where:
        found = found._replace(access=found.access.renewed(where))
        if found.access is None or not fits(found.access) or not _is_within(selection, found.access):
            found = None
    if found is None:
        found = _chosen(selection, give, more, known)
        if found is None:  # not yet
            return None
        # Whether a partial index may be used depends on captured values.
        if key not in known.cached and not any(
            [one.where for one in known.facts] + [one.reading.links for one in where]
        ):
            keep(known.cached, key, found)
    return None if found is False else Different(selection, give, found.access, found.wanted)


class _Chosen(NamedTuple):
    """The *access* that tells different things, which are so many of its parts, *wanted*."""

    access: Access
    wanted: int


def _chosen(selection: Selection[Any, Any], give: Followed, more: Sequence[Followed], known: Known) -> Any:
    """The `_Chosen` of a query; False if there is none, None if that cannot be told yet."""
    running, where = selection._running(ordered=False), selection._query.where
    for followed in (give, *more):
        running.settle(followed)
    readings = [one.reading for one in (*where, give, *more)]
    if any([one.to_check > 0 for one in readings]):
        return None
    node, fields = give.node, needed(more, more)
    nodes: Sequence[Any] = node.elements if isinstance(node, Display) and node.kind is tuple else (node,)
    subjects = [subject_of(one, give.keyed) for one in nodes]
    wanted = len(subjects)
    vouched = vouches(selection._table._storage.value.name)
    if not (subjects and all(subjects) and vouched and all([one.complete for one in readings])) or fields is None:
        return False
    found = _with_parts(known.facts, subjects)
    parts = parts_of(where) if found else []
    for rest, facts in found:
        # Members of an Enum have no order, and entries of equal ones stand side by side all the same.
        facts = facts._replace(parts=tuple([part._replace(sorts=True) for part in facts.parts]))
        access = order_access(facts, tuple([part.ordered for part in facts.parts[-rest:]]), parts)
        if access is None or not is_all(access, parts) or not _is_within(selection, access):
            continue
        if not fields or ((cover := running.cover_of(access)) is not None and fields <= cover.fields):
            return _Chosen(access, wanted)
    return False


def _with_parts(
    indexes: Sequence[IndexFacts], subjects: Sequence[Optional[Subject]]
) -> list[tuple[int, IndexFacts]]:  # fmt: skip
    """Those of *indexes* that have *subjects* side by side; with each, how many parts it has from there on."""
    wanted = len(subjects)
    found = [
        (len(one.parts) - at, one) for one in indexes if one.name != KEY
        for at in range(len(one.parts) - wanted + 1)
        if [part.subject for part in one.parts[at : at + wanted]] == subjects
        and all([part.kind in EXACT or issubclass(part.kind, Enum) for part in one.parts[: at + wanted]])
        and not (one.unique and at + wanted == len(one.parts))  # then each record has another value
    ]  # fmt: skip
    return sorted(found, key=itemgetter(0))  # whole index keys first: these need no record


def _is_within(selection: Selection[Any, Any], access: Access) -> bool:
    """Whether the values of *access* can be in its index."""
    return AccessReads(selection._table).measure(access, 0) is not None


class Different:
    """The different things that *give* says of the records of *selection*, of which the entries of *access* tell.

    They are *wanted* parts of the index, behind those that *access* has equal to something.
    """

    def __init__(self, selection: Selection[Any, Any], give: Followed, access: Access, wanted: int) -> None:
        self._selection, self._give, self._access, self._wanted = selection, give, access, wanted

    def rows(self, *, soon: bool) -> Optional[Iterator[Any]]:
        """Each of them once; with *soon* None if there are many, since all are found before the first one comes."""
        rows = self._told(partial(Entries.values, soon=soon))
        return None if rows is None else while_open(self._selection._table, partial(iter, rows))

    def number(self) -> Optional[int]:
        """How many of them there are; None where it is not told."""
        return self._told(Entries.number)

    def numbers(self, asked: Sequence[tuple[str, Optional[Followed]]]) -> Optional[Iterator[tuple[Any, Any]]]:
        """Each of them with what is *asked* of its records, in the order of the first ones; None where it is not told.

        It is "count", or "max", "mean", "min" or "sum" of what a function says of them.
        """
        return self._told(partial(Entries.numbers, asked=asked))

    def _told(self, by: Callable[[Entries], Any]) -> Any:
        try:
            return by(Entries(self._selection, self._access, self._give, self._wanted))
        except Exception as error:  # the general form tells what it is
            let_through(error)
            return None

    def explained(self, plan: Plan) -> Plan:
        """*plan*, with what is read instead."""
        facts = self._access.facts
        read: Optional[str] = self._told(Entries.shown)
        if read is None:
            return plan
        whole = len(self._access.equal) + self._wanted == len(facts.parts)
        rest = "" if whole else ", and the first records for the order"
        return plan._replace(
            read=(f"{self._access}: {read}{rest}",), indexes=(facts.name,), covered=whole, rejected=()
        )  # fmt: skip
