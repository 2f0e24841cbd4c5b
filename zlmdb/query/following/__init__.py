"""Queries are functions of a record. Here such a function is read: followed with recorders until it is an expression.

The law: *A query is an ordinary Python function of a record; compiling and indexes change the time, never the result or
its order.* So whatever comes out means what the function means. What cannot be followed is called, for each record.

- `nodes` and `operations` are the expression that comes out, `known` is what the types of a model tell about it;
- `trace` runs the function until all ways are known, `folding` makes ``and``, ``or``, ``not`` and ``if`` of them;
- `recorder` is what the function is given, `fields`, `compared`, `methods`, `own` and `generators` what can be done
  to it, `formatted` f-strings, `arity` and `answers` what the function takes and may give;
- `session` follows a copy of the function, `captured` and `seen` are what the copy sees of the outside, with
  `opaque`, `callables`, `linked` for tables and `nested` for the records that refer; `pure` lists the functions that it
  may call, `code` tells what a recorder would not notice, `taken` where a value goes, and `debugged` where a debugger
  stops;
- `following` is the door, and keeps what was read.
"""

from .following import Followed, Following
from .nodes import Given, Node, calls, spelled, walk

__all__ = ["Followed", "Following", "Given", "Node", "calls", "spelled", "walk"]
