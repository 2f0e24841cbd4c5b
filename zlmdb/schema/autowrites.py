"""How `db.auto` stores a record: one generated function begins a transaction of the engine, stores, and commits.

It takes the lock of the writers as a block does. It has no statement by whose end an interrupted block is recognised,
so it catches everything: whatever exception comes, wherever it comes, undoes the transaction and releases the lock. If
a second one comes into that, the lock is released with the frame of the function, or by the next write of its thread.
On PyPy signals wait for its end: py-lmdb is Python code there, which could not bear what they raise.

It knows tables without indexes and without followers. What it knows of the file holds as for reads: see `auto`. With a
limit it asks for room, as `Transaction.commit` does.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, Optional

from .. import errors
from ..codegen import Recipe
from ..engines import Transaction as EngineTransaction
from ..handlers import let_through
from ..locks import monotonic, undisturbed
from ..store.blocks import COUNTS_REFERENCES
from ..store.lockfile import BUSY, OTHERS
from ..store.store import Store
from ..store.transaction import Transaction
from ..tables.compiled.points import writing
from ..tables.storage import Storage
from ..tables.table import Table

RUN_AGAIN = (errors.DatabaseFull, errors.Conflict, errors.TransactionPoisoned)
"""What a write in a block may raise that `Database.run` would not: it does what the engine asks for."""

_FILES = ("<zlmdb single reads", "<zlmdb single writes")

# The function ends in one of three ways: it has stored the record, or raises, or leaves the work to the general form.
# After it has given the object back, which another thread may then use, nothing is undone any more.
_WRITING = """\
def __setitem__(self, key, value):
    {alone}
    try:
        encoded = {encode} if {check} else general_key(key)
        {check_key}
        data = dump(value)
        {check_size}
        single = take() if idle else made(store)
    except Exception as error:
        let_through(error)
        return general(self, key, value)
    stored = False
    try:
        {undisturbed}:
            single._since = now = clock()
            single._thread = me = thread()
            writer = store.writer
            hold = single._hold
            alone = writer.alone
            taken = False
            if alone is not None and writer._next is None:  # as `WriterLock.take`, without the call
                hold.thread = me
                hold.turn = None
                if writer._claims.setdefault(0, hold) is hold:
                    alone[busy] = 1
                    if alone[others]:
                        writer.release(hold)
                    else:
                        taken = True
            if (taken or {taken}) and now < store.quiet.{quiet} and known.writes and storage.indexes is indexes:
{enter}\
                single._raw = raw = store.env.begin(None, None, True)
                snapshot, era = store._era
                if era == known.era and snapshot == raw.id() - 1 and store.sequence == known.sequence:
                    raw.put(encoded, data, True, True, False, known.handle)
{room}\
                    stored = True
                    store._era = snapshot + 1, era  # before others read it: as `Store.goes_on`
                    raw.commit()
                    single._raw = None
{leave}\
                    if alone is not writer.alone or alone is None:
                        writer.release(hold)
                    else:  # as `WriterLock.release`, without the call
                        alone[busy] = 0
                        del writer._claims[0]
                        if writer._waiters:
                            writer.wake_next()
                    single._since = 0.0
                else:
                    raw.commit()  # of nothing: an abort waits until no thread is reading
            if not stored:
                single._clear()
    except BaseException as error:
        if recover(single, error, stored):
            raise
    else:
        give(single)
        if stored:
            if store.at_rest is not None:
                store.rest()
            return
    return general(self, key, value)
"""

_ENTER = "                store._gate.admit(single)\n"
_ROOM = """\
                    if clock() >= store.quiet.roomy:
                        store.require_room(raw, known.sequence, {}, now)
"""
_LEAVE = """\
                    single._odd.leave(single)
                    single._odd = False
