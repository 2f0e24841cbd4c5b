"""Conditions on linked records, served by indexes: ``t.authors[b.author].name == "Ann"`` reads few records of authors.

The index of the other table finds the records that fit. Where they are few, their keys are what the field may be, and
an index of that field finds the records that refer to them. As with any index, each condition is asked again of each
record, so that what is found may be too much, and never too little. In a write transaction the body of a loop may
change the other table, and each record is judged when its turn comes: there links are looked up one by one, except for
``edit``, ``change`` and ``delete``, which find all records before they begin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional

from ..handlers import let_through
from ..query.following import Followed, Given, Node, spelled
from ..query.following.linked import Link
from ..query.following.nodes import Argument, Called, Variable
from ..query.plan import CAP, SHARE, Access, Asking, Question, Term, choose, is_indexed

if TYPE_CHECKING:
    from .running import Running


_LEAST = 256
"""Records of a table below which looking up each linked record takes no time that matters."""


class SemiJoins:
    """The semi-joins of one plan. *texts* says which were made, and why others were not."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._known: dict[Node, Optional[Term]] = {}
        self._open: dict[Node, tuple[Link, Any]] = {}  # those for which no index finds few, and their tables
        self.among: list[Followed] = []
        """Conditions that leave out records before what these refer to is looked up: see `linkscans`."""
        self.texts: dict[Node, str] = {}

    def __call__(self, asking: Asking) -> Optional[Term]:
        """The condition on the field that *asking*, a condition on a linked record, comes to; None if there is none."""
        node = asking.node
        if node not in self._known:
            self._known[node] = self._term(asking)
        return self._known[node]

    def _term(self, asking: Asking) -> Optional[Term]:
        link = link_of(asking.node)
        if link is None:
            return None
        subject = asking.subject(link.key)
        if not subject or not is_indexed(subject, self._running._facts()):
            return None
        try:
            table: Any = link.holder.evaluate(Given((), asking.parameters))
            txn = self._running.table._txn
            if table._txn is not txn or (txn._write and not self._running.at_once):
                return None
            keys = self._keys(table, asking._replace(elements={link: ()}, linked=None))
            if keys is None:
                self._open[asking.node] = link, table
        except Exception as error:  # whoever reads the records is told
            let_through(error)
            return None
        return None if keys is None else Term(subject, "in", keys, asking.node)

    def scan(self, parts: Sequence[Asking]) -> bool:
        """Read other tables as a whole where that takes less time; whether an index may find few records then.

        *parts* are conditions that must all hold: one of several cases leaves out no record.
        """
        total = self._running._total()
        if total < _LEAST:
            return False
        from .linkscans import among, keys_that_fit  # late: where indexes do not serve

        few, running = False, self._running
        most = total if len(parts) == 1 else total // SHARE  # other conditions may leave little to look up
        for asking in parts:
            if asking.node not in self._open:
                continue
            link, table = self._open[asking.node]
            followed = running.query.where[asking.number]
            try:
                keys = keys_that_fit(asking, followed, link, table, most)
            except Exception as error:  # whoever looks them up one by one is told, if that record is asked for
                let_through(error)
                continue
            if keys is None:
                continue
            self.among.append(among(followed, asking.node, link, keys))
            subject = asking.subject(link.key)
            if subject and len(keys) <= CAP:
                self._known[asking.node] = Term(subject, "in", tuple(keys), asking.node)
                few = True
        return few

    def _keys(self, table: Any, inner: Asking) -> Optional[tuple[Any, ...]]:
        """The keys of the records of *table* that may fit *inner*; None if they are many, or no index finds them."""
        other = type(self._running)(table.select())
        choice = choose(Question([inner], other._facts(), other._total()), other._measure)
        if not choice.accesses:
            return None
        found = other._picked(choice.accesses) if _few(other, choice.accesses) else None
        read = " or ".join([_shown(access) for access in choice.accesses])
        count = f"{CAP:,} or more" if found is None or len(found) > CAP else f"{len(found):,}"
        noun = "record" if count == "1" else "records"
        self.texts[inner.node] = f"{spelled(inner.node)}: {count} {noun} of {table._name}, by {read}"
        if found is None or len(found) > CAP:
            return None
        return tuple([other.storage.decode_key(key) for key in found])


def link_of(node: Node) -> Optional[Link]:
    """The linked record that *node* asks something of, if it asks nothing of anything else."""
    found: set[Link] = set()
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Link):
            found.add(one)
        elif isinstance(one, (Argument, Variable, Called)):
            return None
        else:
            waiting.extend(one.parts())
    return found.pop() if len(found) == 1 else None


def _few(running: Running, accesses: tuple[Access, ...]) -> bool:
    return sum([running._measure(access, CAP) or 0 for access in accesses]) < CAP


def _shown(access: Access) -> str:
    return str(access).partition(":")[0]
