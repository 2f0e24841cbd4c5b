"""What the layer costs over raw LMDB: reads, keys, indexes, selections, counts, transactions, opening, importing.

Reads are hot: every record is in memory and was read before.
"""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from struct import Struct
from types import new_class
from typing import Any
from uuid import UUID

from ..records import Small, small
from ..remote import DISTUTILS
from .inside import Inside, Prepared, Question, Timed, row

PACK = Struct(">Q").pack
FIRST_EACH = "first record of a selection, a transaction each"
FIRST_INSIDE = "first record of a selection, all in one transaction"


def name(key: int) -> str:
    return f"the name of record {key}"


def schema(**tables: Any) -> Any:
    """A schema class of these tables."""
    import zlmdb

    return type("Schema", (zlmdb.Schema,), {"__annotations__": tables})


def drain(records: Iterable[Any]) -> None:
    """Ask for all of them, by a loop that costs next to nothing itself."""
    deque(records, maxlen=0)


def raw_env(directory: Path, names: tuple[bytes, ...] = (b"records",)) -> tuple[Any, list[Any]]:
    import lmdb

    place = directory / "raw"
    place.mkdir(exist_ok=True)
    env = lmdb.open(str(place), max_dbs=4, map_size=1 << 34, sync=False, max_spare_txns=8)
    return env, [env.open_db(name) for name in names]


@contextmanager
def point_reads(directory: Path, size: int) -> Iterator[Timed]:
    import zlmdb
    from zlmdb.classic.maps import MapOidString
    from zlmdb.keys import Oid  # the same eight bytes as the raw loop packs

    loads = bytes.decode
    keys = random.Random(1).sample(range(size), size)
    with ExitStack() as stack:
        env, (db,) = raw_env(directory)
        stack.enter_context(env)
        with env.begin(db, write=True) as txn:
            for key in range(size):
                txn.put(PACK(key), name(key).encode())
        get = stack.enter_context(env.begin(db)).get

        ours = stack.enter_context(zlmdb.open(directory / "ours", schema(names=zlmdb.Table[Oid, str])))
        with ours.write() as t:
            t.names.put_many(((key, name(key)) for key in range(size)), append=True)
        table = stack.enter_context(ours.read()).names

        classic = stack.enter_context(zlmdb.Database(str(directory / "classic")))
        attached = classic.attach_table(zlmdb.table("6a6ef0a8-86c5-4b1c-a69b-6fd0ea3e49a2")(
            type("ClassicNames", (MapOidString,), {"__doc__": "Names."})
        ))  # fmt: skip
        with classic.begin(write=True) as txn:
            for key in range(size):
                attached[txn, key] = name(key)
        classic_txn = stack.enter_context(classic.begin())

        def raw() -> int:
            for key in keys:
                loads(get(PACK(key)))
            return size

        def bound() -> int:
            for key in keys:
                table[key]
            return size

        def mapped() -> int:
            for key in keys:
                attached[classic_txn, key]
            return size

        yield {"raw lmdb": raw, "zlmdb": bound, "zlmdb classic map": mapped}


@contextmanager
def key_codecs(directory: Path, size: int) -> Iterator[Timed]:
    """Encode and decode again. The raw row packs an int."""
    from zlmdb.keys import key_codec

    dice = random.Random(2)
    numbers = [dice.randrange(1 << 50) for _ in range(size)]
    uuids = [UUID(int=dice.getrandbits(128)) for _ in numbers]
    times = [datetime.fromtimestamp(number % (1 << 31), timezone.utc) for number in numbers]
    samples: dict[str, tuple[Any, list[Any]]] = {
        "int": (int, numbers), "str": (str, [f"key {number}" for number in numbers]), "UUID": (UUID, uuids),
        "float": (float, [number / 7 for number in numbers]), "datetime": (datetime, times),
        "tuple[UUID, int]": (tuple[UUID, int], list(zip(uuids, numbers))),
    }  # fmt: skip
    unpack = Struct(">Q").unpack

    def raw() -> int:
        for number in numbers:
            unpack(PACK(number))
        return size

    def both(encode: Callable[[Any], bytes], decode: Callable[[bytes], Any], keys: list[Any]) -> int:
        for key in keys:
            decode(encode(key))
        return size

    timed: Timed = {"raw lmdb": raw}
    for label, (annotation, keys) in samples.items():
        codec = key_codec(annotation)
        timed[f"zlmdb key {label}"] = partial(both, codec.encode, codec.decode, keys)
    yield timed


