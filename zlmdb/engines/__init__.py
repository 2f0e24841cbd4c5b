"""Storage engines: what zlmdb asks of one, as Protocols, and those that there are.

`protocols` says what an engine is, `registry` which one stores what was given; each engine is a package beside them,
which nothing but the registry imports.
"""

from .protocols import (
    Cursor,
    Data,
    Durability,
    Engine,
    EngineClass,
    Environment,
    Handle,
    Options,
    PlainOptions,
    Record,
    Remains,
    State,
    Told,
    Transaction,
    Tree,
)

__all__ = [
    "Cursor", "Data", "Durability", "Engine", "EngineClass", "Environment", "Handle", "Options", "PlainOptions",
    "Record", "Remains", "State", "Told", "Transaction", "Tree",
]  # fmt: skip
