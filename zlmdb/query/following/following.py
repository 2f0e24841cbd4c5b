"""The entry point: `Following` reads functions of records of one type, and keeps what it read by their code."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping, Sequence
from functools import partial
from sys import modules
from typing import Any, Callable, Optional, Union

from ...handlers import let_through
from .arity import takes_key
from .bycode import ByCode
from .captured import CODE, Cells, Step, cells_again, frozen, plain_cells, read_again, read_static
from .code import understood
from .debugged import stops_in
from .folding import Changed, Folding
from .formatted import gives_returned, returned
from .known import Home, Known, kind_of
from .linked import Holds, Link, Referred, answered
from .lookups import with_links
from .mistakenanswers import Text, refuse_always, refuse_method, refuse_texts, texts_of
from .nodeof import is_constant, node_of
from .nodes import Argument, Called, Given, Node, TooLarge, calls, identity, spelled, walk
from .opaque import CapturedProxy
from .session import Session
from .trace import Again, Refused, TooMany, mistake

Function = Callable[..., Any]
Use = Union[bool, str]
"""What a function is asked for: a condition (True), a value (False), or what records are to be sorted or grouped by."""

_KEPT = 256
"""Functions that are kept for a type of records."""

_VARIANTS = 16
"""Results kept for one function: what it captures may decide how it goes."""

_CHECKED = 8
"""Records for which a new result is compared with what the function itself gives."""


class Reading:
    """What following a function gave, for all functions of the same code that captured alike."""

    __slots__ = (
        "calls", "cells", "condition", "debugged", "guards", "kept", "keyed", "links", "node", "steps", "to_check",
        "trusted",
    )  # fmt: skip

    def __init__(
        self, node: Node, *, keyed: bool, condition: bool = True, session: Optional[Session] = None
    ) -> None:  # fmt: skip
        """Without a *session*, *node* was made of a part of another function that was followed and checked."""
        self.node, self.keyed, self.condition = node, keyed, condition
        self.kept: dict[Any, Any] = {}  # what is made of it elsewhere
        self.steps: tuple[Step, ...] = ()
        self.guards: tuple[tuple[Node, bool, Any], ...] = ()
        self.cells: Optional[Cells] = None
        self.debugged, self.to_check = False, 0
        if session is not None:
            self.steps = tuple(session.captured.steps)
            self.guards = tuple([(guard, *expected) for guard, expected in session.guards.items()])
            self.cells = None if self.guards else plain_cells(self.steps)
            self.debugged, self.to_check = session.debugged, _CHECKED
        self.calls = bool(calls(node))
        self.links = any([isinstance(one, (Link, Referred, Holds)) for one in walk(node)])
        """Whether it asks something of records of other tables."""
        self.trusted = True

    @property
    def helpers(self) -> Sequence[types.CodeType]:
        """The code of the functions that it calls, as far as they were followed."""
        return [step.expected for step in self.steps if step.check == CODE]

    @property
    def complete(self) -> bool:
        """Whether the node stands for the function, which need not be called for any record."""
        return self.trusted and not self.calls

    def values(self, function: Function) -> Optional[list[Any]]:
        """What *function* captured, if this is what following it would give."""
        values = read_again(function, self.steps)
        if values is None or not self.guards:
            return values
        given = Given((), values)
        try:
            return values if all([_holds(guard, given) for guard in self.guards]) else None
        except Exception as error:
            let_through(error)
            return None


def _holds(guard: tuple[Node, bool, Any], given: Given) -> bool:
    node, exact, expected = guard
    value = node.evaluate(given)
    if not exact:
        return expected is None or bool(value) is expected
    if is_constant(value) and is_constant(expected):  # 0.0 equals -0.0, whose text is another one
        return bool(identity(value) == identity(expected))
    return type(value) is type(expected) and bool(value == expected)


class Followed:
    """A function of a record, read: an expression with the values that this function captured.

    Calling it gives what the function gives. The first records are given to the function, too; where it gives another
    answer, the function is called from then on.
    """

    __slots__ = ("function", "parameters", "reading")

    def __init__(self, reading: Reading, function: Function, parameters: Sequence[Any]) -> None:
        self.reading, self.parameters = reading, parameters
        self.function = frozen(function) if reading.to_check > 0 or reading.calls else function

    def empty(self) -> Followed:
        """The same without the function and what it captured."""
        return Followed(self.reading, nothing, ())

    @property
    def node(self) -> Node:
        """The expression."""
        reading = self.reading
        return reading.node if reading.trusted else _DISTRUSTED

    @property
    def keyed(self) -> bool:
        """Whether the function takes the key of a record, too."""
        return self.reading.keyed

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the function is called for some records; empty if it never is."""
        return calls(self.node)

    def __call__(self, *arguments: Any) -> Any:
        reading = self.reading
        if not reading.trusted:
            return self._called(arguments)
        if reading.to_check > 0:
            return self._checked(reading, arguments)
        return self.evaluated(*arguments)

    def evaluated(self, *arguments: Any) -> Any:
        """What the expression gives, unchecked."""
        found = self.reading.node.evaluate(Given(arguments, self.parameters, self.function))
        return bool(found) if self.reading.condition else found

    def _called(self, arguments: tuple[Any, ...]) -> Any:
        found = self.function(*arguments)
        return bool(found) if self.reading.condition else found

    def _checked(self, reading: Reading, arguments: tuple[Any, ...]) -> Any:
        """What the function gives; if the expression gives something else, it is not used any more."""
        reading.to_check -= 1
        try:
            answer = self.evaluated(*arguments)
        except Exception as error:
            let_through(error)
            return self._compared_error(reading, arguments, error)
        if isinstance(reading.node, Called):
            return answer
        try:
            found = self._called(arguments)
        except Exception as error:
            let_through(error)
            if self._is_late():
                return answer
            reading.trusted = False
            raise
        if same(answer, found):
            return found
        if self._is_late():
            return answer
        reading.trusted = False
        return found

    def _is_late(self) -> bool:
        """Whether what the function captured has changed since, so that its answer says nothing of the expression's.

        A variable around it is kept in the copy of the function, but a global name or an attribute of an object is not.
        """
        reading = self.reading
        values = read_again(self.function, reading.steps)
        if values is not None and all([same(*pair) for pair in zip(values[1:], self.parameters[1:])]):
            return False
        reading.to_check += 1  # of other records, or by the next query
        return True

    def _compared_error(self, reading: Reading, arguments: tuple[Any, ...], error: Exception) -> Any:
        try:
            found = self._called(arguments)
        except Exception as own:
            let_through(own)
            reading.trusted = type(own) is type(error) or self._is_late()
            raise
        if self._is_late():
            raise error
        reading.trusted = False
        return found

    def __repr__(self) -> str:
        return spelled(self.node)


