"""Keys that are one of certain values: the members of an Enum, stored by value, and a Literal."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable

from .base import Data, KeyCodec
from .plain import IntKey, StrKey


class ChoiceKey(KeyCodec[Any]):
    """One of the keys of *choices*, stored as the text or the number that it means, whose order is that of the keys.

    The file knows the type of these, and nothing of the choice: a program without the class reads them, and a member
    may be added at any time.
    """

    def __init__(self, name: str, choices: Mapping[Any, Any]) -> None:
        self.inner = _inner(name, choices.values())
        self.name = self.inner.name
        self._called = name
        self.width = self.inner.width
        self._plain = dict(choices)
        self._keys = {plain: key for key, plain in choices.items()}
        classes: set[Any] = {key.__class__ for key in choices}
        self.kind: Any = classes.pop() if len(classes) == 1 else None
        """The class of all keys, if it is one."""
        self.expects = f"one of {', '.join(map(repr, choices))}"

    @property
    def examples(self) -> Sequence[Any]:
        return [self._keys[plain] for plain in sorted(self._keys)]

    def encode(self, key: Any) -> bytes:
        try:
            known = key in self._plain and type(key) is type(self._keys[self._plain[key]])
        except TypeError:  # not hashable
            known = False
        if not known:
            self.refuse(key)
        return self.inner.encode(self._plain[key])

    def beginning(self, start: Any) -> bytes:
        return self.inner.beginning(start)

    def decoder(self) -> Callable[[Data], Any]:
        decode, keys = self.inner.raw_decode, self._keys
        return lambda data: keys[decode(data)]


def _inner(name: str, plain: Iterable[Any]) -> KeyCodec[Any]:
    types: set[Any] = {one.__class__ for one in plain}
    if types == {str}:
        return StrKey()
    if types == {int}:
        return IntKey()
    raise TypeError(f"{name} is not a key type: its values must be all texts or all whole numbers")


def enum_key(cls: type[enum.Enum]) -> ChoiceKey:
    """The codec of the members of *cls*. Raises `TypeError` unless their values are all texts or all numbers."""
    if issubclass(cls, enum.Flag):
        raise TypeError(f"{cls.__name__} is not a key type: a combination of flags is not a member; use int")
    return ChoiceKey(cls.__name__, {member: _exact(member.value) for member in cls})


def literal_key(values: Sequence[Any]) -> ChoiceKey:
    """The codec of ``Literal[...]`` of *values*, which may be members of an Enum of texts or numbers, too."""
    plain = {one: _exact(one.value if isinstance(one, enum.Enum) else one) for one in values}
    return ChoiceKey(f"Literal{list(values)!r}", plain)


def _exact(value: Any) -> Any:
    """A text or number of a class derived from `str` or `int` as what it is in the file."""
    if isinstance(value, str):
        return str.__str__(value) if type(value) is not str else value
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value
