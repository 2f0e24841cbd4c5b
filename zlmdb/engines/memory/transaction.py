"""A snapshot of an environment in memory, or its writer."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Optional

from ... import errors
from .cursor import MemoryCursor
from .records import BEGINNING, ENDED, FORKED, IN_CHILD, KeyspaceHandle, Records, Spaces, as_bytes, stamps

if TYPE_CHECKING:
    from .environment import MemoryEnvironment
    from .versions import Writer

_LENT_VIEWS = 1024


class MemoryTransaction:
    """A snapshot, or the one writer; see `zlmdb.engines.Transaction`. Made by `MemoryEnvironment.begin`.

    Raises `TransactionClosed` after its end, `NestedTransaction` while it has an open child, `ReadonlyDatabase` on a
    write in a read transaction, `EncodeError` for an empty key or one that is too long to store, `DatabaseFull`,
    `TransactionStale` for a keyspace that its snapshot does not have.
    """

    def __init__(
        self, env: MemoryEnvironment, db: Any, parent: Optional[MemoryTransaction], write: bool, buffers: bool
    ) -> None:
        self.spaces: Spaces = BEGINNING
        self.buffers = buffers
        self._env = env
        self._parent = parent
        self._db = env.versions.main if db is None else db
        self.writer: Optional[Writer] = None
        self.child: Optional[MemoryTransaction] = None
        # The last views given, to release them. All of them would keep every value that a long scan has passed.
        self._views: deque[memoryview] = deque(maxlen=_LENT_VIEWS)
        self._mark = 0 if parent is None or parent.writer is None else len(parent.writer.log)
        self._token = next(stamps)
        try:
            self._begin(write)
        except BaseException:
            self.abort()
            raise

    def _begin(self, write: bool) -> None:
        versions, parent = self._env.versions, self._parent
        if parent is not None:
            self.writer = parent.enter_child(self, write)
        elif write:
            self.writer = versions.write(self._token, self)
        if self.writer is None:
            self._id, self.spaces = versions.read(self._token, self)
        else:
            self._id, self.spaces = self.writer.id, self.writer.spaces

    def __enter__(self) -> MemoryTransaction:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.commit()
        else:
            self.abort()

    def __del__(self) -> None:
        # A child is not collected before its parent, which holds it.
        if getattr(self, "_token", 0) and self._parent is None:
            self.abandon()

    def abandon(self) -> None:
        """Forget the changes, from a finaliser, which may run in the middle of anything: this waits for no lock."""
        if self.spaces is not ENDED and self.spaces is not FORKED:
            self._env.versions.abandon(self._token, self.writer)
            self.spaces = ENDED

    @property
    def has_begun(self) -> bool:
        """Whether it is open, so that somebody may end it."""
        return self.spaces is not ENDED and self.spaces is not BEGINNING

    # -- what cursors use -----------------------------------------------------------------------------------------

    def lend(self, data: bytes) -> memoryview:
        """A view of *data*, to release at the end."""
        view = memoryview(data)
        self._views.append(view)
        return view

    def lend_pair(self, pair: tuple[bytes, bytes]) -> tuple[memoryview, memoryview]:
        """Views of a key and its value."""
        return self.lend(pair[0]), self.lend(pair[1])

    def store(self, key: Any, value: Any, overwrite: bool, append: bool, db: KeyspaceHandle) -> bool:
        """Do what `put` promises."""
        records, writer = self.to_write(db)
        env = self._env
        key, value = as_bytes(key), as_bytes(value)
        env.check_key(key)
        if (not overwrite and key in records.values) or (append and len(records.keys) and key <= records.keys[-1]):
            return False
        with env.versions.lock:  # not while a reader that begins copies these records
            records = env.versions.own(writer, db, records)
            env.check_room(writer, records, key, value)
            writer.set(records, key, value)
        return True

    def to_write(self, db: Optional[KeyspaceHandle]) -> tuple[Records, Writer]:
        """The records of *db*, and the writer to change them with."""
        records = self.spaces[self._db if db is None else db]
        if self.writer is None:
            raise errors.ReadonlyDatabase("a write in a read transaction; begin with write=True")
        return records, self.writer

    # -- records --------------------------------------------------------------------------------------------------

    def id(self) -> int:
        """The number of the snapshot read, or of the one being written."""
        self._check_open()
        return self._id

    def get(self, key: bytes, default: Any = None, db: Any = None) -> Any:
        """The value of *key*, or *default*."""
        values = self.spaces[self._db if db is None else db].values
        value = values.get(key) if type(key) is bytes else values.get(as_bytes(key))
        if value is None:
            self._env.check_key(key, reading=True)
            return default
        return self.lend(value) if self.buffers else value

    def put(
        self, key: bytes, value: bytes, dupdata: bool = True, overwrite: bool = True, append: bool = False,
        db: Any = None,
    ) -> bool:  # fmt: skip
        """Store a record; False, storing nothing, when it exists and *overwrite* is false.

        With *append* also False when *key* does not come after the last one.
        """
        return self.store(key, value, overwrite, append, self._db if db is None else db)

    def delete(self, key: bytes, value: bytes = b"", db: Any = None) -> bool:
        """Delete a record; False when there was none. *value* is ignored: a key has one value."""
        db = self._db if db is None else db
        records, writer = self.to_write(db)
        key = as_bytes(key)
        if key not in records.values:
            self._env.check_key(key, reading=True)
            return False
        versions = self._env.versions
        with versions.lock:
            writer.set(versions.own(writer, db, records), key, None)
        return True

    def cursor(self, db: Any = None) -> MemoryCursor:
        """A new cursor over *db*."""
        return MemoryCursor(self, self._db if db is None else db)

    def stat(self, db: Any = None) -> Mapping[str, int]:
        """Statistics of *db*; ``entries`` is the number of records, in O(1)."""
        return self.spaces[self._db if db is None else db].stat()

    def drop(self, db: Any, delete: bool = True) -> None:
        """Delete every record of *db* and, with *delete*, *db* itself (the main one stays). O(1)."""
        _, writer = self.to_write(db)
        versions = self._env.versions
        with versions.lock:
            writer.replace(db, fresh=not delete or db is versions.main)

    # -- the end --------------------------------------------------------------------------------------------------

    def enter_child(self, child: MemoryTransaction, write: bool) -> Writer:
        """Let *child* work here until its end."""
        _, writer = self.to_write(self._env.versions.main)
        if not write:
            raise ValueError("a child transaction writes: give write=True")
        self.child = child
        self.spaces = IN_CHILD
        return writer

    def leave_child(self, child: MemoryTransaction, mark: Optional[int]) -> None:
        """*child* has ended: go on, after taking back all that came after *mark*, a length of the log."""
        writer = self.writer
        if writer is not None and self.child is child:
            if mark is not None:
                with self._env.versions.lock:
                    writer.undo(mark)
            self.spaces = writer.spaces
            self.child = None

    def commit(self) -> None:
        """Make the changes visible: to new readers, or, in a child, to the parent. An open child is aborted."""
        self._check_open()
        self._end(keep=True)

    def abort(self) -> None:
        """Forget the changes, with those of an open child. Safe to call on an ended transaction."""
        if self.spaces is not ENDED and self.spaces is not FORKED:
            self._end(keep=False)

    def _check_open(self) -> None:
        if not self.has_begun or self.spaces is FORKED:
            self.spaces.refuse()

    def _end(self, keep: bool) -> None:
        if self.child is not None:
            self.child.abort()
        if self._parent is None:
            self._env.versions.end(self._token, self.writer, keep)
        else:
            self._parent.leave_child(self, None if keep else self._mark)
        self.spaces = ENDED
        for view in self._views:
            with contextlib.suppress(BufferError):  # something still looks at it: it stays
                view.release()
        self._views.clear()
