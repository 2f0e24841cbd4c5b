"""The house rules that a machine can check: layers, what the package never does, docstrings, a light import."""

from __future__ import annotations

import ast
import importlib
import operator
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, Union

import pytest

pytestmark = pytest.mark.once  # the sources are the same for every interpreter

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "zlmdb"
FILES = sorted(PACKAGE.rglob("*.py"))

# A module imports only from rows above its own. "zlmdb" is the package itself, the public API: what comes after it is
# written against it. A package without its modules listed beside it counts as one ("values" holds values/json.py).
# The rows of one package stand together, but for "schema": what is declared is below the classic maps, schemas above.
ROWS = [
    [
        "database",
        "feed",
        "schema",
        "store",
        "cache",
        "tables",
        "tables.compiled",
        "tables.executor",
        "tables.indexkinds",
    ],  # the packages themselves: a sentence each
    ["frozentime", "loops", "namedtuples", "protocols", "shown", "systems", "typeargs"],
    [
        "_version",
        "notifier",
        "codegen",
        "missingattributes",
        "errors",
        "handlers",
        "locks",
        "late",
        "log",
        "numeric",
        "reserved",
    ],
    ["directories", "lockedfiles", "engines.environment", "engines.damaged"],
    ["engines.engine"],
    ["engines"],
    ["engines.lmdb", "engines.memory"],
    ["engines.registry"],
    ["keys"],
    ["values"],
    [
        "store.access",
        "store.blocks",
        "store.deadlocks",
        "store.futures",
        "store.holds",
        "store.lockfile",
        "store.results",
        "store.transactionstats",
        "store.waking",
    ],
    ["store.scans", "store.gate", "store.live", "store.pool", "store.processlock", "store.ranges", "store.readers"],
    ["store.maintenance", "store.writerlock"],
    ["store.environment"],
    ["store.admission", "store.fork", "store.layout"],
    ["store.store"],
    ["store.definitions", "store.slots"],
    ["store.slotrecords"],
    ["store.classiccatalogue", "store.tablescatalogue"],
    ["store.rawcatalogue"],
    ["store.catalogue"],
    ["store.transactionstate"],
    ["store.savepoints", "store.rawrecords", "store.blockgroups"],
    ["store.transactionend"],
    ["store.transaction"],
    ["store.asyncfutures", "store.members", "store.programend"],
    ["store.schemaread", "store.schemawrite", "store.groups"],
    ["store.openstores"],
    ["query"],
    [
        "tables.declares",
        "tables.advice",
        "tables.keyfield",
        "tables.missing",
        "tables.misspelt",
        "tables.modelfields",
    ],
    ["tables.storage"],
    ["tables.compiled.points", "tables.indexstorage", "tables.ranged"],
    ["tables.compiled.boundclass", "tables.compiled.entries", "tables.compiled.oldrecords"],
    ["tables.executor.indexfacts"],
    ["tables.indexkinds.elements", "tables.indexkinds.fieldtexts", "tables.indexkinds.partial"],
    ["tables.executor.accessranges", "tables.indexkinds.carrying"],
    ["tables.scan"],
    ["tables.executor.foundkeys", "tables.executor.keysahead"],
    ["tables.executor.cachedplan", "tables.executor.covered", "tables.executor.keylookups"],
    [
        "tables.executor.accesspaths",
        "tables.executor.cachedorder",
        "tables.executor.cachedpartial",
        "tables.executor.cachedscans",
        "tables.executor.accessreads",
        "tables.keyrange",
    ],
    ["tables.executor.cachedpaths", "tables.executor.firstofeach"],
    ["tables.executor.cachedsorted", "tables.executor.cachedcovered"],
    ["tables.executor.cachedplans"],
    ["tables.executor.counted", "tables.executor.groupedentries"],
    ["tables.executor.different"],
    ["tables.executor.linkednodes", "tables.executor.linkscans"],
    ["tables.executor.nestedreads", "tables.executor.queryfailures"],
    ["tables.executor.pickedlists", "tables.executor.referring", "tables.executor.orderscans"],
    ["tables.executor.firstfew"],
    ["tables.executor.linkedloops"],
    ["tables.executor.execution", "tables.executor.semijoins"],
    ["tables.executor.cachedlinkscans"],
    ["tables.executor.linkedpaths"],
    ["tables.executor.linkedorder"],
    ["tables.executor.explaining"],
    ["tables.selection"],
    ["tables.editing"],
    ["tables.changing", "tables.aggregated"],
    ["tables.grouped"],
    ["tables.compiled.indexed", "tables.indexview", "tables.upkeep"],
    ["tables.compiled.selected"],
    ["tables.followedchanges"],
    ["tables.indexkinds.elementview"],
    ["tables.tablestate"],
    ["tables.recordwrites"],
    [
        "tables.atomic",
        "tables.bulkwrites",
        "tables.index",
        "tables.links",
        "tables.mappingviews",
        "tables.paging",
        "tables.skipping",
    ],
    ["tables.expiry", "tables.foreignkey", "tables.removal"],
    ["tables.tableclass"],
    ["tables.table"],
    ["feed.doorbell", "feed.policy"],
    ["feed.log"],
    ["feed.recorder"],
    ["tables.expiring"],
    ["schema.declaration"],
    ["schema.links"],
    ["schema.advice", "schema.evolution", "schema.runtimetables", "schema.plaindata"],
    ["schema.multivalues"],
    ["schema.multi"],
    ["schema.rawtables", "schema.rewrite"],
    ["schema.verdict"],
    ["schema.changedshape"],
    ["schema.comparison"],
    ["schema.contents", "schema.indexfinder", "schema.droppedparts"],
    ["schema.feeds", "schema.renamedtables", "schema.storages"],
    ["schema.indexbuilding", "schema.undeclared"],
    ["schema.indexbatches", "schema.creation"],
    ["schema.attach"],
    ["classic"],
    ["schema.schema"],
    ["feed.advice"],
    ["feed.change"],
    ["feed.given"],
    ["feed.changes"],
    ["schema.autowrites"],
    ["schema.auto"],
    ["database.advice", "database.asyncrows", "database.state"],
    ["operations.statistics"],
    ["operations"],
    ["database.calls", "database.flushing", "database.settings", "database.tables"],
    ["database.closing"],
    ["database.database"],
    ["database.opening"],
    ["flatbuffers", "lmdb"],
    ["_database", "_errors", "_flatbuffers_vendor", "_pmap", "_schema", "_transaction", "compat"],
    ["names"],
    ["zlmdb"],
    ["testing", "queue"],
    ["cache.advice", "cache.entry", "cache.file", "cache.tables", "worker"],
    ["cache.memoized"],
    ["cache.state"],
    ["cache.use"],
    ["cache.pending"],
    ["cache.cache"],
    ["demo"],
    ["cli"],
    ["__main__"],
]
RANK = {unit: rank for rank, row in enumerate(ROWS) for unit in row}

