"""The FlatBuffers schema of a model class: `fbs`."""

from __future__ import annotations

import click

import zlmdb

from .group import main
from .programs import class_of


@main.command()
@click.argument("model", metavar="MODULE:CLASS")
def fbs(model: str) -> None:
    """Print the FlatBuffers schema of a model class.

    From it, flatc generates readers and writers of FlatBuffers[CLASS] records for other languages. MODULE may be a file
    in the current directory.
    """
    try:
        text = zlmdb.values.fbs(class_of(model, "MODULE:CLASS, such as shop.models:User"))
    except (ImportError, TypeError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(text, nl=False)
