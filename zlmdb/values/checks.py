"""Generates the source of functions that check values: one flat function for each type.

Checks take most of the time of a write. Each shape adds its own lines (`Shape.test`). The lines handle only common
values; a value that does not pass at once is left to the shape's ``fits``, which decides. Measured on CPython 3.11: a
test in a loop takes 15 ns an item, a test in C, such as ``set(map(type, x))``, 15 to 25; names in parameters with
defaults are found no faster.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Callable

from ..codegen import Recipe, Source

CHECKS = Recipe("check")

DEEPEST = 4
"""Loops within one another in one function; the next is left to ``fits``."""


class Check(Source):
    """A function that is being written: ``check(value)`` returns *no* at the first test that fails, *yes* in the end.

    Both are expressions, of ``value`` and *names*.
    """

    def __init__(self, no: str, names: dict[str, Any]) -> None:
        super().__init__()
        self.depth = 1
        self.no = no
        self.names = names
        self.loops = 0
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

    def general(self, fits: Callable[[Any], bool]) -> str:
        """The name of *fits*, which has the last word on what is not common."""
        name = f"general_{self.variable()}"
        self.names[name] = fits
        return name

    @contextmanager
    def block(self, head: str) -> Generator[None, None, None]:
        """Lines below *head*, or "pass" where nothing is added."""
        with super().block(head):
            before = len(self.lines)
            yield
            if len(self.lines) == before:
                self.add("pass")

    @contextmanager
    def loop(self, head: str) -> Generator[None, None, None]:
        """Lines below *head*, a ``for``."""
        self.loops += 1
        with self.block(head):
            yield
        self.loops -= 1

    def refuse_if(self, test: str) -> None:
        """Return *no* where *test* is true."""
        self.add(f"if {test}: return {self.no}")

    def otherwise(self, fits: Callable[[Any], bool], x: str) -> None:
        """After a block: return *no* where its test fails and *x* does not fit either."""
        self.add(f"elif not {self.general(fits)}({x}): return {self.no}")

    def made(self, yes: str, label: str, recipe: Recipe = CHECKS) -> Callable[[Any], Any]:
        """The function, for a type that is written *label*."""
        self.add(f"return {yes}")
        return recipe.functions(label, f"def check(value):\n{self}", self.names)["check"]