# Imports that look down or sideways, because they run late (inside a function) or never (under TYPE_CHECKING):
# (importer, imported): why. An entry that nothing needs any more fails, too.
LATE: dict[tuple[str, str], str] = {
    ("schema.verdict", "schema.changedshape"): "most programs have the shapes of their files",
    ("schema.multivalues", "schema.multi"): "annotations: the values are of a table",
    ("typeargs", "frozentime"): "few programs stop the clock",
    ("cache.memoized", "cache.pending"): "annotations: the results are those of a cache",
    ("names", "cache.cache"): "annotations: names that are imported on first use",
    ("names", "queue"): "annotations: names that are imported on first use",
    ("names", "worker"): "annotations: names that are imported on first use",
    ("query", "tables.selection"): "annotations: what is filtered is a selection",
    ("tables.storage", "tables.indexstorage"): "annotations: a table has indexes",
    ("tables.storage", "tables.links"): "annotations: links lead to a table",
    ("tables.storage", "tables.upkeep"): "annotations: a table has followers",
    ("tables.scan", "tables.table"): "annotations: a scan reads a table",
    ("tables.executor.foundkeys", "tables.selection"): "annotations: what is read is in the range of a selection",
    ("tables.executor.foundkeys", "tables.table"): "annotations: entries of a table's index are read",
    ("tables.executor.keylookups", "tables.table"): "annotations: a scan reads a table",
    ("tables.executor.keysahead", "tables.table"): "annotations: a scan reads a table",
    ("tables.executor.execution", "tables.selection"): "annotations: the query of a selection runs",
    ("tables.executor.queryfailures", "tables.selection"): "annotations: the query of a selection runs",
    ("tables.executor.nestedreads", "tables.indexview"): "annotations: what is read through a view",
    ("tables.executor.nestedreads", "tables.table"): "annotations: it reads a table",
    ("tables.executor.accessreads", "tables.selection"): "annotations: what is read is in the range of a selection",
    ("tables.executor.accessreads", "tables.table"): "annotations: it reads a table",
    ("tables.keyrange", "tables.table"): "annotations: it reads a table",
    ("tables.executor.linkedpaths", "tables.table"): "annotations: it reads a table",
    ("tables.executor.linkedpaths", "tables.selection"): "annotations: the query of a selection is known",
    ("tables.executor.pickedlists", "tables.executor.execution"): "annotations: a run of a query",
    ("tables.executor.pickedlists", "tables.table"): "annotations: it reads a table",
    ("tables.executor.orderscans", "tables.executor.execution"): "annotations: a run of a query",
    ("tables.executor.firstfew", "tables.executor.execution"): "annotations: a run of a query",
    ("tables.executor.firstfew", "tables.executor.linkedorder"): "few programs follow links",
    ("tables.executor.linkedloops", "tables.executor.execution"): "annotations: a run of a query",
    ("tables.executor.linkedorder", "tables.selection"): "annotations: the records that are referred to",
    ("tables.executor.orderscans", "tables.table"): "annotations: it reads a table",
    ("tables.executor.cachedscans", "tables.executor.execution"): "annotations: what runs the query",
    ("tables.executor.cachedscans", "tables.selection"): "annotations: the selection that is read",
    ("tables.executor.firstofeach", "tables.executor.execution"): "annotations: a run",
    ("tables.executor.firstofeach", "tables.selection"): "annotations: the query of a selection is known",
    ("tables.executor.cachedplans", "tables.executor.linkedpaths"): "few programs follow links",
    ("tables.executor.cachedplans", "tables.executor.cachedlinkscans"): "few programs follow links",
    ("tables.executor.cachedlinkscans", "tables.selection"): "annotations: the selection that is read",
    ("tables.executor.cachedlinkscans", "tables.table"): "annotations: it reads a table",
    ("tables.executor.cachedorder", "tables.selection"): "annotations: the query of a selection is known",
    ("tables.executor.accesspaths", "tables.executor.execution"): "annotations: a run",
    ("tables.executor.accesspaths", "tables.table"): "annotations: it reads a table",
    ("tables.executor.accesspaths", "tables.selection"): "annotations: what is read is in the range of a selection",
    ("tables.executor.cachedplan", "tables.selection"): "annotations: the query of a selection is known",
    ("tables.executor.cachedpaths", "tables.selection"): "annotations: the query of a selection is known",
    ("tables.executor.cachedpaths", "tables.table"): "annotations: it reads a table",
    ("tables.executor.cachedcovered", "tables.selection"): "annotations: the query of a selection is known",
    ("tables.executor.cachedcovered", "tables.table"): "annotations: entries are of a table",
    ("tables.executor.counted", "tables.selection"): "annotations: the records of a selection are counted",
    ("tables.executor.different", "tables.selection"): "annotations: what is different in a selection",
    ("tables.executor.groupedentries", "tables.selection"): "annotations: what is different in a selection",
    ("tables.executor.counted", "tables.table"): "annotations: entries are of a table",
    ("tables.executor.counted", "tables.executor.execution"): "annotations: it is kept with what the planner knows",
    ("tables.executor.different", "tables.executor.execution"): "annotations: it is kept with what the planner knows",
    ("tables.executor.cachedsorted", "tables.table"): "annotations: it reads a table",
    ("tables.executor.cachedsorted", "tables.selection"): "annotations: the query of a selection is known",
    ("tables.executor.cachedplans", "tables.executor.execution"): "annotations: what is known of indexes, and a run",
    ("tables.executor.cachedplans", "tables.selection"): "annotations: the query of a selection is known",
    ("tables.selection", "tables.changing"): "many programs change no selections",
    ("tables.selection", "tables.grouped"): "many programs group nothing",
    ("tables.selection", "tables.skipping"): "few programs skip records",
    ("tables.selection", "tables.paging"): "many programs have no pages",
    ("tables.changing", "tables.table"): "annotations: it writes to a table",
    ("tables.selection", "tables.editing"): "many programs change no selections",
    ("tables.editing", "tables.changing"): "few programs change many records",
    ("tables.editing", "tables.table"): "annotations: it writes to a table",
    ("tables.changing", "tables.compiled.selected"): "many programs change one record at a time",
    ("tables.changing", "tables.followedchanges"): "few programs change many records",
    ("tables.followedchanges", "tables.table"): "annotations: it writes to a table",
    ("tables.compiled.selected", "tables.bulkwrites"): "few programs change many records",
    ("tables.keyrange", "tables.compiled.selected"): "many programs change one record at a time",
    ("tables.compiled.selected", "tables.table"): "the class whose attributes the generated functions use",
    ("tables.atomic", "tables.table"): "annotations: it writes to a table",
    ("tables.compiled.boundclass", "tables.compiled.indexed"): "many processes write no second record",
    ("tables.grouped", "tables.table"): "annotations: a group is of a table",
    ("tables.advice", "tables.selection"): "tables name its methods, which they lack",
    ("tables.ranged", "tables.selection"): "annotations: what is chosen is a selection",
    ("tables.selection", "tables.table"): "annotations: a selection is made by a table",
    ("tables.index", "tables.table"): "annotations: an index is a descriptor on a table",
    ("tables.indexview", "tables.table"): "annotations: a view reads a table",
    ("tables.bulkwrites", "tables.table"): "annotations: it writes to a table",
    ("tables.table", "feed.policy"): "annotations: a class may declare how long its changes are kept",
    ("feed.changes", "database.database"): "annotations: it reads a database",
    ("schema.auto", "database.database"): "annotations: the tables are of a database",
    ("store.asyncfutures", "store.groups"): "annotations: the functions that wait",
    ("store.members", "store.asyncfutures"): "annotations: what a task waits for",
    ("store.programend", "store.groups"): "annotations: the functions that wait",
    ("store.futures", "store.groups"): "annotations: where the function waits",
    ("store.holds", "store.blockgroups"): "annotations: a turn in a group",
    ("store.live", "store.transaction"): "annotations: what is open",
    ("store.writerlock", "store.blockgroups"): "annotations: a turn in a group",
    ("store.maintenance", "store.admission"): "annotations: few programs wait for others to end",
    ("database.closing", "database.database"): "annotations: it closes a database",
    ("tables.executor.execution", "tables.executor.semijoins"): "few programs follow links",
    ("tables.executor.semijoins", "tables.executor.execution"): "annotations: a semi-join is a part of a run",
    ("tables.executor.cachedorder", "tables.executor.execution"): "annotations: the run for which it is planned",
    ("tables.changing", "tables.removal"): "few tables have links to them",
    ("tables.links", "tables.table"): "annotations: a link is of two tables",
    ("tables.mappingviews", "tables.table"): "annotations: a view reads a table",
    ("tables.foreignkey", "tables.table"): "annotations: a link is a descriptor on a table",
    ("tables.removal", "tables.table"): "annotations: it deletes from tables",
    ("tables.executor.covered", "tables.table"): "annotations: entries are of a table",
    ("tables.indexview", "tables.indexkinds.elementview"): "few programs have an index of elements",
    ("tables.indexkinds.elementview", "tables.table"): "annotations: a selection is of a table",
}


