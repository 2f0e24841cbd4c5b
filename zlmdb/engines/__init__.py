"""Storage engines: the Protocols that define an engine, and the engines.

`protocols` defines an engine, `registry` chooses one; each engine is a package beside them, which only the registry
imports.
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
