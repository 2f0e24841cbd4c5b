"""What is seen of tables: links to their records, ``t.authors[b.author].country``.

A captured schema object shows its tables, and a table shows what looks up one record. That is a `Link` in the
expression, of which the type is known, so that what is asked of the other record is followed, too. The way back,
``t.books.by_author[key]``, shows how many records there are, their values to a generator expression, and what is given
of each of them or of the first ones (see `nested`). Everything else that tables can do ends the way: the function is
called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, partialmethod
from typing import TYPE_CHECKING, Any, NoReturn, Optional

from ...namedtuples import NamedTuple
from .arity import takes_key
from .code import is_followed
from .fields import Elements
from .folding import Folding
from .known import BOOL, INT, LIST, SOMETHING, UNKNOWN, Known
from .nested import Inner, Nested
from .nodeof import Proxy, node_of
from .nodes import Node, Variable
from .opaque import CapturedProxy, OpaqueProxy, parameter
from .operations import Attribute, Compare, Item, Method

if TYPE_CHECKING:
    from .session import Session


class TableTypes(NamedTuple):
    """What is known of a table: its values and keys, and of each index by name, whether it is unique."""

    value: Known
    key: Known
    indexes: Mapping[str, bool]


class Link(Item):
    """The record of another table with a key: ``t.authors[b.author]``."""

    __slots__ = ()


class Got(Method):
    """The record of another table with a key, or None: ``t.authors.get(b.author)``. No value of the table is None."""

    __slots__ = ()


class Referred(Item):
    """The records that have one key in an index: ``t.books.by_author[key]``."""

    __slots__ = ()


class Holds(Compare):
    """Whether an index has a key: ``key in t.books.by_author``."""

    __slots__ = ()


class Tables(CapturedProxy):
    """A schema object in a transaction: its tables are seen."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        session = self.zlmdb_session
        types = None if name.startswith("_") else self.zlmdb_original()._query_table(name)
        if types is None:
            return self.zlmdb_blocked(f"attribute {name}")
        holder = parameter(session, self.zlmdb_slot, SOMETHING, settled=False)
        return Records(session, session.nodes.make(Attribute, holder, name, True, SOMETHING), types)

    def __bool__(self) -> bool:
        return self.zlmdb_blocked("the truth")


def table(session: Session, slot: int, types: TableTypes) -> Records:
    """What is seen of a table that was captured itself."""
    return Records(session, parameter(session, slot, SOMETHING, settled=False), types)


class _Rows(OpaqueProxy):
    """Something of a table, in the place of which *node* stands."""

    __slots__ = ("_node",)

    _noun = ""

    def __init__(self, session: Session, node: Node) -> None:
        self.zlmdb_session, self._node = session, node

    def zlmdb_value(self) -> Node:
        return self._node

    def zlmdb_original(self) -> Any:
        return None

    def zlmdb_name(self) -> str:
        return repr(self._node)

    def zlmdb_kind(self) -> str:
        return self._noun

    def _queried(self, name: str) -> NoReturn:
        """End the way, since *name* begins a query within the function."""
        if name.startswith("__"):
            self.zlmdb_blocked(f"attribute {name}")
        self.zlmdb_session.block(
            f"{self._node!r}.{name}, which runs for each record: if it gives the same for all, take that before this "
            f"query, as in keys = {self._node!r}.{name}(...), and capture it"
        )

    def _unread(self) -> Any:
        """End the way, since what is read of records that refer is not said."""
        self.zlmdb_session.block(
            f"a selection of {self._node!r} that nothing reads: write .all(), .first() or .count()"
        )


class Records(_Rows):
    """A table: single records are looked up in it."""

    __slots__ = ("_types",)

    _noun = "a table"

    def __init__(self, session: Session, node: Node, types: TableTypes) -> None:
        super().__init__(session, node)
        self._types = types

    def __getattr__(self, name: str) -> Any:
        session, unique = self.zlmdb_session, self._types.indexes.get(name)
        if unique is None:
            self._queried(name)
        node = session.nodes.make(Attribute, self._node, name, True, SOMETHING)
        return Index(session, node, self._types, unique=unique)

    def __getitem__(self, key: Any) -> Any:
        session = self.zlmdb_session
        return session.recorded(session.nodes.make(Link, self._node, node_of(session, key), True, self._types.value))

    def __contains__(self, key: Any) -> bool:
        session = self.zlmdb_session
        return session.truth(session.nodes.make(Compare, "in", node_of(session, key), self._node, True, BOOL))

    def get(self, *arguments: Any) -> Any:
        """The record of a key, or None."""
        session, value = self.zlmdb_session, self._types.value
        if len(arguments) != 1 and not (len(arguments) == 2 and arguments[1] is None):
            return self.zlmdb_blocked("get() with a default")
        given = (node_of(session, arguments[0]),)
        kind = Method if value.optional or value.unknown else Got
        return session.recorded(session.nodes.make(kind, self._node, "get", given, (), True, _or_none(self._types)))


