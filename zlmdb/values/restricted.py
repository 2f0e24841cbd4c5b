"""Reads pickles that may name certain classes only, and may change only objects that they created.

A pickle is a program. It may call the classes that it names, and it sets attributes and items: also of a class, of a
member of an enum or of any other existing object, which then is changed for the whole process. So zlmdb reads a pickle
in one of two ways:

* Without any class, by the unpickler of Python: a pickle that names nothing can only create plain data.
* With a class, by an unpickler in Python, which checks before each step that the object to change was created by this
  pickle.
"""

from __future__ import annotations

import copyreg
import enum
import io
import pickle
import pickletools
from collections.abc import Iterable, Mapping
from typing import Any, Callable, Optional

from ..errors import DecodeError
from .base import Data, Decode, is_a, typename

Names = Mapping[tuple[str, str], type[Any]]
"""Classes by module and qualified name."""

_OLD_NAMES = {"__builtin__": "builtins", "copy_reg": "copyreg"}
"""Modules as protocols 0 to 2 name them."""

_Instructions: Any = getattr(pickle, "_Unpickler")  # noqa: B009 - the one in Python, Any for checkers
_EXTENSIONS: Any = getattr(copyreg, "_inverted_registry")  # noqa: B009


def restricted(allow: Iterable[type[Any]]) -> Decode:
    """What reads pickles that name only the classes *allow*. It raises `DecodeError` for one that names another."""
    allowed: Names = {(one.__module__, one.__qualname__): one for one in allow}

    def loads(data: Data) -> Any:
        if not _EXTENSIONS:  # by number a pickle gets what a program registered, and no find_class is asked
            try:
                return _NamesNothing(io.BytesIO(data)).load()
            except _NamesSomething:
                pass
        return _Careful(data, allowed).load()

    return loads


class _NamesSomething(Exception):
    """A pickle that names a class or function."""


class _NamesNothing(pickle.Unpickler):
    """Reads plain data."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """Raise `_NamesSomething`."""
        raise _NamesSomething


class _Named:
    """What stands on the stack for a name of the pickle that is no class, and is only called."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call


# Any, since comparing a type with a class tells checkers what the value is: of an Any they then know less than before.
_NAMED: Any = _Named
_TUPLE: Any = tuple


def _enum_member(cls: Any, name: Any) -> Any:
    """The getattr that some versions of Python 3.11 pickle members of enums with, of use for nothing else."""
    if isinstance(cls, type) and issubclass(cls, enum.Enum) and name in cls.__members__:
        return cls.__members__[name]
    raise DecodeError(f"a pickle that takes {name!r} from {typename(cls)}, which is not an enum with that member")


