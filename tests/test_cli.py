"""The commands of ``zlmdb``, as a user types them (the demo has a file of its own)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest
from click.testing import CliRunner

import zlmdb
from zlmdb.__main__ import main as program
from zlmdb.cli import main

MODELS = """
from dataclasses import dataclass
from typing import Annotated
from zlmdb.values import U16

@dataclass
class City:
    name: str
    people: Annotated[int, U16] = 0

    @dataclass
    class Mayor:
        name: str

class Bare:
    pass
"""
CITY = "table City {\n  name: string (id: 0, required);\n  people: ushort (id: 1);\n}\n\nroot_type City;\n"


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module in the current directory."""
    name = f"models_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODELS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return name


def run(*arguments: str) -> Any:
    return CliRunner().invoke(main, list(arguments))


def test_fbs_prints_the_schema_of_a_class(models: str) -> None:
    places = list(sys.path)
    done = run("fbs", f"{models}:City")
    assert (done.exit_code, done.output) == (0, CITY)
    assert sys.path == places
    assert "root_type Mayor;" in run("fbs", f"{models}:City.Mayor").output


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_fbs_as_a_program(models: str) -> None:
    command = [sys.executable, "-m", "zlmdb", "fbs", f"{models}:City"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == CITY


@pytest.mark.parametrize(
    ("model", "code", "text"),
    [
        ("City", 2, "write MODULE:CLASS"),
        ("no_such_module_at_all:City", 1, "no_such_module_at_all"),
        ("{models}:Town", 2, "Town"),
        ("{models}:Bare", 1, "use a dataclass"),
    ],
)
def test_fbs_says_what_is_wrong(models: str, model: str, code: int, text: str) -> None:
    done = run("fbs", model.format(models=models))
    assert done.exit_code == code
    assert text in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        ("list", "tables"),
        ("verify", "check"),
        ("vacuum", "compact"),
        ("reindex", "build-indexes"),
        ("count", "select PATH TABLE --count"),
        ("help", "--help"),
    ],
)
def test_a_command_of_other_tools_is_answered_with_ours(given: str, ours: str) -> None:
    done = run(given, "data")
    assert done.exit_code == 2
    assert f"No such command '{given}': write zlmdb {ours}." in done.output


def test_a_path_in_place_of_a_command_says_that_the_command_comes_first(tmp_path: Path) -> None:
    done = run(str(tmp_path))
    assert done.exit_code == 2
    assert f"the command comes before the path: zlmdb info {tmp_path}." in done.output


def test_a_path_without_a_database_is_answered_in_words_of_the_command_line(tmp_path: Path) -> None:
    for command in ("info", "tables", "check", "readers"):
        done = run(command, str(tmp_path / "gone"))
        assert (done.exit_code, done.output.count("no database at")) == (1, 1)
        assert done.output.endswith("check the path\n")


def test_the_list_of_commands_has_whole_sentences() -> None:
    assert "..." not in run("--help").output.replace("[ARGS]...", "")


def test_readers_says_that_there_are_none(tmp_path: Path) -> None:
    zlmdb.open(tmp_path / "data", zlmdb.Schema).close()
    assert run("readers", str(tmp_path / "data")).output == "no other process reads\n"
    assert run("readers", str(tmp_path / "data"), "--json").output == "[]\n"


def test_the_version() -> None:
    assert zlmdb.__version__ in run("--version").output


def test_what_names_no_class_is_answered_with_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_shop").mkdir()
    (tmp_path / "a_program.py").write_text("class Store: pass")
    monkeypatch.chdir(tmp_path)
    for text, said in [
        ("a_shop:Store", "'a_shop' is a directory, and no module: "),
        (
            "a_programm:Store",
            "no module 'a_programm' in the current directory, and none is installed: run the command w",
        ),
        ("a_program:Stor", "module 'a_program' has no attribute 'Stor'; did you mean 'Store'?"),
    ]:
        done = run("upgrade", "data", text)
        assert done.exit_code == 1 + ("no module '" not in said)
        assert said in " ".join(done.output.split())


