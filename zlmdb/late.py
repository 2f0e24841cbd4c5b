"""Names of a package that are imported when they are first used, since most programs use few of them (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from sys import modules as modules_here
from typing import Any

_PACKAGE = __name__.partition(".")[0]
_loaded: list[bool] = []


def on_first_use(
    package: str, modules: Mapping[str, str], prefixes: Mapping[str, str] = {},
    advice: Callable[[str, list[str]], str] = lambda name, known: "",
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:  # fmt: skip
    """The ``__getattr__`` and ``__dir__`` of *package*, which find a name in another module on first use.

    *modules*: the names, separated by spaces, by the module that has them; a module without names is itself the
    attribute. *prefixes*: modules by the beginning of their names. After its first use, a name is an attribute.
    *advice*: what to write in place of a name that there is not, of those that there are; empty for nothing.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}
    submodules = {module[1:]: module for module, names in modules.items() if not names}

    def home(name: str) -> str:
        return homes.get(name) or next((module for start, module in prefixes.items() if name.startswith(start)), "")

    def __getattr__(name: str) -> Any:
        if "freezegun" in modules_here:  # which asks for all names when it stops the clock
            load_with_true_times()
        if name in submodules:
            return import_module(submodules[name], package)
        module = home(name)
        found = vars(import_module(module, package)) if module else {}
        if name not in found:
            text = f"module {package!r} has no attribute {name!r}"
            instead = "" if name.startswith("_") else advice(name, __dir__())
            error: Any = AttributeError(f"{text}: {instead}" if instead else text)
            if instead:
                error.name = name  # else Python would add the module, and then a suggestion of its own
            raise error
        vars(import_module(package))[name] = found[name]
        return found[name]

    def __dir__() -> list[str]:
        known = vars(import_module(package))
        return sorted({*known, *known["__all__"], *submodules})

    return __getattr__, __dir__


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
