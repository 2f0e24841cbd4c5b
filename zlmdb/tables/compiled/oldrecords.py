"""How generated writes decode the record that they replace or delete: of a model, only the fields that indexes ask for.

This takes a third to two thirds of the time. What else is in the record is not looked at: if it is broken, nobody is
told, and the record goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from ..indexstorage import IndexStorage
from ..storage import Storage

WHOLE = 100
"""How many records are decoded whole before a decoder of fields is made, which takes as long as hundreds of records."""


class OldRecords:
    """Decodes old records of *storage*, which has *indexes*, for the functions in the namespace ``space``.

    In it, ``load_old`` is ``load_whole`` at first, and later a function that does no more than is needed.
    """

    def __init__(self, storage: Storage[Any, Any], indexes: Sequence[IndexStorage]) -> None:
        self.storage, self.indexes = storage, indexes
        self.space: dict[str, Any] = {}
        self.left = WHOLE

    def load_whole(self, data: Any) -> Any:
        """The record of *data*. The last of `WHOLE` makes the function that will be called instead."""
        self.left -= 1
        value = self.storage.value
        if self.left <= 0:
            fields = fields_of(self.indexes)
            narrow = value.narrow([(name,) for name in fields]) if fields else None
            self.space["load_old"] = narrow or value.bytes_decode
        return value.bytes_decode(data)


def fields_of(indexes: Sequence[IndexStorage]) -> Optional[set[str]]:
    """The fields that the entries of *indexes* are made of; None where a function is given the whole record."""
    fields: set[str] = set()
    for index in indexes:
        if index.field is None or index.where is not None:
            return None
        fields.update((index.field, *index.carries))
    return fields
