"""The group of all commands, and what every command does alike: ``--json``, errors as one line, exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

import zlmdb

FAILED, FOUND, ABSENT, STOPPED = 1, 3, 4, 130
"""Exit codes, beside 0 for success and 2 for a wrong command line."""


class Command(click.Command):
    """A command whose errors are a line on standard error, in JSON if that was asked for, and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click ends quietly: the reader has seen enough
            raise
        except (zlmdb.Error, OSError, KeyError, ImportError, ValueError, TypeError, AttributeError) as error:
            text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
            if ctx.params.get("as_json"):
                click.echo(json.dumps({"error": text, "type": type(error).__name__}), err=True)
            else:
                click.echo(f"Error: {text}", err=True)
            ctx.exit(FAILED)
        except KeyboardInterrupt:
            click.echo("\nStopped.", err=True)
            ctx.exit(STOPPED)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(zlmdb.__version__, prog_name="zlmdb")
def main() -> None:
    """Typed persistent maps over LMDB.

    PATH is the directory of a database, or its data file. Exit codes: 0 success, 1 an error, 2 a wrong command line,
    3 a check found problems or a salvage was not complete, 4 there is no such record, 130 stopped by Ctrl-C.
    """


def command(function: Callable[..., Any]) -> click.Command:
    """A command of `main` with ``--json``, which it is handed as *as_json*."""
    option = click.option("--json", "as_json", is_flag=True, help="Write JSON, errors included.")
    return main.command(cls=Command)(option(function))
