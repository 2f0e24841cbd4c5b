"""What is in a file cannot act upon the terminal of who looks at it."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import zlmdb
from zlmdb.cli import main
from zlmdb.cli.output import escaped

pytestmark = pytest.mark.twice  # what is in a file does not depend on the version of Python

HOSTILE = "a\x1b[2J\x9b31m\u202eb\u2066c\u200bd\x07e\x85f\u2028g\u2029h\xadi\U000e0041j\x7fk\r\nError: l\tm\u00e9\u65e5"
WORDS = [HOSTILE[:40], "\u202etxt.exe", "\x9b6n"]


def shown_as_it_is(text: str) -> bool:
    return not any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in text.replace("\n", ""))


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(main, [str(one) for one in arguments])


@pytest.fixture
def db(tmp_path: Path) -> Path:
    class Store(zlmdb.Schema):
        texts: zlmdb.Table[str, str]
        docs: zlmdb.Table[int, zlmdb.Json[Any]]
        blobs: zlmdb.Table[int, bytes]

    with zlmdb.open(tmp_path / "db", Store) as db, db.write() as t:
        t.texts[HOSTILE] = HOSTILE
        t.docs[1] = {HOSTILE: [HOSTILE, {"a": HOSTILE}]}
        t.blobs[1] = HOSTILE.encode()
    return tmp_path / "db"


def test_each_character_is_escaped_alone() -> None:
    assert escaped("plain text, caf\u00e9 \u65e5\u672c") == "plain text, caf\u00e9 \u65e5\u672c"
    assert escaped("\x1b\x9b\u202e\x7f\n") == r"\u001b\u009b\u202e\u007f\n"
    assert escaped("\ud800\U000e0001") == r"\ud800\udb40\udc01"


COMMANDS: list[Any] = [
    ("select", "texts"), ("select", "docs"), ("select", "texts", "--keys"), ("select", "texts", "--from", HOSTILE),
    ("get", "docs", 1), ("get", "texts", HOSTILE), ("get", "texts", "no" + HOSTILE), ("get", HOSTILE, 1),
    ("get", "docs", HOSTILE), ("delete", "texts", "no" + HOSTILE), ("put", HOSTILE, "a", "b"),
    ("put", "docs", 1, HOSTILE),
    ("tables",), ("info",),
]  # fmt: skip


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda one: ascii(one)[:30])
@pytest.mark.parametrize("as_json", [False, True])
def test_no_command_writes_what_a_terminal_acts_upon(arguments: Any, as_json: bool, db: Path) -> None:
    result = run(arguments[0], db, *arguments[1:], *["--json"] * as_json)
    assert shown_as_it_is(result.output), repr(result.output)
    assert not re.search(r"^Error: l", result.output, re.MULTILINE)
    assert result.output


def test_what_json_says_is_what_is_stored(db: Path) -> None:
    assert json.loads(run("get", db, "texts", HOSTILE).output) == HOSTILE
    assert json.loads(run("select", db, "texts", "--json").output) == {"key": HOSTILE, "value": HOSTILE}
    assert json.loads(run("get", db, "docs", 1).output) == {HOSTILE: [HOSTILE, {"a": HOSTILE}]}


def test_raw_writes_what_is_stored_and_nothing_else(db: Path) -> None:
    assert run("get", db, "texts", HOSTILE, "--raw").stdout_bytes == HOSTILE.encode()
    assert run("get", db, "blobs", 1, "--raw").stdout_bytes == HOSTILE.encode()
    result = run("get", db, "docs", 1, "--raw")
    assert (result.exit_code, "--raw writes texts and bytes" in result.output) == (2, True)


def test_names_in_a_file_are_escaped(tmp_path: Path) -> None:
    """A crafted file may name tables, types and indexes as it likes."""
    schema = type("Store", (zlmdb.Schema,), {"__annotations__": {"users": zlmdb.Table[int, str]}})
    with zlmdb.open(tmp_path / "db", schema) as db:
        stream = tmp_path / "stream"
        with stream.open("wb") as file:
            db.dump(file)
    text = stream.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        for name in ("table", "end"):
            if line.get(name) == "users":
                line[name] = HOSTILE[:60]
    lines[1]["value"] = "\x9b31m"
    stream.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = run("load", stream, tmp_path / "new")
    assert shown_as_it_is(result.output)
    for arguments in (
        ("tables",),
        ("check",),
        ("info",),
        ("get", HOSTILE[:60], 1),
        ("select", HOSTILE[:60]),
        ("put", HOSTILE[:60], 1, 2),
    ):
        found = run(arguments[0], tmp_path / "new", *arguments[1:])
        assert shown_as_it_is(found.output), (arguments, found.output)
        assert found.exception is None or isinstance(found.exception, SystemExit)
    salvaged = run("salvage", tmp_path / "new", tmp_path / "salvaged")
    assert shown_as_it_is(salvaged.output)
