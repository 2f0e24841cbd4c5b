"""The commands of ``python -m zlmdb``, which is also installed as ``zlmdb``. One decorated function each."""

from __future__ import annotations

import importlib
import sys
from operator import attrgetter
from pathlib import Path
from typing import Optional

import click

import zlmdb


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(zlmdb.__version__, prog_name="zlmdb")
def main() -> None:
    """Typed persistent maps over LMDB."""


@main.command()
@click.argument("directory", type=click.Path(path_type=Path), default=Path("cities-data"))
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Load only the N largest cities.")
def demo(directory: Path, limit: Optional[int]) -> None:
    """Load the world's cities, ask about them, and measure each serializer.

    The database is made in DIRECTORY (cities-data if left out); a second run finds it there and reads it. The figures
    are saved there, too, as the picture cities.png.
    """
    try:
        from rich.console import Console

        from .demo import DemoError, run
    except ModuleNotFoundError as error:
        raise click.ClickException(f"The demonstration needs {error.name}: pip install 'zlmdb[demo]'") from error
    try:
        run(directory, Console(highlight=False), limit)
    except (DemoError, zlmdb.Error, OSError) as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        click.echo(f"\nStopped. The tables in {directory} that were complete stay; run it again to go on.", err=True)
        raise SystemExit(130) from None


@main.command()
@click.argument("model", metavar="MODULE:CLASS")
def fbs(model: str) -> None:
    """Print the FlatBuffers schema of a model class.

    From it, flatc makes readers and writers, in other languages too, of what FlatBuffers[CLASS] stores. MODULE may be
    a file of the current directory.
    """
    module, _, name = model.partition(":")
    if not (module and name):
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
