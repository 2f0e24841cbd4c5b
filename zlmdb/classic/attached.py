"""The indexes attached to a classic map: kept in step by the programs that attach them.

In the tables layout the catalogue records them, so that a writer which does not attach one is refused. A classic file
records nothing: an index that is empty beside records is taken for new, every other one is trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import errors
from ..catalogue import catalogue_of
from ..indexstorage import BoundIndex, IndexStorage
from ..storage import Storage
from ..store import Store
from ..table import Table
from ..transaction import Transaction

if TYPE_CHECKING:
    from .pmap import PersistentMap

Built = dict[str, tuple[int, int]]
"""Indexes by name, with the number of entries deleted and written."""


class Attached(NamedTuple):
    """An index of a map: the map of its entries, and the function that takes the index key from a value.

    *trusted*: this process has not let go of the entries before, so that the file is believed. *token* stands for the
    index where that must not be kept alive.
    """

    pmap: PersistentMap[Any, Any]
    fkey: Callable[[Any], Any]
    nullable: bool
    unique: bool
    trusted: bool
    token: object

    def definition(self, store: Store) -> dict[str, Any]:
        """What the catalogue of the tables layout records."""
        return {"target": self.pmap.identity(store), "unique": self.unique, "nullable": self.nullable}

    def is_known(self, storage: Storage[Any, Any], name: str, complete: bool) -> bool:
        """Whether the entries are those of the records, where the file says that they are *complete*."""
        return complete and (self.trusted or storage.verified.get(name) is self.token)

    def is_null(self, key: Any) -> bool:
        """Whether a record with this index key is left out."""
        return self.nullable and (key is None or (type(key) is tuple and None in key))


def index_storages(attached: Mapping[str, Attached], store: Store, table: str) -> list[IndexStorage]:
    """Where the entries of the indexes attached to *table* are: in the maps that are the indexes."""
    return [_index_storage(name, one, store, table) for name, one in attached.items()]


def _index_storage(name: str, attached: Attached, store: Store, table: str) -> IndexStorage:
    storage = attached.pmap.storage(store)
    encode_owner = storage.value.encode
    return IndexStorage(
        name,
        storage,
        unique=True,
        get_key=attached.fkey,
        owner=lambda key, primary: encode_owner(key),
        not_null=not attached.nullable,
        enforced=store.layout != "classic",
        table=table,
    )


def prepare(pmap: PersistentMap[Any, Any], txn: Transaction, table: Table[Any, Any]) -> Built:
    """Before *pmap* is written to: refuse writers that miss an index of the file, and build indexes that are new."""
    store, storage, attached = txn.store, table.storage, pmap.attached
    catalogue = catalogue_of(store)
    identity = pmap.identity(store)
    recorded = catalogue.attached(txn.raw, identity)
    definitions = {name: one.definition(store) for name, one in attached.items()}
    wanted = {name: definition for name, definition in recorded.items() if name not in pmap.detached}
    table.missing = _missing(table, wanted, definitions)
    new: list[BoundIndex] = []
    for bound in table.indexes:
        name = bound.storage.name
        if catalogue.records_attached:
            complete = recorded.get(name) == definitions[name]
        else:  # one that is empty though there are records is new
            filled = bound.storage.storage.any(table.cursor(bound.handle))
            complete = storage.verified.get(name) is attached[name].token or filled or not table
        if not attached[name].is_known(storage, name, complete):
            new.append(bound)
    built = _build(txn, table, new)
    wanted.update(definitions)
    if catalogue.records_attached and wanted != recorded:
        catalogue.write_attached(txn.raw, identity, wanted)
        txn.indexes_changed(table, tuple(wanted))
    tokens = {name: one.token for name, one in attached.items()}
    if storage.verified != tokens:
        txn.hooks.append(partial(_ended, table, tokens))
    return built


def _build(txn: Transaction, table: Table[Any, Any], new: Sequence[BoundIndex]) -> Built:
    if not new:
        return {}
    with txn.statement():  # all of them or none: a classic file does not say which one is complete
        return {bound.storage.name: table.rebuild(bound) for bound in new}


def check_built(
    owner: PersistentMap[Any, Any], pmap: PersistentMap[Any, Any], txn: Transaction, index: Table[Any, Any]
) -> None:
    """Before the index *pmap* is read: raise `IndexNotBuilt` when it lacks records that *owner* has."""
    store = txn.store
    storage = owner.storage(store)
    name, attached = next((name, one) for name, one in owner.attached.items() if one.pmap is pmap)
    catalogue = catalogue_of(store)
    if catalogue.records_attached:
        complete = catalogue.attached(txn.raw, owner.identity(store)).get(name) == attached.definition(store)
    else:
        complete = storage.verified.get(name) is attached.token or bool(index)
    if not attached.is_known(storage, name, complete) and _has_keys(owner.bind(txn), attached):
        raise errors.IndexNotBuilt(
            f"index {name!r} of {owner!r} has not been built over the records that are there: begin a write "
            f"transaction and use the map in it, which builds the index",
            table=storage.label,
            index=name,
        )
    if not catalogue.records_attached:
        storage.verified = {**storage.verified, name: attached.token}


def _missing(
    table: Table[Any, Any], wanted: Mapping[str, Any], definitions: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """The indexes that the file has, attached or declared, and this program does not keep in step."""
    targets = {definition["target"] for definition in definitions.values()}
    declared = [name for name in table.unknown if table.adopted.get(name) not in targets]
    return [*sorted(wanted.keys() - definitions.keys()), *declared]


def _has_keys(table: Table[Any, Any], attached: Attached) -> bool:
    """Whether a record belongs into the index. Reads records up to the first one that does."""
    return any(not attached.is_null(attached.fkey(value)) for value in table.select().values())


def _ended(table: Table[Any, Any], tokens: Mapping[str, object], committed: bool) -> None:
    """What `prepare` did is stored, or else undone with the savepoint that it happened in."""
    if committed:
        table.storage.verified = tokens
    else:
        table.prepared = None
        table.missing = tuple(tokens)
