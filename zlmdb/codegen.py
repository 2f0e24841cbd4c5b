"""Compiles generated source text into functions: the only module of the package that compiles.

Each kind of generated source is a `Recipe`, declared at the top of the module that writes it. Every source has an
artificial file name of its own, under which `linecache` has its lines, so tracebacks and debuggers show them. The lines
are removed when the last function of the source is collected; equal sources, of two tables with one type of key, are
compiled once.

A generated function handles the common case, and leaves other cases to its general form. A mistake in the source would
raise an exception there, and so give right results slowly. Two measures prevent that. Every name is looked up when the
source is compiled: `TemplateError` says which one the function or a class does not have. And general forms have names
that begin with ``general`` (or with what the recipe says): the tests replace these by functions that raise, and run
every generated function of every recipe.
"""

from __future__ import annotations

import builtins
import itertools
import re
import sys
import weakref
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from types import CodeType, ModuleType
from typing import Any, Callable, ClassVar

from .namedtuples import NamedTuple

_LITERAL = r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\""
_BUILTINS = frozenset(vars(builtins))

_numbers = itertools.count(1)


class TemplateError(Exception):
    """Generated source uses a name that does not exist: a mistake in the package, not in the program that uses it."""


class Recipe:
    """One kind of generated source: *what* it is for, in file names of the form ``<zlmdb what of subject, number>``.

    *classes* are the classes of variables in the source, by their names: their attributes are checked. Names that begin
    with one of *general* are general forms.
    """

    known: ClassVar[dict[str, Recipe]] = {}
    """All recipes of the modules that have been imported, by what they are for."""

    def __init__(self, what: str, /, *, general: tuple[str, ...] = ("general",), **classes: Any) -> None:
        self.what = what
        self.general = general
        self.classes = classes
        self.known[what] = self

    def functions(self, subject: str, source: str, names: Mapping[str, Any], /, **classes: Any) -> dict[str, Any]:
        """The namespace in which the functions of *source* run: *names*, and the names that the source defines.

        *subject* is what they are made for, such as a type. *classes* are further classes for this source. Raises
        `TemplateError` for a name that neither *names* nor Python has, and for an attribute that a class does not have.
        """
        text = _text(f"{self.what} of {subject}", source)
        text.check(self.classes if not classes else {**self.classes, **classes}, names)
        # The namespace of a module: PyPy takes its names for constants.
        space = vars(ModuleType(text.filename))
        space.update(names)
        space["__generated__"] = text  # which so lives as long as the functions, or a traceback through them
        exec(text.code, space)
        return space


class Source:
    """Lines of Python, written one after another."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def add(self, *lines: str) -> None:
        """Append *lines*, indented as the block they are in."""
        self.lines.extend("    " * self.depth + line for line in lines)

    @contextmanager
    def block(self, head: str) -> Generator[None, None, None]:
        """A block in which added lines are the body of *head*."""
        self.add(head)
        self.depth += 1
        yield
        self.depth -= 1

    def __str__(self) -> str:
        return "\n".join(self.lines) + "\n"


def value_of(expression: str, names: Mapping[str, Any], value: Any) -> Any:
    """The value of *expression*, of ``value`` and *names*, for *value*."""
    return eval(_expression(expression), dict(names), {"value": value})


def parses(expression: str) -> bool:
    """Whether Python's parser takes *expression*: what is too deep it does not."""
    try:
        compile(expression, "<zlmdb expression>", "eval")
    except (SyntaxError, RecursionError, MemoryError):
        return False
    return True


@lru_cache(maxsize=128)
def _expression(source: str) -> CodeType:
    return compile(source, "<zlmdb expression>", "eval")


