"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = (
    "zlmdb", "lmdb", "msgspec", "msgpack", "cattrs", "cbor2", "flatbuffers", "sqlalchemy", "peewee", "objectbox",
    "rocksdict", "plyvel", "sqlitedict", "diskcache", "ZODB", "pandas", "datasets", "pyarrow", "numpy",
)  # fmt: skip


def describe() -> dict[str, Any]:
    """Processor, cores, memory, kernel, file system of the temporary directory; interpreter; packages; date."""
    return {
        "cpu": _cpu(), "cores": os.cpu_count(), "ram": memory(), "kernel": f"{platform.system()} {platform.release()}",
        "file_system": _file_system(tempfile.gettempdir()),
        "interpreter": f"{platform.python_implementation()} {platform.python_version()}",
        "compiler": sys.version.replace("\n", " "), "packages": _packages(),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }  # fmt: skip


def _cpu() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _file_system(directory: str) -> str:
    """The type of the file system of *directory*: it decides what a sync costs."""
    found = ("", "not known")
    mounts = Path("/proc/self/mounts")
    for line in mounts.read_text(encoding="utf-8").splitlines() if mounts.exists() else ():
        _, place, kind = line.split()[:3]
        if os.path.commonpath([place, os.path.realpath(directory)]) == place and len(place) >= len(found[0]):
            found = (place, kind)
    return found[1]


def memory() -> int:
    """The bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _packages() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    import sqlite3

    found["sqlite"] = sqlite3.sqlite_version
    if hasattr(sys, "pypy_version_info"):
        found["PyPy"] = ".".join(map(str, sys.pypy_version_info[:3]))
    return found
