"""Installs the oldest releases of other packages that this one says it works with: ``python tests/oldest.py``.

`tox` does so on the oldest Python, so that one run tries the lower bounds of ``pyproject.toml`` without a run more.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import requires

from packaging.requirements import Requirement

TOOLS = ("hypothesis", "pytest")
"""What only tests use: old ones take minutes more."""


def oldest(extra: str) -> list[str]:
    """What to install, ``name==version``, for the package with *extra* on this interpreter."""
    found = [Requirement(line) for line in requires("zlmdb") or ()]
    wanted = [one for one in found if one.marker is None or one.marker.evaluate({"extra": extra})]
    return [
        f"{one.name}=={bound.version}"
        for one in wanted
        for bound in one.specifier
        if bound.operator == ">=" and one.name not in TOOLS
    ]


if __name__ == "__main__":
    sys.exit(subprocess.call([sys.executable, "-m", "pip", "install", "--no-compile", *oldest("test")]))
