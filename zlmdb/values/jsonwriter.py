"""JSON of a model class by a generated function, where there is no msgspec (PyPy): the bytes of the standard library.

Half of what the library takes there goes into finding out what each item is, which the type says already. Fields whose
types have no expression here, and values that are not of the type's own class, are left to the library. Most of what
remains on PyPy is the digits of floats (`floattexts`).
"""

from __future__ import annotations

import re
import sys
from datetime import date
from math import isfinite
from typing import Any, Callable, Optional
from uuid import UUID

from ..codegen import Recipe
from .base import Encode
from .floattexts import text_of_float
from .scalars import Float, Leaf, Shape
from .shapes import DictOf, ListOf, Record, other_than_none

_WRITING = Recipe("JSON")
_ESCAPED = re.compile(r'[\x00-\x1f\\"]').search
_MOST_KEYS = 1000

FLOAT_TEXT: Callable[[float], str] = text_of_float if sys.implementation.name == "pypy" else repr
"""The function from a float to its text. It does not depend on it which text."""

_COMMON: dict[Any, str] = {
    int: "repr({x})",
    bool: "('true' if {x} else 'false')",
    str: """'"' + {x} + '"'""",
    UUID: """'"' + str({x}) + '"'""",
    date: """'"' + {x}.isoformat() + '"'""",
}
"""Expressions for the text of values of exactly these classes, where they need no escapes."""

Text = Callable[[Any], str]


def writer(shape: Shape, text_of: Text) -> Optional[Encode]:
    """The function that writes values of *shape*, which fit it; None for what is no record of named fields.

    *text_of* is the library's function from plain data to its text.
    """
    if type(shape) is not Record or shape.tag is not None:
        return None
    text = _Writer(text_of).record(shape)

    def write(value: Any) -> bytes:
        return text(value).encode()

    return write


class _Writer:
    """Makes the functions for one type."""

    def __init__(self, text_of: Text) -> None:
        self.text_of = text_of
        self.texts: dict[int, Optional[Text]] = {}
        """By the id of a record: its function, or None as long as that is being made."""
        self.keys: dict[str, str] = {}
        """Keys of dicts as they are written, with their colons."""

    def record(self, record: Record) -> Text:
        """The text of objects of *record*."""
        self.texts[id(record)] = None
        names: dict[str, Any] = {"join": "".join}
        items: list[str] = []
        before = "{"
        for number, field in enumerate(record.fields):
            items += [repr(f"{before}{self.text_of(field.stored)}:"), self.expression(field.shape, number, names)]
            before = ","
        fields = [f"    x{number} = value.{field.name}" for number, field in enumerate(record.fields)]
        end = repr("}" if record.fields else "{}")
        lines = ["def text(value):", *fields, f"    return join(({', '.join([*items, end])},))"]
        made: Text = _WRITING.functions(record.label, "\n".join(lines) + "\n", names)["text"]
        self.texts[id(record)] = made
        return made

    def expression(self, shape: Shape, number: int, names: dict[str, Any]) -> str:
        """Source for the text of the variable ``x`` with this *number*; adds to *names* what it uses."""
        x = f"x{number}"
        inner = other_than_none(shape)
        if inner is not None:
            return f"('null' if {x} is None else {self.expression(inner, number, names)})"
        if isinstance(shape, ListOf) and type(shape) is ListOf:
            names[f"cls_{x}"] = shape.cls
            item = self._scalar(shape.item, "item", f"of_{x}", names)
            return self._or_general(
                f"'[' + ','.join([{item} for item in {x}]) + ']'", f"type({x}) is cls_{x}", shape, x, x, names
            )
        if isinstance(shape, DictOf) and isinstance(shape.key, Leaf) and shape.key.cls is str:
            names["key_text"] = self.key_text
            item = self._scalar(shape.value, "item", f"of_{x}", names)
            pairs = f"[key_text(key) + {item} for key, item in {x}.items()]"
            return self._or_general(f"'{{' + ','.join({pairs}) + '}}'", f"type({x}) is dict", shape, x, x, names)
        return self._scalar(shape, x, x, names)

    def _scalar(self, shape: Shape, x: str, mark: str, names: dict[str, Any]) -> str:
        """Source for the text of the variable *x*; *mark* is in the names of what only this uses."""
        if isinstance(shape, Float):
            names.update(isfinite=isfinite, float_text=FLOAT_TEXT)
            return self._or_general(f"float_text({x})", f"type({x}) is float and isfinite({x})", shape, x, mark, names)
        cls: Any = shape.cls if isinstance(shape, Leaf) else None
        if cls not in _COMMON:
            names[f"text_{mark}"] = self._text(shape)
            return f"text_{mark}({x})"
        name = f"cls_{cls.__name__}"
        test = f"type({x}) is {name}"
        names[name] = cls
        if cls is str:
            names["escaped"] = _ESCAPED
            test += f" and escaped({x}) is None"
        return self._or_general(_COMMON[cls].format(x=x), test, shape, x, mark, names)

    def _or_general(self, common: str, test: str, shape: Shape, x: str, mark: str, names: dict[str, Any]) -> str:
        names[f"general_{mark}"] = self._text(shape)
        return f"({common} if {test} else general_{mark}({x}))"

    def key_text(self, key: str) -> str:
        """*key* with its colon. Keys recur."""
        found = self.keys.get(key)
        if found is None:
            found = self.text_of({key: 0})[1:-2]
            if len(self.keys) < _MOST_KEYS and type(key) is str:
                self.keys[key] = found
        return found

    def _text(self, shape: Shape) -> Text:
        """The text of values of *shape*, of whatever class."""
        made = self._nested(shape)
        if made is not None:
            return made
        dump, text_of = shape.dump, self.text_of
        return lambda value: text_of(dump(value))

    def _nested(self, shape: Shape) -> Optional[Text]:
        """The function of another record, but for one that holds itself."""
        if type(shape) is not Record or shape.tag is not None:
            return None
        return self.texts[id(shape)] if id(shape) in self.texts else self.record(shape)
