"""Another process that has the file of a history open while the history goes on, with declarations of its own.

It is a program of an earlier release, or one whose classes lack indexes, links, feeds and expiry of the file. What it
writes must be refused, or be as if the history had written it.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Optional, Union

import zlmdb

from .command import forked
from .queries import Question
from .releases import Release
from .statements import Program, Statement

DECLARATIONS = (zlmdb.SchemaMismatch, zlmdb.IndexNotAttached, zlmdb.IndexNotBuilt)
"""What a program meets whose declarations are not those of the file."""
RULES = (zlmdb.DuplicateKey, zlmdb.DanglingLink, zlmdb.StillLinked, KeyError)
"""What a program meets that does what the rules refuse."""


class Answer(NamedTuple):
    """What came of a statement, or of reading a table: a value, or that it was refused and by what."""

    value: Any = None
    refused: str = ""
    """``"declarations"``, ``"rules"``, or nothing."""
    text: str = ""


Order = Union[str, Question, list[Statement]]
"""The id of a table to read; a query; or statements to carry out in one transaction.

The value for the last are the answers of each of them, and of the commit.
"""


class Visitor:
    """Another process with the file at *path* open, as *release* declares it."""

    def __init__(self, path: Path, release: Release) -> None:
        self.release, self.program = release, Program(release)
        down, up = os.pipe(), os.pipe()
        self._pid = forked(_visit, path, release, (down[0], up[1]), (down[1], up[0]))
        os.close(down[0])
        os.close(up[1])
        self._orders, self._answers = os.fdopen(down[1], "wb"), os.fdopen(up[0], "rb")
        self.opened: Answer = pickle.load(self._answers)

    def ask(self, order: Order, now: float) -> Answer:
        """Let it carry out *order* at the time *now*."""
        pickle.dump((order, now), self._orders)
        self._orders.flush()
        answer: Answer = pickle.load(self._answers)
        return answer

    def end(self) -> None:
        """Let it close the file, and wait for its end."""
        pickle.dump((None, 0.0), self._orders)  # to close the pipe does not suffice: later visitors have its end, too
        self._orders.close()
        self._answers.close()
        if os.waitpid(self._pid, 0)[1] != 0:
            raise AssertionError("another process failed: its traceback is above")


def _visit(path: Path, release: Release, own: tuple[int, int], other: tuple[int, int]) -> None:
    for one in other:
        os.close(one)
    with os.fdopen(own[0], "rb") as orders, os.fdopen(own[1], "wb") as answers:
        program = _OtherProgram(release)
        work: Callable[[], Any] = partial(program.open, path)
        while True:
            pickle.dump(_answer(work), answers)
            answers.flush()
            try:
                order, program.now = pickle.load(orders)
            except EOFError:  # the history failed
                break
            if order is None:
                break
            work = partial(program.carry_out, order)
        program.close()
    os._exit(0)


class _OtherProgram:
    """In the other process: the database, and what it is told to do."""

    db: Optional[zlmdb.Database[Any]] = None
    now = 0.0

    def __init__(self, release: Release) -> None:
        self.program = Program(release)

    def open(self, path: Path) -> None:
        self.db = zlmdb.open(path, self.program.schema, durability="none")
        self.db.clock = lambda: self.now

    def close(self) -> None:
        if self.db is not None:
            self.db.close()

    def carry_out(self, order: Order) -> Any:
        db: Any = self.db
        if isinstance(order, str):
            with db.read() as t:
                return {key: self.program.known(order, value) for key, value in getattr(t, order).items()}
        if isinstance(order, Question):
            with db.read() as t:
                return order.ask(t)
        answers: list[Answer] = []

        def block() -> None:
            with db.write() as t:
                answers.extend(_answer(partial(self.whole, t, one)) for one in order)

        stored = _answer(block)
        return [*answers, stored]

    def whole(self, t: Any, one: Statement) -> Any:
        """The statement, of which nothing is left if it is refused."""
        with t.txn.savepoint():
            return self.program.perform(t, one)


def _answer(work: Callable[[], Any]) -> Answer:
    try:
        return Answer(work())
    except DECLARATIONS as error:
        return Answer(None, "declarations", f"{type(error).__name__}: {error}")
    except RULES as error:
        return Answer(None, "rules", f"{type(error).__name__}: {error}")
