"""What a program may do with a table of the file whose records have, or may have, another shape than it declares."""

from __future__ import annotations

from typing import Optional

from ..store.slots import Slot
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


def of_other_key(slot: Slot, stored: str, wanted: str, relation: Optional[Relation]) -> Optional[str]:
    """The reason why a class may not take its keys from the field *wanted*, *stored* is the file's; None if it may.

    It may if the field only has another name now, and the class declares that.
    """
    now = stored
    if slot.fields is not None and relation is not None:
        now = renamed_path(stored, slot.fields, relation.renames)
    if now == wanted:
        return None
    return (
        f"the keys in the file are those of the field {stored!r}, and the class takes them from {wanted!r}, under "
        f"which no record would be found: declare key={now!r}, or store the records under their new keys with a "
        f"migration: zlmdb.Migration(version, name, step), where def step(t, old): for fields in "
        f"old.take({slot.name!r}).values(): make a value of the fields, and add it to the table in t"
    )


def _what(relation: Relation) -> str:
    """The changes, in words."""
    if relation.problems:
        return "; ".join(relation.problems)
    return f"the class has {', '.join(relation.added)}, and lacks {', '.join(relation.lacking)}"


def _remedy(relation: Relation, slot: Slot, older: bool) -> str:
    if older:
        return "the file is newer than this program, use a newer one"
    return advice(relation, slot.name)


def record(slot: Slot, declared: Declaration, found: Verdict, *, new: bool) -> None:
    """Write into *slot* what the file has to record of the shape that *declared* says; *new*: it has no records."""
    if declared.fields is None or found.refused or found.unwritable:
        return
    if found.relation is not None:
        slot.fields = found.relation.description
    elif slot.fields is None:
        description = declared.fields.description
        slot.fields = description if new else with_unknown_past(description)
