"""An open file of this process: its layout, its spaces, and changes of its catalogue.

A *space* is a named keyspace of the engine; the main one is named None. Handles of spaces are opened here and nowhere
else, never inside a user's transaction: LMDB gives the number of a handle that was opened in an aborted transaction to
the next one, and a later write would land in another table.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Any, NoReturn, Optional, TypeVar

from .. import errors
from ..engines import Engine, Environment, Handle, Told, Transaction
from ..locks import monotonic
from . import fork, layout
from .environment import OpenEnvironment
from .layout import TRAITS, Layout, Traits, refuse_long, shown_space

R = TypeVar("R")

OpenSpace = Callable[[bytes], Handle]
"""Gives the handle of a space, which is made where it is missing."""

_DAMAGED = "restore a backup, or take out what there is with zlmdb.Database.salvage()"
_SHORT_WAIT = 0.2  # seconds for another process to end its write transaction, before what needs no writer does without


def machine_clock() -> float:
    """``time.time()``, which is looked up at each call: a test may put another function there, as freezegun does."""
    return time.time()


class Store(OpenEnvironment):
    """An open file. *layout* is that of a new one; an existing one keeps its own."""

    turns: Any = None  # the `Turns` of write blocks, once several have waited

    def __init__(self, engine: Engine, layout: Layout) -> None:
        self.set_layout(layout)
        self.maps: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self.feeds: dict[bytes, Any] = {}  # what `feed` knows of each, by its space
        self.by_hand: set[int] = set()  # the slots of maps that have them by hand
        self.contents: Any = None  # what `attach` has read of the catalogue
        self.definitions: dict[bytes, tuple[bytes, Any]] = {}  # records of a classic file, as decoded the last time
        self._main_entries = -1
        self._era = (-1, 0)  # the latest snapshot that is of it, and its number
        self._era_first = -1  # the snapshot before its first transaction
        self.guarded: tuple[Optional[int], Mapping[bytes, str]] = None, {}  # an era, and what raw writes would break
        self.wanted = set()
        self.pending = []
        self.clock = machine_clock
        super().__init__(engine)
        fork.environments.add(self)

    def _reopen(self, *, provisional: bool) -> Environment:
        self.contents = None
        self._era = (-1, self._era[1])  # the file may be another
        return super()._reopen(provisional=provisional)

    def close(self) -> None:
        """Close the file. Raises `DatabaseInUse` when transactions are open."""
        if self.turns is not None:
            self.turns.settle()
        super().close()
        if self.turns is not None:
            self.turns.end()
        for feed in list(self.feeds.values()):
            feed.bell.ring()  # those that wait for a change find that the database is closed
        fork.environments.discard(self)

    def in_child(self) -> None:
        """Drop, without closing, what the parent process had open."""
        super().in_child()
        self.__dict__.pop("turns", None)
        for feed in self.feeds.values():
            feed.ended(kept=False)

    # -- the layout ----------------------------------------------------------------------------------------------------

    def set_layout(self, layout: Layout) -> None:
        """Take the file for one of *layout*."""
        self.layout: Layout = layout
        self.traits: Traits = TRAITS[layout]

    def prepare(self, *, slots_expected: bool, timeout: Optional[float] = None) -> None:
        """Recognise the layout of the file, or write that of a new one, and open the spaces that every file has."""
        if self.layout == "raw":
            self._looked_up(partial(layout.refuse_ours, self.engine), timeout)
            return
        self._refuse_foreign(slots_expected)
        is_new = not self._looked_up(partial(self._recognise, slots_expected), timeout)
        if is_new and not self.readonly and not self.change(self._write_layout, timeout=timeout):
            self.prepare(slots_expected=slots_expected, timeout=timeout)

    def _recognise(self, slots_expected: bool, env: Environment) -> bool:
        """Take over the layout of the file, and open the spaces that it has with that; False for a new file."""
        found = layout.recognise(self.engine, env, slots_expected=slots_expected)
        if found is None:
            return False
        self.set_layout(found)
        self._publish_existing(self.traits.spaces, env)
        return True

    def _refuse_foreign(self, slots_expected: bool) -> None:
        """Refuse the file of another program before the first writer makes its lock file beside it."""
        beside = self.engine.writer_lock
        if beside is not None and self.engine.names_in_main and not os.path.exists(beside):
            with self.lock:
                self._retried(partial(layout.refuse_foreign, self.engine, slots_expected=slots_expected))

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

    # -- spaces --------------------------------------------------------------------------------------------------------

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

    def _retried(self, work: Callable[[Environment], R]) -> R:
        """The result of ``work(environment)``, which begins transactions of its own; again when the map has to move."""
        while True:
            env = self.environment
            try:
                return work(env)
            except Exception as error:
                if not self.engine.resized(error):
                    self._fail_alone(error)
                self._make_good(env, error)

    def _fail_alone(self, error: Exception) -> NoReturn:
        """As `fail`, of a transaction that nobody else has: it has not ended before, so it met damage."""
        path = self.engine.path
        ours = self.engine.translate(error)
        if isinstance(ours, errors.TransactionClosed) and self.users and not self.engine.fatal(error):
            raise errors.CorruptDatabase(f"{path!r} is damaged: {_DAMAGED} ({error})", path=path) from error
        if type(error) is errors.DecodeError and error.path is None is error.table:  # of the catalogue
            raise errors.DecodeError(f"{path!r}: {error}: {_DAMAGED}", path=path) from error
        self.fail(error)

    # -- changes of the catalogue --------------------------------------------------------------------------------------

    def open_wanted(self, timeout: Optional[float], tables: Iterable[object]) -> None:
        """Before a write transaction begins: open what one before it could not, and do what waits for a writer.

        *pending* are changes of the catalogue, each called with the timeout, that a program which only reads must not
        make. Those for a table that is none of *tables* wait for another writer; one that raises is called again by the
        next one.
        """
        if self.wanted:
            wanted, self.wanted = self.wanted, set()
            self.open_spaces(wanted, timeout=timeout)
        for one in list(self.pending):
            storage, change = one
            if storage is None or any([storage() is table for table in tables]):
                change(timeout)
            elif storage() is not None:  # else its database is closed
                continue
            with suppress(ValueError):  # another thread has made it, too
                self.pending.remove(one)

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
                ours = held[0].stat()["entries"] == self._main_entries
            if name not in opened:
                try:
                    opened[name] = self.environment.open_db(name, txn=held[0], create=True)
                except Exception:
                    refuse_long(name, self.environment.max_key_size())
                    raise
            return opened[name]

        with self.writing(timeout) as writing, self.lock:
            held = writing.held  # no variable refers to the transaction itself: see `Engine.abort`
            begun = monotonic()
            self.begin(write=True, who=writing, held=held)
            try:
                result = work(held[0], open_space)
                if opened and self.layout == "tables":
                    self._open_others(held[0], opened, open_space)
                if self.limited:
                    self.require_room(held[0], self.sequence, opened, begun)
                entries = held[0].stat()["entries"] if ours else self._main_entries
                held[0].commit()
                held.clear()
                self._main_entries = entries
                if self.engine.options.durability == "commit":  # who loses such a change does not know it
                    self.environment.sync(True)
            except Exception as error:
                writing.undo()
                self._fail_alone(error)
            finally:
                self.ended(writing)
            self._publish(opened)
        return result

    def _open_others(self, txn: Transaction, opened: dict[bytes, Handle], open_space: OpenSpace) -> None:
        """Open what other processes have made since: so no file gets more spaces than can be open at once.

        Usually nobody has, which the number of entries of the main database tells: one for each space, and the guard.
        Raises `DatabaseFull`.
        """
        entries = txn.stat()["entries"] - 1 if self.engine.names_in_main else 0
        if entries > len(opened.keys() | self.spaces.keys()):
            for name in list(self.engine.space_names(self.environment, txn)):
                open_space(name)
            if entries > len(opened.keys() | self.spaces.keys()):  # py-lmdb lists those that it can open
                raise errors.DatabaseFull(
                    "other processes have made tables meanwhile, and with these ones the database would have more "
                    "tables and indexes than can be open at once (MAX_TABLES)"
                )

    # -- reading -------------------------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Generator[Transaction, None, None]:
        """A block with a read transaction of the engine."""
        mark = object()
        try:  # whatever an interrupt comes after, what follows is done
            self.reads.add(mark)
            txn = self.begin(who=mark)
            try:
                yield txn
            except Exception as error:
                self._fail_alone(error)
            finally:
                txn.abort()
        finally:
            try:
                self.ended(mark)
            finally:
                self.reads.discard(mark)

    def verify(self, told: Optional[Told] = None, timeout: Optional[float] = None) -> list[str]:
        """What is wrong with the pages of the file, in words; LMDB reads none of them for that.

        If something is, it waits for the writer. Raises `WriterTimeout` after *timeout* seconds.
        """
        file = self.engine.file
        if file is None:
            return []
        with self.reading():  # keeps the pages of this state from being used again by writers
            wrong = self._verify(file, told)
        if wrong:  # perhaps a meta page was read while it was being written
            with nullcontext() if self.readonly else self.writing(timeout), self.reading():
                wrong = self._verify(file, told)
        return wrong

    def _verify(self, file: str, told: Optional[Told]) -> list[str]:
        try:
            return self.engine.verify(file, told)
        except (errors.CorruptDatabase, errors.InvalidDatabase) as error:
            return [str(error)]

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

    # -- eras ----------------------------------------------------------------------------------------------------------

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

    def era_of(self, snapshot: int) -> Optional[int]:
        """The number of the latest era, if *snapshot* is known to belong to it; else None."""
        latest, era = self._era  # first: see `era_to_write`
        return era if self._era_first <= snapshot <= latest else None

    def same_catalogue(self, earlier: int, snapshot: int) -> bool:
        """Whether the catalogue is known to be the same in two snapshots, of which *earlier* is not the later one."""
        latest, _ = self._era
        return earlier == snapshot or (latest == snapshot and self._era_first <= earlier)

    def goes_on(self) -> None:
        """The write transaction whose era was asked for stores records, and is about to commit: `new_era` if it fails.

        Threads that begin to read while this one is still in the commit then know that the era goes on.
        """
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
