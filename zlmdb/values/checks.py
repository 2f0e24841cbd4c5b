"""The source of functions that check values: one flat function for a type, as checks are what writing costs most.

Each shape adds the lines for itself (`Shape.test`). Only what is common is spelled out there; whatever does not pass
at once is left to its ``fits``, which has the last word. Measured on CPython 3.11: a test in a loop takes 15 ns an
item, what runs in C, such as ``set(map(type, x))``, 15 to 25; names in parameters with defaults are found no faster.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Callable

DEEPEST = 4
"""Loops within one another in one function; the next is left to ``fits``."""


def globals_of(names: dict[str, Any]) -> dict[str, Any]:
    """*names* as the globals of generated source: those of a module, as PyPy takes long over any other dict's."""
    space = vars(ModuleType("generated"))
    space.update(names)
    return space


class Check:
    """A function that is being written: ``check(value)`` returns *no* at the first test that fails, *yes* in the end.

    Both are expressions, of ``value`` and *names*.
    """

    def __init__(self, no: str, names: dict[str, Any]) -> None:
        self.no = no
        self.names = names
        self.lines: list[str] = []
        self.loops = 0
        self._indent = "    "
        self._count = 0

    def variable(self) -> str:
        """A name that nothing has yet."""
        self._count += 1
        return f"x{self._count}"

    def constant(self, thing: Any) -> str:
        """The name of *thing* in the function."""
        name = self.variable()
        self.names[name] = thing
        return name

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append(self._indent + text)

    @contextmanager
    def block(self, head: str) -> Generator[None, None, None]:
        """Lines below *head*."""
        self.line(head)
        self._indent += "    "
        yield
        self._indent = self._indent[4:]

    @contextmanager
    def loop(self, head: str) -> Generator[None, None, None]:
        """Lines below *head*, a ``for``."""
        self.loops += 1
        with self.block(head):
            yield
        self.loops -= 1

    def refuse_if(self, test: str) -> None:
        """Return *no* where *test* is true."""
        self.line(f"if {test}: return {self.no}")

    def otherwise(self, fits: Callable[[Any], bool], x: str) -> None:
        """After a block: return *no* where its test fails and *x* does not fit either."""
        self.line(f"elif not {self.constant(fits)}({x}): return {self.no}")

    def made(self, yes: str, label: str) -> Callable[[Any], Any]:
        """The function."""
        space = globals_of(self.names)
        source = "\n".join(["def check(value):", *self.lines, f"    return {yes}"])
        exec(compile(source, f"<check of {label}>", "exec"), space)
        check: Callable[[Any], Any] = space["check"]
        return check
