"""What LMDB can be told beyond what every engine can."""

from __future__ import annotations

from typing import Optional

from ...namedtuples import NamedTuple
from ..engine import Durability


class LmdbOptions(NamedTuple):
    """The options of an LMDB environment; see `zlmdb.Database` for what they mean."""

    readonly: bool = False
    maxsize: Optional[int] = None
    durability: Durability = "full"
    lock: bool = True
    writemap: bool = False
    lib_version: Optional[str] = None
    mode: Optional[int] = None
