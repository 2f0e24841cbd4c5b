"""What is given of records that refer, for each record: ``t.orders.by_user[k].limit(1).fields(lambda o: o.at).all()``.

A function that is given to `fields` within another one is followed with recorders of a record of the other table. What
it takes from around itself, such as the outer record, are the *outer* leaves of its expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from .known import Known
from .nodes import Argument, Constant, Given, Node, Parameter, Spell, Variable, replaced, walk
from .operations import Each

_OUTER = 1000
"""The number from which on variables stand for the arguments of the function around."""


class Nested(Node):
    """What *how* gives of the records that *rows* selects: of their *what*, or of a *value* of each.

    *rows* are the records of one key in an index, *limit* is empty, or how many are wanted and skipped. *what* is
    ``pairs``, ``keys``, ``values`` or ``fields``; with the last of these, *value* is an expression of *variables*, the
    key and the value of a record, or the value alone. *how* is a method of `Reads`, or ``truth``.
    """

    __slots__ = ("how", "limit", "made", "outer", "rows", "value", "variables", "what")

    raises = True

    def __init__(
        self, rows: Node, limit: tuple[Node, ...], what: str, variables: tuple[Variable, ...], value: Optional[Node],
        how: str, known: Known,
    ) -> None:  # fmt: skip
        self.rows, self.limit, self.what, self.how = rows, limit, what, how
        self.variables, self.value = variables, value
        self.outer = () if value is None else _outer(value, variables)
        self.made: dict[Any, Any] = {}  # with the node in the keys, since copies of it share this
        super().__init__(known, settled=False)

    def parts(self) -> Sequence[Node]:
        return (self.rows, *self.limit) if self.value is None else (self.rows, *self.limit, self.value)

    def certain(self) -> Sequence[Node]:
        return (self.rows, *self.limit)

    def evaluate(self, given: Given) -> Any:
        outer = [one.evaluate(given) for one in self.outer]
        return self.asked(self.rows.evaluate(given), given.parameters, outer)

    def asked(self, selection: Any, parameters: Sequence[Any], outer: Sequence[Any]) -> Any:
        """What is given of *selection*, as the program itself would ask for it."""
        if self.limit:
            selection = selection.limit(*[one.evaluate(Given((), parameters)) for one in self.limit])
        if self.value is not None:
            from .following import Followed, nothing  # late: it imports this

            reading = self._made(len(parameters), lambda: self._with_parameters(len(parameters)))
            selection = selection._giving(Followed(reading, nothing, (*parameters, *outer)))
        elif self.what != "pairs":
            selection = getattr(selection, self.what)()
        return bool(selection) if self.how == "truth" else getattr(selection, self.how)()

    def _made(self, key: Any, make: Any) -> Any:
        found = self.made.get((self, key))
        if found is None:
            found = self.made[self, key] = make()
        return found

    def _with_parameters(self, count: int) -> Any:
        """The function of a record, to which the outer leaves are captured values from number *count* on."""
        return self._reading([
            Parameter(count + number, repr(one), one.known, False) for number, one in enumerate(self.outer)
        ])  # fmt: skip

    @property
    def own(self) -> Any:
        """As a function of a record, to which the outer leaves are the variables with the numbers `given`."""
        return self._made("own", lambda: self._reading([
            Variable(number, one.known) for number, one in zip(self.given, self.outer)
        ]))  # fmt: skip

    @property
    def given(self) -> Sequence[int]:
        """The numbers of the variables that stand for the outer leaves."""
        first = _OUTER + 2 * self.variables[-1].number if self.variables else 0
        return [first + one.position if isinstance(one, Argument) else one.number for one in self.outer]

    def _reading(self, outer: Sequence[Node]) -> Any:
        from .following import Reading  # late, as above

        known: dict[Node, Node] = dict(zip(self.outer, outer))
        for position, one in enumerate(self.variables):
            known[one] = Argument(position, "value" if one is self.variables[-1] else "key", one.known.required)
        value: Any = self.value
        return Reading.of(replaced(value, known), keyed=len(self.variables) > 1, condition=False)

    def source(self, spell: Spell) -> str:
        text = spell(self.rows)
        if self.limit:
            count, skip = self.limit
            skipped = isinstance(skip, Constant) and skip.value == 0
            text += f".limit({spell(count)})" if skipped else f".limit({spell(count)}, {spell(skip)})"
        if self.value is not None:
            text += f".fields(lambda {', '.join([spell(one) for one in self.variables])}: {spell(self.value)})"
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
        elif isinstance(one, Nested):
            own.update(one.variables)
    return tuple(dict.fromkeys([one for one in inside if isinstance(one, (Argument, Variable)) and one not in own]))