def nothing(*arguments: Any) -> Any:
    """In the place of a function that is not kept."""


_DISTRUSTED = Called(("the expression found gave another answer than the function",))


def same(one: Any, other: Any) -> bool:
    """Whether two answers are the same. What cannot be compared is."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    try:
        return bool(one == other) or (one != one and other != other) or repr(one) == repr(other)
    except Exception as error:
        let_through(error)
        return True


class Following:
    """Reads functions of records whose values are of the type *value* and whose keys are of the type *key*.

    *names* are those that the annotations of models may use beside the ones of their modules.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Book:
    ...     title: str
    ...     year: int
    >>> following = Following(Book)
    >>> following.condition(lambda b: b.year > 1990 and not b.title.startswith("A"))
    ((b.year > 1990) and (not b.title.startswith('A')))
    """

    def __init__(self, value: Any, key: Any = Any, names: Optional[Mapping[str, Any]] = None) -> None:
        self._home = Home(names)
        self.value_type: Known = self._home.known(value)
        """What is known of the value of a record."""
        self.key_type: Known = self._home.known(key)
        """What is known of the key of a record."""
        self._kept = {use: ByCode(_KEPT) for use in (True, False, "sort by", "group by")}

    def condition(self, function: Function) -> Followed:
        """*function* as a condition: only whether its result is true counts.

        Raises `TypeError` for fields that there are not, comparisons that are never true, and changes of the record.
        """
        return self._followed(function, True)

    def value(self, function: Function) -> Followed:
        """*function* as it is: what it gives is wanted. Raises as `condition` does."""
        return self._followed(function, False)

    def order(self, function: Function) -> Followed:
        """As `value`, of what records are sorted by.

        Raises also for a method that is not called, and for the name of a field, as a text, in the place of the field.
        """
        return self._followed(function, "sort by")

    def group(self, function: Function) -> Followed:
        """As `value`, of what records are grouped by. Raises also for a method that is not called."""
        return self._followed(function, "group by")

    def _followed(self, function: Function, condition: Use) -> Followed:
        code = function.__code__ if type(function) is types.FunctionType else code_of(function)
        if code is None:
            return self._read(function, condition)
        known = self._kept[condition]._kept.get(id(code))  # `ByCode.get`, without the call
        kept: Sequence[Reading] = known[1] if known is not None and known[0]() is code else ()
        if kept and ("bdb" in modules or "pydevd" in modules):
            kept = [one for one in kept if not stops_in(code, *one.helpers)]  # since it was read
        for reading in kept:
            cells = reading.cells
            if cells is None or type(function) is not types.FunctionType:
                values = reading.values(function)
            else:  # what that comes to, without the call
                values = cells_again(function, cells)
            if values is not None:
                return Followed(reading, function, values)
        followed = self._read(function, condition)
        if not followed.reading.debugged:
            self._kept[condition].keep(code, [followed.reading, *kept][:_VARIANTS])
        return followed

    def _read(self, function: Function, condition: Use) -> Followed:
        refuse_asynchronous(function)
        session = Session(self._home, function)
        try:
            node = self._explored(session, function, condition)
        except Refused as refused:
            raise mistake(refused) from None
        except TooMany:
            node = Called(("there are more ways through it than are followed",))
        except TooLarge:
            node = Called(("it computes more than is followed",))
        except Changed:
            node = Called(("it does not do the same each time it is called",))
        finally:
            values = list(session.values)
            session.forget()
        keyed = takes_key(function)
        reading = Reading(node, keyed=keyed, condition=condition is True, session=session)
        return Followed(reading, function, values)

    def _explored(self, session: Session, function: Function, condition: Use) -> Node:
        if not understood():
            return Called(("this version of Python is not known",))
        arguments = self._arguments(session, function)
        texts: list[list[Text]] = []  # of each way

        @gives_returned
        def once() -> Node:
            seen = session.see(0)
            ready = seen.zlmdb_ready() if isinstance(seen, CapturedProxy) else seen  # before anything is recorded
            answer = returned(session, ready(*[session.recorded(argument) for argument in arguments]))
            if condition is not False:
                refuse_method(session, answer, "" if condition is True else condition)
            if condition is True:
                answer = answered(answer)
            if condition == "sort by":
                texts.append(texts_of(session, answer))
            return node_of(session, answer)

        while True:
            try:
                ways = session.explore(once)
                break
            except Again:
                session.restart()
                texts.clear()
        folding = Folding(session.nodes, condition=condition is True, members=session.tests_members)
        if condition is True:
            refuse_always(ways, folding)
        if texts:
            refuse_texts(texts, arguments[-1])
        return with_links(session.nodes, folding.folded(ways))

    def _arguments(self, session: Session, function: Function) -> list[Argument]:
        known = [self.key_type, self.value_type] if takes_key(function) else [self.value_type]
        names = argument_names(function, len(known))
        return [
            session.nodes.make(Argument, position, name, one.required)
            for position, (name, one) in enumerate(zip(names, known))
        ]

    def __len__(self) -> int:
        return sum(map(len, self._kept.values()))


def code_of(function: Function) -> Optional[types.CodeType]:
    """The code by which what is read of *function* is kept; None if it has none."""
    found: Any = function
    while type(found) is partial:
        found = found.func
    if isinstance(found, types.MethodType):
        found = found.__func__
    elif not isinstance(found, types.FunctionType):
        found = read_static(kind_of(found), "__call__")
    code = getattr(found, "__code__", None)
    return code if type(code) is types.CodeType else None


def argument_names(function: Function, count: int) -> Sequence[str]:
    """What *function* calls its arguments."""
    code = getattr(function, "__code__", None)
    if type(code) is types.CodeType and code.co_argcount >= count:
        return code.co_varnames[:count]
    return ("key", "value")[-count:]


def refuse_asynchronous(function: Function) -> None:
    """Raise `TypeError` for a coroutine or generator function: what it gives is always true."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{function!r} is asynchronous: a query needs the answer at once; write it without async")
    if inspect.isgeneratorfunction(function):
        raise TypeError(f"{function!r} has 'yield' in it: a query needs the answer itself; write it with return")
