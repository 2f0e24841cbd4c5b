"""All errors that zlmdb raises. They have one base, and each is also a built-in exception that fits.

A missing key is a plain `KeyError`, a wrong argument of a call a plain `TypeError` or `ValueError`.
"""

from __future__ import annotations

from typing import Any, NoReturn, Optional

__all__ = [
    "ChangesLost", "Conflict", "ConstraintError", "CorruptDatabase", "DanglingLink", "DatabaseClosed", "DatabaseFull",
    "DatabaseInUse", "DecodeError", "DiskError", "DuplicateKey", "EncodeError", "Error", "FileRequired",
    "ForkedTransaction", "IndexNotAttached", "IndexNotBuilt", "InvalidDatabase", "LeaseLost", "NestedTransaction",
    "NullValueConstraint", "ReadonlyDatabase", "SchemaMismatch", "StillLinked", "TransactionClosed",
    "TransactionPoisoned", "TransactionStale", "WriterTimeout", "WrongThread",
]  # fmt: skip


class Error(Exception):
    """The base of all errors of zlmdb.

    The details are attributes: *table*, *index*, *key*, *owner* (the key of the record that is in the way), *size* and
    *limit* in bytes, *path*. Attributes that do not apply are None. The text says what was given, what was expected and
    what to do.
    """

    table: Optional[str] = None
    index: Optional[str] = None
    key: Any = None
    owner: Any = None
    size: Optional[int] = None
    limit: Optional[int] = None
    path: Optional[str] = None

    def __init__(self, message: str = "", **details: Any) -> None:
        super().__init__(message)
        self.__dict__.update(details)

    def __str__(self) -> str:
        # OSError and KeyError, which some subclasses also are, would print something else.
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.args, self.__dict__


class EncodeError(Error, ValueError):
    """A key or value does not fit its type: an error of the caller. Nothing was written."""


class DecodeError(Error, ValueError):
    """Stored bytes do not fit the declared type: the file is damaged, or was written with another type."""


class ConstraintError(Error, ValueError):
    """A statement would break a rule of the table. It changed nothing, and the transaction continues."""


class DuplicateKey(ConstraintError):
    """A unique key or index entry belongs to another record, whose key is *owner*."""


class NullValueConstraint(ConstraintError, RuntimeError):
    """The index function returned None for an index attached with ``nullable=False``."""


class DanglingLink(ConstraintError):
    """A link of the record *key* leads to the record *owner* of another table, which does not exist."""


class StillLinked(ConstraintError):
    """The record *key* cannot be deleted: the record *owner* of another table refers to it by a link."""


class SchemaMismatch(Error, TypeError):
    """The table or index in the file has other types than the program declares."""


class IndexNotAttached(Error, RuntimeError):
    """A writer has not attached an index that the file records for this table."""


class IndexNotBuilt(Error, RuntimeError):
    """An index does not yet contain the records of its table."""


class InvalidDatabase(Error, OSError):
    """The path is not a zlmdb database, or a newer version wrote it."""


class FileRequired(Error, TypeError):
    """The operation needs a file, and the database is in memory."""


class DatabaseFull(Error, OSError):
    """The database has no room: its maximum size, the disk or the address space is used up."""


class DiskError(Error, OSError):
    """The operating system failed to read or write the database files."""


class CorruptDatabase(Error, OSError):
    """LMDB found damage in the data file."""


class ReadonlyDatabase(Error, PermissionError):
    """A write to a database opened read-only, or in a read transaction; or files that the user cannot write or lock."""


class DatabaseClosed(Error, RuntimeError):
    """The database is not open, or is being closed."""


class DatabaseInUse(Error, RuntimeError):
    """The database is already open with other options, or still has open transactions."""


class LeaseLost(Error, RuntimeError):
    """The lease of a job has ended, and the job belongs to another worker or is a dead letter."""


class TransactionClosed(Error, RuntimeError):
    """A transaction, or one of its tables, views or selections, was used after its end."""


class ForkedTransaction(TransactionClosed):
    """A transaction begun before ``fork`` was used in the child process."""


class TransactionStale(Error, RuntimeError):
    """The transaction began before the table was attached: begin a new one."""


class TransactionPoisoned(Error, RuntimeError):
    """An engine error broke the transaction: it can only be aborted. Its ``__cause__`` is that error."""


class Conflict(Error, RuntimeError):
    """Another transaction first changed what this one reads or writes. Nothing was stored; run it again.

    LMDB has one writer at a time and never raises it.
    """

    def __init__(self, message: str = "", **details: Any) -> None:
        super().__init__(
            message
            or "another transaction has changed what this one has read or written, and nothing was stored: run it "
            "again, as db.run(function) does by itself",
            **details,
        )


class NestedTransaction(Error, RuntimeError):
    """A second write transaction on one thread would wait forever; use a savepoint. With writemap there are none."""


class WrongThread(Error, RuntimeError):
    """A thread used a write transaction that another thread began."""


class ChangesLost(Error, LookupError):
    """Changes that were asked for are not in the feed of the table any more: copy the table, and go on after that."""


class WriterTimeout(Error, TimeoutError):
    """Another writer did not finish within *timeout*."""


def raise_as(ours: Exception, error: Exception) -> NoReturn:
    """Raise *ours*, the translation of the engine's *error*, from *error*.

    An error without a translation is raised itself, and one that has a cause keeps it.
    """
    cause = ours.__cause__
    raise ours from (error if cause is None and ours is not error else cause)
