"""What zlmdb asks of a storage engine: ordered bytes in transactions, as Protocols, and one that opens and explains.

The method names are py-lmdb's, so that `lmdb.Environment`, `lmdb.Transaction` and `lmdb.Cursor` satisfy theirs
unwrapped and the hot path calls their C methods directly. A database handle (`open_db`) is opaque to everything above.
Keys order as unsigned bytes, a shorter key before a longer one that it begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, Optional, Protocol, Union, overload

Data = Union[bytes, memoryview]
"""What an engine reads: bytes, or with ``buffers=True`` a memoryview that is valid inside its transaction only."""


class Cursor(Protocol):
    """A position in one key space of one transaction. New cursors stand nowhere: `key` is then ``b""``.

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

    def get(self, key: bytes, default: Any = None, db: Any = None) -> Any:
        """The value of *key*, or *default*."""
        ...

    def put(
        self, key: bytes, value: bytes, dupdata: bool = True, overwrite: bool = True, append: bool = False,
        db: Any = None,
    ) -> bool:  # fmt: skip
        """Store a record; False, storing nothing, when it exists and *overwrite* is false.

        With *append* also False when *key* does not come after the last one.
        """
        ...

    def delete(self, key: bytes, value: bytes = b"", db: Any = None) -> bool:
        """Delete a record; False when there was none."""
        ...

    def cursor(self, db: Any = None) -> Any:
        """A new `Cursor` over *db*."""
        ...

    def stat(self, db: Any = None) -> Any:
        """Statistics of *db*, a dict of ints; ``entries`` is the number of records, in O(1)."""
        ...

    def drop(self, db: Any, delete: bool = True) -> None:
        """Delete every record of *db* and, with *delete*, *db* itself."""
        ...

    def commit(self) -> None:
        """Make the changes durable and visible."""
        ...

    def abort(self) -> None:
        """Forget the changes. Safe to call on an ended transaction."""
        ...


class Environment(Protocol):
    """An open store: key spaces (the main one is handle None), a single writer, snapshots for readers."""

    def begin(
        self, db: Any = None, parent: Optional[Any] = None, write: bool = False, buffers: Any = False
    ) -> Any:  # fmt: skip
        """Start a `Transaction`. With *write* waits for the current writer to end."""
        ...

    def open_db(self, key: Optional[bytes] = None, txn: Optional[Any] = None, *, create: bool = True) -> Any:
        """The handle of the key space named *key*. Raises when it does not exist and *create* is false."""
        ...

    def max_key_size(self) -> int:
        """The longest key, in bytes."""
        ...

    def sync(self, force: bool = False) -> None:
        """Flush committed data to the disk."""
        ...

    def stat(self) -> Any:
        """Statistics of the main key space, a dict of ints."""
        ...

    def info(self) -> Any:
        """Facts of the store, a dict of ints: ``map_size``, ``last_pgno``, ``last_txnid``, ``num_readers``, ..."""
        ...

    def close(self) -> None:
        """Close the store; safe to call twice."""
        ...


class Engine(Protocol):
    """How an open file is made an `Environment`, and what its errors mean.

    *path* is what the user gave, *file* the data file and *lock_file* the one of its locks, if there are such files.
    *persistent*: it outlives the process. *can_grow*: the user set no limit. *moves*: growing needs a moment without
    transactions.
    """

    path: Any
    file: Optional[str]
    lock_file: Optional[str]
    persistent: bool
    can_grow: bool
    moves: bool

    def open(self, *, readonly: bool = ...) -> Any:
        """A new environment, *readonly* if only for now."""
        ...

    def open_existing(self, env: Any, name: bytes) -> Any:
        """The handle of the space *name*, or None where there is none."""
        ...

    def closed(self) -> None:
        """The environment was closed."""
        ...

    def grow(self, env: Any) -> None:
        """Make room, if the user set no limit. No transaction is open."""
        ...

    def adopt_size(self, env: Any) -> None:
        """Follow another process that made room. No transaction is open."""
        ...

    def resized(self, error: Exception) -> bool:
        """Whether *error* asks for `adopt_size`."""
        ...

    def translate(self, error: Exception, **facts: Any) -> Exception:
        """Our error for one of the engine; others come back as they are."""
        ...

    def before_fork(self, env: Any) -> list[Any]:
        """Transactions to hold while the process forks."""
        ...

    def in_child(self) -> None:
        """The process was forked; the environment must not be closed, and is opened again on its next use."""
        ...

    def fatal(self, error: Exception) -> bool:
        """Whether after *error* the environment is of no use, and has to be opened anew."""
        ...
