"""Whether there is room for what a transaction stores in a file with a limit, and still for deletions after it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Union

import lmdb

from ...locks import monotonic as _clock
from ..environment import Handle
from .readertable import slots

_ABSENT = (lmdb.InvalidParameterError, lmdb.BadDbiError, lmdb.NotFoundError)
META_PAGES = 2  # at the beginning of every file

FASTEST = 1 << 36
"""Bytes a second. A writer copies each page that it adds, and none does so as fast: memory of today has a tenth."""


def excess(
    env: lmdb.Environment, txn: lmdb.Transaction[Any], handles: Iterable[Handle], limit: int, room: int, begun: float
) -> Union[str, float]:
    """Why *txn* may not be committed to a file of *limit* bytes, in words; where it may, when to ask again.

    LMDB's own limit is *room* bytes beyond, where deletions find the pages that they write anew. What is limited here
    are the pages in use, those that *txn* frees not among them. *handles* are those of all sub-databases.

    To ask takes longer than a small transaction. But *txn* has *begun* with the size that LMDB tells, and since then it
    can have stored no more than time allows; so can all others after it, of any process, as one writes at a time.
    """
    size, info = env.stat()["psize"], env.info()
    taken, more = (info["last_pgno"] + 1) * size, (_clock() - begun) * FASTEST
    if taken + more < limit:
        return begun + (limit - taken) / FASTEST
    if taken >= limit + room // 2 and _is_held_back(env, info["last_txnid"]):
        return "an open read transaction keeps it from using free pages again"
    handles = list(handles)  # so late, as few transactions come here
    with env.begin() as before:
        used = _used(before, handles) * size
    if used + more >= limit:
        now = _used(txn, handles) * size
        if now > max(limit, used):
            return f"its records would take {now}"
    return begun + min(limit + room // 2 - taken, limit - used) / FASTEST


def _used(txn: lmdb.Transaction[Any], handles: Iterable[Handle]) -> int:
    """The pages of all trees, but not of LMDB's list of free pages, and the meta pages."""
    found = META_PAGES
    for handle in (None, *handles):
        try:
            tree = txn.stat() if handle is None else txn.stat(handle)
        except _ABSENT:  # made in a later transaction
            continue
        found += tree["branch_pages"] + tree["leaf_pages"] + tree["overflow_pages"]
    return found


def _is_held_back(env: lmdb.Environment, latest: int) -> bool:
    """Whether anybody reads an older state than the *latest*, whose pages cannot be used again."""
    return any(snapshot is not None and snapshot < latest for _, snapshot in slots(env))
