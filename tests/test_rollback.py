"""Changes are undone at once, however many threads read meanwhile: no rollback waits for a moment without readers."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

pytestmark = pytest.mark.twice  # processes and what is in files, which no version of Python makes different

PROGRAM = """
import os, sys, threading
from dataclasses import dataclass
import zlmdb

@dataclass
class User:
    name: str

class Users(zlmdb.Table[int, User]):
    by_name = zlmdb.UniqueIndex[str]("name")

class Store(zlmdb.Schema):
    users: Users
    texts: zlmdb.Table[int, str]
    pairs: zlmdb.Table[int, User]

db = zlmdb.open(sys.argv[1], Store, durability="none")
with db.write() as t:
    t.users[1], t.texts[1] = User("Ann"), "first"
    t.pairs[1] = t.pairs[2] = User("Ann")

def read():
    while True:
        with db.read() as t:
            t.texts[1]

def fails(t):
    t.texts[2] = "second"
    raise LookupError

def block():
    with db.write() as t:
        fails(t)

def taken_name():
    with db.write() as t:
        t.users[2] = User("Ann")

def condition():
    with db.write() as t:
        t.texts[2] = "second"
        list(t.users.where(lambda user: 1 // (len(user.name) - 3)))

def loop():
    with db.write() as t:
        for key in t.texts:
            fails(t)

def edit():
    with db.write() as t, t.users.edit(1) as user:
        user.name = "Bob"
        fails(t)

def savepoint():
    with db.write() as t:
        with t.txn.savepoint():
            fails(t)

def savepoint_that_is_left():
    with db.write() as t:
        try:
            with t.txn.savepoint():
                t.users[2] = User("Ann")
        except zlmdb.DuplicateKey:
            pass

def abort():
    with db.write() as t:
        t.texts[2] = "second"
        t.txn.abort()

def run():
    db.run(fails)

def submit():
    db.submit(fails).result()

def auto():
    db.auto.users[2] = User("Ann")

def bad_value():
    db.auto.texts[2] = 2

kept = []

def kept_exception():
    with db.write() as t:
        try:
            t.users[2] = User("Ann")
        except zlmdb.DuplicateKey as error:
            kept.append(error)
        raise LookupError

def kept_exception_of_a_look():
    with db.write() as t:
        t.texts[2] = "second"
        for look in (lambda: t.texts[9], lambda: t.users.by_name["nobody"], lambda: t.users.edit(9).__enter__()):
            try:
                look()
            except KeyError as error:
                kept.append(error)
        t.txn.abort()

def kept_exception_in_run():
    def work(t):
        try:
            t.users[2] = User("Ann")
        except zlmdb.DuplicateKey as error:
            kept.append(error)
        raise LookupError
    db.run(work)

class Named(zlmdb.Table[int, User]):
    by_name = zlmdb.UniqueIndex[str]("name")

class Later(zlmdb.Schema):
    pairs: Named
    more: zlmdb.Table[int, int]

def catalogue():
    zlmdb.open(sys.argv[1], Later, durability="none")  # with an index that two records are in the way of

for _ in range(4):
    threading.Thread(target=read, daemon=True).start()
for way in sys.argv[2:]:
    for _ in range(30):
        try:
            globals()[way]()
        except (LookupError, ZeroDivisionError, zlmdb.Error):
            pass
    with db.read() as t:
        print(way, (dict(t.texts), t.users[1].name, len(t.users)), flush=True)
    kept.clear()
os._exit(0)
"""

WAYS = [
    "block", "taken_name", "condition", "loop", "edit", "savepoint", "savepoint_that_is_left", "abort", "run", "submit",
    "auto", "bad_value", "kept_exception", "kept_exception_of_a_look", "kept_exception_in_run", "catalogue",
]  # fmt: skip


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], str]:
    """What the file holds after each way, one after the other in one process, and its errors."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path_factory.mktemp("ways") / "db"), *WAYS]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    timer = threading.Timer(60, process.kill)  # each takes a second, or for ever
    timer.start()
    output, errors = process.communicate()
    timer.cancel()
    return dict(line.split(" ", 1) for line in output.splitlines()), errors


@pytest.mark.parametrize("way", WAYS)
def test_changes_are_undone_while_other_threads_read_all_the_time(way: str, told: tuple[dict[str, str], str]) -> None:
    held, errors = told
    assert held.get(way) == "({1: 'first'}, 'Ann', 1)", f"{errors}; told of {list(held)}"
