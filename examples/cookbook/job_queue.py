import zlmdb


class Shop(zlmdb.Schema):
    orders: zlmdb.Table[int, str]
    mails: zlmdb.Queue[str]


with zlmdb.open(None, Shop) as db:
    with db.write() as t:  # the order and its mail are stored together
        t.orders[1] = "apples"
        t.mails.put("Thank you for your order 1")

    worker = zlmdb.Worker(db, lambda t: t.mails)
    with worker.job() as job:  # the end of the block acknowledges the job
        print("sending:", job.body)

    with db.read() as t:
        print("jobs left:", len(t.mails))
