"""Reading the records that refer to a record, within a function of that record, while nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

from ...keys import TupleKey
from ...query.following import Given
from ...query.following.nested import Nested
from ...query.nestedloops import Entries, Reader
from ...query.nestedrows import Keys, can_be_followed
from ..indexstorage import IndexStorage
from .accessranges import ends_otherwise

if TYPE_CHECKING:
    from ..indexview import IndexView
    from ..table import Table


def reader(
    view: IndexView[Any, Any, Any], node: Nested, parameters: Sequence[Any], question: Callable[..., Any],
    keys: Optional[Keys], still: bool, keep: Optional[Callable[..., None]] = None,
) -> Optional[Callable[..., Any]]:  # fmt: skip
    """The function of a key in the index of *view* that gives what *node* is then; None if *question* is as good.

    *keys*: in place of the key it takes an engine's key of that form, and what decodes it. *still*: nothing is written
    while it is in use, in a write transaction either. *keep* is handed the index, the `Reader` that makes the function,
    and the limit.
    """
    table, index = view._table, view._storage
    if not can_be_followed(table, still=still):
        return None
    skip, most = 0, 1
    if node.limit:
        most, skip = [one.evaluate(Given((), parameters)) for one in node.limit]
        if most < 1 or skip < 0:
            return None
    if node.single:
        most = 1
    one = most == 1 and (node.single or bool(node.limit)) and not (skip or node.where or node.order or node.from_end)
    programs = table._storage.generated.loops
    key = "nested", node, index, one, keys
    made: Union[Reader, bool, None] = programs.prepared.get(key)
    if made is None:
        made = _made(table, index, node, keys, one=one)
        programs.keep(key, made)
    if isinstance(made, bool):
        return None
    if keep is not None:
        keep(index, made, skip, most)
    return made.made(table, table._raw.cursor(view._handle), question, skip, most, parameters)


def _made(
    table: Table[Any, Any], index: IndexStorage, node: Nested, keys: Optional[Keys], *, one: bool
) -> Union[Reader, bool]:  # fmt: skip
    """False if the entries of a key, or their records, are found otherwise than in most indexes."""
    joined, storage = index.joined, table._storage
    if joined is None or index.owner is not None or index.adopted:
        return False
    first, of = joined.parts[0], "of" if keys is None else "load_outer(engine_key)"
    plain = not isinstance(first, TupleKey) and not ends_otherwise(joined._forms[0])
    if keys is not None and plain and keys[0] == first and first.width:
        begin, outer = index.storage.prefix, len(keys[1])
        of = f"engine_key[{outer}:]" if outer else "engine_key"
        check, encode, names = f"len(of) == {first.width}", f"{begin!r} + of" if begin else "of", {}
    elif not plain:
        check, encode, names = "True", "exactly(of)[0]", {"exactly": index.exactly}
    else:
        check, encode, names = index.key_source("of", "_of")
    entries = Entries(check, encode, names, index.tail, storage.prefix, of)
    return Reader(node, entries, storage.generated.loops, one=one)
