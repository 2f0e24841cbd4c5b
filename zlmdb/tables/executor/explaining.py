"""What `Selection.explain` tells: how a query would run, in words and as an object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, get_origin

from ...query.accesses import Access, accesses, has_all
from ...query.explained import Plan
from ...query.following import Node, spelled, walk
from ...query.following.linked import Holds, Link, Referred
from ...query.following.nested import Nested
from ...query.following.nodes import Argument, Called, Variable
from ...query.plan import Choice, reasons
from ...query.terms import CAP, conjuncts
from ...query.translated import Give
from ..storage import Storage
from .cachedpaths import FEW
from .firstfew import linked_order

if TYPE_CHECKING:
    from .execution import Running


def plan_of(running: Running, give: Give, shown: str) -> Plan:
    """What `Selection.explain` gives."""
    selection, query = running.selection, running.query
    running.explaining = True
    choice = running.choice()
    gives = (give,)
    functions = running.asked(gives)
    nodes, joins = [one.node for one in functions], running.joins
    if joins is not None and joins.pending and not choice.accesses and selection._is_all():
        joins.conditions(running, tell=True)
    used = choice.accesses if choice.order is None else (choice.order,)
    read = tuple([f"{_shown(running, one)}{_awaited(running, one)}" for one in used])
    covered = running.covered(choice, running.prepared(functions, gives, True), functions, gives)
    linked = linked_order(running) if choice.order is None else None
    told = linked.told if linked is not None else None if used else _by_scan_of_links(running, give)
    return Plan(
        read=read or (selection._described() if told is None else told[1],),
        keep=tuple([spelled(one.node) for one in query.where]),
        order=_order_text(running, choice, linked),
        take=_take(query.skip, selection._limit),
        give=shown or None,
        called=(*reasons(nodes), *([] if covered is not None else _validating(running.storage))),
        rejected=(
            *[f"{_shown(running, access)}: {why}{_tried(running, access)}" for access, why in choice.rejected],
            *_partial(running, choice),
        ),
        indexes=tuple([one.facts.name for one in used]) if told is None else (told[0],),
        ordered=choice.order is not None or linked is not None,
        covered=covered is not None,
        links=_links(nodes, {} if joins is None else joins.texts, loops=running.table._txn._write),
        scanned=() if joins is None else tuple(joins.scanned),
    )


def _by_scan_of_links(running: Running, give: Give) -> Optional[tuple[str, str]]:
    """The index of a link that is read behind a scan of the other table, and how, once the functions are known well."""
    selection = running.selection
    if running.order is not None or not selection._follows_links() or len(running.query.where) > 1:
        return None
    cached = selection._cached_plan(give)
    return None if cached is None else cached.told(selection)


def _partial(running: Running, choice: Choice) -> list[str]:
    """The partial indexes that could be used if the conditions implied theirs."""
    if choice.accesses or choice.order is not None or not running.selection._plain:
        return []
    parts = [asking.of(node) for asking in running._askings() for node in conjuncts(asking.node)]
    found: list[str] = []
    for facts in running.known().facts:
        if facts.where and not has_all(facts, parts):
            asked = " and ".join([spelled(one.node) for one in facts.where])
            whole = accesses(parts, [facts._replace(where=())])
            why = f"it has only records with {asked}, which the condition does not imply"
            found += [f"{_shown(running, one)}: {why}" for one in whole]
    return found


def _tried(running: Running, access: Access) -> str:
    """What is read of an index that is not used otherwise: if few rows are wanted, its first entries may have them."""
    limit = running.selection._limit
    stop = CAP + 1 if limit is None else running.query.skip + limit
    alone = running.order is None and not running.table._txn._write
    tried = stop <= CAP and alone and access.in_order
    return f"; its first {max(stop, FEW):,} entries are tried before" if tried else ""


def _awaited(running: Running, access: Access) -> str:
    """What is read before all entries of *access* are, where these may be many."""
    if running.order is not None or access.is_range_of_keys or (running.reads.measure(access, CAP) or 0) < CAP:
        return ""
    return "; the first records are read before"


def _shown(running: Running, access: Access) -> str:
    """*access* in words, of the conditions as they are in the functions."""
    origins = {} if running.joins is None else running.joins.origins
    return str(access._replace(nodes=tuple([origins.get(one, one) for one in access.nodes])))


def _order_text(running: Running, choice: Choice, linked: Any) -> Optional[str]:
    if running.order is None:
        return None
    how = "sorted in memory"
    if choice.order is not None:
        how = "from the index, and sorted where that is equal" if choice.parts else "from the index"
    elif linked is not None:
        how = "from what the records refer to"
    elif running.selection._limit is not None:
        how = f"the first {running.query.skip + running.selection._limit:,} kept in memory"
    return f"{spelled(running.order.node)}{', reversed' if running.query.backwards else ''}: {how}"


def _links(nodes: Sequence[Node], joined: Mapping[Any, str], *, loops: bool) -> tuple[str, ...]:
    """Which linked records are looked up, and how. *loops*: what a loop changes is seen by its next turn."""
    links = [one for node in nodes for one in walk(node) if isinstance(one, Link)]
    each = ", in a loop of this transaction each time" if loops else ""
    told_of = {spelled(one if _is_same(one.key) else one.holder): _is_same(one.key) for one in links}
    texts = [f"{one}: {'' if same else 'each record is '}looked up once{each}" for one, same in told_of.items()]
    told = {one for part in joined for one in walk(part.origin)}
    every = [one for node in nodes for one in walk(node)]
    read = {one.rows for one in every if isinstance(one, Nested)}
    for one in every:
        if isinstance(one, (Referred, Holds)) and one not in told:
            how = "the records of a key are read" if one in read else "asked"
            texts.append(f"{spelled(one.right if isinstance(one, Holds) else one.holder)}: {how} for each record")
    return (*dict.fromkeys(texts), *joined.values())


def _is_same(key: Node) -> bool:
    """Whether *key* is the same for all records."""
    return not any([isinstance(one, (Argument, Variable, Called)) for one in walk(key)])


def _validating(storage: Storage[Any, Any]) -> list[str]:
    """That records of a Pydantic model are made and validated, whatever is asked of them, for `explain`."""
    model: Any = None if storage.model is None else storage.model[0]
    if not hasattr(get_origin(model) or model, "__pydantic_validator__"):
        return []
    return [f"Pydantic, which makes and validates each record of {storage.name} that is read"]


def _take(skip: int, limit: Optional[int]) -> Optional[str]:
    if limit is None:
        return f"all after {skip:,}" if skip else None
    return f"{limit:,} after {skip:,}" if skip else f"{limit:,}"
