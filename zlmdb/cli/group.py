"""The group of all commands, and their common behaviour: ``--json``, errors as one line, exit codes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Optional, TypeVar

import click

import zlmdb

from ..engines import registry
from ..shown import nearest
from . import output

F = TypeVar("F", bound=Callable[..., Any])

FAILED, FOUND, ABSENT, STOPPED = 1, 3, 4, 130
"""Exit codes, beside 0 for success and 2 for a wrong command line."""

_OF_PROGRAMS = {
    "give overwrite=True": "give --overwrite",
    "; write int(...) for a text": "",
    ", or open it writable with a schema (and create=True) to make it": "",
    "take out what there is with zlmdb.Database.salvage()": "take out what there is with zlmdb salvage",
    "copy the readable records with zlmdb.Database.salvage()": "copy the readable records with zlmdb salvage",
    "salvage what is left with zlmdb.Database.salvage()": "salvage what is left with zlmdb salvage",
    "name the map of each": "name the map of each, with --import MODULE, --map UUID=MAP or --slot N=MAP",
    "say that they are to be skipped": "leave them out with --skip",
    "which Database.verify() tells": "which zlmdb check tells",
    "this user may not write there: open it with readonly=True, or permit": "this user may not write there: permit",
    "can only be read: open it with readonly=True": "can only be read",
    ", or open it with readonly=True": "",
    ", or open the database with readonly=True": "",
    "; to read only, open with readonly=True": "",
    "; where nobody writes meanwhile, open it with lock=False": "",
    "To use its sub-databases as tables, open it with layout='raw'; if zlmdb <= 26 wrote it with hand-given slots "
    "only, with layout='classic'": "zlmdb tables, get and select show its sub-databases, if it has some",
}
"""What errors advise that is written in programs, and what it is on the command line: an option, or nothing."""

_SHOWN = 5  # databases that an error names

_NEGATIVE = re.compile(r"-(Infinity|\d*\.?\d+([eE][+-]?\d+)?)")


class Told(click.Command):
    """A command that the list of commands shows with the whole first sentence of its help, which click wraps."""

    def get_short_help_str(self, limit: int = 45) -> str:
        """The first sentence of the help."""
        return super().get_short_help_str(max(limit, 200))


_TYPES = "a file records the types of its tables, and commands read it by these: leave the option out"
_BY_KEY = "records are selected by their keys, with --from, --to, --prefix or --startswith; "
_IN_ORDER = "records come in the order of their keys, with --reverse in the opposite one; "
_OPTIONS_ELSEWHERE = {
    "--force": "--overwrite",
    "--desc": "--reverse",
    "--descending": "--reverse",
    "--head": "--limit",
    "-n": "--limit",
    **dict.fromkeys(("--model", "--schema"), _TYPES),
    **dict.fromkeys(
        ("--filter", "--query", "--where"), f"{_BY_KEY}a condition is for Python, t.table.where(lambda record: ...)"
    ),
    **dict.fromkeys(
        ("--order-by", "--sort"), f"{_IN_ORDER}another order is for Python, t.table.order_by(lambda record: ...)"
    ),
}
"""Options of other tools, and what to write here: an option that the command has, or a sentence, most for `select`."""


class Command(Told):
    """A command that reports errors as one line on standard error, or as JSON with ``--json``, and by an exit code."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does it, with advice for an option that there is not."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            ours = {name for param in self.params for name in param.opts}
            advice = _OPTIONS_ELSEWHERE.get(error.option_name, "")
            if advice.startswith("-"):
                advice = f"write {advice}" if advice in ours else ""
            elif advice is not _TYPES and "--from" not in ours:
                advice = ""
            if not advice:
                raise
            raise click.UsageError(f"No such option '{error.option_name}': {advice}.", ctx) from error

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click ends quietly: the reader has seen enough
            raise
        except click.ClickException as error:
            raise _escaped(error) from error
        except RecursionError as error:
            _tell(ctx, error, "what was given, or is stored, is nested too deeply to be shown or read here")
        except (zlmdb.Error, OSError, KeyError, ImportError, ValueError, TypeError, AttributeError) as error:
            _tell(ctx, error, str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error))
        except KeyboardInterrupt:
            click.echo("\nStopped.", err=True)
            ctx.exit(STOPPED)


def _escaped(error: click.ClickException) -> click.ClickException:
    """*error* with its message escaped: names in it may come from the file."""
    text = output.escaped(error.message)
    if isinstance(error, click.UsageError):
        return click.UsageError(text, error.ctx)
    return click.ClickException(text)


def _tell(ctx: click.Context, error: Exception, text: str) -> None:
    """End with an error."""
    if isinstance(error, FileNotFoundError) and text.startswith("no database at"):
        wrong = (path for path in ctx.params.values() if isinstance(path, Path) and repr(str(path))[1:-1] in text)
        text += "".join([f"; {advice}" for advice in {_there(path) for path in wrong} if advice])
        texts = [one for one in ctx.params.values() if type(one) is str and Path(one).is_dir()]
        later = [one for one in texts if registry.engine(one).exists()]
        text += "".join([f"; the path comes first: zlmdb {ctx.info_name} {one} ..." for one in later])
    for python, here in _OF_PROGRAMS.items():
        text = text.replace(python, here)
    if ctx.params.get("as_json"):
        click.echo(json.dumps({"error": text, "type": type(error).__name__}), err=True)
    else:
        output.say(f"Error: {text}", err=True)
    ctx.exit(FAILED)


