"""py-lmdb and msgspec by hand: loops over databases that serve as indexes, each entry a duplicate of fixed size.

Where one field is asked for, a class with that field decodes it, as msgspec's documentation recommends.
"""

from __future__ import annotations

from heapq import nlargest
from itertools import islice
from operator import itemgetter
from pathlib import Path
from struct import Struct
from typing import Any

from .base import Asker, Order, Person, email, orders, persons

NEEDS = {"lmdb": "lmdb", "msgspec": "msgspec"}
KEY = Struct(">Q")
PACK, UNPACK = KEY.pack, KEY.unpack


class RawLmdb(Asker):
    def __init__(self, directory: Path, size: int) -> None:
        import lmdb
        import msgspec

        place = directory / "raw"
        place.mkdir()
        self.env = lmdb.open(str(place), max_dbs=5, map_size=1 << 36, sync=False)
        sets: dict[str, Any] = {"dupsort": True, "dupfixed": True}
        self.persons, self.orders = self.env.open_db(b"persons"), self.env.open_db(b"orders")
        self.by_email = self.env.open_db(b"by_email")
        self.by_age, self.by_person = self.env.open_db(b"by_age", **sets), self.env.open_db(b"by_person", **sets)
        self.load = msgspec.msgpack.Decoder(Person).decode
        self.load_order = msgspec.msgpack.Decoder(Order).decode
        members: tuple[list[Any], ...] = ([("name", str)], [("score", float)], [("city", str), ("score", float)])
        self.part = {
            wanted[0][0]: msgspec.msgpack.Decoder(msgspec.defstruct("Part", wanted, gc=False)).decode
            for wanted in members
        }
        dump = msgspec.msgpack.Encoder().encode
        ages, links = [], []
        with self.env.begin(write=True) as txn:
            for person in persons(size):
                key = PACK(person.id)
                txn.put(key, dump(person), db=self.persons, append=True)
                ages.append(PACK(person.age) + key)
            for order in orders(size):
                key = PACK(order.id)
                txn.put(key, dump(order), db=self.orders, append=True)
                links.append(PACK(order.person) + key)
            for index, entries in ((self.by_age, ages), (self.by_person, links)):
                entries.sort()
                with txn.cursor(index) as cursor:
                    cursor.putmulti([(entry[:8], entry[8:]) for entry in entries], append=True)
            found = sorted((email(n).encode(), PACK(n)) for n in range(1, size + 1))
            with txn.cursor(self.by_email) as cursor:
                cursor.putmulti(found, append=True)
        self.txn = self.env.begin()
        self.get = self.txn.get

    def close(self) -> None:
        self.txn.abort()
        self.env.close()

    def one(self, email: str) -> Any:
        return self.load(self.get(self.get(email.encode(), None, self.by_email), None, self.persons))

    def equal(self, age: int) -> list[Any]:
        get, load, db = self.get, self.load, self.persons
        with self.txn.cursor(self.by_age) as cursor:
            if not cursor.set_key(PACK(age)):
                return []
            return [load(get(key, None, db)) for key in cursor.iternext_dup()]

    def within(self, low: int, high: int) -> list[Any]:
        get, load, db, end, found = self.get, self.load, self.persons, PACK(high), []
        with self.txn.cursor(self.by_age) as cursor:
            if cursor.set_range(PACK(low)):
                for age, key in cursor.iternext():
                    if age >= end:
                        break
                    found.append(load(get(key, None, db)))
        return found

    def among(self, ages: tuple[int, ...]) -> list[Any]:
        get, load, db, found = self.get, self.part["name"], self.persons, []
        with self.txn.cursor(self.by_age) as cursor:
            for age in ages:
                if cursor.set_key(PACK(age)):
                    found += [load(get(key, None, db)).name for key in cursor.iternext_dup()]
        return found

    def ordered(self, count: int) -> list[Any]:
        get, load, db = self.get, self.load, self.persons
        with self.txn.cursor(self.by_age) as cursor:
            return [load(get(key, None, db)) for _, key in islice(cursor, count)]

    def page(self, count: int, cursor: Any) -> list[Any]:
        get, load, db = self.get, self.load, self.persons
        age, id = cursor
        with self.txn.cursor(self.by_age) as entries:
            entries.set_key_dup(PACK(age), PACK(id))
            return [load(get(key, None, db)) for _, key in islice(entries, 1, count + 1)]

    def orders_of(self, person: int) -> list[Any]:
        get, load, db = self.get, self.load_order, self.orders
        with self.txn.cursor(self.by_person) as cursor:
            if not cursor.set_key(PACK(person)):
                return []
            return [load(get(key, None, db)) for key in cursor.iternext_dup()]

    def orders_by(self, email: str) -> list[Any]:
        (person,) = UNPACK(self.get(email.encode(), None, self.by_email))
        return self.orders_of(person)

    def nobody(self, name: str) -> list[Any]:
        load, part = self.load, self.part["name"]
        with self.txn.cursor(self.persons) as cursor:
            return [load(data) for data in cursor.iternext(False, True) if part(data).name == name]

    def names(self) -> list[Any]:
        part = self.part["name"]
        with self.txn.cursor(self.persons) as cursor:
            return [part(data).name for data in cursor.iternext(False, True)]

    def top(self, count: int) -> list[Any]:
        part, load, get, db = self.part["score"], self.load, self.get, self.persons
        with self.txn.cursor(db) as cursor:
            best = nlargest(count, ((part(data).score, key) for key, data in cursor), itemgetter(0))
        return [load(get(key, None, db)) for _, key in best]

    def groups(self) -> Any:
        part, found = self.part["city"], {}
        with self.txn.cursor(self.persons) as cursor:
            for data in cursor.iternext(False, True):
                person = part(data)
                so_far = found.get(person.city)
                if so_far is None:
                    found[person.city] = [1, person.score]
                else:
                    so_far[0] += 1
                    so_far[1] += person.score
        return found


ASKERS = {"raw lmdb + msgspec": RawLmdb}
