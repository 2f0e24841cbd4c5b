"""LMDB's errors, and ours for each of them."""

from __future__ import annotations

import errno
import os
from typing import Any

import lmdb

from ... import errors

MAX_TABLES = 1024
MAX_READERS = 1024
LARGEST_VALUE = (1 << 32) - 1

NO_SPACE = "the address space or memory of this process is used up"

NESTED = (
    "this thread has a write transaction open already, and would wait for itself forever: use the tables of that one, "
    "in `with t.txn.savepoint():` if they are to be undone apart"
)

_DAMAGED = "the data file is damaged: restore a backup, or take out what there is with zlmdb.Database.salvage()"
_BAD = (
    "the transaction has ended or cannot go on: begin a new one; if that fails in the same way, the data file is "
    "damaged, which Database.verify() tells"
)
_TAKEN_FOR_DEAD = (
    "another process took this one for dead and freed its slot in the table of readers, as where a program closes a "
    "descriptor of the lock file: close the database and open it again"
)
_REOPEN = "the environment met a fatal error: close it and open it again"

_NOT_WRITTEN = (
    "the operating system could not read or write the files: is the disk full, the size of files limited, as `ulimit "
    "-f` tells, or the disk damaged, as the log of the system tells?"
)
_OF_SYSTEM = {
    errno.ENOSPC: "the disk is full: make room and try again",
    errno.EDQUOT: "this user's quota of the disk is used up: make room and try again",
    errno.EFBIG: "the size of files is limited, as `ulimit -f` tells: raise the limit and open the database again",
    errno.EBADF: "this program has closed the files of the database, as os.closerange() does: leave them open",
}

# LMDB's error, ours, and what the user can do.
_ERRORS: dict[str, tuple[type[errors.Error], str]] = {
    "MapFullError": (errors.DatabaseFull, "the database has reached its maximum size: open it with a larger maxsize"),
    "TxnFullError": (errors.DatabaseFull, "the transaction has too many changes: commit more often"),
    "DbsFullError": (errors.DatabaseFull, f"zlmdb opens up to {MAX_TABLES} tables and indexes (MAX_TABLES) of a file"),
    "ReadersFullError": (
        errors.DatabaseFull,
        f"all {MAX_READERS} reader slots (MAX_READERS) are taken, or fewer where another program of LMDB has opened "
        f"the file first: end some",
    ),
    "MemoryError": (errors.DatabaseFull, NO_SPACE),
    "ReadonlyError": (errors.ReadonlyDatabase, "nothing can be written here: use db.write() or begin(write=True)"),
    "BadTxnError": (errors.TransactionClosed, _BAD),
    "BadRslotError": (errors.DiskError, _TAKEN_FOR_DEAD),
    "BadDbiError": (errors.TransactionStale, "the transaction began before the table was attached: begin again"),
    "DiskError": (errors.DiskError, _NOT_WRITTEN),
    "LockError": (errors.DiskError, "the lock file could not be used: does the file system support locks?"),
    "CorruptedError": (errors.CorruptDatabase, _DAMAGED),
    "PageNotFoundError": (errors.CorruptDatabase, _DAMAGED),
    "BadChecksumError": (errors.CorruptDatabase, _DAMAGED),
    "PanicError": (errors.CorruptDatabase, _REOPEN),
    "ProblemError": (errors.CorruptDatabase, _REOPEN),
    "InvalidError": (errors.InvalidDatabase, "this is no LMDB data file"),
    "VersionMismatchError": (errors.InvalidDatabase, "the lock file is of another LMDB version: close all other users"),
    "IncompatibleError": (errors.InvalidDatabase, "the file uses the name of a table for something else"),
    "BadValsizeError": (errors.EncodeError, "the key is empty or too long for this LMDB format"),
}

_OF_FILES = (errors.CorruptDatabase, errors.DiskError, errors.InvalidDatabase)


def translate(error: Exception, **details: Any) -> Exception:
    """Our error for *error* of LMDB, to be raised ``from`` it; any other exception comes back as it is."""
    if not isinstance(error, lmdb.Error):
        return error
    text = str(error)
    if "closed/deleted/dropped" in text:
        return errors.TransactionClosed("the transaction has ended: begin a new one", **details)
    if "same thread" in text:
        return errors.NestedTransaction(NESTED, **details)
    if isinstance(error, lmdb.LockError) and "mdb_txn" in text and os.strerror(errno.EAGAIN) in text:
        return errors.DatabaseInUse(
            f"another process with the id {os.getpid()} reads the database: LMDB knows a reader by its process id, and "
            f"in another container or PID namespace this number is taken as well. Let the containers share their PID "
            f"namespace (docker run --pid=container:NAME or --pid=host, shareProcessNamespace: true), or let one "
            f"process open the file and serve the others ({text})",
            **details,
        )
    if "already open in this process" in text:
        return errors.DatabaseInUse(
            f"the file is open in this process already, by lmdb.open, or as a database whose file was replaced or "
            f"removed since: close that one first ({text})",
            **details,
        )
    if os.strerror(errno.EMFILE) in text:
        return errors.DiskError(
            f"this process has as many files open as it may: close some, or raise the limit, which `ulimit -n` tells "
            f"({text})",
            **details,
        )
    if os.strerror(errno.EROFS) in text:
        return errors.ReadonlyDatabase(
            f"the file system can only be read: open it with readonly=True ({text})", **details
        )
    if isinstance(error, lmdb.ReadonlyError) and os.strerror(errno.EACCES) in text:
        return errors.ReadonlyDatabase(
            f"this user may not write there: open it with readonly=True, or permit the user to write the directory and "
            f"the files in it ({text})",
            **details,
        )
    if os.strerror(errno.EPERM) in text:
        return errors.ReadonlyDatabase(
            f"the file may not be written, as `lsattr` tells of one that is immutable or append-only: change that, or "
            f"open it with readonly=True ({text})",
            **details,
        )
    if isinstance(error, lmdb.BadValsizeError) and "put" in text:  # keys are looked at before
        return errors.EncodeError(
            f"the value has 4 GiB or more, and LMDB holds up to {LARGEST_VALUE} bytes: store it in parts, or in a file "
            f"of its own ({text})",
            **{**details, "limit": LARGEST_VALUE},
        )
    name = "DiskError" if os.strerror(errno.EIO) in text else type(error).__name__  # a short write, on a full disk
    ours, advice = _ERRORS.get(name, (errors.DiskError, "the engine failed"))
    if ours is errors.DiskError:
        advice = next((said for code, said in _OF_SYSTEM.items() if os.strerror(code) in text), advice)
    path = details.get("path")
    named = "" if path is None or ours not in _OF_FILES or repr(path) in text else f"{path!r}: "
    return ours(f"{named}{advice} ({text})", **details)
