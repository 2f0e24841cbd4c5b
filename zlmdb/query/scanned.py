"""What the loops of queries read from."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Any, Optional

from ..protocols import Protocol

_value_of = itemgetter(1)


class Scanned(Protocol):
    """One iteration over records, as a loop uses it: it is written against this, and knows no tables."""

    any: bool = True
    """Whether there are records."""

    def values(self) -> Iterator[Any]:
        """The stored bytes of the records."""
        return map(_value_of, self.pairs())

    def pairs(self) -> Iterator[tuple[bytes, Any]]:
        """The engine's pairs of key and value."""
        raise NotImplementedError

    def current(self) -> tuple[Optional[bytes], Any]:
        """The engine's key and value of the record at which the iteration is; (None, None) past the last one."""
        raise NotImplementedError

    def is_paused(self, error: Exception) -> bool:
        """Whether *error* came since the scan was paused. Raises when the transaction has ended."""
        raise NotImplementedError

    def rest(self) -> Iterator[tuple[bytes, Any]]:
        """The pairs that are left after a pause: none, if it goes on by itself."""
        return iter(())

    def close(self) -> None:
        """Nothing more is asked of it."""
        return  # for checkers: without it, it would be abstract
