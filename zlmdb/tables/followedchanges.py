"""Changes that can be followed: ``change(lambda u: replace(u, age=u.age + 1))``.

`dataclasses.replace` makes another object of the record that was just read, and that nobody else has. So its fields are
set in place. An index or a link of other fields stays as it is, and is not asked.

A function that cannot be followed, or of which following it gave another answer, is called for each record.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, Optional

from ..handlers import let_through
from ..query.expressionsource import Asked
from ..query.following import Followed, Node
from ..query.following.bycode import ByCode
from ..query.following.nodes import Argument
from ..query.following.operations import Apply, Conditional
from ..query.recordpaths import taken
from ..values.modelclasses import is_bare
from .compiled.selected import Rows, setting_of
from .executor.execution import programs_of
from .executor.indexfacts import vouches

if TYPE_CHECKING:
    from .selection import Selection
    from .storage import Storage
    from .table import Table

_DEPTH = 16
"""Conditional expressions within each other up to which a function is followed."""

_KEPT = 64
"""Functions of which it is kept that they cannot be followed."""


Replacing = Callable[["Table[Any, Any]", Rows], int]
"""Sets the fields of the records *rows* of a table; how many records there are."""


def replacing(selection: Selection[Any, Any], how: Callable[[Any], Any]) -> Optional[Replacing]:
    """What does the same as storing ``how(value)`` for each record; None if that has to be called."""
    storage = selection._table._storage
    if type(how) is not FunctionType:
        return None
    refused = _refused(storage)
    if refused.get(how.__code__) is not None:
        return None
    try:
        found = _found(selection, storage, how)
    except Exception as error:  # it changes the record itself, say
        let_through(error)
        found = None
    if found is None:
        refused.keep(how.__code__, True)
    return found


def _refused(storage: Storage[Any, Any]) -> ByCode:
    """The functions that are called."""
    kept = programs_of(storage).kept
    if "changes called" not in kept:
        kept["changes called"] = ByCode(_KEPT)
    return kept["changes called"]


def _found(
    selection: Selection[Any, Any], storage: Storage[Any, Any], how: Callable[[Any], Any]
) -> Optional[Replacing]:  # fmt: skip
    programs = programs_of(storage)
    cls: Any = programs.following.value_type.cls
    if "changes in place" not in programs.kept:  # to look at the class takes longer than to change a hundred records
        programs.kept["changes in place"] = _is_settable(storage)
    if not programs.kept["changes in place"]:
        return None
    followed = selection._following().value(how)
    if followed.reading.to_check > 0:
        selection._table.select()._running().settle(followed)
    reading = followed.reading
    if followed.keyed or reading.links or reading.to_check > 0 or not reading.complete:
        return None
    kept: Any = reading.kept.get("change")
    if kept is not None and kept[0] is storage.indexes:
        return None if kept[1] is None else partial(kept[1].all, values=_values(followed, kept[2]))
    writing = _Writing(followed, frozen=cls.__dataclass_params__.frozen)
    if not writing.write(followed.node, 0):
        return None
    takes = taken([(node, followed.keyed) for node in writing.nodes])
    read: Optional[set[str]] = None
    if takes is not None:
        read = {path[0] for path in takes}
        if writing.chosen:
            read.update(writing.fields)
    fast = read is not None and read <= {one.name for one in dataclasses.fields(cls)}
    key = None if storage.key_field is None else storage.key_field.path.partition(".")[0]
    if not writing.fields or key in writing.fields:
        return None
    rewriter = storage.value.rewriter(writing.fields, read) if read is not None and fast else None
    setting = setting_of(storage, writing.fields, writing.given, writing.lines, writing.names, rewriter)
    reading.kept["change"] = storage.indexes, setting, writing.nodes
    return None if setting is None else partial(setting.all, values=_values(followed, writing.nodes))


def _is_settable(storage: Storage[Any, Any]) -> bool:
    """Whether the records of the table are objects whose fields can be set, and nothing more happens."""
    known = programs_of(storage).following.value_type
    return not known.optional and vouches(storage.value.name) and is_bare(known.cls, frozen_too=True)


def _values(followed: Followed, nodes: Sequence[Node]) -> list[Any]:
    """What the lines for *nodes* need that *followed* has captured."""
    return [value for node in nodes for value in Asked(followed, node).arguments()]


class _Writing:
    """Writes what *followed* says as lines that set the fields of ``value``, an object that is *frozen* or not."""

    def __init__(self, followed: Followed, *, frozen: bool) -> None:
        self._followed, self._frozen = followed, frozen
        self.fields: set[str] = set()
        self.chosen = False
        """Whether there are records of which some of the fields are not set."""
        self.lines: list[str] = []
        self.given: list[str] = []
        """The names of the values that the lines need, which are those of *nodes*."""
        self.nodes: list[Node] = []
        self.names: dict[str, Any] = {"assign": object.__setattr__} if frozen else {}

    def write(self, node: Node, depth: int) -> bool:
        """Write *node*, in so many blocks; False if it is no record with other values of some fields."""
        indent = "    " * depth
        if isinstance(node, Argument):
            self.lines.append(f"{indent}pass")
            return True
        if isinstance(node, Conditional):
            self.chosen = True
            self.lines.append(f"{indent}if {self._asked(node.condition)}:")
            if depth >= _DEPTH or not self.write(node.yes, depth + 1):
                return False
            self.lines.append(f"{indent}else:")
            return self.write(node.no, depth + 1)
        if not isinstance(node, Apply) or node.function.value is not dataclasses.replace:
            return False
        if not isinstance(node.arguments[0], Argument) or len(node.arguments) != len(node.names) + 1:
            return False
        self.lines += [f"{indent}set{n} = {self._asked(one)}" for n, one in enumerate(node.arguments[1:])]
        for n, name in enumerate(node.names):
            setting = f"assign(value, {name!r}, set{n})" if self._frozen else f"value.{name} = set{n}"
            self.lines.append(f"{indent}{setting}")
        self.lines.append(f"{indent}pass")
        self.fields.update(node.names)
        return True

    def _asked(self, node: Node) -> str:
        """The expression of *node*."""
        asked, number = Asked(self._followed, node), len(self.given)
        self.given += asked.names(number)
        self.nodes.append(node)
        return asked.source(number, self.names)
