"""An open environment of this process, shared by every handle of one file: keyspaces, transactions, fork.

A *space* is a named keyspace of the engine; the main one is named None. Handles of spaces are opened here and nowhere
else, never inside a user's transaction: LMDB gives the number of a handle that was opened in an aborted transaction to
the next one, and a later write would land in another table.
"""

from __future__ import annotations

import gc
import os
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import Any, NamedTuple, NoReturn, Optional, Protocol, TypeVar

from .. import errors
from ..engines import Engine, Environment, Handle, Told, Transaction
from ..log import log
from . import layout
from .blocks import COUNTS_REFERENCES, clear_frames
from .gate import Gate
from .layout import TRAITS, Layout, Traits, refuse_long, shown_space
from .quiet import Besides
from .readers import Ages, shown_with_origin
from .writerlock import Claim, WriterLock

R = TypeVar("R")


READERS_PATIENCE = 10.0
"""Seconds that a map which has to grow waits for the open transactions of this process to end."""


class Live(Protocol):
    """A transaction as its store sees it."""

    _unit: Any
    _write: bool

    @property
    def _begun(self) -> bool:
        """Whether it is open."""
        ...

    @property
    def active(self) -> bool:
        """Whether it is open, or about to be: it is known to be before it looks for the environment."""
        ...

    def _end_if_over(self) -> None:
        """End, if the block is over and did not."""
        ...

    def _forked(self) -> None:
        """This is a child process: refuse further use."""
        ...


class Space(NamedTuple):
    """A keyspace ready for use: the engine's handle, and the store's count of handles when it was published."""

    handle: Handle
    since: int


MAIN = Space(None, 0)

OpenSpace = Callable[[bytes], Handle]
"""Gives the handle of a space, which is made where it is missing."""

_LOOK_AGAIN = 1.0  # seconds between two looks at an open file
_SHORT_WAIT = 0.2  # seconds for another process to end its write transaction, before what needs no writer does without
_TRY_AGAIN = 0.005  # seconds between two tries to open for good what was opened read-only
_SHOWN = 5  # of the transactions that keep a store from being closed, in the error
_ATTEMPTS = 100  # to begin, each time after another process has made the file larger