def test_a_file_that_is_no_stream_is_shown(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("milk\neggs\n")
    done = run("load", str(tmp_path / "notes.txt"), str(tmp_path / "made"))
    assert done.exit_code == 1
    assert "this is no stream of zlmdb: its first line is not that of a dump, but b'milk\\n'" in done.output


def test_an_interrupt_before_the_command_begins_shows_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted:
        def __getattr__(self, name: str) -> Any:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "zlmdb.cli", cast("ModuleType", Interrupted()))
    with pytest.raises(SystemExit) as caught:
        program()
    assert caught.value.code == 130
    assert capsys.readouterr().err == "\nStopped.\n"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of a database, in the current directory, with a table of two records."""

    class Store(zlmdb.Schema):
        users: zlmdb.Table[int, str]

    monkeypatch.chdir(tmp_path)
    with zlmdb.open("data", Store) as db, db.write() as t:
        t.users.update({1: "Ann", 2: "Bob"})
    return "data"


def test_a_table_that_dump_would_take_for_a_file_is_told(shop: str) -> None:
    done = run("dump", shop, "users")
    assert done.exit_code == 2
    assert "write --table users to dump it, ./users for a file of that name" in " ".join(done.output.split())
    assert not Path("users").exists()
    assert run("dump", shop, "./users").exit_code == 0
    assert Path("users").exists()


@pytest.mark.parametrize(
    "arguments",
    [("backup", "data", ""), ("compact", ""), ("dump", "data", ""), ("demo", ""), ("load", "-", ""), ("tables", "")],
)
def test_an_empty_path_is_not_the_current_directory(shop: str, arguments: tuple[str, ...]) -> None:
    """It is what the shell makes of a variable that is not set: a backup was written into the current directory."""
    before = sorted(Path().iterdir())
    done = run(*arguments)
    assert done.exit_code == 2
    assert "the path is empty" in done.output
    assert sorted(Path().iterdir()) == before


def test_two_ways_to_mend_links_are_refused(shop: str) -> None:
    """The last one was taken: who wrote --delete --clear lost no records, and who wrote --clear --delete did."""
    done = run("mend-links", shop, "store:Store", "--clear", "--delete")
    assert done.exit_code == 2
    assert "give one of them" in done.output


@pytest.mark.parametrize(
    ("command", "option", "said"),
    [
        ("select", "--where", "is for Python, t.table.where("),
        ("select", "--sort", "with --reverse in the opposite one; "),
        ("select", "-n", "No such option '-n': write --limit."),
        ("backup", "--force", "No such option '--force': write --overwrite."),
        ("select", "--schema", "records the types of its tables, and commands read it by these: leave the option out."),
        (
            "compact",
            "--schema",
            "records the types of its tables, and commands read it by these: leave the option out.",
        ),
        ("backup", "--where", ""),
        ("compact", "--force", ""),
    ],
)
def test_an_option_of_other_tools_is_answered_with_ours(shop: str, command: str, option: str, said: str) -> None:
    done = run(command, shop, "users", option)
    assert done.exit_code == 2
    assert "No such option" in done.output
    assert said in " ".join(done.output.split())
    assert bool(said) == ("': " in done.output)  # where the command has no such thing, nothing else is said


def test_an_option_before_the_command_is_answered_with_its_place(shop: str) -> None:
    done = run("--json", "tables", shop)
    assert done.exit_code == 2
    assert "before the command: write it at the end, zlmdb COMMAND ... --json." in done.output
    assert "No such option" in run("--jsn", "tables", shop).output
    assert "leave the option out" in " ".join(run("--schema", "shop:Shop", "check", shop).output.split())


def test_a_path_in_the_wrong_place_is_answered_with_its_place(shop: str) -> None:
    for arguments in (["select", "users", shop], ["get", "users", "1", shop]):
        done = run(*arguments)
        assert done.exit_code == 1
        assert f"check the path; the path comes first: zlmdb {arguments[0]} {shop} ..." in done.output
    assert "comes first" not in run("select", "nowhere", "users").output
    done = run("dump", "out.jsonl", shop)
    assert done.exit_code == 2
    assert "is a directory: write zlmdb dump PATH FILE, the database and then" in " ".join(done.output.split())


@pytest.mark.parametrize("text", ["a_store.py:Store", "./a_store.py:Store", "a_store.Store"])
def test_a_module_that_is_written_as_a_file_is_answered_with_its_name(shop: str, text: str) -> None:
    done = run("upgrade", shop, text)
    assert done.exit_code == 2
    assert f"{text} names no class: write a_store:Store\n" in done.output


@pytest.mark.parametrize("text", ["/somewhere/a_store.py:Store", "a_store", "a_store.py", ":Store", ""])
def test_what_may_be_no_module_is_answered_with_an_example(shop: str, text: str) -> None:
    assert f"{text} names no class: write MODULE:SCHEMA, such as shop" in run("upgrade", shop, text).output


@pytest.mark.parametrize("command", [("put", "users", "1", "x"), ("compact",), ("drop-index", "users", "by_name")])
def test_no_command_makes_a_database_in_an_empty_file(shop: str, command: tuple[str, ...]) -> None:
    Path("empty").touch()
    done = run(command[0], "empty", *command[1:])
    assert (done.exit_code, Path("empty").stat().st_size) == (1, 0)
    assert "is empty: check the path" in done.output


def test_what_a_terminal_has_no_characters_for_is_escaped(shop: str) -> None:
    """As on Windows, where the output of a command that is piped has a code page."""
    assert run("put", shop, "users", "3", "Zo\xeb \U0001f389").exit_code == 0
    done = CliRunner(charset="latin-1").invoke(main, ["select", shop, "users", "--from", "3"])
    assert (done.exit_code, done.stdout) == (0, '{"key": 3, "value": "Zo\\u00eb \\ud83c\\udf89"}\n')
    assert json.loads(done.stdout)["value"] == "Zo\xeb \U0001f389"
    assert run("get", shop, "users", "3").stdout == '"Zo\xeb \U0001f389"\n'


def test_nobody_is_told_to_remove_a_directory_with_files_of_others(shop: str) -> None:
    Path("users.jsonl").write_text(run("dump", shop).stdout)
    done = run("load", "users.jsonl", ".")
    assert done.exit_code == 1
    assert done.output.endswith("is a directory with other files in it: choose another path\n")
    assert run("load", "users.jsonl", shop).output.endswith("exists: remove it, or choose another path\n")


def test_a_directory_as_the_stream_of_load_is_told_the_order(tmp_path: Path) -> None:
    done = run("load", str(tmp_path), str(tmp_path / "stream.jsonl"))
    assert done.exit_code == 2
    assert "is a directory: write zlmdb load FILE PATH" in done.output
