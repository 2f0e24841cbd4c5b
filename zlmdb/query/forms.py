"""What a loop over records gives: each row, the best ones, or groups of many."""

from __future__ import annotations

from typing import NamedTuple


class Form(NamedTuple):
    """What a loop gives: each row, or else one of these.

    *best* is ``<`` or ``>``: only rows whose first part, the sort key, is that of what ``bound[0]`` is; all while it is
    None. *bound* is one more argument of the loop, which looks at it again after each row. With *unsure* a sort key
    that is not equal to itself is given, too. With *late* the loop reads no keys, and asks the scan for that of a row.

    *grouped*: dicts of many rows each, with lists of what is wanted by the first part of it.
    """

    best: str = ""
    unsure: bool = False
    late: bool = False
    grouped: bool = False


ROWS = Form()
GROUPED = Form(grouped=True)
BLOCK = 10_000
"""Records of which grouped rows are given together."""
