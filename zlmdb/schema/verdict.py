"""Decides what a program may do with a table of the file, from the shapes of records that both know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from ..namedtuples import NamedTuple
from ..store.slots import Slot
from .declaration import Declaration

if TYPE_CHECKING:
    from .evolution import Relation


class Verdict(NamedTuple):
    """*refused*: why the table can neither be read nor written; *unwritable*: why it cannot be written; in words.

    *older*: the file once had this declaration, and has a later one now. *relation* compares the shapes, if both are
    known. *changes*: a program that may write must record its shape, and convert records if *relation* requires it.
    """

    refused: Optional[str] = None
    unwritable: Optional[str] = None
    older: bool = False
    relation: Optional[Relation] = None
    changes: bool = False


FITS = Verdict()
"""The program and the file agree."""


def verdict(slot: Slot, declared: Declaration, *, opening: bool) -> Verdict:
    """What a program with the declaration *declared* may do with the table *slot*.

    *opening*: the program opens the file to write, and may change it. Otherwise a table of another shape cannot be
    written.
    """
    found = FITS
    if not declared.vouched and (slot.unsettled is not None or slot.fields != declared.described):
        from .changedshape import of_changed_shape  # late: most programs have the shapes of their files

        found = of_changed_shape(slot, declared, opening)
    stored, wanted = slot.key_field, declared.key_field
    if (
        found.refused is None
        and stored is not None
        and (not declared.classic if wanted is None else stored != wanted.path)
    ):
        from .changedshape import of_other_key  # late, as above

        return of_other_key(slot, declared, found)
    return found


def of_feed(slot: Slot, declared: Declaration, older: bool) -> Optional[str]:
    """The reason why a program may not write to the table, because its changes are recorded, or not any more."""
    if slot.has_feed and declared.feed is None:
        return (
            f"the changes of the table are recorded in the file, and class {declared.class_name} declares no feed, so "
            f"that its changes would be missing: "
            + ("the file is newer than this program, use a newer one" if older else "")
            + ("" if older else f"declare feed=True, or drop the feed with db.drop_feed({slot.name!r})")
        )
    if declared.feed is not None and not slot.has_feed and slot.key is not None:
        return (
            f"class {declared.class_name} declares a change feed, which the file does not have, or not any more: open "
            f"the database again, to write, which begins one"
        )
    return None
