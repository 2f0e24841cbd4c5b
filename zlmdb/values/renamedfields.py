"""Reads records that have former names of fields as if they had the new names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Optional, TypeVar

from .base import FunctionSerializer, Serializer, is_a
from .description import Description, Type, format_of
from .resolve import from_name

T = TypeVar("T")

Rename = Callable[[Any], Any]


def renamed_serializer(
    serializer: Serializer[T], stored: Description, renames: Mapping[int, Mapping[str, str]]
) -> Serializer[T]:  # fmt: skip
    """A serializer that writes as *serializer* does, and also reads records of the shape *stored* with former names.

    *renames* maps, for each model of *stored*, the former names to the new ones.
    """
    if format_of(serializer.name) == "pickle":  # the pickle serializer itself knows the former names
        return serializer
    return _RenamedSerializer(serializer, from_name(serializer.name).unchecked(), renaming(stored, renames))


class _RenamedSerializer(FunctionSerializer[T]):
    """Decodes to plain data, changes the names, encodes, and lets the class read the result."""

    def __init__(self, inner: Serializer[T], plain: Serializer[Any], rename: Rename) -> None:
        decode, to_plain, to_bytes = inner.raw_decode, plain.raw_decode, plain.raw_encode
        super().__init__(
            inner.name,
            inner.raw_encode,
            lambda data: decode(to_bytes(rename(to_plain(data)))),
            model=inner.model,
            examples=inner.examples,
        )
        self.expects = inner.expects


def renaming(stored: Description, renames: Mapping[int, Mapping[str, str]]) -> Rename:
    """A function that takes plain data of the shape *stored* and returns it with the new names."""
    return _Renaming(stored, renames).of(stored["type"])


class _Renaming:
    """Makes functions that walk through plain data, one for each model, because a model may contain itself."""

    def __init__(self, stored: Description, renames: Mapping[int, Mapping[str, str]]) -> None:
        self._models: list[dict[str, Any]] = stored["models"]
        self._renames = renames
        self._made: dict[int, Rename] = {}

    def of(self, kind: Type) -> Rename:
        """The function for values of a recorded type."""
        if isinstance(kind, str):
            return _same
        word, *parts = kind
        if word == "model":
            return lambda value: self._model(parts[0])(value)
        if word in ("list", "set"):
            item = self.of(parts[0])
            return lambda value: [item(one) for one in value] if is_a(value, list) else value
        if word == "tuple":
            items = [self.of(part) for part in parts]
            return lambda value: [one(part) for one, part in zip(items, value)] if is_a(value, list) else value
        if word == "dict":
            held = self.of(parts[1])
            return lambda value: {key: held(one) for key, one in value.items()} if is_a(value, dict) else value
        if word == "union":
            return self._union(parts)
        return self.of(parts[0]) if word == "stored as" else _same

    def _union(self, members: list[Type]) -> Rename:
        """Chooses the member by the kind of value: no two members look the same when they are stored."""
        tagged = {self._tag(member): self.of(member) for member in members if self._tag(member) is not None}
        mapped = self._first(members, "map", "dict")
        listed = self._first(members, "list", "list", "set", "tuple")

        def of_union(value: Any) -> Any:
            if is_a(value, dict):
                for (field, tag), found in tagged.items():
                    if value.get(field) == tag:
                        return found(value)
                return mapped(value)
            return listed(value) if is_a(value, list) else value

        return of_union

    def _tag(self, kind: Type) -> Any:
        """The field and the value that distinguish a model from the others in a union."""
        if isinstance(kind, str) or kind[0] != "model":
            return None
        tag: Any = self._models[int(kind[1])].get("tag")
        return None if tag is None else tuple(tag)

    def _first(self, members: list[Type], model_kind: str, *words: str) -> Rename:
        """The function of the member that is a model of the kind, or a container of one of the *words*."""
        return next((self.of(member) for member in members if self._is(member, model_kind, *words)), _same)

    def _is(self, kind: Type, model_kind: str, *words: str) -> bool:
        if isinstance(kind, str):
            return False
        if kind[0] == "model":
            return bool(self._models[int(kind[1])]["kind"] == model_kind)
        return kind[0] in words

    def _model(self, number: int) -> Rename:
        made = self._made.get(number)
        if made is None:
            made = self._made[number] = self._made_for(number)
        return made

    def _made_for(self, number: int) -> Rename:
        model = self._models[number]
        inside = {field["name"]: self.of(field["type"]) for field in model["fields"]}
        if model["kind"] != "map":
            parts = list(inside.values())
            return lambda value: [*map(_applied, parts, value), *value[len(parts) :]] if is_a(value, list) else value
        new: Mapping[str, str] = self._renames.get(number, {})

        def of_model(value: Any) -> Any:
            if not is_a(value, dict):
                return value
            return {_name(name, new, value): inside.get(name, _same)(one) for name, one in value.items()}

        return of_model


def _same(value: Any) -> Any:
    return value


def _applied(function: Rename, value: Any) -> Any:
    return function(value)


def _name(name: str, new: Mapping[str, str], value: Mapping[str, Any]) -> str:
    """The new name of a field, unless the record already has a field of the new name."""
    other: Optional[str] = new.get(name)
    return name if other is None or other in value else other
