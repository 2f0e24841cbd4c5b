"""The first few rows of many that are sorted: of these only, more is read than what the records are sorted by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Optional

from ...handlers import let_through
from ...query.following import Followed
from ...query.plan import Choice
from ...query.prepared import Prepared
from ...query.projection import ENGINE_KEYS, HITS, KEYS, PAIRS, VALUES, Projection
from ...query.translated import Give, want_of
from ..scan import while_open

if TYPE_CHECKING:
    from .execution import Running
    from .linkedorder import LinkedOrder

_second = itemgetter(1)


def few(
    running: Running, choice: Optional[Choice], linked: Optional[LinkedOrder], gives: Sequence[Give], one: bool
) -> Iterable[Any]:  # fmt: skip
    """What *gives* say of each record, as `Running.rows`, while nothing is written: by *linked*, else by *choice*."""
    keys = None if linked is None else linked.keys()
    if keys is None:
        keys = [key for _, key in running._rows((ENGINE_KEYS,), True, None, choice)]
    functions = [give for give in gives if isinstance(give, Followed)]
    for give in functions:
        running.settle(give)
    programs, key, prepared = running.programs, None, None
    if all([give.reading.trusted for give in functions]):
        key = "few", one, *[give.reading if isinstance(give, Followed) else give for give in gives]
        prepared = programs.prepared.get(key)
    if prepared is None:
        prepared = Prepared(functions, (), (), want_of(tuple(gives), programs, one=one), programs)
        programs.keep(key, prepared)
    table = running.table
    try:
        return prepared.listing(sparse=False)(keys, table._get, table._db, functions)
    except Exception as error:  # the general form tells what it is
        let_through(error)
        return map(_second, running._rows(gives, one, None, choice))


def asked_last(running: Running, gives: Sequence[Give], one: bool) -> Optional[Iterator[Any]]:
    """What *gives* say of each record that comes out, if a function of them may raise: it is asked of no others."""
    functions = [give for give in gives if isinstance(give, Followed)]
    for give in functions:
        running.settle(give)
    if not any([give.node.risky for give in functions]) or (one and len(gives) > 1):
        return None
    if not all([isinstance(give, Followed) or give in _OF_PAIRS for give in gives]):
        return None
    parts = [_OF_PAIRS[give] if isinstance(give, Projection) else partial(_asked, give) for give in gives]
    pairs = running.rows(PAIRS)
    rows = map(parts[0], pairs) if one else (tuple([part(pair) for part in parts]) for pair in pairs)
    return rows if running.at_once else while_open(running.table, lambda: rows)


_OF_PAIRS: Mapping[Projection, Callable[[tuple[Any, Any]], Any]] = {
    KEYS: itemgetter(0),
    VALUES: itemgetter(1),
    HITS: lambda _: None,
}


def _asked(give: Followed, pair: tuple[Any, Any]) -> Any:
    record = pair if give.keyed else pair[1:]
    try:
        return give(*record)
    except Exception as error:
        let_through(error)
        return give.function(*record)  # raises at the line of the program


def linked_order(running: Running) -> Optional[LinkedOrder]:
    """What finds the first rows, if they are sorted by a field of what they refer to."""
    if running.order is None or not running.order.reading.links:
        return None
    from .linkedorder import linked_order as found  # late: few programs follow links

    return found(running)
