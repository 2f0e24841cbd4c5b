"""Compares a declared table with that of the file: whether it fits, and what the file lacks of it."""

from __future__ import annotations

from typing import Any, Optional

from .. import errors
from ..store.slots import Slot
from ..store.store import Store
from ..values.description import format_of
from .declaration import Declaration
from .verdict import FITS, Verdict, verdict


def mismatch(store: Store, slot: Optional[Slot], declared: Declaration) -> Optional[str]:
    """The reason why *declared* cannot be the table *slot* of the file, naming both; None if it can."""
    if declared.feed is not None and not (store.traits.by_name or store.readonly):
        return (
            f"{_shown(declared)} has a change feed, and in a file of the classic layout zlmdb 26 could change records "
            f"without recording that: convert the file, or declare no feed"
        )
    if slot is None:
        return None
    differs = slot.key != store.traits.codec(declared.key).name or slot.value != declared.value.name
    other = _other_codec(store, slot, declared) if differs else None
    if other is not None:
        what, stored, wanted = other
        written = f" (written by class {slot.class_name})" if slot.class_name not in ("", slot.name) else ""
        return (
            f"table {declared.name!r} in the file has {what} of type {stored}{written}, {_declarer(declared)} "
            f"declares {wanted}: {_remedy(declared, _name_of(what, stored))}"
        )
    found = verdict(slot, declared, opening=not store.readonly)
    if found.refused is not None:
        return f"{_shown(declared)}: {found.refused}"
    if found is not FITS or slot.model == declared.value.model or slot.fields is not None or declared.vouched:
        return None
    return _of_plain_types(slot, declared)


def other_types(store: Store, slot: Slot, declared: Declaration) -> Optional[str]:
    """What another program has made of the types of the table *slot*, so that *declared* cannot read or write it."""
    other = _other_codec(store, slot, declared)
    if other is None:
        if slot.model == declared.value.model or slot.fields is not None or declared.vouched:
            return None
        if _of_plain_types(slot, declared) is None:
            return None
        other = "values", slot.model or "", declared.value.model or ""
    what, stored, wanted = other
    return f"{_declarer(declared)} declares {what} of type {wanted}, and another program has made them {stored}"


def _other_codec(store: Store, slot: Slot, declared: Declaration) -> Optional[tuple[str, str, str]]:
    """What is of another type in the file than declared, keys or values, that type, and the declared one."""
    for what, stored, wanted in (
        ("keys", slot.key, store.traits.codec(declared.key).name),
        ("values", slot.value, declared.value.name),
    ):
        if stored is not None and stored != wanted:
            return what, stored, wanted
    return None


def _shown(declared: Declaration) -> str:
    """The table, and its class if that has a name of its own."""
    of_class = "" if declared.class_name == declared.name else f" of the class {declared.class_name}"
    return f"table {declared.name!r}{of_class}"


def _declarer(declared: Declaration) -> str:
    """Who declares the table: its class, if that has a name of its own."""
    return "the program" if declared.class_name == declared.name else declared.class_name


def _of_plain_types(slot: Slot, declared: Declaration) -> Optional[str]:
    """The reason why values without models cannot be read by the declared type; None if they can, or may."""
    from .evolution import may_read  # late: most programs have the types of their files

    types = _plain_types(slot, declared)
    if types is None or may_read(*types):
        return None
    return (
        f"table {declared.name!r} in the file has values of the type {slot.model}, {_declarer(declared)} "
        f"declares {declared.value.model}: {_remedy(declared)}"
    )


def _plain_types(slot: Slot, declared: Declaration) -> Optional[tuple[Any, Any]]:
    """The recorded and the declared type of values without models; None if one of them is not known."""
    from ..values.fields import type_of  # late: few types change
    from ..values.spelledtypes import plain_type

    found, form = plain_type(slot.model), format_of(declared.value.name)
    if found is None or form is None or declared.value.model is None or declared.shape is None:
        return None
    return type_of(found, form), type_of(declared.shape, form, declared.names)


def _is_wider(slot: Slot, declared: Declaration) -> bool:
    """Whether the declared type of values without models has values that do not fit the recorded one.

    A type that is only spelt in another way has none, and of one with Any in it nothing is known.
    """
    if slot.fields is not None or declared.vouched:
        return False
    from .evolution import may_read  # late, as above

    types = _plain_types(slot, declared)
    return types is not None and may_read(*types) and not may_read(types[1], types[0])


