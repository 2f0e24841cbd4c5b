"""The indexes of a bound table: those that it maintains, and those that forbid it to write."""

from __future__ import annotations

from typing import Any, Optional

from ..namedtuples import NamedTuple
from .indexstorage import BoundIndex


class IndexState(NamedTuple):
    """The indexes of a bound table; replaced as a whole when one of them changes.

    *kept* are maintained with the records. *missing* are in the file and not maintained, so the table must not be
    written to; nor if it is *barred*, because its records have another
    shape, or because of links to them that only the general form knows. *handles* are those of *kept*, if the
    generated functions know these indexes.
    """

    kept: tuple[BoundIndex, ...] = ()
    missing: tuple[str, ...] = ()
    handles: Optional[tuple[Any, ...]] = ()
    barred: bool = False

    @property
    def generated(self) -> bool:
        """Whether the generated functions may write; otherwise the general form writes, or refuses."""
        return self.handles is not None and not self.missing and not self.barred
