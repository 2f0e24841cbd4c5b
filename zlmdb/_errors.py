"""`NullValueConstraint`, where programs of zlmdb <= 26 import it from."""

from .errors import NullValueConstraint as NullValueConstraint
