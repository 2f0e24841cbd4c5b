"""Queries are functions of a record. Here such a function is read: followed with recorders until it is an expression.

The law: *A query is an ordinary Python function of a record; compiling and indexes change the time, never the result or
its order.* So whatever comes out means what the function means. What cannot be followed is called, for each record.

- `nodes` and `operations` are the expression that comes out, `known` is what the types of a model tell about it;
- `trace` runs the function until all ways are known, `folding` makes ``and``, ``or``, ``not`` and ``if`` of them;
- `recorder` is what the function is given, `fields`, `compared`, `methods`, `generators` and, for built-in functions,
  `standins` what can be done to it, `formatted` f-strings, `arity` what the function takes, `mistakenanswers` what it
  may not give;
- `session` follows a copy of the function, `captured` are the values that the copy has from outside, and `proxies` what
  it sees of them, with `opaque`, `callables`, `linked` for tables and `nested` for the records that refer; `nodeof`
  makes expressions of all that the copy holds; `pure` lists the functions that it may call, `code` tells what a
  recorder would not notice, `takers` where a value goes, and `debugged` where a debugger stops; `bycode` keeps
  what was found out for code;
- `following` is the door, and keeps what was read.
"""

from .following import Followed, Following
from .nodes import Given, Node, calls, spelled, walk

__all__ = ["Followed", "Following", "Given", "Node", "calls", "spelled", "walk"]
