"""Builds the indexes that the file has begun: `Database.build_indexes`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from .. import errors
from ..schema.declaration import Declaration
from ..schema.indexbatches import build_in_batches
from ..store.store import Store
from .progress import Progress, Told


def build_indexes(
    store: Store, declared: Sequence[Declaration], told: Optional[Told], timeout: Optional[float]
) -> None:
    """Build the *declared* indexes that the file has, and that lack entries."""
    if store.readonly:
        store.refuse_write()
    if store.layout == "raw":
        return

    def tell(names: str, done: int, total: Optional[int]) -> None:
        if told is not None:
            told(Progress(f"index {names}", done, total))

    gone = build_in_batches(store, declared, timeout, tell)
    if gone:
        raise errors.IndexNotBuilt(
            f"another process has dropped {', '.join(gone)}, because a record does not fit or because it was told to, "
            f"or has declared another definition: open the database again, which builds what this program declares"
        )
