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
from types import SimpleNamespace
from typing import Any, Optional
from unittest import mock

import zlmdb
from zlmdb.schema import indexbuilding

from ..bounds import lowered
from ..plain_rows import Pairs
from . import queries, rules
from .command import forked, main
from .releases import SEVERAL, Declared, Release
from .statements import MANY, Chooser, Program, Statement, apply
from .steps import next_release
from .visitor import Visitor

REFUSED = (zlmdb.DuplicateKey, zlmdb.DanglingLink, zlmdb.StillLinked)
"""What the rules refuse."""


class Undone(Exception):
    """Ends a block or a savepoint."""


class History:
    """The life of one database."""

    def __init__(self, seed: int, engine: str, directory: Path) -> None:
        self.dice = Random(f"{seed} {engine}")
        self.directory, self.files = directory, 0
        self.now = 4e9  # later than the clock of the machine, by which opening sweeps
        self.path: Optional[Path] = None if engine == "memory" else directory / f"db{seed}"
        self.layout = "classic" if engine == "classic" else "tables"
        self.release = Release(self.dice, classic=engine == "classic")
        self.content: rules.Content = {id: {} for id in (*self.release.tables, *SEVERAL)}
        self.readers: list[tuple[ExitStack, Any, rules.Content]] = []
        self.visitors: list[Visitor] = []
        self.mirrors: dict[tuple[str, str], dict[Any, Any]] = {}
        """Of each consumer of a feed, by the id of the table and its name, the records to which it has followed it."""
        self.removed: set[str] = set()
        """Names of tables that the file no longer has."""
        self.log: list[str] = []
        self.statements = 0
        self.open(self.release)

    def note(self, text: str) -> None:
        self.log.append(text)

    # -- opening ----------------------------------------------------------------------------------------------------

    def open(self, release: Release, **options: Any) -> None:
        program = Program(release)
        if self.path is None:
            self.db = zlmdb.open(None, program.schema, **options)
        else:
            if not self.path.exists():
                options["lib_version"] = self.dice.choice(["0.9", "1.0"])
                options["layout"] = self.layout
            self.db = zlmdb.open(self.path, program.schema, durability="none", **options)
        self.db.clock = lambda: self.now
        self.release, self.program = release, program

    def close(self) -> None:
        for reader in list(self.readers):
            self.end_reader(reader)
        self.end_visitors()
        self.db.close()

    def statement(self) -> Statement:
        return Chooser(self.dice, self.release, self.content, self.now).statement()

    def both(self, t: Any, content: rules.Content, one: Statement) -> None:
        """The statement on both sides, with the same outcome."""
        self.statements += 1
        self.note(f"{one}")
        wanted = self.applied(content, one)
        self.agree(one, wanted, lambda: self.program.perform(t, one))

    def applied(self, content: rules.Content, one: Statement, *, whole: bool = False) -> Any:
        """What the model returns for the statement, or why it is refused; *whole*: nothing is left of it then."""
        before = copy.deepcopy(content)
        try:
            return apply(self.release, content, one, self.now)
        except (rules.Refused, KeyError) as error:
            if whole or one.kind not in ("put_many", "update", "edit_all"):  # these keep what they have stored before
                content.clear()
                content.update(before)
            return error

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

    # -- blocks -----------------------------------------------------------------------------------------------------

    def block(self) -> None:
        """A block of statements, some in savepoints, which may be undone."""
        dice, content = self.dice, copy.deepcopy(self.content)
        self.note("block")
        called: list[int] = []
        due: list[int] = []
        try:
            with self.db.write(**({"alone": True} if dice.random() < 0.2 else {})) as t:
                for _ in range(dice.randrange(1, 6)):
                    if dice.random() < 0.25:
                        self.savepoint(t, content, called, due)
                    else:
                        self.both(t, content, self.statement())
                        self.hook(t, called, due)
                    if dice.random() < 0.2:
                        self.compare(t, content)
                if dice.random() < 0.15:
                    self.note("undone")
                    raise Undone
        except Undone:
            due = []
        except zlmdb.DanglingLink:
            if rules.may_be_committed(self.release, content):
                raise
            self.note("not committed")
            due = []
        else:
            if not rules.may_be_committed(self.release, content):
                raise AssertionError("a deferred link that leads nowhere was committed")
            self.content = content
        if called != due:
            raise AssertionError(f"{called} were called after the commit, not {due}")

    def hook(self, t: Any, called: list[int], due: list[int]) -> None:
        """Have a number added to *called* after the commit, sometimes."""
        if self.dice.random() < 0.3:
            due.append(self.dice.randrange(1000))
            t.txn.after_commit(partial(called.append, due[-1]))

    def savepoint(self, t: Any, content: rules.Content, called: list[int], due: list[int]) -> None:
        before, count = copy.deepcopy(content), len(due)
        self.note("savepoint")
        try:
            with t.txn.savepoint():
                for _ in range(self.dice.randrange(1, 4)):
                    if self.dice.random() < 0.1:
                        self.savepoint(t, content, called, due)
                    self.both(t, content, self.statement())
                    self.hook(t, called, due)
                if self.dice.random() < 0.5:
                    self.note("savepoint undone")
                    raise Undone
        except Undone:
            content.clear()
            content.update(before)
            del due[count:]

    def alone(self) -> None:
        """One statement by `run`, `submit` or `auto`."""
        one, content = self.statement(), copy.deepcopy(self.content)
        how = self.dice.choice(["run", "submit", "auto"])
        if how == "auto" and (one.kind in MANY or one.kind == "edit" or one.id in SEVERAL):
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
            if rules.may_be_committed(self.release, content):
                raise
            return
        if not rules.may_be_committed(self.release, content):
            raise AssertionError("a deferred link that leads nowhere was committed")
        self.content = content

    def several(self) -> None:
        """Statements that one commit may store together, each as if it were alone."""
        content = copy.deepcopy(self.content)
        self.note("several")
        chosen = [self.statement() for _ in range(self.dice.randrange(2, 6))]
        called: list[int] = []
        due: list[int] = []

        def work(t: Any, number: int, one: Statement) -> Any:
            t.txn.after_commit(partial(called.append, number))
            return self.program.perform(t, one)

        futures = [self.db.submit(partial(work, number=number, one=one)) for number, one in enumerate(chosen)]
        for number, (one, future) in enumerate(zip(chosen, futures)):
            self.statements += 1
            self.note(f"{one}")
            before = copy.deepcopy(content)
            wanted: Any = None
            try:
                wanted = apply(self.release, content, one, self.now)
                if not rules.may_be_committed(self.release, content):
                    raise rules.Refused("deferred")
            except (rules.Refused, KeyError) as error:
                wanted = error
                content.clear()
                content.update(before)
            else:
                due.append(number)
            self.agree(one, wanted, future.result)
        if sorted(called) != due:  # each is called as its future is told, which a second thread may begin to do
            raise AssertionError(f"{called} were called after the commit, not {due}")
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
                if rules.may_be_committed(self.release, content):
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

    # -- other programs ---------------------------------------------------------------------------------------------

    def begin_visitor(self) -> None:
        """A program of this release, or one that lacks declarations, opens the file and stays."""
        if self.path is None or not hasattr(os, "fork") or len(self.visitors) > 1:
            return
        release = self.release if self.dice.random() < 0.6 else self.release.lacking(self.dice)
        visitor = Visitor(self.path, release)
        self.note(f"visitor {visitor.opened} {release.tables}")
        self.visitors.append(visitor)
        if visitor.opened.refused:
            self.end_visitor(visitor)

    def end_visitor(self, visitor: Visitor) -> None:
        self.note("visitor ends")
        self.visitors.remove(visitor)
        visitor.end()

    def end_visitors(self) -> None:
        for visitor in list(self.visitors):
            self.end_visitor(visitor)

    def ask_visitor(self) -> None:
        if self.visitors:
            visitor = self.dice.choice(self.visitors)
            for _ in range(self.dice.randrange(1, 5)):
                if self.dice.random() < 0.5:
                    self.let_read(visitor)
                else:
                    self.let_write(visitor)
            if self.dice.random() < 0.1:
                self.end_visitor(visitor)

    def let_read(self, visitor: Visitor) -> None:
        id = self.dice.choice("abc")
        mine, its = self.release.tables[id], visitor.release.tables[id]
        question: Any = id
        if self.dice.random() < 0.5:
            asked = queries.query_of(visitor.release, id, self.dice)
            if any(word in asked.query for word in queries.WITHOUT_OBJECTS):
                question = asked
        self.note(f"visitor reads {question}")
        found = visitor.ask(question, self.now)
        if found.refused:
            if mine.as_stored() == its.as_stored():
                raise AssertionError(f"a visitor with the declarations of the file could not read {id}: {found}")
            self.note(f"{found}")
        elif mine.expires == its.expires:  # else it sees more
            defaults = {one.id: one.default for one in its.fields}  # of a field that the file no longer has
            records = {} if its.name in self.removed else self.content[id]
            wanted: Any = {
                key: {id: record.get(id, default) for id, default in defaults.items()}
                for key, record in records.items()
            }
            if question != id:
                pairs = Pairs((key, visitor.program.object(id, wanted[key])) for key in sorted(wanted))
                wanted = question.ask(SimpleNamespace(**{id: pairs}))
            if found.value != wanted:
                raise AssertionError(f"a visitor reads {found.value} in {id}, not {wanted}")

    def let_write(self, visitor: Visitor) -> None:
        content = copy.deepcopy(self.content)
        chooser = Chooser(self.dice, visitor.release, content, self.now)
        chosen = [chooser.statement() for _ in range(self.dice.randrange(1, 5))]
        self.note(f"visitor: {chosen}")
        found = visitor.ask(chosen, self.now)
        self.note(f"{found}")
        *answers, stored = found.value
        if stored.refused == "declarations":
            raise AssertionError(f"a visitor could not write to any table: {found}")
        for one, answer in zip(chosen, answers):
            removed = one.id not in SEVERAL and visitor.release.tables[one.id].name in self.removed
            if removed and not answer.refused and answer.value not in (None, False, 0):
                raise AssertionError(f"{one} of a visitor, on a table that was removed: {answer}")
            if answer.refused == "declarations":
                again = "open the database again" in answer.text  # a refused release has dropped what is built again
                if self.release.as_stored() == visitor.release.as_stored() and not again:
                    raise AssertionError(f"{one} of a visitor with the declarations of the file: {answer}")
            elif (
                visitor.release.several.get(one.id) == self.release.several.get(one.id)
                if one.id in SEVERAL
                else visitor.release.tables[one.id].has_all_of(self.release.tables[one.id])
            ):
                wanted = self.applied(content, one, whole=True)
                if isinstance(wanted, Exception) != (answer.refused == "rules"):
                    raise AssertionError(f"{one} of a visitor: {answer}, not {wanted!r}")
                if not answer.refused and answer.value != wanted:
                    raise AssertionError(f"{one} of a visitor returned {answer.value!r}, not {wanted!r}")
            # else it has changed nothing, as what follows each step confirms
        if rules.may_be_committed(self.release, content) == (stored.refused == "rules"):
            raise AssertionError(f"{chosen} of a visitor: {stored}, with {content}")
        if not stored.refused:
            self.content = content

    # -- what is there ----------------------------------------------------------------------------------------------

    def compare(self, t: Any, content: rules.Content) -> None:
        """The records of each table, and a query."""
        for id in self.release.several:
            found: Any = {key: list(getattr(t, id)[key]) for key in getattr(t, id)}
            if found != content[id] or list(found) != sorted(content[id]):
                raise AssertionError(f"{id} has {found}, not {content[id]}")
            pairs = [(key, one) for key, values in sorted(content[id].items()) for one in values]
            if list(getattr(t, id).items()) != pairs or getattr(t, id).count() != len(pairs):
                raise AssertionError(f"{id} has {list(getattr(t, id).items())}, not {pairs}")
        for id in self.release.tables:
            found = [(key, self.program.known(id, value)) for key, value in getattr(t, id).items()]
            wanted = sorted(content[id].items(), key=lambda pair: pair[0])
            if found != wanted:
                raise AssertionError(f"{id} has {found}, not {wanted}")
            if len(getattr(t, id)) != len(wanted):
                raise AssertionError(f"{id}: len() is {len(getattr(t, id))}, of {len(wanted)} records")
        self.compare_query(t, content, self.dice.choice(list(self.release.tables)))

    def compare_query(self, t: Any, content: rules.Content, id: str) -> None:
        """A query at random gives what the same expression gives of a list."""
        asked = queries.query_of(self.release, id, self.dice, links=True)
        wanted = asked.ask(queries.plain_tables(self.release, content, self.program.object))
        found = asked.ask(t)
        if isinstance(wanted, dict):  # nor in another order
            wanted, found = list(wanted.items()), list(found.items())
        if found != wanted:
            raise AssertionError(f"{asked} gives {found}, not {wanted}")
        if asked.query.endswith(").all()") and not any(
            word in asked.query for word in (".limit(", ".fields(", ".keys(")
        ):
            size, select = self.dice.randrange(1, 4), asked.part(asked.query[: -len(".all()")]).ask
            page = select(t).page(size)
            rows = list(page.rows)
            while page.next is not None:
                page = select(t).page(size, after=page.next)
                rows += page.rows
            if rows != wanted:
                raise AssertionError(f"{asked} gives {rows} by pages of {size}, not {wanted}")

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
                for consumer in self.consumers(id):
                    del self.mirrors[id, consumer]
                continue
            mirror = self.mirrors.setdefault((id, "mirror"), {})
            self.follow_as("mirror", table, mirror, 10_000)
            seen = {
                key: one
                for key, one in mirror.items()
                if not table.expires or key in self.content[id] or (one["until"] or self.now + 1) > self.now
            }
            if seen != self.content[id]:
                raise AssertionError(f"{id}: its feed leads to {seen}, not to {self.content[id]}")

    def follow_as(self, consumer: str, table: Declared, mirror: dict[Any, Any], most: int) -> None:
        """Let *consumer* read *most* changes."""
        id = table.id
        changes = self.db.changes(table.name, consumer=consumer)
        number = changes.after
        for change in changes.take(most):
            number += 1
            if change.number != number:
                raise AssertionError(f"{id}: change {change.number} follows {number - 1}")
            if change.kind == "clear":
                if change.count < len(mirror):
                    raise AssertionError(f"{id}: cleared {change.count} of {len(mirror)}")
                mirror.clear()
                continue
            old = None if change.old is None else self.program.known(id, change.old)
            if old != mirror.get(change.key):
                raise AssertionError(f"{id}: {change} begins with {old}, not {mirror.get(change.key)}")
            if change.new is None:
                mirror.pop(change.key, None)
            else:
                mirror[change.key] = self.program.known(id, change.new)
        changes.acknowledge()

    def consumers(self, id: str) -> list[str]:
        return [consumer for at, consumer in self.mirrors if at == id]

    def consume(self) -> None:
        """A consumer begins, reads some changes, acknowledges them or not, or ends; or changes are removed."""
        fed = [table for table in self.release.tables.values() if table.feed]
        if not fed:
            return
        table, consumer = self.dice.choice(fed), self.dice.choice(["one", "two"])
        self.follow()
        mirror = self.mirrors.get((table.id, consumer))
        what = self.dice.choice(["read", "read", "undo", "end", "trim"])
        if what == "trim":
            self.note(f"trim {table.id}")
            known = self.db.changes(table.name)
            before, read = known.first(), min(known.consumers().values())
            count = known.trim(acknowledged=True)
            if known.first() != max(before, read + 1) or count != known.first() - before:
                raise AssertionError(f"{count} changes from {before} on were removed, all through {read} were read")
        elif mirror is None:
            self.note(f"{consumer} begins with {table.id}")
            self.sweep()
            self.follow()
            self.db.changes(table.name, consumer=consumer, after=self.db.changes(table.name).last())
            self.mirrors[table.id, consumer] = copy.deepcopy(self.content[table.id])
        elif what == "end":
            self.note(f"{consumer} ends with {table.id}")
            self.db.changes(table.name, consumer=consumer).forget()
            del self.mirrors[table.id, consumer]
        elif what == "undo":
            self.note(f"{consumer} of {table.id} undone")
            changes = self.db.changes(table.name, consumer=consumer)
            after = changes.after
            with suppress(Undone), self.db.write() as t:
                changes.take(3)
                changes.acknowledge(t=t)
                raise Undone
            again = self.db.changes(table.name, consumer=consumer).after
            if (changes.after, again) != (after, after):
                raise AssertionError(f"{consumer} is at {changes.after} and {again}, not {after}")
        else:
            self.note(f"{consumer} reads {table.id}")
            self.follow_as(consumer, table, mirror, self.dice.choice([1, 5, 1000]))

    # -- readers ----------------------------------------------------------------------------------------------------

    def begin_reader(self) -> None:
        if len(self.readers) < 3:
            self.note("reader")
            stack = ExitStack()
            t = stack.enter_context(self.db.read())
            for id in self.release.tables:
                list(getattr(t, id))  # a transaction reads the clock when it first reads what expires
            self.readers.append((stack, t, copy.deepcopy(self.content)))

    def end_reader(self, reader: Any) -> None:
        stack, t, content = reader
        self.readers.remove(reader)
        self.note("reader ends")
        with stack:
            self.compare(t, content)

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
            rules.expire(self.release, self.content, self.now)

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
        self.end_visitors()
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
        """The feed of a table is a new one, or its records have another shape."""
        if table.feed:
            self.sweep()
            for consumer in {"mirror", *self.consumers(table.id)}:
                changes = self.db.changes(table.name, consumer=consumer)
                changes.acknowledge(changes.last())
                self.mirrors[table.id, consumer] = copy.deepcopy(self.content[table.id])

    # -- releases ---------------------------------------------------------------------------------------------------

    def come_to_rest(self) -> None:
        """Before another release opens the file: nobody reads, nothing that has expired is stored."""
        self.check()
        for reader in list(self.readers):
            self.end_reader(reader)
        self.sweep()

    def released(self) -> None:
        """The next release opens the file, or is refused."""
        if self.path is None:
            return
        self.come_to_rest()
        later = self.release.next(self.dice)
        self.note(f"release {later.tables}")
        for name in later.dropped_feeds:
            self.db.drop_feed(name)
        self.db.close()
        before, content = self.release, copy.deepcopy(self.content)
        for id in later.tables:
            later.complete(id, content[id])
        fits = rules.fit(later, content)
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
            with (
                self.db.write()
            ):  # the first program that writes records the new shape, and from then on others may not
                pass
            self.content = content
            for (id, _), mirror in self.mirrors.items():
                later.complete(id, mirror)
            for id, table in later.tables.items():
                if not before.tables[id].feed or before.tables[id].name in later.dropped_feeds:
                    self.follow_from_here(table)
        self.check()

    def migrated(self) -> None:
        """The next release changes the records by the steps of its migrations, or is refused."""
        if self.path is None:
            return
        self.come_to_rest()
        later, steps = next_release(self.release, self.dice)
        self.note(f"steps {steps} to {later.tables}")
        before, content = self.release, copy.deepcopy(self.content)
        for step in steps:
            step.apply(content)
        fits = rules.fit(later, content)
        self.db.close()
        self.open(later, drop_indexes=True)
        try:
            if self.dice.random() < 0.3:
                self.db.migrate(dry_run=True)
            self.db.migrate()
        except REFUSED as error:
            if fits:
                raise
            self.note(f"refused: {error}")
            self.db.close()
            self.open(before)
        else:
            if not fits:
                raise AssertionError("a migration was done whose links do not fit the records")
            self.content = content
            self.removed.update(step.name for step in steps if step.kind == "removed")
            for step in steps:
                if step.kind != "loop":  # that is changes as any other
                    self.follow_from_here(later.tables[step.id])
        self.check()

    # -- the whole --------------------------------------------------------------------------------------------------

    def step(self) -> None:
        shares = {
            self.block: 35, self.alone: 20, self.several: 5, self.begin_reader: 10, self.end_some_reader: 8,
            self.time_passes: 6, self.sweep: 2, self.copied: 4, self.released: 4, self.migrated: 3, self.process: 1,
            self.check: 5, self.consume: 5, self.begin_visitor: 10, self.ask_visitor: 10,
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


def lives(directory: Path, first: int = 1, run: float = 60.0, steps: int = 60, engine: str = "all") -> dict[str, Any]:
    """Random histories of databases, from the seed FIRST on, for RUN seconds, each of STEPS steps."""
    until, seed, failures = time.monotonic() + run, first, []
    engines = ["lmdb", "memory", "classic"] if engine == "all" else [engine]
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
    chance = Random(f"bounds {seed} {engine}")
    with tempfile.TemporaryDirectory(dir=directory) as place, lowered(chance, chance.choice([0.0, 0.3, 0.6])):
        try:
            history = History(seed, engine, Path(place))
            history.live(steps)
        except Exception:
            log = [] if history is None else history.log[-25:]
            return 0, "\n".join([*log, traceback.format_exc()])
    return history.statements, ""


if __name__ == "__main__":
    main(lives, first=1, run=60.0, steps=60, engine="all")
