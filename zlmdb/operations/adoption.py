"""Makes an LMDB file of another program one of zlmdb: its sub-databases become tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Optional

from .. import errors
from ..engines import Handle, Transaction
from ..schema.changedshape import record
from ..schema.declaration import Declaration
from ..schema.rawtables import raw_table
from ..schema.verdict import FITS
from ..store import layout
from ..store.catalogue import catalogue_of
from ..store.ranges import prefixed
from ..store.slots import Slot
from ..store.store import OpenSpace, Store
from ..store.tablescatalogue import TablesCatalogue
from ..tables.storage import Storage


class _NewCatalogue(TablesCatalogue):
    """The catalogue of a file that is just being given one."""

    def __init__(self, store: Store, handle: Handle) -> None:
        super().__init__(store)
        self._new = handle

    def _handle(self) -> Any:
        return self._new


def adopt(store: Store, declared: Mapping[str, tuple[Declaration, Storage[Any, Any]]], timeout: Optional[float]) -> int:
    """Store the records of every sub-database in a table, and give the file a catalogue; returns their number.

    *declared* has the tables of the schema by name; others become tables of bytes. All in one transaction, which
    reads each record by its type: `DecodeError` for the first that does not fit. Raises `SchemaMismatch` for
    sub-databases that cannot be tables, `ConstraintError` for a file with records outside of sub-databases,
    `WriterTimeout`.
    """
    storages = _storages(store, declared)

    def work(txn: Transaction, open_space: OpenSpace) -> int:
        if txn.stat()["entries"] != len(storages):
            raise errors.ConstraintError(
                f"{store.engine.path!r} has records outside of its sub-databases, or another program makes some just "
                f"now: a file of zlmdb has only tables; move or delete those records first"
            )
        catalogue = _NewCatalogue(store, open_space(layout.CATALOGUE))
        open_space(layout.SLOTS)
        moved = 0
        for number, (name, storage) in enumerate(storages.items(), 1):
            slot = Slot(name, number, key=storage.key.name, value=storage.value.name)
            if name in declared:
                one = declared[name][0]
                slot.class_name, slot.description = one.class_name, one.description
                record(store, slot, one, FITS, new=True)
            catalogue.write(txn, slot)
            old, new = open_space(storage.space or b""), open_space(b"t:" + name.encode())
            moved += int(txn.cursor(new).putmulti(_checked(storage, txn, old), append=True)[0])
            txn.drop(old, delete=False)
        txn.put(layout.MAGIC_KEY, layout.encode({"format": layout.FORMAT}), db=open_space(layout.CATALOGUE))
        txn.put(*layout.GUARD)
        return moved

    count = store.change(work, timeout=timeout)
    store.layout, store.contents = "tables", None
    return count


def _storages(
    store: Store, declared: Mapping[str, tuple[Declaration, Storage[Any, Any]]]
) -> dict[str, Storage[Any, Any]]:  # fmt: skip
    """Where the records of each sub-database are, and their types. Raises `SchemaMismatch`."""
    with store.reading() as txn:
        names = list(catalogue_of(store).read(txn))
    store.open_spaces([name.encode(errors="surrogateescape") for name in names])
    storages: dict[str, Storage[Any, Any]] = {}
    for name in names:
        found = declared[name][1] if name in declared else raw_table(store, name)
        if found is None or found.file_indexes.unreadable is not None:
            reason = "another program dropped it" if found is None else found.file_indexes.unreadable
            raise errors.SchemaMismatch(f"table {name!r}: {reason}; it cannot become a table", table=name)
        storages[name] = found
    return storages


def _checked(storage: Storage[Any, Any], txn: Transaction, handle: Handle) -> Iterator[tuple[bytes, bytes]]:
    """The records of a sub-database, each of which has been read by its type."""
    for raw, data in prefixed(txn.cursor(handle), b""):
        key = storage.decode_key(bytes(raw))
        if storage.encode_key(key) != raw:
            raise errors.DecodeError(
                f"table {storage.name!r}: the key {bytes(raw)!r} is not how zlmdb writes {key!r}: declare another type",
                table=storage.name,
                key=key,
            )
        storage.decode_value(data, key)
        yield bytes(raw), bytes(data)
