"""Links between the tables of a schema: finding the tables that they lead to, and recording them in the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from .. import errors
from ..engines import Transaction
from ..shown import shortened
from ..store.catalogue import Catalogue
from ..store.slots import Slot
from ..tables.foreignkey import ForeignKey, Target
from ..tables.links import Link, broken
from ..tables.storage import Storage
from ..tables.table import Table
from .declaration import Declaration

SHOWN = 5
"""Links to nothing that an error names."""

Declared = Mapping[str, tuple[type[Table[Any, Any]], Declaration]]


def resolve(schema: str, found: Declared) -> None:
    """Find the tables that the links of the declarations *found* lead to, which must be of the same *schema*.

    Raises TypeError if a link leads to no table, or may lead to several, or if its fields cannot hold their keys.
    """
    tables = _by_class(found)
    for attribute, (_, declared) in found.items():
        resolved = dict(declared._declared)
        for name, index in resolved.items():
            if index._links:
                link: Any = index
                target = _target(f"{schema}.{attribute}", declared.class_name, name, link, found, tables)
                resolved[name] = link._toward(Target(target.name, target.class_name, target.key), declared.model)
                target.referred.add((declared.name, name))
                declared.linked = True
        declared._declared = resolved


def _by_class(found: Declared) -> dict[Any, dict[str, Declaration]]:
    """The tables *found*, by attribute, of each class that a link can name: by the name of the class and by its id."""
    tables: dict[Any, dict[str, Declaration]] = {}
    for attribute, (cls, declared) in found.items():
        for base in cls.__mro__:
            if base is not Table:
                for known_as in (base.__name__, id(base)):
                    tables.setdefault(known_as, {})[attribute] = declared
    return tables


def _target(
    where: str, source: str, name: str, link: ForeignKey[Any], found: Declared,
    tables: Mapping[Any, Mapping[str, Declaration]],
) -> Declaration:  # fmt: skip
    wanted = link._referred
    if wanted is None:
        raise TypeError(
            f"{where}: the link {name!r} names no table: ForeignKey['Authors'](...), with the class of the table"
        )
    named = isinstance(wanted, str)
    fitting = tables.get(wanted if named else id(wanted), {})
    if len(fitting) == 1:
        return next(iter(fitting.values()))
    shown = wanted if named else getattr(wanted, "__name__", repr(wanted))
    if not fitting:
        if wanted is Table:
            raise TypeError(
                f"{where}: the link {name!r} leads to Table[...], which may be any table: give the linked table a "
                f"class of its own, class Others(zlmdb.Table[KeyType, ValueType]), and write ForeignKey[Others]"
            )
        if not named and any([cls.__qualname__ == wanted.__qualname__ for cls, _ in found.values()]):
            raise TypeError(
                f"{where}: the link {name!r} leads to another class named {shown} than that of the schema: it was "
                f"defined again, as by a cell or a module that runs twice; define {source} again, too, or name the "
                f"class by a text, ForeignKey[{shown!r}](...)"
            )
        classes = ", ".join(dict.fromkeys(cls.__name__ for cls, _ in found.values()))
        raise TypeError(
            f"{where}: the link {name!r} leads to {shown}, and the schema has no table of that class, but {classes}: "
            + (
                f"declare it in the schema, too: others: {shown}"
                if isinstance(wanted, type) and issubclass(wanted, Table)
                else "name the class of the table, not that of its records; a table that is linked has a class of its "
                "own, class Others(Table[KeyType, ValueType])"
            )
        )
    raise TypeError(
        f"{where}: the link {name!r} leads to {shown}, and the tables {', '.join(fitting)} are of "
        f"that class: give each a class of its own, class Other({shown}, name='other')"
    )


def wire(declared: Declared, storages: Mapping[str, tuple[Any, Storage[Any, Any]]]) -> None:
    """Let the *storages* of the tables *declared*, by attribute, know of their links."""
    attributes = {one.name: attribute for attribute, (_, one) in declared.items()}
    for attribute, (_, one) in declared.items():
        if not one.linked:
            continue
        source = storages[attribute][1]
        for name, form in one.indexes.items():
            definition = form.definition.get("link")
            if definition is None:
                continue
            to = attributes[definition["to"]]
            link = Link(
                name,
                attribute,
                to,
                tuple(form.definition["fields"]),
                form.get_key,
                definition["on_delete"],
                bool(form.definition.get("each")),
                bool(definition.get("deferred")),
            )
            source.followers = [*source.followers, link]
            target = storages[to][1]
            target.referrers = [*target.referrers, link]


def unknown_referrers(slot: Slot, declared: Declaration) -> str:
    """Why a program with the declaration *declared* may not delete records of *slot*; empty if it may."""
    unknown = [f"{table}.{name}" for table, name in slot.referred if (table, name) not in declared.referred]
    return undeletable(unknown) if unknown else ""


def undeletable(links: Sequence[str]) -> str:
    """Why records cannot be deleted by a program that does not know the *links* to them."""
    return (
        f"the links {', '.join(links)} of the file lead to its records, and this program does not declare them, so "
        f"that a deletion would leave links to nothing: use the schema that declares them"
    )


def record(catalogue: Catalogue, txn: Transaction, slots: dict[str, Slot]) -> None:
    """Record with each table of *slots*, all of the file, which links lead to it.

    A slot is replaced, and not changed, as others may know it.
    """
    referred: dict[str, list[list[str]]] = {}
    for slot in slots.values():
        for name, definition in slot.indexes.items():
            link = definition.get("link")
            if link is not None:
                referred.setdefault(link["to"], []).append([slot.name, name])
    for name, slot in list(slots.items()):
        now = sorted(referred.get(slot.name, []))
        if list(slot.referred) != now:
            slots[name] = changed = slot.copy()
            changed.referred = now
            catalogue.write(txn, changed)


def verify(
    link: Any, source: Storage[Any, Any], target: Storage[Any, Any], handle: Any, held: Any, txn: Transaction
) -> None:  # fmt: skip
    """Raise `SchemaMismatch`, naming some records, if entries of *link*, the storage of its index, lead nowhere."""
    lost = list(islice(broken(link, handle, target, held, txn), SHOWN + 1))
    if lost:
        raise dangling(link, source, target, lost)


def dangling(
    link: Any, source: Storage[Any, Any], target: Storage[Any, Any], lost: Sequence[tuple[Any, bytes]]
) -> errors.SchemaMismatch:
    """The error for the keys *lost* that *link* leads to, each with the primary key, encoded, of a record."""
    shown = [
        f"{shortened(source.decode_key(source.prefix + primary))} (to {shortened(key)})"
        for key, primary in lost[:SHOWN]
    ]
    more = ", and others" if len(lost) > SHOWN else ""
    return errors.SchemaMismatch(
        f"the link {link.full_name} cannot be declared, because records of {source.name!r} refer to records that "
        f"{target.name!r} does not have: {', '.join(shown)}{more}; zlmdb mend-links PATH MODULE:SCHEMA lists all, and "
        f"deletes or clears them; or open the file without the link, and store what is missing",
        table=source.name,
        index=link.name,
        key=source.decode_key(source.prefix + lost[0][1]),
        owner=lost[0][0],
    )