class Import(NamedTuple):
    importer: str
    imported: str
    line: int
    late: bool


def module_name(path: Path) -> str:
    """``values.json`` for zlmdb/values/json.py, ``zlmdb`` for the package's own file."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "zlmdb"


MODULES = {module_name(path) for path in FILES}
TREES = {path: ast.parse(path.read_text(encoding="utf-8"), str(path)) for path in FILES}
NO_DOCSTRING = "has no docstring"


@cache
def nodes(tree: ast.Module) -> list[ast.AST]:
    """All nodes of *tree*: several rules look at each, and to walk takes longer than to look."""
    return list(ast.walk(tree))


def unit(module: str) -> str:
    """The part of the package that has a row: the module, or the package that holds it."""
    while module not in RANK and "." in module:
        module = module.rpartition(".")[0]
    return module


def imported_modules(node: Union[ast.Import, ast.ImportFrom], path: Path) -> Iterator[str]:
    """The modules of ours that one import statement names, as `module_name` spells them."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
        yield from (name.partition(".")[2] or "zlmdb" for name in names if name.split(".")[0] == "zlmdb")
        return
    if node.level:
        package = ("zlmdb", *path.relative_to(PACKAGE).parts[:-1])
        base = ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])])
    else:
        base = node.module or ""
    if base.split(".")[0] != "zlmdb":
        return
    base = base.partition(".")[2]
    for alias in node.names:  # of `from .engines import lmdb` and `from . import keys` the names are modules
        name = f"{base}.{alias.name}" if base else alias.name
        yield name if name in MODULES else base or "zlmdb"


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


