"""Copying the data file of an open environment, in one read transaction."""

from __future__ import annotations

import errno
import gc
import os
import threading
from typing import Optional

import lmdb

from ...directories import NO_ROOM
from ..engine import Told
from .roots import copy_pages, finish_copy

_UNWRITTEN = (*NO_ROOM, errno.EIO)
_PAUSE = 0.1  # seconds between two reports of progress


def copy_whole(file: str, target: int, told: Told) -> None:
    """Copy the pages of *file* into the new file *target*, those too that nothing uses."""
    with os.fdopen(target, "wb", closefd=False) as copy:
        copy_pages(file, copy, told)


def copy_compact(env: lmdb.Environment, target: int, total: int, told: Told) -> None:
    """Let LMDB write the pages that are in use, *total* bytes at most, into the new file *target*."""
    try:
        _copy(env, target, total, told)
    except lmdb.ReadersFullError:  # before anything was written
        gc.collect()  # ends what was dropped
        env.reader_check()
        _copy(env, target, total, told)
    finish_copy(target, env.info()["last_txnid"])  # not before: others may commit until LMDB begins to read
    size = os.fstat(target).st_size
    told(size, size)


def _copy(env: lmdb.Environment, target: int, total: int, told: Told) -> None:
    ended: list[Optional[Exception]] = []

    def write() -> None:
        try:
            env.copyfd(target, compact=True)
            ended.append(None)
        except Exception as error:
            ended.append(error)

    writer = threading.Thread(target=write, name="zlmdb-backup")
    try:
        writer.start()
    except RuntimeError as error:
        raise _without_threads(str(error)) from error
    try:
        writer.join(_PAUSE)
        while writer.is_alive():
            told(min(os.fstat(target).st_size, total), total)
            writer.join(_PAUSE)
    finally:  # whatever *told* raises: the descriptor, whose number others get, must outlive the thread
        writer.join()
    if not ended:
        raise _without_threads("the thread has ended before it began, as without memory")
    if ended[0] is not None:
        ours = _of_system(ended[0])
        raise ours from (None if ours is ended[0] else ended[0])


def _without_threads(reason: str) -> RuntimeError:
    return RuntimeError(
        f"no room for a thread, of which a copy without unused pages takes two: let some end, or raise the limit of "
        f"memory (`ulimit -v`), of threads (`ulimit -u`), or of the container; a backup with compact=False takes none "
        f"({reason})"
    )


def _of_system(error: Exception) -> Exception:
    """What the operating system said of the copy, which *error* has as a text, so that the copy is named with it."""
    if os.strerror(errno.EAGAIN) in str(error):  # LMDB's own thread
        return _without_threads(str(error))
    said = (one for one in _UNWRITTEN if os.strerror(one) in str(error))
    return next((OSError(one, os.strerror(one)) for one in said), error)
