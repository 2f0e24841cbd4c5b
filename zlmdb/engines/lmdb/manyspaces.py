"""Files with more sub-databases than a program usually opens, as other programs make them."""

from __future__ import annotations

from typing import Optional

from ... import errors
from .access import open_to_read
from .nodes import Damage, Nodes
from .pages import BRANCH, DEEPEST, LEAF, SUBTREE, PageFile

_TRIES = 3


def handles(path: str, usual: int) -> int:
    """How many sub-databases LMDB must be able to open in the file *path*: all twice and *usual* ones more, or *usual*.

    Twice, as `adopt` gives each a second one. A file is taken to have as many as its main database has entries, if most
    of the first ones are sub-databases; of a file full of records, LMDB would need much memory for each transaction.
    """
    with open_to_read(path) as data:
        for _ in range(_TRIES):
            try:
                file = PageFile(data, path)
                found = _first_are_spaces(file)
            except (errors.Error, Damage):  # opening it says what is wrong
                return usual
            if found is not None:
                return 2 * file.metas[0].main.entries + usual if found else usual
    return usual


def _first_are_spaces(file: PageFile) -> Optional[bool]:
    """Whether most records of the first leaf are sub-databases; None where a writer has used its page again."""
    nodes, number, txnid = Nodes(file), file.metas[0].main.root, file.metas[0].txnid
    for _ in range(DEEPEST):
        page = file.read(number)
        if page is None or file.unsound(number, page, txnid) is not None:
            return None
        kind = file.flags(page) & (BRANCH | LEAF)
        if kind == LEAF:
            keys, flagged = nodes.leaf(page, False)
            return 2 * sum(1 for node in flagged if node.flags & SUBTREE) > len(keys)
        number = nodes.branch(page, False)[0][0]
    return False
