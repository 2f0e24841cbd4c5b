"""The `lmdb` package, under the name that programs of zlmdb <= 26 import."""

from lmdb import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary]  # all of it is meant
from lmdb import __version__ as __version__
from lmdb import open as open