class Index(_Rows):
    """An index of a table, of whose records the *types* are known."""

    __slots__ = ("_types", "_unique")

    _noun = "an index"

    def __init__(self, session: Session, node: Node, types: TableTypes, *, unique: bool) -> None:
        super().__init__(session, node)
        self._types, self._unique = types, unique

    def __getattr__(self, name: str) -> Any:
        self._queried(name)

    def __getitem__(self, key: Any) -> Any:
        session, types = self.zlmdb_session, self._types
        if self._unique:
            return session.recorded(session.nodes.make(Item, self._node, node_of(session, key), True, types.value))
        node = session.nodes.make(Referred, self._node, node_of(session, key), True, SOMETHING)
        return Referring(session, node, types)

    def __contains__(self, key: Any) -> bool:
        session = self.zlmdb_session
        return session.truth(session.nodes.make(Holds, "in", node_of(session, key), self._node, True, BOOL))


class _Asked(NamedTuple):
    """What is asked of the records of a key beside that: see `Nested`."""

    where: tuple[Inner, ...] = ()
    order: Optional[Inner] = None
    backwards: bool = False
    limit: tuple[Node, ...] = ()


_ALL = _Asked()


class Referring(_Rows):
    """The records that have one key in an index: some of them, in an order, or the first ones."""

    __slots__ = ("_asked", "_types")

    _noun = "a selection"

    def __init__(self, session: Session, node: Node, types: TableTypes, asked: _Asked = _ALL) -> None:
        super().__init__(session, node)
        self._types, self._asked = types, asked
        session.current().raising.append(node)

    def zlmdb_value(self) -> Node:
        return self._node if self._asked == _ALL else self._unread()

    def _but(self, what: str, **asked: Any) -> Any:
        """The same but for what is *asked*."""
        if self._asked.limit:
            return self.zlmdb_blocked(f"{what} after a limit")
        return Referring(self.zlmdb_session, self._node, self._types, self._asked._replace(**asked))

    def where(self, matches: Any) -> Any:
        """Those for which *matches*, a function of a record, is true."""
        return self._but("where()", where=(*self._asked.where, self._function("where", matches, condition=True)))

    def order_by(self, by: Any, *, reverse: Any = False) -> Any:
        """Sorted by what *by*, a function of a record, gives."""
        if type(reverse) is not bool:
            return self.zlmdb_blocked("an order whose direction is no constant")
        return self._but("order_by()", order=self._function("order_by", by), backwards=reverse)

    def limit(self, count: Any, skip: Any = 0) -> Any:
        """The first of them."""
        session = self.zlmdb_session
        numbers = (node_of(session, count), node_of(session, skip))
        if not all([one.settled and one.known is INT for one in numbers]):
            return self.zlmdb_blocked("a limit that is no captured int")
        return self._but("a limit", limit=numbers)

    def count(self) -> Any:
        """How many there are."""
        session = self.zlmdb_session
        if self._asked.limit or self._asked.where:
            return self._given("pairs").count()
        return session.recorded(session.nodes.make(Method, self._node, "count", (), (), True, INT))

    def keys(self) -> Any:
        """Their keys."""
        return self._given("keys", self._types.key)

    def values(self) -> Any:
        """Their values."""
        return self._given("values", self._types.value)

    def fields(self, give: Any) -> Any:
        """What *give*, a function of a record, gives of each."""
        return self._given("fields", None, self._function("fields", give))

    def _function(self, method: str, function: Any, *, condition: bool = False) -> Inner:
        """The *function*, which *method* is given: it is followed with recorders of a record."""
        session = self.zlmdb_session
        original = function.zlmdb_original() if isinstance(function, Proxy) else function
        if not is_followed(original):
            return self.zlmdb_blocked(f"{method}() of what is no plain function")
        ready = function.zlmdb_ready() if isinstance(function, CapturedProxy) else function
        known = [self._types.key, self._types.value] if takes_key(original) else [self._types.value]
        first, nodes = session.depth, session.nodes
        variables = tuple([
            nodes.once((Variable, first + number, one), partial(Variable, first + number, one.required))
            for number, one in enumerate(known)
        ])  # fmt: skip
        session.depth += len(known)
        try:
            ways = session.explore(partial(self._once, ready, variables, condition), inner=True)
        finally:
            session.depth = first
        node = Folding(nodes, condition=condition, members=session.tests_members).folded(ways)
        return nodes.make(Inner, variables, node, condition, node.known)

    def _once(self, ready: Any, variables: Sequence[Node], condition: bool) -> Node:
        """What a function gives on one way."""
        session = self.zlmdb_session
        answer = ready(*[session.recorded(one) for one in variables])
        leaf = node_of(session, answered(answer) if condition else answer)
        if not session.uses_all(leaf):
            return session.block("it computes what may raise and does not use it")
        return leaf

    def _pairs(self, how: str) -> Any:
        """What the method *how* gives of pairs of key and value."""
        return self._given("pairs")._rows(how)

    all = partialmethod(_pairs, "all")
    first = partialmethod(_pairs, "first")
    last = partialmethod(_pairs, "last")

    def __bool__(self) -> bool:
        some = self._asked.limit or self._asked.where
        return bool(self._given("pairs")) if some else self.zlmdb_session.truth(self._node)

    def _given(self, what: str, known: Optional[Known] = None, value: Optional[Inner] = None) -> GivenRows:
        kind = Values if what == "values" else GivenRows
        return kind(self.zlmdb_session, self._node, self._asked, (what, value), known)


