"""What the `lmdb` package has, for ``import zlmdb.lmdb``; ``zlmdb.lmdb`` without that is the package itself."""

from lmdb import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary]  # all of it is meant
from lmdb import __version__ as __version__
from lmdb import open as open
