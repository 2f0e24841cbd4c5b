"""The proxy of anything captured: what is done with it ends the way. Those of `callables` and `proxies` do more."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from ...handlers import is_debugging
from .known import SOMETHING, Known
from .nodeof import Proxy
from .nodes import Node, Parameter
from .recorder import Recorder

if TYPE_CHECKING:
    from .session import Session


def _blocking(what: str) -> Any:
    """A method of `OpaqueProxy` that ends the way, since *what* is done with it."""

    def blocked(self: OpaqueProxy, *args: Any, **kwargs: Any) -> NoReturn:
        self.zlmdb_blocked(what)

    return blocked


class OpaqueProxy(Proxy):
    """The proxy of something captured that a function may only hold. Whatever else is not said ends the way.

    Its own names begin with ``zlmdb_``: every other one is a name of what it stands for.
    """

    __slots__ = ("zlmdb_session",)

    zlmdb_session: Session

    def zlmdb_name(self) -> str:
        """What it is called in the function."""
        raise NotImplementedError

    def zlmdb_kind(self) -> str:
        """What it is."""
        raise NotImplementedError

    def zlmdb_blocked(self, what: str) -> NoReturn:
        """End the way, since *what* is done with it."""
        self.zlmdb_session.block(f"{what} of {self.zlmdb_name()}, which is {self.zlmdb_kind()}")

    def __getattr__(self, name: str) -> Any:
        # What is recorded and compared with this asks what is known of it.
        return self.zlmdb_blocked("comparing" if name == "zlmdb_known" else f"attribute {name}")

    def __eq__(self, other: object) -> Any:
        if isinstance(other, Recorder):
            return NotImplemented  # then that is asked
        return self.zlmdb_blocked("comparing")

    __call__, __hash__, __bool__, __iter__, __len__ = map(
        _blocking, ("a call", "hash()", "the truth", "iterating", "len()")
    )
    __contains__, __getitem__, __setitem__, __delitem__ = map(
        _blocking, ("searching", "an item", "assigning to an item", "deleting an item")
    )
    __str__, __format__ = _blocking("str()"), _blocking("format()")

    def __repr__(self) -> str:
        if is_debugging(sys._getframe(1)):
            return f"<placeholder {self.zlmdb_name()}, while zlmdb reads the function>"
        return self.zlmdb_blocked("repr()")


class CapturedProxy(OpaqueProxy):
    """The proxy of the captured value number *slot*."""

    __slots__ = ("zlmdb_slot",)

    def __init__(self, session: Session, slot: int) -> None:
        self.zlmdb_session, self.zlmdb_slot = session, slot

    def zlmdb_value(self) -> Node:
        return parameter(self.zlmdb_session, self.zlmdb_slot, SOMETHING, settled=False)

    def zlmdb_original(self) -> Any:
        return self.zlmdb_session.values[self.zlmdb_slot]

    def zlmdb_ready(self) -> Callable[..., Any]:
        """What is called to call it."""
        return self

    def zlmdb_name(self) -> str:
        return self.zlmdb_session.captured.names[self.zlmdb_slot]

    def zlmdb_part(self, read: Callable[[Any, str], Any], name: str) -> Any:
        """What is seen of what it has as *name*, which *read* gives."""
        return self.zlmdb_session.see_read(self.zlmdb_slot, read, name, f"{self.zlmdb_name()}.{name}")

    def zlmdb_kind(self) -> str:
        return describe(self.zlmdb_original())

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in ("zlmdb_session", "zlmdb_slot"):
            self.zlmdb_blocked(f"assigning to attribute {name}")
        object.__setattr__(self, name, value)


class Truthy(CapturedProxy):
    """The proxy of something that is true, as functions and modules are."""

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
        holder = f"{value.__module__}." if value.__module__ else ""  # a method such as datetime.now has none
        return f"{holder}{value.__qualname__}, a function that is not listed as pure: call it before the query"
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    return f"a {type(value).__qualname__}"
