from __future__ import annotations

import zlmdb


class Names(zlmdb.Schema):
    names: zlmdb.Table[str, int]


def page(db: zlmdb.Database[Names], cursor: str | None = None) -> tuple[list[str], str | None]:
    """Three names, and the cursor of the next page: None after the last one."""
    with db.read() as t:
        found = t.names.select().keys().page(3, cursor)
    return found.rows, found.next


with zlmdb.open(None, Names) as db:
    with db.write() as t:
        t.names.put_many((f"name {n}", n) for n in range(7))

    names, cursor = page(db)
    print(names)
    while cursor is not None:
        names, cursor = page(db, cursor)
        print(names)
