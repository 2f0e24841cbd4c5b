"""What `import zlmdb` costs: the modules that it brings with it, and the names that come when they are used."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys

import pytest

import zlmdb
from zlmdb import errors

LIBRARIES = [
    "dataclasses", "datetime", "inspect", "logging", "json", "pickle", "decimal", "numbers", "shutil", "zlib",
    "tempfile",
]  # fmt: skip
MOST_MODULES = 109
"""How many modules of zlmdb are imported: each takes as long to find as a hundred lines to load."""
LATE = [
    "classic.maps",
    "classic.pmap",
    "operations.report",
    "operations.statistics",
    "values.json",
    "values.pickle",
    "query.loops",
]
FOR_FEW = ["store.gate", "store.transactionstats", "tables.compiled.indexed", "tables.keyfield", "tables.mappingviews"]


def run(program: str) -> list[str]:
    """The words that *program* prints in a fresh interpreter."""
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.split()


def in_a_fresh_interpreter(program: str) -> list[str]:
    """As `run`, with the path of this interpreter; without ``site``, which imports what it likes."""
    return run(f"import sys; sys.path[:] = {sys.path!r}\n{program}")


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@pytest.mark.skipif(sys.implementation.name == "pypy", reason="what PyPy and py-lmdb import there themselves is long")
def test_importing_zlmdb_imports_none_of_the_long_libraries() -> None:
    program = f"""
before = set(sys.modules)
import zlmdb
print(*(set(sys.modules) - before).intersection({LIBRARIES!r}))
"""
    assert in_a_fresh_interpreter(program) == []


@pytest.mark.twice  # on PyPy, py-lmdb imports distutils, which setuptools may put its own in place of
@pytest.mark.parametrize("whose", ["local", "stdlib"])
def test_zlmdb_is_imported_with_either_distutils(whose: str) -> None:
    environment = {**os.environ, "SETUPTOOLS_USE_DISTUTILS": whose}
    command = [sys.executable, "-c", "import zlmdb; print(zlmdb.lmdb.__name__)"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "lmdb\n"


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_what_few_programs_use_is_imported_when_it_is_used() -> None:
    program = f"""
import zlmdb
late = [f"zlmdb.{{name}}" for name in {LATE!r}]
print(any(name in sys.modules for name in late))
zlmdb.MapUuidCbor, zlmdb.CheckReport, zlmdb.TableInfo, zlmdb.Json
print(all(name in sys.modules for name in late[:-1]))
"""
    assert in_a_fresh_interpreter(program) == ["False", "True"]


def test_importing_zlmdb_imports_few_modules_of_it() -> None:
    program = """
import zlmdb
print(*[name for name in sys.modules if name.partition(".")[0] == "zlmdb"])
"""
    found = in_a_fresh_interpreter(program)
    assert len(found) <= MOST_MODULES
    assert not {f"zlmdb.{name}" for name in FOR_FEW}.intersection(found)


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@pytest.mark.skipif(
    sys.implementation.name == "pypy", reason="its audit hook does not give the sources that this test looks at"
)
def test_importing_zlmdb_compiles_no_annotations_of_fields() -> None:
    """`typing.NamedTuple` does so for each field, which takes longer than the rest of the class."""
    program = """
import lmdb

compiled = []
sys.addaudithook(lambda event, arguments: compiled.append(arguments) if event == "compile" else None)
import zlmdb
print(len([source for source, name in compiled if name == "<string>" and not source.startswith(b"lambda")]))
"""
    (found,) = in_a_fresh_interpreter(program)
    assert int(found) <= 5  # those of type variables, and one in an alias


@pytest.mark.parametrize("package", ["zlmdb", "zlmdb.values"])
def test_every_name_is_there_by_attribute_by_import_and_in_dir(package: str) -> None:
    program = f"""
import importlib
package = importlib.import_module({package!r})
told = set(dir(package))
found = {{}}
exec("from {package} import *", found)
print(*[name for name in package.__all__ if name not in told or found[name] is not getattr(package, name)])
"""
    assert in_a_fresh_interpreter(program) == []


def test_a_name_that_was_used_is_an_attribute_of_the_package() -> None:
    cls = zlmdb.MapUuidCbor
    assert vars(zlmdb)["MapUuidCbor"] is cls


@pytest.mark.parametrize(
    ("name", "advice"),
    [("MapNothing", r": did you mean '\w+'\?"), ("Tabel", r": did you mean 'Table'\?"), ("__wrapped__", "")],
)
def test_another_name_is_an_attribute_error_that_names_the_package(name: str, advice: str) -> None:
    with pytest.raises(AttributeError, match=f"^module 'zlmdb' has no attribute '{name}'{advice}$"):
        getattr(zlmdb, name)


@pytest.mark.skipif(sys.version_info < (3, 15), reason="before Python 3.15 there are no lazy imports")
def test_all_imports_may_be_lazy() -> None:
    """It found the module of flatbuffers by looking for it in itself, without end."""
    program = """
import sys
sys.set_lazy_imports("all")
from zlmdb import *
import zlmdb.flatbuffers
print(zlmdb.flatbuffers.Builder.__module__, zlmdb.flatbuffers.table.__name__)
"""
    assert in_a_fresh_interpreter(program) == ["flatbuffers.builder", "flatbuffers.table"]


def test_a_second_interpreter_of_a_process_is_told_to_be_a_thread_or_a_process() -> None:
    """py-lmdb says there that it has no module cffi."""
    interpreters = pytest.importorskip("_interpreters", reason="before Python 3.13 no such module makes interpreters")
    second = interpreters.create()
    try:
        raised = interpreters.exec(second, f"import sys; sys.path[:] = {sys.path!r}\nimport zlmdb")
    finally:
        interpreters.destroy(second)
    assert raised.type.__name__ == "ImportError"
    assert raised.msg.endswith("where py-lmdb cannot be loaded: use threads or processes")


def test_every_error_is_public() -> None:
    found = {name for name, cls in vars(errors).items() if inspect.isclass(cls) and issubclass(cls, errors.Error)}
    assert found == set(errors.__all__) <= set(zlmdb.__all__)


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_a_message_is_no_error_where_there_is_no_library_any_more() -> None:
    """As in a process that has changed its root directory since it imported zlmdb."""
    program = """
import zlmdb.log
sys.path.clear()
zlmdb.log.log.warning("%s", 1)
print("on")
"""
    assert in_a_fresh_interpreter(program) == ["on"]