"""


class OutdatedError(Exception):
    """What the fast path knows no longer holds. Raised as a class: an object would keep the frames of each raising."""


class Known:
    """What an operation in a block has found out about the file, for the fast path: see `auto`.

    An object of its own: the table has a ``__getattr__``, with which CPython up to 3.11 reads each attribute slowly.
    """

    __slots__ = ("era", "handle", "sequence", "snapshot", "writes")

    def __init__(self) -> None:
        self.handle: Any = None
        self.sequence = -1  # nothing is known
        self.snapshot: Optional[int] = None
        self.era: Optional[int] = None
        self.writes = False

    def compare(self, store: Store, raw: Any) -> None:
        """Raise unless what is known holds in *raw*, too, of another snapshot."""
        snapshot = raw.id()
        era = store.era_of(snapshot)
        if era is None or era != self.era:
            raise OutdatedError
        self.snapshot = snapshot


class Single(Transaction):
    """The transaction of one operation. It is used for one after another, of any thread."""

    __slots__ = ()

    _brief = True

    def __init__(self, store: Store, write: bool = False) -> None:
        super().__init__(store, write)
        self._in_with = True  # nobody is to be told that it was not ended
        if self._hold is not None:
            self._hold.join = None

    def _is_over(self) -> bool:
        # An interrupt left it if no thread is in the operation.
        for frame in [*sys._current_frames().values()]:
            one: Optional[FrameType] = frame
            while one is not None:
                if one.f_code.co_filename.startswith(_FILES) and one.f_locals.get("single") is self:
                    return False
                one = one.f_back
        return True

    def _end_if_over(self) -> None:
        raw = self._raw
        if self._is_over() and self._raw is raw:  # nor has another thread begun the next one meanwhile
            self._clear()


class SingleWrite(Single):
    """That of a write."""

    __slots__ = ()

    def __init__(self, store: Store) -> None:
        super().__init__(store, write=True)


_WRITES = Recipe("single writes", raw=EngineTransaction, single=SingleWrite, known=Known)


def is_plain(cls: type[Table[Any, Any]], storage: Storage[Any, Any], store: Store) -> bool:
    """Whether records of *storage*, in tables of the class *cls*, are stored by nothing but a put of the engine."""
    simple = not (storage.indexes or storage.followers or store.readonly or (store.limited and not store.engine.moves))
    return simple and cls.__setitem__ is Table.__setitem__ and store.writer.path is not None


def compiled(
    storage: Storage[Any, Any], store: Store, general: Callable[..., None], owner: type[Any], known: object,
    gated: bool,
) -> Any:  # fmt: skip
    """The function that stores a record for the class *owner*; *general* stores it in a block."""
    idle: list[SingleWrite] = []
    # Where no commit waits for the disk, nobody waits for a group.
    never_waits = store.engine.options.durability == "none"
    taken = "writer.take(hold, me)"
    waits = never_waits and COUNTS_REFERENCES  # signals do not wait for that
    source, names = writing(
        _WRITING,
        storage,
        {
            "general": general, "take": idle.pop, "give": idle.append, "idle": idle, "made": SingleWrite,
            "store": store, "known": known, "storage": storage, "indexes": storage.indexes, "clock": monotonic,
            "recover": _recover, "thread": threading.get_ident, "busy": BUSY, "others": OTHERS,
            "undisturbed": undisturbed,
        },
        undisturbed="if True" if COUNTS_REFERENCES else "with undisturbed",  # else the engine could not bear a signal
        alone="pass" if never_waits else "if not self._db._writes_alone(): return self._share(key, value)",
        quiet="gated_writes" if gated else "writes",
        enter=_ENTER if gated else "",
        room=_ROOM if store.limited else "",
        leave=_LEAVE if gated else "",
        taken=f"{taken} or writer.acquire(self._db._timeout, hold) is None" if waits else taken,
    )  # fmt: skip
    subject = f"{storage.key.name} at {storage.prefix.hex() or 'no prefix'}"
    made: Mapping[str, Any] = _WRITES.functions(subject, source, names, self=owner)
    return made["__setitem__"]


def _recover(single: SingleWrite, error: BaseException, committing: bool) -> bool:
    """Undo what *single* has begun. Whether to raise *error*, which came; else the general form is to try again.

    Raises what the commit failed with.
    """
    if committing:
        try:
            single._commit_failed(single._raw, error)
        except RUN_AGAIN:
            return False
    single._clear()
    if isinstance(error, errors.Error):
        return not isinstance(error, RUN_AGAIN)
    if isinstance(error, Exception):
        let_through(error)
        return False
    return True
