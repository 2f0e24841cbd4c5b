"""Queries: ordinary Python functions of a record, ``t.books.where(lambda b: b.year > 1990)``.

The law: compiling and indexes change the time, never the result or its order. `following` reads such a function;
`translated` tells what single fields decide, and `expressionsource` writes the rest out; `loops` makes of both the
source of one flat loop over records (`recordlines` has the lines of one), which `prepared` keeps for functions
of the same code. `terms` and `accesses` find what indexes can be asked for, `plan` chooses, `explained` says which.
`reads` is what can be asked of rows, with `ordering`, `pages`, `cursors` and `sums`, and `nolists` what cannot.
The tables are not known here: `tables.executor.execution` puts it together.
"""

from .nolists import SOME, NoList, no_length, shown_position
from .ordering import Descending, Ordered, desc
from .reads import Reads, SelectedRows, preview

__all__ = [
    "SOME", "Descending", "NoList", "Ordered", "Reads", "SelectedRows", "desc", "no_length", "preview",
    "shown_position",
]  # fmt: skip
