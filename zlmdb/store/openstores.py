"""The files open in this process: one environment each, whatever the number of databases and the spelling of paths."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from typing import Any, Optional

from .. import errors, locks
from ..engines import Engine, Options, registry
from ..locks import monotonic
from ..namedtuples import NamedTuple
from .layout import Layout
from .store import Store

lock = locks.rlock()
"""Held while files are opened and closed, but not while one that is open waits for its writer."""

sharing = locks.rlock()
"""Held while a thread looks for an open handle, or opens one. `lock` may be taken inside, not around."""

_stores: dict[Hashable, Store] = {}
_handles: weakref.WeakValueDictionary[Hashable, Any] = weakref.WeakValueDictionary()  # both by `Engine.identity`
_unprepared: weakref.WeakKeyDictionary[Store, Any] = weakref.WeakKeyDictionary()
"""The open stores whose layout is not known yet, each with what is held by the thread that finds out."""

_replaced: set[Hashable] = set()
"""Those that this process replaces just now."""

_inherited: weakref.WeakSet[Store] = weakref.WeakSet()
"""Those that were open when this process was forked."""

_USUAL = {"lock": True, "writemap": False, "lib_version": None, "mode": None}

at_close: list[Callable[[], None]] = []
"""What is called when a database was closed: those who wait for something in it learn of that."""


class Opening(NamedTuple):
    """How a database is opened.

    *exclusive*: nobody else in this process may have the file open. *slots_expected*: a file of zlmdb <= 26 is
    recognised although it may hold nothing but slots. *layout*: that of a new file. *timeout*: seconds to wait for
    another writer. *directory_only*: *create* is about the directory, as it was in zlmdb <= 26, and not the file.
    *verify*: its pages are looked at first. *drop_indexes*: those go that the schema does not declare.
    *build_indexes*: those of large tables are built.
    """

    path: Optional[str]
    options: Options
    layout: Layout = "tables"
    create: bool = True
    exclusive: bool = False
    slots_expected: bool = False
    timeout: Optional[float] = None
    directory_only: bool = False
    verify: bool = False
    drop_indexes: bool = False
    build_indexes: bool = True

    @property
    def engine(self) -> Engine:
        """The engine for what is to be opened."""
        return registry.engine(self.path, self.options, create=self.create)


_FORK_PATIENCE = 1.0  # seconds for other threads to open or close what they are opening or closing
_held: list[Any] = []


def _before_fork() -> None:
    """Wait for other threads: what is half open is unknown to the child, which could neither use it nor open it."""
    if lock.acquire(timeout=_FORK_PATIENCE):
        _held.append(lock)


def _in_parent() -> None:
    while _held:
        _held.pop().release()


def _in_child() -> None:
    """In a forked child: replace locks that another thread of the parent may have held."""
    _held.clear()
    global lock, sharing
    lock, sharing = locks.rlock(), locks.rlock()
    _replaced.clear()
    _inherited.update(_stores.values())
    for store in list(_unprepared):
        _unprepared[store] = locks.lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)


def checked_options(path: Optional[str], *, maxsize: Optional[int], **others: Any) -> Options:
    """The options of the engine for *path*, without those that have their usual values: it need not know them.

    Raises TypeError or ValueError if *maxsize* is not a number of bytes, or there is no such LMDB format.
    """
    version = others["lib_version"]
    if version not in (None, "0.9", "1.0"):
        raise ValueError(f"lib_version={version!r}: expected '0.9', '1.0', or None for what the file has")
    for name, usual in _USUAL.items():
        if name in others and others[name] == usual:
            del others[name]
    if maxsize is not None and (type(maxsize) is bool or not hasattr(maxsize, "__index__")):
        advice = f"; a schema is given to zlmdb.open(path, {maxsize.__name__})" if isinstance(maxsize, type) else ""
        raise TypeError(f"maxsize={maxsize!r}: expected a number of bytes, or None to grow without limit{advice}")
    if maxsize is not None and maxsize <= 0:
        raise ValueError(f"maxsize={maxsize!r}: expected a number of bytes above 0, or None to grow without limit")
    return registry.options(path, maxsize=maxsize, **others)


def _has_global_lock() -> bool:
    """Whether threads take turns. How transactions are reused, and what ends them, relies on it."""
    enabled: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)  # since 3.13
    return enabled()


def acquire(opening: Opening, handle: Any) -> Store:
    """The store of the file for *handle*, opened if necessary, also as its ``_store``; call `release` for each.

    Raises `DatabaseInUse` if it is open with other options, or at all if *opening* is exclusive; RuntimeError if Python
    runs without its global lock.
    """
    if not _has_global_lock():  # not before: the import of an engine may have turned it on
        raise RuntimeError(
            "zlmdb needs Python's global interpreter lock (GIL), and it is off: start Python without PYTHON_GIL=0 and "
            "-X gil=0, or with PYTHON_GIL=1"
        )
    store: Optional[Store] = None
    try:
        with lock:
            store = _shared(opening, handle)
            store.users += 1
            preparing = _unprepared.get(store)
        if opening.verify:
            _verify(store, opening.timeout)
        if preparing is not None:
            _prepare(store, opening, preparing)
        handle._store = store  # here: an interrupt may come before the caller has what is returned
    except BaseException:
        if store is not None:
            release(store)
        with lock:  # an interrupt may have come before it was known here
            for unused in [one for one in _stores.values() if not one.users]:
                release(unused)
        raise
    return store


def _verify(store: Store, timeout: Optional[float]) -> None:
    """Raise `CorruptDatabase` unless the pages of *store* are sound."""
    wrong = store.verify(timeout=timeout)
    if wrong:
        more = f" (and {len(wrong) - 1} problems more)" if len(wrong) > 1 else ""
        raise errors.CorruptDatabase(
            f"{store.engine.path!r} is damaged: {wrong[0]}{more}: "
            f"restore a backup, or copy the readable records with zlmdb.Database.salvage()",
            path=store.engine.path,
        )


def release(store: Store, earlier: Optional[Callable[[], None]] = None) -> None:
    """One handle less; the last one closes the environment. *earlier*: what else was put off until now."""
    if earlier is not None:
        earlier()
    with lock:
        store.at_rest = None
        if store.users <= 1:
            store.close()
            for key, known in list(_stores.items()):
                if known is store:
                    del _stores[key]
        else:
            store.users -= 1


def present(opening: Opening) -> Any:
    """The open database that opened the file first, or None. Raises `DatabaseInUse` if its options differ."""
    key = opening.engine.identity()
    found = None if key is None else _handles.get(key)
    if found is None or not found.is_open:
        return None
    _check_options(found._store, opening)
    return found


def is_open(path: str) -> bool:
    """Whether this process has the database at *path* open, under any path."""
    with lock:
        return registry.engine(path).identity() in _stores


@contextmanager
def kept_closed(path: str) -> Generator[None, None, None]:
    """A block that replaces the database at *path*. Raises `DatabaseInUse` if this process has it open.

    So does opening it in another thread meanwhile: between processes there are locks, which are none in the same one.
    """
    with lock:
        key = registry.engine(path).identity()
        if key in _stores:
            raise errors.DatabaseInUse(f"{path!r} is open in this process: close it first", path=path)
        _refuse_replaced(key, path)
        if key is not None:
            _replaced.add(key)
    try:
        yield
    finally:
        _replaced.discard(key)


def _refuse_replaced(key: Optional[Hashable], path: Optional[str]) -> None:
    if key in _replaced:
        raise errors.DatabaseInUse(
            f"another thread of this process replaces {path!r} by a backup: open it after that", path=path
        )


def moved(store: Store) -> None:
    """The file of *store* was replaced by another one under the same path."""
    with lock:
        for key, known in list(_stores.items()):
            if known is store:
                handle = _handles.pop(key, None)
                del _stores[key]
                new = store.engine.identity()
                if new is not None:
                    _stores[new] = store
                    if handle is not None:
                        _handles[new] = handle


def _shared(opening: Opening, handle: Any) -> Store:
    engine = opening.engine
    key = engine.identity()
    store = None if key is None else _stores.get(key)
    if store is None:
        if _replaced:
            _refuse_replaced(key, opening.path)
        store = Store(engine, opening.layout)
        _unprepared[store] = locks.lock()
        key = engine.identity()
        if key is not None:
            _stores[key], _handles[key] = store, handle
    else:
        _check_sharing(store, opening)
        if key is not None and present(opening) is None:
            _handles[key] = handle
    return store


def _prepare(store: Store, opening: Opening, preparing: Any) -> None:
    """Recognise the layout of *store*, unless another thread has done so meanwhile.

    It waits for a program that is writing, and must not block the opening and closing of other files.
    """
    timeout = opening.timeout
    if not preparing.acquire(blocking=False):
        start = monotonic()
        if not preparing.acquire(timeout=-1 if timeout is None else min(max(timeout, 0), threading.TIMEOUT_MAX)):
            raise errors.WriterTimeout(
                f"another thread has been opening {opening.path!r} for more than the timeout of {timeout} s: try "
                f"again, or give a longer timeout",
                path=opening.path,
            )
        timeout = None if timeout is None else max(0, timeout - (monotonic() - start))
    try:
        if store in _unprepared:
            store.set_layout(opening.layout)
            store.prepare(slots_expected=opening.slots_expected, timeout=timeout)
            _unprepared.pop(store, None)  # without the lock, whose owner may be waiting here
    finally:
        preparing.release()


def _check_sharing(store: Store, opening: Opening) -> None:
    if (store.layout == "raw") != (opening.layout == "raw"):
        raise errors.DatabaseInUse(
            f"{opening.path!r} is already open in this process with layout={store.layout!r}: use the same, or close it"
        )
    if opening.exclusive:
        raise errors.DatabaseInUse(
            f"{opening.path!r} is open in this process already: use Database.open(), which shares it, or "
            "close the other one"
        )
    _check_options(store, opening)


def _check_options(store: Store, opening: Opening) -> None:
    engine, env = store.engine, store.present
    if env is None:
        env = store.environment
    found, wanted = engine.settled(env, engine.options), engine.settled(env, opening.options)
    if found != wanted:
        given = found._asdict()  # documented of named tuples, which options are
        differ = [name for name, value in given.items() if value != getattr(wanted, name)]
        has, asked = (", ".join(f"{name}={getattr(one, name)!r}" for name in differ) for one in (found, wanted))
        where, advice = "in this process", "use the same options, or close it first"
        if store in _inherited:
            where = "in this process, which was forked while it was open,"
            advice = (
                "use the same options, or the database that the parent has opened, or close that one before the fork"
            )
        raise errors.DatabaseInUse(f"{opening.path!r} is already open {where} with {has}, not with {asked}: {advice}")
