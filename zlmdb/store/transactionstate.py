"""What a transaction is made of, and what its parts and its tables ask of it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any, NoReturn, Optional, Union

from .. import errors
from .access import FORKED, forked
from .blocks import Leave
from .environment import MAIN
from .holds import Hold, Join
from .layout import shown_space
from .scans import Scans
from .store import Store

if TYPE_CHECKING:
    from .gate import Gate
    from .transactionstats import TransactionStats

_POISON = (errors.DatabaseFull, errors.DiskError, errors.CorruptDatabase, errors.Conflict, MemoryError)
_get_ident = threading.get_ident


class Undone:
    """A hook of a transaction that calls *fn* if what was done is undone, by whatever: see `undone`."""

    __slots__ = ("_fn",)

    def __init__(self, fn: Callable[[], object]) -> None:
        self._fn = fn

    def __call__(self, kept: bool) -> None:
        if not kept:
            self._fn()


def undone(hooks: Sequence[Callable[[bool], object]]) -> None:
    """The transaction of the *hooks* is not stored. Most do not ask for that: the next one may be writing by now."""
    for hook in hooks:
        if isinstance(hook, Undone):
            hook(False)


class TransactionState:
    """The state of a `Transaction`, the classes derived from this one begin and end it."""

    __slots__ = (
        "__weakref__", "_aimed", "_block", "_buffers", "_deferred", "_dels", "_edited", "_era", "_error", "_exit",
        "_held", "_hold", "_hooks", "_in_with", "_index_hooks", "_instruction", "_is_forked", "_mixed", "_now", "_odd",
        "_opener", "_outer", "_owner", "_puts", "_raw", "_scans", "_seen", "_seen_era", "_sequence", "_since", "_stats",
        "_store", "_tables", "_thread", "_timeout", "_told", "_turn", "_unit", "_views", "_write",
    )  # fmt: skip

    _join: Join  # how a write waits for a turn in a group
    _block: Optional[weakref.ref[Leave]]
    _opener: CodeType  # where the program began it, with *_instruction*
    _instruction: int
    _era: Optional[int]  # of the store, which a write goes on; None: what is found out here holds in no other one

    def __init__(
        self, store: Store, write: bool = False, buffers: bool = False, stats: Optional[TransactionStats] = None,
        timeout: Optional[float] = None,
    ) -> None:  # fmt: skip
        whole: Any = self  # the `Transaction`
        self._store = store
        self._buffers = buffers
        self._stats = stats
        self._timeout = timeout
        self._raw: Any = None
        self._held: list[Any] = []  # that of a write, from the moment when it begins
        self._error: Optional[BaseException] = None
        self._told: Optional[list[Any]] = None  # gets an item in the very call that commits
        self._outer: list[Any] = []  # the engine's transactions around the present savepoint
        self._write = write
        self._tables: dict[Any, Any] = {}
        # Those of the schema object once more, with the handle and, to write, those of the indexes, which then belong
        # to the table. Where *_seen_era* is a number, the quick way serves all of them in that era, and in the snapshot
        # *_seen*.
        self._aimed: list[Any] = []
        self._seen = self._seen_era = -1
        self._scans: Optional[Scans] = None
        self._hooks: list[Callable[[bool], object]] = []
        self._deferred: Optional[dict[Any, None]] = None  # what is checked before the commit: see `tables.links`
        self._index_hooks: list[Callable[[Any, Sequence[str]], object]] = []  # called by `_indexes_changed`
        self._views: list[memoryview] = []
        self._block = None
        self._exit: list[Leave] = []
        self._in_with = False  # a ``with`` statement began this write
        self._hold = Hold(whole, self._join) if write else None
        self._owner: Any = None  # what its thread holds, while it writes
        self._turn: Any = None  # where it is a member of a group: see `blockgroups`
        self._edited: set[Any] = set()  # what an `edit` is going on of: by table and key, and `changing.EditedRows`
        # Besides the engine's transaction and the tables there is something to end. A gate: nothing but that.
        self._odd: Union[bool, Gate] = False
        self._is_forked = False  # this is a child process of that in which it began
        self._mixed = False  # *tables* has others than the attributes of the schema object, or that has others
        self._unit: Any = None  # what it is part of, and waits in for its next use: see `pool`
        self._since = 0.0  # when it began; 0 while it is not open
        self._now = 0.0, 0.0  # *_since*, and the time when a table asked for it: see `tables.expiring`
        self._puts = self._dels = self._thread = 0
        self._sequence = -1  # that of the store when it began: no handles of before then can be used
        store.live[id(self)] = weakref.ref(whole)

    @property
    def _begun(self) -> bool:
        """Whether the transaction is open."""
        return self._raw is not None

    @property
    def active(self) -> bool:
        """Whether the transaction is open, or about to be."""
        return self._since != 0.0

    @property
    def _engine_txn(self) -> Any:
        """The engine's transaction. Raises `TransactionClosed` when there is none."""
        raw = self._raw
        if raw is None:
            self._check_forked()
            raise errors.TransactionClosed("the transaction is not open: use it inside its with block")
        return raw

    def _indexes_changed(self, by: Any, names: Sequence[str]) -> None:
        """The catalogue's record of the indexes *names* was changed here, for the bound table *by*.

        With this transaction an era ends; other bound tables of the same table read the catalogue again.
        """
        self._catalogue_changed()
        for table in list(self._tables.values()):
            if table is not by and table._name == by._name:
                table._look_again()
        for changed in self._index_hooks:
            changed(by, names)

    def _catalogue_changed(self) -> None:
        """The catalogue was changed here: with this transaction an era ends."""
        self._era = None

    @property
    def buffers(self) -> bool:
        """Whether reads return memoryviews, which are valid inside the transaction only."""
        return self._buffers

    def _check_thread(self) -> None:
        """Raise `WrongThread` unless this is the thread that began the transaction."""
        if _get_ident() != self._thread:
            raise errors.WrongThread(
                f"this write transaction belongs to thread {self._thread}, not to this one ({_get_ident()}): "
                f"begin one here, or hand the work to that thread (frameworks may run a dependency in another thread "
                f"than the function that uses it: begin the transaction in the function)"
            )

    def _refuse_use(self) -> NoReturn:
        """Raise: the transaction is not open, because it has ended, or because a write transaction has not begun."""
        self._check_forked()
        if self._write and not self._thread:
            raise errors.TransactionClosed(
                "a write transaction begins with its block, and this one was used without a block, so nothing "
                "would commit it: write `with db.write() as t:`"
            )
        raise errors.TransactionClosed("the transaction has ended: use its tables inside its with block")

    def _check_write(self) -> None:
        """Raise unless this thread can write: `ReadonlyDatabase`, `TransactionClosed`, `WrongThread`."""
        if self._raw is None:
            self._check_forked()
        if not self._write:
            raise errors.ReadonlyDatabase("this is a read transaction: write in db.write() or begin(write=True)")
        if self._raw is None:
            self._refuse_use()
        if _get_ident() != self._thread:
            self._check_thread()

    def _look_at_tables(self) -> None:
        """What is known of the tables in *_aimed* may not hold: the next transaction looks at each of them."""
        self._seen = self._seen_era = -1

    def _open_scans(self) -> Scans:
        """The running scans."""
        if self._scans is None:
            self._odd = True
            self._scans = Scans()
        return self._scans

    def _is_edited(self, table: str, encoded: bytes) -> bool:
        """Whether a block edits that record of *table*, and will store its own object there."""
        blocks = [one for one in self._edited if type(one) is not tuple]
        return (table, encoded) in self._edited or any([one.is_at(table, encoded) for one in blocks])

    def _allow_tables(self, spaces: Iterable[Optional[bytes]]) -> None:
        """Let the tables of *spaces* write by their generated functions, unless a scan must be told of their writes."""
        changed = {*spaces}
        for table in self._tables.values():  # there may be hundreds, for each of which this is called
            if not changed.isdisjoint(table._storage.spaces):
                table._allow()

    def _handle(self, name: Optional[bytes]) -> Optional[Any]:
        """The engine's handle of the space *name* as a 1-tuple; None if the file lacks the space.

        Raises `TransactionStale` if the space was opened after this transaction began.
        """
        space = MAIN if name is None else self._store.spaces.get(name)  # `Environment.space`, without the call
        if space is None:
            return None
        if space.since > self._sequence:
            raise errors.TransactionStale(
                f"this transaction began before {shown_space(name)} was attached or made: begin again"
            )
        return (space.handle,)

    def _count(self, puts: int, dels: int) -> None:
        """Count records and index entries written and deleted."""
        self._puts += puts
        self._dels += dels
        stats = self._stats
        if stats is not None:
            stats.puts += puts
            stats.dels += dels

    def _translate(self, error: Exception, **details: Any) -> Exception:
        """The error of zlmdb for an error of the engine. Poisons the transaction if nothing may be committed."""
        ours = self._store.engine.translate(error, **details)
        if self._error is not None and isinstance(ours, errors.TransactionClosed):  # it is why the engine refuses
            return poisoned(self._error)
        if isinstance(ours, _POISON) and self._write:
            self._odd = True
            self._error = ours
            self._store.full = needs_room(ours)
        return ours

    def _fail(self, error: Exception, **details: Any) -> NoReturn:
        """Raise the error of zlmdb for *error* of the engine, with *details* as its attributes."""
        errors.raise_as(self._translate(error, **details), error)

    def _poison(self, error: BaseException) -> None:
        """Refuse to commit: half of a statement was written when *error* came."""
        if self._write and self._error is None:
            self._odd = True
            self._error = error

    def _mix(self) -> None:
        """Others than the tables of the schema object, or of that one, use the transaction, and end with it."""
        self._odd = self._mixed = True

    def _hook(self, hook: Callable[[bool], object]) -> None:
        """Call *hook* with True when the transaction is stored; with False when the present savepoint is undone."""
        self._odd = True
        self._hooks.append(hook)

    def _keep_view(self, data: Any) -> Any:
        """Remember *data*, a memoryview just read, so that it is released at the end of the transaction."""
        if not self._buffers or data is None:
            return data
        view = memoryview(data)  # PyPy has a buffer type of cffi's here
        self._odd = True
        self._views.append(view)
        return view

    def _forked(self) -> None:
        """In a forked child: leave the parent's transaction alone, and refuse every further use."""
        self._is_forked = True
        if self._scans is not None:
            self._scans.fork(FORKED)
            self._scans = None
        for table in self._tables.values():
            table._end(FORKED)
        self._tables.clear()
        self._aimed.clear()
        self._raw = self._block = self._unit = None
        self._held.clear()
        self._since = 0.0
        self._views.clear()

    def _check_forked(self) -> None:
        """Raise `ForkedTransaction` in a child of the process in which the transaction began."""
        if self._is_forked:
            forked()


def poisoned(error: BaseException) -> errors.TransactionPoisoned:
    """What a transaction raises that *error* broke, its cause."""
    ours = errors.TransactionPoisoned(
        f"an error in the middle of a write broke the transaction, which can only be aborted, nothing was stored: "
        f"{error!r}"
    )
    ours.__cause__ = error
    return ours


def needs_room(error: Exception) -> bool:
    """Whether a larger map would have helped; errors for other limits have no size."""
    return isinstance(error, errors.DatabaseFull) and error.size is not None
