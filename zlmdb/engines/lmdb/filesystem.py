"""Where a data file lies, as far as LMDB cares: network file systems, hard links, and what "no space" means there."""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress
from typing import Optional

from ... import errors
from ...log import log
from ...namedtuples import NamedTuple
from ...systems import posix

MOUNTS = "/proc/self/mountinfo"

# LMDB needs coherent shared memory and locks between all who have the file open.
_NETWORK = r"nfs\d?|cifs|smb\d?|smbfs|9p|ceph|afs|glusterfs|lustre|fuse\..*"
_ESCAPE = r"\\([0-7]{3})"
_SOME_ROOM = 1 << 20
_READ_ONLY = getattr(os, "ST_RDONLY", 1)  # PyPy does not have it; it is 1 on every system that has statvfs


def look_at(file: str) -> bool:
    """Log a warning when the data file *file* lies where LMDB is at risk.

    Whether it is on no network, as far as is known.
    """
    kind = file_system(file)
    if kind == "overlay":
        copy_up(file)
    is_remote = kind is not None and re.fullmatch(_NETWORK, kind) is not None
    if is_remote:
        log.warning(
            "%r is on a network file system (%s), where memory maps and locks of several machines do not agree: "
            "keep the database on a local disk, or open it from one machine only",
            file, kind,
        )  # fmt: skip
    try:
        links = os.stat(file).st_nlink
    except OSError:
        return not is_remote
    if links > 1:
        log.warning(
            "%r has %d hard links: each name has a lock file of its own, so that all processes must open it by the "
            "same one",
            file, links,
        )  # fmt: skip
    return not is_remote


def copy_up(file: str) -> None:
    """Have an overlay file system copy *file* to where it is written, if this user may write to it.

    As in a container whose image has the database. Who has opened it to read before that copy is made by the first
    writer reads the old one for ever.
    """
    with suppress(OSError):  # there is none yet, or this user may not
        os.close(os.open(file, os.O_RDWR))


class Mount(NamedTuple):
    """A file system as it is mounted: its kind, as the kernel calls it, and whether the medium itself is read-only."""

    kind: str
    read_only: bool


def is_read_only(path: str) -> bool:
    """Whether nobody can write to the file system that *path* is on.

    Mounted read-only at one place, as in a container, it may be writable at another one.
    """
    if not is_mounted_read_only(path):
        return False
    found = mount_of(path)
    return found is None or found.read_only


def is_mounted_read_only(path: str) -> bool:
    """Whether *path* cannot be written by this path; perhaps by that of another mount."""
    try:
        return bool(posix.statvfs(path).f_flag & _READ_ONLY)
    except (OSError, AttributeError):  # the system has no statvfs
        return False


def file_system(path: str, mounts: str = MOUNTS) -> Optional[str]:
    """The kind of file system that *path* is on; None where that is not known."""
    found = mount_of(path, mounts)
    return None if found is None else found.kind


def mount_of(path: str, mounts: str = MOUNTS) -> Optional[Mount]:
    """How the file system that *path* is on is mounted; None where that is not known.

    *mounts* is Linux's table of mounts, described in proc_pid_mountinfo(5).
    """
    real = os.path.realpath(path)
    best, found = -1, ""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                fields, _, tail = line.partition(" - ")
                point = re.sub(_ESCAPE, lambda match: chr(int(match[1], 8)), fields.split(" ")[4])
                inside = real == point or real.startswith(point.rstrip("/") + "/")
                if inside and len(point) >= best:  # the last of several mounts on one point is the visible one
                    best, found = len(point), tail
    except (OSError, IndexError):  # no Linux
        return None
    words = found.split()  # the kind, what is mounted, the options of the file system itself
    return Mount(words[0], "ro" in words[-1].split(",")) if words else None


def no_space(file: str, error: Exception) -> Optional[errors.DiskError]:
    """Our error for an opening that failed for want of space although the disk has some: semaphores, on macOS."""
    if os.strerror(errno.ENOSPC) not in str(error):
        return None
    import shutil  # late: it brings three libraries of compression with it

    free = shutil.disk_usage(os.path.dirname(file)).free
    if free < _SOME_ROOM:
        return None
    return errors.DiskError(
        f"no space for the files of {file!r}, though its disk has {free} bytes free ({error}): the disk has no room "
        f"for more files, as `df -i` tells, or this user's quota is used up; on macOS and BSD it is the system's "
        f"semaphores, see them with `ipcs -s` and remove those that nobody uses with `ipcrm -s`",
        path=file,
    )
