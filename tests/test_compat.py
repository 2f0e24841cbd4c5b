"""Names that programs of zlmdb <= 26, and packages built on it, import and must find."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import subprocess
import sys
from pathlib import Path

import flatbuffers
import lmdb
import pytest

import zlmdb

pytestmark = pytest.mark.once  # names, which are the same on every interpreter

# What `dir()` of the predecessor has, beside the named maps, its private modules, and what it imported for itself.
NAMES = [
    "Database",
    "NullValueConstraint",
    "PersistentMap",
    "Schema",
    "TABLES_BY_UUID",
    "Transaction",
    "TransactionStats",
    "flatbuffers",
    "lmdb",
    "setup_flatbuffers_import",
    "table",
    "__version__",
    "check_autobahn_flatbuffers_version_in_sync",
]
FLATBUFFERS = ["builder", "compat", "encode", "number_types", "packer", "table", "util"]


def run(program: str) -> str:
    """What *program* prints in a fresh interpreter."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("name", NAMES)
def test_the_predecessors_names_are_here(name: str) -> None:
    assert getattr(zlmdb, name) is not None


def test_lmdb_is_the_lmdb_package() -> None:
    assert run("import lmdb, zlmdb; print(zlmdb.lmdb is lmdb)") == "True"


def test_lmdb_is_the_same_as_a_module_of_zlmdb() -> None:
    import zlmdb.lmdb as by_its_name
    from zlmdb.lmdb import Environment

    assert Environment is lmdb.Environment
    for name in (*lmdb.__all__, "open", "__version__"):
        assert getattr(by_its_name, name) is getattr(lmdb, name)


@pytest.mark.parametrize(
    "statement", ["import zlmdb.lmdb as lmdb", "from zlmdb import lmdb", "import zlmdb; lmdb = zlmdb.lmdb"]
)
def test_lmdb_is_there_in_a_fresh_interpreter(statement: str) -> None:
    assert run(f"{statement}; print(issubclass(lmdb.MapFullError, lmdb.Error), lmdb.version()[0])") == "True 0"


@pytest.mark.parametrize("name", ["zlmdb.flatbuffers", "zlmdb._flatbuffers_vendor"])
def test_flatbuffers_is_the_flatbuffers_package(name: str) -> None:
    module = importlib.import_module(name)
    assert module.Builder is flatbuffers.Builder
    assert module.Table is flatbuffers.Table
    assert module.__version__ == flatbuffers.__version__
    for part in FLATBUFFERS:
        the_module = importlib.import_module(f"flatbuffers.{part}")
        assert getattr(module, part) is the_module
        assert importlib.import_module(f"{name}.{part}") is the_module


def test_the_version_of_flatbuffers_is_told_in_both_of_the_old_ways() -> None:
    version = importlib.import_module("zlmdb.flatbuffers").version()
    assert ".".join(map(str, version[:3])) == flatbuffers.__version__
    assert version[3:] == (None, None)
    assert zlmdb.check_autobahn_flatbuffers_version_in_sync() == flatbuffers.__version__


def test_the_constants_have_the_values_they_had() -> None:
    assert (zlmdb.Transaction.PUT, zlmdb.Transaction.DEL) == (1, 2)
    names = ["EMPTY", "METADATA", "TYPE", "SEQUENCE", "TABLE", "INDEX", "REPLICATION", "MATERIALIZATION"]
    assert [getattr(zlmdb.Schema, f"SLOT_DATA_{name}") for name in names] == list(range(8))


@pytest.mark.parametrize("name", ["zlmdb.flatbuffers", "zlmdb._flatbuffers_vendor"])
def test_the_modules_of_flatbuffers_import_under_our_name(name: str) -> None:
    program = f"""
import {name}
from {name} import Builder, number_types as N
from {name}.table import Table
from {name}.compat import import_numpy
import {name}.number_types, {name}.flexbuffers
builder = Builder(0)
builder.StartObject(1)
builder.PrependUint64Slot(0, 7, 0)
builder.Finish(builder.EndObject())
data = bytes(builder.Output())
table = Table(data, {name}.encode.Get({name}.packer.uoffset, data, 0))
print(table.Get(N.Uint64Flags, table.Offset(4) + table.Pos))
"""
    assert run(program) == "7"


