"""Running a function again and again, until all ways through it are known.

Where the function asks whether something of the record is true, the run picks an answer and notes it; the next run
picks the other one. A question that captured values alone decide is answered for good, and the answer becomes a
condition for using the result again.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any, Callable, NoReturn, Optional

from ...handlers import let_through, of_program
from .known import Home
from .nodes import Called, Constant, Given, Node, Nodes
from .operations import Compare, IsNone

LIMIT = 64
"""Ways through one function. With more of them it is called."""

EVALUATES: tuple[bool, Any] = (False, None)
"""Of a settled expression: that it raises nothing."""

Taken = list[tuple[Node, bool]]
Ways = list[tuple[Taken, Node]]


class Blocked(BaseException):
    """This way cannot be followed. No Exception, so that nothing takes it for an error of the function."""


class Refused(BaseException):
    """The function contains a mistake."""


class Again(BaseException):
    """Something was found out that ways already followed should have known."""


class TooMany(BaseException):
    """There are more ways than are worth following."""


class Run:
    """One way through a function: *answers* says how it begins."""

    __slots__ = ("answered", "answers", "around", "put_off", "raising", "taken", "unclear")

    def __init__(self, answers: list[bool], around: Optional[Run]) -> None:
        self.answers, self.around = answers, around
        self.taken: Taken = []
        self.answered: dict[Node, bool] = {}
        self.raising: list[Node] = []
        self.put_off: list[Node] = []  # see `formatted.answered`
        self.unclear = False

    def doubt(self) -> None:
        """Note that a mistake on this way may be none: perhaps no record goes it."""
        run: Optional[Run] = self
        while run is not None:
            run.unclear = True
            run = run.around

    def answer(self, node: Node) -> bool:
        """Whether *node* is true on this way."""
        known = self._known(node)
        if known is not None:
            return known
        number = len(self.taken)
        if number >= LIMIT:
            raise TooMany
        answer = self.answers[number] if number < len(self.answers) else True
        self.taken.append((node, answer))
        self.answered[node] = answer
        return answer

    def _known(self, node: Node) -> Optional[bool]:
        run: Optional[Run] = self
        while run is not None:
            found = run.answered.get(node)
            if found is not None:
                return found
            run = run.around
        return None

    def met_none(self) -> bool:
        """Whether something of the record is None on this way."""
        run: Optional[Run] = self
        while run is not None:
            if any(answer and isinstance(node, IsNone) for node, answer in run.taken):
                return True
            run = run.around
        return False

    def evaluated(self, leaf: Node) -> set[Node]:
        """All that is sure to be evaluated on this way, of which *leaf* is the end."""
        found: set[Node] = set()
        waiting = [leaf, *[node for node, _ in self.taken]]
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting.extend(node.certain())
        return found


class Trace:
    """Following one function: the nodes made, the captured values met, and the way that is run just now.

    `Session` is the one that there is: it knows what is seen of captured values.
    """

    def __init__(self, home: Home) -> None:
        self.home = home
        self.nodes = Nodes()
        self.values: list[Any] = []
        self.guards: dict[Node, tuple[bool, Any]] = {}
        self.recorders: dict[Node, Any] = {}
        self.memory: dict[Any, Node] = {}
        self.texts: dict[str, tuple[Node, FrameType, int]] = {}  # marks that nothing has taken yet: see `formatted`
        self.texts_as_they_are = False
        self.beside_none: set[tuple[FrameType, int]] = set()  # where a text is compared with None: see `formatted`
        self.run: Optional[Run] = None
        self.tests_none = False
        self.tests_members = False
        self.depth = 0

    @abstractmethod
    def recorded(self, node: Node) -> Any:
        """What the function sees of *node*."""

    def restart(self) -> None:
        """Forget what the function was shown so far."""
        self.recorders.clear()
        self.memory.clear()
        self.texts.clear()
        self.beside_none.clear()

    @abstractmethod
    def member(self, recorder: Any, cls: type[Any], name: str, member: Any) -> Any:
        """What *recorder*, which stands for an instance of *cls*, has as *name* from its class."""

    def element(self, node: Node, key: Any) -> Any:
        """What is seen of the element *key* of the settled *node*."""
        return self.concrete(node)[key]

    def elements(self, node: Node) -> Iterator[Any]:
        """What is seen of all elements of the settled *node*."""
        return iter(self.concrete(node))

    def forget(self) -> None:
        """Drop all that was met: what stays is the expression."""
        self.values.clear()
        self.restart()

    def current(self) -> Run:
        """The way that is run just now. Raises `TypeError` when nothing is."""
        if self.run is None:
            raise TypeError("a recorder was kept after the function that it was given to returned")
        return self.run

    def block(self, reason: str) -> NoReturn:
        """End this way: it cannot be followed."""
        self.current()
        raise Blocked(reason)

    def refuse(self, text: str) -> NoReturn:
        """End everything: what the function does is a mistake. On a way that no record may go, it ends that."""
        if self.current().unclear:
            raise Blocked(text)
        if self.texts:
            self.keep_texts()
        raise Refused(text)

    def learn(self, *, none: bool = False, members: bool = False) -> None:
        """Note that the function asks what is None, or what is another object; begin again if that is news."""
        news = (none and not self.tests_none) or (members and not self.tests_members)
        self.tests_none |= none
        self.tests_members |= members
        if news and self.recorders:
            raise Again

    def keep_texts(self) -> NoReturn:
        """Begin again, without marks in texts: the function has seen one, and may be on a way that there is not."""
        self.texts_as_they_are = True
        raise Again

    def _compare_with_none(self, run: Run) -> None:
        """See to the marks that nothing has taken: texts beside None are never equal to it, whatever they are."""
        for text, frame, end in self.texts.values():
            if (frame, end) not in self.beside_none:
                self.keep_texts()
            if text.raises:
                run.raising.append(text)
        self.texts.clear()

    def truth(self, node: Node) -> bool:
        """Whether *node* is true on this way."""
        if isinstance(node, Constant):
            return bool(node.value)
        if node.settled:
            return self._settled_truth(node)
        opposite = self.opposite(node)
        return self.current().answer(node) if opposite is None else not self.current().answer(opposite)

    def opposite(self, node: Node) -> Optional[Node]:
        """Of ``x != y``, if it is surely the contrary of ``x == y``, the latter."""
        if isinstance(node, Compare) and node.denies:
            return self.nodes.make(Compare, "==", node.left, node.right, False, node.known)
        return None

    def concrete(self, node: Node) -> Any:
        """The value of the settled *node*. What is found holds for this value only."""
        if isinstance(node, Constant):
            return node.value
        value = node.evaluate(Given((), self.values))
        self.guards[node] = (True, value)
        return value

    def _settled_truth(self, node: Node) -> bool:
        answer = bool(node.evaluate(Given((), self.values)))
        if self.guards.get(node, EVALUATES) is EVALUATES:
            self.guards[node] = (False, answer)
        return answer

    def uses_all(self, leaf: Node) -> bool:
        """Whether what may raise on this way, of which *leaf* is the end, is evaluated there, or does not raise.

        What captured values alone decide may be evaluated beforehand. What is found holds for values that allow it.
        """
        run = self.current()
        unused = set(run.raising).difference(run.evaluated(leaf)) if run.raising else ()
        return all([self._evaluates(node) for node in unused])

    def _evaluates(self, node: Node) -> bool:
        if not node.settled:
            return False
        try:
            node.evaluate(Given((), self.values))
        except Exception as error:
            let_through(error)
            return False
        self.guards.setdefault(node, EVALUATES)
        return True

    @abstractmethod
    def nones(self) -> list[str]:
        """The names of the captured values that are None."""

    def _none_text(self, missing: Node, error: Exception) -> str:
        """That *missing* was used as if it were not None, or one of the captured values, which nobody can tell."""
        captured, field = self.nones(), repr(missing)
        said = "".join(f"{name} is None, " for name in captured) + f"{'and ' if captured else ''}{field} may be None"
        asked = " or ".join(f"`{name} is not None`" for name in (*captured, field))
        return f"{said}: {error}; ask {asked} before, in the same function"

    def explore(self, once: Callable[[], Node], *, inner: bool = False) -> Ways:
        """All ways through *once*. What cannot be followed in an *inner* function ends the way around it."""
        around, ways, answers = self.run, Ways(), list[bool]()
        while True:
            self.run = run = Run(answers, around)
            try:
                ways.append((run.taken, once() if inner else self._followed(run, once)))
            except Blocked as blocked:
                if inner:
                    raise
                self.texts.clear()  # PyPy makes the text of an error where it is caught, and asks what is recorded
                ways.append((run.taken, Called((str(blocked),))))
            finally:
                self.run = around
            if len(ways) > LIMIT:
                raise TooMany
            answers = [answer for _, answer in run.taken]
            while answers and not answers[-1]:
                answers.pop()
            if not answers:
                return ways
            answers[-1] = False

    def _followed(self, run: Run, once: Callable[[], Node]) -> Node:
        """The end of one way, which is a call where it cannot be followed."""
        try:
            leaf = once()
            if self.texts:
                self._compare_with_none(run)
            if not self.uses_all(leaf):
                return Called(("it computes what may raise and does not use it",))
            return leaf
        except Blocked as blocked:
            self.texts.clear()
            return Called((str(blocked),))
        except (TypeError, AttributeError) as error:
            let_through(error)
            missing = _none_used(run, error)
            if missing is not None:
                if self.texts:
                    self.keep_texts()
                raise Refused(self._none_text(missing, error)) from error
            self.texts.clear()
            return Called((described(error),))
        except Exception as error:
            let_through(error)
            self.texts.clear()
            return Called((described(error),))


def described(error: Exception) -> str:
    """*error* as a text; what the function put into it may be recorded."""
    try:
        return f"{type(error).__name__}: {error}"
    except Blocked:
        return f"it raises {type(error).__name__}"


def _none_used(run: Run, error: Exception) -> Optional[Node]:
    """What is None on this way, and declared so, if *error* says that it was used as if it were not."""
    if "NoneType" not in described(error):
        return None
    missing = [node.inner for node, answer in run.taken if answer and isinstance(node, IsNone)]
    return missing[-1] if missing and not run.unclear else None


def mistake(refused: Refused) -> TypeError:
    """What *refused* says, as an error for the program.

    The frames that follow the function are left out of its traceback: the last line is then one of the program.
    """
    cause = refused.__cause__  # has the frames of the function if its own exception told the mistake
    trace: Optional[TracebackType] = None
    for entry in reversed([*of_program((refused if cause is None else cause).__traceback__)]):
        trace = TracebackType(trace, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return TypeError(str(refused)).with_traceback(trace)
