"""What a loop is given for each part of a function that asks for the records that refer to a record: see `Nested`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional

from ..handlers import let_through
from ..store.blocks import COUNTS_REFERENCES
from .following import Given, Node
from .following.linked import Referred
from .following.nested import Nested
from .following.nodes import Argument, Constant
from .following.operations import Method

Keys = tuple[Any, bytes]
"""How a table has its keys in the engine: by which codec, and behind which prefix."""

_UNKNOWN: Keys = (None, b"")


def outermost(node: Node) -> Iterator[tuple[Node, Nested]]:
    """The parts of *node* that are `Nested`, or are read as these are, and are in no other one.

    The number of all records of a key is such a part, too.
    """
    if isinstance(node, Nested):
        yield node, node
    elif isinstance(node, Method) and node.name == "count" and isinstance(node.holder, Referred):
        yield node, Nested(node.holder, (), None, False, (), "pairs", None, "count", node.known)
    else:
        for part in node.parts():
            yield from outermost(part)


def is_of_key(node: Nested, *, keyed: bool) -> bool:
    """Whether the records that *node* asks for refer to the record of which it is asked, by its key.

    *keyed*: the function takes the key of the record.
    """
    rows: Any = node.rows
    return keyed and isinstance(rows.key, Argument) and rows.key.position == 0


def reading(
    node: Nested, parameters: Sequence[Any], *, of_key: bool = False, keys: Optional[Keys] = None, still: bool = False
) -> Callable[..., Any]:  # fmt: skip
    """The function of a key in the index, and of the outer leaves of *node*, that gives what *node* is then.

    *of_key*: in place of the key it takes the engine's key of the outer record, of the form *keys* if that is known,
    and the function that decodes it. *still*: nothing is written while it is in use.
    """
    question = _Question(node, parameters)
    ask: Callable[..., Any] = question.of_key if of_key else question
    try:
        found: Any = question.view()._reader(node, parameters, ask, (keys or _UNKNOWN) if of_key else None, still)
    except Exception as error:  # if a record asks, it raises again
        let_through(error)
        return ask
    return ask if found is None else found


def can_be_followed(table: Any, *, still: bool) -> bool:
    """Whether one cursor may serve a whole query of *table*; *still*: nothing is written meanwhile."""
    return bool(table._steady) and (not table._txn._write or (still and COUNTS_REFERENCES))  # else it is closed late


class Again:
    """As `reading`, while nothing is written, for a function that is asked again and again: the same index is known."""

    __slots__ = ("_keys", "_known", "_node", "_of_key")

    def __init__(self, node: Nested, keys: Keys, *, of_key: bool) -> None:
        self._node, self._keys, self._of_key = node, keys, of_key
        self._known: tuple[Any, Any, int, int] = (None, None, 0, 0)  # replaced as a whole: there may be threads

    def __call__(self, view: Any, parameters: Sequence[Any]) -> Callable[..., Any]:
        """The function, for the index *view*, which is that of the node, and what is captured."""
        question = _Question(self._node, parameters)
        ask: Callable[..., Any] = question.of_key if self._of_key else question
        table = view._table
        index, reader, skip, most = self._known
        if view._storage is index and can_be_followed(table, still=True):
            return reader.made(table, table._raw.cursor(view._handle), ask, skip, most, parameters)
        found: Any = view._reader(self._node, parameters, ask, self._keys if self._of_key else None, True, self._keep)
        return ask if found is None else found

    def _keep(self, index: Any, reader: Any, skip: int, most: int) -> None:
        """Keep the *reader* that was made for *index*, if the limit does not depend on what is captured."""
        if all([isinstance(one, Constant) for one in self._node.limit]):
            self._known = index, reader, skip, most


class _Question:
    """As `reading`, in the way of the program itself."""

    __slots__ = ("_node", "_parameters")

    def __init__(self, node: Nested, parameters: Sequence[Any]) -> None:
        self._node, self._parameters = node, parameters

    def view(self) -> Any:
        """The index."""
        rows: Any = self._node.rows
        return rows.holder.evaluate(Given((), self._parameters))

    def of_key(self, key: bytes, load_key: Callable[[bytes], Any], *outer: Any) -> Any:
        """As it is called, for the engine's *key* of the outer record."""
        return self(load_key(key), *outer)

    def __call__(self, key: Any, *outer: Any) -> Any:
        return self._node.asked(self.view()[key], self._parameters, outer)