def test_flatbuffers_is_an_attribute_that_is_imported_when_it_is_used() -> None:
    program = """
import sys, zlmdb
before = "flatbuffers" in sys.modules
zlmdb.flatbuffers.Builder, zlmdb._flatbuffers_vendor.Builder
print(before, "flatbuffers" in sys.modules)
"""
    assert run(program) == "False True"


def test_flatbuffers_itself_is_left_alone() -> None:
    program = """
import sys, zlmdb, zlmdb.flatbuffers, zlmdb._flatbuffers_vendor
zlmdb.setup_flatbuffers_import()
import flatbuffers
print(flatbuffers.__name__, sys.modules["flatbuffers"] is flatbuffers, flatbuffers is zlmdb.flatbuffers)
"""
    assert run(program) == "flatbuffers True False"


def test_setting_up_the_import_does_nothing() -> None:
    before = set(sys.modules)
    zlmdb.setup_flatbuffers_import()
    assert set(sys.modules) == before
    assert not inspect.signature(zlmdb.setup_flatbuffers_import).parameters


def test_the_version_satisfies_the_pins_of_downstream_packages() -> None:
    major, minor, patch = (int(part) for part in zlmdb.__version__.split(".")[:3])
    assert (major, minor, patch) >= (25, 12, 2)
    assert major == 27


def test_the_version_is_that_of_the_distribution() -> None:
    try:
        found = importlib.metadata.version("zlmdb")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("zlmdb is not installed, it is imported from its source")
    assert found == zlmdb.__version__


def test_table_is_the_decorator_and_not_the_module() -> None:
    program = """
import zlmdb.tables.table
from zlmdb import table
import zlmdb
print(callable(table), table is zlmdb.table)
"""
    assert run(program) == "True True"


def test_an_unknown_attribute_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        zlmdb.nonsense  # noqa: B018


def test_the_exceptions_are_those_that_old_programs_catch() -> None:
    assert issubclass(zlmdb.NullValueConstraint, RuntimeError)
    assert issubclass(zlmdb.DatabaseInUse, RuntimeError)


def test_the_constructors_take_what_they_took() -> None:
    database = list(inspect.signature(zlmdb.Database).parameters.values())
    expected = ["dbpath", "maxsize", "readonly", "lock", "sync", "create", "open_now", "writemap"]
    expected += ["context", "log", "lib_version"]
    assert [p.name for p in database if p.kind is p.POSITIONAL_OR_KEYWORD] == expected
    assert list(inspect.signature(zlmdb.Database.open).parameters) == expected
    assert list(inspect.signature(zlmdb.Database.begin).parameters) == ["self", "write", "buffers", "stats"]
    assert list(inspect.signature(zlmdb.Database.stats).parameters) == ["self", "include_slots"]
    assert list(inspect.signature(zlmdb.Database.sync).parameters) == ["self", "force"]
    assert len(inspect.signature(zlmdb.Database.attach_table).parameters) == 2
    assert list(inspect.signature(zlmdb.table).parameters) == ["oid", "marshal", "parse", "build", "cast", "compress"]
    assert list(inspect.signature(zlmdb.Transaction.put).parameters) == ["self", "key", "data", "overwrite"]
    assert not inspect.signature(zlmdb.TransactionStats).parameters


def test_everything_public_is_importable_by_a_star() -> None:
    names = run(
        "from zlmdb import *\n"
        "print(Database, MapUuidCbor, table, lmdb, flatbuffers.Builder, PersistentMap, open is __builtins__.open)"
    )
    assert names.endswith("True")


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("_database", ["Database"]),
        ("_errors", ["NullValueConstraint"]),
        ("_pmap", ["PersistentMap", "MapStringJson", "MapUuidCbor", "MapUuidFlatBuffers"]),
        ("_schema", ["Schema"]),
        ("_transaction", ["Transaction", "TransactionStats"]),
    ],
)
def test_the_modules_that_old_programs_import_from_have_the_names(module: str, names: list[str]) -> None:
    found = importlib.import_module(f"zlmdb.{module}")
    for name in names:
        assert getattr(found, name) is getattr(zlmdb, name)


def test_the_format_of_a_new_file_is_told_where_crossbar_looks_for_it(tmp_path: Path) -> None:
    """``crossbar version`` marks the engine that new databases use with it."""
    told = importlib.import_module("zlmdb._database").DEFAULT_LIB_VERSION
    with zlmdb.Database(str(tmp_path / "new")) as db:
        assert db.lib_version == told