class Keyed:
    """Records with one unique index: zlmdb's, and the same kept by hand over raw lmdb and msgspec."""

    def __init__(self, directory: Path, size: int, stack: ExitStack) -> None:
        import msgspec

        import zlmdb

        self.size = size
        self.records = [small(number) for number in range(size)]
        self.changed = [Small(**{**vars(record), "name": record.name + " changed"}) for record in self.records]
        self.order = random.Random(3).sample(range(size), size)
        self.env, (self.db, self.index) = raw_env(directory, (b"records", b"names"))
        stack.enter_context(self.env)
        self.dumps = msgspec.msgpack.Encoder().encode
        self.loads = msgspec.msgpack.Decoder(Small).decode
        indexes = {"by_name": zlmdb.UniqueIndex[str]("name")}
        table = new_class("Records", (zlmdb.Table[int, Small],), exec_body=lambda body: body.update(indexes))
        self.ours = stack.enter_context(zlmdb.open(directory / "ours", schema(records=table), durability="none"))

    def raw_insert(self) -> int:
        dumps, index = self.dumps, self.index
        with self.env.begin(self.db, write=True) as txn:
            txn.drop(self.db, delete=False)
            txn.drop(index, delete=False)
            put = txn.put
            for key in self.order:
                record, packed = self.records[key], PACK(key)
                if not put(record.name.encode(), packed, overwrite=False, db=index):
                    raise KeyError(record.name)
                put(packed, dumps(record))
        return self.size

    def insert(self) -> int:
        with self.ours.write() as t:
            t.records.clear()
            for key in self.order:
                t.records[key] = self.records[key]
        return self.size

    def raw_update(self) -> int:
        dumps, loads, index = self.dumps, self.loads, self.index
        with self.env.begin(self.db, write=True) as txn:
            put, get = txn.put, txn.get
            for key in self.order:
                packed = PACK(key)
                old, new = loads(get(packed)), self.changed[key]
                if old.name != new.name:
                    txn.delete(old.name.encode(), db=index)
                    if not put(new.name.encode(), packed, overwrite=False, db=index):
                        raise KeyError(new.name)
                put(packed, dumps(new))
        self.records, self.changed = self.changed, self.records
        return self.size

    def update(self) -> int:
        with self.ours.write() as t:
            for key in self.order:
                t.records[key] = self.changed[key]
        return self.size

    def raw_by_index(self) -> int:
        loads, index = self.loads, self.index
        with self.env.begin(self.db) as txn:
            get = txn.get
            for key in self.order:
                loads(get(get(self.records[key].name.encode(), db=index)))
        return self.size

    def by_index(self) -> int:
        with self.ours.read() as t:
            view = t.records.by_name
            for key in self.order:
                view[self.records[key].name]
        return self.size

    def raw_delete(self) -> int:
        loads, index = self.loads, self.index
        with self.env.begin(self.db, write=True) as txn:
            for key in self.order:
                packed = PACK(key)
                txn.delete(loads(txn.get(packed)).name.encode(), db=index)
                txn.delete(packed)
        return self.size

    def delete(self) -> int:
        with self.ours.write() as t:
            for key in self.order:
                del t.records[key]
        return self.size


@contextmanager
def keyed(directory: Path, size: int, operation: str) -> Iterator[Timed]:
    """One operation; whatever it needs to be there again is put back before it, outside the clock."""
    with ExitStack() as stack:
        store = Keyed(directory, size, stack)
        store.raw_insert()
        store.insert()
        yield {"raw lmdb": getattr(store, f"raw_{operation}"), "zlmdb": getattr(store, operation)}


@contextmanager
def keyed_update(directory: Path, size: int) -> Iterator[Timed]:
    with ExitStack() as stack:
        store = Keyed(directory, size, stack)
        store.raw_insert()
        store.insert()

        # Ours goes first: the hand-written one then swaps the records for those of the next round.
        yield {"zlmdb": store.update, "raw lmdb": store.raw_update}


@contextmanager
def keyed_delete(directory: Path, size: int) -> Iterator[Timed]:
    """Half of the work is inserting again: records can be deleted once. Told is insert and delete together."""
    with ExitStack() as stack:
        store = Keyed(directory, size, stack)
        yield {
            "raw lmdb": lambda: store.raw_insert() and store.raw_delete(),
            "zlmdb": lambda: store.insert() and store.delete(),
        }


