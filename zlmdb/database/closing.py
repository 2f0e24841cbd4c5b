"""Closing a database that others use: nobody begins any more, and what is open has some time to end."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from .. import errors
from ..locks import monotonic
from ..numeric import checked_seconds
from ..shown import shown_path
from ..store.admission import stop_beginning
from ..store.holds import Hold

if TYPE_CHECKING:
    from .database import Database

_PAUSE = 0.001  # seconds between two looks whether all have ended; more of them, the longer it takes
_LONGEST = 0.02


def close_within(db: Database[Any], timeout: float) -> None:
    """Close *db* when all that is open has ended. Raises `DatabaseInUse` after *timeout* seconds; then *db* goes on."""
    timeout = checked_seconds("timeout", timeout)
    end, pause = monotonic() + timeout, _PAUSE
    store = db._store
    if store is None:
        db._close()
        return
    me, hold = threading.get_ident(), Hold()

    def admits() -> bool:
        groups = db._groups
        return db._entered > 0 or (groups is not None and threading.current_thread() in groups._workers)

    try:
        store.end_leftovers()
        # If somebody else has it open, too, it stays so: this is one less, as in `close`.
        while db._store is not None and not db._entered and store.users <= 1:
            left = end - monotonic()
            closing = stop_beginning(store, admits, max(0.0, left))
            if closing is not None:
                closing.check(" in this thread", me)  # they do not end while it waits
                groups = db._groups
                if groups is not None:
                    groups.finish(end)
                # A forked child has none of what its parent has submitted.
                submitted = groups is not None and not groups.is_of_parent() and groups._submitted
                if closing.is_over() and not submitted:
                    hold.thread = me
                    # Who uses the lock file as it is closed would be refused: so nobody does.
                    if store.writer._claims.setdefault(0, hold) is hold:
                        break
            if left <= 0:
                store.end_leftovers()
                if closing is not None:
                    closing.check(f" after the timeout of {timeout} s")
                raise errors.DatabaseInUse(
                    f"the database {shown_path(db._opening.path)} was at work for longer than the timeout of {timeout} "
                    f"s: with what was submitted, with its tables, or with its file; give a longer timeout"
                )
            time.sleep(min(pause, max(0.0, left)))
            pause = min(pause * 2, _LONGEST)
        db._close()
    finally:
        store.writer.release(hold)
        store.go_on()  # if it was closed, there is nothing to go on with
