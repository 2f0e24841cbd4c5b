"""Breakpoints of debuggers. A function with one in it is called for each record, so that it stops with records.

Where it is followed it would stop with recorders in place of them, and then not any more.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any

from ...handlers import let_through
from ...namedtuples import NamedTuple


class _Breakpoint(NamedTuple):
    """A line where a debugger stops, and the *texts* of its condition and of what it logs."""

    file: str
    line: int
    texts: tuple[Any, ...]


def stops_in(*codes: CodeType) -> bool:
    """Whether a debugger has a breakpoint in one of *codes*, those of functions.

    One in the line of a statement with a lambda is in the statement, unless it speaks of what the lambda is given.
    """
    if "pydevd" not in sys.modules and "bdb" not in sys.modules:
        return False
    try:
        return any([
            _stops(one, code) for one in _breakpoints() for code in codes if _is_file(one.file, code.co_filename)
        ])  # fmt: skip
    except Exception as error:  # of another version of the debugger
        let_through(error)
        return False


def _breakpoints() -> Iterator[_Breakpoint]:
    """Those of pdb, and of debugpy and PyCharm."""
    bdb, pydevd = sys.modules.get("bdb"), sys.modules.get("pydevd")
    listed: Any = getattr(getattr(bdb, "Breakpoint", None), "bplist", {})
    for (file, line), several in list(listed.items()):
        for one in several:
            if one.enabled:
                yield _Breakpoint(file, line, (one.cond,))
    debugger: Any = getattr(pydevd, "get_global_debugger", lambda: None)()
    for file, by_line in list(getattr(debugger, "breakpoints", {}).items()):
        for line, one in list(by_line.items()):
            yield _Breakpoint(file, line, (getattr(one, "condition", None), getattr(one, "expression", None)))


def _is_file(file: str, other: str) -> bool:
    if os.path.basename(file).lower() != os.path.basename(other).lower():
        return False
    return os.path.normcase(os.path.realpath(file)) == os.path.normcase(os.path.realpath(other))


def _stops(one: _Breakpoint, code: CodeType) -> bool:
    import dis  # late: where nothing is debugged, nobody needs them
    import linecache

    from .code import nested

    if not any([one.line == line for part in nested(code) for _, line in dis.findlinestarts(part)]):
        return False
    if code.co_name != "<lambda>" or one.line != code.co_firstlineno:
        return True
    given = {*code.co_varnames[: code.co_argcount]}
    spoken = {word for text in one.texts if text for word in re.findall(r"\w+", str(text))}
    return not given.isdisjoint(spoken) or linecache.getline(code.co_filename, one.line).lstrip().startswith("lambda")
