"""The end of the program: what was submitted is stored before, and nothing waits for a thread that Python has stopped.

Python waits for the threads that are no daemons, and then calls the functions of `atexit`. Daemons go on meanwhile.
Afterwards it stops them for ever, wherever they are, and calls finalisers while it clears the modules.

The thread of what was submitted is no daemon, so Python waits for it. It ends when all others that are left are
daemons, and what they have submitted until then is stored: they may go on to submit for ever. From then on who submits
stores that himself (see `begun`), and so do functions of `atexit`. `_end` sees to what those submit that come before
it: the ones that were registered after something was submitted for the first time.
"""

from __future__ import annotations

import atexit
import threading
import time
from typing import TYPE_CHECKING, Any, Optional
from weakref import ref

from .holds import is_stopped, refuse_to_wait

if TYPE_CHECKING:
    from .groups import Groups

_SOON = 0.001  # seconds in which a thread begins
WORKER = "zlmdb-submit"
"""The name of the threads of what was submitted."""

_LOOK_AGAIN = 0.002  # seconds between two looks whether something is stored

begun = False
"""Whether nobody waits any more for what is submitted from now on: the caller has to."""


_submitting: dict[ref[Groups], None] = {}  # no `WeakSet`: daemons may add to it while it is iterated over


def _dropped(one: ref[Groups]) -> None:
    _submitting.pop(one, None)


def watch(one: Groups) -> None:
    """Wait for what is submitted to that *one*, before the program ends."""
    _submitting.setdefault(ref(one, _dropped))


def is_near() -> bool:
    """Whether Python may refuse to begin a thread because the program ends: since 3.12, when it waits for the rest."""
    return is_stopped() or not threading.main_thread().is_alive()


def work_here(one: Groups, db: Any, member: Any) -> None:
    """Let this thread store *member*, unless it keeps it from that itself. Raises as `refuse_to_wait`."""
    while member in one._submitted and not one.may_be_kept():
        if one._lead.is_taken():
            refuse_to_wait(one._lead.owner, one._store.engine.path)
        one._settle(db)


def goes_on(worker: threading.Thread, seconds: float) -> Optional[bool]:
    """Wait for *seconds* at most for the end of *worker*; whether it has not ended. None if it has not even begun."""
    try:
        worker.join(seconds)
    except RuntimeError:  # another thread is about to start it
        time.sleep(_SOON)
        return None
    return worker.is_alive()


def is_due() -> bool:
    """Whether Python waits for nothing but what was submitted, if for that: what else is left are daemons."""
    global begun
    main = threading.main_thread()
    if not begun and not main.is_alive():
        left = [one for one in threading.enumerate() if not one.daemon and one is not main and one.name != WORKER]
        begun = not left
    return begun


is_due()  # perhaps this is imported by a function of `atexit`, after which `_end` does not come any more


@atexit.register
def _end() -> None:
    global begun
    begun = True  # first: what is submitted meanwhile is seen here, or its caller sees this
    for known in list(_submitting):
        one = known()
        for member in [] if one is None or one.is_of_parent() else list(one._submitted):
            while one is not None and member in one._submitted and not one.may_be_kept():
                if all([goes_on(worker, _LOOK_AGAIN) is False for worker in list(one._workers)]):
                    break
