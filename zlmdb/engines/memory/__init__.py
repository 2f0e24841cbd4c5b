"""A storage engine in memory, of `sortedcontainers`: for tests, notebooks and caches, gone when it is closed.

It behaves as `lmdb.Environment` does: named keyspaces, one writer, snapshots for readers, child transactions.
"""

from .environment import MemoryEnvironment

__all__ = ["MemoryEnvironment"]
