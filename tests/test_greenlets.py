"""Under gevent and eventlet, which replace functions of `threading`: identifiers are those of greenlets then."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .workers import surroundings

WRITES = """
import sys, threading

class Greenlet:
    current = 1

own = threading.get_ident
threading.get_ident = lambda: 10**15 + Greenlet.current  # as they do, before the program imports zlmdb

import zlmdb

class Store(zlmdb.Schema):
    counts: zlmdb.Table[str, int]

db = zlmdb.open(sys.argv[1], Store)

def writes():
    with db.write() as t:
        t.counts["first"] = 1
        yield  # to another greenlet, as when this one waits for a socket
        t.counts["second"] = 2

one = writes()
next(one)
Greenlet.current = 2
try:
    with db.write(timeout=0.1) as t:
        t.counts["other"] = 3
except zlmdb.WriterTimeout:
    print("waited")
Greenlet.current = 1
print(next(one, "ended"))
with db.read() as t:
    print(dict(t.counts))
threading.get_ident = own  # PyPy asks for it at the end
"""


@pytest.mark.once
def test_a_greenlet_that_waits_inside_its_block_keeps_it(tmp_path: Path) -> None:
    """Nothing lists greenlets: the next writer took the one that wrote for a thread that had died, and undid it."""
    command = [sys.executable, "-c", WRITES, str(tmp_path / "db")]
    done = subprocess.run(command, capture_output=True, text=True, env=surroundings(), timeout=60)
    assert done.stdout.splitlines() == ["waited", "ended", "{'first': 1, 'second': 2}"], done.stderr
