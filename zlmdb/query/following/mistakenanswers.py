"""Answers of functions that are surely mistakes: a method that is not called, the name of a field in its place."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any, cast

from ..ordering import Descending, desc
from .fields import Bound
from .folding import Folding
from .known import kind_of
from .nodes import Argument, Constant, Node, Parameter
from .opaque import CapturedProxy
from .operations import Apply, Compare, Display
from .session import Session
from .trace import Refused, Ways

Text = tuple[str, bool]
"""A text that stands as a part of a sort key, and whether it is in descending order."""


def refuse_method(session: Session, answer: Any, use: str) -> None:
    """Refuse an *answer* that is a method of the record itself: a pair of parentheses was forgotten.

    *use*: "sort by" or "group by"; empty for a condition.
    """
    name = ""
    if type(answer) is Bound:
        name = answer.sure_name()
    elif type(answer) is types.MethodType and hasattr(kind_of(answer.__self__), "zlmdb_node"):
        seen: Any = answer.__func__
        name = getattr(seen.zlmdb_original(), "__name__", "") if isinstance(seen, CapturedProxy) else ""
    if name:
        what = f"the function gives, to {use}," if use else "the condition gives"
        why = "" if use else ", which is always true"
        session.refuse(f"{what} the method {name} itself{why}: call it, {name}()")


def refuse_always(ways: Ways, folding: Folding) -> None:
    """Raise `Refused` for a condition such as ``u.name == "Ann" or "Bob"``.

    None of its *ways* is false, and one ends in a constant that was not written to say True.
    """
    if len(ways) < 2 or any([folding.settled(leaf, dict(taken)) is not folding.nodes.true for taken, leaf in ways]):
        return
    for taken, leaf in ways:
        if isinstance(leaf, Constant) and type(leaf.value) is not bool:
            asked, answer = taken[-1]
            advice = "compare it with a field"
            if isinstance(asked, Compare) and asked.operator == "==" and type(leaf.value) is not tuple and not answer:
                advice = f"write {asked.left!r} in ({asked.right!r}, {leaf!r})"
            why = f"where {asked!r} is {answer}, it is {leaf!r}, which is true"
            raise Refused(f"the condition is true for all records: {why}; {advice}")


def refuse_texts(texts: list[list[Text]], record: Argument) -> None:
    """Raise `Refused` if a text of a sort key names a field of *record*, and stands in the place of it.

    *texts*: those of each way through the function. One that is not in all of them depends on the record.
    """
    fields = record.known.fields() if texts[0] else ()
    for text, down in texts[0]:
        field = text.lstrip("+-")
        if field in fields and all([(text, down) in one for one in texts]):
            written = f"{record.name}.{field}"
            written = f"desc({written})" if down or text.startswith("-") else written
            raise Refused(
                f"{text!r} is a text, which is the same for all records and sorts nothing: for the field, write "
                f"{written}"
            )


def texts_of(session: Session, answer: Any) -> list[Text]:
    """The texts that are parts of *answer*, a sort key."""
    return list(_texts(session, answer, down=False))


def _texts(session: Session, part: Any, *, down: bool) -> Iterator[Text]:
    kind = kind_of(part)
    if kind is str:
        yield part, down
    elif kind is Descending:
        yield from _texts(session, part.value, down=True)
    elif kind is tuple or kind is list:
        for one in part:
            yield from _texts(session, one, down=down)
    elif hasattr(kind, "zlmdb_node"):
        yield from _of_node(session, cast(Node, part.zlmdb_node), down=down)


def _of_node(session: Session, node: Node, *, down: bool) -> Iterator[Text]:
    if isinstance(node, Constant):
        yield from _texts(session, node.value, down=down)
    elif isinstance(node, Parameter):
        yield from _texts(session, session.values[node.number], down=down)
    elif isinstance(node, Display) and node.kind is not dict:
        for one in node.elements:
            yield from _of_node(session, one, down=down)
    elif isinstance(node, Apply) and node.function.value is desc:
        for one in node.arguments:
            yield from _of_node(session, one, down=True)
