"""The entries of a unique index that a dry run computes and cannot store, as sorted runs in a temporary file."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from heapq import merge
from struct import Struct
from typing import Any, Optional

from .. import errors
from ..engines import Handle

_RUN = 4 << 20  # bytes of a run, in memory and in the file
_OF_OBJECT = 64  # about what a key takes in memory beside its bytes
_LENGTH = Struct("=I")


class TriedEntries:
    """Takes the entries of an index in place of the engine's transaction, and finds out whether one comes `twice`.

    A block that removes the file. In memory is one run, and 100 bytes for each one in the file. Raises `DiskError` if
    the file cannot be written.
    """

    def __init__(self) -> None:
        self._keys: list[bytes] = []
        self._size = 0
        self._ends = [0]  # of the runs in the file
        self._file: Any = None
        self._held = ExitStack()

    def __enter__(self) -> TriedEntries:
        return self

    def __exit__(self, *error: object) -> None:
        self._held.close()

    def put(self, key: bytes, value: bytes, *, overwrite: bool, db: Handle) -> bool:
        """As of the engine's transaction, but always true."""
        if not overwrite:  # else it need not be unique
            self._keys.append(key)
            self._size += len(key) + _OF_OBJECT
            if self._size >= _RUN:
                self._write_run()
        return True

    def twice(self) -> Optional[bytes]:
        """The first key that was put twice, in the order of keys; None if there is none."""
        last = None
        self._keys.sort()
        for key in merge(self._keys, *self._runs()):
            if key == last:
                return key
            last = key
        return None

    def _write_run(self) -> None:
        self._keys.sort()
        end = self._ends[-1]
        try:
            if self._file is None:
                self._file = self._held.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - as a block
            for key in self._keys:
                self._file.write(_LENGTH.pack(len(key)))
                self._file.write(key)
                end += _LENGTH.size + len(key)
            self._file.flush()
        except OSError as error:
            raise no_copy("entries of a new index", error) from error
        self._ends.append(end)
        self._keys, self._size = [], 0

    def _runs(self) -> list[Iterator[bytes]]:
        if self._file is None:
            return []
        data = self._held.enter_context(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ))
        return [_keys_of(data, begin, end) for begin, end in zip(self._ends, self._ends[1:])]


class FirstOwner:
    """Takes the entries of an index again, and refuses the second one with the key *twice*."""

    def __init__(self, twice: bytes) -> None:
        self._twice = twice
        self._owner: Optional[bytes] = None

    def put(self, key: bytes, value: bytes, *, overwrite: bool, db: Handle) -> bool:
        """As of the engine's transaction."""
        if key != self._twice:
            return True
        is_new = self._owner is None
        self._owner = value if is_new else self._owner
        return is_new

    def get(self, key: bytes, default: Any, db: Handle) -> Any:
        """As of the engine's transaction."""
        return self._owner


def no_copy(what: str, error: OSError) -> errors.DiskError:
    """That *what* could not be written into a temporary file."""
    where = "" if tempfile.tempdir is None else f" in {tempfile.tempdir!r}"
    return errors.DiskError(
        f"the {what} could not be copied into a temporary file{where} ({error}): make room there, or set TMPDIR, on "
        f"Windows TEMP, to another directory"
    )


def _keys_of(data: mmap.mmap, at: int, end: int) -> Iterator[bytes]:
    while at < end:
        (size,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size + size
        yield data[at - size : at]
