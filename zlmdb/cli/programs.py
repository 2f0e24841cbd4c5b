"""What the command line names of a program: modules, and classes in them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Generator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any

import click


def schema_of(text: str) -> Any:
    """The schema class that *text* names. Raises `click.UsageError`, ImportError."""
    return class_of(text, "MODULE:SCHEMA, such as shop.models:Store")


def class_of(text: str, expected: str) -> Any:
    """The class that *text* names. Raises `click.UsageError`, ImportError."""
    module, _, name = text.partition(":")
    if not (module and name) or module.endswith(".py"):
        raise click.UsageError(f"{text} names no class: write {expected}")
    with imports():
        try:
            return attrgetter(name)(importlib.import_module(module))
        except AttributeError as error:
            raise click.UsageError(str(error)) from error


@contextmanager
def imports() -> Generator[None, None, None]:
    """A block in which modules in the current directory can be imported."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)
