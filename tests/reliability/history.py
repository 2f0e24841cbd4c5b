"""A database lives through random statements, blocks, copies and releases of its program, beside plain dicts.

`python -m tests.reliability.history --first 1 --run 60`. A seed makes three tables with any indexes, links, feeds and
formats (`releases`), and then steps: statements of every kind alone, in blocks with savepoints, by `run`, `submit` and
`auto`; readers that stay open; time that passes; copies by backup, compaction and stream, with which it goes on; a
process that writes beside it; a next release of the program, which may be refused. After each step the tables are
those of the model (`rules`), and now and then indexes, links, feeds and `check()` are compared as well.
"""

from __future__ import annotations

import copy
import logging
import os
import pickle
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, Optional
from unittest import mock

import zlmdb
from zlmdb.schema import indexbuilding

from ..plain_rows import Pairs
from . import queries, rules
from .command import forked, main
from .releases import KEYS, KINDS, Declared, Field, Release

ONE_KEY = ("put", "put", "put_new", "replace", "setdefault", "change", "edit", "pop", "del")
MANY = ("put_many", "update", "clear", "delete", "change_all", "edit_all")
REFUSED = (zlmdb.DuplicateKey, zlmdb.DanglingLink, zlmdb.StillLinked)
"""What the rules refuse."""
SIZE = 12
"""So many different keys has a table at most."""


class Undone(Exception):
    """Ends a block or a savepoint."""


class Statement(NamedTuple):
    """A statement on a table, with its arguments; it is the same on both sides and in another process."""

    kind: str
    id: str
    args: tuple[Any, ...]


class Chosen(NamedTuple):
    """Some records of a table: which, in which order, and how many of them."""

    field: str
    equal: bool
    wanted: Any
    order: Optional[str]
    reverse: bool
    limit: Optional[int]
    skip: int

    def keys(self, records: dict[Any, rules.Record]) -> list[Any]:
        found = sorted(key for key, record in records.items() if (record[self.field] == self.wanted) == self.equal)
        if self.order is not None:
            found.sort(key=lambda key: records[key][self.order])
            if self.reverse:
                found.reverse()
        return found if self.limit is None else found[self.skip : self.skip + self.limit]


