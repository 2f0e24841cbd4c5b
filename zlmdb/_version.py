"""The version of zlmdb, said once: the build, the documentation and `zlmdb.__version__` read it here."""

__version__ = "27.0.0"