class _Text:
    """A compiled source. Its lines are in `linecache` as long as this object lives."""

    __slots__ = ("__weakref__", "_attributes", "_checked", "_source", "_used", "code", "filename")

    def __init__(self, title: str, source: str) -> None:
        import linecache  # not at the top: it takes 3 ms, and a program may never come here

        self.filename = f"<zlmdb {title}, {next(_numbers)}>"
        self.code = compile(source, self.filename, "exec", dont_inherit=True)
        self._source = source
        self._attributes: list[str] = []
        self._used: set[str] = set()
        for name in _names(self.code):
            if f".{name}" in source:
                self._attributes.append(name)
            elif name not in _BUILTINS:
                self._used.add(name)
        self._checked: set[tuple[str, Any]] = set()
        # Without a time stamp: `linecache` keeps such an entry.
        linecache.cache[self.filename] = (len(source), None, source.splitlines(keepends=True), self.filename)
        _shown[weakref.ref(self, _forget)] = self.filename

    def check(self, classes: Mapping[str, Any], names: Mapping[str, Any]) -> None:
        """Raise `TemplateError` unless *names* and *classes* have all names that the source uses."""
        missing = self._used.difference(names)
        if missing:
            raise TemplateError(f"{self.filename} uses {', '.join(sorted(missing))}, which are not among its names")
        for variable, cls in classes.items():
            known = variable, weakref.ref(cls)
            if known not in self._checked:
                for name in self._attributes:  # no call for each: there are many, and hardly ever one is missing
                    if not hasattr(cls, name) and f"{variable}.{name}" in self._source:
                        self._look_closer(variable, cls, name)
                self._checked.add(known)

    def _look_closer(self, variable: str, cls: type, name: str) -> None:
        """Whether the name is really used: it may be in a text, or a part of a longer name. Rare, so done last."""
        _, *rests = self._source.split(f"{variable}.{name}")
        if all([f"_{rest[:1] or '.'}".isidentifier() for rest in rests]):
            return  # as `_put` in `_puts`; compiling the expressions below takes as long as two sources
        source = re.sub(_LITERAL, "''", self._source)
        if re.search(rf"(?<![\w.]){re.escape(variable)}\.{name}\b", source):
            raise TemplateError(f"{self.filename} uses {variable}.{name}, which {cls.__qualname__} does not have")


_texts: weakref.WeakValueDictionary[tuple[str, str], _Text] = weakref.WeakValueDictionary()


def _text(title: str, source: str) -> _Text:
    found = _texts.get((title, source))
    if found is None:
        found = _texts[title, source] = _Text(title, source)
    return found


def _names(module: CodeType) -> set[str]:
    """The names that the functions of *module* take from elsewhere, and those of attributes."""
    names: set[str] = set()
    inside = [module]
    for code in inside:  # which grows
        names.update(code.co_names)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                inside.append(constant)
    return names.difference(module.co_names)


def _forget(text: weakref.ref[Any]) -> None:
    filename, linecache = _shown.pop(text), sys.modules.get("linecache")
    if linecache is None:
        return
    _collected.append(filename)
    frame = sys._getframe().f_back  # documented, and there is no other way; none where a thread ends
    while frame is not None:
        if frame.f_code is linecache.checkcache.__code__:  # up to Python 3.12 it raises KeyError for what is gone
            return
        frame = frame.f_back
    for one in _collected[:]:  # another thread may do the same
        linecache.cache.pop(one, None)
        with suppress(ValueError):
            _collected.remove(one)


_collected: list[str] = []  # those whose lines are to be removed
# The references are to each `_Text`; of Any, since for checkers one made in a method is to the class of its self.
_shown: dict[weakref.ref[Any], str] = {}  # `weakref.finalize` does the same, and takes as long as a short source


PATIENCE = 1
"""How many calls the inherited methods do before *patient* `Methods` are generated. Tests of these do not wait."""


class Methods(NamedTuple):
    """Methods that one source defines, and *make* generates when one of them is first taken from an object.

    *static* ones are without ``self``. *patient* ones are generated for the second call only: many a process writes one
    record, and generating such a method takes as long as hundreds of calls of the one that is inherited.
    """

    names: Sequence[str]
    make: Callable[[], Mapping[str, Any]]
    static: bool = False
    patient: bool = False

    def put(self, cls: Any, general: Any) -> None:
        """Give *cls* those of the methods that it inherits from *general*, with the docstrings that they have there."""
        waiting: dict[str, _Waiting] = {}

        def generate() -> None:
            made = self.make()
            for name, one in waiting.items():
                function = made[name]
                function.__doc__, function.__qualname__ = one.__doc__, one.shown  # as errors name it
                setattr(cls, name, staticmethod(function) if self.static else function)

        for name in self.names:
            inherited = getattr(cls, name)
            if inherited is getattr(general, name):
                waiting[name] = _Waiting(name, inherited, generate, PATIENCE if self.patient else 0)
                setattr(cls, name, waiting[name])


class _Waiting:
    """In place of the method *name*: *inherited* does the first calls, then *generate* replaces this object."""

    def __init__(self, name: str, inherited: Any, generate: Callable[[], None], calls: int) -> None:
        self._name = name
        self._inherited = inherited
        self._generate = generate
        self._calls = calls
        self.__doc__ = inherited.__doc__
        self.shown: str = getattr(inherited, "__qualname__", name)

    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return self
        if self._calls > 0:
            return partial(self, instance)
        self._generate()
        return getattr(instance, self._name)

    def __call__(self, instance: Any, *args: Any) -> Any:
        if self._calls > 0:
            self._calls -= 1
            return self._inherited(instance, *args)
        return getattr(instance, self._name)(*args)  # somebody kept this method