class Filled:
    """The same small records, by zlmdb's codec: a raw loop and a table."""

    def __init__(self, directory: Path, size: int, stack: ExitStack) -> None:
        import zlmdb
        from zlmdb.values import serializer

        self.size = size
        self.pairs = [(key, small(key)) for key in range(size)]
        codec = serializer(Small)
        self.dumps, self.loads = codec.encode, codec.decode
        self.env, (self.db,) = raw_env(directory)
        stack.enter_context(self.env)
        self.ours = stack.enter_context(
            zlmdb.open(directory / "ours", schema(records=zlmdb.Table[int, Small]), durability="none")
        )
        self.raw_load()
        self.load()

    def raw_load(self) -> int:
        dumps = self.dumps
        with self.env.begin(self.db, write=True) as txn:
            txn.drop(self.db, delete=False)
            put = txn.put
            for key, record in self.pairs:
                put(PACK(key), dumps(record))
        return self.size

    def load(self) -> int:
        with self.ours.write() as t:
            t.records.clear()
            t.records.put_many(self.pairs, append=True)
        return self.size

    def raw_scan(self) -> int:
        loads = self.loads
        with self.env.begin(self.db) as txn:
            drain(map(loads, txn.cursor().iternext(False, True)))
        return self.size

    def scan(self) -> int:
        with self.ours.read() as t:
            drain(t.records.select().values())
        return self.size

    def raw_count(self) -> int:
        lower, upper, count = PACK(self.size // 10), PACK(self.size // 10 * 9), 0
        with self.env.begin(self.db) as txn:
            cursor = txn.cursor()
            cursor.set_range(lower)
            for key in cursor.iternext(True, False):
                if key >= upper:
                    break
                count += 1
        return count

    def count(self) -> int:
        with self.ours.read() as t:
            return t.records.select(self.size // 10, self.size // 10 * 9).count()  # type: ignore[no-any-return]


@contextmanager
def filled(directory: Path, size: int, operation: str) -> Iterator[Timed]:
    with ExitStack() as stack:
        store = Filled(directory, size, stack)
        yield {"raw lmdb": getattr(store, f"raw_{operation}"), "zlmdb": getattr(store, operation)}


@contextmanager
def plain_delete(directory: Path, size: int) -> Iterator[Timed]:
    """All records, in a random order; they are stored again outside the clock."""
    order = random.Random(4).sample(range(size), size)
    with ExitStack() as stack:
        store = Filled(directory, size, stack)

        def raw() -> int:
            with store.env.begin(store.db, write=True) as txn:
                delete = txn.delete
                for key in order:
                    delete(PACK(key))
            return size

        def ours() -> int:
            with store.ours.write() as t:
                records = t.records
                for key in order:
                    del records[key]
            return size

        yield {"raw lmdb": Prepared(raw, store.raw_load), "zlmdb": Prepared(ours, store.load)}


@contextmanager
def first_records(directory: Path, size: int, each: bool) -> Iterator[Timed]:
    """The first record from a random key on, key and value: *each* in a transaction of its own, or all in one."""
    keys = random.Random(5).sample(range(size), size)
    with ExitStack() as stack:
        store = Filled(directory, size, stack)
        env, db, ours, loads, unpack = store.env, store.db, store.ours, store.loads, Struct(">Q").unpack

        def raw_from(txn: Any, key: int) -> Any:
            with txn.cursor() as cursor:
                if cursor.set_range(PACK(key)):
                    found, data = cursor.item()
                    return unpack(found)[0], loads(data)

        def raw_each() -> int:
            for key in keys:
                with env.begin(db) as txn:
                    raw_from(txn, key)
            return size

        def raw_one() -> int:
            with env.begin(db) as txn:
                for key in keys:
                    raw_from(txn, key)
            return size

        def first_each() -> int:
            for key in keys:
                with ours.read() as t:
                    t.records.select(key).first()
            return size

        def first_one() -> int:
            with ours.read() as t:
                for key in keys:
                    t.records.select(key).first()
            return size

        def next_each() -> int:
            for key in keys:
                with ours.read() as t:
                    next(iter(t.records.select(key)))
            return size

        def next_one() -> int:
            with ours.read() as t:
                for key in keys:
                    next(iter(t.records.select(key)))
            return size

        if each:
            yield {"raw lmdb": raw_each, "zlmdb": first_each, "zlmdb next(iter())": next_each}
        else:
            yield {"raw lmdb": raw_one, "zlmdb": first_one, "zlmdb next(iter())": next_one}


@contextmanager
def whole_count(directory: Path, size: int) -> Iterator[Timed]:
    repeat = 1_000
    with ExitStack() as stack:
        store = Filled(directory, size, stack)
        table = stack.enter_context(store.ours.read()).records
        txn = stack.enter_context(store.env.begin())

        def raw() -> int:
            for _ in range(repeat):
                txn.stat(store.db)["entries"]
            return repeat

        def ours() -> int:
            for _ in range(repeat):
                len(table)
            return repeat

        yield {"raw lmdb": raw, "zlmdb": ours}


@contextmanager
def begins(directory: Path, size: int, write: bool) -> Iterator[Timed]:
    """An empty ``with`` block."""
    repeat = min(size, 2_000)
    with ExitStack() as stack:
        store = Filled(directory, 10, stack)

        def raw() -> int:
            for _ in range(repeat):
                with store.env.begin(store.db, write=write):
                    pass
            return repeat

        def ours() -> int:
            begin = store.ours.write if write else store.ours.read
            for _ in range(repeat):
                with begin():
                    pass
            return repeat

        yield {"raw lmdb": raw, "zlmdb": ours}


@contextmanager
def single(directory: Path, size: int, write: bool) -> Iterator[Timed]:
    """One transaction for each record that is read or written, without sync: in a block, and without one."""
    import zlmdb
    from zlmdb.keys import Oid

    keys = random.Random(3).sample(range(size), size)
    values = [name(key) for key in keys]
    with ExitStack() as stack:
        env, (handle,) = raw_env(directory)
        stack.enter_context(env)
        db = stack.enter_context(zlmdb.open(directory / "ours", schema(names=zlmdb.Table[Oid, str]), durability="none"))
        with env.begin(handle, write=True) as txn, db.write() as t:
            for key in range(size):
                txn.put(PACK(key), name(key).encode())
            t.names.put_many(((key, name(key)) for key in range(size)), append=True)
        del txn, t  # what somebody holds is not used again
        names, loads = db.auto.names, bytes.decode

        def raw_reads() -> int:
            for key in keys:
                with env.begin() as txn:
                    loads(txn.get(PACK(key), None, handle))
            return size

        def reads() -> int:
            for key in keys:
                with db.read() as t:
                    t.names[key]
            return size

        def auto_reads() -> int:
            for key in keys:
                names[key]
            return size

        def raw_writes() -> int:
            for key, value in zip(keys, values):
                with env.begin(write=True) as txn:
                    txn.put(PACK(key), value.encode(), db=handle)
            return size

        def writes() -> int:
            for key, value in zip(keys, values):
                with db.write() as t:
                    t.names[key] = value
            return size

        def auto_writes() -> int:
            for key, value in zip(keys, values):
                names[key] = value
            return size

        if write:
            yield {"raw lmdb": raw_writes, "zlmdb": writes, "zlmdb auto": auto_writes}
        else:
            yield {"raw lmdb": raw_reads, "zlmdb": reads, "zlmdb auto": auto_reads}


IN_FLIGHT = 64


@contextmanager
def submitted(directory: Path, size: int) -> Iterator[Timed]:
    """Durable writes of one thread, one after another and many in flight; at most 2,000 of them."""
    import lmdb

    import zlmdb
    from zlmdb.keys import Oid

    count = min(size, 2_000)
    values = [name(key) for key in range(count)]
    with ExitStack() as stack:
        env = stack.enter_context(lmdb.open(str(directory / "raw"), map_size=1 << 30))
        db = stack.enter_context(zlmdb.open(directory / "ours", schema(names=zlmdb.Table[Oid, str])))

        def raw() -> int:
            for key, value in enumerate(values):
                with env.begin(write=True) as txn:
                    txn.put(PACK(key), value.encode())
            return count

        def block() -> int:
            for key, value in enumerate(values):
                with db.write() as t:
                    t.names[key] = value
            return count

        def submit() -> int:
            futures = deque[Any]()
            for key, value in enumerate(values):
                if len(futures) == IN_FLIGHT:
                    futures.popleft().result()
                futures.append(db.submit(partial(store, key=key, value=value)))
            for future in futures:
                future.result()
            return count

        def store(t: Any, key: int, value: str) -> None:
            t.names[key] = value

        yield {"raw lmdb": raw, "zlmdb": block, "zlmdb submit": submit}


@contextmanager
def opening(directory: Path, size: int) -> Iterator[Timed]:
    import lmdb

    import zlmdb

    repeat = min(20, max(2, size // 500))
    declared = schema(records=zlmdb.Table[int, str])
    (directory / "raw").mkdir()

    def raw() -> int:
        for _ in range(repeat):
            with lmdb.open(str(directory / "raw"), max_dbs=4, map_size=1 << 34) as env:
                env.open_db(b"records")
        return repeat

    def ours() -> int:
        for _ in range(repeat):
            zlmdb.open(directory / "ours", declared).close()
        return repeat

    yield {"raw lmdb": raw, "zlmdb": ours}


@contextmanager
def importing(directory: Path, size: int) -> Iterator[Timed]:
    """A fresh process that does nothing else; "Python" is one that imports nothing."""

    # From compiled files, as an installed package has them, and with what py-lmdb imports for any program.
    left_out = ("PYTHONDONTWRITEBYTECODE", DISTUTILS)
    environment = {name: value for name, value in os.environ.items() if name not in left_out}

    def run(program: str) -> int:
        subprocess.run([sys.executable, "-c", program], check=True, env=environment)
        return 1

    yield {
        "Python": partial(run, "pass"), "raw lmdb": partial(run, "import lmdb"), "zlmdb": partial(run, "import zlmdb"),
        "asyncio and sqlite3": partial(run, "import asyncio, sqlite3"),
    }  # fmt: skip


class Layer(Inside):
    name = "layer"
    title = "The layer itself, over raw lmdb"
    sizes = {"tiny": (200,), "small": (5_000,), "window": (100_000,), "full": (100_000,)}
    labels = (
        "raw lmdb", "zlmdb", "zlmdb auto", "zlmdb submit", "zlmdb next(iter())", "zlmdb classic map",
        *(f"zlmdb key {name}" for name in ("int", "str", "UUID", "float", "datetime", "tuple[UUID, int]")), "Python",
        "asyncio and sqlite3", "zlmdb, memory engine", "dict of bytes",
    )  # fmt: skip
    questions = (
        Question("point read, int key, str value", point_reads, "raw lmdb", "read"),
        Question("key codec, encode and decode", key_codecs, "raw lmdb", "key"),
        Question("one unique index: insert", partial(keyed, operation="insert"), "raw lmdb"),
        Question("one unique index: get by index", partial(keyed, operation="by_index"), "raw lmdb"),
        Question("one unique index: update of the indexed field", keyed_update, "raw lmdb"),
        Question("one unique index: insert and delete", keyed_delete, "raw lmdb"),
        Question("no index: delete", plain_delete, "raw lmdb"),
        Question("bulk load of small records", partial(filled, operation="load"), "raw lmdb"),
        Question("scan of small records", partial(filled, operation="scan"), "raw lmdb"),
        Question(FIRST_EACH, partial(first_records, each=True), "raw lmdb"),
        Question(FIRST_INSIDE, partial(first_records, each=False), "raw lmdb"),
        Question("count of a range", partial(filled, operation="count"), "raw lmdb", "record"),
        Question("len of a table", whole_count, "raw lmdb", "call"),
        Question("read transaction, begin and end", partial(begins, write=False), "raw lmdb", "transaction"),
        Question("write transaction, begin and end", partial(begins, write=True), "raw lmdb", "transaction"),
        Question("one read, one transaction", partial(single, write=False), "raw lmdb", "read"),
        Question("one write, one transaction", partial(single, write=True), "raw lmdb", "write"),
        Question("durable writes, one transaction each", submitted, "raw lmdb", "write"),
        Question("open and close", opening, "raw lmdb", "opening"),
        Question("import, in a fresh process", importing, "Python", "process"),
    )

    def measure(self, size: int, rounds: int) -> dict[str, Any]:
        rows = super().measure(size, rounds)
        for label, bytes_of in memory(min(size, 20_000)).items():
            row(rows, label)["memory_bytes"] = bytes_of
        return rows


def memory(count: int) -> dict[str, float]:
    """Bytes of memory of a small record in the memory engine, and in a dict of bytes. CPython only, by tracemalloc."""
    import zlmdb
    from zlmdb.values import serializer

    try:
        import tracemalloc
    except ImportError:  # PyPy
        return {}
    records = [(key, small(key)) for key in range(count)]
    encode = serializer(Small).encode
    found: dict[str, float] = {}
    for label in ("zlmdb", "raw lmdb"):
        gc.collect()
        tracemalloc.start()
        if label == "zlmdb":
            db = zlmdb.open(None, schema(records=zlmdb.Table[int, Small]))
            with db.write() as t:
                t.records.put_many(records, append=True)
        else:
            held = {PACK(key): encode(record) for key, record in records}
        found["zlmdb, memory engine" if label == "zlmdb" else "dict of bytes"] = (
            tracemalloc.get_traced_memory()[0] / count
        )
        tracemalloc.stop()
    db.close()
    held.clear()
    return found