@cache
def imports(path: Path) -> list[Import]:
    def walk(node: ast.AST, late: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.Import, ast.ImportFrom)):
                for name in imported_modules(child, path):
                    yield Import(unit(module_name(path)), unit(name), child.lineno, late)
            inside = late or is_type_checking(child) or isinstance(child, (ast.FunctionDef, ast.Lambda))
            yield from walk(child, inside)

    return list(walk(TREES[path], False))


def looks_down(found: Import) -> bool:
    return found.importer != found.imported and RANK[found.imported] >= RANK[found.importer]


def inherits_docstring(module: str, qualified_name: str) -> bool:
    """Whether a method overrides one that has a docstring: the contract is said once, in the base class."""
    owner, _, name = qualified_name.rpartition(".")
    if not owner:
        return False
    cls = operator.attrgetter(owner)(importlib.import_module("zlmdb" if module == "zlmdb" else f"zlmdb.{module}"))
    return any(getattr(vars(base).get(name), "__doc__", None) for base in cls.__mro__[1:])


def docstring_problem(node: ast.AST) -> str:
    """What is wrong with the docstring of *node*, or nothing."""
    text = ast.get_docstring(node)  # type: ignore[arg-type]  # only called on nodes that have one
    if not text:
        return NO_DOCSTRING
    if not re.search(r"\.[)\"'`]?$", text.splitlines()[0].rstrip()):
        return f"begins with {text.splitlines()[0]!r}, which is no sentence with a period"
    if re.search(r"^\s*:(param|parameter|arg|type|return|returns|rtype|raises)\b[^:]*:\s*$", text, re.MULTILINE):
        return "has a field without words"
    return ""


