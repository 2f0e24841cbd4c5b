"""Changes of a catalogue that are written together."""

from __future__ import annotations

from typing import Any, Optional

from ..engines import Transaction


class Batch:
    """What is written together in *txn*: definitions of tables, None to remove one; the *last* slot number in use."""

    def __init__(self, txn: Transaction, last: Optional[int] = None) -> None:
        self.txn = txn
        self.last = last
        self.changed: dict[str, Optional[dict[str, Any]]] = {}
