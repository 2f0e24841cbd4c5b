"""Names outside the public API that programs of zlmdb 26 and packages built on it import.

Downstream packages import LMDB and FlatBuffers from here: ``zlmdb.lmdb``, ``zlmdb.flatbuffers``. They are the packages
of these names; nothing is vendored, and `sys.modules` does not change.
"""

from __future__ import annotations

try:
    import lmdb as lmdb
except ImportError as error:
    if "subinterpreters" in f"{error} {error.__context__}":  # else it only says that it has no module cffi
        raise ImportError(
            "zlmdb cannot be imported in a second interpreter of a process (concurrent.interpreters, "
            "InterpreterPoolExecutor), where py-lmdb cannot be loaded: use threads or processes"
        ) from error
    raise


def setup_flatbuffers_import() -> None:
    """Do nothing: ``import flatbuffers`` finds the installed package."""


def check_autobahn_flatbuffers_version_in_sync() -> str:
    """The version of the `flatbuffers` package. zlmdb has no copy that could differ from autobahn's."""
    from . import flatbuffers  # late, as in `names`

    return str(flatbuffers.__version__)
