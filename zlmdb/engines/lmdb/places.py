"""Where a data file lies: what a path names, and which database of another kind has a directory already."""

from __future__ import annotations

import os
import stat
import sys
from itertools import islice
from typing import NoReturn

from ... import errors
from .pages import MAGIC

DATA = "data.mdb"

_MOST = 1000  # entries of a directory that are looked at
_HEAD = 32
_LMDB = MAGIC.to_bytes(4, sys.byteorder)
_CACHE = {"boot", "guard", "users"}


def data_file(path: str) -> str:
    """The data file of the database at *path*, which is its directory or the data file itself."""
    try:  # one look, as another process may make it meanwhile
        is_directory = stat.S_ISDIR(os.stat(path).st_mode)
    except (OSError, ValueError):  # nothing is there
        is_directory = os.path.basename(path) != DATA or os.path.islink(path)
    return os.path.join(os.path.abspath(path), DATA) if is_directory else os.path.realpath(path)


def env_path(file: str) -> tuple[str, bool]:
    """What LMDB is to open for the data file *file*, and whether that is a directory.

    Of a ``data.mdb`` it is the directory: whoever names the one or the other must meet in one lock file.
    """
    directory, name = os.path.split(file)
    return (directory, True) if name == DATA and not os.path.exists(file + "-lock") else (file, False)


def refuse_others(path: str, directory: str) -> None:
    """Raise `InvalidDatabase` if *directory*, which *path* names and where a new database would be, has another one.

    Who names the data file itself wants it beside what is there.
    """
    if os.path.basename(path) != DATA:
        try:
            with os.scandir(directory) as entries:
                found = {entry.name: entry for entry in islice(entries, _MOST)}
        except OSError:  # there is none yet; or opening it says what is wrong
            return
        if DATA in found:  # another process has made it meanwhile
            return
        if "CURRENT" in found and any(name.startswith("MANIFEST-") for name in found):
            _refuse(path, "a LevelDB or RocksDB database", "CURRENT")
        if found.keys() >= _CACHE:
            _refuse(path, "a cache of zlmdb", "boot")
        for name, entry in found.items():
            if not name.endswith(".tmp") and _is_lmdb(entry):
                _refuse(path, "an LMDB database", name)


def _is_lmdb(entry: os.DirEntry[str]) -> bool:
    """Whether the file is one of LMDB, as far as its first bytes tell."""
    try:
        if not entry.is_file():  # to open a pipe may take for ever
            return False
        with open(entry.path, "rb", buffering=0) as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    return _LMDB in (head[16:20], head[24:28])


def _refuse(path: str, kind: str, name: str) -> NoReturn:
    raise errors.InvalidDatabase(
        f"the directory {path!r} has {kind}, {name!r}, and none of the name {DATA!r}: to open a database in one file, "
        f"give the path of that file; a new one takes a directory of its own, such as {os.path.join(path, 'zlmdb')!r}; "
        f"to make it beside what is there, name its file, {os.path.join(path, DATA)!r}",
        path=path,
    )
