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
from contextlib import contextmanager
from functools import lru_cache
from types import CodeType, ModuleType
from typing import Any, Callable, ClassVar

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
        self.filename = f"<zlmdb {title}, {next(_numbers)}>"
        self.code = compile(source, self.filename, "exec", dont_inherit=True)
        self._source = source
        names = _names(self.code)
        self._attributes = [name for name in names if f".{name}" in source]
        self._used = names.difference(self._attributes, _BUILTINS)
        self._checked: set[tuple[str, Any]] = set()
        _show(self.filename, source)
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
        """Whether the name is really used: it may be in a text, or the end of a longer name. Rare, so done last."""
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


def _show(filename: str, source: str) -> None:
    import linecache  # not at the top: it takes 3 ms, and a program may never come here

    # Without a time stamp: `linecache` keeps such an entry.
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)


def _forget(text: weakref.ref[Any]) -> None:
    filename, linecache = _shown.pop(text), sys.modules.get("linecache")
    if linecache is not None:
        linecache.cache.pop(filename, None)


# The references are to each `_Text`; of Any, since for checkers one made in a method is to the class of its self.
_shown: dict[weakref.ref[Any], str] = {}  # `weakref.finalize` does the same, and takes as long as a short source


def generate_on_use(cls: Any, names: Sequence[str], make: Callable[[], Mapping[str, Any]], *, static: bool) -> None:
    """Give *cls* the methods *names*, which *make* generates when one of them is first called.

    They have the docstrings of the methods that *cls* inherits.
    """
    made: dict[str, Any] = {}

    def put(name: str, function: Any) -> None:
        function.__doc__ = getattr(cls, name).__doc__
        setattr(cls, name, staticmethod(function) if static else function)

    def first_use(name: str) -> Any:
        def method(*args: Any) -> Any:
            if not made:  # else somebody kept this method
                made.update(make())
                for one in names:
                    put(one, made[one])
            return made[name](*args)

        return method

    for name in names:
        put(name, first_use(name))
