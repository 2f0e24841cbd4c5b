"""Every error that zlmdb raises: one base, and each also the builtin that a caller would catch.

A missing key is a plain `KeyError`, a wrong argument of a call a plain `TypeError` or `ValueError`.
"""

from __future__ import annotations

from typing import Any, NoReturn, Optional

__all__ = [
    "Conflict",
    "ConstraintError",
    "CorruptDatabase",
    "DatabaseClosed",
    "DatabaseFull",
    "DatabaseInUse",
    "DecodeError",
    "DiskError",
    "DuplicateKey",
    "EncodeError",
    "Error",
    "FileRequired",
    "ForkedTransaction",
    "IndexNotAttached",
    "IndexNotBuilt",
    "InvalidDatabase",
    "NestedTransaction",
    "NullValueConstraint",
    "ReadonlyDatabase",
    "SchemaMismatch",
    "TransactionClosed",
    "TransactionPoisoned",
    "TransactionStale",
    "WriterTimeout",
    "WrongThread",
]


class Error(Exception):
    """The base of all errors of zlmdb.

    The details are attributes: *table*, *index*, *key*, *owner* (the key of the record in the way), *size* and *limit*
    in bytes, *path*; those that do not apply are None. The text says what was given, what was expected, what to do.
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
    """A key or value does not fit its type: the caller's fault. Nothing was written."""


class DecodeError(Error, ValueError):
    """Stored bytes are not what the declared type writes: the file's fault, or another type wrote them."""


class ConstraintError(Error, ValueError):
    """A statement would break a rule of the table. It changed nothing, the transaction goes on."""


class DuplicateKey(ConstraintError):
    """A unique key or index entry belongs to another record, whose key is *owner*."""


class NullValueConstraint(ConstraintError, RuntimeError):
    """The index function gave None for an index attached with ``nullable=False``."""


class SchemaMismatch(Error, TypeError):
    """The file's table or index was made with other types than the program declares."""


class IndexNotAttached(Error, RuntimeError):
    """A writer has not attached an index that the file records for this table."""


class IndexNotBuilt(Error, RuntimeError):
    """An index has not been built yet over the records of its table."""


class InvalidDatabase(Error, OSError):
    """The path holds no database of ours, or one written by a newer version."""


class FileRequired(Error, TypeError):
    """The operation is one on a file, and the database is in memory."""


class DatabaseFull(Error, OSError):
    """The database has no room: its maximum size, the disk or the address space is used up."""


class DiskError(Error, OSError):
    """The operating system failed to read or write the database files."""


class CorruptDatabase(Error, OSError):
    """LMDB found damage in the data file."""


class ReadonlyDatabase(Error, PermissionError):
    """A write to a database opened read-only, or in a read transaction; files that this user may not write or lock."""


class DatabaseClosed(Error, RuntimeError):
    """The database is not open."""


class DatabaseInUse(Error, RuntimeError):
    """The database is open already with other options, or still has open transactions."""


class TransactionClosed(Error, RuntimeError):
    """A transaction, or a table, view or selection of it, was used after its end."""


class ForkedTransaction(TransactionClosed):
    """A transaction begun before ``fork`` was used in the child process."""


class TransactionStale(Error, RuntimeError):
    """The transaction began before the table was attached; begin again."""


class TransactionPoisoned(Error, RuntimeError):
    """An engine error broke the transaction: it can only be aborted. Its ``__cause__`` is that error."""


class Conflict(Error, RuntimeError):
    """Another transaction was first to change what this one reads or writes. Nothing was stored; run it again.

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
    """A second write transaction on one thread would wait for ever; use a savepoint. There are none with writemap."""


class WrongThread(Error, RuntimeError):
    """A write transaction was used from a thread other than the one that began it."""


class WriterTimeout(Error, TimeoutError):
    """Another writer held the database for longer than the *timeout* given."""


def raise_as(ours: Exception, error: Exception) -> NoReturn:
    """Raise *ours* from *error* of the engine, which it was made of.

    One that nothing was made of is itself raised again, and keeps the cause that it has.
    """
    raise ours from (error.__cause__ if ours is error else error)
