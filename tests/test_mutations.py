"""Damaged files: what `verify` passes is read without a crash, and with checksums no value is ever a wrong one.

A process of its own reads the images: a crash would end it. ``ZLMDB_TEST_IMAGES=10000`` makes it thorough.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from operated import child

import zlmdb

pytestmark = pytest.mark.once  # what is in a file does not depend on the interpreter

IMAGES = int(os.environ.get("ZLMDB_TEST_IMAGES", "60"))

PROGRAM = """
import faulthandler, json, random, sys
faulthandler.enable()
sys.path.insert(0, {tests!r})
import zlmdb
from operated import mutated

whole = open({source!r}, "rb").read()
rnd = random.Random({seed})
seen = dict.fromkeys(("same", "other values of the table without checksums", "refused", "decode errors", "wrong"), 0)
for number in range({images}):
    image = {image!r} + str(number % 2)
    data = mutated(whole, rnd)
    with open(image, "wb") as file:
        file.write(data)
    try:
        if zlmdb.Database.verify(image):
            raise zlmdb.CorruptDatabase("by its pages")
        with zlmdb.open(image, readonly=True) as db:
            report = db.check()
            with db.read() as t:
                rows = list(t["safe"].items())
                bare = list(t["bare"].items()) if "bare" in t else []
    except (zlmdb.InvalidDatabase, zlmdb.CorruptDatabase, zlmdb.SchemaMismatch):
        seen["refused"] += 1
    except KeyError:
        seen["refused"] += 1  # the name of the table is what changed
    except zlmdb.DecodeError:
        seen["decode errors"] += 1
        if not report.problems:
            seen["wrong"] += 1
    else:
        if any(not 0 <= value["n"] < 500 or value != {{"n": value["n"], "text": "x" * 50}} for _, value in rows):
            seen["wrong"] += 1
        elif len(rows) != 500 and report.ok:
            seen["wrong"] += 1
        elif bare != [(n, "y" * 30 + str(n)) for n in range(500)]:
            seen["other values of the table without checksums"] += 1
        else:
            seen["same"] += 1
print(json.dumps(seen))
"""


class Store(zlmdb.Schema):
    safe: zlmdb.Table[int, zlmdb.Checked[zlmdb.Json[dict[str, object]]]]
    bare: zlmdb.Table[int, str]


@pytest.mark.parametrize("version", ["0.9", "1.0"])
def test_no_image_crashes_the_process_or_gives_a_wrong_checked_value(version: str, tmp_path: Path) -> None:
    zlmdb.Database(tmp_path / "db", lib_version=version).close()
    with zlmdb.open(tmp_path / "db", Store) as db:
        for part in range(5):  # several commits, so that there are free pages
            with db.write() as t:
                for n in range(part * 100, part * 100 + 100):
                    t.safe[n] = {"n": n, "text": "x" * 50}
                    t.bare[n] = "y" * 30 + str(n)
    program = PROGRAM.format(
        tests=str(Path(__file__).parent), source=str(tmp_path / "db" / "data.mdb"), image=str(tmp_path / "image"),
        seed=version, images=IMAGES,
    )  # fmt: skip
    done = subprocess.run(child(program), capture_output=True, text=True, timeout=60 + IMAGES)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["wrong"] == 0, seen
    assert sum(seen.values()) == IMAGES
    assert min(seen["same"], seen["refused"]) > 0, seen
    print(f"LMDB {version}: {seen}")  # shown by pytest -s
