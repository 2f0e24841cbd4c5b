"""Nothing in here is a test: these files are run by the predecessor's interpreter, or imported by tests beside us."""

from __future__ import annotations

collect_ignore_glob = ["*.py"]
