"""What is seen of tables: links to their records, ``t.authors[b.author].country``.

A captured schema object shows its tables, and a table shows what looks up one record. That is a `Link` in the
expression, of which the type is known, so that what is asked of the other record is followed, too. The way back,
``t.books.by_author[key]``, shows how many records there are, and their values to a generator expression. Everything
else that tables can do ends the way: the function is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Optional

from ...namedtuples import NamedTuple
from .fields import Elements
from .known import BOOL, INT, SOMETHING, Known
from .nodes import Node
from .opaque import Sight, parameter
from .operations import Attribute, Compare, Item, Method
from .sight import Seen, node_of

if TYPE_CHECKING:
    from .session import Session


class TableTypes(NamedTuple):
    """What is known of a table: its values, and of each index by name, whether it is unique."""

    value: Known
    indexes: Mapping[str, bool]


class Link(Item):
    """The record of another table with a key: ``t.authors[b.author]``."""

    __slots__ = ()


class Referred(Item):
    """The records that have one key in an index: ``t.books.by_author[key]``."""

    __slots__ = ()


class Holds(Compare):
    """Whether an index has a key: ``key in t.books.by_author``."""

    __slots__ = ()


class Tables(Sight):
    """A schema object in a transaction: its tables are seen."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        session = self._session
        types = None if name.startswith("_") else self.original()._query_table(name)
        if types is None:
            return self._blocked(f"attribute {name}")
        holder = parameter(session, self._slot, SOMETHING, settled=False)
        return Records(session, session.nodes.make(Attribute, holder, name, True, SOMETHING), types)

    def __bool__(self) -> bool:
        return self._blocked("the truth")


def table(session: Session, slot: int, types: TableTypes) -> Records:
    """What is seen of a table that was captured itself."""
    return Records(session, parameter(session, slot, SOMETHING, settled=False), types)


class _Rows(Seen):
    """Something of a table, in the place of which *node* stands. Whatever is not said below ends the way."""

    __slots__ = ("_node", "_session")

    _noun = ""

    def __init__(self, session: Session, node: Node) -> None:
        self._session, self._node = session, node

    def node(self) -> Node:
        return self._node

    def original(self) -> Any:
        return None

    def __getitem__(self, key: Any) -> Any:
        return self._blocked("an item")

    def __contains__(self, key: Any) -> bool:
        return self._blocked("searching")

    def _blocked(self, what: str) -> NoReturn:
        self._session.block(f"{what} of {self._node!r}, which is {self._noun}")

    def __getattr__(self, name: str) -> Any:
        return self._blocked(f"attribute {name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._blocked("a call")

    def __setitem__(self, key: Any, value: Any) -> None:
        self._blocked("assigning to an item")

    def __delitem__(self, key: Any) -> None:
        self._blocked("deleting an item")

    def __iter__(self) -> Any:
        return self._blocked("iterating")

    def __len__(self) -> int:
        return self._blocked("len()")

    def __bool__(self) -> bool:
        return self._blocked("the truth")

    def __eq__(self, other: object) -> Any:
        return self._blocked("comparing")

    def __hash__(self) -> int:
        return self._blocked("hash()")


class Records(_Rows):
    """A table: single records are looked up in it."""

    __slots__ = ("_types",)

    _noun = "a table"

    def __init__(self, session: Session, node: Node, types: TableTypes) -> None:
        super().__init__(session, node)
        self._types = types

    def __getattr__(self, name: str) -> Any:
        session, unique = self._session, self._types.indexes.get(name)
        if unique is None:
            return self._blocked(f"attribute {name}")
        node = session.nodes.make(Attribute, self._node, name, True, SOMETHING)
        return Index(session, node, self._types, unique=unique)

    def __getitem__(self, key: Any) -> Any:
        session = self._session
        return session.recorded(session.nodes.make(Link, self._node, node_of(session, key), True, self._types.value))

    def __contains__(self, key: Any) -> bool:
        session = self._session
        return session.truth(session.nodes.make(Compare, "in", node_of(session, key), self._node, True, BOOL))

    def get(self, *arguments: Any) -> Any:
        """The record of a key, or None."""
        session = self._session
        if len(arguments) != 1:
            return self._blocked("get() with a default")
        given = (node_of(session, arguments[0]),)
        return session.recorded(session.nodes.make(Method, self._node, "get", given, (), True, _or_none(self._types)))


class Index(_Rows):
    """An index of a table, of whose records the *types* are known."""

    __slots__ = ("_types", "_unique")

    _noun = "an index"

    def __init__(self, session: Session, node: Node, types: TableTypes, *, unique: bool) -> None:
        super().__init__(session, node)
        self._types, self._unique = types, unique

    def __getitem__(self, key: Any) -> Any:
        session, types = self._session, self._types
        if self._unique:
            return session.recorded(session.nodes.make(Item, self._node, node_of(session, key), True, types.value))
        node = session.nodes.make(Referred, self._node, node_of(session, key), True, SOMETHING)
        return Referring(session, node, types)

    def __contains__(self, key: Any) -> bool:
        session = self._session
        return session.truth(session.nodes.make(Holds, "in", node_of(session, key), self._node, True, BOOL))


class Referring(_Rows):
    """The records that have one key in an index: whether there are any, how many, and their values."""

    __slots__ = ("_types",)

    _noun = "a selection"

    def __init__(self, session: Session, node: Node, types: TableTypes) -> None:
        super().__init__(session, node)
        self._types = types
        session.current().raising.append(node)

    def count(self) -> Any:
        """How many there are."""
        session = self._session
        return session.recorded(session.nodes.make(Method, self._node, "count", (), (), True, INT))

    def values(self) -> Any:
        """Their values."""
        session = self._session
        node = session.nodes.make(Method, self._node, "values", (), (), True, SOMETHING)
        return Values(session, node, self._types.value)

    def __bool__(self) -> bool:
        return self._session.truth(self._node)


class Values(_Rows):
    """The values of several records, for a generator expression."""

    __slots__ = ("zlmdb_known", "zlmdb_node", "zlmdb_trace")

    _noun = "a selection"

    def __init__(self, session: Session, node: Node, value: Known) -> None:
        super().__init__(session, node)
        annotation: Any = value.annotation
        self.zlmdb_trace, self.zlmdb_node = session, node
        self.zlmdb_known = value.home.known(list[annotation])

    def __iter__(self) -> Any:
        return Elements(self)


def _or_none(types: TableTypes) -> Known:
    """What is known of a record that may not be there."""
    value = types.value
    annotation: Any = value.annotation
    return value if value.optional else value.home.known(Optional[annotation])
