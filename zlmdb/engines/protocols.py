"""The definition of a storage engine, as Protocols: ordered bytes in transactions, and an object that opens them.

The method names are py-lmdb's, so `lmdb.Environment`, `lmdb.Transaction` and `lmdb.Cursor` satisfy these Protocols
directly, and zlmdb calls their C methods without an adapter. A database handle (`open_db`) is opaque to all other
modules. Keys sort as unsigned bytes; if one key begins with another, the shorter one comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Optional, Union, overload

if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object  # only type checkers ask; a class of a Protocol takes several times as long to make

Data = Union[bytes, memoryview]
"""What an engine reads: bytes, or with ``buffers=True`` a memoryview that is valid inside its transaction only."""

Handle = Any
"""What an engine gives for a keyspace, opaque to everything above; None is the main one."""

Durability = Literal["full", "commit", "none"]

Told = Callable[[int, int], object]
"""Is told how many bytes, or pages, are done, and of how many."""


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


def known_options(given: dict[str, Any], known: Sequence[str]) -> dict[str, Any]:
    """The *given* options. Raises TypeError for one that is not among the *known* options of an engine."""
    for name, value in given.items():
        if name not in known:
            raise TypeError(f"{name}={value!r}: the engine has no such option; it has {', '.join(known)}")
    return given


class Cursor(Protocol):
    """A position in one keyspace of one transaction. A new cursor has no position: `key` is then ``b""``.

    After the current record is deleted, `next` goes to the following record and `prev` to the preceding one. Their
    result is undefined if a record was put into that gap since (LMDB skips or repeats records), after a move that
    failed, and for `next` after `last` if records were put since: then find the position again by `first`, `last` or
    `set_range`.
    """

    def first(self) -> bool:
        """Go to the first record; False if there is none."""
        ...

    def last(self) -> bool:
        """Go to the last record; False if there is none."""
        ...

    def next(self) -> bool:
        """Go to the following record (without a position, to the first); False at the end."""
        ...

    def prev(self) -> bool:
        """Go to the preceding record (without a position, to the last); False at the start."""
        ...

    def set_range(self, key: bytes, /) -> bool:
        """Go to the first record whose key is *key* or greater; False if there is none."""
        ...

    def key(self) -> Any:
        """The key at the position."""
        ...

    def value(self) -> Any:
        """The value at the position."""
        ...

    def putmulti(
        self, items: Iterable[tuple[bytes, bytes]], dupdata: bool = True, overwrite: bool = True, append: bool = False
    ) -> tuple[int, int]:
        """Store many records; returns how many were consumed, and how many of them added or replaced.

        With *append*, a record that does not come after the last key is not stored.
        """
        ...

    @overload
    def iternext(self, keys: Literal[True] = True, values: Literal[True] = True) -> Iterator[tuple[Any, Any]]: ...
    @overload
    def iternext(self, keys: Literal[True], values: Literal[False]) -> Iterator[Any]: ...
    @overload
    def iternext(self, keys: Literal[False], values: Literal[True] = True) -> Iterator[Any]: ...
    def iternext(self, keys: bool = True, values: bool = True) -> Any:
        """Records from here on (without a position, from the first), in order: pairs, keys or values."""
        ...

    @overload
    def iterprev(self, keys: Literal[True] = True, values: Literal[True] = True) -> Iterator[tuple[Any, Any]]: ...
    @overload
    def iterprev(self, keys: Literal[True], values: Literal[False]) -> Iterator[Any]: ...
    @overload
    def iterprev(self, keys: Literal[False], values: Literal[True] = True) -> Iterator[Any]: ...
    def iterprev(self, keys: bool = True, values: bool = True) -> Any:
        """Records from here backwards (without a position, from the last): pairs, keys or values."""
        ...

    def close(self) -> None:
        """Release the cursor; safe to call twice."""
        ...


class Transaction(Protocol):
    """A snapshot to read, or the one writer. Ends by `commit` or `abort`; a child (``parent=``) changes its parent."""

    def id(self) -> int:
        """The number of the snapshot read, or of the one being written."""
        ...

    def get(self, key: bytes, default: Any = None, db: Handle = None) -> Any:
        """The value of *key*, or *default*."""
        ...

    def put(
        self, key: bytes, value: bytes, dupdata: bool = True, overwrite: bool = True, append: bool = False,
        db: Handle = None,
    ) -> bool:  # fmt: skip
        """Store a record; False, storing nothing, if it exists and *overwrite* is false.

        With *append* also False if *key* does not come after the last one.
        """
        ...

    def delete(self, key: bytes, value: bytes = b"", db: Handle = None) -> bool:
        """Delete a record; False if there was none."""
        ...

    def cursor(self, db: Handle = None) -> Cursor:
        """A new cursor over *db*."""
        ...

    def stat(self, db: Handle = None) -> Any:
        """Statistics of *db*, a dict of ints; ``entries`` is the number of records, in O(1)."""
        ...

    def drop(self, db: Handle, delete: bool = True) -> None:
        """Delete every record of *db* and, with *delete*, *db* itself."""
        ...

    def commit(self) -> None:
        """Make the changes durable and visible. The transaction has ended, even if this raises."""
        ...

    def abort(self) -> None:
        """Undo the changes. Does nothing if the transaction has ended."""
        ...


class Environment(Protocol):
    """An open store: keyspaces (the main one is handle None), a single writer, snapshots for readers."""

    def begin(
        self, db: Handle = None, parent: Optional[Any] = None, write: bool = False, buffers: Any = False
    ) -> Transaction:  # fmt: skip
        """Begin a transaction. With *write* waits for the current writer to end."""
        ...

    def open_db(self, key: Optional[bytes] = None, txn: Optional[Any] = None, *, create: bool = True) -> Handle:
        """The handle of the keyspace named *key*. Raises if it does not exist and *create* is false."""
        ...

    def max_key_size(self) -> int:
        """The longest key, in bytes."""
        ...

    def sync(self, force: bool = False) -> None:
        """Flush committed data to the disk."""
        ...

    def stat(self) -> Any:
        """Statistics of the main keyspace, a dict of ints."""
        ...

    def info(self) -> Any:
        """Details of the store, a dict of ints: ``map_size``, ``last_pgno``, ``last_txnid``, ``num_readers``, ..."""
        ...

    def close(self) -> None:
        """Close the store; safe to call twice."""
        ...


class State(Protocol):
    """A committed state of a damaged file, as far as it can be read."""

    @property
    def newest(self) -> bool:
        """Whether no later state can be read."""
        ...

    @property
    def problems(self) -> list[str]:
        """The problems found so far, in words."""
        ...

    def afresh(self) -> State:
        """The same state, unread: if a page is met twice, that is a problem."""
        ...

    def main(self) -> Iterable[Record]:
        """The records of the main keyspace, in order."""
        ...

    def records(self, name: str, tree: Any) -> Iterable[Record]:
        """The records of another keyspace, in order; *name* is for the texts of `problems`."""
        ...


class Tree(Protocol):
    """A keyspace of a damaged file."""

    @property
    def entries(self) -> int:
        """The number of records that it should have."""
        ...


class Record(Protocol):
    """A record of a damaged file."""

    @property
    def key(self) -> bytes:
        """Its key."""
        ...

    @property
    def value(self) -> Optional[bytes]:
        """Its value; None if that cannot be read."""
        ...

    @property
    def tree(self) -> Optional[Any]:
        """The keyspace that the record names, a `Tree`, if it names one."""
        ...


class Remains(Protocol):
    """A damaged file, read without the engine, which may crash on it. *size* is in bytes, *faults* are in words.

    *format* is its `Engine.file_version`.
    """

    path: str
    size: int
    format: str
    faults: list[str]

    @property
    def states(self) -> Sequence[State]:
        """The committed states, the newest first."""
        ...


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

    @property
    def names_in_main(self) -> bool:
        """Whether the names of keyspaces are keys of the main one, where other programs may also write."""
        ...

    @property
    def nests(self) -> bool:
        """Whether there are transactions inside write transactions (``begin(parent=)``)."""
        ...

    @property
    def can_grow(self) -> bool:
        """Whether the user set no limit, so that `grow` makes room."""
        ...

    @property
    def limited(self) -> bool:
        """Whether to call `require_room` before commits."""
        ...

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

        Called before a write begins, at most once a second.
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

    def closed(self) -> None:
        """The environment was closed."""
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

    def require_room(self, env: Any, txn: Any, handles: Iterable[Handle]) -> None:
        """Raise `DatabaseFull` where what *txn* stores leaves no room to delete. *handles*: of all spaces but main."""
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

    def in_child(self) -> None:
        """The process was forked: do not close the environment; the next use opens it again."""
        ...


class EngineClass(Protocol):
    """A class of engines, as used by the registry."""

    def make_options(self, **given: Any) -> Options:
        """Its options. Raises TypeError for one that it does not have."""
        ...

    def __call__(self, path: Any, options: Any, *, create: bool) -> Engine:
        """The engine for *path*."""
        ...
