"""Following one function: its copy, what the copy sees of the outside, and what it meets on the way."""

from __future__ import annotations

import enum
import types
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Optional

from .captured import (
    MISSING,
    Captured,
    Reader,
    comes_first,
    looks_up_plainly,
    read_attribute,
    read_cell,
    read_constant,
    read_default,
    read_global,
    read_item,
    read_keyword_default,
    read_length,
    read_own,
    read_static,
)
from .code import Code, IsOperand, examined, with_members
from .debugged import stops_in
from .known import SOMETHING, Home, Known, kind_of
from .nodes import Node, Parameter
from .opaque import parameter
from .proxies import proxy_of
from .recorder import Recorder, recorded
from .trace import Trace


def _attribute(holder: Any, name: str) -> Any:
    """What *holder* has as *name*, if that is found without running code that somebody wrote."""
    if isinstance(holder, enum.EnumMeta) or kind_of(holder) is type:
        return read_static(holder, name)
    if isinstance(holder, types.ModuleType):
        return read_own(holder, name)
    cls = kind_of(holder)
    member = read_static(cls, name)
    if isinstance(holder, type) or not looks_up_plainly(cls) or comes_first(member):
        return getattr(holder, name, MISSING) if isinstance(member, types.MemberDescriptorType) else MISSING
    return read_own(holder, name) if hasattr(holder, "__dict__") else MISSING


_FEW = 32
"""Elements up to which those of a captured tuple are captured each by itself where the function iterates over it."""


