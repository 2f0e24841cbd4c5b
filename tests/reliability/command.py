"""What the commands share: figures with the machine and versions they were made on, and children that may crash."""

from __future__ import annotations

import argparse
import json
import os
import pickle
import platform
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Any, Callable, NamedTuple

import zlmdb
from tests.loud.sitecustomize import install as loud

from .delays import install


def by_seeds(life: Callable[[int], str], first: int, run: float) -> dict[str, Any]:
    """Call *life* with the seeds from *first* on, for *run* seconds or until five have failed: it says what failed."""
    until, seed, failures = time.monotonic() + run, first, []
    while time.monotonic() < until and len(failures) < 5:
        found = life(seed)
        if found:
            failures.append(f"--first {seed}: {found}")
        seed += 1
    return {"failures": failures, "seeds": seed - first}


def main(work: Callable[..., dict[str, Any]], **options: Any) -> None:
    """Run *work* with the options of the command line and print what it found; exit status 1 for failures.

    An exception of a thread ends the command.
    """
    loud()
    parser = argparse.ArgumentParser(description=work.__doc__)
    for name, default in options.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument(
        "--directory", type=Path, default=None, help="where the files are made; default: a temporary one"
    )
    parser.add_argument("--delays", type=float, default=0.0, help="the chance of a pause at each call of the system")
    given = vars(parser.parse_args())
    place = given.pop("directory")
    delays = given.pop("delays")
    if delays:
        install(delays)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=place) as directory:
        found = work(Path(directory), **given)
    seconds = round(time.perf_counter() - started, 1)
    print(json.dumps({**given, "delays": delays, **found, "seconds": seconds, **machine()}, indent=1))
    sys.exit(1 if found["failures"] else 0)


def machine() -> dict[str, str]:
    """Where and with what the figures were made."""
    engine = ".".join(map(str, zlmdb.lmdb.version()))
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "zlmdb": zlmdb.__version__,
        "lmdb": f"py-lmdb {zlmdb.lmdb.__version__}, LMDB {engine}",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} CPUs",
        "date": date.today().isoformat(),
    }


def forked(work: Callable[..., object], *args: Any) -> int:
    """The process id of a fork that runs *work*, which is to be killed; an exception ends it and is printed."""
    sys.stdout.flush()
    with warnings.catch_warnings():
        # Python counts a thread that is about to end, too; and where it warns as an error, the child is there already.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        return pid
    loud()
    try:
        work(*args)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(1)


def in_children(work: Callable[[int], Any], numbers: Iterable[int], batch: int = 200) -> Iterator[tuple[int, Any]]:
    """``(number, work(number))`` for each number, computed in forked processes; `Crash` where one ended by a signal.

    A child does up to *batch* of them, or as many as it survives.
    """
    waiting = list(numbers)
    while waiting:
        chunk, waiting = waiting[:batch], waiting[batch:]
        done = yield from _batch(work, chunk)
        waiting = chunk[done:] + waiting


class Crash(NamedTuple):
    """A process ended by *signal*."""

    signal: int


def _batch(work: Callable[[int], Any], chunk: list[int]) -> Any:
    reading, writing = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reading)
            with os.fdopen(writing, "wb") as out:
                for number in chunk:
                    pickle.dump((number, work(number)), out)
                    out.flush()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    os.close(writing)
    done = 0
    with os.fdopen(reading, "rb") as results:
        while True:
            try:
                number, found = pickle.load(results)
            except EOFError:
                break
            done += 1
            yield number, found
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        yield chunk[done], Crash(os.WTERMSIG(status))
        done += 1
    elif status != 0:
        raise RuntimeError(f"a child failed at {chunk[done]}: its traceback is above")
    return done
