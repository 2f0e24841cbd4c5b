"""Programs whose clock freezegun has stopped: it puts classes of its own in the place of those of `datetime`.

Codecs know the true classes. So modules that name them are imported, and annotations are read, while these are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from sys import modules as modules_here
from types import ModuleType, SimpleNamespace
from typing import Any

_PACKAGE = __name__.partition(".")[0]
_loaded: list[bool] = []


def load_with_true_times() -> None:
    """Give the modules that name the classes of `datetime` the true ones, where freezegun has others just now.

    All are imported: one that was imported while it stops the clock would know no other classes, also when it is over.
    """
    if not _loaded:
        _loaded.append(True)
        _load()
    for name, module in list(modules_here.items()):
        if name.startswith(f"{_PACKAGE}."):
            for attribute, value in list(vars(module).items()):
                if isinstance(value, type) and is_of_freezegun(value):
                    setattr(module, attribute, true_class(value))


def _load() -> None:
    import datetime

    found: dict[str, Any] = dict(vars(datetime))
    fakes = {name: one for name, one in found.items() if isinstance(one, type) and is_of_freezegun(one)}
    try:
        for name, fake in fakes.items():
            setattr(datetime, name, true_class(fake))
        for module in ("msgspec", "cbor2", *_modules()):
            with suppress(ImportError):  # of what is optional
                import_module(module)
    finally:
        for name, fake in fakes.items():
            setattr(datetime, name, fake)


def is_of_freezegun(cls: type) -> bool:
    """Whether freezegun has put *cls* in the place of another class."""
    return str(cls.__module__).startswith("freezegun.")


FROZEN = (
    "the class was defined while freezegun had this one in the place of that of datetime: define it, or import its "
    "module, before the time is frozen, or use time-machine, which replaces no class"
)


def true_class(cls: type) -> type:
    """The class in whose place freezegun has put *cls*, if it has."""
    return next(one for one in cls.__mro__ if not is_of_freezegun(one))


def true_times(cls: type) -> dict[str, Any]:
    """What the names in the modules of *cls* and its bases mean for which freezegun has classes of its own just now."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(modules_here.get(base.__module__, SimpleNamespace())).items():
            if isinstance(value, type) and is_of_freezegun(value):
                found[name] = true_class(value)
            elif isinstance(value, ModuleType) and value.__name__ == "datetime":
                times = {one: true_class(kind) for one, kind in vars(value).items() if isinstance(kind, type)}
                found[name] = SimpleNamespace(**times)
    return found


_MODELS = ("__dataclass_fields__", "__attrs_attrs__", "__struct_fields__", "__total__", "_fields")


def resolve_truly(cls: type) -> None:
    """Have msgspec, which keeps them, look at the annotations of the model *cls* while modules have the true classes.

    They may name them through any module, and so may the models that they name.
    """
    if "__msgspec_cache__" in vars(cls) or not any([hasattr(cls, name) for name in _MODELS]):
        return
    found: list[tuple[Any, str, Any]] = []
    for path, module in list(modules_here.items()):
        if not path.startswith("freezegun"):
            names: dict[str, Any] = getattr(module, "__dict__", {})
            classes = [(name, value) for name, value in list(names.items()) if issubclass(type(value), type)]
            found.extend((module, name, value) for name, value in classes if is_of_freezegun(value))
    try:
        for module, name, fake in found:
            setattr(module, name, true_class(fake))
        with suppress(Exception):  # there may be no msgspec; and what it does not take, it is not asked for later
            import_module("msgspec").json.Decoder(cls)
    finally:
        for module, name, fake in found:
            setattr(module, name, fake)


_SEARCHED = ("cache", "feed", "keys", "operations", "query", "schema", "tables", "values")


def _modules() -> Iterator[str]:
    """The names of the modules that know types of values."""
    from pkgutil import iter_modules

    for name in _SEARCHED:
        part: Any = import_module(f"{_PACKAGE}.{name}")
        found = [(part.__name__, part.__path__)]
        while found:
            parent, path = found.pop()
            for one in iter_modules(path):
                if one.name != "__main__":
                    yield f"{parent}.{one.name}"
                    if one.ispkg:
                        found.append((f"{parent}.{one.name}", import_module(f"{parent}.{one.name}").__path__))