class History:
    """The life of one database."""

    def __init__(self, seed: int, engine: str, directory: Path) -> None:
        self.dice = Random(f"{seed} {engine}")
        self.directory, self.files = directory, 0
        self.now = 4e9  # later than the clock of the machine, by which opening sweeps
        self.path: Optional[Path] = directory / f"db{seed}" if engine == "lmdb" else None
        self.release = Release(self.dice)
        self.content: rules.Content = {id: {} for id in self.release.tables}
        self.readers: list[tuple[ExitStack, Any, rules.Content, Release]] = []
        self.mirrors: dict[str, dict[Any, Any]] = {}
        self.log: list[str] = []
        self.statements = 0
        self.open(self.release)

    def note(self, text: str) -> None:
        self.log.append(text)

    # -- opening ----------------------------------------------------------------------------------------------------

    def open(self, release: Release, **options: Any) -> None:
        schema, models = release.declared()
        if self.path is None:
            self.db = zlmdb.open(None, schema, **options)
        else:
            if not self.path.exists():
                options["lib_version"] = self.dice.choice(["0.9", "1.0"])
            self.db = zlmdb.open(self.path, schema, durability="none", **options)
        self.db.clock = lambda: self.now
        self.release, self.models = release, models

    def close(self) -> None:
        for reader in list(self.readers):
            self.end_reader(reader)
        self.db.close()

    # -- records ----------------------------------------------------------------------------------------------------

    def record(self, table: Declared) -> rules.Record:
        """A record at random, whose links mostly lead to records."""
        dice, found = self.dice, {}
        for one in table.fields:
            if one.kind in KINDS:
                found[one.id] = KINDS[one.kind].value(dice)
            elif one.kind == "until":
                found[one.id] = dice.choice([None, None, self.now + 5, self.now + 20, self.now + 1])
                waits = any(link.deferred for link in table.links.values())  # for others, at the commit
                if self.release.expiring == "leaf" and not waits and dice.random() < 0.1:
                    found[one.id] = self.now - 1
            else:
                how, _, target = one.kind.partition(":")
                if how == "link":
                    found[one.id] = self.target(target) if dice.random() < 0.7 else None
                else:
                    found[one.id] = [self.target(target) for _ in range(dice.randrange(3))]
        return found

    def target(self, id: str) -> Any:
        known = list(self.content[id])
        return self.dice.choice(known) if known and self.dice.random() < 0.85 else self.key(id)

    def key(self, id: str) -> Any:
        return KEYS[self.release.tables[id].key][1](self.dice.randrange(SIZE))

    def object(self, id: str, record: rules.Record) -> Any:
        return self.models[id](**{one.name: copy.copy(record[one.id]) for one in self.release.tables[id].fields})

    def known(self, id: str, found: Any, release: Optional[Release] = None) -> rules.Record:
        """The record of the model that an object is."""
        return {one.id: getattr(found, one.name) for one in (release or self.release).tables[id].fields}

    # -- statements -------------------------------------------------------------------------------------------------

    def statement(self) -> Statement:
        dice = self.dice
        id = dice.choice("abc")
        table = self.release.tables[id]
        kind = dice.choice([*ONE_KEY, *ONE_KEY, *MANY])
        if kind in ("pop", "del"):
            return Statement(kind, id, (self.key(id),))
        if kind in ("change", "edit"):
            changed = {one.id: value for one, value in self.some_fields(table)}
            return Statement(kind, id, (self.key(id), changed if kind == "edit" or dice.random() < 0.8 else None))
        if kind in ONE_KEY:
            return Statement(kind, id, (self.key(id), self.record(table)))
        if kind in ("put_many", "update"):
            return Statement(kind, id, ([(self.key(id), self.record(table)) for _ in range(dice.randrange(5))],))
        if kind == "clear":
            return Statement(kind, id, ()) if dice.random() < 0.3 else self.statement()
        plain = [one for one in table.fields if one.kind in KINDS]
        by = dice.choice(plain)
        sorts = [one.id for one in plain if one.kind in ("int", "str", "float", "date", "bool", "bytes")]
        chosen = Chosen(
            by.id,
            dice.random() < 0.7,
            KINDS[by.kind].value(dice),
            dice.choice(sorts) if sorts and dice.random() < 0.4 else None,
            dice.random() < 0.5,
            dice.choice([None, None, 1, 3]),
            dice.randrange(2),
        )
        if kind == "delete":
            return Statement(kind, id, (chosen,))
        changed = {one.id: value for one, value in self.some_fields(table) if one.kind in KINDS}
        return Statement(kind, id, (chosen, changed))

    def some_fields(self, table: Declared) -> Iterator[tuple[Field, Any]]:
        whole = self.record(table)
        for one in self.dice.sample(table.fields, min(len(table.fields), self.dice.choice([1, 1, 2]))):
            yield one, whole[one.id]

    def perform(self, t: Any, one: Statement) -> Any:
        """The statement on the tables of a transaction."""
        table, declared = getattr(t, one.id), self.release.tables[one.id]
        names = {field.id: field.name for field in declared.fields}

        def changed(value: Any, details: rules.Record) -> Any:
            for id, new in details.items():
                setattr(value, names[id], copy.copy(new))
            return value

        if one.kind in ("pop", "del"):
            if one.kind == "pop":
                found = table.pop(one.args[0], None)
                return None if found is None else self.known(one.id, found)
            del table[one.args[0]]
            return None
        if one.kind == "change":
            details = one.args[1]
            found = table.change(one.args[0], lambda value: None if details is None else changed(value, details))
            return None if found is None else self.known(one.id, found)
        if one.kind == "edit":
            with table.edit(one.args[0]) as value:
                changed(value, one.args[1])
            return None
        if one.kind in ONE_KEY:
            key, value = one.args[0], self.object(one.id, one.args[1])
            if one.kind == "put":
                table[key] = value
                return None
            found = getattr(table, one.kind)(key, value)
            return self.known(one.id, found) if one.kind == "setdefault" else found
        if one.kind == "put_many":
            return table.put_many([(key, self.object(one.id, record)) for key, record in one.args[0]])
        if one.kind == "update":
            table.update({key: self.object(one.id, record) for key, record in one.args[0]})
            return None
        if one.kind == "clear":
            table.clear()
            return None
        chosen = one.args[0]
        sign = "==" if chosen.equal else "!="
        condition = f"lambda record: record.{names[chosen.field]} {sign} wanted"
        selected = table.where(eval(condition, {"wanted": chosen.wanted}))
        if chosen.order is not None:
            by = eval(f"lambda record: record.{names[chosen.order]}")
            selected = selected.order_by(by, reverse=chosen.reverse)
        if chosen.limit is not None:
            selected = selected.limit(chosen.limit, chosen.skip)
        if one.kind == "delete":
            return selected.delete()
        if one.kind == "change_all":
            return selected.change(lambda value: changed(value, one.args[1]))
        with selected.edit() as values:
            for value in values:
                changed(value, one.args[1])
        return None

    def apply(self, content: rules.Content, one: Statement) -> Any:
        """The statement on the model; raises `rules.Refused` or KeyError. What was stored before a refusal remains."""
        release, records = self.release, content[one.id]

        def put(key: Any, record: rules.Record) -> None:
            rules.put(release, content, one.id, key, copy.deepcopy(record))
            self.gone(content)

        if one.kind in ("pop", "del"):
            if one.kind == "del" and one.args[0] not in records:
                raise KeyError
            found = records.get(one.args[0])
            rules.delete(release, content, one.id, [one.args[0]])
            return found if one.kind == "pop" else None
        if one.kind in ("change", "edit"):
            if one.args[0] not in records:
                raise KeyError
            if one.args[1] is None:
                rules.delete(release, content, one.id, [one.args[0]])
                return None
            now = {**records[one.args[0]], **one.args[1]}
            put(one.args[0], now)
            return now if one.kind == "change" else None
        if one.kind in ONE_KEY:
            key, record = one.args
            if one.kind == "put":
                put(key, record)
                return None
            if one.kind == "setdefault":
                found = records.get(key, record)
                if key not in records:
                    put(key, record)
                return found
            if (key in records) == (one.kind == "put_new"):
                return False
            put(key, record)
            return True
        if one.kind in ("put_many", "update"):
            pairs = one.args[0] if one.kind == "put_many" else dict(one.args[0]).items()
            for key, record in pairs:
                put(key, record)
            return len(pairs) if one.kind == "put_many" else None
        if one.kind == "clear":
            rules.delete(release, content, one.id, list(records))
            return None
        chosen = one.args[0].keys(records)
        if one.kind == "delete":
            rules.delete(release, content, one.id, chosen)
            return len(chosen)
        for key in chosen:
            put(key, {**records[key], **one.args[1]})
        return len(chosen) if one.kind == "change_all" else None

    def both(self, t: Any, content: rules.Content, one: Statement) -> None:
        """The statement on both sides, with the same outcome."""
        self.statements += 1
        self.note(f"{one}")
        before = copy.deepcopy(content)
        try:
            wanted: Any = self.apply(content, one)
        except (rules.Refused, KeyError) as error:
            wanted = error
            if one.kind not in ("put_many", "update", "edit_all"):  # these keep what they have stored before
                content.clear()
                content.update(before)
        self.agree(one, wanted, lambda: self.perform(t, one))

    def agree(self, one: Statement, wanted: Any, call: Callable[[], Any]) -> None:
        """*call* returns what the model returned, or raises where it did."""
        try:
            found = call()
        except REFUSED as error:
            if not isinstance(wanted, rules.Refused):
                raise
            self.note(f"refused: {type(error).__name__}")
            return
        except KeyError:
            if not isinstance(wanted, KeyError):
                raise
            return
        if isinstance(wanted, Exception):
            raise AssertionError(f"{one} was carried out, not refused: {wanted!r}")
        if wanted != found:
            raise AssertionError(f"{one} returned {found!r}, not {wanted!r}")

    def gone(self, content: rules.Content) -> None:
        """Records that were stored with a time that has passed are not there."""
        for id, table in self.release.tables.items():
            if table.expires:
                for key in rules.expired(content, id, self.now):
                    del content[id][key]

    # -- blocks -----------------------------------------------------------------------------------------------------

    def committed(self, content: rules.Content) -> bool:
        """Whether a commit stores this: no deferred link leads nowhere."""
        return not any(
            rules.dangles(self.release, content, id, key, record, deferred=True)
            for id, records in content.items()
            for key, record in records.items()
        )

    def block(self) -> None:
        """A block of statements, some in savepoints, which may be undone."""
        dice, content = self.dice, copy.deepcopy(self.content)
        self.note("block")
        try:
            with self.db.write(**({"alone": True} if dice.random() < 0.2 else {})) as t:
                for _ in range(dice.randrange(1, 6)):
                    if dice.random() < 0.25:
                        self.savepoint(t, content)
                    else:
                        self.both(t, content, self.statement())
                    if dice.random() < 0.2:
                        self.compare(t, content)
                if dice.random() < 0.15:
                    self.note("undone")
                    raise Undone
        except Undone:
            return
        except zlmdb.DanglingLink:
            if self.committed(content):
                raise
            self.note("not committed")
            return
        if not self.committed(content):
            raise AssertionError("a deferred link that leads nowhere was committed")
        self.content = content

    def savepoint(self, t: Any, content: rules.Content) -> None:
        before = copy.deepcopy(content)
        self.note("savepoint")
        try:
            with t.txn.savepoint():
                for _ in range(self.dice.randrange(1, 4)):
                    self.both(t, content, self.statement())
                if self.dice.random() < 0.5:
                    self.note("savepoint undone")
                    raise Undone
        except Undone:
            content.clear()
            content.update(before)

    def alone(self) -> None:
        """One statement by `run`, `submit` or `auto`."""
        one, content = self.statement(), copy.deepcopy(self.content)
        how = self.dice.choice(["run", "submit", "auto"])
        if how == "auto" and (one.kind in MANY or one.kind == "edit"):
            how = "run"
        self.note(how)

        def work(t: Any) -> None:
            content.clear()
            content.update(copy.deepcopy(self.content))
            self.both(t, content, one)

        try:
            if how == "run":
                self.db.run(work)
            elif how == "submit":
                self.db.submit(work).result()
            else:
                work(self.db.auto)
        except zlmdb.DanglingLink:
            if self.committed(content):
                raise
            return
        if not self.committed(content):
            raise AssertionError("a deferred link that leads nowhere was committed")
        self.content = content

    def several(self) -> None:
        """Statements that one commit may store together, each as if it were alone."""
        content = copy.deepcopy(self.content)
        self.note("several")
        chosen = [self.statement() for _ in range(self.dice.randrange(2, 6))]
        futures = [self.db.submit(partial(self.perform, one=one)) for one in chosen]
        for one, future in zip(chosen, futures):
            self.statements += 1
            self.note(f"{one}")
            before = copy.deepcopy(content)
            wanted: Any = None
            try:
                wanted = self.apply(content, one)
                if not self.committed(content):
                    raise rules.Refused("deferred")
            except (rules.Refused, KeyError) as error:
                wanted = error
                content.clear()
                content.update(before)
            self.agree(one, wanted, future.result)
        self.content = content

    def process(self) -> None:
        """One statement in another process, which has opened the file with the same declarations."""
        if self.path is None or not hasattr(os, "fork"):
            return
        one, content = self.statement(), copy.deepcopy(self.content)
        self.note("process")
        result = self.directory / "result"

        def work() -> None:
            self.db = None
            self.open(self.release)
            found = "stored"
            try:
                with self.db.write() as t:
                    self.both(t, content, one)
            except zlmdb.DanglingLink:
                if self.committed(content):
                    raise
                found = "refused"
            result.write_bytes(pickle.dumps((found, content)))
            self.db.close()
            os._exit(0)

        status = os.waitpid(forked(work), 0)[1]
        if status != 0:
            raise AssertionError("the other process failed")
        found, content = pickle.loads(result.read_bytes())
        if found == "stored":
            self.content = content

    # -- what is there ----------------------------------------------------------------------------------------------

    def compare(self, t: Any, content: rules.Content, release: Optional[Release] = None) -> None:
        """The records of each table, and a query."""
        for id in content:
            found = [(key, self.known(id, value, release)) for key, value in getattr(t, id).items()]
            wanted = sorted(content[id].items(), key=lambda pair: pair[0])
            if found != wanted:
                raise AssertionError(f"{id} has {found}, not {wanted}")
            if len(getattr(t, id)) != len(wanted):
                raise AssertionError(f"{id}: len() is {len(getattr(t, id))}, of {len(wanted)} records")
        if release is None:  # a reader of an older release has its own names of fields
            self.compare_query(t, content, self.dice.choice(list(content)))

    def compare_query(self, t: Any, content: rules.Content, id: str) -> None:
        """A query at random gives what the same expression gives of a list."""
        query, given = queries.query_of(self.release.tables[id], self.dice)
        pairs = Pairs((key, self.object(id, record)) for key, record in sorted(content[id].items()))
        ask = eval(f"lambda table: table{query}", {"given": given})
        wanted, found = ask(pairs), ask(getattr(t, id))
        if isinstance(wanted, dict):  # nor in another order
            wanted, found = list(wanted.items()), list(found.items())
        if found != wanted:
            raise AssertionError(f"{id}{query} with {given!r} gives {found}, not {wanted}")
        if query.endswith(").all()") and not any(word in query for word in (".limit(", ".fields(", ".keys(")):
            ask, size = (
                eval(f"lambda table: table{query[: -len('.all()')]}", {"given": given}),
                self.dice.randrange(1, 4),
            )
            page = ask(getattr(t, id)).page(size)
            rows = list(page.rows)
            while page.next is not None:
                page = ask(getattr(t, id)).page(size, after=page.next)
                rows += page.rows
            if rows != wanted:
                raise AssertionError(f"{id}{query} with {given!r} gives {rows} by pages of {size}, not {wanted}")

    def compare_indexes(self, t: Any, content: rules.Content) -> None:
        """What each index and each link gives."""
        for id, table in self.release.tables.items():
            for name, index in table.indexes.items():
                entries = [(part, key) for key, record in content[id].items() for part in index.keys(record)]
                entries.sort(key=lambda entry: entry[1])
                for place in reversed(range(len(index.parts))):
                    down = index.down and place == len(index.parts) - 1
                    entries.sort(key=lambda entry: entry[0][place], reverse=down)
                wanted = list(dict.fromkeys(key for _, key in entries))
                found = getattr(getattr(t, id), name).select().keys().all()
                if found != wanted:
                    raise AssertionError(f"{id}.{name} has {found}, not {wanted}: {index}")
                for part, _ in entries[:3]:
                    given = part[0] if len(part) == 1 else part
                    same = [key for other, key in entries if other == part]
                    view = getattr(getattr(t, id), name)
                    got = [view.key(given)] if index.unique else view[given].keys().all()
                    if got != same:
                        raise AssertionError(f"{id}.{name}[{given!r}] has {got}, not {same}: {index}")
            for name, link in table.links.items():
                for key in list(content[link.target])[:3]:
                    found = getattr(getattr(t, id), name)[key].keys().all()
                    wanted = sorted(at for at, record in content[id].items() if key in link.keys(record))
                    if found != wanted:
                        raise AssertionError(f"{id}.{name}[{key!r}] has {found}, not {wanted}: {link}")

    def check(self) -> None:
        """Everything, in a new transaction."""
        with self.db.read() as t:
            self.compare(t, self.content)
            self.compare_indexes(t, self.content)
        report = self.db.check()
        if not report.ok:
            raise AssertionError(f"check() found {report}: {report.problems[:3]}")
        self.follow()

    def follow(self) -> None:
        """The changes of each feed lead from the records that were to those that are."""
        for id, table in self.release.tables.items():
            if not table.feed:
                self.mirrors.pop(id, None)
                continue
            mirror = self.mirrors.setdefault(id, {})
            changes = self.db.changes(table.name, consumer="mirror")
            number = changes.after
            for change in changes.take(10_000):
                number += 1
                if change.number != number:
                    raise AssertionError(f"{id}: change {change.number} follows {number - 1}")
                if change.kind == "clear":
                    if change.count < len(mirror):
                        raise AssertionError(f"{id}: cleared {change.count} of {len(mirror)}")
                    mirror.clear()
                    continue
                old = None if change.old is None else self.known(id, change.old)
                if old != mirror.get(change.key):
                    raise AssertionError(f"{id}: {change} begins with {old}, not {mirror.get(change.key)}")
                if change.new is None:
                    mirror.pop(change.key, None)
                else:
                    mirror[change.key] = self.known(id, change.new)
            changes.acknowledge()
            seen = {
                key: one
                for key, one in mirror.items()
                if not table.expires or key in self.content[id] or (one["until"] or self.now + 1) > self.now
            }
            if seen != self.content[id]:
                raise AssertionError(f"{id}: its feed leads to {seen}, not to {self.content[id]}")

    # -- readers ----------------------------------------------------------------------------------------------------

    def begin_reader(self) -> None:
        if len(self.readers) < 3:
            self.note("reader")
            stack = ExitStack()
            t = stack.enter_context(self.db.read())
            for id in self.content:
                list(getattr(t, id))  # a transaction reads the clock when it first reads what expires
            self.readers.append((stack, t, copy.deepcopy(self.content), self.release))

    def end_reader(self, reader: Any) -> None:
        stack, t, content, release = reader
        self.readers.remove(reader)
        self.note("reader ends")
        with stack:
            self.compare(t, content, release)

    def end_some_reader(self) -> None:
        if self.readers:
            self.end_reader(self.dice.choice(self.readers))

    def time_passes(self) -> None:
        self.now += self.dice.choice([1, 5, 30])
        self.note(f"it is {self.now}")
        if self.release.expiring == "hub":
            self.sweep()
            id = "a"
            rules.delete(self.release, self.content, id, rules.expired(self.content, id, self.now))
        else:
            self.gone(self.content)

    def sweep(self) -> None:
        self.note("sweep")
        self.db.sweep()

    # -- files ------------------------------------------------------------------------------------------------------

    def copied(self) -> None:
        """A copy has the same records; and the history goes on with it, sometimes."""
        if self.path is None:
            return
        for reader in list(self.readers):
            self.end_reader(reader)
        how = self.dice.choice(["backup", "compact", "dump", "reopen"])
        self.note(how)
        self.files += 1
        target = self.path.with_name(f"{self.path.name.partition('-')[0]}-{self.files}")
        if how == "reopen":
            self.db.close()
        elif how == "compact":
            self.db.compact()
            return self.check()
        elif how == "backup":
            target.mkdir()
            self.db.backup(target, compact=self.dice.random() < 0.5)
            self.db.close()
            self.path = target
        else:
            stream = self.directory / "stream"
            with open(stream, "wb") as file:
                self.db.dump(file)
            self.db.close()
            with zlmdb.open(target, zlmdb.Schema) as loaded, open(stream, "rb") as file:
                loaded.load(file)
            self.path, self.mirrors = target, {}
        self.open(self.release)
        if how == "dump":
            for table in self.release.tables.values():
                self.follow_from_here(table)
        self.check()

    def follow_from_here(self, table: Declared) -> None:
        """The feed of a table is a new one."""
        if table.feed:
            self.sweep()
            changes = self.db.changes(table.name)
            self.db.changes(table.name, consumer="mirror", after=changes.last())
            self.mirrors[table.id] = copy.deepcopy(self.content[table.id])

    # -- releases ---------------------------------------------------------------------------------------------------

    def released(self) -> None:
        """The next release opens the file, or is refused."""
        if self.path is None:
            return
        self.check()
        for reader in list(self.readers):
            self.end_reader(reader)
        self.sweep()
        later = self.release.next(self.dice)
        self.note(f"release {later.tables}")
        for name in later.dropped_feeds:
            self.db.drop_feed(name)
        self.db.close()
        before, content = self.release, copy.deepcopy(self.content)
        for id, records in content.items():
            later.complete(id, records)
        fits = all(
            not rules.unique_twice(later.tables[id], records, key, record)
            and not rules.dangles(later, content, id, key, record, deferred=False)
            and not rules.dangles(later, content, id, key, record, deferred=True)
            for id, records in content.items()
            for key, record in records.items()
        )
        batch = indexbuilding.BATCH
        if (
            not later.risky and self.dice.random() < 0.5
        ):  # after a refusal, a large table may keep a part of the release
            batch = self.dice.choice([1, 2, 5])
        try:
            with mock.patch.object(indexbuilding, "BATCH", batch):
                self.open(later, drop_indexes=True)
        except (zlmdb.DuplicateKey, zlmdb.SchemaMismatch) as error:
            if fits:
                raise
            self.note(f"refused: {error}")
            self.open(before)
            for table in before.tables.values():
                if table.name in later.dropped_feeds:
                    self.follow_from_here(table)
        else:
            if not fits:
                raise AssertionError("a release was opened whose indexes or links do not fit the records")
            self.content = content
            for id, mirror in self.mirrors.items():
                later.complete(id, mirror)
            for id, table in later.tables.items():
                if not before.tables[id].feed or before.tables[id].name in later.dropped_feeds:
                    self.follow_from_here(table)
        self.check()

    # -- the whole --------------------------------------------------------------------------------------------------

    def step(self) -> None:
        shares = {
            self.block: 35, self.alone: 20, self.several: 5, self.begin_reader: 10, self.end_some_reader: 8,
            self.time_passes: 6, self.sweep: 2, self.copied: 4, self.released: 4, self.process: 1, self.check: 5,
        }  # fmt: skip
        self.dice.choices(list(shares), list(shares.values()))[0]()
        with self.db.read() as t:
            self.compare(t, self.content)

    def live(self, steps: int) -> None:
        try:
            for _ in range(steps):
                self.step()
            self.check()
        finally:
            with suppress(Exception):
                self.close()


