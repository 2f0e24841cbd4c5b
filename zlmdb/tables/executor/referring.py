"""Conditions on the records that refer, ``any(o.total > 5 for o in t.orders.by_user[k].values())``: what they come to.

The other table is read once, or by its indexes, for the keys that records which fit refer to. Then the condition is
``k in found``. How many records refer to each key is counted in the same way: ``t.orders.by_user[k].count() > 3``.

The answers are those of Python where a key of its type is always in the index's reach; see `Back.is_safe`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import attrgetter, itemgetter
from typing import Any, Optional
from uuid import UUID

from ...handlers import let_through
from ...namedtuples import NamedTuple
from ...query.following import Followed, Given, Node, walk
from ...query.following.following import Reading
from ...query.following.known import INT
from ...query.following.linked import Holds, Referred
from ...query.following.nodes import Argument, Called, Parameter, Spell, Variable
from ...query.following.operations import Apply, Attribute, Each, Joined, Method, Not
from ...query.inorder import BLOCK
from ...query.terms import ELEMENT
from ...store.ranges import keys_from, seek
from .accessranges import ends_otherwise
from .indexfacts import vouches
from .linkednodes import Making, nothing
from .linkscans import EXACT_KEYS, MOST, Keys, keys_of

CHEAPER = 8
"""How many records of the other table are read in the time in which those of one key are looked up."""


class Back(NamedTuple):
    """What is asked of the records with *key* in an index: whether one fits, or how many there are.

    *holder* is the index as an expression; *each* runs through the values of these records, and *denied* says that the
    question is whether there is one of which its value is not true.
    """

    holder: Node
    key: Node
    each: Optional[Each] = None
    denied: bool = False

    def is_safe(self, running: Any, parameters: Sequence[Any], *, own: bool) -> bool:
        """Whether asking the index for this key raises nothing; *own*: it is the key of the record."""
        if self.by_number:
            return True
        view: Any = self.holder.evaluate(Given((), parameters)) if own else None
        return own and view._storage.storage.key is running.storage.key

    @property
    def by_number(self) -> bool:
        """Whether keys are found by their numbers."""
        return self.key.known.cls is UUID and not self.key.known.optional

    def fits(self, making: Making) -> Optional[Reading]:
        """What is asked of a record that refers; None if nothing is."""
        if self.each is None:
            return None
        each, denied = self.each, self.denied

        def made() -> Reading:
            value = Not(each.value) if denied else each.value
            both = Joined("and", (each.condition, value), value.known)
            return making.of_variable(both, each.variable)

        return making.once(("refers", each, denied), made)


def back_of(node: Node) -> Optional[Back]:
    """What *node*, a condition, asks of the records that refer; None if it is something else."""
    if isinstance(node, Referred):
        return Back(node.holder, node.key)
    if isinstance(node, Holds):
        return Back(node.right, node.left)
    if isinstance(node, Apply) and node.function.value in (any, all) and len(node.arguments) == 1:
        each = node.arguments[0]
        if isinstance(each, Each) and isinstance(each.iterable, Method) and isinstance(each.iterable.holder, Referred):
            rows = each.iterable.holder
            if each.iterable.name == "values" and _of_one_record(each):
                return Back(rows.holder, rows.key, each, node.function.value is all)
    return None


def counted(node: Node) -> Optional[Back]:
    """What *node* counts, if it is the number of the records that refer."""
    if isinstance(node, Method) and node.name == "count" and isinstance(node.holder, Referred):
        return Back(node.holder.holder, node.holder.key)
    return None


def _of_one_record(each: Each) -> bool:
    """Whether what *each* asks depends on the record that refers alone."""
    inside = [*walk(each.condition), *walk(each.value)]
    own = {each.variable, *[one.variable for one in inside if isinstance(one, Each)]}
    return not any([
        isinstance(one, (Argument, Called)) or (isinstance(one, Variable) and one not in own) for one in inside
    ])  # fmt: skip


class Referrers(NamedTuple):
    """The records of *table* with their keys in the index of *view*.

    *give* gives these keys of a record, several of them or one.
    """

    table: Any
    view: Any
    give: Followed
    several: bool

    @classmethod
    def of(
        cls, back: Back, making: Making, parameters: Sequence[Any], running: Any, *, own: bool
    ) -> Optional[Referrers]:  # fmt: skip
        """Those that *back* asks for; None if what they hold may not be the keys of the index. *own*: as `is_safe`."""
        view: Any = back.holder.evaluate(Given((), parameters))
        table, kind = view._table, back.key.known.required.cls
        if kind not in EXACT_KEYS or not vouches(table._storage.value.name):
            return None
        if not own and not vouches(running.storage.value.name):
            return None
        other = type(running)(table.select())
        facts = next((one for one in other.known().facts if one.name == view._name), None)
        if facts is None or len(facts.parts) != 1 or facts.where or facts.parts[0].kind is not kind:
            return None
        name, *rest = facts.parts[0].subject
        if rest not in ([], [ELEMENT]) or type(name) is not str:
            return None
        value = table._storage.generated.loops.following.value_type
        known = value.required.fields().get(name)
        if known is None:
            return None

        def made() -> Reading:
            record = Argument(0, "value", value.required)
            return Reading(Attribute(record, name, False, known), keyed=False, condition=False)

        give = Followed(making.once(("given", back.holder, name), made), nothing, ())
        return cls(table, view, give, bool(rest))

    def keys(self, rows: Iterator[Any], *, by_number: bool) -> Optional[Keys]:
        """The keys in *rows*, of what `give` gives; None if they are too many to keep. *by_number*: as `counts`."""
        some = chain.from_iterable(filter(None, rows)) if self.several else rows
        return keys_of(filter(_is_there, some), numbers=by_number)

    def counts(self, rows: Iterator[Any], *, by_number: bool) -> Optional[Mapping[Any, int]]:
        """How often each key is in *rows*; None if they are too many to keep. *by_number*: of UUIDs their numbers."""
        found = Counter[Any]()
        if self.several:  # a record has one entry for each of its elements, however often it is there
            rows = chain.from_iterable(set[Any](keys) for keys in rows if keys)
        some: Iterable[Any] = filter(_is_there, rows)
        keys = iter(map(attrgetter("int"), some) if by_number else some)
        while block := list(islice(keys, BLOCK)):
            found.update(block)
            if len(found) > MOST:
                return None
        return dict(found)

    @property
    def by_entries(self) -> bool:
        """Whether each entry of the index is its key, of a fixed width, and the key of the record."""
        index = self.view._storage
        return bool(index.tail and index.storage.key.width) and not ends_otherwise(index.joined._forms[0])

    def in_entries(self, *, count: bool, by_number: bool) -> Any:
        """As `counts`, or else as `keys`, of all entries: no record is read."""
        index, found = self.view._storage, Counter[bytes]()
        cursor = self.table._cursor(self.view._handle)
        try:
            there = seek(cursor, index.lower, index.upper)
            entries: Iterator[bytes] = keys_from(cursor, index.lower, index.upper) if there else iter(())
            begins = map(itemgetter(slice(None, index.tail)), entries)
            while block := list(islice(begins, BLOCK)):
                found.update(block)
                if len(found) > MOST:
                    return None
        finally:
            cursor.close()
        keys = map(index.storage.load_key, found)
        if not count:
            return frozenset(keys)
        return dict(zip(map(attrgetter("int"), keys) if by_number else keys, found.values()))


class SafeCounts(dict[Any, int]):
    """How many records refer to each key; of others, whether the index of *view* may be asked for them."""

    def __init__(self, counts: Mapping[Any, int], view: Any) -> None:
        super().__init__(counts)
        self._view = view

    def __missing__(self, key: Any) -> int:
        try:
            self._view._storage.exactly(key)
            return 0
        except Exception as error:  # whoever asks for the records tells what it is
            let_through(error)
            return self._view[key].count()


def _is_there(key: Any) -> bool:
    return key is not None


class CountOf(Node):
    """How many records refer to *key*: *found* is a captured `SafeCounts`, or of UUIDs a dict of their numbers."""

    __slots__ = ("by_number", "found", "key")

    def __init__(self, key: Node, found: Parameter, by_number: bool) -> None:
        self.key, self.found, self.by_number = key, found, by_number
        super().__init__(INT)

    def parts(self) -> Sequence[Node]:
        return self.key, self.found

    def evaluate(self, given: Given) -> int:
        key, found = self.key.evaluate(given), self.found.evaluate(given)
        return found.get(key.int, 0) if self.by_number else found[key]

    def source(self, spell: Spell) -> str:
        found, key = spell(self.found), spell(self.key)
        return f"{found}.get({key}.int, 0)" if self.by_number else f"{found}[{key}]"
