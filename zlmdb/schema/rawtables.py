"""Sub-databases of an LMDB file that zlmdb did not write, as tables: of bytes, or of the types that a program gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional

from .. import errors
from ..engines import Handle
from ..keys import KeyCodec, key_codec
from ..store.rawcatalogue import RawCatalogue, space_of
from ..store.store import Store
from ..tables.storage import FileIndexes, Storage
from ..values.bare import BYTES
from ..values.base import Serializer
from .declaration import Declaration

_ODD = {
    "integerkey": "sorts its keys as native integers (INTEGERKEY)",
    "reverse_key": "sorts its keys as bytes read backwards (REVERSEKEY)",
    "dupsort": "has several values for a key (DUPSORT)",
}


def attach_raw(store: Store, declarations: Sequence[Declaration]) -> list[Storage[Any, Any]]:
    """The storages of *declarations* in a file that is open with ``layout="raw"``; nothing is created."""
    for declared in declarations:
        if declared.definitions:
            raise errors.SchemaMismatch(
                f"table {declared.name!r} declares the index {next(iter(declared.definitions))!r}, which a file of "
                f"another program does not have: declare the table without it, or adopt the file first, db.adopt()",
                table=declared.name,
            )
        if declared.feed is not None:
            raise errors.SchemaMismatch(
                f"table {declared.name!r} declares a change feed, which a file of another program does not have: "
                f"declare the table without it, or adopt the file first, db.adopt()",
                table=declared.name,
            )
    with store.reading() as txn:
        names = RawCatalogue(store).read(txn)
    store.open_spaces([space_of(name) for name in names])  # all: none can be opened inside a transaction
    return [_declared(store, declared) for declared in declarations]


def raw_table(store: Store, name: str) -> Optional[Storage[Any, Any]]:
    """The sub-database *name* as a table of bytes; None if there is none."""
    if store.space(space_of(name)) is None:
        return None
    return _storage(store, name, key_codec(bytes), BYTES)


def _declared(store: Store, declared: Declaration) -> Storage[Any, Any]:
    storage = _storage(store, declared.name, declared.key, declared.value)
    storage.key_field, storage.key_type = declared.key_field, declared.key_type
    storage.model = declared.model, declared.names
    return storage


def _storage(store: Store, name: str, key: KeyCodec[Any], value: Serializer[Any]) -> Storage[Any, Any]:
    space = space_of(name)
    storage = Storage(name, space, b"", key, value, store.environment.max_key_size())
    storage.alone = True
    found = store.space(space)
    if found is not None:
        storage.file_indexes = _usable(flags_of(store, found.handle))
    return storage


def flags_of(store: Store, handle: Handle) -> Mapping[str, bool]:
    """How LMDB sorts and stores the records of a sub-database."""
    with store.reading() as txn:
        return handle.flags(txn)


def _usable(flags: Mapping[str, bool]) -> FileIndexes:
    for flag, what in _ODD.items():
        if flags.get(flag):
            return FileIndexes(unreadable=f"the sub-database {what}, which a table does not: read it with lmdb")
    return FileIndexes()
