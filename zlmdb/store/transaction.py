"""A transaction: all changes of its block are stored together, or none."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from operator import methodcaller
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Optional

from .. import errors
from ..handlers import let_through
from ..locks import monotonic as _clock
from ..locks import undisturbed
from ..log import log
from ..missingattributes import has_no, say_more, tell
from ..shown import shown_path
from .access import lock_of
from .blocks import COUNTS_REFERENCES, BlockExit
from .holds import Hold
from .rawrecords import RawRecords
from .results import called_after
from .store import Store
from .transactionend import TransactionEnd
from .transactionstate import needs_room, poisoned

_get_ident = threading.get_ident
_NONE, _WRITE = (None,), (True,)
_COMMIT = methodcaller("commit")
_getframe = sys._getframe  # it has no other name


def _join(hold: Hold, timeout: Optional[float]) -> Any:
    """Wait for a turn in a group. None where there is none, or the transaction did not begin with a block."""
    txn: Any = hold.holder()
    if txn is None or not txn._in_with:
        return None
    store: Store = txn._store
    del txn
    if not store.shares_commits:
        return None
    turns = store.turns
    if turns is None:
        from .blockgroups import Turns  # late: a program with one writer does not need it

        # Several threads may come here at once.
        turns = store.__dict__.setdefault("turns", Turns(store, partial(Transaction, store, True)))
    return turns.join(hold, timeout)


class Transaction(TransactionEnd, RawRecords):
    """A block that commits or aborts: ``with db.begin(write=True) as txn: ...``.

    The transaction begins with the block. The end of the block commits it, an exception aborts it; `commit` and `abort`
    end it earlier. A write transaction belongs to the thread that began it. After its end, its tables, views and
    selections raise `TransactionClosed`. Tables see the transaction's own writes immediately.
    """

    __slots__ = ()

    PUT, DEL = 1, 2  # for programs of zlmdb <= 26
    _join = staticmethod(_join)
    _brief = False  # whether it lasts for one operation only, so that nobody can forget it

    # -- begin and end --------------------------------------------------------------------------------------------

    def begin(self) -> Transaction:
        """Begin, as ``with`` does. Raises `ReadonlyDatabase`, `NestedTransaction`, `WriterTimeout`."""
        if self._raw is not None:
            raise errors.DatabaseInUse(f"{self!r} has begun already: use a new transaction, or txn.savepoint()")
        # Not the line itself, which takes longer to find than a transaction to begin: see `holds.origin`.
        try:
            caller = _getframe(2)  # of the with statement
        except ValueError:  # called from C, by no function of Python
            caller = _getframe(1)
        self._opener, self._instruction = caller.f_code, caller.f_lasti
        try:
            self._begin()
            return self
        except BaseException:  # an interrupt may have come when it had begun
            self._clear_begun()
            raise

    def _begin(self) -> None:
        # When `__enter__` was called by hand, there is no end but the call of `__exit__`.
        self._in_with = self._block is not None
        self._since = now = _clock()  # before it looks for the environment, since `Store.suspend` asks who has begun
        self._thread = _get_ident()
        store = self._store
        try:
            if self._write:
                self._begin_write(store)
            else:
                sequence = store.sequence
                if now < store.quiet.reads and not self._buffers and store.env is not None:
                    try:
                        self._raw = store.env.begin()
                    except Exception as error:  # what follows mends what can be mended
                        let_through(error)
                if self._raw is None:
                    self._odd = True  # it goes through a gate, if there is one
                    sequence, self._raw = store.begin_read(self, self._buffers)
                if sequence != self._sequence:
                    self._forget_handles(sequence)
        except BaseException as error:
            self._clear()
            if isinstance(error, Exception):
                store.fail(error)
            raise
        if now >= (store.quiet.writes if self._write else store.quiet.reads):
            if now >= store.ages.look_at:
                store.look_at_reads(now)
            store.look_around()

    def _forget_handles(self, sequence: int) -> None:
        """The handles now are those of *sequence*; tables that were bound before have other handles."""
        began_before, self._sequence = self._sequence >= 0, sequence
        if began_before and self._unit is not None:
            self._let_go()
            self._part_with_tables(free=True)

    def _begin_write(self, store: Store) -> None:
        if store.readonly or self._hold is None:
            store.refuse_write()
        self._puts = self._dels = 0
        if store.wanted or store.pending:
            unit = self._unit
            # Of which another thread may make more meanwhile.
            storages = [] if unit is None else list(unit.storages.values())
            store.open_wanted(self._timeout, [one for _, one in storages])
        self._turn = turn = store.writer.acquire(self._timeout, self._hold)
        self._since = now = _clock()  # it may have waited
        if turn is not None:
            self._odd = True
            begin = partial(store.environment.begin, parent=turn.leader._raw, write=True, buffers=self._buffers)
            with undisturbed:
                self._held.extend(map(begin, _NONE))
        else:
            if store.full:
                store.make_room()
            if now >= store.look_at:
                store.look_at_file(now, self._timeout)
            if store.gate is None and not store.provisional:
                self._begin_engine(store)
            else:
                self._odd = True
                store.begin(write=True, buffers=self._buffers, who=self, held=self._held)
        self._raw = raw = self._held[-1]
        if store.sequence != self._sequence:  # another writer made tables, or the environment was opened anew
            self._forget_handles(store.sequence)
        self._era: Optional[int] = store.era_to_write(raw)
        self._owner = lock_of(self._thread)
        if self._tables:
            self._aim_tables()
        elif self._unit is not None and self._unit.tables:
            self._part_with_tables()

    def _begin_engine(self, store: Store) -> None:
        """Begin a write of the engine, where no gate is in the way."""
        env: Any = store.env
        held = self._held
        try:
            if COUNTS_REFERENCES:  # an interrupt that comes in between drops it, which aborts it
                held.append(env.begin(None, None, True, self._buffers))
            else:  # appended in the very call that begins it
                with undisturbed:
                    held.extend(map(env.begin, _NONE, _NONE, _WRITE, (self._buffers,)))
        except Exception as error:  # also where there is no environment: it mends what can be mended
            let_through(error)
            self._odd = True
            store.begin(write=True, buffers=self._buffers, who=self, held=held)

    def commit(self) -> None:
        """Store all changes and end. Raises `TransactionPoisoned` if an engine error broke the transaction."""
        raw = self._raw
        if raw is None or self._outer or (self._write and _get_ident() != self._thread):
            raw = self._check_end("commit")
        if self._error is not None:
            error = self._error
            del raw  # see `_roll_back`
            self.abort()
            raise poisoned(error)
        if self._deferred is not None:
            try:
                self._check_deferred()
            except BaseException:
                self.abort()
                raise
        try:
            if self._puts and self._store.limited:
                self._require_room(raw)
            if self._turn is not None:
                self._merge_turn(raw)
            else:
                if (self._puts or self._dels) and self._era is not None:
                    self._store.goes_on()
                if self._told is None:
                    raw.commit()
                else:
                    with undisturbed:  # else a signal could come between the commit and what is told
                        self._told.extend(map(_COMMIT, (raw,)))
        except BaseException as error:  # also what a signal raises when it came while the disk was at work
            self._commit_failed(raw, error)
        if self._turn is not None:
            self._await_group()
        hooks = self._hooks
        if hooks:
            self._hooks = []
        self._end()
        if hooks:
            committed(hooks)

    def _require_room(self, raw: Any) -> None:
        """Raise `DatabaseFull` where what is stored here takes the room that is kept for deletions."""
        store, turn = self._store, self._turn
        if _clock() >= store.quiet.roomy:
            store.require_room(raw, self._sequence, {}, self._since if turn is None else turn.leader._since)

    def _check_deferred(self) -> None:
        """Check what was put off until the commit, or until the end of a function of a group."""
        noted, self._deferred = self._deferred or (), None
        for link, own in noted:
            link.check_deferred(self, own)

    def _merge_turn(self, raw: Any) -> None:
        """As a member of a group: hand the changes to its transaction."""
        leader = self._turn.leader
        if self._era is None:
            leader._era = None  # first: what others know of the catalogue may not hold any more
        self._pause()
        raw.commit()
        leader._puts += self._puts
        leader._dels += self._dels

    def _await_group(self) -> None:
        """Let the next member write, and wait until the group is stored."""
        try:
            failed = self._turn.outcome()
        except BaseException:  # it is stored, or will be, or not: nobody waits to see
            self._hooks.clear()
            self._end()
            raise
        if failed is not None:
            self._forget()
            self._end()
            raise failed

    def _commit_failed(self, raw: Any, error: BaseException) -> NoReturn:
        if self._write:
            self._store.new_era()
        if isinstance(error, Exception):
            self._forget()
            ours = self._store.engine.translate(error)
            self._store.full = needs_room(ours)
            with suppress(Exception):  # it has ended, unless the error is ours
                raw.abort()
            self._end()
            errors.raise_as(ours, error)
        self._hooks.clear()
        try:
            with suppress(Exception):  # it may have been committed
                raw.abort()
        finally:
            self._end()
        raise error

    def after_commit(self, fn: Callable[[], object], /) -> None:
        """Call *fn* after this transaction is stored, in the order of the calls; never if it is aborted.

        The function runs at the end of the block, after the writer lock is released, so it may begin a transaction. A
        function given inside a savepoint that is undone does not run. All functions run even if one raises; the first
        exception then leaves the block, and all changes are stored nevertheless.

        Raises `ReadonlyDatabase` in a read transaction, and TypeError for a function with ``async`` or ``yield`` in it,
        whose body nobody would run.
        """
        self._check_write()
        self._hook(called_after(fn))

    def abort(self) -> None:
        """Undo all changes and end. Does nothing if the transaction has ended."""
        if self._raw is not None:
            self._check_end("abort")
            self._abort()

    def _abort(self, wait: bool = True) -> None:
        # What a member of a group has read may come from others of it: what it does then waits for them, too.
        self._forget()
        turn = self._turn
        try:
            self._roll_back()
            self._end()
        except BaseException:  # such as an interrupt, before it was rolled back
            self._clear()
            raise
        if turn is not None and wait:
            failed = turn.outcome()
            if failed is not None:
                raise failed

    def _check_end(self, verb: str) -> Any:
        if self._raw is None:
            self._check_forked()
            raise errors.TransactionClosed(f"{verb}: the transaction is not open")
        if self._outer:
            raise errors.DatabaseInUse(f"{verb}: leave the savepoint inside this transaction first")
        if self._write:
            self._check_thread()
        return self._raw

    def __enter__(self) -> Transaction:
        return self.begin()

    if TYPE_CHECKING:

        def __exit__(
            self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
        ) -> None: ...

    else:
        __exit__ = _exit_of_schema = BlockExit()

    def _leave(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        """The end of the ``with`` block."""
        raw = self._raw
        if raw is None:
            self._block = None
        elif kind is not None or self._outer:
            del raw  # see `_roll_back`
            tables = list(self._tables.values())
            self._leave_badly(kind)
            say_more(error, tables)
        elif self._write or self._error is not None or self._hooks:
            self.commit()
        else:
            try:
                raw.abort()
            except BaseException as failure:
                self._commit_failed(raw, failure)
            self._end()

    def _leave_badly(self, kind: Optional[type[BaseException]]) -> None:
        """The end of a block by an exception, or inside a savepoint."""
        left_open = self._leave_savepoints()
        if self._turn is not None and kind is not None and not issubclass(kind, Exception):
            self._check_end("abort")
            self._abort(wait=False)
        else:
            self.abort()
        if kind is None and left_open:
            raise errors.DatabaseInUse("the block ended inside a savepoint that was never left: nothing was stored")

    def __reduce_ex__(self, protocol: Any) -> Any:  # a copy would abort it
        raise TypeError(f"{self!r} is neither copied nor pickled: begin another one")

    def __repr__(self) -> str:
        state = "open" if self._raw is not None else "about to begin" if self.active else "not open"
        path, kind = self._store.engine.path, "write" if self._write else "read"
        return f"<{kind} transaction {'' if path is None else 'of '}{shown_path(path)}, {state}>"


def committed(hooks: Sequence[Callable[[bool], object]]) -> None:
    """Call the *hooks* of a stored transaction; all of them, even if one raises."""
    failed: Optional[Exception] = None
    for hook in hooks:
        try:
            hook(True)
        except Exception as error:  # what is stored is stored: the others are told so, too
            if failed is not None:
                log.exception("another hook failed after the commit")
            failed = failed or error
    if failed is not None:
        raise failed


_OTHERWISE = {
    "begin_nested": "write `with t.txn.savepoint():`",
    "close": "the end of its block ends it, and so do .commit() and .abort()",
    "rollback": "write .abort(), which undoes all changes; an exception that leaves the block does so, too",
}
"""Methods that the transactions of others have."""


def _of_transaction(txn: object, name: str) -> str:
    """What to write for *name*; empty for a name that nobody has."""
    return has_no(txn, name, _OTHERWISE[name]) if name in _OTHERWISE else ""


tell(Transaction, _OTHERWISE, _of_transaction)