def decorators(node: Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef]) -> set[str]:
    return {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}


def in_files(problems: Callable[[Path], Iterable[object]]) -> list[str]:
    """What is wrong in all files. One test looks at all of them: to begin one for each takes longer than to look."""
    return [f"{module_name(path)}: {problem}" for path in FILES for problem in problems(path)]


def public_definitions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Public classes, functions and methods; overloads and setters are told by the definition beside them."""
    for node in body:
        if isinstance(node, ast.If):
            yield from public_definitions([*node.body, *node.orelse], prefix)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or node.name.startswith("_"):
            continue
        if decorators(node) & {"overload", "setter", "deleter"}:
            continue
        yield prefix + node.name, node
        if isinstance(node, ast.ClassDef):
            yield from public_definitions(node.body, f"{prefix}{node.name}.")


def test_every_module_has_a_row() -> None:
    found = {unit(module) for module in MODULES}
    assert sorted(found - RANK.keys()) == [], "say in ROWS what they may import"


def test_a_module_imports_only_from_rows_above_it() -> None:
    def wrong(path: Path) -> list[Import]:
        if module_name(path) == "zlmdb":
            return []  # the table of contents: it imports everything, and only what is written against it imports it
        return [found for found in imports(path) if looks_down(found) and not found.late]

    assert in_files(wrong) == []


def test_late_imports_that_look_down_are_listed_with_their_reason() -> None:
    found = {(i.importer, i.imported) for path in FILES for i in imports(path) if i.late and looks_down(i)}
    assert found == set(LATE)


def test_the_import_rule_sees_every_spelling() -> None:
    path = PACKAGE / "values" / "base.py"
    seen = [
        list(imported_modules(ast.parse(text).body[0], path))  # type: ignore[arg-type]  # import statements, all of them
        for text in ("import zlmdb.errors", "from zlmdb import errors", "from ..errors import Error", "import json")
    ]
    assert seen == [["errors"], ["errors"], ["errors"], []]
    assert looks_down(Import("keys", "tables.table", 1, False))
    assert looks_down(Import("tables.table", "zlmdb", 1, False))
    assert not looks_down(Import("tables.table", "keys", 1, False))


ENGINES = {"engines.lmdb", "engines.memory"}


def test_only_the_registry_imports_an_engine() -> None:
    """Everything else asks the registry, and the members of an engine for what it can do."""

    def wrong(path: Path) -> list[Import]:
        may = module_name(path) == "engines.registry" or unit(module_name(path)) in ENGINES
        return [] if may else [found for found in imports(path) if found.imported in ENGINES]

    assert in_files(wrong) == []


def test_the_rule_about_engines_knows_all_of_them() -> None:
    found = {unit(module) for module in MODULES if module.startswith("engines.")}
    shared = {"engines.engine", "engines.environment", "engines.registry", "engines.damaged"}
    assert found - shared == ENGINES


def test_no_assert_no_print_no_bare_except() -> None:
    """Asserts vanish under -O; a library does not print (programs of ours print through rich's console)."""

    def wrong(path: Path) -> list[int]:
        return [
            node.lineno
            for node in nodes(TREES[path])
            if isinstance(node, ast.Assert)
            or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"print", "pprint"})
            or (isinstance(node, ast.ExceptHandler) and node.type is None)
        ]

    assert in_files(wrong) == []


