"""`typing.NamedTuple`, for the same classes, without a look at the annotations.

The one of `typing` compiles the annotation of every field when the class is made: for twenty classes this takes a
twentieth of ``import zlmdb``. Type checkers see the original, and refuse what it refuses.
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    _NOT_COPIED = {"__module__", "__annotations__"}

    class _Making(type):
        def __new__(mcls, name, bases, body):
            if not bases:
                return super().__new__(mcls, name, bases, body)
            types = body.get("__annotations__", {})
            defaults = [body[field] for field in types if field in body]
            made = namedtuple(name, types, defaults=defaults, module=body["__module__"])
            made.__annotations__ = made.__new__.__annotations__ = types
            for key, value in body.items():
                if key not in types and key not in _NOT_COPIED:
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Making):
        """The base of a class that becomes a named tuple."""
