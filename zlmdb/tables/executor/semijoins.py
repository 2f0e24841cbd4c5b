"""Conditions on linked records, told by the keys of these: ``t.authors[b.author].name == "Ann"``.

The other table is asked which of its records fit, by its indexes, or by reading it once (see `linkscans`). Then the
condition is ``b.author in found``, in which nothing is looked up, and which an index of the field serves as any other
condition. It may stand anywhere in a function: within ``or``, ``not``, ``any(... for tag in b.tags)``. Where the key is
a field of a linked record itself, that is the next condition to be told.

The way back, from a record to those that refer to it, is told by keys as well (see `referring`).

Where a link leads to no record, Python raises. Records that are left out raise nothing; where such a record might be
given, the function is asked as well.

In a write transaction the body of a loop may change the other table, and each record is judged when its turn comes:
there links are looked up one by one, except for what finds all records before the program goes on. What indexes tell
only says where to look (see `linkedloops`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Optional, Union
from uuid import UUID

from ...handlers import let_through
from ...namedtuples import NamedTuple
from ...query.accesses import Access, is_indexed
from ...query.following import Followed, Given, Node, spelled, walk
from ...query.following.linked import Link
from ...query.following.operations import Apply, Compare, Each, Joined, Not
from ...query.plan import SHARE
from ...query.projection import KEYS
from ...query.terms import CAP, ELEMENT, KEY, Subject, subject_of
from ...query.translated import Give
from . import linkscans
from .indexfacts import vouches
from .keylookups import total_of
from .linkednodes import Among, Making, link_of, nothing
from .linkscans import EXACT_KEYS, Keys, numbers_of
from .referring import CHEAPER, Back, CountOf, Referrers, SafeCounts, back_of, counted

if TYPE_CHECKING:
    from .execution import Running


class _LinkedPart(NamedTuple):
    """A condition on a linked record: the function with that *number*, and a part of it, which may come to several."""

    number: int
    origin: Node
    link: Link


class _ReferringPart(NamedTuple):
    """As `_LinkedPart`, of a condition on the records that refer."""

    number: int
    origin: Node
    back: Back


_AnyPart = Union[_LinkedPart, _ReferringPart]


class _Others(NamedTuple):
    """What is read of another *table*, in which *key* is looked up: what *give* gives of the records that fit.

    *answer* makes of that what the condition is told by; it gives None if that is too much to keep. So many times
    *cheaper* is reading a record than looking up the key. *entries*: without a condition, the same by an index alone.
    """

    table: Any
    key: Node
    fits: Sequence[Followed]
    give: Give
    answer: Callable[[Iterator[Any]], Any]
    cheaper: int = 1
    entries: Optional[Callable[[], Any]] = None


class SemiJoins:
    """The semi-joins of one run. *texts* says which were made, and why others were not."""

    def __init__(self) -> None:
        self._known: dict[_AnyPart, Any] = {}
        self._unindexed: set[Any] = set()
        self.pending = 0
        """The number of records of other tables that might be read as a whole."""
        self.texts: dict[Any, str] = {}
        self.scanned: dict[str, None] = {}
        """The tables that are read as a whole."""
        self.spaces: set[Optional[bytes]] = set()
        """The keyspaces of the tables that were read."""
        self.origins: dict[Node, Node] = {}
        """What conditions that were made here come from."""

    def conditions(self, running: Running, *, scan: bool = False, tell: bool = False) -> list[Followed]:
        """The conditions of the query of *running*, with what is known of linked records.

        *scan*: other tables may be read as a whole. *tell*: they are not, and it is told that they would be.
        """
        self.pending = 0
        found: list[Followed] = []
        for number, followed in enumerate(running.query.where):
            if followed.reading.links:
                found += _Telling(self, running, number, scan=scan, tell=tell).conditions()
            else:
                found.append(followed)
        return found

    def keys(
        self, telling: _Telling, node: Node, part: _LinkedPart, subject: Optional[Subject], *, numbers: bool
    ) -> Optional[Keys]:  # fmt: skip
        """The keys of the records that *node*, the condition *part*, is true of; None if they are not known.

        *numbers*: they are UUIDs, and their numbers tell.
        """

        def others() -> _Others:
            link = part.link
            fits = Followed(telling.making.of_record(node, link), nothing, telling.parameters)
            table = link.holder.evaluate(Given((), telling.parameters))
            return _Others(table, link.key, (fits,), KEYS, partial(linkscans.keys_of, numbers=numbers))

        return self._told(telling, part, subject, others)

    def _told(
        self, telling: _Telling, part: _AnyPart, subject: Optional[Subject], find: Callable[[], Optional[_Others]]
    ) -> Any:
        """What the others that *find* gives tell of *part*; None also if that raised: looking them up raises again."""
        if part not in self._known:
            try:
                others = find()
                found = None if others is None else self._read(telling, part, subject, others)
            except Exception as error:
                let_through(error)
                return None
            if found is None:
                return None
            self._known[part] = found
        return self._known[part]

    def _read(self, telling: _Telling, part: _AnyPart, subject: Optional[Subject], others: _Others) -> Any:
        """As `_told`, by an index of the other table, or by reading that as a whole."""
        running, table, fits = telling.running, others.table, others.fits
        txn = running.table._txn
        loop = txn._write and not running.at_once
        if table._txn is not txn or (loop and not (running.picking and table._steady and _alone(fits))):
            return None
        all_wanted = running.every or telling.scan
        if fits and part not in self._unindexed and (
            not subject or all_wanted or is_indexed(subject, running.known().facts)
        ):  # fmt: skip
            rows = self._by_index(type(running), fits[0], part, table, others.give)
            if rows is not None:
                self.spaces.add(table._storage.space)
                return others.answer(iter(rows))
            self._unindexed.add(part)
        if loop:
            return None
        total = total_of(running.table)
        most = others.cheaper * (total if telling.alone else total // SHARE)  # others may leave little to look up
        if total < linkscans.LEAST or not linkscans.can_be_read_once(others.key, table, most):
            return None
        self._wait_for(telling, part, table, table._entries() // others.cheaper, others.entries is not None)
        if not telling.scan:
            return None
        if others.entries is not None:
            return others.entries()
        return others.answer(linkscans.rows_that_fit(fits, table, others.give))

    def _wait_for(
        self, telling: _Telling, part: _AnyPart, table: Any, pending: int, entries: bool = False
    ) -> None:  # fmt: skip
        """Note that *table* might be read as a whole, which takes as long as looking up in it for *pending* records.

        *entries*: only those of an index are.
        """
        self.pending += pending
        if telling.tell:
            self.scanned[table._name] = None
            many = f"all {table._entries():,} records of {table._name} are read once"
            if entries and isinstance(part, _ReferringPart):
                many = f"all entries of {spelled(part.back.holder)} are read once, and no records"
            staged = "" if telling.running.order else ", unless the first rows are enough"
            self.texts[part] = f"{spelled(part.origin)}: {many}{staged}"

    def tell_further(self, telling: _Telling, part: _LinkedPart) -> None:
        """Note that what *part* leads to is read next, where the key of a linked record is in another one."""
        link: Optional[Link] = part.link
        while link is not None:
            table: Any = link.holder.evaluate(Given((), telling.parameters))
            if not linkscans.can_be_read_once(link.key, table, total_of(telling.running.table)):
                break
            self._wait_for(telling, part._replace(link=link), table, table._entries())
            keyed = telling.running.query.where[telling.number].keyed
            link = None if subject_of(link.key, keyed) else link_of(link.key)

    def back(self, telling: _Telling, part: _ReferringPart, subject: Optional[Subject], *, count: bool = False) -> Any:
        """The keys that records refer to which fit what is asked *part*; None if they are not known.

        *count*: how many records refer to each key.
        """

        def others() -> Optional[_Others]:
            making, parameters, asked = telling.making, telling.parameters, part.back
            found = Referrers.of(asked, making, parameters, telling.running, own=subject == (KEY,))
            if found is None:
                return None
            reading = asked.fits(making)
            fits = () if reading is None else (Followed(reading, nothing, parameters),)
            answer = partial(found.counts if count else found.keys, by_number=asked.by_number)
            entries = None
            if not fits and found.by_entries:
                entries = partial(found.in_entries, count=count, by_number=asked.by_number)
            return _Others(found.table, asked.key, fits, found.give, answer, CHEAPER, entries)

        return self._told(telling, part, subject, others)

    def _by_index(
        self, cls: type[Running], fits: Followed, part: _AnyPart, table: Any, give: Give
    ) -> Optional[tuple[Any, ...]]:  # fmt: skip
        """What *give* says of the records of *table* for which *fits* is true, if an index finds them, and few."""
        selection: Any = table.select()
        other = cls(selection._with(selection._query._replace(where=(fits,))))
        other.at_once = True
        choice = other.choice()
        if not choice.accesses:
            return None
        few = sum([other.reads.measure(access, CAP) or 0 for access in choice.accesses]) < CAP
        found = tuple(other._rows((give,), True, None, choice)) if few else None
        count = f"{CAP:,} or more" if found is None else f"{len(found):,}"
        noun = "record" if count == "1" else "records"
        read = " or ".join([_shown(access) for access in choice.accesses])
        self.texts[part] = f"{spelled(part.origin)}: {count} {noun} of {table._name}, by {read}"
        return found


class _Telling:
    """Puts keys in place of linked records in the condition with that *number* of the query of *running*."""

    def __init__(self, joins: SemiJoins, running: Running, number: int, *, scan: bool, tell: bool) -> None:
        self._followed = followed = running.query.where[number]
        self._joins, self.running, self.number, self.scan, self.tell = joins, running, number, scan, tell
        self.making = Making(followed)
        self.parameters: list[Any] = list(followed.parameters)
        self._again = False  # whether the function itself must be asked as well
        self.alone = len(running.query.where) == 1 and _asks_once(followed.node)
        """Whether nothing else is asked of the records."""

    def conditions(self) -> list[Followed]:
        """What is asked in place of it: one condition, or two."""
        followed = self._followed
        node = self._told(followed.node, plain=True, elements={})
        if node is followed.node:
            return [followed]
        reading = self.making.reading(node, followed.keyed)
        made = Followed(reading, followed.function, self.parameters)
        return [made, followed] if self._again else [made]

    def _told(self, node: Node, *, plain: bool, elements: Mapping[Node, Subject]) -> Node:
        """*node*, a condition; *plain*: a record for which it is not true is not given."""
        made = self._made(node, plain=plain, elements=elements)
        if made is not node:
            self._joins.origins[made] = node
        return made

    def _made(self, node: Node, *, plain: bool, elements: Mapping[Node, Subject]) -> Node:
        back = back_of(node)
        if back is not None:
            return self._having(node, back, plain=plain, elements=elements)
        link = link_of(node)
        if link is not None:
            return self._among(node, _LinkedPart(self.number, node, link), plain=plain, elements=elements)
        if isinstance(node, Compare):
            sides = {"left": self._counted(node.left, elements), "right": self._counted(node.right, elements)}
            return self.making.with_parts(node, sides)
        if isinstance(node, Joined):
            asked = self._by_link(node)
            parts = [self._told(one, plain=plain and node.word == "and", elements=elements) for one in asked]
            if node.word == "and":
                told = {link for one, made in zip(asked, parts) if isinstance(made, Among) for link in _links(one)}
                told.difference_update(*map(_links, parts))
                parts = [one for one in parts if not _is_there(one, told)]  # a key that was found is there
            return self.making.with_parts(node, {"conditions": tuple(parts)})
        if isinstance(node, Not):
            return self.making.with_parts(node, {"inner": self._told(node.inner, plain=False, elements=elements)})
        if isinstance(node, Apply) and node.function.value in (any, all) and len(node.arguments) == 1:
            each = node.arguments[0]
            if isinstance(each, Each):
                sure = plain and node.function.value is any
                made = self._each(each, plain=plain, sure=sure, elements=elements)
                return self.making.with_parts(node, {"arguments": (made,)})
        return node

    def _each(self, each: Each, *, plain: bool, sure: bool, elements: Mapping[Node, Subject]) -> Node:
        """*each* of ``any()`` or ``all()``; *sure*: to leave out an element gives no more records."""
        subject = subject_of(each.iterable, self._followed.keyed, elements)
        if subject:
            elements = {**elements, each.variable: (*subject, ELEMENT)}
        parts = {
            "condition": self._told(each.condition, plain=sure, elements=elements),
            "value": self._told(each.value, plain=plain, elements=elements),
        }
        return self.making.with_parts(each, parts)

    def _by_link(self, node: Joined) -> list[Node]:
        """The conditions of *node*, those on one linked record together, where the first of them is."""
        found: dict[Any, list[Node]] = {}
        for one in node.conditions:
            found.setdefault(link_of(one) or one, []).append(one)
        if len(found) == len(node.conditions) or len(found) == 1:
            return list(node.conditions)
        return [
            few[0] if len(few) == 1 else self.making.with_parts(node, {"conditions": tuple(few)})
            for few in found.values()
        ]

    def _among(self, node: Node, part: _LinkedPart, *, plain: bool, elements: Mapping[Node, Subject]) -> Node:
        link = part.link
        subject = subject_of(link.key, self._followed.keyed, elements)
        exact = link.key.known.cls in EXACT_KEYS and vouches(self.running.storage.value.name)
        numbers = exact and link.key.known.cls is UUID
        found = self._joins.keys(self, node, part, subject, numbers=numbers)
        if found is None:
            further = None if subject else link_of(link.key)
            if further is not None and self.tell and part in self._joins.texts:
                self._joins.tell_further(self, part._replace(link=further))
            return node
        self._again = self._again or not plain or not exact
        number = len(self.parameters)
        self.parameters.append(found)
        if numbers:
            self.parameters.append(numbers_of(found))
        made = self.making.among(link.key, number, numbers=numbers)
        further = None if subject else link_of(made)
        return (
            made if further is None else self._among(made, part._replace(link=further), plain=plain, elements=elements)
        )

    def _having(self, node: Node, back: Back, *, plain: bool, elements: Mapping[Node, Subject]) -> Node:
        """*node*, which asks *back* of the records that refer, as a condition on the key."""
        part = _ReferringPart(self.number, node, back)
        subject = subject_of(back.key, self._followed.keyed, elements)
        found = self._joins.back(self, part, subject)
        if found is None:
            return node
        safe = back.is_safe(self.running, self.parameters, own=subject == (KEY,))
        self._again = self._again or not (safe or (plain and not back.denied))
        number = len(self.parameters)
        self.parameters.append(found)
        if back.by_number:
            self.parameters.append(numbers_of(found))
        made = self.making.among(back.key, number, numbers=back.by_number)
        return self.making.once(("not", made), lambda: Not(made)) if back.denied else made

    def _counted(self, node: Node, elements: Mapping[Node, Subject]) -> Node:
        """*node*, a side of a comparison; if it is the number of the records that refer, that is looked up."""
        back = counted(node)
        if back is None:
            return node
        part = _ReferringPart(self.number, node, back)
        subject = subject_of(back.key, self._followed.keyed, elements)
        found = self._joins.back(self, part, subject, count=True)
        if found is None:
            return node
        number = len(self.parameters)
        view = back.holder.evaluate(Given((), self.parameters))
        self.parameters.append(found if back.by_number else SafeCounts(found, view))
        making = self.making
        return making.once(("count", back, number), lambda: CountOf(back.key, making.given(number), back.by_number))


def _links(node: Node) -> set[Link]:
    """The linked records in *node*."""
    return {one for one in walk(node) if isinstance(one, Link)}


def _is_there(node: Node, links: set[Link]) -> bool:
    """Whether *node* asks only whether there is one of the records *links*."""
    if not isinstance(node, Compare) or node.operator != "in":
        return False
    return any([one.holder is node.right and one.key is node.left for one in links])


def _asks_once(node: Node) -> bool:
    """Whether *node* is one condition, perhaps with others that the linked records of it are there."""
    if not isinstance(node, Joined):
        return True
    links = _links(node)
    return node.word == "and" and len([one for one in node.conditions if not _is_there(one, links)]) == 1


def _alone(fits: Sequence[Followed]) -> bool:
    """Whether *fits* ask nothing of a third table."""
    return not any([one.reading.links for one in fits])


def _shown(access: Access) -> str:
    return str(access).partition(":")[0]