class GivenRows(_Rows):
    """What is given of each of several records: all of it in a list, the first, the last, or one number."""

    __slots__ = ("_asked", "_known", "_what")

    _noun = "a selection"

    def __init__(
        self, session: Session, node: Node, asked: _Asked, what: tuple[Any, ...], known: Optional[Known]
    ) -> None:  # fmt: skip
        """*known*: what is known of each row, if anything is."""
        super().__init__(session, node)
        self._asked, self._what, self._known = asked, what, known

    def zlmdb_value(self) -> Node:
        return self._unread()

    def _rows(self, how: str) -> Any:
        """What the method *how* of `Reads` gives of them."""
        known: Any = _GIVEN[how]
        return self.zlmdb_session.recorded(self._nested(how, known if isinstance(known, Known) else known(self)))

    all = partialmethod(_rows, "all")
    first = partialmethod(_rows, "first")
    last = partialmethod(_rows, "last")
    count = partialmethod(_rows, "count")
    sum = partialmethod(_rows, "sum")
    mean = partialmethod(_rows, "mean")
    min = partialmethod(_rows, "min")
    max = partialmethod(_rows, "max")

    def __bool__(self) -> bool:
        plain = self._asked == _ALL and self._what[1] is None
        return self.zlmdb_session.truth(self._node if plain else self._nested("truth", BOOL))

    def _one(self) -> Known:
        known = self._known
        annotation: Any = None if known is None else known.annotation
        return UNKNOWN if known is None else known.home.known(Optional[annotation])

    def _list(self) -> Known:
        known = self._known
        annotation: Any = None if known is None else known.annotation
        return LIST if known is None or known.unknown else known.home.known(list[annotation])

    def _nested(self, how: str, known: Known) -> Node:
        asked = self._asked
        if how in ("count", "truth"):  # these sort nothing
            asked = asked._replace(order=None, backwards=False)
        return self.zlmdb_session.nodes.make(Nested, self._node, *asked, *self._what, how, known)


_GIVEN: Mapping[str, Any] = {
    "all": GivenRows._list, "first": GivenRows._one, "last": GivenRows._one, "count": INT, "sum": SOMETHING,
    "mean": UNKNOWN, "min": UNKNOWN, "max": UNKNOWN,
}  # fmt: skip
"""What is known of what a method gives, or the method that tells it."""


class Values(GivenRows):
    """The values of several records, also for a generator expression."""

    __slots__ = ("zlmdb_known", "zlmdb_node", "zlmdb_trace")

    def __init__(
        self, session: Session, node: Node, asked: _Asked, what: tuple[Any, ...], known: Optional[Known]
    ) -> None:  # fmt: skip
        super().__init__(session, node, asked, what, known)
        self.zlmdb_trace, self.zlmdb_known = session, self._list()
        self.zlmdb_node = (
            self._nested("all", self.zlmdb_known)
            if asked != _ALL
            else session.nodes.make(Method, node, "values", (), (), True, SOMETHING)
        )

    def zlmdb_value(self) -> Node:
        return self.zlmdb_node if self._asked == _ALL else super().zlmdb_value()

    def __iter__(self) -> Any:
        return Elements(self)


def answered(answer: Any) -> Any:
    """What a condition gives as *answer*: of records that refer, whether there are any, as only that counts."""
    return bool(answer) if isinstance(answer, (Referring, GivenRows)) else answer


def _or_none(types: TableTypes) -> Known:
    """What is known of a record that may not be there."""
    value = types.value
    annotation: Any = value.annotation
    return value if value.optional else value.home.known(Optional[annotation])
