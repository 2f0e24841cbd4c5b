"""A data set that worker processes read in parallel, forked or spawned, while its owner goes on reading and writing."""

from __future__ import annotations

import multiprocessing
import zlib
from dataclasses import dataclass
from typing import NamedTuple

import zlmdb


@dataclass
class Sample:
    label: str
    pixels: bytes


class Samples(zlmdb.Table[int, Sample]):
    """The samples, numbered from 0."""

    by_label = zlmdb.Index[str]("label")


class DataSet(zlmdb.Schema):
    samples: Samples


class Part(NamedTuple):
    """What a worker found in its part of the samples."""

    records: int
    checksum: int
    cats: int


LABELS = ("cat", "dog", "bird", "fish")
RECORDS, WORKERS = 2000, 4


def fill(db: zlmdb.Database[DataSet]) -> None:
    samples = (Sample(LABELS[n % 4], n.to_bytes(4, "big") * 64) for n in range(RECORDS))
    with db.write() as t:
        t.samples.put_many(enumerate(samples), append=True)


def read_part(db: zlmdb.Database[DataSet], worker: int, workers: int) -> Part:
    """Read the *worker*-th part of the data set; runs in a process of its own, where *db* opens itself anew."""
    with db.read() as t:
        count = len(t.samples)
        start, stop = count * worker // workers, count * (worker + 1) // workers
        records = checksum = cats = 0
        for _, sample in t.samples.select(start, stop):
            records += 1
            checksum ^= zlib.crc32(sample.pixels)
            cats += sample.label == "cat"
        return Part(records, checksum, cats)


def read_in_processes(db: zlmdb.Database[DataSet], method: str) -> Part:
    """What all workers found together."""
    with multiprocessing.get_context(method).Pool(WORKERS) as pool:
        parts = pool.starmap(read_part, [(db, worker, WORKERS) for worker in range(WORKERS)])
        pool.close()
        pool.join()
    checksum = 0
    for part in parts:
        checksum ^= part.checksum
    return Part(sum(part.records for part in parts), checksum, sum(part.cats for part in parts))


def main() -> None:
    with zlmdb.open("samples", DataSet) as db:
        fill(db)
        expected = read_part(db, 0, 1)
        print("alone:", expected.records, "records,", expected.cats, "cats")
        for method in ("fork", "spawn"):
            if method not in multiprocessing.get_all_start_methods():
                continue
            with db.read() as snapshot:  # open while the processes start, work and end
                before = dict(snapshot.samples)
                found = read_in_processes(db, method)
                print(f"by {WORKERS} processes ({method}):", found == expected)
                with db.write() as t:
                    del t.samples[0]
                print("a snapshot stays as it was:", dict(snapshot.samples) == before, len(snapshot.samples))
            with db.write() as t:
                t.samples[0] = before[0]
        with db.read() as t:
            print("at the end:", {label: t.samples.by_label[label].count() for label in LABELS})


if __name__ == "__main__":
    main()
