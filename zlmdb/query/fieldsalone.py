"""What functions take of a record, if these are parts that can be read without the others, as of FlatBuffers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from keyword import iskeyword
from typing import Optional

from ..values.paths import Path, without_parts
from .expressionsource import Asked
from .recordpaths import paths


def parts_alone(every: Sequence[Asked], reach: Callable[[Path], Optional[Path]]) -> Optional[list[Path]]:
    """The paths of what *every* one of these takes; None if one takes the record itself, or what *reach* does not."""
    taken = {path for one in every for path in paths(one.node, 1 if one.followed.keyed else 0)}
    found = [None if path is None or iskeyword(path[0]) else reach(path) for path in taken]
    return None if None in found else without_parts([path for path in found if path is not None])


def spelled_in(variable: str, source: Sequence[str]) -> bool:
    """Whether lines of *source* name a *variable*."""
    return any([re.search(rf"\b{variable}\b", line) for line in source])
