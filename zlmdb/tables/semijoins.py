"""Conditions on linked records, served by indexes: ``t.authors[b.author].name == "Ann"`` reads few records of authors.

The index of the other table finds the records that fit. Where they are few, their keys are what the field may be, and
an index of that field finds the records that refer to them. As with any index, each condition is asked again of each
record, so that what is found may be too much, and never too little. In a write transaction the body of a loop may
change the other table, and each record is judged when its turn comes: there links are looked up one by one, except for
``edit``, ``change`` and ``delete``, which find all records before they begin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from ..handlers import let_through
from ..query.following import Given, Node, spelled
from ..query.following.linked import Link
from ..query.following.nodes import Argument, Called, Variable
from ..query.plan import CAP, Access, Asking, Question, Term, choose, is_indexed

if TYPE_CHECKING:
    from .running import Running


class SemiJoins:
    """The semi-joins of one plan. *texts* says which were made, and why others were not."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._known: dict[Node, Optional[Term]] = {}
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
        except Exception as error:  # whoever reads the records is told
            let_through(error)
            return None
        return None if keys is None else Term(subject, "in", keys, asking.node)

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
