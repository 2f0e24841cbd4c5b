"""Storage engines: the Protocols that define an engine, and the engines.

`engine` and `environment` define an engine, `registry` chooses one; each engine is a package beside them, which only
the registry imports.
"""

from .damaged import Record, Remains, State, Tree
from .engine import Durability, Engine, EngineClass, Options, PlainOptions, Told
from .environment import Cursor, Data, Environment, Handle, Transaction

__all__ = [
    "Cursor", "Data", "Durability", "Engine", "EngineClass", "Environment", "Handle", "Options", "PlainOptions",
    "Record", "Remains", "State", "Told", "Transaction", "Tree",
]  # fmt: skip
