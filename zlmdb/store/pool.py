"""Units of a schema object, its transaction and its bound tables, which are reused.

Creating them takes several times as long as LMDB takes to begin. They are reused only if nobody else refers to them, so
that an object that a program keeps never becomes part of another transaction: CPython counts references, and the count
of an object without other references is measured here, because it depends on the version. Where references are not
counted (PyPy), each transaction gets new objects.

In a loop two units take turns, because the variable of the loop still has the previous one when the next one is taken.

The collector calls the finalizers of all that it has found, in any order. That of a generator ends its block, and gives
the unit back; another thread may use that before the finalizer of the transaction is called, which would end what that
thread has begun. So from the moment when the collector has found a transaction, nobody takes units from where it goes.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from threading import get_ident
from typing import Any, Callable, Generic, Optional, TypeVar
from weakref import ref

from .blocks import COUNTS_REFERENCES, kept

T = TypeVar("T")

references: Callable[[Any], int] = getattr(sys, "getrefcount", lambda _: 0)
_MOST_IDLE = 256  # for so many threads
_TRACERS_KEEP = sys.version_info < (3, 11)  # what a frame had, in a dict that stays: then only other threads are spared


class _Ending:
    """A call that ends a transaction. It exists as long as that lasts, however it ends."""

    __slots__ = ("__weakref__",)


class Unit(Generic[T]):
    """A transaction, and the schema object *view* that a program gets for it.

    *tables* are those bound so far, by name, for this transaction and those after it; *storages* describe them all.

    Where references are counted, a ``with`` statement gets *exit*, a method of the transaction, and whether it still
    has it, the count says. The end of a statement that writes is to be noticed at once. So when it has begun, *exit* is
    *other*, another such method, and *watch* refers to the one that only the statement has. `give_back` takes it again.
    """

    __slots__ = (
        "alone", "count", "ending", "exit", "names", "other", "release", "storages", "tables", "txn", "view", "watch",
    )  # fmt: skip

    def __init__(self, pool: Pool[T], txn: Any, view: T, storages: Mapping[str, Any]) -> None:
        # When the transaction has ended with its block.
        self.release: Callable[[Unit[T]], object] = pool.idle.append if COUNTS_REFERENCES else _drop
        self.txn = txn
        self.view = view
        self.storages = storages
        self.tables: dict[str, Any] = {}
        self.names: dict[str, Any] = view.__dict__
        self.ending: dict[ref[_Ending], None] = {}  # of those that exist, the first one ends the transaction
        self.exit: Any = None
        self.other: Any = None
        self.watch: Callable[[], Any] = _nothing
        txn._unit = self
        self.alone = 0
        if COUNTS_REFERENCES:
            # With a callback: the collector calls it before all finalizers.
            txn._store.live[id(txn)] = ref(txn, partial(_found, ref(pool), ref(pool.idle)))
            self._make_exit()
            # Besides tables, this object has the transaction, and so do *exit*, *other*, and what *watch* calls.
            self.alone = IDLE + (1 if self.other is None else 3)
        self.count = self.alone
        """What `references` says of the transaction while nobody else has it, and it is not open."""

    def look_at_tables(self) -> None:
        """There are others in *tables* than before: the next transaction looks at each of them."""
        self.count = self.alone + len(self.tables)
        self.txn._seen = self.txn._seen_era = -1  # as its `_look_at_tables`

    def _make_exit(self) -> None:
        txn = self.txn
        self.exit = txn._leave if kept is None else kept(txn._leave)
        if txn._write:
            self.watch = ref(self.exit, txn._left)
            self.other = txn._leave

    def give_back(self) -> None:
        """The transaction has ended with its block: the unit may be used again."""
        if self.other is not None:
            self.exit = self.watch()
            if self.exit is None:  # an interrupt came, or there was no statement
                self._make_exit()
        self.release(self)

    def stay_alone(self) -> None:
        """Join no group, and be used only once."""
        self.txn._hold.join = None
        self.release = _drop

    def is_unheld(self) -> bool:
        """Whether the program no longer has the schema object; other code may have it for a moment."""
        return COUNTS_REFERENCES and references(self.view) == IDLE

    def end_if_over(self) -> None:
        """End the transaction if nobody has it: its ``with`` statement, which held a method of it, is over.

        The caller must not have the transaction in a variable.
        """
        if self._is_left():
            self.end_if(self._is_left)

    def end_if(self, still: Callable[[], bool]) -> None:
        """End the transaction if it is *still* to be ended, and no other thread does so now.

        Of two threads that find out the same, the second one might end what a third has begun meanwhile with these
        objects.
        """
        me = _Ending()
        try:
            mine = ref(me)
            self.ending[mine] = None
            for one in list(self.ending):
                if one is mine:
                    if still():
                        self.txn._clear()
                elif one() is None:  # an interrupt came
                    self.ending.pop(one, None)
                    continue
                break
            self.ending.pop(mine, None)
        finally:
            del me  # a traceback keeps the frame

    def is_dropped(self) -> bool:
        """Whether nobody has any part of it, also while other threads run.

        A thread gets from the transaction, which `Database.read` has in a variable, to the schema object, from there to
        a table, and from there to what iterates, which has the transaction again. The parts are looked at in this
        order, or a thread could have each of them while another one is looked at.
        """
        since, raw, in_with = self.txn._since, self.txn._raw, self.txn._in_with
        if not COUNTS_REFERENCES or not since or self._has_transaction():
            return False
        if not in_with and not self.is_unheld():
            return False
        for name in list(self.tables):
            table = self.tables.get(name)
            if table is None or not is_free(table, 1 + (HELD - 1) * (name in self.txn._tables)):
                return False
        # If these have changed, it is another transaction by now.
        return not self._has_transaction() and self.txn._raw is raw and self.txn._since == since

    def _has_transaction(self) -> bool:
        """Whether somebody else has the transaction, which is open."""
        count = len(self.tables)  # first, and once more: another thread may bind a table
        if references(self.txn) != IDLE + count + 1 or len(self.tables) != count:  # one has *exit*
            return True
        return references(self.exit) != IDLE + (self.other is not None)

    def _is_left(self) -> bool:
        if self.txn._in_with:
            return COUNTS_REFERENCES and not self._has_transaction()
        return self.is_dropped() or (_TRACERS_KEEP and self.txn._thread == get_ident() and self.is_unheld())


def _nothing() -> None:
    return None


def _drop(unit: Unit[Any]) -> None:
    """In place of `Pool.idle.append`.

    The transaction has a finalizer. PyPy frees what it refers to only when it has looked through all objects, and that
    took most of the time of small blocks. So it lets go of the tables, which nobody will use again.
    """
    if not COUNTS_REFERENCES:
        unit.names.clear()  # first: as in `_let_go`, which empties the dicts; these are as large empty
        unit.tables = {}
        txn = unit.txn
        txn._tables = {}
        txn._aimed = []
        txn._mixed = False


class Pool(Generic[T]):
    """The unused units of one kind of transaction of an open database."""

    __slots__ = ("__weakref__", "idle")

    def __init__(self) -> None:
        self.idle: deque[Unit[T]] = deque(maxlen=_MOST_IDLE)

    def another(self, unit: Unit[T]) -> Optional[Unit[T]]:
        """A unit that nobody else refers to, after *unit* was taken, to which somebody does; None if there is none."""
        self.idle.append(unit)
        del unit
        try:
            unit = self.idle.popleft()
        except IndexError:  # perhaps another thread took it
            return None
        if is_unused(unit):
            return unit
        self.idle.append(unit)
        return None


def _found(pool: ref[Pool[Any]], idle: ref[deque[Unit[Any]]], known: object) -> None:
    """The collector has found a transaction whose unit is of *pool*, and goes to *idle*, and calls finalizers next."""
    home, units = pool(), idle()
    if home is not None and units is not None and home.idle is units:
        fresh: deque[Unit[Any]] = deque(maxlen=_MOST_IDLE)
        home.idle = fresh
        with suppress(IndexError):
            while True:  # those that wait there are in use by nobody, so that it has not found them
                unit = units.popleft()
                unit.release = fresh.append
                fresh.append(unit)


def is_unused(unit: Unit[Any]) -> bool:
    """Whether nobody else refers to *unit*, which is not open, or to its schema object, transaction or method."""
    # `Database.read` and `Database.write` have this in line.
    return references(unit.txn) == unit.count and references(unit.view) == IDLE and references(unit.exit) == IDLE


def is_free(table: Any, dicts: int = 1) -> bool:
    """Whether nobody has the bound *table*, or a view of its indexes, except so many *dicts* of its unit."""
    views = table._views
    count = references(table) - dicts
    if not views:
        return count == _TABLE
    return count == _TABLE + len(views) and all([references(view) == _VIEW for view in views.values()])


class _Probe:
    """Represents the objects that the functions above count, while nobody else refers to it."""

    def __init__(self) -> None:
        self.view = object()
        self._views: dict[str, Any] = {}


# A tracer may be at work already, such as a debugger that the program was started by. Before Python 3.13 the frames
# that it looks at have their variables in a dict as well, which is counted. So here each has that dict, tracer or not.


def _in_dict(variables: dict[str, Any]) -> int:
    """How many references the dict of the *variables* of a frame, which the caller has just asked for, has to each."""
    return int(COUNTS_REFERENCES and sys.version_info < (3, 13))


def _attribute_count() -> int:
    probe = _Probe()
    return references(probe.view)


def _table_count(kept: dict[str, Any]) -> int:
    table = kept.get("")
    more = _in_dict(locals())
    return _argument_count(table) - len((kept,)) - more


def _argument_count(table: Any) -> int:
    more = _in_dict(locals())
    return references(table) - more


def _kept_count(*kept: dict[str, Any]) -> int:
    for table in kept[0].values():
        more = _in_dict(locals())
        return references(table) - more
    return 0


def _view_count() -> int:
    views = {"": _Probe()}
    return [-_in_dict(locals()) + references(view) for view in views.values()].pop()


IDLE = _attribute_count()
"""What `references` says of what one object has, as a unit has each of its parts while nobody else does."""
_TABLE = _table_count({"": _Probe()})
HELD = 4
"""So many have a bound table of the present transaction: `Unit.tables` and `Unit.names`, and two of the transaction."""
IN_LOOP = _kept_count({"": _Probe()}) + HELD - 1
"""What `references` says of such a table in a loop over one of them."""
_VIEW = _view_count()
