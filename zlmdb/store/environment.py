"""The environment of an engine, which all databases of this process on one file share.

It is opened, suspended while its file is replaced, moved when its memory map grows, opened anew in a forked child, and
closed. Transactions of the engine begin here, because one that fails to begin may need any of this.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, NoReturn, Optional

from .. import errors, locks
from ..engines import Engine, Environment, Handle, Transaction
from ..locks import monotonic
from ..log import log
from ..namedtuples import NamedTuple
from ..shown import shown_path
from .holds import is_stopped
from .live import LiveTransactions
from .maintenance import Maintenance, Quiet
from .readers import Ages, refuse_open
from .writerlock import Claim, WriterLock

READERS_PATIENCE = 10.0
"""Seconds that a map which has to grow waits for the open transactions of this process to end."""

_LOOK_AGAIN = 0.1  # seconds between two looks at an open file: so long a reader that was killed makes it grow
_TRY_AGAIN = 0.005  # seconds between two tries to open for good what was opened read-only
_ATTEMPTS = 100  # to begin, each time after another process has made the file larger


class Space(NamedTuple):
    """A keyspace ready for use: the engine's handle, and the count of handles when it was published."""

    handle: Handle
    since: int


MAIN = Space(None, 0)


_MAY_BE_CLOSED = errors.TransactionClosed, errors.DiskError


