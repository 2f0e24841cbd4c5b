"""What only Unix has. Elsewhere `fcntl` is None, and `posix` lacks what the name says: look before you use it."""

from __future__ import annotations

import os
from typing import Any

fcntl: Any
try:
    import fcntl as fcntl
except ImportError:  # Windows
    fcntl = None

posix: Any = os
"""`os` with the functions that checkers do not let a module for all systems call."""