def _there(path: Path) -> str:
    """What there is for *path*, where no database is, in words; empty if nothing is similar."""
    with suppress(OSError):  # what this user may not list
        if path.is_dir():
            found = sorted(one.name for one in path.iterdir() if one.is_dir() and registry.engine(str(one)).exists())
            shown = [*map(repr, found[:_SHOWN]), *["..."] * (len(found) > _SHOWN)]
            return f"there are databases in it: {', '.join(shown)}" if found else ""
        while not path.parent.is_dir():
            path = path.parent
        names = [one.name for one in path.parent.iterdir() if one.is_dir() or one.suffix == ".mdb"]
        return nearest(path.name, names, listed=False)
    return ""


class RecordCommand(Command):
    """A command whose arguments may be negative numbers, which click would take for options."""

    ignore_unknown_options = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does it, except for negative numbers."""
        meant = args[args.index("--") + 1 :] if "--" in args else []
        rest = super().parse_args(ctx, args)
        for one in self.params:
            given = str(ctx.params.get(one.name or "")) if isinstance(one, click.Argument) else ""
            if len(given) > 1 and given[0] == "-" and not (given in meant or _NEGATIVE.fullmatch(given)):
                raise click.NoSuchOption(given, ctx=ctx)  # a misspelt one must not be stored
        return rest


_ELSEWHERE = {
    "tables": ("list", "ls", "schema", "show"),
    "info": ("stat", "stats", "status", "version"),
    "check": ("fsck", "validate", "verify"),
    "salvage": ("recover", "repair"),
    "select": ("cat", "find", "keys", "print", "query", "scan"),
    "dump": ("export",),
    "load": ("import",),
    "put": ("add", "insert", "set"),
    "delete": ("del", "remove", "rm"),
    "backup": ("copy", "cp"),
    "compact": ("shrink", "vacuum"),
    "migrate": ("convert",),
    "build-indexes": ("index", "rebuild", "reindex"),
    "mend-links": ("mend",),
    "select PATH TABLE --count": ("count", "len"),
    "--help": ("help",),
}
"""Commands, and the names that other tools have for them."""


class Group(click.Group):
    """The group of all commands, which knows their names in other tools."""

    command_class = Told

    def main(self, *args: Any, **more: Any) -> Any:
        """As click does it, except if the help cannot be written. A reader that has seen enough ends it quietly."""
        try:
            return super().main(*args, **more)
        except OSError as error:
            output.discard()
            with suppress(OSError):
                click.echo(f"Error: {error.strerror or error}", err=True)
            raise SystemExit(FAILED) from error

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does it, with advice for an option of a command that is written before it."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name
            if name in _OPTIONS_ELSEWHERE and _OPTIONS_ELSEWHERE[name] is _TYPES:
                raise click.UsageError(f"No such option '{name}': {_TYPES}.", ctx) from error
            if not any([name in param.opts for command in self.commands.values() for param in command.params]):
                raise
            raise click.UsageError(
                f"No such option '{name}' before the command: write it at the end, zlmdb COMMAND ... {name}.", ctx
            ) from error

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """As click does it, with advice for a command that there is not."""
        for ours, theirs in _ELSEWHERE.items():
            if args[0] in theirs:
                ctx.fail(f"No such command {args[0]!r}: write zlmdb {ours}.")
        if self.get_command(ctx, args[0]) is None and Path(args[0]).exists():
            ctx.fail(f"No such command {args[0]!r}: the command comes before the path: zlmdb info {args[0]}.")
        return super().resolve_command(ctx, args)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(zlmdb.__version__, prog_name="zlmdb")
def main() -> None:
    """Read, check, copy and convert databases of zlmdb: typed tables in LMDB files.

    PATH is the directory of a database, or its data file. Exit codes: 0 success, 1 an error, 2 a wrong command line,
    3 a check found problems or a salvage was not complete, 4 there is no such record, 130 stopped by Ctrl-C.
    """


class NamedPath(click.Path):
    """A path that is not empty: that of a variable of the shell that is not set would be the current directory."""

    def convert(self, value: Any, param: Optional[click.Parameter], ctx: Optional[click.Context]) -> Any:
        if value == "":
            self.fail(f"the path is empty{': write . for the current directory' * self.dir_okay}", param, ctx)
        return super().convert(value, param, ctx)


def path_argument(name: str) -> Callable[[F], F]:
    """The argument *name* of a command, a path."""
    return click.argument(name, type=NamedPath(path_type=Path, readable=False))  # we say what is not, with the code 1


def command(function: Callable[..., Any], cls: type[Command] = Command) -> click.Command:
    """A command of `main` with ``--json``, which it gets as *as_json*."""
    option = click.option("--json", "as_json", is_flag=True, help="Write JSON, errors included.")
    return main.command(cls=cls)(option(function))


def record_command(function: Callable[..., Any]) -> click.Command:
    """A `command` that takes keys or values as arguments."""
    return command(function, RecordCommand)