class Session(Trace):
    """Following one function."""

    def __init__(self, home: Home, function: Any) -> None:
        super().__init__(home)
        self.captured = Captured(self.values, function)
        self.debugged = False
        self._seen: dict[int, Any] = {}
        self._copies: dict[int, Any] = {}

    def nones(self) -> list[str]:
        return [name for name, value in zip(self.captured.names, self.values) if value is None]

    def forget(self) -> None:
        super().forget()
        self._seen.clear()
        self._copies.clear()

    def see(self, slot: int) -> Any:
        """What the function sees of the captured value number *slot*."""
        if slot not in self._seen:
            self._seen[slot] = proxy_of(self, slot)
        return self._seen[slot]

    def see_read(self, holder: int, read: Reader, what: Any, name: Optional[str] = None) -> Any:
        """What it sees of what ``read(holder, what)`` gives."""
        return self.see(self.captured.read(holder, read, what, name))

    def recorded(self, node: Node) -> Any:
        return recorded(self, node)

    def sure(self, slot: int, read: Reader) -> Any:
        """What ``read(slot)`` gives, which is the same wherever the result is used again."""
        found = self.captured.read(slot, read, None)
        return self.concrete(parameter(self, found, SOMETHING, settled=True))

    def element(self, node: Node, key: Any) -> Any:
        if isinstance(node, Parameter) and kind_of(self.values[node.number]) is tuple and type(key) is int:
            return self.see_read(node.number, read_item, key, f"{node.name}[{key}]")
        return super().element(node, key)

    def elements(self, node: Node) -> Iterator[Any]:
        found: Any = self.values[node.number] if isinstance(node, Parameter) else None
        if isinstance(node, Parameter) and kind_of(found) is tuple and len(found) <= _FEW:
            return iter([self.element(node, number) for number in range(self.sure(node.number, read_length))])
        return super().elements(node)

    def copy(self, slot: int) -> Any:
        """The copy of the captured function number *slot* that is followed. Ends the way if there can be none."""
        found = self._copies.get(slot)
        if found is None:
            found = self._copies[slot] = self._copied(slot)
        return found

    def _copied(self, slot: int) -> Any:
        function: types.FunctionType = self.values[slot]
        if type(function.__code__) is not types.CodeType:
            self.block(f"{function.__qualname__}, which is built in")
        info = examined(function.__code__)
        if info.reason:
            self.block(f"{function.__qualname__}: {info.reason}")
        if stops_in(function.__code__):
            self.debugged = True
            self.block(f"{function.__qualname__}: a debugger stops in it")
        self._check_operands(function, info)
        self.learn(none=info.tests_none, members=bool(info.operands))
        return self._made(slot, function, info)

    def _made(self, slot: int, function: types.FunctionType, info: Code) -> Any:
        read, code = self.captured.read, function.__code__
        cells = [self._cell(slot, number, name) for number, name in enumerate(code.co_freevars)]
        arguments = code.co_varnames[: code.co_argcount]
        defaults = function.__defaults__ or ()
        optional = arguments[len(arguments) - len(defaults) :]
        seen = [self.see(read(slot, read_default, number, one)) for number, one in enumerate(optional)]
        copy = types.FunctionType(
            with_members(code, self._members),
            self._space(slot, function, info),
            function.__name__,
            tuple(seen),
            tuple(cells) or None,  # PyPy takes no empty closure
        )
        named = function.__kwdefaults__ or {}
        copy.__kwdefaults__ = {name: self.see(read(slot, read_keyword_default, name)) for name in named} or None
        return copy

    def _cell(self, slot: int, number: int, name: str) -> types.CellType:
        holder = self.captured.read(slot, read_cell, number, name)
        return types.CellType() if self.values[holder] is MISSING else types.CellType(self.see(holder))

    def _space(self, slot: int, function: types.FunctionType, info: Code) -> dict[str, Any]:
        """The globals of the copy: nothing but what its code names, each as it may be seen."""
        space: dict[str, Any] = {"__builtins__": {}, "__name__": function.__module__}
        for name in info.names:
            if read_global(function, name) is not MISSING:
                space[name] = self.see_read(slot, read_global, name)
        return space

    def _members(self, value: Any) -> Recorder:
        """What stands in the code of the copy in place of a set that it searches."""
        known = Known.of_value(value)
        return Recorder(self, self.nodes.constant(value, known), known)

    def _check_operands(self, function: types.FunctionType, info: Code) -> None:
        """See that what the function asks something to be is None, a truth value, or a member of an Enum."""
        for operand in info.operands:
            value = self._operand(function, operand)
            if value is not None and type(value) is not bool and not isinstance(value, enum.Enum):
                text = ".".join((operand.name, *operand.attributes))
                self.block(f"{function.__qualname__}: it asks what is {text}, which is no member of an Enum")

    def _operand(self, function: types.FunctionType, operand: IsOperand) -> Any:
        if operand.kind == "bool":
            return True
        if operand.kind == "global":
            value = read_global(function, operand.name)
        else:
            cells = function.__code__.co_freevars
            value = read_cell(function, cells.index(operand.name)) if operand.name in cells else MISSING
        for name in operand.attributes:
            value = _attribute(value, name)
        return value

    def member(self, recorder: Recorder, cls: type[Any], name: str, member: Any) -> Any:
        if not looks_up_plainly(cls):
            self.block(f"attribute {name} of a {cls.__qualname__}, which has a __getattr__")
        holder = self.captured.slot(0, read_constant, cls, cls, cls.__qualname__)
        return self.of_class(recorder, holder, read_static, name, member)

    def of_class(self, owner: Any, holder: int, read: Reader, name: str, member: Any) -> Any:
        """What *owner* has as *name*, of which its class says that it is *member*."""
        slot = self.captured.read(holder, read, name, f"{self.captured.names[holder]}.{name}")
        is_class = isinstance(self.values[holder], type) and not isinstance(owner, Recorder)
        kind = kind_of(member)
        if kind is types.FunctionType:
            return self.see(slot) if is_class else types.MethodType(self.see(slot), owner)
        if kind is staticmethod:
            return self.see_read(slot, read_attribute, "__func__", self.captured.names[slot])
        if kind is classmethod:
            return self._class_method(slot, holder, owner)
        if kind is property and not is_class:
            return self.see_read(slot, read_attribute, "fget", self.captured.names[slot])(owner)
        if kind is cached_property and not is_class:
            return self.see_read(slot, read_attribute, "func", self.captured.names[slot])(owner)
        if member is MISSING or hasattr(kind, "__get__"):
            return self.block(f"{self.captured.names[slot]}, which is a {kind.__qualname__}")
        return self.see(slot)

    def _class_method(self, slot: int, holder: int, owner: Any) -> Any:
        value = self.values[holder]
        cls = value if isinstance(value, type) else type(value)
        seen = self.see(self.captured.slot(0, read_constant, cls, cls, cls.__qualname__))
        return types.MethodType(self.see_read(slot, read_attribute, "__func__", self.captured.names[slot]), seen)
