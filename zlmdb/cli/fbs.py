"""The FlatBuffers schema of a model class: `fbs`."""

from __future__ import annotations

import importlib
import sys
from operator import attrgetter
from pathlib import Path

import click

import zlmdb

from .group import main


@main.command()
@click.argument("model", metavar="MODULE:CLASS")
def fbs(model: str) -> None:
    """Print the FlatBuffers schema of a model class.

    From it, flatc generates readers and writers of FlatBuffers[CLASS] records for other languages. MODULE may be a file
    in the current directory.
    """
    module, _, name = model.partition(":")
    if not (module and name) or module.endswith(".py"):
        raise click.UsageError(f"{model} names no class: write MODULE:CLASS, such as shop.models:User")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        text = zlmdb.values.fbs(attrgetter(name)(importlib.import_module(module)))
    except (ImportError, AttributeError, TypeError) as error:
        raise click.ClickException(str(error)) from error
    finally:
        sys.path.remove(here)
    click.echo(text, nl=False)