def test_a_file_has_at_most_500_lines() -> None:
    """When one scrolls to find things, a file is about two."""
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {module_name(path): count for path, count in lines.items() if count > 500} == {}


def test_one_module_compiles() -> None:
    """Everything else hands its source to codegen, which checks its names and shows it in tracebacks."""

    def wrong(path: Path) -> list[int]:
        return [
            node.lineno
            for node in nodes(TREES[path])
            if (isinstance(node, ast.Name) and node.id in {"compile", "exec", "eval"})
            or (isinstance(node, ast.Attribute) and ast.unparse(node) in {"builtins.compile", "builtins.exec"})
        ]

    assert {problem.partition(":")[0] for problem in in_files(wrong)} == {"codegen"}


def test_public_names_say_in_a_sentence_what_they_are() -> None:
    def wrong(path: Path) -> Iterator[str]:
        tree = TREES[path]
        if problem := docstring_problem(tree):
            yield f"the module {problem}"
        if module_name(path) != "classic.maps":  # one line a class: these write their own docstrings, see below
            for name, node in public_definitions(tree.body):
                problem = docstring_problem(node)
                if problem and not (problem == NO_DOCSTRING and inherits_docstring(module_name(path), name)):
                    yield f"{name} {problem}"

    assert in_files(wrong) == []


def test_the_named_maps_document_themselves() -> None:
    from zlmdb.classic import maps

    found = {name: cls.__doc__ for name, cls in vars(maps).items() if name.startswith("Map")}
    assert len(found) >= 83
    assert not [name for name, text in found.items() if not (text or "").partition("\n")[0].endswith(".")]


def test_the_package_file_is_a_table_of_contents() -> None:
    tree = TREES[PACKAGE / "__init__.py"]
    docstring, *rest = tree.body
    wrong = [
        f"line {node.lineno}: {ast.unparse(node)[:60]}"
        for node in rest
        if not isinstance(node, (ast.Import, ast.ImportFrom))
        and not (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
    ]
    assert isinstance(docstring, ast.Expr)
    assert not wrong
    assert len((PACKAGE / "__init__.py").read_text(encoding="utf-8").splitlines()) <= 80, "several names a line"


def test_open_is_not_a_star_import() -> None:
    import zlmdb

    assert "open" not in zlmdb.__all__
    assert callable(zlmdb.open)


def test_importing_zlmdb_imports_no_library_of_a_format() -> None:
    libraries = ["numpy", "flatbuffers", "cbor2", "msgspec", "cattrs", "msgpack", "snappy", "click", "rich"]
    libraries.append("zlmdb.lmdb")  # though LMDB itself is imported
    program = f"import sys, zlmdb; print(*sorted(set(sys.modules).intersection({libraries!r})))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_every_public_name_is_in_the_api_pages() -> None:
    import zlmdb

    page = "\n".join([one.read_text(encoding="utf-8") for one in sorted((ROOT / "docs" / "api").glob("*.rst"))])
    directive = r"(?:auto(?:class|function|exception|data)|py:data)"
    one_by_one = set(re.findall(rf"^\.\. {directive}:: zlmdb\.(\w+)$", page, re.MULTILINE))
    whole_modules = set(re.findall(r"^\.\. automodule:: ([\w.]+)\n +:members:", page, re.MULTILINE))
    public = {name: getattr(getattr(zlmdb, name), "__module__", None) for name in zlmdb.__all__}
    missing = {name for name, module in public.items() if name not in one_by_one and module not in whole_modules}
    assert not missing - {"__version__", "errors", "keys", "values"}  # the last three are modules, with their own parts


def test_modules_that_name_the_classes_of_datetime_are_loaded_with_the_true_ones() -> None:
    """Under freezegun, all of these are: see `frozentime`. Those of the command line and the demo read no records."""
    from zlmdb import frozentime

    naming = {
        module_name(path).partition(".")[0]
        for path, tree in TREES.items()
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "datetime" and node.level == 0
    }
    assert naming - {"cli", "demo"} <= set(frozentime._SEARCHED)
