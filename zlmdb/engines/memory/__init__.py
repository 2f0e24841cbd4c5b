"""A storage engine in memory, using `sortedcontainers`: for tests, notebooks and caches; its content ends with it.

It behaves as `lmdb.Environment` does: named keyspaces, one writer, snapshots for readers, child transactions.
"""

from .environment import MemoryEnvironment

__all__ = ["MemoryEnvironment"]
