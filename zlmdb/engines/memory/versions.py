"""The last commit, the readers of it and of older ones, and the one writer of the next.

How a snapshot stays one: the writer changes records in place and logs how to undo each change, unless a reader holds
them; then it changes a copy. A reader that begins meanwhile is given a copy with the log undone. So a keyspace is
copied at most once in a write transaction, and only when readers and the writer overlap.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import Any, Optional

from ... import errors, locks
from ...namedtuples import NamedTuple
from .records import FORKED, KeyspaceHandle, Records, Spaces, stamps


class Writer:
    """What the open write transaction has done: enough to publish it, or to take back all after a mark."""

    __slots__ = ("id", "in_place", "log", "spaces", "stamp", "thread", "txn")

    def __init__(self, ident: int, spaces: Spaces, txn: Any) -> None:
        self.id = ident
        self.txn = weakref.ref(txn)
        self.spaces = spaces
        self.thread = threading.get_ident()
        self.stamp = next(stamps)
        # Each entry: records, key and the value before; or None, a keyspace and the records before.
        self.log: list[tuple[Optional[Records], Any, Any]] = []
        self.in_place: list[tuple[KeyspaceHandle, Records]] = []  # what changes while it is the last commit's

    def set(self, records: Records, key: bytes, value: Optional[bytes]) -> None:
        """Store a record, or delete it when *value* is None."""
        self.log.append((records, key, records.values.get(key)))
        records.set(key, value)

    def replace(self, db: KeyspaceHandle, fresh: bool) -> None:
        """Put empty records, or with *fresh* false nothing, in the place of *db*'s."""
        self.log.append((None, db, self.spaces.get(db)))
        if fresh:
            records = self.spaces[db] = Records({}, (), size=0, stamp=next(stamps), born=self.id)
            records.owner = self.stamp
        else:
            self.spaces.pop(db, None)

    def own(self, db: KeyspaceHandle, newest_reader: int) -> Records:
        """The records of *db*, to change: themselves if no reader holds them, else a copy."""
        records = self.spaces[db]
        if newest_reader >= records.born:
            records = self.spaces[db] = records.copy(self.id)
        else:
            self.in_place.append((db, records))
            records.born = self.id
        records.owner = self.stamp
        return records

    def undo(self, mark: int) -> None:
        """Take back all that came after *mark*, a length of the log."""
        # An entry leaves the log after it is undone: interrupted, it can be undone again.
        while len(self.log) > mark:
            records, key, old = self.log[-1]
            if records is not None:
                records.set(key, old)
            elif old is not None:
                self.spaces[key] = old
            else:
                self.spaces.pop(key, None)
            self.log.pop()

    def without_changes(self, records: Records, last: int) -> Records:
        """A copy of *records* as the transaction found them."""
        clean = records.copy(last)
        for changed, key, old in reversed(self.log):
            if changed is records:
                clean.set(key, old)
        return clean


class State(NamedTuple):
    """The last commit and its number, and the writer of the next: a commit replaces all of it in one step."""

    committed: Spaces
    last_id: int
    writer: Optional[Writer]


