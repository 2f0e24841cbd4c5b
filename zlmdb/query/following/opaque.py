"""What is seen of anything captured: nothing. What is done with it ends the way; `callables` and `seen` say more."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from ...handlers import is_debugging
from .known import SOMETHING, Known
from .nodes import Node, Parameter
from .recorder import Recorder
from .sight import Seen

if TYPE_CHECKING:
    from .session import Session


class Opaque(Seen):
    """What a function sees of something captured that it may only hold. Whatever else is not said ends the way."""

    __slots__ = ("_session",)

    _session: Session

    def _name(self) -> str:
        """What it is called in the function."""
        raise NotImplementedError

    def _kind(self) -> str:
        """What it is."""
        raise NotImplementedError

    def _blocked(self, what: str) -> NoReturn:
        self._session.block(f"{what} of {self._name()}, which is {self._kind()}")

    def __getattr__(self, name: str) -> Any:
        return self._blocked(f"attribute {name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._blocked("a call")

    def __eq__(self, other: object) -> Any:
        if isinstance(other, Recorder):
            return NotImplemented  # then that is asked
        return self._blocked("comparing")

    def __hash__(self) -> int:
        return self._blocked("hash()")

    def __bool__(self) -> bool:
        return self._blocked("the truth")

    def __iter__(self) -> Any:
        return self._blocked("iterating")

    def __len__(self) -> int:
        return self._blocked("len()")

    def __contains__(self, member: Any) -> bool:
        return self._blocked("searching")

    def __getitem__(self, key: Any) -> Any:
        return self._blocked("an item")

    def __setitem__(self, key: Any, value: Any) -> None:
        self._blocked("assigning to an item")

    def __delitem__(self, key: Any) -> None:
        self._blocked("deleting an item")

    def __str__(self) -> str:
        return self._blocked("str()")

    def __repr__(self) -> str:
        if is_debugging(sys._getframe(1)):
            return f"<placeholder {self._name()}, while zlmdb reads the function>"
        return self._blocked("repr()")

    def __format__(self, how: str) -> str:
        return self._blocked("format()")


class Sight(Opaque):
    """What is seen of the captured value number *slot*."""

    __slots__ = ("_slot",)

    def __init__(self, session: Session, slot: int) -> None:
        self._session, self._slot = session, slot

    def node(self) -> Node:
        return parameter(self._session, self._slot, SOMETHING, settled=False)

    def original(self) -> Any:
        return self._session.values[self._slot]

    def ready(self) -> Callable[..., Any]:
        """What is called to call it."""
        return self

    def _name(self) -> str:
        return self._session.captured.names[self._slot]

    def _kind(self) -> str:
        return describe(self.original())

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in ("_session", "_slot"):
            self._blocked(f"assigning to attribute {name}")
        object.__setattr__(self, name, value)


class Truthy(Sight):
    """Something that is true, as functions and modules are."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return True


def parameter(session: Session, slot: int, known: Known, *, settled: bool) -> Parameter:
    """The expression of the captured value number *slot*."""
    name = session.captured.names[slot]
    return session.nodes.once((Parameter, slot), lambda: Parameter(slot, name, known, settled))


def describe(value: Any) -> str:
    """What *value* is, for reasons."""
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
        return f"{value.__module__}.{value.__qualname__}, a function that is not listed as pure"
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    return f"a {type(value).__qualname__}"
