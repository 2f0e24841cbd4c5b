"""Names of a package that are imported when they are first used, since most programs use few of them (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from sys import modules as modules_here
from typing import Any


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
            from .frozentime import load_with_true_times  # late: for tests only

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
