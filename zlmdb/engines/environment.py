"""An open store, as Protocols: ordered bytes in transactions.

The method names are py-lmdb's, so `lmdb.Environment`, `lmdb.Transaction` and `lmdb.Cursor` satisfy these Protocols
directly, and zlmdb calls their C methods without an adapter. A database handle (`open_db`) is opaque to all other
modules. Keys sort as unsigned bytes; if one key begins with another, the shorter one comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, Optional, Union, overload

from ..protocols import Protocol

Data = Union[bytes, memoryview]
"""What an engine reads: bytes, or with ``buffers=True`` a memoryview that is valid inside its transaction only."""

Handle = Any
"""What an engine gives for a keyspace, opaque to everything above; None is the main one."""


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

    def get(self, key: bytes, default: Any = None) -> Any:
        """The value of *key*, to which it goes, or *default*; fast where *key* comes soon behind the position."""
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
