"""Pydantic models (version 2) as values: stored by their fields, and made and validated by Pydantic in reading."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Optional

from .base import typename
from .shapes import Record, expect


def is_pydantic(cls: Any) -> bool:
    """Whether *cls* is a model class of Pydantic 2."""
    return hasattr(cls, "__pydantic_validator__") and hasattr(cls, "model_validate")


def pydantic_version() -> tuple[int, int]:
    """Which Pydantic is there."""
    from pydantic import VERSION

    major, minor = VERSION.split(".")[:2]
    return int(major), int(minor)


def check_release(cls: Any, where: str) -> None:
    """Raise TypeError if *cls* is a model of a Pydantic that says something else of its fields."""
    if hasattr(cls, "__pydantic_fields__"):
        return
    if is_pydantic(cls):
        release = ".".join(map(str, pydantic_version()))
    elif hasattr(cls, "__fields__") and hasattr(cls, "parse_obj"):  # also one of pydantic.v1, which is part of 2
        release = "1"
    else:
        return
    raise TypeError(
        f"{where}: {typename(cls)} is a model of Pydantic {release}, and zlmdb stores those of Pydantic 2.10 and "
        "newer: pip install 'zlmdb[pydantic]', and derive the class from pydantic.BaseModel"
    )


def fields_of(cls: Any) -> dict[str, Any]:
    """What Pydantic says of the fields of *cls*."""
    if not cls.__pydantic_complete__:
        cls.model_rebuild(raise_errors=False)
    return cls.__pydantic_fields__


def hints_of(cls: Any) -> dict[str, Any]:
    """The annotations of the fields of *cls*. Raises TypeError where they are not defined yet."""
    fields = fields_of(cls)
    if not cls.__pydantic_complete__:
        raise TypeError(f"{typename(cls)}: an annotation is not defined yet: call {cls.__name__}.model_rebuild()")
    return {name: field.rebuild_annotation() for name, field in fields.items()}


def argument(cls: Any, name: str, where: str) -> str:
    """By which name an object of *cls* is given the field *name*: its alias, where it has one."""
    alias: Any = cls.__pydantic_fields__[name].validation_alias
    if alias is None:
        return name
    choices: Iterable[Any] = getattr(alias, "choices", (alias,))
    text: Optional[str] = next((one for one in choices if isinstance(one, str)), None)
    if text is None:
        raise TypeError(f"{where}: {typename(cls)}.{name} has no alias that is a single name: give it one")
    return text


class PydanticRecord(Record):
    """An object of a Pydantic model. It is stored as a map of its fields by name, whatever its aliases are."""

    foreign = True
    native = False

    def __init__(self, cls: Any) -> None:
        super().__init__(cls, recheck=True)  # what is assigned to a field is not validated by default
        self._is_root = bool(getattr(cls, "__pydantic_root_model__", False))

    def test_value(self, check: Any, is_one: str = "type(value) is cls") -> None:
        """Tests of ``value``, which may have no fields beside those of its class: they would be lost."""
        super().test_value(check, is_one)
        check.refuse_if("value.__pydantic_extra__")

    def load(self, data: Any) -> Any:
        """The object of the map *data*, made and validated by Pydantic."""
        given = expect(dict, data, self.label)
        cls: Any = self.cls
        values = {
            field.member.argument: field.shape.load(given[field.stored])
            for field in self.fields
            if field.stored in given
        }
        return cls.model_validate(values.get("root") if self._is_root else values)

    def misfit(self, value: Any, path: str) -> str:
        extra: Any = getattr(value, "__pydantic_extra__", None)
        if isinstance(value, self.cls) and extra:
            return f"{path}: {self.label} has no field {next(iter(extra))!r}, and what is extra is not stored"
        return super().misfit(value, path)
