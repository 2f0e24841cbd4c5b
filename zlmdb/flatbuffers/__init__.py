"""The `flatbuffers` package, under the name that packages built on zlmdb <= 26 import, and `reflection` beside it."""

# The package carries no types.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false

import sys

import flatbuffers as _package
from flatbuffers import Builder as Builder
from flatbuffers import Table as Table
from flatbuffers import __version__ as __version__
from flatbuffers import builder as builder
from flatbuffers import compat as compat
from flatbuffers import compat_range as compat_range
from flatbuffers import encode as encode
from flatbuffers import number_types as number_types
from flatbuffers import packer as packer
from flatbuffers import table as table
from flatbuffers import util as util


def version() -> tuple[int, int, int, None, None]:
    """The version of the package. The commits since it and their hash, which the package does not tell, are None."""
    major, minor, patch = (int(part) for part in __version__.split(".")[:3])
    return major, minor, patch, None, None


def _under(name: str) -> None:
    """Have `from zlmdb.flatbuffers.table import Table` find the modules of the package, for the package *name*.

    Those named above are found by their names; a copy would have classes of its own.
    """
    for module in builder, compat, encode, number_types, packer, table, util:
        sys.modules[f"{name}.{module.__name__.rpartition('.')[2]}"] = module


_under(__name__)
__path__ = [*__path__, *_package.__path__]  # where the others are found
