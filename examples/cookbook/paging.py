from __future__ import annotations

import zlmdb


class Names(zlmdb.Schema):
    names: zlmdb.Table[str, int]


def page(db: zlmdb.Database[Names], after: str | None = None) -> zlmdb.Page[str]:
    with db.read() as t:
        return t.names.select().keys().page(3, after)


with zlmdb.open(None, Names) as db:
    with db.write() as t:
        t.names.put_many((f"name {n}", n) for n in range(7))

    found = page(db)
    print(found.rows)
    while found.next is not None:  # None after the last page
        found = page(db, found.next)
        print(found.rows)