def _name_of(what: str, stored: str) -> str:
    """How the *stored* type of *what*, keys or values, is declared, if it has a name of its own; else empty."""
    from ..keys import registry  # late: for this error only
    from ..values import named

    for name, annotated in vars(registry if what == "keys" else named).items():
        if any([getattr(one, "name", None) == stored for one in getattr(annotated, "__metadata__", ())]):
            return f", zlmdb.{what}.{name}"
    return ""


def _remedy(declared: Declaration, name: str = "") -> str:
    return (
        f"declare the stored type{name}, use another name, or convert the records with a migration: "
        f"zlmdb.Migration(version, name, step), where def step(t, old): for key, value in "
        f"old.take({declared.name!r}).items(): store each in t again"
    )


def compare(store: Store, slot: Optional[Slot], declared: Declaration) -> None:
    """Raise `SchemaMismatch` if *declared* cannot be the table of the file."""
    reason = mismatch(store, slot, declared)
    if reason is not None:
        raise errors.SchemaMismatch(reason, table=declared.name)


def lacks(slot: Optional[Slot], declared: Declaration, drop_indexes: bool) -> bool:
    """Whether the file must change for *declared*."""
    if slot is None or lacks_urgently(slot, declared, drop_indexes):
        return True
    if slot.key_field is None and declared.key_field is not None:
        return True
    if slot.fields != declared.described:
        return verdict(slot, declared, opening=True).changes
    return slot.model != declared.value.model and _is_wider(slot, declared)


def lacks_urgently(slot: Optional[Slot], declared: Declaration, drop_indexes: bool) -> bool:
    """Whether the table cannot be used before the file changes; it can if only its shape has to be recorded."""
    if slot is None or slot.key is None or slot.value is None or (declared.feed is not None and not slot.has_feed):
        return True
    if slot.building and unfinished(slot, declared):
        return True
    if not drop_indexes and slot.indexes == declared.definitions and slot.fields == declared.described:
        return False  # as nearly always
    found = verdict(slot, declared, opening=True)
    if found.relation is not None and found.relation.renames:
        return True
    return bool(
        (drop_indexes and undeclared_indexes(slot, declared)) or indexes_to_build(slot, declared, found, drop_indexes)
    )


def unfinished(slot: Slot, declared: Declaration) -> list[str]:
    """The declared indexes that the file has, and that do not have all entries yet."""
    outdated = outdated_indexes(slot, declared)
    return [name for name in declared.definitions if name in slot.building and name not in outdated]


def undeclared_indexes(slot: Slot, declared: Declaration) -> list[str]:
    """The indexes of the file that the program does not declare, whether or not the table has a class of its own."""
    return [name for name in slot.indexes if name not in declared.definitions]


def indexes_to_build(slot: Slot, declared: Declaration, found: Verdict, drop_indexes: bool) -> list[str]:
    """The declared indexes to build: those that the file lacks, or has with an older definition."""
    outdated = [] if found.unwritable is not None else outdated_indexes(slot, declared)
    if outdated and declared.fingerprint in slot.history[:-1] and not drop_indexes:  # that of the file is the newer one
        outdated = [name for name in outdated if name not in slot.indexes]
    return outdated


def outdated_indexes(slot: Slot, declared: Declaration) -> list[str]:
    """The declared indexes that the file lacks, or has with another definition, or of other defaults."""
    found: list[str] = []
    same = slot.fields == declared.described
    indexes = slot.indexes if same else stored_indexes(slot, declared)
    redefaulted = [] if same else _redefaulted(slot, declared)
    for name, definition in declared.definitions.items():
        stored = indexes.get(name)
        changed = stored != definition and (stored is None or {**stored, "slot": 0} != {**definition, "slot": 0})
        if changed or name in redefaulted:
            found.append(name)
    return found


def _redefaulted(slot: Slot, declared: Declaration) -> list[str]:
    """The declared indexes whose entries may be those of another default, of a field that older records lack."""
    if slot.fields is None or declared.fields is None or not slot.indexes:
        return []
    from .evolution import Relation, affected  # late, as above

    return affected(declared.definitions, Relation(slot.fields, declared.fields).redefaulted)


def stored_indexes(slot: Slot, declared: Declaration) -> dict[str, dict[str, Any]]:
    """The definitions of the indexes of the file, with the current names of fields."""
    if slot.fields is None or declared.fields is None or not any(declared.fields.former):
        return slot.indexes
    from .evolution import Relation, renamed_path  # late, as above

    relation = Relation(slot.fields, declared.fields)
    found: dict[str, dict[str, Any]] = {}
    for name, definition in slot.indexes.items():
        paths = [renamed_path(path, slot.fields, relation.renames) for path in definition.get("fields", [])]
        found[name] = {**definition, "fields": paths} if paths else definition
    return found
