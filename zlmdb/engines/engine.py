"""A storage engine, as a Protocol: an object that opens a store, says what it can do, and explains its errors."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Optional

from ..namedtuples import NamedTuple
from ..protocols import Protocol
from .damaged import Remains
from .environment import Environment, Handle

Told = Callable[[int, int], object]
"""Is told how many bytes, or pages, are done, and of how many."""

Durability = Literal["full", "commit", "none"]


class Options(Protocol):
    """The options of a store that every engine knows: a named tuple, to which an engine may add its own.

    Databases share a store if their options are equal.
    """

    @property
    def readonly(self) -> bool:
        """Whether nothing can be written."""
        ...

    @property
    def maxsize(self) -> Optional[int]:
        """A hard limit in bytes; None: the store grows."""
        ...

    @property
    def durability(self) -> Durability:
        """What a commit survives; see `zlmdb.open`."""
        ...

    def _asdict(self) -> dict[str, Any]: ...


class PlainOptions(NamedTuple):
    """The options of an engine without options of its own."""

    readonly: bool = False
    maxsize: Optional[int] = None
    durability: Durability = "full"


class Engine(Protocol):
    """One store, open or not: opens an `Environment`, says what the store can do, and explains its errors.

    Creating an engine opens nothing. Members with a parameter *env* are called while it is open.
    """

    @property
    def path(self) -> Optional[str]:
        """The path that the user gave; None if nothing outlives the process."""
        ...

    @property
    def options(self) -> Options:
        """The options of the store."""
        ...

    @property
    def file(self) -> Optional[str]:
        """The file with the data; None if there is no single one: then the store can be dumped, but not copied."""
        ...

    @property
    def directory(self) -> Optional[str]:
        """The directory that belongs to the store alone."""
        ...

    @property
    def lock_file(self) -> Optional[str]:
        """The file that every process with the store open keeps locked."""
        ...

    # -- what it can do -------------------------------------------------------------------------------------------

    names_in_main: bool
    """Whether the names of keyspaces are keys of the main one, where other programs may also write."""
    nests: bool
    """Whether there are transactions inside write transactions (``begin(parent=)``)."""
    lends: bool
    """Whether a transaction inside a write transaction may be that of another thread, one at a time."""
    abandons: bool
    """Whether transactions have a method ``abandon``, which aborts, waits for nothing, and suits every thread."""
    is_local: bool
    """Whether all processes that have the store open are on this machine, as far as known: False before `open`."""
    can_grow: bool
    """Whether the user set no limit, so that `grow` makes room."""
    limited: bool
    """Whether to call `require_room` before commits."""

    @property
    def moves(self) -> bool:
        """Whether growing needs a moment without transactions."""
        ...

    @property
    def writer_lock(self) -> Optional[str]:
        """The file by whose lock the writers of all processes wait for each other; None: there is only this process.

        None also if the engine or the options do not need it.
        """
        ...

    @property
    def key_limit(self) -> int:
        """The maximum size of a key in a new store, in bytes."""
        ...

    # -- before it is open ----------------------------------------------------------------------------------------

    def identity(self) -> Optional[Hashable]:
        """A value that all paths to this store have in common; None if it does not exist, or is private."""
        ...

    def exists(self) -> bool:
        """Whether there is a store to open."""
        ...

    def files(self) -> tuple[str, ...]:
        """The files of the store, including its lock files, whether they exist or not."""
        ...

    def verify(self, file: str, told: Optional[Told] = None) -> list[str]:
        """The problems in the structure of *file*, one of this engine's, in words; reads it without the engine.

        Raises `InvalidDatabase`, `CorruptDatabase`; `FileRequired` if the engine has no files.
        """
        ...

    def check_file(self) -> None:
        """Raise `InvalidDatabase` or `CorruptDatabase` if the open file was replaced, removed or cut off.

        Called before a write begins, at most ten times a second.
        """
        ...

    def require_reader(self) -> None:
        """Raise `ReadonlyDatabase` if this user can read the store, but cannot register as a reader."""
        ...

    def remains(self) -> AbstractContextManager[Remains]:
        """A block that reads the store's file, which may be damaged, without the engine. Raises as `verify` does."""
        ...

    # -- open and close -------------------------------------------------------------------------------------------

    def open(self, *, readonly: bool = ...) -> Environment:
        """A new environment; *readonly*: for reading only, for the time being."""
        ...

    def open_existing(self, env: Any, name: bytes) -> Handle:
        """The handle of the space *name*, or None if there is none."""
        ...

    def holds_spaces(self, env: Any, txn: Any) -> bool:
        """Whether there is any keyspace but the main one."""
        ...

    def space_names(self, env: Any, txn: Any) -> Iterable[bytes]:
        """The names of all keyspaces but the main one."""
        ...

    def closed(self) -> None:
        """The environment was closed."""
        ...

    def abort(self, held: list[Any]) -> None:
        """Abort the write transaction in *held*, a list of one, and take it out.

        The caller keeps no other reference to it: some engines abort at once only what nobody else refers to.
        """
        ...

    # -- room -----------------------------------------------------------------------------------------------------

    def capacity(self, env: Optional[Any]) -> int:
        """The bytes to which the open store may grow; of a closed one, those after opening; 0: no limit."""
        ...

    def used(self, env: Any) -> int:
        """The maximum size of a copy of the store, in bytes."""
        ...

    def data_pages(self, env: Any) -> int:
        """The number of pages, from `Environment.info`, that contain data or are free for it."""
        ...

    def grow(self, env: Any) -> None:
        """Make room, if the user set no limit. No transaction is open."""
        ...

    def require_room(self, env: Any, txn: Any, handles: Iterable[Handle], begun: float) -> float:
        """Raise `DatabaseFull` where what *txn* stores leaves no room to delete. *handles*: of all spaces but main.

        *begun* is the time (of `zlmdb.locks.monotonic`) when *txn* began, or earlier. Returns the time until which no
        writer can have stored so much that this has to be asked again; zero where the engine does not know.
        """
        ...

    def adopt_size(self, env: Any) -> None:
        """Use the new size after another process has made room. No transaction is open."""
        ...

    # -- what it tells --------------------------------------------------------------------------------------------

    def copy_to(self, env: Any, target: int, *, compact: bool, told: Told) -> None:
        """Write one snapshot to the new file of descriptor *target*; *compact*: without unused pages.

        Called inside a read transaction. Raises the engine's errors.
        """
        ...

    def readers(self, env: Any) -> list[tuple[int, Optional[int]]]:
        """The readers in all processes: the process and the snapshot; None for one that reads nothing now."""
        ...

    def clear_readers(self, env: Any) -> int:
        """Remove the readers whose processes were killed; returns their number."""
        ...

    def settled(self, env: Any, options: Any) -> Options:
        """*options* with the values of the open store for those that were left open."""
        ...

    def file_version(self, env: Any) -> Optional[str]:
        """The format of the file, if the engine has several."""
        ...

    def library_version(self, env: Any) -> str:
        """The version of the engine itself."""
        ...

    # -- errors ---------------------------------------------------------------------------------------------------

    def translate(self, error: Exception, **details: Any) -> Exception:
        """The error of zlmdb for an engine's error, with *details* as attributes; other errors are returned."""
        ...

    def retry(self, error: Exception) -> bool:
        """Whether to run a transaction again that met *error*, a `Conflict`; may wait a moment before it returns."""
        ...

    def resized(self, error: Exception) -> bool:
        """Whether *error* requires `adopt_size`."""
        ...

    def fatal(self, error: Exception) -> bool:
        """Whether the environment is unusable after *error*, and must be opened again."""
        ...

    # -- fork -----------------------------------------------------------------------------------------------------

    def before_fork(self, env: Any) -> list[Any]:
        """Transactions to hold while the process forks."""
        ...

    def in_child(self, env: Any) -> None:
        """The process was forked: do not close *env*, if it is not None; the next use opens another one."""
        ...


class EngineClass(Protocol):
    """A class of engines, as used by the registry."""

    def make_options(self, **given: Any) -> Options:
        """Its options. Raises TypeError for one that it does not have."""
        ...

    def __call__(self, path: Any, options: Any, *, create: bool) -> Engine:
        """The engine for *path*."""
        ...


def known_options(given: dict[str, Any], known: Sequence[str]) -> dict[str, Any]:
    """The *given* options. Raises TypeError for one that is not among the *known* options of an engine."""
    for name, value in given.items():
        if name not in known:
            raise TypeError(f"{name}={value!r}: the engine has no such option; it has {', '.join(known)}")
    return given
