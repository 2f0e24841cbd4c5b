"""What a function takes from outside, and the way to it: variables, globals, defaults, attributes of what it holds.

Each such value has a number. How it was reached is kept as a `Step`, so that the values can be read again from another
function of the same code. The function that is followed never sees the values themselves, unless they are None, True,
False or members of an Enum: it sees the proxies of `proxies`, and so cannot do anything to them, or call them,
unnoticed.
"""

from __future__ import annotations

import builtins
import enum
import types
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional

from ...handlers import let_through
from ...namedtuples import NamedTuple
from .code import assigned
from .known import CONTAINERS, PLAIN, kind_of, names_of
from .nodeof import is_constant


class _Missing:
    """What stands for a value that there is not."""

    def __repr__(self) -> str:
        return "<missing>"


MISSING: Any = _Missing()
_BUILTINS = vars(builtins)
Reader = Callable[[Any, Any], Any]

SAME, TYPE, CODE, SLOT = range(4)
"""What is to be the same for a result to be used again: the value, its type, its code, or another captured value."""


class Step(NamedTuple):
    """How a captured value is reached from another one, and what it has to be."""

    holder: int
    read: Reader
    what: Any
    check: int
    expected: Any


def read_global(function: Any, name: str) -> Any:
    """A global or built-in name of a function."""
    found = function.__globals__.get(name, MISSING)
    return _BUILTINS.get(name, MISSING) if found is MISSING else found


def read_cell(function: Any, number: int) -> Any:
    """A variable of the function around."""
    try:
        return function.__closure__[number].cell_contents
    except ValueError:
        return MISSING


def read_default(function: Any, number: int) -> Any:
    """A default of an argument. Raises LookupError where it has none."""
    return function.__defaults__[number]


def read_keyword_default(function: Any, name: str) -> Any:
    """A default of an argument that is given by its name."""
    named: dict[str, Any] = function.__kwdefaults__ or {}
    return named.get(name, MISSING)


def read_attribute(holder: Any, name: str) -> Any:
    """An attribute that a class written in C has, and that runs no code of anybody."""
    return getattr(holder, name)


def read_item(holder: Any, key: Any) -> Any:
    """An element of a tuple or dict."""
    return holder[key]


def read_length(holder: Any, what: Any) -> int:
    """How many elements *holder* has."""
    return len(holder)


def read_own(holder: Any, name: str) -> Any:
    """What an instance or a module has in its own dict."""
    own: Mapping[str, Any] = names_of(holder)
    return own.get(name, MISSING)


def read_static(cls: Any, name: str) -> Any:
    """What a class or one of its bases defines."""
    for one in cls.__mro__:
        own: Mapping[str, Any] = names_of(one)
        found = own.get(name, MISSING)
        if found is not MISSING:
            return found
    return MISSING


def looks_up_plainly(cls: Any) -> bool:
    """Whether looking up an attribute of an instance of *cls* runs no code that somebody wrote."""
    found = read_static(cls, "__getattribute__")
    written = type(getattr(found, "__code__", None)) is types.CodeType  # PyPy's own have code of another type
    return not hasattr(cls, "__getattr__") and not written


def comes_first(member: Any) -> bool:
    """Whether what a class defines is asked for a value before the instance: a property, and what else is like one."""
    kind = kind_of(member)
    return hasattr(kind, "__get__") and (hasattr(kind, "__set__") or hasattr(kind, "__delete__"))


def read_class(holder: Any, name: str) -> Any:
    """What the class of an instance defines, where the instance itself has nothing of that name instead."""
    found = read_static(type(holder), name)
    return MISSING if name in getattr(holder, "__dict__", ()) and not comes_first(found) else found


def read_constant(holder: Any, what: Any) -> Any:
    """What is known without reading."""
    return what


