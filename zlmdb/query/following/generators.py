"""Generator expressions over something of the record: ``any(t == "x" for t in b.tags)``.

Such a generator holds an iterator that nobody can run through while following. Its code is run instead for one element
that stands for all, in all ways; what these ways give is a condition and a value.
"""

from __future__ import annotations

from types import CellType, CodeType, FunctionType, GeneratorType
from typing import Any, Optional, cast

from .fields import Elements
from .folding import Folding
from .known import SOMETHING, kind_of
from .nodeof import node_of
from .nodes import Constant, Node, Nodes, Variable
from .operations import Conditional, Each
from .trace import Trace, Ways


def each(trace: Trace, value: Any) -> Optional[Each]:
    """The expression of *value*, if it is a generator expression, not yet begun, over something of the record."""
    if type(value) is not GeneratorType:
        return None
    code: CodeType = value.gi_code
    if code.co_name != "<genexpr>" or value.gi_frame is None or value.gi_running:
        return None
    variables: dict[str, Any] = value.gi_frame.f_locals
    elements = variables.get(".0")
    recorder: Any = elements.recorder if type(elements) is Elements else elements
    if getattr(kind_of(recorder), "zlmdb_node", None) is None:
        return None
    cells = tuple([CellType(variables[name]) if name in variables else CellType() for name in code.co_freevars])
    body = FunctionType(code, value.gi_frame.f_globals, code.co_name, None, cells or None)
    value.close()
    return _explored(trace, recorder, body)


def _explored(trace: Trace, recorder: Any, body: Any) -> Each:
    known = recorder.zlmdb_known.element()
    number = trace.depth
    variable = trace.nodes.once((Variable, number, known), lambda: Variable(number, known))
    trace.depth += 1
    try:

        def once() -> Node:
            return node_of(trace, tuple(body(iter((trace.recorded(variable),)))))

        ways = trace.explore(once, inner=True)
    finally:
        trace.depth -= 1
    return _each(trace, recorder.zlmdb_node, variable, ways)


def _each(trace: Trace, iterable: Node, variable: Variable, ways: Ways) -> Each:
    """The expression of *ways*, each of which ends in a tuple of what it gives: nothing or one value."""
    nodes = trace.nodes
    rows = [(taken, _rows(nodes, leaf)) for taken, leaf in ways]
    given: Ways = [(taken, nodes.true if row else nodes.false) for taken, row in rows]
    condition = Folding(nodes, condition=True, members=trace.tests_members).folded(given)
    nothing = nodes.once("nothing", lambda: Constant("nothing", SOMETHING))
    values = Folding(nodes, condition=False, members=trace.tests_members)
    ends: Ways = [(taken, row[0] if row else nothing) for taken, row in rows]
    value = _present(values, values.folded(ends), nothing)
    return nodes.make(Each, iterable, variable, condition, value, SOMETHING)


def _rows(nodes: Nodes, leaf: Node) -> tuple[Node, ...]:
    if isinstance(leaf, Constant):
        return tuple([nodes.constant(one) for one in cast("tuple[Any, ...]", leaf.value)])
    return tuple(leaf.parts())


def _present(folding: Folding, node: Node, nothing: Node) -> Node:
    """*node* where it is something."""
    if not isinstance(node, Conditional):
        return node
    yes, no = _present(folding, node.yes, nothing), _present(folding, node.no, nothing)
    if yes is nothing or no is nothing:
        return no if yes is nothing else yes
    return folding.choice(node.condition, yes, no)
