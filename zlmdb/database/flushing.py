"""Flushes a database every so many seconds, from a thread of its own: `zlmdb.open` with ``flush_every=``."""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import suppress

from .. import errors
from ..log import log
from ..store.holds import is_stopped
from ..store.store import Store


class Flusher:
    """Flushes *store* every *seconds*, if something was committed since. It begins at once, and ends with `stop`."""

    def __init__(self, store: Store, seconds: float) -> None:
        self._store = weakref.ref(store)
        self._seconds = seconds
        self._flushed = -1
        self.start()
        _flushers.add(self)

    def start(self) -> None:
        """Begin, in a forked child or where `stop` was called too early."""
        self._stopped = stopped = threading.Event()
        self._thread = threading.Thread(
            target=_work, args=(weakref.ref(self), stopped, self._seconds), name="zlmdb-flush", daemon=True
        )
        self._thread.start()

    def flush(self) -> None:
        """Flush what was committed since the last time."""
        store = self._store()
        env = None if store is None else store.present
        if store is None or env is None or store.provisional:
            return
        last: int = env.info()["last_txnid"]
        if last != self._flushed:
            with store.translated():
                env.sync(True)
            self._flushed = last

    def stop(self) -> None:
        """End the thread, and flush once more."""
        self._stopped.set()
        if self._thread is not threading.current_thread() and not is_stopped():
            self._thread.join()
        with suppress(errors.DatabaseClosed):
            self.flush()


def _work(flusher: weakref.ref[Flusher], stopped: threading.Event, seconds: float) -> None:
    while not stopped.wait(min(seconds, threading.TIMEOUT_MAX)):
        one = flusher()
        if one is None:
            return
        try:
            one.flush()
        except Exception as error:  # a full disk, perhaps; later ones may succeed
            log.warning("flushing failed, and is tried again in %s seconds: %s", seconds, error)
        del one


_flushers: weakref.WeakSet[Flusher] = weakref.WeakSet()


def _in_child() -> None:
    for flusher in list(_flushers):
        if not flusher._stopped.is_set():
            flusher.start()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
