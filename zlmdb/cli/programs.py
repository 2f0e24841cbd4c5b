"""What the command line names of a program: modules, and classes in them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Generator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path, PurePath
from types import ModuleType
from typing import Any

import click

from ..shown import nearest


def schema_of(text: str) -> Any:
    """The schema class that *text* names. Raises `click.UsageError`, ImportError."""
    return class_of(text, "MODULE:SCHEMA, such as shop.models:Store")


def class_of(text: str, expected: str) -> Any:
    """The class that *text* names. Raises `click.UsageError`, ImportError."""
    module, _, name = text.partition(":")
    if not (module and name) or module.endswith(".py"):
        raise click.UsageError(f"{text} names no class: write {_meant(text) or expected}")
    with imports():
        found = imported(module)
        if getattr(found, "__file__", None) is None and hasattr(found, "__path__"):
            raise click.UsageError(f"{module!r} is a directory, and no module: {next(iter(found.__path__))}")
        try:
            return attrgetter(name)(found)
        except AttributeError as error:
            close = nearest(name, [one for one, cls in vars(found).items() if isinstance(cls, type)], listed=False)
            raise click.UsageError(f"{error}{close and '; '}{close}") from error


def _meant(text: str) -> str:
    """What to write for *text* that has the path of a module, or no colon before the class; empty if it has neither."""
    module, _, name = text.partition(":")
    parts = PurePath(module).with_suffix("").parts if module.endswith(".py") else ()
    if not parts and not name:
        module, _, name = module.rpartition(".")
        parts = tuple(module.split("."))
    ours = f"{'.'.join(parts)}:{name}"
    return ours if name and parts and all(part.isidentifier() for part in parts) else ""


def imported(module: str) -> ModuleType:
    """The module of that name, inside of `imports`. Raises ImportError."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # one that the module imports
        raise ModuleNotFoundError(
            f"no module {error.name!r} in the current directory, and none is installed: run the command where its file "
            f"is, or add that directory to PYTHONPATH",
            name=error.name,
        ) from error


@contextmanager
def imports() -> Generator[None, None, None]:
    """A block in which modules in the current directory can be imported."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)
