"""The `flatbuffers` package, under the name of the copy that some versions of zlmdb carried."""

from .flatbuffers import *  # noqa: F403
from .flatbuffers import __path__ as __path__
from .flatbuffers import __version__ as __version__
from .flatbuffers import _under

_under(__name__)
