"""Builds `shim.c`, which records or breaks the writes of a process, where there is a C compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Optional

ROOT = Path(__file__).resolve().parents[2]


def compiler() -> Optional[str]:
    """The C compiler; None where there is none, or no way to preload what it makes."""
    return (shutil.which("cc") or shutil.which("gcc")) if sys.platform == "linux" else None


def build(directory: Path) -> Path:
    """The library, built in *directory*."""
    library = directory / "shim.so"
    source = Path(__file__).with_name("shim.c")
    command = [str(compiler()), "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return library


def environment(library: Path, **more: str) -> dict[str, str]:
    """The environment of a process with the library in it."""
    return {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": str(ROOT), **more}
