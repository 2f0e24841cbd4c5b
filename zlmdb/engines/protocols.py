"""What zlmdb asks of a storage engine: ordered bytes in transactions, as Protocols, and one that opens and explains.

The method names are py-lmdb's, so that `lmdb.Environment`, `lmdb.Transaction` and `lmdb.Cursor` satisfy theirs
unwrapped and the hot path calls their C methods directly. A database handle (`open_db`) is opaque to everything above.
Keys order as unsigned bytes, a shorter key before a longer one that it begins.
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
    """How a store is opened, as far as every engine knows it: a named tuple, to which an engine may add its own.

    Handles of one store share it when their options are equal.
    """

    @property
    def readonly(self) -> bool:
        """Whether nothing can be written."""
        ...

    @property
    def maxsize(self) -> Optional[int]:
        """Bytes, a hard limit; None: it grows."""
        ...

    @property
    def durability(self) -> Durability:
        """What a commit survives; see `zlmdb.open`."""
        ...

    def _asdict(self) -> dict[str, Any]: ...


class PlainOptions(NamedTuple):
    """The options of an engine that has no others."""

    readonly: bool = False
    maxsize: Optional[int] = None
    durability: Durability = "full"


def known_options(given: dict[str, Any], known: Sequence[str]) -> dict[str, Any]:
    """The options *given*. Raises TypeError for one that is not among the *known* ones of an engine."""
    for name, value in given.items():
        if name not in known:
            raise TypeError(f"{name}={value!r}: the engine has no such option; it has {', '.join(known)}")
    return given


class Cursor(Protocol):
    """A position in one keyspace of one transaction. New cursors stand nowhere: `key` is then ``b""``.

    When the current record is deleted, `next` goes to the following one and `prev` to the preceding one. What they do
    is undefined when a record was put into that gap since (LMDB skips or repeats records), after a move that failed,
    and for `next` after `last` when records were put since: find the place again by `first`, `last` or `set_range`.
    """

    def first(self) -> bool:
        """Go to the first record; False when there is none."""
        ...

    def last(self) -> bool:
        """Go to the last record; False when there is none."""
        ...

    def next(self) -> bool:
        """Go to the following record (the first one from nowhere); False past the end."""
        ...

    def prev(self) -> bool:
        """Go to the preceding record (the last one from nowhere); False before the start."""
        ...

    def set_range(self, key: bytes, /) -> bool:
        """Go to the first record whose key is *key* or greater; False when there is none."""
        ...

    def key(self) -> Any:
        """The key here."""
        ...

    def value(self) -> Any:
        """The value here."""
        ...

    def putmulti(
        self, items: Iterable[tuple[bytes, bytes]], dupdata: bool = True, overwrite: bool = True, append: bool = False
    ) -> tuple[int, int]:
        """Store many records: how many were consumed, and how many of them added or replaced.

        With *append* those that do not come after the last key are not.
        """
        ...

    @overload
    def iternext(self, keys: Literal[True] = True, values: Literal[True] = True) -> Iterator[tuple[Any, Any]]: ...
    @overload
    def iternext(self, keys: Literal[True], values: Literal[False]) -> Iterator[Any]: ...
    @overload
    def iternext(self, keys: Literal[False], values: Literal[True] = True) -> Iterator[Any]: ...
    def iternext(self, keys: bool = True, values: bool = True) -> Any:
        """Records from here on (from the first one when nowhere), in order: pairs, keys or values."""
        ...

    @overload
    def iterprev(self, keys: Literal[True] = True, values: Literal[True] = True) -> Iterator[tuple[Any, Any]]: ...
    @overload
    def iterprev(self, keys: Literal[True], values: Literal[False]) -> Iterator[Any]: ...
    @overload
    def iterprev(self, keys: Literal[False], values: Literal[True] = True) -> Iterator[Any]: ...
    def iterprev(self, keys: bool = True, values: bool = True) -> Any:
        """Records from here backwards (from the last one when nowhere): pairs, keys or values."""
        ...

    def close(self) -> None:
        """Release the cursor; safe to call twice."""
        ...


class Transaction(Protocol):
    """A snapshot to read, or the one writer. Ends by `commit` or `abort`; a child (``parent=``) into its parent."""

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
        """Store a record; False, storing nothing, when it exists and *overwrite* is false.

        With *append* also False when *key* does not come after the last one.
        """
        ...

    def delete(self, key: bytes, value: bytes = b"", db: Handle = None) -> bool:
        """Delete a record; False when there was none."""
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
        """Make the changes durable and visible. The transaction has ended, though it raises."""
        ...

    def abort(self) -> None:
        """Forget the changes. Safe to call on an ended transaction."""
        ...


class Environment(Protocol):
    """An open store: keyspaces (the main one is handle None), a single writer, snapshots for readers."""

    def begin(
        self, db: Handle = None, parent: Optional[Any] = None, write: bool = False, buffers: Any = False
    ) -> Transaction:  # fmt: skip
        """Start a transaction. With *write* waits for the current writer to end."""
        ...

    def open_db(self, key: Optional[bytes] = None, txn: Optional[Any] = None, *, create: bool = True) -> Handle:
        """The handle of the keyspace named *key*. Raises when it does not exist and *create* is false."""
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
        """Facts of the store, a dict of ints: ``map_size``, ``last_pgno``, ``last_txnid``, ``num_readers``, ..."""
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
        """What was wrong with what was read so far, in words."""
        ...

    def afresh(self) -> State:
        """The same state, with nothing of it read yet: what is met twice is a problem."""
        ...

    def main(self) -> Iterable[Record]:
        """The records of the main keyspace, in order."""
        ...

    def records(self, name: str, tree: Any) -> Iterable[Record]:
        """The records of another one, in order; *name* is for the texts of `problems`."""
        ...


class Tree(Protocol):
    """A keyspace of a damaged file."""

    @property
    def entries(self) -> int:
        """The records that it should have."""
        ...


class Record(Protocol):
    """A record of a damaged file."""

    @property
    def key(self) -> bytes:
        """Its key."""
        ...

    @property
    def value(self) -> Optional[bytes]:
        """Its value; None where that cannot be read."""
        ...

    @property
    def tree(self) -> Optional[Any]:
        """The keyspace that it names, a `Tree`, if it names one."""
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
    """One store, open or not: how it is made an `Environment`, what it can do, and what its errors mean.

    Making an engine opens nothing. Members that take an *env* are asked while it is open.
    """

    @property
    def path(self) -> Optional[str]:
        """What the user gave; None where nothing outlives the process."""
        ...

    @property
    def options(self) -> Options:
        """How it is opened."""
        ...

    @property
    def file(self) -> Optional[str]:
        """The file that holds the data; None where there is no single one: then it can be dumped, and not copied."""
        ...

    @property
    def directory(self) -> Optional[str]:
        """The directory that is the store's own, with all that is in it."""
        ...

    @property
    def lock_file(self) -> Optional[str]:
        """The file that everyone who has the store open keeps locked."""
        ...

    # -- what it can do -------------------------------------------------------------------------------------------

    @property
    def names_in_main(self) -> bool:
        """Whether the names of keyspaces are keys of the main one, where other programs may write, too."""
        ...

    @property
    def nests(self) -> bool:
        """Whether there are transactions inside write transactions (``begin(parent=)``)."""
        ...

    @property
    def can_grow(self) -> bool:
        """Whether the user set no limit, and making room is left to `grow`."""
        ...

    @property
    def limited(self) -> bool:
        """Whether `require_room` is to be asked before commits."""
        ...

    @property
    def moves(self) -> bool:
        """Whether growing needs a moment without transactions."""
        ...

    @property
    def writer_lock(self) -> Optional[str]:
        """The file by whose lock the writers of all processes wait for each other; None: there is only this process.

        Also where the engine or the options do without.
        """
        ...

    @property
    def key_limit(self) -> int:
        """The bytes that a key may take in a new store."""
        ...

    # -- before it is open ----------------------------------------------------------------------------------------

    def identity(self) -> Optional[Hashable]:
        """What all paths that lead to this store have in common; None while it does not exist, or is private."""
        ...

    def exists(self) -> bool:
        """Whether there is something to open."""
        ...

    def files(self) -> tuple[str, ...]:
        """The files of the store, those of its locks too, whether they exist or not."""
        ...

    def verify(self, file: str, told: Optional[Told] = None) -> list[str]:
        """What is wrong with the structure of *file*, one of this engine's, in words; it is read without the engine.

        Raises `InvalidDatabase`, `CorruptDatabase`; `FileRequired` where the engine has no files.
        """
        ...

    def check_file(self) -> None:
        """Raise `InvalidDatabase` or `CorruptDatabase` where what is open was replaced, removed or cut off meanwhile.

        Called before a write begins, at most once a second.
        """
        ...

    def require_reader(self) -> None:
        """Raise `ReadonlyDatabase` where this user can read the store, but not so that writers take care of it."""
        ...

    def remains(self) -> AbstractContextManager[Remains]:
        """A block that reads the store's file, which may be damaged, without the engine. Raises as `verify` does."""
        ...

    # -- open and close -------------------------------------------------------------------------------------------

    def open(self, *, readonly: bool = ...) -> Environment:
        """A new environment, *readonly* if only for now."""
        ...

    def open_existing(self, env: Any, name: bytes) -> Handle:
        """The handle of the space *name*, or None where there is none."""
        ...

    def holds_spaces(self, env: Any, txn: Any) -> bool:
        """Whether there is any keyspace but the main one."""
        ...

    def closed(self) -> None:
        """The environment was closed."""
        ...

    # -- room -----------------------------------------------------------------------------------------------------

    def capacity(self, env: Optional[Any]) -> int:
        """The bytes to which the store may grow as it is open; of a closed one, as it would be opened; 0: no limit."""
        ...

    def used(self, env: Any) -> int:
        """The bytes that a copy of the store takes at most."""
        ...

    def data_pages(self, env: Any) -> int:
        """The pages, as `Environment.info` counts them, that hold data or are free for it."""
        ...

    def grow(self, env: Any) -> None:
        """Make room, if the user set no limit. No transaction is open."""
        ...

    def require_room(self, env: Any, txn: Any, handles: Iterable[Handle]) -> None:
        """Raise `DatabaseFull` where what *txn* stores leaves no room to delete. *handles*: of all spaces but main."""
        ...

    def adopt_size(self, env: Any) -> None:
        """Follow another process that made room. No transaction is open."""
        ...

    # -- what it tells --------------------------------------------------------------------------------------------

    def copy_to(self, env: Any, target: int, *, compact: bool, told: Told) -> None:
        """Write one snapshot to the new file of descriptor *target*; *compact*: without the pages that nothing uses.

        Called inside a read transaction. Raises the engine's errors.
        """
        ...

    def readers(self, env: Any) -> list[tuple[int, Optional[int]]]:
        """Who reads, in all processes: the process and the snapshot; None for one that reads nothing now."""
        ...

    def clear_readers(self, env: Any) -> int:
        """Forget the readers whose processes were killed; how many."""
        ...

    def settled(self, env: Any, options: Any) -> Options:
        """*options* with what they leave open filled in, as it is in the open store."""
        ...

    def file_version(self, env: Any) -> Optional[str]:
        """The format of the file, where the engine has several."""
        ...

    def library_version(self, env: Any) -> str:
        """The version of the engine itself."""
        ...

    # -- errors ---------------------------------------------------------------------------------------------------

    def translate(self, error: Exception, **details: Any) -> Exception:
        """Our error for one of the engine, with *details* as its attributes; others come back as they are."""
        ...

    def retry(self, error: Exception) -> bool:
        """Whether a transaction that met *error*, a `Conflict`, is to be run again; may wait a moment before."""
        ...

    def resized(self, error: Exception) -> bool:
        """Whether *error* asks for `adopt_size`."""
        ...

    def fatal(self, error: Exception) -> bool:
        """Whether after *error* the environment is of no use, and has to be opened anew."""
        ...

    # -- fork -----------------------------------------------------------------------------------------------------

    def before_fork(self, env: Any) -> list[Any]:
        """Transactions to hold while the process forks."""
        ...

    def in_child(self) -> None:
        """The process was forked; the environment must not be closed, and is opened again on its next use."""
        ...


class EngineClass(Protocol):
    """A class of engines, as the registry knows it."""

    def make_options(self, **given: Any) -> Options:
        """Its options. Raises TypeError for one that it does not have."""
        ...

    def __call__(self, path: Any, options: Any, *, create: bool) -> Engine:
        """The engine for *path*."""
        ...
