"""Blocks inside a write transaction that can be undone alone: transactions of the engine inside its transaction."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import errors
from ..locks import undisturbed
from .access import CLOSED
from .transactionstate import TransactionState

if TYPE_CHECKING:
    from typing_extensions import Self


class Savepoints(TransactionState):
    """The part of a `Transaction` that has savepoints."""

    __slots__ = ()

    @contextmanager
    def savepoint(self) -> Generator[Self, None, None]:
        """A block inside this write transaction: an exception undoes only this block, and then continues upwards.

        Savepoints can be nested. Running iterations continue after the block in which they were. Raises
        `NestedTransaction` if the engine has no savepoints: with ``writemap=True``. The transaction then continues.
        """
        parent = self._engine_txn
        self._check_write()
        if not self._store.engine.nests:
            raise errors.NestedTransaction(
                "there are no savepoints with writemap=True, because LMDB has no nested transactions there: use a "
                "transaction of its own, or open the database without writemap",
                path=self._store.engine.path,
            )
        self._pause()
        children: list[Any] = []
        noted = 0 if self._scans is None else len(self._scans.journal)
        counts = self._puts, self._dels, len(self._hooks), noted
        try:
            self._enter_savepoint(parent, children)
            yield self
            if self._raw is children[0] and self._error is None:
                self._merge(children[0])
            else:
                self._leave_savepoint(parent, children, counts)
        except BaseException as error:
            if children and parent not in self._outer and not isinstance(error, GeneratorExit):
                self._poison(error)  # it was merged, and says that it failed
            self._leave_savepoint(parent, children, counts)
            del parent  # the traceback keeps this frame: see `TransactionEnd._roll_back`
            raise

    def _enter_savepoint(self, parent: Any, children: list[Any]) -> None:
        try:  # the very call that begins it appends it, so that no interrupt can come in between
            begin = partial(self._store.environment.begin, parent=parent, write=True, buffers=self._buffers)
            with undisturbed:
                children.extend(map(begin, (None,)))
        except BaseException as error:
            if isinstance(error, Exception):
                self._fail(error)
            self._poison(error)  # an engine in Python may have begun it
            raise
        self._odd = True
        self._outer.append(parent)
        self._switch(children[0])

    def _merge(self, child: Any) -> None:
        self._pause()
        try:
            child.commit()
            self._switch(self._outer[-1])
            self._outer.pop()
        except BaseException as error:  # such as what a signal raises, after which nobody knows whether it is merged
            self._poison(error)
            if isinstance(error, Exception):
                self._fail(error)
            raise

    def _leave_savepoint(self, parent: Any, children: list[Any], counts: tuple[int, int, int, int]) -> None:
        """Undo the savepoint, unless it was merged or the transaction has ended. Calling this twice is allowed."""
        inside = parent in self._outer
        if self._raw is None or not (children or inside):
            return
        if inside:
            self._pause()
            self._raw = parent
            for table in self._tables.values():
                table._release(CLOSED)
        if children:
            self._store.engine.abort(children)
        if inside:
            self._undo(counts)
            self._switch(parent)
            self._outer.pop()

    def _pause(self) -> None:
        """Close the cursors of scans, which live in one savepoint only; scans continue with new ones."""
        if self._scans is not None:
            self._scans.pause()

    @contextmanager
    def _statement(self) -> Generator[None, None, None]:
        """A block that is undone completely if it raises; if the engine cannot undo it, the transaction is undone."""
        if self._store.engine.nests:
            with self.savepoint():
                yield
            return
        try:
            yield
        except BaseException as error:  # such as a KeyboardInterrupt
            self._poison(error)
            raise

    def _switch(self, raw: Any) -> None:
        self._raw = raw
        for table in self._tables.values():
            table._use(raw)

    def _undo(self, counts: tuple[int, int, int, int]) -> None:
        stats = self._stats
        if stats is not None:
            stats.puts = max(0, stats.puts + counts[0] - self._puts)  # they may have been reset meanwhile
            stats.dels = max(0, stats.dels + counts[1] - self._dels)
        self._puts, self._dels, hooks, noted = counts
        if self._scans is not None:
            self._scans.undo(noted)
        for hook in self._hooks[hooks:]:
            hook(False)
        del self._hooks[hooks:]

    def _leave_savepoints(self) -> int:
        """Abort the open savepoints, the innermost first; returns their number."""
        count = len(self._outer)
        while self._outer:
            self._raw.abort()
            self._raw = self._outer.pop()
        return count
