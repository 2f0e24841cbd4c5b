"""What is given of records that refer, for each record: ``t.orders.by_user[k].limit(1).fields(lambda o: o.at).all()``.

A function that is given to `fields`, `where` or `order_by` within another one is followed with recorders of a record of
the other table. What it takes from around itself, such as the outer record, are the *outer* leaves of its expression.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Optional

from .known import Known
from .nodes import Argument, Constant, Given, Node, Parameter, Spell, Variable, replaced, walk
from .operations import Each

_OUTER = 1000
"""The number from which on variables stand for the arguments of the function around."""


class Inner(Node):
    """A function of a record that is given within another one: *value* is an expression of *variables*.

    These are the key and the value of a record, or the value alone. As a *condition* only counts whether it is true.
    """

    __slots__ = ("condition", "made", "outer", "value", "variables")

    def __init__(self, variables: tuple[Variable, ...], value: Node, condition: bool, known: Known) -> None:
        self.variables, self.value, self.condition = variables, value, condition
        self.outer = _outer(value, variables)
        self.made: dict[Any, Any] = {}  # with the node in the keys, since copies of it share this
        super().__init__(known, settled=False)

    def parts(self) -> Sequence[Node]:
        return (self.value,)

    def evaluate(self, given: Given) -> Any:
        return self.value.evaluate(given)

    def capturing(self, numbers: tuple[int, ...]) -> Any:
        """As a function of a record, to which the outer leaves are captured values with these *numbers*."""
        return self._once(numbers, lambda: self._reading([
            Parameter(number, repr(one), one.known, False) for number, one in zip(numbers, self.outer)
        ]))  # fmt: skip

    @property
    def own(self) -> Any:
        """As a function of a record, to which the outer leaves are the variables with the numbers `given`."""
        return self._once("own", lambda: self._reading([
            Variable(self.given(one), one.known) for one in self.outer
        ]))  # fmt: skip

    def given(self, outer: Any) -> int:
        """The number of the variable that stands for an *outer* leaf, in all functions that are as deep as this one."""
        first = _OUTER + 2 * self.variables[0].number
        return first + outer.position if isinstance(outer, Argument) else outer.number

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        found = self.made.get((self, key))
        if found is None:
            found = self.made[self, key] = make()
        return found

    def _reading(self, outer: Sequence[Node]) -> Any:
        from .following import Reading  # late: it imports this

        known: dict[Node, Node] = dict(zip(self.outer, outer))
        for position, one in enumerate(self.variables):
            known[one] = Argument(position, "value" if one is self.variables[-1] else "key", one.known.required)
        return Reading(replaced(self.value, known), keyed=len(self.variables) > 1, condition=self.condition)

    def source(self, spell: Spell) -> str:
        return f"lambda {', '.join([spell(one) for one in self.variables])}: {spell(self.value)}"


class Nested(Node):
    """What *how* gives of the records that *rows* selects: of their *what*, or of a *value* of each.

    *rows* are the records of one key in an index, of which *where* are conditions, and *order* is what they are sorted
    by, *backwards* or not. *limit* is empty, or how many are wanted and skipped. *what* is ``pairs``, ``keys``,
    ``values`` or ``fields``, the last one with a *value*. *how* is a method of `Reads`, or ``truth``.
    """

    __slots__ = ("backwards", "how", "limit", "order", "outer", "rows", "value", "what", "where")

    raises = True

    def __init__(
        self, rows: Node, where: tuple[Inner, ...], order: Optional[Inner], backwards: bool, limit: tuple[Node, ...],
        what: str, value: Optional[Inner], how: str, known: Known,
    ) -> None:  # fmt: skip
        self.rows, self.where, self.order, self.backwards, self.limit = rows, where, order, backwards, limit
        self.what, self.value, self.how = what, value, how
        self.outer = tuple(dict.fromkeys([one for function in self.functions() for one in function.outer]))
        """The outer leaves of all functions."""
        super().__init__(known, settled=False)

    def functions(self) -> Sequence[Inner]:
        """The functions of a record."""
        return (*self.where, *[one for one in (self.order, self.value) if one is not None])

    def parts(self) -> Sequence[Node]:
        return (self.rows, *self.limit, *self.functions())

    def certain(self) -> Sequence[Node]:
        return (self.rows, *self.limit)

    def evaluate(self, given: Given) -> Any:
        outer = [one.evaluate(given) for one in self.outer]
        return self.asked(self.rows.evaluate(given), given.parameters, outer)

    def asked(self, selection: Any, parameters: Sequence[Any], outer: Sequence[Any]) -> Any:
        """What is given of *selection*, as the program itself would ask for it."""
        from .following import Followed, nothing  # late: it imports this

        captured = (*parameters, *outer)
        numbers = {one: number for number, one in enumerate(self.outer, len(parameters))}
        read = {
            one: Followed(one.capturing(tuple([numbers[leaf] for leaf in one.outer])), nothing, captured)
            for one in self.functions()
        }
        if self.where or self.order is not None:
            order = None if self.order is None else read[self.order]
            where = (*selection._query.where, *[read[one] for one in self.where])
            query = selection._query._replace(where=where, order=order, backwards=self.backwards)
            selection = selection._with(query)
        if self.limit:
            selection = selection.limit(*[one.evaluate(Given((), parameters)) for one in self.limit])
        if self.value is not None:
            selection = selection._giving(read[self.value])
        elif self.what != "pairs":
            selection = getattr(selection, self.what)()
        return bool(selection) if self.how == "truth" else getattr(selection, self.how)()

    @property
    def given(self) -> Sequence[int]:
        """The numbers of the variables that stand for the outer leaves."""
        return [self.functions()[0].given(one) for one in self.outer]

    @property
    def from_end(self) -> bool:
        """Whether what is wanted comes first if the entries are read backwards."""
        return self.how == "last" and self.order is None and not self.limit

    @property
    def single(self) -> bool:
        """Whether no more than one row is wanted."""
        return self.how in ("first", "truth") or self.from_end

    def source(self, spell: Spell) -> str:
        text = spell(self.rows) + "".join([f".where({spell(one)})" for one in self.where])
        if self.order is not None:
            text += f".order_by({spell(self.order)}{', reverse=True' if self.backwards else ''})"
        if self.limit:
            count, skip = self.limit
            skipped = isinstance(skip, Constant) and skip.value == 0
            text += f".limit({spell(count)})" if skipped else f".limit({spell(count)}, {spell(skip)})"
        if self.value is not None:
            text += f".fields({spell(self.value)})"
        elif self.what != "pairs":
            text += f".{self.what}()"
        return f"bool({text})" if self.how == "truth" else f"{text}.{self.how}()"


def _outer(value: Node, variables: Sequence[Variable]) -> tuple[Any, ...]:
    """The leaves of *value* that belong to what is around it."""
    inside = list(walk(value))
    own: set[Node] = {*variables}
    for one in inside:
        if isinstance(one, Each):
            own.add(one.variable)
        elif isinstance(one, Inner):
            own.update(one.variables)
    return tuple(dict.fromkeys([one for one in inside if isinstance(one, (Argument, Variable)) and one not in own]))
