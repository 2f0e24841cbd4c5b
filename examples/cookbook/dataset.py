from __future__ import annotations

import random

import zlmdb


class Dataset(zlmdb.Schema):
    samples: zlmdb.Table[int, bytes]


class Samples:
    """What a data loader asks for: a length, and samples by their number."""

    def __init__(self, db: zlmdb.Database[Dataset]) -> None:
        self._db = db

    def __len__(self) -> int:
        with self._db.read() as t:
            return len(t.samples)

    def __getitem__(self, number: int) -> bytes:
        with self._db.read() as t:
            return t.samples[number]

    def __getitems__(self, numbers: list[int]) -> list[bytes | None]:
        with self._db.read() as t:
            return list(t.samples.get_many(numbers))


with zlmdb.open(None, Dataset) as db:
    with db.write() as t:
        t.samples.put_many(((n, b"%04d" % n * 100) for n in range(1000)), append=True)

    samples = Samples(db)
    numbers = list(range(len(samples)))
    random.Random(1).shuffle(numbers)
    batch = samples.__getitems__(numbers[:4])
    print(len(samples), "samples, a batch of", len(batch))
    print("as one by one:", batch == [samples[n] for n in numbers[:4]])
