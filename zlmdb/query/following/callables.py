"""What is seen of captured functions: calling one follows it, too, or takes note of the call if it is pure."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from .captured import read_attribute, read_item, read_length, read_own
from .formatted import gives_returned, returned
from .known import Known
from .nodeof import holds_recorded
from .opaque import Truthy
from .recorder import applied
from .standins import STAND_INS

if TYPE_CHECKING:
    from .session import Session


class Function(Truthy):
    """A Python function: a call of it is followed."""

    __slots__ = ()

    @gives_returned
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        session = self.zlmdb_session
        return returned(session, session.copy(self.zlmdb_slot)(*args, **kwargs))

    def zlmdb_ready(self) -> Callable[..., Any]:
        return cast("Callable[..., Any]", self.zlmdb_session.copy(self.zlmdb_slot))


class Method(Truthy):
    """A method of an object, or a partial: a call of it is a call of its function with more arguments."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        session, slot = self.zlmdb_session, self.zlmdb_slot
        holder = session.see_read(slot, read_attribute, "__self__")
        return session.see_read(slot, read_attribute, "__func__")(holder, *args, **kwargs)


class Partial(Truthy):
    """A functools.partial. How many arguments it adds, and which names, is a condition for using the result again."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        session, slot = self.zlmdb_session, self.zlmdb_slot
        given = session.captured.read(slot, read_attribute, "args", f"{self.zlmdb_name()}.args")
        named = session.captured.read(slot, read_attribute, "keywords", f"{self.zlmdb_name()}.keywords")
        before = [session.see_read(given, read_item, number) for number in range(session.sure(given, read_length))]
        keywords = {name: session.see_read(named, read_item, name) for name in session.sure(named, read_names)}
        return session.see_read(slot, read_attribute, "func")(*before, *args, **{**keywords, **kwargs})


def read_names(holder: Any, what: Any) -> tuple[str, ...]:
    """The keys of *holder*."""
    return tuple(holder)


def read_reduced(holder: Any, what: Any) -> tuple[Any, ...]:
    """What an attrgetter or itemgetter was made with."""
    getter: Any = holder
    if isinstance(getter, operator.attrgetter):
        return (repr(holder),)
    made, arguments, *state = holder.__reduce__()
    values: list[Any] = list(state[0].values()) if state else []
    return (made, *arguments, *map(_hashable, values))


def _hashable(value: Any) -> Any:
    """*value*, as a tuple if it is a list: PyPy gives the arguments as such."""
    changeable: bool = type(value).__hash__ is None
    return tuple(value) if changeable else value


class Getter(Truthy):
    """An operator.attrgetter or itemgetter: does what attributes and brackets do."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made = self.zlmdb_session.sure(self.zlmdb_slot, read_reduced)
        if any(isinstance(one, str) and "__" in one for one in made):
            self.zlmdb_blocked("a call")
        return self.zlmdb_original()(*args, **kwargs)


class Cached(Truthy):
    """What functools.lru_cache makes: the function in it is followed."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.zlmdb_session.see_read(self.zlmdb_slot, read_own, "__wrapped__")(*args, **kwargs)


class Pure(Truthy):
    """A function of which a call can stand in an expression."""

    __slots__ = ("_function", "_known")

    _function: Any
    _known: Known

    def __init__(self, session: Session, slot: int, function: Callable[..., Any], known: Known) -> None:
        super().__init__(session, slot)
        object.__setattr__(self, "_function", function)
        object.__setattr__(self, "_known", known)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        own: Any = STAND_INS.get(self._function)
        if own is not None:
            return own(self.zlmdb_session, *args, **kwargs)
        if not holds_recorded(args) and not holds_recorded(kwargs):
            return self._function(*args, **kwargs)
        return applied(self.zlmdb_session, self._function, args, kwargs, self._known)
