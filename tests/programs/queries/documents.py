"""Values that are dicts, NamedTuples, plain numbers: what is known of them, and what is not."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, TypedDict

from typing_extensions import assert_type

import zlmdb


class Point(NamedTuple):
    x: float
    y: float
    label: Optional[str] = None


class Item(TypedDict):
    name: str
    stock: int


class Store(zlmdb.Schema):
    points: zlmdb.Table[int, Point]
    items: zlmdb.Table[str, Item]
    settings: zlmdb.Table[str, dict[str, Any]]
    logins: zlmdb.Table[str, int]


def run() -> None:
    db = zlmdb.open(None, Store)
    with db.write() as t:
        for i in range(9):
            t.points[i] = Point(i, -i, None if i % 2 else f"p{i}")
        for i in range(5):
            t.items[f"i{i}"] = {"name": f"n{i}", "stock": i * 3}
        t.settings.update(a={"ink": "black", "width": 2}, b={"width": None}, c={})
        t.logins.update(ann=3, bob=1, cid=7)
    with db.read() as t:
        far = t.points.where(lambda p: p.x - p.y > 6 and p.label is not None)
        assert far.keys().all() == [4, 6, 8]
        assert_type(far.fields(lambda p: (p.x, p.label)), zlmdb.Reads[tuple[float, Optional[str]]])
        assert t.items.where(lambda d: d["stock"] > 3).fields(lambda d: d["name"]).all() == ["n2", "n3", "n4"]
        assert t.settings.where(lambda d: "width" in d and d["width"] is not None and d["width"] > 1).keys().all() == [
            "a"
        ]
        assert t.settings.where(lambda d: d.get("ink") == "black").keys().all() == ["a"]
        assert t.logins.where(lambda n: n > 2).keys().all() == ["ann", "cid"]
        assert t.logins.where(lambda k, n: k.startswith("b") or n == 7).keys().all() == ["bob", "cid"]
        assert t.logins.select().values().sum() == 11
        assert sum(t.logins.select().values()) == 11
        assert t.logins.select().order_by(lambda n: -n).keys().first() == "cid"
        wrong: Any = eval('lambda d: d["stok"] > 3')  # which checkers would report
        try:
            t.items.where(wrong)
        except TypeError as error:
            print(error)
        try:
            t.settings.where(lambda d: d["width"] > 1).keys().all()
        except (KeyError, TypeError) as error:
            print("as Python would:", type(error).__name__, error)


if __name__ == "__main__":
    run()