class OpenEnvironment(Maintenance):
    """An open environment, with the handles of its spaces, its writer and its transactions."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.readonly = engine.options.readonly
        self.limited = engine.limited
        self.users = 0
        self.sequence = 0
        self.opening = 0  # so many times it was opened anew: the file may then be another, with other snapshots
        self.env: Optional[Environment] = None
        self.spaces: dict[bytes, Space] = {}
        self.live = LiveTransactions()
        self.reads: set[object] = set()  # a mark for each read of the store's own
        self.grown = 0  # so many times, to tell a failure from before the map grew
        self.ages = Ages()
        self._try_at = 0.0  # when to try to open it for good, before a read
        self.at_rest: Optional[Callable[[], None]] = None
        self._reset_locks()
        self._opened(engine.open())

    def _reset_locks(self) -> None:
        self._gate = None
        self.lock = locks.rlock()
        self.writer = WriterLock(self.engine.writer_lock, self.engine.file)
        self.writer.is_local = self.engine.is_local

    def _opened(self, env: Environment) -> None:
        # The same one for the same transactions: a thread may wait at it while the environment is opened anew.
        if not (self.engine.moves or self.provisional):
            self._gate = None
        elif self._gate is None:
            from .gate import Gate  # late: few maps move

            self._gate = Gate()
        self.writer.is_local = self.engine.is_local
        self._look_at = monotonic() + _LOOK_AGAIN
        self.quiet = Quiet()  # before others find the environment: there may be a gate
        self.env = env

    def fail(self, error: Exception, **details: Any) -> NoReturn:
        """Raise our error for *error* of the engine, with *details* as its attributes."""
        ours = self.engine.translate(error, **details)
        if self.users == 0 and (not isinstance(ours, errors.Error) or isinstance(ours, _MAY_BE_CLOSED)):
            ours = self._closed()  # by another thread, meanwhile, with the lock file and its map
        errors.raise_as(ours, error)

    @contextmanager
    def translated(self) -> Generator[None, None, None]:
        """A block whose errors of the engine are raised as ours."""
        try:
            yield
        except Exception as error:
            self.fail(error)

    def _closed(self) -> errors.DatabaseClosed:
        return errors.DatabaseClosed(
            f"the database {shown_path(self.engine.path)} is closed: open it again, `with zlmdb.open(...) as db:`; one "
            f"that nothing refers to any more is closed, too"
        )

    @property
    def environment(self) -> Environment:
        """The environment, opened anew in a forked child."""
        env = self.env
        return self.reopen() if env is None else env

    def refuse_write(self) -> NoReturn:
        """Raise `ReadonlyDatabase`."""
        raise errors.ReadonlyDatabase(
            f"the database {self.engine.path!r} was opened read-only: open it with readonly=False to write",
            path=self.engine.path,
        )

    # -- what the engine can do ----------------------------------------------------------------------------------------

    @property
    def shares_commits(self) -> bool:
        """Whether write blocks that wait for each other are stored by one commit."""
        return self.engine.lends and not self.provisional and self.engine.options.durability != "none"

    def require_room(
        self, txn: Transaction, sequence: int, opened: Mapping[bytes, Handle], begun: float
    ) -> None:  # fmt: skip
        """Raise `DatabaseFull` where *txn*, which began at *sequence* and has *opened* spaces, stores too much.

        *begun* is the time when it began, or the transaction around it, or earlier.
        """
        quiet, handles = self.quiet, self._handles_at(sequence, opened)
        quiet.roomy = self.engine.require_room(self.environment, txn, handles, begun)

    def _handles_at(self, sequence: int, opened: Mapping[bytes, Handle]) -> Iterator[Handle]:
        spaces = {name: space.handle for name, space in list(self.spaces.items()) if space.since <= sequence}
        yield from {**spaces, **opened}.values()

    # -- spaces --------------------------------------------------------------------------------------------------------

    def space(self, name: Optional[bytes]) -> Optional[Space]:
        """The space *name*, or None where the file does not have it."""
        return MAIN if name is None else self.spaces.get(name)

    def _publish(self, handles: dict[bytes, Handle]) -> None:
        self.sequence += 1
        for name, handle in handles.items():
            if handle is not None:
                self.spaces[name] = Space(handle, self.sequence)

    def _existing(self, env: Environment, names: Iterable[bytes]) -> dict[bytes, Handle]:
        return {name: self.engine.open_existing(env, name) for name in names}

    # -- transactions of the engine ------------------------------------------------------------------------------------

    def writing(self, timeout: Optional[float]) -> WriterBlock:
        """A block in which this thread is the writer of the file."""
        return WriterBlock(self, timeout)

    def begin(
        self, *, write: bool = False, buffers: bool = False, who: object, held: Optional[list[Transaction]] = None
    ) -> Transaction:  # fmt: skip
        """A transaction of the engine, whose end is to be told to `ended`, for *who*.

        It is appended to *held* in the very call that begins it, so that no interrupt can come in between.

        For a write, the thread must be the writer (see `writing`).
        """
        if self.provisional:
            if write:
                self._settle()
            elif monotonic() >= self._try_at:
                self._try_to_settle()
        env: Optional[Environment] = None
        for attempt in range(_ATTEMPTS):
            gate = self.gate
            if gate is not None:
                gate.enter(who)
            try:
                env = self.env
                if env is None:
                    env = self.reopen()
                    if gate is None and self.gate is not None:  # it is opened read-only, and knows who is in it
                        self.gate.enter(who)
                if held is None:
                    return env.begin(write=write, buffers=buffers)
                with locks.undisturbed:
                    held.extend(map(env.begin, (None,), (None,), (write,), (buffers,)))
                return held[-1]
            except BaseException as error:  # such as a KeyboardInterrupt, after which the gate must not stay shut
                self.ended(who)
                if not isinstance(error, Exception):
                    raise
                if attempt > 0 and not self.engine.resized(error):
                    self.fail(error)
                self._make_good(env, error)
        raise errors.DatabaseInUse(f"{self.engine.path!r} is made larger by others too often to follow: begin again")

    def begin_read(self, who: object, buffers: bool) -> tuple[int, Any]:
        """A read transaction of the engine, and how many times handles had been published before it began."""
        env, sequence = self.env, self.sequence
        txn = self.begin(buffers=buffers, who=who)
        return (sequence if self.env is env else self.sequence), txn  # opened anew, it has new handles

    def ended(self, who: object) -> None:
        """The transaction that began for *who* has ended. It may be told twice."""
        if self.gate is not None:
            self.gate.leave(who)

    def rest(self) -> None:
        """No transaction may be open any more: do what waits for that."""
        if self.at_rest is not None and not self.live.count():
            self.at_rest()

    def _make_good(self, env: Optional[Environment], error: Exception) -> None:
        """Do what a beginning that failed with *error* asks for, or raise it as ours."""
        ours = self.engine.translate(error)
        if self.engine.resized(error):
            with self._alone() as alone:
                if not alone:
                    raise errors.DatabaseInUse(
                        f"another process has made {self.engine.path!r} larger, which this one follows only while it "
                        f"has no transactions open: end them, and begin again"
                    ) from error
                self._resize(self.engine.adopt_size)
        elif isinstance(ours, errors.DatabaseFull):
            self.live.end_dropped()
            gc.collect()  # ends what was dropped
            self.clear_readers()
        elif self.engine.fatal(error):
            self._renew(env, ours)
        else:
            self.fail(error)

    def end_leftovers(self) -> None:
        """End what blocks that are over have left open, since an interrupt came at their end."""
        self.writer.end_leftovers()
        self.live.end_leftovers()

    def look_at_reads(self, now: float) -> None:
        """From time to time as a transaction begins: see which reads are open, for too long or for nobody."""
        self.live.end_dropped()
        self.ages.look(now, self.live.reading())

    def look_at_file(self, now: float, timeout: Optional[float]) -> None:
        """Before a write, ten times a second: see that the files are those that were opened, and clear dead readers.

        What they hold back would make the file grow for as long as it is open. Raises as `Engine.check_file` does.
        """
        self.engine.check_file()
        self.writer.check_file(timeout)
        self.look_at = now + _LOOK_AGAIN  # here: a write that is tried again after the error must raise it, too
        self.live.end_dropped()
        self.clear_readers()

    def clear_readers(self) -> int:
        """Free the slots of readers whose processes were killed; how many."""
        return self.engine.clear_readers(self.environment)

    # -- the map grows -------------------------------------------------------------------------------------------------

    def _alone(self) -> AbstractContextManager[bool]:
        look = self.live.end_unheld
        look()
        return nullcontext(not self.live.count()) if self.gate is None else self.gate.alone(READERS_PATIENCE, look)

    def make_room(self) -> bool:
        """After a transaction failed for want of room: let the map grow, when the open transactions end in time.

        The thread must be the writer. Whether the map grew.
        """
        if not (self.full and self.engine.can_grow):
            return False
        with self._alone() as alone:
            if alone:
                self.full = False
                self._resize(self.engine.grow)
                self.grown += 1
            else:
                log.warning("%r cannot grow while transactions of this process are open", self.engine.path)
        return alone

    def grow(self, timeout: Optional[float], grown: int, *, full: bool = False) -> bool:
        """As `make_room`, for a thread that is not the writer yet.

        It failed, with *full* for want of room, when the map had *grown* so many times; another thread may have let it
        grow since then.
        """
        with self.writing(timeout):
            if self.grown != grown:
                return True
            self.full = self.full or full
            return self.make_room()

    def _resize(self, resize: Callable[[Environment], None]) -> None:
        """Move the map; where there is no address space for it, LMDB has closed the environment, and it is reopened."""
        try:
            resize(self.environment)
        except errors.DatabaseFull:  # before anything was done
            raise
        except Exception as error:
            self.suspend()
            with suppress(errors.Error):  # else with the next transaction
                self.reopen()
            self.fail(error)

    def _renew(self, env: Optional[Environment], error: Exception) -> None:
        """Open the environment *env* anew, which met a fatal error; another thread may have done so."""
        with self.lock:
            if self.env is env:
                if self.live.count():
                    raise errors.DatabaseInUse(
                        f"{self.engine.path!r} met a fatal error and is opened anew once its {self.live.count()} open "
                        f"transactions have ended: end them, and begin again"
                    ) from error
                log.warning("%r met a fatal error, and is opened anew: %s", self.engine.path, error)
                self.suspend()
                self.reopen()

    # -- opened anew, suspended, closed --------------------------------------------------------------------------------

    def reopen(self) -> Environment:
        """In a forked child, or after `close`: open the environment anew, with the spaces it had."""
        with self.lock:
            if self.env is not None:
                return self.env
            if self.users == 0:
                raise self._closed()
            if self.closing is not None:
                return self.closing.admitted()
            if self.readonly or self.writer.owner == threading.get_ident():
                return self._reopen(provisional=False)
            # As in `Store._looked_up`: another process may write for long, or wait for this one. Where writers are not
            # known, it waits.
            try:
                with self.writing(0):
                    return self._reopen(provisional=False)
            except errors.WriterTimeout:
                return self._reopen(provisional=True)

    def _reopen(self, *, provisional: bool) -> Environment:
        self.provisional = provisional
        env = self.engine.open(readonly=True) if provisional else self.engine.open()
        try:
            found = self._found_again(env, list(self.spaces))
        except BaseException:
            env.close()
            self.engine.closed()
            raise
        self.spaces = {}
        self.opening += 1
        self._publish(found)
        self._opened(env)
        return env

    def _found_again(self, env: Environment, names: list[bytes]) -> dict[bytes, Handle]:
        """The handles of a new environment, which nobody else uses yet."""
        while True:
            try:
                return self._existing(env, names)
            except Exception as error:
                if not self.engine.resized(error):
                    self.fail(error)
                self.engine.adopt_size(env)

    def _settle(self) -> None:
        """Before a write: open for good what was opened read-only, when the reads of other threads have ended."""
        with self._alone() as alone, self.lock:
            if self.provisional:
                if not alone:
                    raise errors.DatabaseInUse(
                        f"{self.engine.path!r} was opened read-only, since another process was writing for long, and "
                        f"is opened anew for the first write: end the read transactions around it, and begin again"
                    )
                self.suspend()
                self.reopen()

    def _try_to_settle(self) -> None:
        """Before a read: do as `_settle`, if that does not take waiting."""
        self._try_at = monotonic() + _TRY_AGAIN
        gate = self.gate
        if gate is not None and self.writer.owner != threading.get_ident():
            # Also without the right to lock: who only reads needs none.
            with suppress(errors.Error), self.writing(0), gate.alone(0) as alone, self.lock:
                if alone and self.provisional:
                    self.suspend()
                    self.reopen()

    def _suspend_idle(self) -> bool:
        """Close the environment for a moment, if that of another can take its place and nobody uses it; whether so."""
        with self.lock:
            idle = self.engine.writer_lock is not None and not self.reads
            if not idle or any(live.active for live in self.live.alive()):
                return False
            self.suspend()
            return True

    def suspend(self, check: Optional[Callable[[], None]] = None) -> None:
        """Close the environment for a moment, so that its file can be replaced; `reopen` opens it again.

        *check* may raise: then nothing happens. It sees every reader that has got hold of the environment, since they
        make themselves known before; those that come later wait in `reopen` for the lock, which the thread must hold.
        """
        self.go_on()  # who closes it looks again whether all have ended
        env, self.env = self.env, None
        if env is not None:
            try:
                if check is not None:
                    check()
            except BaseException:
                self.env = env
                raise
            env.close()
            self.engine.closed()

    def close(self) -> None:
        """Close the environment. Raises `DatabaseInUse` when transactions are open."""
        self.end_leftovers()
        env: Optional[Environment] = None
        try:
            with self.lock:  # of `reopen`
                # As in `suspend`: what begins from now on waits for the lock, and what has begun before is seen.
                env = self.present
                try:
                    self.env = None
                    self._check_rest()
                except BaseException:
                    if self.closing is None:
                        self.env = env
                    raise
                self.closing = None
                self.users = 0  # a thread that comes late finds the database closed, and does not open it anew
            if env is not None:
                self.writer.path = None  # a thread that comes late does not open the lock file again
                # py-lmdb would wait for a thread that Python has stopped in a call of it. The system closes the file.
                if not is_stopped():
                    env.close()
                self.engine.closed()
                self.writer.close()
        except BaseException:  # an interrupt, perhaps: to close again does the rest
            if env is not None and self.closing is None:
                self.env = env
            raise

    def _check_rest(self) -> None:
        """Raise `DatabaseInUse` when transactions are open."""
        if self.closing is not None:
            self.closing.check()
        else:
            refuse_open(self.engine.path, [live for live in self.live.alive() if live.active])

    def in_child(self) -> None:
        """Drop, without closing, what the parent process had open: closing would free the parent's reader slots."""
        for live in self.live.alive():
            if live.active:
                live._forked()
        self.reads.clear()
        env, self.env, self.closing = self.present, None, None
        self.ages = Ages()
        self.writer.close()  # else the parent's lock, which is that of the open file, outlives the parent
        self._reset_locks()
        self.disturb()
        self.engine.in_child(env)


class WriterBlock(Claim):
    """Holds the writer lock for a block; *held* has the engine's transaction that is open in it, if any."""

    def __init__(self, opened: OpenEnvironment, timeout: Optional[float]) -> None:
        super().__init__(opened.writer, timeout)
        self._opened = opened
        self.held: list[Any] = []

    def undo(self) -> None:
        """Abort the transaction, if one is open."""
        if self.held:
            with suppress(Exception):  # it may have been ended
                self._opened.engine.abort(self.held)
            self.held.clear()

    def _leave(self, *error: object) -> None:
        if self.held:
            self.undo()
            self._opened.ended(self)
        self._lock.release(self._hold)  # as `Claim._leave`
        self._block = None
