"""The classic maps, where programs of zlmdb <= 26 import them from."""

from .classic.maps import *  # noqa: F403
from .classic.pmap import PersistentMap as PersistentMap
