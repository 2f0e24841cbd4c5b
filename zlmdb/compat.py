"""Names that programs of zlmdb <= 26 and packages built on it import, beside those of the public surface.

Downstream packages take LMDB and FlatBuffers from here: ``zlmdb.lmdb``, ``zlmdb.flatbuffers``. They are the packages of
these names; nothing is vendored, and `sys.modules` is left alone.
"""

from __future__ import annotations

import lmdb as lmdb


def setup_flatbuffers_import() -> None:
    """Do nothing: ``import flatbuffers`` finds the installed package."""


def check_autobahn_flatbuffers_version_in_sync() -> str:
    """The version of the `flatbuffers` package. zlmdb has no copy of its own that could differ from autobahn's."""
    from . import flatbuffers  # late, as in `names`

    return str(flatbuffers.__version__)
