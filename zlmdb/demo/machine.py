"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
import re
import sys
from pathlib import Path


def interpreter() -> str:
    """The Python at work.

    >>> interpreter().split()[0] in ("CPython", "PyPy")
    True
    """
    name = platform.python_implementation()
    version = ".".join(map(str, sys.version_info[:3]))
    if name != "PyPy":
        return f"{name} {version}"
    return f"PyPy {'.'.join(map(str, sys.implementation.version[:3]))} (Python {version})"


def machine() -> str:
    """Processor, number of CPUs, and operating system."""
    cpus = os.cpu_count() or 1
    return f"{_processor()}, {cpus} CPU{'s' * (cpus > 1)}, {platform.system()}"


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        found = None
    name = found[1] if found else platform.processor() or platform.machine() or "unknown processor"
    return " ".join(name.split())
