"""The indexes of a bound table: which it keeps in step, and which forbid it to write."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

from .indexstorage import BoundIndex


class IndexState(NamedTuple):
    """The indexes of a bound table; replaced as a whole when one of them changes.

    *kept* are kept in step with the records. *missing* are in the file and are not, so that the table must not be
    written to; nor where it is *barred*, since its records have another shape. *handles* are those of *kept*, where
    these are the ones that the generated functions know.
    """

    kept: tuple[BoundIndex, ...] = ()
    missing: tuple[str, ...] = ()
    handles: Optional[tuple[Any, ...]] = ()
    barred: bool = False

    @property
    def generated(self) -> bool:
        """Whether the generated functions may write; else the general form does, or refuses."""
        return self.handles is not None and not self.missing and not self.barred