def lives(directory: Path, first: int = 1, run: float = 60.0, steps: int = 60, engine: str = "both") -> dict[str, Any]:
    """Random histories of databases, from the seed FIRST on, for RUN seconds, each of STEPS steps."""
    until, seed, failures = time.monotonic() + run, first, []
    engines = ["lmdb", "memory"] if engine == "both" else [engine]
    count = statements = 0
    with quiet():
        while time.monotonic() < until and len(failures) < 5:
            for one in engines:
                done, failure = life(directory, seed, one, steps)
                count, statements = count + steps, statements + done
                if failure:
                    failures.append(shorter(directory, seed, one, steps, failure))
            seed += 1
    return {"failures": failures, "seeds": seed - first, "done": count, "statements": statements}


@contextmanager
def quiet() -> Iterator[None]:
    """Without a line in the log for each index that a release no longer has."""
    log = logging.getLogger("zlmdb")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


def shorter(directory: Path, seed: int, engine: str, steps: int, failure: str) -> str:
    """The failure of the fewest steps that the seed fails after, as far as bisection finds it."""
    passes = 0
    while steps - passes > 1:
        middle = (passes + steps) // 2
        found = life(directory, seed, engine, middle)[1]
        if found:
            steps, failure = middle, found
        else:
            passes = middle
    return f"--first {seed} --engine {engine} --steps {steps}: {failure}"


def life(directory: Path, seed: int, engine: str, steps: int) -> tuple[int, str]:
    """The number of statements, and what went wrong."""
    history: Any = None
    with tempfile.TemporaryDirectory(dir=directory) as place:
        try:
            history = History(seed, engine, Path(place))
            history.live(steps)
        except Exception:
            log = [] if history is None else history.log[-25:]
            return 0, "\n".join([*log, traceback.format_exc()])
    return history.statements, ""


if __name__ == "__main__":
    main(lives, first=1, run=60.0, steps=60, engine="both")
