"""`Database`, where programs of zlmdb <= 26 import it from, and the LMDB format of a new file."""

from .database.database import Database as Database

DEFAULT_LIB_VERSION = "0.9"
