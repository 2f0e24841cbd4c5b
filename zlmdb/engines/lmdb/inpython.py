"""py-lmdb in Python, as on PyPy: what a signal handler raises may come between any two of its steps.

The lock of its calls of LMDB would stay taken, or a transaction of LMDB would be lost that has just begun. For the end
of that one the next writer would wait forever.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import lmdb

from ...locks import Undisturbed

_COLLECTIONS = 3  # what one finds may let go of others


def undisturb(env: Any) -> None:
    """Let no signal disturb the calls of LMDB, and a write not wait for a transaction that nothing refers to."""
    cursor: Any = lmdb.Cursor
    if not hasattr(cursor, "_cur"):
        cursor._cur = None  # of one that was interrupted while it was made: else its transaction could not end
    if hasattr(env, "_close_lock") and hasattr(env, "_wait_for_write_txn"):
        env._close_lock = Undisturbed(env._close_lock)
        cls: Any = env.__class__
        wait: Callable[[Any], None] = cls._wait_for_write_txn

        def ready() -> None:
            for _ in range(_COLLECTIONS):
                if not env._write_txn_tid:  # our writers come one after the other: so this is what it should be
                    break
                gc.collect()
            wait(env)

        env._wait_for_write_txn = ready
