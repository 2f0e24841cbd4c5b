"""The class of the bound tables of one storage, and which generated functions it gets.

It is made when a transaction binds such a table for the first time. What writes tables with indexes is imported when it
is generated, which may be never: few processes write to all tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from ...codegen import Methods
from ...namedtuples import NamedTuple
from ..indexstorage import IndexStorage
from ..storage import Storage
from .points import point_writes, specialised


def bound_class(cls: Any, general: Any, storage: Storage[Any, Any]) -> Any:
    """The subclass of the table class *cls* for *storage* and its current indexes; *general* is the base of all.

    Its attribute ``_kept`` has the indexes that its methods maintain: none if one is not `sole`. Its ``_batch``
    is the result of `batch_of`; None if `bulkwrites` cannot be used.
    """
    made_for, kind = storage.generated.classes.get(cls, (None, cls))
    if made_for is not storage.indexes:
        kept = tuple(storage.indexes)
        if not all([index.sole for index in kept]):
            kept = ()
        methods: Any = []
        if not (kept or storage.followers):
            methods = point_writes(cls, general, storage)
        elif len(kept) == len(storage.indexes):
            followers = Followers.of(storage)
            methods = () if followers is None else _index_methods(cls, general, storage, kept, followers)
        kind = specialised(cls, general, storage, methods, _kept=kept, _plain=cls._plain)
        storage.generated.classes = {**storage.generated.classes, cls: (storage.indexes, kind)}
    return kind


class Followers(NamedTuple):
    """The followers of a table that generated functions know.

    *asked* have a method ``content``, which tells whether a record may be stored without asking them further; they do
    not mind what is deleted. *recorder* is that of the change feed.
    """

    asked: Sequence[Any]
    recorder: Any

    @staticmethod
    def of(storage: Storage[Any, Any]) -> Optional[Followers]:
        """Those of *storage*; None if there are others, which the general form knows."""
        if not storage.followers:
            return Followers((), None)
        asked = [one for one in storage.followers if hasattr(one, "content")]
        recorders = [one for one in storage.followers if hasattr(one, "record")]
        if len(asked) + len(recorders) != len(storage.followers) or len(recorders) > 1:
            return None
        return Followers(asked, recorders[0] if recorders else None)

    def lines(self, primary: str) -> tuple[dict[str, str], dict[str, Any]]:
        """The parts of the functions that record changes, and the names in them."""
        if self.recorder is None:
            return dict.fromkeys(("ready", "record_new", "record_changed", "record_gone"), "pass"), {}
        parts = {
            "ready": "if present.raw is not self._raw: aim(self)",
            "record_new": f"record({primary}, None, data)",
            "record_changed": f"record({primary}, found, data)",
            "record_gone": f"record({primary}, data, None)",
        }
        known = self.recorder
        return parts, {"present": known.present, "aim": known.aim, "record": known.record}


def _index_methods(
    cls: Any, general: Any, storage: Storage[Any, Any], indexes: Sequence[IndexStorage], followers: Followers
) -> list[Methods]:  # fmt: skip
    """The methods of a subclass of *cls* that write records of *storage*, and maintain *indexes* and *followers*."""

    def storing() -> dict[str, Any]:
        from .indexed import storing, storing_asked  # late: many a process writes no second record

        make = storing_asked if followers.asked else storing
        return make(general, storage, indexes, followers)

    def removing() -> dict[str, Any]:
        from .indexed import removing  # late: many a process deletes nothing

        return removing(general, storage, indexes, followers)

    def batch() -> dict[str, Any]:
        from .indexed import batch_of  # late: many a process writes no lists

        return {"_batch": batch_of(storage, indexes)}

    found: list[Methods] = []
    if not (followers.asked and any([index.as_stored for index in indexes])):
        found.append(Methods(("__setitem__",), storing, patient=True))
    if cls._remove is general._remove and not storage.referrers:  # which the general `__delitem__` calls
        found.append(Methods(("__delitem__", "_remove"), removing))
    if cls._plain and not storage.followers and storage.expiring is None:
        found.append(Methods(("_batch",), batch, static=True))
    return found
