"""An environment in memory, the counterpart of `lmdb.Environment`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from ... import errors
from .records import PAGE, KeyspaceHandle, Records, as_bytes
from .transaction import MemoryTransaction
from .versions import Versions, Writer


class MemoryEnvironment:
    """A store in memory: satisfies `zlmdb.engines.Environment` as `lmdb.Environment` does. Threads may share it.

    *maxsize* limits the bytes of all keys and values (not Python's own overhead, some 150 bytes a record);
    *max_key_size* is LMDB's limit by default, so that what fits here fits there.

    >>> env = MemoryEnvironment()
    >>> ages = env.open_db(b"ages")
    >>> with env.begin(write=True) as txn:
    ...     txn.put(b"ann", b"31", db=ages)
    True
    >>> with env.begin() as txn:
    ...     list(txn.cursor(ages).iternext())
    [(b'ann', b'31')]
    """

    def __init__(self, maxsize: Optional[int] = None, *, max_key_size: int = 511) -> None:
        self.versions = Versions()
        self._maxsize = maxsize
        self._max_key_size = max_key_size
        self._handles: dict[bytes, KeyspaceHandle] = {}

    def __enter__(self) -> MemoryEnvironment:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def begin(
        self, db: Any = None, parent: Optional[Any] = None, write: bool = False, buffers: Any = False
    ) -> MemoryTransaction:  # fmt: skip
        """Begin a transaction. With *write* waits for the current writer to end.

        Raises `NestedTransaction` for a second writer on one thread, `DatabaseClosed`.
        """
        return MemoryTransaction(self, db, parent, write, bool(buffers))

    def open_db(self, key: Optional[bytes] = None, txn: Optional[Any] = None, *, create: bool = True) -> Any:
        """The handle of the keyspace named *key* (None: the main one), created in *txn* or a transaction of its own.

        Raises `KeyError` if it does not exist and *create* is false.
        """
        self.versions.check_open()
        if key is None:
            return self.versions.main
        key = as_bytes(key)
        self.check_key(key)
        handle = self._handles.setdefault(key, KeyspaceHandle(key))
        if handle in (self.versions.committed if txn is None else txn.spaces):
            return handle
        if not create:
            raise KeyError(key)
        if txn is None:
            with self.begin(write=True) as own:
                return self.open_db(key, own)
        _, writer = txn.to_write(self.versions.main)
        with self.versions.lock:
            writer.replace(handle, fresh=True)
        return handle

    def max_key_size(self) -> int:
        """The longest key, in bytes."""
        return self._max_key_size

    def sync(self, force: bool = False) -> None:
        """Do nothing: there is no disk."""
        self.versions.check_open()

    def stat(self) -> Mapping[str, int]:
        """Statistics of the main keyspace, as of the last commit."""
        with self.begin() as txn:
            return txn.stat()

    def info(self) -> Mapping[str, int]:
        """Details of the store under LMDB's names; ``map_size`` is *maxsize*, or 0 without a limit."""
        readers = self.versions.reader_count()
        with self.begin() as txn:
            size = sum(records.size for records in txn.spaces.values())
            last = txn.id()
        return {
            "map_addr": 0, "map_size": self._maxsize or 0, "last_pgno": size // PAGE, "last_txnid": last,
            "max_readers": 0, "num_readers": readers,
        }  # fmt: skip

    def close(self) -> None:
        """Abort every open transaction and drop all records; safe to call twice."""
        self.versions.close()

    def in_child(self) -> None:
        """In a forked process: continue from the last commit; the transactions of the parent are refused."""
        self.versions.in_child()

    # -- what transactions use ------------------------------------------------------------------------------------

    def check_key(self, key: Any, reading: bool = False) -> None:
        """Refuse an invalid key. As in LMDB, a key that is too long to store may be looked up."""
        size = len(key)
        if size == 0 or (size > self._max_key_size and not reading):
            raise errors.EncodeError(
                f"a key of {size} bytes; keys have 1 to {self._max_key_size} bytes",
                size=size, limit=self._max_key_size,
            )  # fmt: skip

    def check_room(self, writer: Writer, records: Records, key: bytes, value: bytes) -> None:
        """Refuse a record that does not fit under *maxsize*."""
        if self._maxsize is None:
            return
        old = records.values.get(key)
        size = len(key) + len(value) - (0 if old is None else len(key) + len(old))
        size += sum(each.size for each in writer.spaces.values())
        if size > self._maxsize:
            raise errors.DatabaseFull(
                f"{size} bytes with this record, of {self._maxsize} allowed; give a larger maxsize",
                size=size, limit=self._maxsize,
            )  # fmt: skip
