"""Whether there is room for what a transaction stores in a file with a limit, and still for deletions after it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Optional

import lmdb

from ..environment import Handle

META_PAGES = 2  # at the beginning of every file


def excess(
    env: lmdb.Environment, txn: lmdb.Transaction[Any], handles: Iterable[Handle], limit: int, room: int
) -> Optional[str]:
    """Why *txn* may not be committed to a file of *limit* bytes, in words; None where it may.

    LMDB's own limit is *room* bytes beyond, where deletions find the pages that they write anew. What is limited here
    are the pages in use, those that *txn* frees not among them. *handles* are those of all sub-databases.
    """
    info = env.info()
    size, pages = env.stat()["psize"], info["last_pgno"] + 1
    if 2 * pages * size < limit:  # then LMDB's limit is enough
        return None
    if pages * size >= limit + room // 2 and _is_held_back(env, info["last_txnid"]):
        return "an open read transaction keeps it from using free pages again"
    handles = list(handles)  # so late, as few transactions come here
    used = _used(txn, handles)
    if used * size > limit:
        with env.begin() as before:
            if used > _used(before, handles):
                return f"its records would take {used * size}"
    return None


def _used(txn: lmdb.Transaction[Any], handles: Iterable[Handle]) -> int:
    """The pages of all trees, but not of LMDB's list of free pages, and the meta pages."""
    found = META_PAGES
    for handle in (None, *handles):
        tree = txn.stat() if handle is None else txn.stat(handle)
        found += tree["branch_pages"] + tree["leaf_pages"] + tree["overflow_pages"]
    return found


def _is_held_back(env: lmdb.Environment, latest: int) -> bool:
    """Whether anybody reads an older state than the *latest*, whose pages cannot be used again."""
    snapshots = [line.split()[2] for line in env.readers().splitlines()[1:] if line.strip()]
    return any(snapshot != "-" and int(snapshot) < latest for snapshot in snapshots)
