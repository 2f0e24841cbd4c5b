"""One page of a selection: the rows behind a position, or before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Optional

from ..query.cursors import Position, fingerprint, none_of_this_query, recent
from ..query.following import Followed, spelled
from ..query.following.captured import is_settled
from ..query.pages import Page
from ..query.projection import ENGINE_KEYS, VALUES
from .executor.cachedorder import CachedOrder
from .executor.cachedplan import CachedPlan, PageRead
from .indexview import IndexSelection

if TYPE_CHECKING:
    from ..query.translated import Give
    from .selection import Selection


def page(selection: Selection[Any, Any], give: Give, size: int, after: Optional[str]) -> Page[Any]:
    """At most *size* rows of *selection*, from the cursor *after* on if there is one."""
    if type(size) is not int or size < 1:
        raise ValueError(f"page(size={size!r}): give the number of rows of a page, 1 or more")
    cached = selection._cached_plan(give, at_once=True)
    if isinstance(cached, CachedOrder) and _is_constant(selection):
        if cached.fingerprint is None:
            cached.fingerprint = _fingerprint(selection)
        name = cached.fingerprint
    else:
        name = _fingerprint(selection)
    begin, before = (None, False) if after is None else recent.mark(after, name)
    if before:
        selection = _backwards(selection)
        cached = selection._cached_plan(give, at_once=True)
    rows, first, last = _read(selection, cached, give, size, begin, after)
    if before:
        rows.reverse()
        first, last = last, first
    return Page(rows, None if last is None else recent.cursor(last, name), first, name)


def _backwards(selection: Selection[Any, Any]) -> Selection[Any, Any]:
    """The same rows the other way round."""
    query = selection._query
    if query.order is None:
        return selection._with(reverse=not selection._reverse)
    return selection._with(query._replace(backwards=not query.backwards))


def _read(
    selection: Selection[Any, Any], cached: Optional[CachedPlan], give: Give, size: int, begin: Optional[Position],
    after: Optional[str],
) -> PageRead:  # fmt: skip
    """The rows of a page behind *begin*, of which *after* is the cursor."""
    if cached is not None:
        found = cached.page(selection, give, size, begin)
        if found is not None:
            return found
        if cached.in_order and selection._query.order is None and selection._plain:
            return _known_page(selection, give, size, begin)
    rows = list(islice(_rows(selection, give, begin, after, size + 1), size + 1))
    shown = [row for _, row in rows[:size]]
    return shown, None if begin is None or not rows else rows[0][0], rows[size - 1][0] if len(rows) > size else None


def _known_page(selection: Selection[Any, Any], give: Give, size: int, begin: Optional[Position]) -> PageRead:
    """As `_read`, by a cached plan that finds the rows in the order of an index: it reads few entries."""
    if begin is not None:
        selection = _behind(selection, begin.entry)
    rows = selection.limit(size + 1)._listed(give)
    more = len(rows) > size
    if not rows or (begin is None and not more):
        return rows, None, None
    keys = selection.limit(size)._listed(ENGINE_KEYS)  # of no other rows
    first = None if begin is None else Position(None, keys[0])
    return rows[:size], first, Position(None, keys[-1]) if more else None


def _rows(
    selection: Selection[Any, Any], give: Give, begin: Optional[Position], after: Optional[str], most: int
) -> Iterator[tuple[Position, Any]]:  # fmt: skip
    """The rows behind *begin*, which the cursor *after* says, with their positions."""
    order = selection._query.order
    entry_of = _entry_of(selection)
    if order is None:
        if begin is not None:
            selection = _behind(selection, begin.entry)
        for value, engine_key, row in selection._running().rows(VALUES, ENGINE_KEYS, give, one=False):
            yield Position(None, entry_of(value, engine_key)), row
        return
    backwards = selection._query.backwards
    down = bool(selection._reverse) is not backwards

    def is_behind(pair: tuple[Any, Any]) -> bool:
        sort_key, (value, engine_key, _) = pair
        position = Position(sort_key, entry_of(value, engine_key))
        try:
            return begin is None or position.is_behind(begin, backwards, down)
        except (TypeError, AttributeError, ArithmeticError) as error:  # somebody has made the cursor
            raise ValueError(none_of_this_query(after)) from error

    gives = VALUES, ENGINE_KEYS, give
    for sort_key, (value, engine_key, row) in selection.limit(most)._running().rows_behind(gives, is_behind, begin):
        yield Position(sort_key, entry_of(value, engine_key)), row


def _entry_of(selection: Selection[Any, Any]) -> Callable[[Any, bytes], bytes]:
    """The function of the value and the engine's key of a record that says where it stands without an order."""
    by_index = selection if isinstance(selection, IndexSelection) else None
    prefix = len(selection._table._storage.prefix)

    def entry_of(value: Any, key: bytes) -> bytes:
        return key if by_index is None else by_index._entry_of(value, key[prefix:]) or b""

    return entry_of


def _behind(selection: Selection[Any, Any], entry: bytes) -> Selection[Any, Any]:
    """The part of the range of *selection* behind *entry*."""
    if selection._reverse:
        return selection._with(upper=min(entry, selection._upper))
    return selection._with(lower=max(entry + b"\0", selection._lower))


def _fingerprint(selection: Selection[Any, Any]) -> str:
    """What tells the query from others, also in another process."""
    query = selection._query
    functions = [*query.where, *([] if query.order is None else [query.order])]
    index = selection._index.storage.name if isinstance(selection, IndexSelection) else None
    bounds = selection._lower, bytes(selection._upper)
    return fingerprint(
        selection._table._name, index, *bounds, selection._reverse, query.backwards, query.order is not None,
        [_said(one) for one in functions],
    )  # fmt: skip


def _is_constant(selection: Selection[Any, Any]) -> bool:
    """Whether each selection with these functions and this order, of all records, has the same fingerprint."""
    query, order = selection._query, selection._query.order
    plain = selection._is_all() and not selection._reverse and not query.where
    return plain and order is not None and len(order.parameters) == 1


def _said(followed: Followed) -> Any:
    captured = [_told(value) for value in followed.parameters if is_settled(value)]
    reading = followed.reading
    kept = reading.kept.get(_said) if reading.trusted else None
    if kept is None:
        kept = spelled(followed.node), bool(followed.reasons)
        if reading.trusted:
            reading.kept[_said] = kept
    spelling, called = kept
    name = getattr(followed.function, "__qualname__", type(followed.function).__qualname__) if called else ""
    return spelling, captured, name


def _told(value: Any) -> str:
    """*value*, which a function captured, as the same text in every process."""
    several: Any = value
    return repr(sorted(map(repr, several)) if isinstance(value, frozenset) else value)
