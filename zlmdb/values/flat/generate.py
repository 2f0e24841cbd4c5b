"""Generated Python: lines that become functions, with a file name that tracebacks can show.

Two underscores stand between what a generated function is for and the name of the type it is of, ``read__User``. No
other names have two, so that a class may be called ``root`` or ``texts``.
"""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_numbers = itertools.count(1)


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
        """What is added inside is the block of *head*."""
        self.add(head)
        self.depth += 1
        yield
        self.depth -= 1

    def run(self, title: str, names: Mapping[str, Any], part: str = "flatbuffers") -> dict[str, Any]:
        """What the lines define, run with *names*. *part* of zlmdb and *title* are in the name of the made-up file."""
        text = "\n".join(self.lines) + "\n"
        filename = f"<zlmdb {part}: {title}, {next(_numbers)}>"
        # Without a time stamp: `linecache` keeps such an entry for good.
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
        # The namespace of a module: PyPy takes its names for constants.
        space = vars(ModuleType(filename))
        space.update(names)
        exec(compile(text, filename, "exec"), space)
        return space
