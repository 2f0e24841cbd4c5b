"""What a program may do with a table of the file whose records have, or may have, another shape than it declares."""

from __future__ import annotations

from typing import Optional

from ..store.slots import Slot
from ..store.store import Store
from .declaration import Declaration
from .evolution import Relation, advice, both_sides, renamed_path, with_unknown_past
from .verdict import FITS, Verdict


def of_changed_shape(slot: Slot, declared: Declaration, opening: bool) -> Verdict:
    """As `verdict`, of shapes that are not equal."""
    if slot.unsettled is not None:
        return Verdict(f"the migration {slot.unsettled} has stored records which those after it have to complete: run "
                       f"them, with db.migrate()")  # fmt: skip
    older = declared.fingerprint in slot.history[:-1]
    if slot.fields is None:
        return Verdict(older=older, changes=declared.fields is not None)
    if declared.fields is None:
        return Verdict(older=older, unwritable=of_plain_data(slot))
    relation = Relation(slot.fields, declared.fields)
    return FITS if relation.same else _of_changed(slot, declared, relation, older, opening)


def of_plain_data(slot: Slot) -> Optional[str]:
    """The reason why plain data may not be written to the table *slot*; None if it may."""
    if slot.fields is None:
        return None
    sides = both_sides(slot.fields, None)
    return (
        f"the file records the fields of its values, which plain data need not have ({sides}): declare the model class"
    )


def _of_changed(slot: Slot, declared: Declaration, relation: Relation, older: bool, opening: bool) -> Verdict:
    stored = slot.fields or {}
    sides = both_sides(stored, declared.fields)
    if not relation.readable:
        return Verdict(f"{_what(relation)} ({sides}): {_remedy(relation, slot, older)}", older=older, relation=relation)
    if older:
        return Verdict(None, f"the file is newer than this program ({sides}): use a newer one", older, relation)
    if relation.lacking:
        text = (
            f"the class lacks {', '.join(relation.lacking)}, which would be lost with the next write ({sides}): "
            f"{_remedy(relation, slot, older)}; to read only, open with readonly=True"
        )
        return Verdict(text if opening else None, text, older, relation)
    unwritable = None if opening else f"the file has another shape ({sides}): open it again, to write, for the new one"
    return Verdict(None, unwritable, older, relation, changes=True)


def of_other_key(slot: Slot, declared: Declaration, found: Verdict) -> Verdict:
    """*found*, where the class may not take its keys from another field than the file records, or from none.

    It may if the field only has another name now, and the class declares that. A class that names none can read.
    """
    now = str(slot.key_field)
    if slot.fields is not None and found.relation is not None:
        now = renamed_path(now, slot.fields, found.relation.renames)
    if declared.key_field is not None and now == declared.key_field.path:
        return found
    keys = f"the keys in the file are those of the field {slot.key_field!r}, and the class"
    advice = (
        f"declare key={now!r}, or store the records under their new keys with a migration: "
        f"zlmdb.Migration(version, name, step), where def step(t, old): for fields in "
        f"old.take({slot.name!r}).values(): make a value of the fields, and add it to the table in t"
    )
    if declared.key_field is None:
        named = f"{keys} names none, so that it could store records under other keys: {advice}"
        return found._replace(unwritable=found.unwritable or named)
    taken = f"{keys} takes them from {declared.key_field.path!r}, under which no record would be found: {advice}"
    return found._replace(refused=taken)


def _what(relation: Relation) -> str:
    """The changes, in words."""
    if relation.problems:
        return "; ".join(relation.problems)
    return f"the class has {', '.join(relation.added)}, and lacks {', '.join(relation.lacking)}"


def _remedy(relation: Relation, slot: Slot, older: bool) -> str:
    if older:
        return "the file is newer than this program, use a newer one"
    return advice(relation, slot.name)


def record(store: Store, slot: Slot, declared: Declaration, found: Verdict, *, new: bool) -> None:
    """Write into *slot* the declared types, as the file stores them, and shape of records; *new*: there are none."""
    slot.key, slot.value = store.traits.codec(declared.key).name, declared.value.name
    slot.model = declared.value.model
    slot.key_field = None if declared.key_field is None else declared.key_field.path
    if slot.key_field is None:
        slot.keyed = None
    slot.add_to_history(declared.fingerprint)
    if declared.fields is None or found.refused or found.unwritable:
        return
    if found.relation is not None:
        slot.fields = found.relation.description
    elif slot.fields is None:
        description = declared.fields.description
        slot.fields = description if new else with_unknown_past(description)
