"""The records of a table as they were at a moment of a transaction that goes on to change them, in a temporary file."""

from __future__ import annotations

import mmap
import tempfile
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any, Union

from .triedentries import no_copy


class KeptRecords:
    """Copies *rows*, the pairs of a keyspace in the order of their keys; has these keys by number, for `bisect`.

    Its methods are those of an engine's transaction that reads that keyspace. In memory, a record takes 16 bytes.
    Raises `DiskError` if the copy cannot be written.
    """

    def __init__(self, rows: Iterable[tuple[Any, Any]]) -> None:
        self._ends = array("Q", [0])  # of each key, and of its value
        self._data: Union[bytes, mmap.mmap] = b""
        end = 0
        try:
            with tempfile.TemporaryFile() as file:
                for key, data in rows:
                    file.write(key)
                    file.write(data)
                    self._ends.append(end + len(key))
                    end += len(key) + len(data)
                    self._ends.append(end)
                file.flush()
                if end:
                    self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise no_copy("records that a dry run has changed", error) from error

    def __len__(self) -> int:
        return len(self._ends) // 2

    def __getitem__(self, at: int) -> bytes:
        return self._part(2 * at)

    def _part(self, at: int) -> bytes:
        return self._data[self._ends[at] : self._ends[at + 1]]

    def get(self, key: bytes, default: Any, _handle: object) -> Any:
        """As of the engine's transaction."""
        at = bisect_left(self, key)
        return self._part(2 * at + 1) if at < len(self) and self[at] == key else default

    def stat(self, _handle: object) -> dict[str, int]:
        """As of the engine's transaction."""
        return {"entries": len(self)}

    def cursor(self, _handle: object) -> KeptCursor:
        """As of the engine's transaction."""
        return KeptCursor(self)

    def pairs_from(self, at: int) -> Iterator[tuple[bytes, bytes]]:
        """The pairs from the one with the number *at* on."""
        return ((self._part(2 * place), self._part(2 * place + 1)) for place in range(at, len(self)))


class KeptCursor:
    """A cursor over *kept*, forwards, as far as `store.ranges.prefixed` needs one."""

    def __init__(self, kept: KeptRecords) -> None:
        self._kept = kept
        self._at = 0

    def first(self) -> bool:
        """As of the engine's cursor."""
        return self.set_range(b"")

    def set_range(self, key: bytes) -> bool:
        """As of the engine's cursor."""
        self._at = bisect_left(self._kept, key)
        return self._at < len(self._kept)

    def iternext(self, _keys: bool, _values: bool) -> Iterator[tuple[bytes, bytes]]:
        """As of the engine's cursor."""
        return self._kept.pairs_from(self._at)
