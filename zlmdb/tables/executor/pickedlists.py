"""Rows of the records that an index found, in lists: one generated function looks up many keys and lists what is given.

Where the entries of the index are those of exactly the records that fit, as of keys that `semijoins` found, the
condition is not asked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Optional

from ...query.expressionsource import Asked
from ...query.following import Followed, Node
from ...query.inorder import blocks_of
from ...query.plan import Choice
from ...query.prepared import Prepared
from ...query.terms import conjuncts
from ...query.translated import Give, want_of
from .covered import EXACT
from .indexfacts import vouches
from .keylookups import by_cursor
from .linkednodes import Among, AnyAmong

if TYPE_CHECKING:
    from ..table import Table
    from .execution import Running


def lists(
    running: Running, choice: Choice, functions: Sequence[Followed], gives: Sequence[Give]
) -> Optional[Iterator[list[Any]]]:  # fmt: skip
    """What *gives* say of the records that *choice* finds for *running*; None if that is told in another way.

    *functions* are all that are asked of the records. Raises where somebody else has to find out.
    """
    table = running.table
    if table._txn._write or not table._steady:
        return None
    if not choice.accesses or all([one.is_range_of_keys for one in choice.accesses]):
        return None
    if not all([one.reading.complete for one in functions]):
        return None
    selection = running.selection
    keys = running.reads.picked(choice.accesses, selection, reverse=bool(selection._reverse))
    return _blocks(table, keys, _prepared(running, told_by(running, choice), functions, gives), functions)


Told = tuple[int, Node]
"""The number of a function of the query, and a condition in it. Two functions of the same code have the same one."""


def told_by(running: Running, choice: Choice) -> Optional[Told]:
    """The condition that is true of exactly the records that *choice* finds."""
    access = choice.accesses[0]
    if len(choice.accesses) > 1 or len(access.terms) != 1 or not vouches(running.storage.value.name):
        return None
    part, term = access.terms[0]
    exact = part.kind in EXACT and len(access.facts.parts) == 1 and term.operator in ("==", "in")
    if not exact or term.origin is None or not isinstance(term.node, (Among, AnyAmong)):
        return None
    return term.origin.number, term.node


def _prepared(running: Running, told: Optional[Told], functions: Sequence[Followed], gives: Sequence[Give]) -> Prepared:
    """What lists the rows, without asking *told* again."""
    programs = running.programs
    fixed = [None if isinstance(give, Followed) else give for give in gives]
    key = "picked", told, *fixed, *[one.reading for one in functions]
    prepared: Optional[Prepared] = programs.prepared.get(key)
    if prepared is None:
        parts = [(n, node) for n, one in enumerate(running.where) for node in conjuncts(one.node)]
        asked = [Asked(running.where[n], node) for n, node in parts if (n, node) != told]
        prepared = Prepared(functions, (), asked, want_of(tuple(gives), programs, one=True), programs)
        programs.keep(key, prepared)
    return prepared


def _blocks(
    table: Table[Any, Any], keys: Iterable[bytes], prepared: Prepared, functions: Sequence[Followed]
) -> Iterator[list[Any]]:  # fmt: skip
    for block in blocks_of(keys):
        get = by_cursor(table, block)
        listing = prepared.listing(sparse=False, dense=get is not None)
        rows = listing(block, table._get if get is None else get, table._db, functions)
        if rows:
            yield rows
