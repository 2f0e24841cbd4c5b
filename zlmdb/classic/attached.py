"""The indexes attached to a classic map: the programs that attach them maintain them.

In the tables layout the catalogue records them, so a writer that does not attach one is refused. A classic file does
not record them: an empty index of a table with records is considered new, any other is trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import errors
from ..namedtuples import NamedTuple
from ..store.catalogue import catalogue_of
from ..store.store import Store
from ..store.transaction import Transaction
from ..tables.indexstorage import BoundIndex, IndexStorage
from ..tables.storage import Storage
from ..tables.table import Table

if TYPE_CHECKING:
    from .pmap import PersistentMap

Built = dict[str, tuple[int, int]]
"""Indexes by name, with the number of entries deleted and written."""


class Attached(NamedTuple):
    """An index of a map: the map of its entries, and the function that takes the index key from a value.

    *trusted*: this process has not detached the index before, so the entries in the file are trusted. *token*
    represents the index where the index itself must not be kept alive.
    """

    pmap: PersistentMap[Any, Any]
    fkey: Callable[[Any], Any]
    nullable: bool
    unique: bool
    trusted: bool
    token: object

    def definition(self, store: Store) -> dict[str, Any]:
        """What the catalogue of the tables layout records."""
        return {"target": self.pmap._name_in(store), "unique": self.unique, "nullable": self.nullable}

    def is_known(self, records: Records, name: str, complete: bool) -> bool:
        """Whether the entries are those of the records; the file says whether they are *complete*."""
        return complete and (self.trusted or records.verified.get(name) is self.token)

    def is_null(self, key: Any) -> bool:
        """Whether a record with this index key is left out."""
        return self.nullable and (key is None or (type(key) is tuple and None in key))


class Records:
    """The records of a map in one open store, and its indexes there.

    *wiring* is what the map had attached when the indexes of *storage* were created; *verified* has the token of each
    index that is known to be complete.
    """

    __slots__ = ("__weakref__", "storage", "verified", "wiring")

    def __init__(self, storage: Storage[Any, Any]) -> None:
        self.storage = storage
        self.verified: Mapping[str, object] = {}
        self.wiring: object = None

    def rewire(self, attached: Mapping[str, Attached], store: Store, wiring: object) -> None:
        """Use the indexes that are *attached* now."""
        if self.wiring is not wiring:
            self.storage.maintain(index_storages(attached, store, self.storage.name))
            self.wiring = wiring


def index_storages(attached: Mapping[str, Attached], store: Store, table: str) -> list[IndexStorage]:
    """The storages of the indexes attached to *table*: the maps that are the indexes."""
    return [_index_storage(name, one, store, table) for name, one in attached.items()]


def _index_storage(name: str, attached: Attached, store: Store, table: str) -> IndexStorage:
    storage = attached.pmap._storage_in(store)
    encode_owner = storage.value.encode
    return IndexStorage(
        name,
        storage,
        unique=True,
        get_key=attached.fkey,
        owner=lambda key, primary: encode_owner(key),
        not_null=not attached.nullable,
        enforced=store.traits.records_attached,
        table=table,
    )


def prepare(pmap: PersistentMap[Any, Any], txn: Transaction, table: Table[Any, Any]) -> Built:
    """Before a write to *pmap*: refuse writers that lack an index of the file, and build new indexes."""
    store, records, attached = txn._store, pmap._records_in(txn._store), pmap._attached
    catalogue = catalogue_of(store)
    map_name = pmap._name_in(store)
    recorded = catalogue.attached(txn._engine_txn, map_name)
    definitions = {name: one.definition(store) for name, one in attached.items()}
    wanted = {name: definition for name, definition in recorded.items() if name not in pmap._detached}
    table._refuse_without(_missing(table, wanted, definitions))
    new: list[BoundIndex] = []
    for bound in table._indexes:
        name = bound.storage.name
        if store.traits.records_attached:
            complete = recorded.get(name) == definitions[name]
        else:  # one that is empty though there are records is new
            filled = bound.storage.storage.any(table._cursor(bound.handle))
            complete = records.verified.get(name) is attached[name].token or filled or not table
        if not attached[name].is_known(records, name, complete):
            new.append(bound)
    built = _build(txn, table, new)
    wanted.update(definitions)
    if store.traits.records_attached and wanted != recorded:
        catalogue.write_attached(txn._engine_txn, map_name, wanted)
        txn._indexes_changed(table, tuple(wanted))
    tokens = {name: one.token for name, one in attached.items()}
    if records.verified != tokens:
        txn._hook(partial(_ended, records, table, tokens, partial(pmap._unprepare, txn)))
    return built


def _build(txn: Transaction, table: Table[Any, Any], new: Sequence[BoundIndex]) -> Built:
    if not new:
        return {}
    with txn._statement():  # all of them or none: a classic file does not say which one is complete
        return {bound.storage.name: table._rebuild(bound) for bound in new}


def check_built(
    owner: PersistentMap[Any, Any], pmap: PersistentMap[Any, Any], txn: Transaction, index: Table[Any, Any]
) -> None:
    """Before the index *pmap* is read: raise `IndexNotBuilt` if it lacks records of *owner*."""
    store = txn._store
    records = owner._records_in(store)
    name, attached = next((name, one) for name, one in owner._attached.items() if one.pmap is pmap)
    catalogue = catalogue_of(store)
    if store.traits.records_attached:
        complete = catalogue.attached(txn._engine_txn, owner._name_in(store)).get(name) == attached.definition(store)
    else:
        complete = records.verified.get(name) is attached.token or bool(index)
    if not attached.is_known(records, name, complete) and _has_keys(owner.bind(txn), attached):
        raise errors.IndexNotBuilt(
            f"index {name!r} of {owner!r} does not contain the existing records yet: use the map in a write "
            f"transaction, which builds the index",
            table=records.storage.name,
            index=name,
        )
    if not store.traits.records_attached:
        records.verified = {**records.verified, name: attached.token}


def _missing(
    table: Table[Any, Any], wanted: Mapping[str, Any], definitions: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """The indexes that the file has, attached or declared, and that this program does not maintain."""
    targets = {definition["target"] for definition in definitions.values()}
    found = table._found
    declared = [name for name in found.unknown if found.definitions.get(name, {}).get("table") not in targets]
    return [*sorted(wanted.keys() - definitions.keys()), *declared]


def _has_keys(table: Table[Any, Any], attached: Attached) -> bool:
    """Whether some record belongs into the index. Reads records up to the first one that does."""
    return any(not attached.is_null(attached.fkey(value)) for value in table.select().values())


def _ended(
    records: Records, table: Table[Any, Any], tokens: Mapping[str, object], unprepare: Callable[[], object],
    committed: bool,
) -> None:  # fmt: skip
    """The changes of `prepare` are stored, or undone with the savepoint in which they were made."""
    if committed:
        records.verified = tokens
    else:
        unprepare()
        table._refuse_without(tuple(tokens))
