import zlmdb
from zlmdb.testing import inject


class Shop(zlmdb.Schema):
    orders: zlmdb.Table[int, str]
    sold: zlmdb.Table[str, int]


def order(db: zlmdb.Database[Shop], number: int, article: str) -> None:
    with db.write() as t:
        t.orders[number] = article
        t.sold.increment(article)


def test_an_order_is_counted() -> None:
    with zlmdb.open(None, Shop) as db:
        order(db, 1, "apples")
        order(db, 2, "apples")
        with db.read() as t:
            assert t.sold == {"apples": 2}


def test_a_failed_order_leaves_nothing_behind() -> None:
    with zlmdb.open(None, Shop) as db, inject(db) as faults:
        faults.disk_full()
        try:
            order(db, 1, "apples")
        except zlmdb.DiskError as error:
            print("as expected:", type(error).__name__)
        faults.clear()
        with db.read() as t:
            assert not t.orders
            assert not t.sold


if __name__ == "__main__":  # pytest finds the tests by their names
    test_an_order_is_counted()
    test_a_failed_order_leaves_nothing_behind()
    print("both pass")
