"""How large the memory map of a file is: what the user said, address space reserved, or twice the data."""

from __future__ import annotations

import mmap
import os
import sys
from importlib import import_module
from typing import Any

import lmdb

from ... import errors
from ...systems import WINDOWS
from .access import open_to_read
from .pages import PageFile

TIB = 1 << 40
RESERVATION = TIB
"""Address space reserved for a database without a `maxsize`, in bytes. It costs neither memory nor disk."""

BUDGET = 16 * TIB
"""Address space that the reservations of one process may add up to; 127 TiB exhaust a 47-bit address space."""

FIRST_SIZE = 64 << 20
"""The first map size, in bytes, where no address space can be reserved; it then doubles as the data grow."""

LEAST = 8 * mmap.PAGESIZE
"""The least `maxsize`, in bytes: in less, LMDB cannot even make the catalogue."""

AS_LARGE_AS_MAP = WINDOWS
"""Whether LMDB makes the file as large as the map. Then it cannot be smaller where another process has it open."""

_reserved = 0


def map_size(file: str) -> tuple[int, int]:
    """The map size to open *file* with where the user set none; and how much of it is reserved, or nothing."""
    global _reserved
    least, wanted = growable(file), _reservation()
    if wanted < least or _reserved + wanted > BUDGET:
        return least, 0
    _reserved += wanted
    return wanted, wanted


def room_to_delete(maxsize: int) -> int:
    """Bytes beyond *maxsize* that only deletions need: they write pages anew before they free the old ones.

    The list of the free pages has 8 bytes for each, so that a table which takes the whole file can be emptied at once.
    """
    return 64 * mmap.PAGESIZE + maxsize // 32


def growable(file: str) -> int:
    """The map size to start from where the map has to grow with the data."""
    size = used(file)
    return max(FIRST_SIZE, 2 * taken(file), size) if AS_LARGE_AS_MAP else max(FIRST_SIZE, 2 * size)


def limited(file: str, limit: int) -> int:
    """The map size for data of at most *limit* bytes and `room_to_delete`, or for what *file* has already."""
    return max(max(limit, taken(file)) + room_to_delete(limit), used(file))


def _reservation() -> int:
    """The address space to reserve, in bytes: 0 where reserving it would cost something."""
    if sys.maxsize <= 1 << 32 or sys.platform not in ("linux", "darwin"):
        return 0
    return min(RESERVATION, _address_space() // 4)


def _address_space() -> int:
    try:
        resource: Any = import_module("resource")
        limit: int = resource.getrlimit(resource.RLIMIT_AS)[0]
    except (ImportError, OSError):  # Windows has no such limit
        return 1 << 62
    return 1 << 62 if limit in (resource.RLIM_INFINITY, -1) else limit


def taken(file: str) -> int:
    """The bytes of all pages of the data file, of those too that are free; 0 while there is none."""
    if not AS_LARGE_AS_MAP:
        return used(file)
    try:
        with open_to_read(file) as data:
            pages = PageFile(data, file)
    except (OSError, errors.Error):  # opening the database says what is wrong
        return used(file)
    return (pages.metas[0].last + 1) * pages.page_size


def used(file: str) -> int:
    """The bytes that the data file takes; 0 while there is none."""
    try:
        return os.stat(file).st_size
    except OSError:
        return 0


def release(reserved: int) -> None:
    """Let others of this process have the address space that was *reserved* for an environment closed now."""
    global _reserved
    _reserved -= reserved


def set_size(env: lmdb.Environment, size: int) -> None:
    """Give the open *env* a map of *size* bytes; 0: as large as the file."""
    try:
        env.set_mapsize(size)
    except lmdb.MemoryError:
        # py-lmdb has closed the environment. With cffi (PyPy) it goes on to take the file for open in this process.
        cffi: Any = sys.modules.get("lmdb.cffi")
        keys = getattr(env, "_open_keys", None)
        if cffi is not None and keys:
            cffi._open_env_keys.difference_update(keys)
        raise
