"""The engine of a store in memory."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, NoReturn, Optional

from ... import errors
from ..engine import Options, PlainOptions, Told, known_options
from ..environment import Handle
from .environment import MemoryEnvironment
from .transaction import MemoryTransaction


class MemoryEngine:
    """An environment in memory, of at most ``options.maxsize`` bytes of keys and values. It raises errors of zlmdb.

    Each one is a store of its own, which ends when it is closed: *path* is None.
    """

    path = file = directory = lock_file = writer_lock = None
    names_in_main = can_grow = limited = moves = lends = is_local = False
    nests = abandons = True
    key_limit = 511

    def __init__(self, path: None, options: Options, *, create: bool = True) -> None:
        self.options = options
        self._env: Optional[MemoryEnvironment] = None

    @classmethod
    def make_options(cls, **given: Any) -> PlainOptions:
        """The options *given*."""
        return PlainOptions(**known_options(given, PlainOptions._fields))

    def identity(self) -> None:
        """None: nobody else can open it."""

    def exists(self) -> bool:
        """Whether it is open."""
        return self._env is not None

    def files(self) -> tuple[str, ...]:
        """No files."""
        return ()

    def verify(self, file: str, told: Optional[Told] = None) -> list[str]:
        """Raise `FileRequired`."""
        self._refuse()

    def check_file(self) -> None:
        """Does nothing: there is no file."""

    def require_reader(self) -> None:
        """Does nothing: all readers are in this process."""

    def remains(self) -> AbstractContextManager[Any]:
        """Raise `FileRequired`."""
        self._refuse()

    def copy_to(self, env: MemoryEnvironment, target: int, *, compact: bool, told: Told) -> None:
        """Raise `FileRequired`."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise errors.FileRequired("this database is in memory and has no file: give the path of one that has")

    def open(self, *, readonly: bool = False) -> MemoryEnvironment:
        """A new environment; in a forked child a copy of the parent's, because the processes share nothing."""
        if self._env is None:
            self._env = MemoryEnvironment(self.options.maxsize, max_key_size=self.key_limit)
        return self._env

    def open_existing(self, env: MemoryEnvironment, name: bytes) -> Handle:
        """The handle of the space *name*, or None if there is none."""
        try:
            return env.open_db(name, create=False)
        except KeyError:
            return None

    def holds_spaces(self, env: MemoryEnvironment, txn: MemoryTransaction) -> bool:
        """Whether there is any keyspace but the main one."""
        return len(txn.spaces) > 1

    def space_names(self, env: MemoryEnvironment, txn: MemoryTransaction) -> Iterable[bytes]:
        """The names of all keyspaces but the main one."""
        return [handle.name for handle in txn.spaces if handle.name is not None]

    def closed(self) -> None:
        """The environment was closed, and its records are gone."""
        self._env = None

    def capacity(self, env: Optional[MemoryEnvironment]) -> int:
        """The bytes of keys and values that fit; 0: no limit."""
        return self.options.maxsize or 0

    def used(self, env: MemoryEnvironment) -> int:
        """The bytes of keys and values, in whole pages."""
        return (env.info()["last_pgno"] + 1) * env.stat()["psize"]

    def data_pages(self, env: MemoryEnvironment) -> int:
        """The number of pages in use; none is free."""
        return 0

    def readers(self, env: MemoryEnvironment) -> list[tuple[int, Optional[int]]]:
        """No readers: other processes could see none."""
        return []

    def clear_readers(self, env: MemoryEnvironment) -> int:
        """0: the collector ends readers."""
        return 0

    def settled(self, env: MemoryEnvironment, options: Options) -> Options:
        """*options* unchanged."""
        return options

    def file_version(self, env: MemoryEnvironment) -> None:
        """None: there is no file."""

    def library_version(self, env: MemoryEnvironment) -> str:
        """It is part of zlmdb."""
        return "memory"

    def grow(self, env: MemoryEnvironment) -> None:
        """Nothing to do: memory grows by itself."""

    adopt_size = grow

    def require_room(
        self, env: MemoryEnvironment, txn: MemoryTransaction, handles: Iterable[Handle], begun: float
    ) -> float:  # fmt: skip
        """Nothing to do: deleting needs no room."""
        return float("inf")

    def fatal(self, error: Exception) -> bool:
        """False: no error breaks it."""
        return False

    def resized(self, error: Exception) -> bool:
        """False: there is no other process."""
        return False

    def retry(self, error: Exception) -> bool:
        """False: there is one writer at a time."""
        return False

    def translate(self, error: Exception, **details: Any) -> Exception:
        """*error* unchanged."""
        return error

    def abort(self, held: list[Any]) -> None:
        """Abort the transaction in *held*, and take it out."""
        held[0].abort()
        held.clear()

    def before_fork(self, env: MemoryEnvironment) -> list[Any]:
        """Nothing to hold."""
        return []

    def in_child(self, env: Optional[MemoryEnvironment]) -> None:
        """Keep the records, in the child's own copy, and refuse the transactions that the parent process began."""
        if self._env is not None:
            self._env.in_child()
