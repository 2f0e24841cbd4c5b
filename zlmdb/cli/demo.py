"""The demonstration: `demo`."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Optional

import click

import zlmdb

from .group import NamedPath, main


@main.command()
@click.argument("directory", type=NamedPath(path_type=Path), default=Path("cities-data"))
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Load only the N largest cities.")
def demo(directory: Path, limit: Optional[int]) -> None:
    """Load the world's cities, query them, and measure each serializer.

    The database is created in DIRECTORY (by default cities-data); a second run finds it there and reads it. The figures
    are also saved there, as the picture cities.png.
    """
    try:
        from rich.console import Console

        from ..demo import DemoError, run
    except ModuleNotFoundError as error:
        raise click.ClickException(f"The demonstration needs {error.name}: pip install 'zlmdb[demo]'") from error
    stream: Any = sys.stdout
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="replace")  # a code page, as Windows has, lacks letters of the names of cities
    try:
        run(directory, Console(highlight=False), limit)
    except (DemoError, zlmdb.Error, OSError) as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        click.echo(f"\nStopped. The tables in {directory} that were complete stay; run it again to go on.", err=True)
        raise SystemExit(130) from None
