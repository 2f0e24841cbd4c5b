"""`Schema`, where programs of zlmdb <= 26 import it from."""

from .schema.schema import Schema as Schema
