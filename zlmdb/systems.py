"""What not all systems have. `fcntl` is None on Windows, `msvcrt` elsewhere; see what `posix` has before you use it."""

from __future__ import annotations

import os
from typing import Any

fcntl: Any
msvcrt: Any
try:
    import fcntl as fcntl

    msvcrt = None
except ImportError:
    import msvcrt as msvcrt

    fcntl = None

WINDOWS: bool = os.name == "nt"

posix: Any = os
"""`os` with the functions that checkers do not let a module for all systems call."""
