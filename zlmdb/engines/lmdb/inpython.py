"""py-lmdb in Python, as on PyPy: what a signal handler raises may come between any two of its steps.

The lock of its calls of LMDB would stay taken, or a transaction of LMDB would be lost that has just begun. For the end
of that one the next writer would wait forever.

It holds that lock while LMDB commits, syncs or copies, too, so that readers would wait for the disk: here they do not.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from threading import get_ident
from typing import Any

import lmdb

from ...locks import undisturbed

_COLLECTIONS = 3  # what one finds may let go of others
_LONG = ("mdb_txn_commit", "mdb_env_sync", "mdb_env_copyfd2", "mdb_env_copyfd3")  # these wait for the disk
_ALONE = ("close", "set_mapsize")  # these free or move what the calls of all others use
_FIRST_PAUSE, _LAST_PAUSE = 0.00002, 0.001


def undisturb(env: Any) -> None:
    """Let no signal disturb the calls of LMDB, no read wait for the disk, and no write for a lost transaction."""
    cursor: Any = lmdb.Cursor
    if not hasattr(cursor, "_cur"):
        cursor._cur = None  # of one that was interrupted while it was made: else its transaction could not end
    if hasattr(env, "_close_lock") and hasattr(env, "_wait_for_write_txn"):
        env._close_lock = calls = _Calls(env._close_lock)
        env._lib = calls.without_lock(env._lib)
        for name in _ALONE:
            setattr(env, name, calls.alone(getattr(env, name)))
        cls: Any = env.__class__
        wait: Callable[[Any], None] = cls._wait_for_write_txn

        def ready() -> None:
            for _ in range(_COLLECTIONS):
                if not env._write_txn_tid:  # our writers come one after the other: so this is what it should be
                    break
                gc.collect()
            wait(env)

        env._wait_for_write_txn = ready


class _Calls:
    """The *lock* of all calls of LMDB. While it is taken no signal handler runs; a call that takes long lets go of it.

    Who finds it taken looks again soon. To wait for it would take longer than most calls, which end before the thread
    that is woken goes on: with ten threads that read, each read waited.
    """

    __slots__ = ("_alone", "_long", "acquire", "release")

    def __init__(self, lock: Any) -> None:
        self.acquire: Callable[[bool], bool] = lock.acquire
        self.release: Callable[[], None] = lock.release
        self._alone: set[int] = set()  # the threads that wait for the end of all long calls, or are past it
        self._long: set[object] = set()

    def __enter__(self) -> None:
        undisturbed.__enter__()
        if not self._taken():
            pause = _FIRST_PAUSE
            while not self._taken():
                undisturbed.__exit__(None, None, None)
                time.sleep(pause)
                pause = min(2 * pause, _LAST_PAUSE)
                undisturbed.__enter__()

    def _taken(self) -> bool:
        if not self.acquire(False):
            return False
        if self._alone and self._long and get_ident() in self._alone:
            self.release()
            return False
        return True

    def __exit__(self, *error: object) -> None:
        self.release()
        undisturbed.__exit__(None, None, None)

    def alone(self, call: Callable[..., None]) -> Callable[..., None]:
        """The method *call* of the environment, which has the lock when no long call is running."""

        def called(*args: Any) -> None:
            thread = get_ident()
            self._alone.add(thread)
            try:
                call(*args)
            finally:
                self._alone.discard(thread)

        return called

    def without_lock(self, lib: Any) -> Any:
        """The functions of LMDB that *lib* has: those that take long are called without the lock, and have it again."""
        functions = {name: getattr(lib, name) for name in dir(lib) if not name.startswith("_")}
        functions.update({name: self._unlocked(functions[name]) for name in _LONG if name in functions})
        return type("Library", (), functions)

    def _unlocked(self, call: Callable[..., int]) -> Callable[..., int]:
        def called(*args: Any) -> int:
            running = object()
            self._long.add(running)
            self.release()
            try:
                return call(*args)
            finally:
                self._long.discard(running)
                self.acquire(True)

        return called
