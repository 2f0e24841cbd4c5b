"""What the loops of queries read from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional, Protocol


class Scanned(Protocol):
    """One iteration over records, as a loop uses it: it is written against this, and knows no tables."""

    @property
    def any(self) -> bool:
        """Whether there are records."""
        ...

    def values(self) -> Iterator[Any]:
        """The stored bytes of the records."""
        ...

    def pairs(self) -> Iterator[tuple[bytes, Any]]:
        """The engine's pairs of key and value."""
        ...

    def current(self) -> tuple[Optional[bytes], Any]:
        """The engine's key and value of the record at which the iteration is; (None, None) past the last one."""
        ...

    def is_paused(self, error: Exception) -> bool:
        """Whether *error* came since the scan was paused."""
        ...

    def rest(self) -> Iterator[tuple[bytes, Any]]:
        """The pairs that are left after a pause."""
        ...

    def close(self) -> None:
        """Nothing more is asked of it."""
