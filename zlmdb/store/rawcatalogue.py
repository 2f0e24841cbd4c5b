"""The tables of an LMDB file that zlmdb did not write: its sub-databases, with keys and values of bytes."""

from __future__ import annotations

from typing import Optional

from .. import errors
from ..engines import Transaction
from .slots import Keyspace, Slot
from .tablescatalogue import TablesCatalogue


def space_of(name: str) -> bytes:
    """The sub-database of the table *name*."""
    return name.encode(errors="surrogateescape")


class RawCatalogue(TablesCatalogue):
    """The catalogue of a file without one. Nothing is recorded anywhere."""

    def read(self, txn: Transaction) -> dict[str, Slot]:
        """Every sub-database, by name."""
        found = self._store.engine.space_names(self._store.environment, txn)
        names = [name.rstrip(b"\0").decode(errors="surrogateescape") for name in found]
        return {name: Slot(name, 0, key="bytes", value="bytes") for name in names}

    def slot(self, txn: Transaction, name: str, number: int = 0) -> Optional[Slot]:
        """The table *name*, or None."""
        return self.read(txn).get(name)

    def keyspace(self, slot: Slot) -> Keyspace:
        """The sub-database itself."""
        return Keyspace(space_of(slot.name), b"")

    def write(self, txn: Transaction, slot: Slot) -> None:
        """Refused: the file would not be that of the other program any more."""
        raise errors.SchemaMismatch(
            f"table {slot.name!r}: a file that is open with layout='raw' records no tables: adopt it, db.adopt()",
            table=slot.name,
        )

    def records(self, txn: Transaction, name: str) -> tuple[Optional[bytes], ...]:
        """None: nothing changes."""
        return ()

    def damage(self, txn: Transaction) -> list[str]:
        """None: there is nothing that could be damaged."""
        return []