class Captured:
    """The values that one function captured, as far as they were met while it was followed."""

    def __init__(self, values: list[Any], function: Any) -> None:
        self.values = values
        self.steps: list[Step] = []
        self.names: list[str] = []
        self._slots: dict[Any, int] = {}
        self._functions: dict[int, int] = {}
        self.slot(-1, read_constant, None, function, getattr(function, "__name__", "f"))

    def slot(self, holder: int, read: Reader, what: Any, value: Any, name: str) -> int:
        """The number of *value*, which ``read(holder, what)`` gives; people know it as *name*."""
        key = (holder, read, what if isinstance(what, (str, int)) else id(what))
        found = self._slots.get(key)
        if found is not None:
            return found
        number = self._slots[key] = len(self.values)
        self.values.append(value)
        self.names.append(f"{self.names[holder]}[{what}]" if name.isdigit() else name)
        self.steps.append(Step(holder, read, what, *self._check(value, number)))
        return number

    def read(self, holder: int, read: Reader, what: Any, name: Optional[str] = None) -> int:
        """The number of what ``read(holder, what)`` gives."""
        value = read(self.values[holder], what)
        return self.slot(holder, read, what, value, str(what) if name is None else name)

    def _check(self, value: Any, number: int) -> tuple[int, Any]:
        if number == 0:  # it was found by its code, which what is kept for it must not keep
            self._functions[id(value)] = 0
            return TYPE, kind_of(value)
        if isinstance(value, types.FunctionType):
            first = self._functions.setdefault(id(value), number)
            return (CODE, value.__code__) if first == number else (SLOT, first)
        return (SAME, value) if counts_by_identity(value) else (TYPE, kind_of(value))


def counts_by_identity(value: Any) -> bool:
    """Whether another value in its place is another function: None, truth values, classes, modules and the like."""
    if (
        value is None
        or value is MISSING
        or value is ...
        or isinstance(value, (bool, type, types.ModuleType, enum.Enum))
    ):
        return True
    if isinstance(value, types.BuiltinFunctionType):
        return value.__self__ is None or isinstance(value.__self__, types.ModuleType)
    return False


def read_again(function: Any, steps: Sequence[Step]) -> Optional[list[Any]]:
    """The values of *steps* as *function* has captured them; None if one of them is another one than it has to be."""
    values: list[Any] = [function]
    first = steps[0]
    if not _holds(function, first, values):
        return None
    try:
        for step in steps[1:]:
            holder, read, what, check, expected = step
            value = read(values[holder], what)
            if check == TYPE:
                if type(value) is not expected:
                    return None
            elif check == SAME:
                if value is not expected:
                    return None
            elif not _holds(value, step, values):
                return None
            values.append(value)
    except (AttributeError, LookupError, TypeError) as error:
        let_through(error)
        return None
    return values


Cells = tuple[tuple[bool, Any, int, Any], ...]
"""Variables of the functions around, or globals: whether it is one of these, its number or name, and as in a `Step`."""


def plain_cells(steps: Sequence[Step]) -> Optional[Cells]:
    """What *steps* read, if that is nothing but variables that the function uses itself."""
    found: list[tuple[bool, Any, int, Any]] = []
    for step in steps[1:]:
        is_plain = step.holder == 0 and step.read in (read_cell, read_global) and step.check != SLOT
        if not is_plain or step.expected is MISSING:
            return None
        found.append((step.read is read_global, step.what, step.check, step.expected))
    first = steps[0]
    return tuple(found) if first.check == TYPE and first.expected is types.FunctionType else None


def cells_again(function: Any, cells: Cells) -> Optional[list[Any]]:
    """As `read_again`, of a plain function, step by step: a common loop would take longer than the steps."""
    values: list[Any] = [function]
    closure = function.__closure__
    try:
        for is_global, what, check, expected in cells:
            value = read_global(function, what) if is_global else closure[what].cell_contents
            if check == TYPE:
                if type(value) is not expected:
                    return None
            elif check == SAME:
                if value is not expected:
                    return None
            elif type(value) is not types.FunctionType or value.__code__ is not expected:
                return None
            values.append(value)
    except ValueError:  # a variable without a value
        return None
    return values


def _holds(value: Any, step: Step, values: list[Any]) -> bool:
    if step.check == CODE:
        return type(value) is types.FunctionType and value.__code__ is step.expected
    if step.check == SLOT:
        return value is values[step.expected]
    return type(value) is step.expected if step.check == TYPE else value is step.expected


def frozen(function: Any) -> Any:
    """*function* with the plain values that it has captured now, whatever the variables around it become.

    A condition that is made in a loop means the turn of the loop in which it was made.
    """
    if type(function) is not types.FunctionType or not function.__closure__:
        return function
    written = assigned(function.__code__)
    cells: list[types.CellType] = []
    for number, (name, cell) in enumerate(zip(function.__code__.co_freevars, function.__closure__)):
        value = MISSING if name in written else read_cell(function, number)
        cells.append(types.CellType(value) if value is not MISSING and is_settled(value) else cell)
    copy = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, tuple(cells)
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__ = function.__qualname__
    return copy


def is_settled(value: Any) -> bool:
    """Whether *value* is plain and can never change."""
    return is_constant(value) and (type(value) in PLAIN or type(value) in CONTAINERS)
