"""Deleting expired records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Optional

from ..numeric import is_whole
from ..shown import shortened
from ..tables.expiring import Expiring
from ..tables.storage import Storage

if TYPE_CHECKING:
    from .methods import Operations

_STEP = 500  # records that one transaction deletes


def sweep(db: Operations, storages: Mapping[str, tuple[Any, Storage[Any, Any]]], limit: Optional[int]) -> int:
    """Delete expired records of all tables of *db*, at most *limit*; returns their number."""
    meant = "expected the greatest number of records, 0 or more, or None for all"
    if limit is not None and not is_whole(limit):
        raise TypeError(f"limit={shortened(limit)}: {meant}")  # a transaction of 1.5 records would delete all
    if limit is not None and limit < 0:
        raise ValueError(f"limit={limit}: {meant}")
    swept = 0
    for name, (_, storage) in list(storages.items()):  # another thread may make tables meanwhile
        more, last = storage.expiring is not None, b""
        while more and swept != limit:
            most = _STEP if limit is None else min(_STEP, limit - swept)
            with db.write() as t:
                table: Expiring = t[name]
                found = table._expired(most, last)
                deleted = table._sweep(found)
            swept += deleted
            more = len(found) == most
            last = found[-1][0] if found else last
    return swept