class _Careful(_Instructions):  # type: ignore[misc]  # its base is Any
    """The unpickler in Python, with those of its instructions replaced that call or change something.

    *foreign* is all that the pickle got hold of and that may have been there before: what it named, and what the calls
    of classes gave, unless it is sure to be new. By id, with the objects, so that no id is given to another object.
    *named* are the ids of what it named.
    """

    def __init__(self, data: Data, allowed: Names) -> None:
        super().__init__(io.BytesIO(data))  # pyright: ignore[reportUnknownMemberType]  # its base is Any
        self.allowed = allowed
        self.foreign: dict[int, Any] = {}
        self.named: set[int] = set()

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """The allowed class of that name. Raises `DecodeError` for any other."""
        name = _OLD_NAMES.get(module_name, module_name), global_name
        found: Any = self.allowed.get(name)
        if found is None and name == ("copyreg", "_reconstructor"):
            found = _Named(self.reconstructed)
        elif found is None and name == ("builtins", "object"):
            found = object
        elif found is None and name == ("builtins", "getattr"):
            found = _Named(self.member)
        elif found is None:
            raise DecodeError(f"a pickle that names {name[0]}.{name[1]}, which allow= does not list")
        self.named.add(id(found))
        return self.marked(found)

    def get_extension(self, code: int) -> Any:
        """Raise `DecodeError`: a number tells nobody what it names."""
        raise DecodeError(f"a pickle that names a class by its number {code} in copyreg, which allow= cannot list")

    # -- what is called ---------------------------------------------------------------------------------------------

    def _instantiate(self, cls: Any, args: Any) -> None:
        # INST and OBJ of protocol 0 call a class, or make an object without calling it where there are no arguments.
        self.append(self.called(cls, args) if args else self.made(cls, (), {}))

    def load_reduce(self) -> None:
        """Call a class."""
        args = self.stack.pop()
        self.stack[-1] = self.called(self.stack[-1], args)

    def load_newobj(self) -> None:
        """Make an object of a class."""
        args = self.stack.pop()
        self.stack[-1] = self.made(self.stack[-1], args, {})

    def load_newobj_ex(self) -> None:
        """Make an object of a class, by keywords too."""
        keywords, args = self.stack.pop(), self.stack.pop()
        self.stack[-1] = self.made(self.stack[-1], args, keywords)

    def called(self, what: Any, args: Any) -> Any:
        """What calling *what* gives, which the pickle must have named."""
        if type(what) is _NAMED and id(what) in self.named:
            return what.call(*args)
        self.require_class(what)
        value = what(*args)
        return value if _is_new(value, what) and type(what).__call__ == type.__call__ else self.marked(value)

    def made(self, cls: Any, args: Any, keywords: Any) -> Any:
        """An object of *cls*, without its ``__init__``."""
        self.require_class(cls)
        value = cls.__new__(cls, *args, **keywords)
        return value if _is_new(value, cls) else self.marked(value)

    def reconstructed(self, cls: Any, base: Any, state: Any) -> Any:
        """What ``copyreg._reconstructor`` makes in protocols 0 and 1, which calls methods of what it is given."""
        self.require_class(cls)
        self.require_class(base)
        if base is object:
            return object.__new__(cls)
        if not _makes_new(base):
            raise DecodeError(f"a pickle of protocol 0 or 1 that makes objects of {typename(cls)} by {typename(base)}")
        value = base.__new__(cls, state)
        base.__init__(value, state)
        return value

    def member(self, cls: Any, name: Any) -> Any:
        """A member of an enum."""
        return self.marked(_enum_member(cls, name))

    def require_class(self, what: Any) -> None:
        """Raise `DecodeError` unless *what* is a class that the pickle named, whose calls make no classes."""
        if not is_a(what, type) or id(what) not in self.named or issubclass(what, type):
            raise DecodeError(
                f"a pickle that calls {typename(what if is_a(what, type) else type(what))}, which is not allowed"
            )

    def marked(self, value: Any) -> Any:
        """*value*, which may have been there before."""
        self.foreign[id(value)] = value
        return value

    # -- what is changed --------------------------------------------------------------------------------------------

    def load_build(self) -> None:
        """Give an object its state: as pickle does, by ``__setstate__``, or by its attributes."""
        state = self.stack.pop()
        value: object = self.stack[-1]
        self.require_new(value)
        setstate = getattr(value, "__setstate__", None)
        if setstate is not None:
            setstate(state)
            return
        slots: Any = None
        if type(state) is _TUPLE and len(state) == 2:
            state, slots = state
        if state:
            vars(value).update(state)
        for name, one in slots.items() if slots else ():
            if name[:2] == "__":
                raise DecodeError(f"a pickle that sets {name} of an object of {typename(type(value))}")
            setattr(value, name, one)

    def load_append(self) -> None:
        """Append one item to a list."""
        item = self.stack.pop()
        self.extend(self.stack[-1], [item])

    def load_appends(self) -> None:
        """Append items to a list."""
        items = self.pop_mark()
        self.extend(self.stack[-1], items)

    def extend(self, target: Any, items: list[Any]) -> None:
        """Append *items* to *target*, one by one where it has nothing better."""
        self.require_new(target)
        extend = getattr(target, "extend", None)
        if extend is not None:
            extend(items)
            return
        for item in items:
            target.append(item)

    def load_setitem(self) -> None:
        """Set one item of a dict."""
        value, key = self.stack.pop(), self.stack.pop()
        self.require_new(self.stack[-1])
        self.stack[-1][key] = value

    def load_setitems(self) -> None:
        """Set items of a dict."""
        items = self.pop_mark()
        self.require_new(self.stack[-1])
        for position in range(0, len(items), 2):
            self.stack[-1][items[position]] = items[position + 1]

    def load_additems(self) -> None:
        """Add items to a set."""
        items = self.pop_mark()
        self.require_new(self.stack[-1])
        if is_a(self.stack[-1], set):
            self.stack[-1].update(items)
            return
        for item in items:
            self.stack[-1].add(item)

    def require_new(self, value: Any) -> None:
        """Raise `DecodeError` unless *value* was made in this load."""
        if id(value) in self.foreign:
            what = typename(value) if is_a(value, type) else f"an object of {typename(type(value))}"
            raise DecodeError(
                f"a pickle that changes {what}, which may have been there before: with allow= a pickle may only "
                f"set the state of objects that it certainly created itself"
            )


def _replaced() -> dict[int, Any]:
    """The instructions of the unpickler in Python, those of `_Careful` in place of its own."""
    by_name = {one.name: one.code.encode("latin-1")[0] for one in pickletools.opcodes}
    known: dict[int, Any] = dict(_Instructions.dispatch)
    for name in ("reduce", "newobj", "newobj_ex", "build", "append", "appends", "setitem", "setitems", "additems"):
        known[by_name[name.upper()]] = vars(_Careful)[f"load_{name}"]
    return known


_Careful.dispatch = _replaced()


def _is_new(value: Any, cls: Any) -> bool:
    """Whether *value*, which *cls* made, is sure to be an object that was not there before."""
    return type(value) is cls and _makes_new(cls)


def _makes_new(cls: Any) -> bool:
    """Whether ``cls.__new__`` is one of Python's own that make a new object each time: classes may keep some."""
    owner: Optional[type[Any]] = next((base for base in cls.__mro__ if "__new__" in vars(base)), None)
    return owner is not None and owner.__module__ in ("builtins", "collections") and not issubclass(owner, type)