class Versions:
    """The shared state of an environment. `lock` guards all of it and every change to records.

    An interrupt can come between any two instructions. So ending a transaction can be repeated, and a transaction that
    was only partly begun can be ended.
    """

    def __init__(self) -> None:
        self.lock = locks.lock()
        self.main = KeyspaceHandle(None)
        empty = Spaces({self.main: Records({}, (), size=0, stamp=next(stamps), born=0)})
        self._state = State(empty, 0, None)
        self.is_open = True
        self._readers: dict[int, int] = {}  # by token: the number of the snapshot
        self._begun: dict[int, weakref.ref[Any]] = {}  # by token: every open transaction but children
        self._abandoned: deque[tuple[int, Optional[Writer]]] = deque()
        self._writer_ended = locks.condition(self.lock)

    @property
    def committed(self) -> Spaces:
        """What the last commit left."""
        return self._state.committed

    @property
    def writer(self) -> Optional[Writer]:
        """The open write transaction."""
        return self._state.writer

    def check_open(self) -> None:
        """Raise `DatabaseClosed` unless the environment is open."""
        if not self.is_open:
            raise errors.DatabaseClosed("the in-memory environment is closed")

    def read(self, token: int, txn: Any) -> tuple[int, Spaces]:
        """The number and the contents of the last commit, kept as they are until the end of *token*."""
        with self.lock:
            self._bury()
            self.check_open()
            committed, last_id, writer = self._state
            if writer is not None and writer.in_place:
                clean = {db: writer.without_changes(records, last_id) for db, records in writer.in_place}
                committed = Spaces({**committed, **clean})
                self._state = State(committed, last_id, writer)
                writer.in_place.clear()
            self._readers[token] = last_id
            self._begun[token] = weakref.ref(txn)
            return last_id, committed

    def write(self, token: int, txn: Any) -> Writer:
        """Become the writer, when the present one has ended; *txn* has what it writes with before it does."""
        with self.lock:
            self._bury()
            self.check_open()
            while self.writer is not None:
                if self.writer.thread == threading.get_ident():
                    other = self.writer.txn()
                    if other is None or not other.has_begun:  # an interrupt came before anybody had it
                        self._end(0, self.writer, keep=False)
                        continue
                    raise errors.NestedTransaction(
                        "this thread has a write transaction open already, and would wait for itself forever: use a "
                        "savepoint"
                    )
                # The time limit is for a writer that was collected just now: its notice may have come too early.
                self._writer_ended.wait(1.0)
                self._bury()
                self.check_open()
            committed, last_id, _ = self._state
            writer = txn.writer = Writer(last_id + 1, Spaces(committed), txn)
            self._begun[token] = weakref.ref(txn)
            self._state = State(committed, last_id, writer)
            return writer

    def own(self, writer: Writer, db: KeyspaceHandle, records: Records) -> Records:
        """The records of *db* for *writer* to change; under the lock."""
        if records.owner == writer.stamp:
            return records
        return writer.own(db, max(self._readers.values(), default=-1))

    def end(self, token: int, writer: Optional[Writer], keep: bool) -> None:
        """End the transaction of *token*, with *keep* publishing what its *writer* did."""
        with self.lock:
            self._end(token, writer, keep)

    def _end(self, token: int, writer: Optional[Writer], keep: bool) -> None:
        committed, last_id, present = self._state
        if writer is not None and writer is present:
            if keep and writer.log:
                self._state = State(writer.spaces, writer.id, None)
            else:
                if writer.in_place:
                    writer.undo(0)
                    for _, records in writer.in_place:
                        records.born = last_id
                self._state = State(committed, last_id, None)
        if writer is not None:
            self._writer_ended.notify_all()
        self._readers.pop(token, None)
        self._begun.pop(token, None)

    def abandon(self, token: int, writer: Optional[Writer]) -> None:
        """End a transaction from its finaliser.

        That may run anywhere, also in the middle of the steps above in the thread that holds the lock: then the next
        transaction that begins does the rest.
        """
        self._abandoned.append((token, writer))
        locked: list[bool] = []
        try:
            locked.extend(map(self.lock.acquire, (False,)))  # in one step: no interrupt finds it locked by nobody
            if locked[0]:
                self._bury()
        finally:
            if True in locked:  # without a call, after which an interrupt could come
                self.lock.release()

    def _bury(self) -> None:
        while self._abandoned:
            token, writer = self._abandoned[0]
            self._end(token, writer, keep=False)
            self._abandoned.popleft()  # now that it has ended: an interrupt may have come

    def reader_count(self) -> int:
        """How many read transactions are open."""
        return len(self._readers)

    def in_child(self) -> None:
        """Be the last commit only, in a forked process: the transactions, and the threads behind them, are not here."""
        self.lock = locks.lock()
        self._writer_ended = locks.condition(self.lock)
        for txn in [ref() for ref in self._begun.values()]:
            while txn is not None:
                txn.spaces = FORKED
                txn = txn.child
        self._readers.clear()
        self._begun.clear()
        self._abandoned.clear()
        if self.writer is not None:
            for _, records in self.writer.in_place:
                records.mend()  # a thread may have been in the middle of a change
            with self.lock:
                self._end(0, self.writer, keep=False)

    def close(self) -> None:
        """Abort every open transaction and forget all records."""
        with self.lock:
            self.is_open = False
            begun = [ref() for ref in self._begun.values()]
        for txn in begun:
            if txn is not None:
                txn.abort()
        with self.lock:
            self._state = self._state._replace(committed=Spaces())
            self._writer_ended.notify_all()
