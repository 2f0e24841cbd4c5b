"""The seam below the engines: nothing above it finds out which engine it has.

What is an engine, or a part of one (an environment, a transaction, a cursor), is followed by names, annotations and
assignments. With such an object, code above the engines may use the members of its Protocol, pass it on, and compare it
with None. Whatever else is done with it is refused, so nobody has to think here of every way to ask.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Optional, Union

import pytest

from zlmdb.engines import Cursor, Engine, EngineClass, Environment, Options, Transaction

from .test_rules import ENGINES, FILES, TREES, module_name, nodes, unit

pytestmark = pytest.mark.once  # the sources are the same for every interpreter

SHARED = {"engines", "engines.engine", "engines.environment", "engines.registry", "engines.damaged"}
ABOVE = [path for path in FILES if unit(module_name(path)) not in ENGINES | SHARED]

PROTOCOLS = (Cursor, Engine, EngineClass, Environment, Options, Transaction)
MEMBERS = {
    kind.__name__: {one for one in (*vars(kind), *getattr(kind, "__annotations__", ())) if not one.startswith("__")}
    for kind in PROTOCOLS
}
MEMBERS["Transaction"] |= {"abandon", "raw"}  # where `Engine.abandons` says so; and of `expiring.Living`

# Above the engines, what is called so is one, wherever it comes from.
CALLED = {
    "engine": "Engine", "_engine": "Engine", "env": "Environment", "_env": "Environment", "environment": "Environment",
    "_raw": "Transaction", "_engine_txn": "Transaction", "_outermost": "Transaction",
}  # fmt: skip
RETURNED = {"engine": "Engine", "engine_class": "EngineClass"}
METHODS = {
    ("Engine", "open"): "Environment", ("Environment", "begin"): "Transaction", ("Transaction", "cursor"): "Cursor",
    ("EngineClass", "__call__"): "Engine",
}  # fmt: skip

TYPE_TESTS = {"isinstance", "is_a"}
ASKS = {*dir(builtins), *TYPE_TESTS, "kind_of", "derives", "getmro", "getmembers", "getattr_static", "partial"}
LIBRARIES = {"builtins", "functools", "inspect", "operator", "typing", "types"}
OWN_CLASSES = {node.name for path in ABOVE for node in nodes(TREES[path]) if isinstance(node, ast.ClassDef)}
OWN_CLASSES.remove("Transaction")  # an engine has one, too

PASSED_ON = (
    ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.Return, ast.Yield, ast.Tuple, ast.List, ast.Dict, ast.IfExp, ast.Expr,
    ast.withitem, ast.Lambda, ast.Delete, ast.arguments, ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.Starred,
    ast.With,
)  # fmt: skip

Scope = dict[str, str]


def last_name(node: Optional[ast.AST]) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


class Seam:
    """What a module above the engines does with an engine, or a part of one.

    *given*: the kinds of arguments that some module passes, by the name of the function and the position or the name.
    """

    def __init__(self, tree: ast.Module, given: Mapping[tuple[str, Union[int, str]], str]) -> None:
        self.problems: list[str] = []
        self.given = given
        self.passed: dict[tuple[str, Union[int, str]], str] = {}
        self.protocols = {
            alias.asname or alias.name: alias.name
            for node in nodes(tree)
            if isinstance(node, ast.ImportFrom) and "engines" in f"{node.module}".split(".")
            for alias in node.names
            if alias.name in MEMBERS
        }
        self.attributes = dict(CALLED)
        self.returned = dict(RETURNED)
        self.parents = {child: node for node in nodes(tree) for child in ast.iter_child_nodes(node)}
        for node in nodes(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (kind := self.annotated(node.returns)):
                self.returned[node.name] = kind
        known: dict[str, str] = {}
        while self.attributes != known:  # they may get their values after they are used
            known = dict(self.attributes)
            self.problems.clear()
            self.visit(tree, {})

    def annotated(self, node: Optional[ast.AST]) -> Optional[str]:
        """The Protocol that an annotation names, or None."""
        spelled = "" if node is None else ast.unparse(node).strip("'\"")
        found = re.fullmatch(r"(?:Optional\[)?(\w+)(?:\]| \| None)?", spelled)
        return self.protocols.get(found[1]) if found else None

    def kind(self, node: Optional[ast.AST], scope: Scope) -> Optional[str]:
        """The Protocol of the object that *node* gives, or None."""
        if isinstance(node, ast.Name):
            return scope.get(node.id) or CALLED.get(node.id)
        if isinstance(node, ast.Attribute):
            if node.attr == "options" and self.kind(node.value, scope) == "Engine":
                return "Options"
            return self.attributes.get(node.attr)
        if isinstance(node, ast.NamedExpr):
            return self.kind(node.value, scope)
        if isinstance(node, (ast.IfExp, ast.BoolOp)):
            parts = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
            return next((kind for part in parts if (kind := self.kind(part, scope))), None)
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            if name == "cast":
                return self.kind(node.args[-1], scope)
            holder = self.kind(node.func.value, scope) if isinstance(node.func, ast.Attribute) else None
            if (called := self.kind(node.func, scope)) == "EngineClass":
                return METHODS[called, "__call__"]
            return METHODS.get((holder or "", name)) or self.returned.get(name)
        return None

    def assign(self, target: ast.AST, value: Optional[ast.AST], scope: Scope) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, other in zip(target.elts, value.elts):
                self.assign(one, other, scope)
        elif (kind := self.kind(value, scope)) is not None:
            if isinstance(target, ast.Name):
                scope[target.id] = kind
            elif isinstance(target, ast.Attribute):
                self.attributes.setdefault(target.attr, kind)

    def visit(self, node: ast.AST, scope: Scope) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            scope = dict(scope)
            positional = [*node.args.posonlyargs, *node.args.args]
            skip = bool(positional) and positional[0].arg in ("self", "cls")
            for at, argument in enumerate([*positional, *node.args.kwonlyargs], -skip):
                scope.pop(argument.arg, None)
                kind = self.annotated(argument.annotation)
                if kind is None and not isinstance(node, ast.Lambda) and takes_anything(argument):
                    kind = self.given.get((node.name, at)) or self.given.get((node.name, argument.arg))
                if kind is not None:
                    scope[argument.arg] = kind
        elif isinstance(node, ast.AnnAssign) and (kind := self.annotated(node.annotation)):
            scope[last_name(node.target)] = kind
            if isinstance(node.target, ast.Attribute) or isinstance(self.parents[node], ast.ClassDef):
                self.attributes[last_name(node.target)] = kind
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self.assign(target, node.value, scope)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
            self.assign(node.target, node.value, scope)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            for one in node.iter.elts if isinstance(node.iter, (ast.Tuple, ast.List)) else []:
                self.assign(node.target, one, scope)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self.assign(node.optional_vars, node.context_expr, scope)
        if isinstance(node, ast.expr) and (kind := self.kind(node, scope)):
            problem = self.problem(node, kind, scope)
            if problem:
                self.problems.append(f"line {node.lineno}: {ast.unparse(self.parents[node])[:70]!r} {problem}")
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
            for part in node.generators:
                self.visit(part, scope)
        for child in ast.iter_child_nodes(node):
            self.visit(child, scope)

    def problem(self, node: ast.expr, kind: str, scope: Scope) -> str:
        """What is wrong with the use of *node*, which gives a *kind*; or nothing."""
        parent = self.parents[node]
        if isinstance(parent, ast.Attribute):
            return "" if parent.attr in MEMBERS[kind] else f"uses {parent.attr}, which is no member of {kind}"
        where: Union[int, str] = ""
        listed: ast.AST = node
        while isinstance(self.parents[listed], (ast.Tuple, ast.List, ast.Starred)):
            listed = self.parents[listed]
        if isinstance(listed, ast.expr) and isinstance(self.parents[listed], ast.Call):
            node, parent = listed, self.parents[listed]
        if isinstance(parent, ast.keyword):
            where = parent.arg or ""
            node, parent = parent, self.parents[parent]  # type: ignore[assignment]  # what is passed by a name
        if isinstance(parent, ast.Call):
            if parent.func is node:
                of_registry = isinstance(node, ast.Attribute) and last_name(node.value) == "registry"
                return "" if kind == "EngineClass" or of_registry else f"calls a {kind}"
            name = last_name(parent.func)
            self.passed[name, where or parent.args.index(node)] = kind
            if isinstance(parent.func, ast.Attribute):
                return f"lets {name} look at a {kind}" if last_name(parent.func.value) in LIBRARIES else ""
            if name in ("map", "partial") and not any(last_name(one) in ASKS for one in parent.args):
                return ""
            if name in TYPE_TESTS and all(one in OWN_CLASSES for one in map(last_name, classes(parent.args[1]))):
                return ""
            called = [parent.func.body, parent.func.orelse] if isinstance(parent.func, ast.IfExp) else [parent.func]
            asking = any(last_name(one) in ASKS or not last_name(one) for one in called)
            return f"lets {name or 'what a call gave'} look at a {kind}" if asking else ""
        if isinstance(parent, ast.Compare):
            others = [one for one in (parent.left, *parent.comparators) if one is not node]
            identity = all(isinstance(one, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for one in parent.ops)
            none = all(ast.unparse(one) == "None" for one in others)
            return "" if identity and (none or kind not in ("Engine", "EngineClass")) else f"compares a {kind}"
        if isinstance(parent, ast.IfExp) and parent.test is node:
            return f"asks for the truth of a {kind}"
        return "" if isinstance(parent, PASSED_ON) else f"does something with a {kind}"


def takes_anything(argument: ast.arg) -> bool:
    """Whether a parameter may be given an engine, as far as its annotation says."""
    return argument.annotation is None or ast.unparse(argument.annotation) in ("Any", "object", "Optional[Any]")


def classes(node: ast.AST) -> list[ast.AST]:
    return list(node.elts) if isinstance(node, ast.Tuple) else [node]


def asks(tree: ast.Module) -> list[str]:
    given = {name for name, _ in passed()}
    alone = seen_alone(tree)
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    untouched = given.isdisjoint(node.name for node in nodes(tree) if isinstance(node, functions))
    return (alone if untouched else Seam(tree, passed())).problems


@cache
def seen_alone(tree: ast.Module) -> Seam:
    """As if nobody passed anything to its functions."""
    return Seam(tree, {})


@cache
def passed() -> Mapping[tuple[str, Union[int, str]], str]:
    """What all modules pass to functions that take anything, and whose names tell which functions they are."""
    defined = Counter(node.name for path in ABOVE for node in nodes(TREES[path]) if isinstance(node, ast.FunctionDef))
    found: dict[tuple[str, Union[int, str]], str] = {}
    for path in ABOVE:
        found.update(seen_alone(TREES[path]).passed)
    return {(name, where): kind for (name, where), kind in found.items() if defined[name] == 1}


def test_only_the_members_of_the_protocols_are_used_of_an_engine() -> None:
    found = {module_name(path): asks(TREES[path]) for path in ABOVE}
    # The engines of `testing` wrap others, and so belong to the engines.
    assert {name: asked for name, asked in found.items() if asked and unit(name) != "testing"} == {}


# -- what is told by names and texts -----------------------------------------------------------------------------------

NAMES_OF_ENGINES = re.compile(r"\b(Lmdb|Memory)(Engine|Environment|Transaction|Options)\b|\bengines\.(lmdb|memory)\b")


def named_engines(tree: ast.Module) -> Iterator[str]:
    """The places where code names an engine, or py-lmdb, which is one; texts for people may."""
    for node in nodes(tree):
        found = ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found = node.value if NAMES_OF_ENGINES.search(node.value) else ""
        elif isinstance(node, ast.Attribute):
            spelled = f"{last_name(node.value)}.{node.attr}"
            found = spelled if NAMES_OF_ENGINES.search(spelled) or node.attr == "_ENGINES" else ""
        elif isinstance(node, ast.Name):
            found = node.id if NAMES_OF_ENGINES.search(node.id) else ""
        elif isinstance(node, ast.Import):
            names = [one.name for one in node.names]
            found = next((one for one in names if NAMES_OF_ENGINES.search(one) or one.split(".")[0] == "lmdb"), "")
        elif isinstance(node, ast.ImportFrom):
            named = [f"{node.module}", *(f"{node.module}.{one.name}" for one in node.names)]
            found = next((one for one in named if NAMES_OF_ENGINES.search(one)), "")
            if not node.level and named[0].split(".")[0] == "lmdb":
                found = named[0]
        if found:
            yield f"line {getattr(node, 'lineno', 0)}: {found!r}"


def test_no_module_above_the_engines_names_one() -> None:
    found = {module_name(path): list(named_engines(TREES[path])) for path in ABOVE}
    # Programs of zlmdb 26 import names from these two.
    assert {name: named for name, named in found.items() if named and name not in {"lmdb", "compat"}} == {}


# -- ways to ask -------------------------------------------------------------------------------------------------------

QUESTIONS = """
type(store.engine).__name__
store.engine.__class__
store.engine.__module__
self._store.engine.__dict__
isinstance(store.engine, Whatever)
issubclass(type(engine), Whatever)
hasattr(store.engine, "grow")
getattr(store.engine, "is_local", False)
vars(engine)
dir(engine)
repr(engine)
str(store.engine)
f"{store.engine}"
"%s" % engine
engine == wanted
engine is wanted
engine in (wanted,)
bool(engine)
not engine
engine and engine.nests
engine.nests if engine else False
engine[0]
engine()
engine.dbs
store.engine.options.writemap
type(store.engine.options)
store.environment.dbs(txn)
getattr(env, "dbs", None)
type(store.environment.begin())
store.environment.begin().spaces
self._raw.__class__
isinstance(txn._engine_txn, Whatever)
type(txn._engine_txn.cursor())
registry.engine(path).kind
registry.engine_class(path).__name__
registry.engine_class(path) is wanted
operator.attrgetter("kind")(engine)
inspect.getmodule(engine)
builtins.type(engine)
list(map(type, [engine]))
partial(type, engine)()
[one.__class__ for one in (engine,)]
(lambda: type(engine))()
cast(Any, engine).kind
(type if shown else id)(engine)
"""
STATEMENTS = [
    "one = store.engine\ntype(one)",
    "one, two = store.engine, 1\none.kind",
    "if (one := store.engine) is not None:\n    type(one)",
    "for one in (store.engine,):\n    type(one)",
    "with registry.engine(path).open() as one:\n    one.dbs(1)",
    "self._one = store.engine\ntype(self._one)",
    "def told(one):\n    return type(one)\n\ntold(store.engine)",
    "def told(*, one: Any):\n    return type(one)\n\ntold(one=store.engine)",
    "def given() -> Engine:\n    return store.engine\n\ngiven().kind",
    "def f(one: Engine):\n    one.kind",
    "def f(one: Optional[Engine]):\n    type(one)",
    "async def f(one: 'Engine'):\n    type(one)",
    "class A:\n    _one: Engine\n    def f(self):\n        return type(self._one)",
    "def f():\n    one = store.engine\n    def g():\n        return type(one)\n    return g",
]


@pytest.mark.parametrize("question", [*QUESTIONS.split("\n")[1:-1], *STATEMENTS])
def test_the_rule_sees_every_way_to_ask(question: str) -> None:
    tree = ast.parse(f"from ..engines import Engine\n{question}")
    assert Seam(tree, Seam(tree, {}).passed).problems


@pytest.mark.parametrize(
    "statement",
    [
        "import lmdb",
        "import lmdb.cpython as engine",
        "from lmdb import Error",
        "from ..engines import lmdb",
        "from ..engines.memory.engine import Any",
        "import zlmdb.engines.memory",
        "import_module('zlmdb.engines.lmdb.engine')",
        "sys.modules['zlmdb.engines.memory']",
        "name == 'LmdbEngine'",
        "name.endswith(f'{kind}.MemoryEngine')",
        "engines.lmdb.Environment",
        "LmdbEngine.files",
        "registry._ENGINES[None]",
    ],
)
def test_the_rule_sees_every_way_to_name_an_engine(statement: str) -> None:
    assert list(named_engines(ast.parse(statement)))


def test_what_modules_do_with_an_engine_is_no_question() -> None:
    tree = ast.parse(
        "from ..engines import Engine, Transaction\n"
        "def f(engine: Engine, txn: Transaction, made=None):\n"
        "    if store.engine is not None and engine.nests and engine.options.readonly:\n"
        "        self._engine, env = engine, engine.open()\n"
        "        made.append(engine), held.extend([env.begin(write=True)]), g(engine, one=env)\n"
        "    return engine if txn.get(b'') else store.engine\n"
    )
    assert not asks(tree)
