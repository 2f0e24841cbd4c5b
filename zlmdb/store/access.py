"""What a bound table may use: the engine's transaction until that ends, and to write, only in the thread that began it.

A table holds functions of the engine's transaction. After the end others replace them, and every use of those raises.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NoReturn

from .. import errors


def closed(*args: Any, **kwargs: Any) -> NoReturn:
    """Replaces the engine's functions after the end of a transaction."""
    raise errors.TransactionClosed(
        "the transaction has ended, or has not begun: use its tables inside its with block, and what is selected "
        "there; a function that returns records of a block returns a list, as .all() gives it"
    )


def forked(*args: Any, **kwargs: Any) -> NoReturn:
    """Replaces the engine's functions in a forked child."""
    raise errors.ForkedTransaction("this transaction was begun before fork(): begin one in the child process")


class Ended:
    """Replaces the engine's transaction in a table after the end: every use raises."""

    def __init__(self, refuse: Callable[..., NoReturn]) -> None:
        self.get = self.put = self.delete = self.drop = self.cursor = self.stat = refuse
        self.reader = refuse, None


CLOSED, FORKED = Ended(closed), Ended(forked)
NO_READER = CLOSED.reader
"""What a bound table has after the end: see `TableState._reader`."""

# Which thread may write: a lock that the thread holds, which one call of C asks. To compare numbers of threads takes
# two and a half times as long, which was a twentieth of a write.

NOBODY: Any = (threading.RLock(), None, None, None, False, None)
"""What a bound table has where no thread may write: see `TableState._writer`. No thread ever holds this lock."""

_MOST = 1000
LOCKS: dict[int, Any] = {}
"""By thread: what `lock_of` returns."""


def lock_of(thread: int) -> Any:
    """The lock that is held by *thread*, the calling one, for good. ``_is_owned()`` says whether the caller holds it.

    A later thread that the system gives the same number holds it then.
    """
    lock = LOCKS.get(thread)
    if lock is None:
        if len(LOCKS) >= _MOST:  # threads that have ended: systems do not always give their numbers again
            LOCKS.clear()
        lock = threading.RLock()
        lock.acquire()
        LOCKS[thread] = lock
    return lock
