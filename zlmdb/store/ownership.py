"""Which thread may write by a bound table: a lock that the thread holds, which one call of C asks.

To compare numbers of threads takes two and a half times as long, which was a twentieth of a write.
"""

from __future__ import annotations

import threading
from typing import Any

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
