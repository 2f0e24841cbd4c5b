"""Where a data file lies, as far as LMDB cares: network file systems, hard links, and what "no space" means there."""

from __future__ import annotations

import errno
import logging
import os
import re
import shutil
from typing import Optional

from .. import errors

log = logging.getLogger("zlmdb")

MOUNTS = "/proc/self/mountinfo"

# LMDB needs coherent shared memory and locks between all who have the file open.
_NETWORK = re.compile(r"nfs\d?|cifs|smb\d?|smbfs|9p|ceph|afs|glusterfs|lustre|fuse\..*")
_ESCAPE = re.compile(r"\\([0-7]{3})")
_SOME_ROOM = 1 << 20


def look_at(file: str) -> None:
    """Log a warning when the data file *file* lies where LMDB is at risk."""
    kind = file_system(file)
    if kind is not None and _NETWORK.fullmatch(kind):
        log.warning(
            "%s is on a network file system (%s), where memory maps and locks of several machines do not agree: "
            "keep the database on a local disk, or open it from one machine only",
            file, kind,
        )  # fmt: skip
    try:
        links = os.stat(file).st_nlink
    except OSError:
        return
    if links > 1:
        log.warning(
            "%s has %d hard links: each name has a lock file of its own, so that all processes must open it by the "
            "same one",
            file, links,
        )  # fmt: skip


def file_system(path: str, mounts: str = MOUNTS) -> Optional[str]:
    """The kind of file system that *path* is on, as the kernel calls it; None where that is not known.

    *mounts* is Linux's table of mounts, described in proc_pid_mountinfo(5).
    """
    place = os.path.realpath(path)
    best, found = -1, None
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                fields, _, tail = line.partition(" - ")
                point = _ESCAPE.sub(lambda match: chr(int(match[1], 8)), fields.split(" ")[4])
                inside = place == point or place.startswith(point.rstrip("/") + "/")
                if inside and len(point) >= best:  # the last of several mounts on one point is the visible one
                    best, found = len(point), tail.split(" ")[0]
    except (OSError, IndexError):  # no Linux
        return None
    return found


def no_space(file: str, error: Exception) -> Optional[errors.DiskError]:
    """Our error for an opening that failed for want of space although the disk has some: semaphores, on macOS."""
    if os.strerror(errno.ENOSPC) not in str(error):
        return None
    free = shutil.disk_usage(os.path.dirname(file)).free
    if free < _SOME_ROOM:
        return None
    return errors.DiskError(
        f"no space for the locks of {file!r}, though its disk has {free} bytes free ({error}): on macOS and BSD the "
        f"system's semaphores are used up, see them with `ipcs -s` and remove those that nobody uses with `ipcrm -s`",
        path=file,
    )