class Store(Besides):
    """One open environment. *layout* is that of a new file; an existing one keeps its own."""

    def __init__(self, engine: Engine, layout: Layout) -> None:
        self.engine = engine
        self.layout: Layout = layout
        self.readonly = engine.options.readonly
        self.limited = engine.limited
        self.users = 0
        self.sequence = 0
        self.env: Optional[Environment] = None
        self.spaces: dict[bytes, Space] = {}
        self.live: dict[int, weakref.ref[Live]] = {}
        self.reads: set[object] = set()  # a mark for each read of the store's own
        self.maps: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self.feeds: dict[bytes, Any] = {}  # what `feed` knows of each, by its space
        self.by_hand: set[int] = set()  # the slots of maps that have them by hand
        self.contents: Any = None  # what `attach` has read of the catalogue
        self.definitions: dict[bytes, tuple[bytes, Any]] = {}  # records of a classic file, as decoded the last time
        self.grown = 0  # so many times, to tell a failure from before the map grew
        self.ages = Ages()
        self.wanted = set()
        self.pending = []
        self._try_at = 0.0  # when to try to open it for good, before a read
        self._main_entries = -1
        self._era = (-1, 0)  # the latest snapshot that is of it, and its number
        self._era_first = -1  # the snapshot before its first transaction
        self.guarded: tuple[Optional[int], Mapping[bytes, str]] = None, {}  # an era, and what raw writes would break
        self.at_rest: Optional[Callable[[], None]] = None
        self._reset_locks()
        self._opened(engine.open())
        _stores.add(self)

    def _reset_locks(self) -> None:
        self._gate = None
        self.lock = threading.RLock()
        self.writer = WriterLock(self.engine.writer_lock, self.engine.file)
        self.turns: Any = None  # the `Turns` of write blocks, once several have waited

    def _opened(self, env: Environment) -> None:
        # The same one for the same transactions: a thread may wait at it while the environment is opened anew.
        self._gate = (self._gate or Gate()) if self.engine.moves or self.provisional else None
        self.look_at = time.monotonic() + _LOOK_AGAIN  # which says that there may be a gate, too
        self.env = env
        self.contents = None
        self.clock = time.time
        self._era = (-1, self._era[1])  # the file may be another

    def fail(self, error: Exception, **details: Any) -> NoReturn:
        """Raise our error for *error* of the engine, with *details* as its attributes."""
        errors.raise_as(self.engine.translate(error, **details), error)

    @property
    def traits(self) -> Traits:
        """What the layout of the file means."""
        return TRAITS[self.layout]

    # -- the layout -----------------------------------------------------------------------------------------------

    def prepare(self, *, slots_expected: bool, timeout: Optional[float] = None) -> None:
        """Recognise the layout of the file, or write that of a new one, and open the spaces that every file has."""
        if self.layout == "raw":
            self._looked_up(partial(layout.refuse_ours, self.engine), timeout)
            return
        found: Optional[Layout] = self._looked_up(
            lambda env: layout.recognise(self.engine, env, slots_expected=slots_expected), timeout
        )
        if found is not None:
            self.layout = found
            self.open_spaces(self.traits.spaces, timeout=timeout)
        elif not self.readonly and not self.change(self._write_layout, timeout=timeout):
            self.prepare(slots_expected=slots_expected, timeout=timeout)

    def _write_layout(self, txn: Transaction, open_space: OpenSpace) -> bool:
        """Mark a new file with its layout; False when another process has done so meanwhile."""
        if txn.stat()["entries"]:
            return False
        if not self.traits.by_name:
            txn.put(layout.DEFINITIONS_KEY, layout.NO_DEFINITIONS)
            return True
        catalogue = open_space(layout.CATALOGUE)
        if txn.get(layout.MAGIC_KEY, None, catalogue) is not None:
            return False
        open_space(layout.SLOTS)
        txn.put(layout.MAGIC_KEY, layout.encode({"format": layout.FORMAT}), db=catalogue)
        if self.engine.names_in_main:
            txn.put(*layout.GUARD)
        return True

    # -- spaces ---------------------------------------------------------------------------------------------------

    def space(self, name: Optional[bytes]) -> Optional[Space]:
        """The space *name*, or None where the file does not have it."""
        return MAIN if name is None else self.spaces.get(name)

    def open_spaces(self, names: Iterable[bytes], *, timeout: Optional[float] = None) -> None:
        """Open the spaces *names*, those that the file has and that are not open yet."""
        missing = [name for name in names if name not in self.spaces]
        self.writer.end_leftovers()
        if missing and self.writer.owner == threading.get_ident():
            self.want(missing)
            raise errors.TransactionStale(
                f"another program made {shown_space(missing[0])} after this one opened the file, and handles are not "
                f"opened inside a write transaction: begin again"
            )
        if missing:
            self._looked_up(partial(self._publish_existing, missing), timeout)

    def _publish_existing(self, names: Iterable[bytes], env: Environment) -> None:
        # Another thread may have been here meanwhile; what began since then must find its handles unchanged.
        self._publish(self._existing(env, [name for name in names if name not in self.spaces]))

    def _looked_up(self, work: Callable[[Environment], R], timeout: Optional[float]) -> R:
        """The result of ``work(environment)``, which opens handles of spaces that are there.

        py-lmdb does so in a write transaction. So where another process writes for long, the environment is opened
        read-only until the first write, unless somebody here uses it already.
        """
        short = _SHORT_WAIT if timeout is None else min(_SHORT_WAIT, timeout)
        while not self.provisional:
            try:
                with self.writing(short), self.lock:
                    return self._retried(work)
            except errors.WriterTimeout:
                if not self._suspend_idle():
                    with self.writing(timeout), self.lock:
                        return self._retried(work)
                self.reopen()
        with self.lock:
            return self._retried(work)

    def open_wanted(self, timeout: Optional[float]) -> None:
        """Before a write transaction begins: open what one before it could not, and do what waits for a writer.

        *pending* are changes of the catalogue, each called with the timeout, that a program which only reads must not
        make. One that raises is called again by the next writer.
        """
        if self.wanted:
            wanted, self.wanted = self.wanted, set()
            self.open_spaces(wanted, timeout=timeout)
        while self.pending:
            change = self.pending[0]
            change(timeout)
            with suppress(ValueError):  # another thread has made it, too
                self.pending.remove(change)

    def change(
        self, work: Callable[[Transaction, OpenSpace], R], *, timeout: Optional[float] = None
    ) -> R:  # fmt: skip
        """Run ``work(txn, open_space)`` in a write transaction of its own and commit it.

        Spaces that *work* opens are created where they are missing, and published once the commit has succeeded.
        Run again when the map had to grow, or another process was first.
        Raises `DatabaseInUse` when this thread is inside a write transaction.
        """
        while True:
            grown = self.grown
            try:
                return self._change(work, timeout)
            except errors.DatabaseFull as error:
                if not self.grow(timeout, grown, full=error.size is not None):
                    raise
            except errors.Conflict as error:
                if not self.engine.retry(error):
                    raise

    def _change(self, work: Callable[[Transaction, OpenSpace], R], timeout: Optional[float]) -> R:
        opened: dict[bytes, Handle] = {}
        ours = False  # whether what is added to the main database are known to be names of spaces only

        def open_space(name: bytes) -> Handle:
            nonlocal ours
            known = self.spaces.get(name)
            if known is not None:
                return known.handle
            if not opened:
                ours = txn.stat()["entries"] == self._main_entries
            if name not in opened:
                try:
                    opened[name] = self.environment.open_db(name, txn=txn, create=True)
                except Exception:
                    refuse_long(name, self.environment.max_key_size())
                    raise
            return opened[name]

        with self.writing(timeout) as writing, self.lock:
            txn = writing.txn = self.begin(write=True, who=writing)
            try:
                result = work(txn, open_space)
                if self.limited:
                    self.require_room(txn, self.sequence, opened)
                entries = txn.stat()["entries"] if ours else self._main_entries
                txn.commit()
                self._main_entries = entries
                if (
                    self.engine.options.durability == "commit"
                ):  # such a change is not made again by who lost it unknowingly
                    self.environment.sync(True)
            except Exception as error:
                txn.abort()
                self.fail(error)
            finally:
                self.ended(writing)
            writing.txn = None
            self._publish(opened)
        return result

    def _existing(self, env: Environment, names: Iterable[bytes]) -> dict[bytes, Handle]:
        return {name: self.engine.open_existing(env, name) for name in names}

    def _retried(self, work: Callable[[Environment], R]) -> R:
        """The result of ``work(environment)``, which begins transactions of its own; again when the map has to move."""
        while True:
            env = self.environment
            try:
                return work(env)
            except Exception as error:
                if not self.engine.resized(error):
                    self.fail(error)
                self._make_good(env, error)

    def _publish(self, handles: dict[bytes, Handle]) -> None:
        self.sequence += 1
        for name, handle in handles.items():
            if handle is not None:
                self.spaces[name] = Space(handle, self.sequence)

    # -- transactions ---------------------------------------------------------------------------------------------

    def writing(self, timeout: Optional[float]) -> _Writing:
        """A block in which this thread is the writer of the file."""
        return _Writing(self, timeout)

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
            elif time.monotonic() >= self._try_at:
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
        if self.at_rest is not None and not self._count():
            self.at_rest()

    @contextmanager
    def reading(self) -> Generator[Transaction, None, None]:
        """A block with a read transaction of the engine."""
        mark = object()
        self.reads.add(mark)
        try:
            txn = self.begin(who=mark)
            try:
                yield txn
            except Exception as error:
                self.fail(error)
            finally:
                txn.abort()
                self.ended(mark)
        finally:
            self.reads.discard(mark)

    def verify(self, told: Optional[Told] = None) -> list[str]:
        """What is wrong with the pages of the file, in words; LMDB reads none of them for that."""
        file = self.engine.file
        if file is None:
            return []
        with self.reading():  # keeps the pages of this state from being used again by writers
            wrong = self._verify(file, told)
        if wrong:  # perhaps a meta page was read while it was being written
            with nullcontext() if self.readonly else self.writing(None), self.reading():
                wrong = self._verify(file, told)
        return wrong

    def _verify(self, file: str, told: Optional[Told]) -> list[str]:
        try:
            return self.engine.verify(file, told)
        except (errors.CorruptDatabase, errors.InvalidDatabase) as error:
            return [str(error)]

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
            if not COUNTS_REFERENCES:
                gc.collect()  # ends what was dropped
            self.clear_readers()
        elif self.engine.fatal(error):
            self._renew(env, ours)
        else:
            errors.raise_as(ours, error)

    def _alone(self) -> AbstractContextManager[bool]:
        return nullcontext(not self._count()) if self.gate is None else self.gate.alone(READERS_PATIENCE)

    def end_leftovers(self) -> None:
        """End what blocks that are over have left open, since an interrupt came at their end."""
        self.writer.end_leftovers()
        # Once for all of them, since each time the whole heap is searched.
        parts = [part for unit in self._units_in_use() for part in (unit.txn, unit.view)]
        if parts and COUNTS_REFERENCES:
            clear_frames(*parts)
        collect = bool(parts) and not COUNTS_REFERENCES
        del parts  # which would be counted, and kept
        if collect:
            gc.collect()
        self._end_blocks()
        for unit in self._units_in_use():
            unit.end_if_over()

    def _units_in_use(self) -> list[Any]:
        """Of the transactions that are open."""
        return [one._unit for one in self._alive() if one.active and one._unit is not None]

    def look_at_reads(self, now: float) -> None:
        """From time to time as a transaction begins: see which reads are open, for too long or for nobody."""
        self.end_dropped()
        self.ages.look(now, self.live)

    def end_dropped(self) -> None:
        """End the reads that an interrupt left open, and of which the program has nothing any more."""
        for unit in [one._unit for one in self._alive() if one.active and not one._write and one._unit is not None]:
            if unit.is_dropped():
                unit.txn._clear()

    def _end_blocks(self) -> None:
        for live in self._alive():
            if live.active:
                live._end_if_over()

    def _alive(self) -> list[Live]:
        """The transactions that there are, ended ones, too."""
        found = [ref() for ref in list(self.live.values())]
        return [one for one in found if one is not None]

    def _count(self) -> int:
        """How many transactions are open. One that was collected is, until its thread ends it."""
        return sum(1 for live in [ref() for ref in list(self.live.values())] if live is None or live._begun)

    # An era is a run of snapshots between which only transactions of this store have written records. What was found
    # out in one of them about tables and indexes holds in all of them, and need not be read again.

    def era_to_write(self, txn: Transaction) -> int:
        """The number of the era that the write transaction *txn* of the engine goes on, or begins.

        Raises `InvalidDatabase` when another program has written rows into the main database.
        """
        before = txn.id() - 1
        snapshot, era = self._era
        if snapshot != before:
            self._check_main(txn)
            era += 1
            self._era_first = before  # first: threads that look meanwhile then know too little, not too much
            self._era = before, era
        return era

    def new_era(self) -> None:
        """What was found out in the write transaction that has just failed holds in no other."""
        self._era = (-1, self._era[1])

    def era_of(self, txn: Transaction) -> Optional[int]:
        """The number of the era that the read transaction *txn* of the engine is in; None where that is not known."""
        snapshot, era = self._era
        return era if snapshot == txn.id() else None

    def same_catalogue(self, earlier: int, snapshot: int) -> bool:
        """Whether the catalogue is known to be the same in two snapshots, of which *earlier* is not the later one."""
        latest, _ = self._era
        return earlier == snapshot or (latest == snapshot and self._era_first <= earlier)

    def wrote(self) -> None:
        """The write transaction whose era was asked for has stored records."""
        snapshot, era = self._era
        self._era = snapshot + 1, era

    def _check_main(self, txn: Transaction) -> None:
        """O(1): LMDB's count of entries, which changes when tables are made, is looked at; the rest when it did."""
        if self.traits.spaces and self.engine.names_in_main:
            entries = txn.stat()["entries"]
            if entries != self._main_entries:
                foreign = layout.foreign_key(txn)
                if foreign is not None:
                    raise errors.InvalidDatabase(
                        f"{self.engine.path!r}: another program, perhaps zlmdb <= 26, has written the key "
                        f"{foreign!r} into "
                        f"the main database, which is ours: copy what it wrote, and delete it",
                        path=self.engine.path,
                    )
                self._main_entries = entries

    @property
    def environment(self) -> Environment:
        """The environment, opened anew in a forked child."""
        env = self.env
        return self.reopen() if env is None else env

    @property
    def can_grow(self) -> bool:
        """Whether the map may grow when it is full."""
        return self.engine.can_grow

    def check_key(self, key: bytes) -> None:
        """Raise `EncodeError` for a raw key that no record can have."""
        limit = self.environment.max_key_size()
        if not 0 < len(key) <= limit:
            raise errors.EncodeError(
                f"a raw key of {len(key)} bytes: it takes 1 to {limit} bytes, the first two being the slot",
                key=key,
                size=len(key),
                limit=limit,
            )

    def require_room(self, txn: Transaction, sequence: int, opened: Mapping[bytes, Handle]) -> None:
        """Raise `DatabaseFull` where *txn*, which began at *sequence* and has *opened* spaces, stores too much."""
        spaces = {name: space.handle for name, space in list(self.spaces.items()) if space.since <= sequence}
        self.engine.require_room(self.environment, txn, {**spaces, **opened}.values())

    @property
    def can_nest(self) -> bool:
        """Whether there are transactions inside transactions."""
        return self.engine.nests

    @property
    def shares_commits(self) -> bool:
        """Whether write blocks that wait for each other are stored by one commit."""
        engine = self.engine
        lends: bool = getattr(engine, "lends", False)
        return lends and not self.provisional and engine.options.durability != "none"

    def make_room(self) -> bool:
        """After a transaction failed for want of room: let the map grow, when the open transactions end in time.

        The thread must be the writer. Whether the map grew.
        """
        if not (self.full and self.can_grow):
            return False
        with self._alone() as alone:
            if alone:
                self.full = False
                self._resize(self.engine.grow)
                self.grown += 1
            else:
                log.warning("%s cannot grow while transactions of this process are open", self.engine.path)
        return alone

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
                if self._count():
                    raise errors.DatabaseInUse(
                        f"{self.engine.path!r} met a fatal error and is opened anew once its {self._count()} open "
                        f"transactions have ended: end them, and begin again"
                    ) from error
                log.warning("%s met a fatal error, and is opened anew: %s", self.engine.path, error)
                self.suspend()
                self.reopen()

    def clear_readers(self) -> int:
        """Free the slots of readers whose processes were killed; how many."""
        return self.engine.clear_readers(self.environment)

    def refuse_write(self) -> NoReturn:
        """Raise `ReadonlyDatabase`."""
        raise errors.ReadonlyDatabase(
            f"the database {self.engine.path!r} was opened read-only: open it with readonly=False to write",
            path=self.engine.path,
        )

    def look_at_file(self, now: float, timeout: Optional[float]) -> None:
        """Before a write, at most once a second: see that the files are those that were opened, and clear dead readers.

        What they hold back would make the file grow for as long as it is open. Raises as `Engine.check_file` does.
        """
        self.look_at = now + _LOOK_AGAIN
        self.engine.check_file()
        self.writer.check_file(timeout)
        self.end_dropped()
        self.clear_readers()

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

    # -- the end, and other processes -----------------------------------------------------------------------------

    def reopen(self) -> Environment:
        """In a forked child, or after `close`: open the environment anew, with the spaces it had."""
        with self.lock:
            if self.env is not None:
                return self.env
            if self.users == 0:
                raise errors.DatabaseClosed(f"the database {self.engine.path!r} is closed: open it again")
            if self.readonly or self.writer.owner == threading.get_ident():
                return self._reopen(provisional=False)
            # As in `_looked_up`: another process may write for long, or wait for this one. Where writers are not
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
        self._publish(found)
        self._opened(env)
        return env

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
        self._try_at = time.monotonic() + _TRY_AGAIN
        gate = self.gate
        if gate is not None and self.writer.owner != threading.get_ident():
            # Also without the right to lock: who only reads needs none.
            with suppress(errors.Error), self.writing(0), gate.alone(0) as alone, self.lock:
                if alone and self.provisional:
                    self.suspend()
                    self.reopen()

    def _found_again(self, env: Environment, names: list[bytes]) -> dict[bytes, Handle]:
        """The handles of a new environment, which nobody else uses yet."""
        while True:
            try:
                return self._existing(env, names)
            except Exception as error:
                if not self.engine.resized(error):
                    self.fail(error)
                self.engine.adopt_size(env)

    def _suspend_idle(self) -> bool:
        """Close the environment for a moment, if that of another can take its place and nobody uses it; whether so."""
        with self.lock:
            idle = self.engine.writer_lock is not None and not self.reads
            if not idle or any(live.active for live in self._alive()):
                return False
            self.suspend()
            return True

    def suspend(self, check: Optional[Callable[[], None]] = None) -> None:
        """Close the environment for a moment, so that its file can be replaced; `reopen` opens it again.

        *check* may raise: then nothing happens. It sees every reader that has got hold of the environment, since they
        make themselves known before; those that come later wait in `reopen` for the lock, which the thread must hold.
        """
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
        in_use = [
            shown_with_origin(live) for live in self._alive() if live.active
        ]  # texts: whoever has one keeps it open
        if in_use:
            shown = ", ".join(in_use[:_SHOWN]) + (", ..." if len(in_use) > _SHOWN else "")
            raise errors.DatabaseInUse(
                f"the database {self.engine.path!r} has open transactions ({len(in_use)}): [{shown}]; "
                "end them before close()"
            )
        with self.lock:  # of `reopen`
            self.users = 0  # from now on a thread that comes late finds the database closed, and does not open it anew
            env, self.env = self.env, None
        if env is not None:
            env.close()
            self.engine.closed()
            self.writer.close()
        if self.turns is not None:
            self.turns.end()
        for feed in list(self.feeds.values()):
            feed.bell.ring()  # who waits for a change finds that the database is closed
        _stores.discard(self)

    def in_child(self) -> None:
        """Drop, without closing, what the parent process had open: closing would free the parent's reader slots."""
        for live in [ref() for ref in self.live.values()]:
            if live is not None and live.active:
                live._forked()
        self.reads.clear()
        for feed in self.feeds.values():
            feed.ended(kept=False)
        self.env = None
        self.ages = Ages()
        self.disturb()
        self.writer.close()  # else the parent's lock, which is that of the open file, outlives the parent
        self._reset_locks()
        self.engine.in_child()


class _Writing(Claim):
    """Holds the writer lock of a store for a block; *txn* is the engine's transaction that is open in it, if any."""

    def __init__(self, store: Store, timeout: Optional[float]) -> None:
        super().__init__(store.writer, timeout)
        self._store = store
        self.txn: Any = None

    def _leave(self, *error: object) -> None:
        txn = self.txn
        if txn is not None:
            with suppress(Exception):  # it may have been ended
                txn.abort()
            self._store.ended(self)
            self.txn = None
        super()._leave(*error)


_stores: weakref.WeakSet[Store] = weakref.WeakSet()
_held: list[Transaction] = []
_entered: list[Gate] = []


def _before_fork() -> None:
    for store in list(_stores):
        if store.env is not None:
            if store.gate is not None:  # no other thread may move the map under what is held
                store.gate.enter(_held)
                _entered.append(store.gate)
            _held.extend(store.engine.before_fork(store.env))


def _after_in_parent() -> None:
    while _held:
        _held.pop().abort()
    while _entered:
        _entered.pop().leave(_held)


def _after_in_child() -> None:
    for store in list(_stores):  # also where there is no environment: locks, and who is to be named as their holder
        store.in_child()
    _held.clear()
    _entered.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )  # fmt: skip
