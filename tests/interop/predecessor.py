"""The real zlmdb 26.10.1, in a virtual environment of its own, and how to run programs on it and on ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Optional

import pytest
import zlmdb

REQUIREMENT = "zlmdb==26.10.1"
HERE = Path(__file__).parent
_CHECK = "import importlib.metadata as m; import zlmdb; print(m.version('zlmdb'))"


class Predecessor:
    """The predecessor's interpreter."""

    def __init__(self, python: str) -> None:
        self.python = python

    def run(self, script: str, *arguments: object) -> str:
        """What ``interop/<script>`` prints when the predecessor runs it."""
        return run(self.python, HERE / script, *arguments)


def run(python: str, script: Path, *arguments: object) -> str:
    """What *script* prints when *python* runs it: ours if that is this interpreter, the predecessor otherwise."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV_"))}
    environment.update(PYTHONHASHSEED="0", PYTHONIOENCODING="utf8", PYTHONDONTWRITEBYTECODE="1")
    if python == sys.executable:
        environment["PYTHONPATH"] = str(Path(zlmdb.__file__).parent.parent)
    command = [python, str(script), *(str(argument) for argument in arguments)]
    # A directory that holds no zlmdb: each interpreter must import its own.
    done = subprocess.run(command, env=environment, cwd=HERE, capture_output=True, encoding="utf8", timeout=300)
    if done.returncode != 0:
        pytest.fail(f"{' '.join(command)} exited with {done.returncode}\n{done.stdout}\n{done.stderr}", pytrace=False)
    return done.stdout


def find(config: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Predecessor:
    """The predecessor: ``ZLMDB_INTEROP_PYTHON`` if that is set, else installed once and kept in pytest's cache."""
    given = os.environ.get("ZLMDB_INTEROP_PYTHON")
    if given:
        if _version(given) != "26.10.1":
            pytest.fail(f"ZLMDB_INTEROP_PYTHON={given} has no {REQUIREMENT}", pytrace=False)
        return Predecessor(given)
    cache: Optional[pytest.Cache] = getattr(config, "cache", None)
    parent = tmp_path_factory.getbasetemp() if cache is None else cache.mkdir("predecessor")
    with _locked(parent / "lock"):
        return Predecessor(_installed(parent / "venv"))


def _installed(venv: Path) -> str:
    """The interpreter of the virtual environment *venv*, which is made unless it works already."""
    python = str(venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    if _version(python) == "26.10.1":
        return python
    tried = []
    for base in _interpreters():
        shutil.rmtree(venv, ignore_errors=True)
        for command in ([base, "-m", "venv", str(venv)], [python, "-m", "pip", "install", "-q", REQUIREMENT]):
            done = subprocess.run(command, capture_output=True, encoding="utf8", errors="replace", timeout=900)
            if done.returncode != 0:
                tried.append(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
                break
        else:
            if _version(python) == "26.10.1":
                return python
            tried.append(f"{base}: installed, but `import zlmdb` fails")
    pytest.fail(
        f"cannot install {REQUIREMENT}, which needs CPython 3.11 or newer: put one on PATH, or name an interpreter "
        "that has it in ZLMDB_INTEROP_PYTHON. Tried:\n" + ("\n".join(tried) or "(no such interpreter found)"),
        pytrace=False,
    )


def _interpreters() -> Iterator[str]:
    """CPythons of 3.11 or newer: this one first, then those on PATH (PyPy and 3.9 test against another's)."""
    names = [sys.executable, *(f"python3.{minor}" for minor in range(11, 15)), "python3"]
    seen = set()
    for name in names:
        path = shutil.which(name)
        if path is None or path in seen:
            continue
        seen.add(path)
        ask = "import sys; print(sys.implementation.name == 'cpython' and sys.version_info >= (3, 11))"
        if _output(path, ask) == "True":  # a version manager's stub exists also for versions that it will not start
            yield path


def _version(python: str) -> Optional[str]:
    """The version of zlmdb that *python* imports, or None."""
    return _output(python, _CHECK)


def _output(python: str, code: str) -> Optional[str]:
    try:
        done = subprocess.run([python, "-I", "-c", code], cwd=HERE, capture_output=True, encoding="utf8", timeout=60)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Several tox environments at once share the cache: the first one installs, the others wait."""
    try:
        import fcntl
    except ImportError:  # Windows: nobody runs several there
        yield
        return
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
