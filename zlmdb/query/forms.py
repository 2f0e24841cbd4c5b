"""What a loop over records gives: each row, the best ones, or groups of many."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Optional

from ..namedtuples import NamedTuple


class Form(NamedTuple):
    """What a loop gives: each row, or else one of these.

    *best* is ``<`` or ``>``: only rows whose first part, the sort key, is that of what ``bound[0]`` is; all while it is
    None. *bound* is one more argument of the loop, which looks at it again after each row. With *unsure* a sort key
    that is not equal to itself is given, too. With *late* the loop reads no keys, and asks the scan for that of a row.

    *grouped*: dicts of many rows each, with lists of what is wanted by the first part of it. *listed*: lists of many
    rows each.
    """

    best: str = ""
    unsure: bool = False
    late: bool = False
    grouped: bool = False
    listed: bool = False


ROWS = Form()
GROUPED = Form(grouped=True)
LISTED = Form(listed=True)
BLOCK = 10_000
"""Records of which grouped or listed rows are given together."""


def expression_of(lines: Sequence[str]) -> Optional[str]:
    """The expression, of ``data``, of what *lines* append to a block, if they do nothing else."""
    if len(lines) != 2:
        return None
    read, give = [line.strip() for line in lines]
    begin, wanted = "value = ", give[len("block.append(") : -1]
    parts = re.split(r"\bvalue\b", wanted)
    if not read.startswith(begin) or not give.startswith("block.append(") or len(parts) != 2 or "'" in wanted:
        return None
    return read[len(begin) :].join(parts)
