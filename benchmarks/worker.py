"""One contender in a process of its own: reads commands, runs steps, answers with the times; a JSON line each.

Run by its path, by whatever interpreter has the contender. Only the package ``benchmarks`` is made importable and not
the directory around it, where the predecessor would find this zlmdb instead of its own.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import os
import resource
import shutil
import sys
import traceback
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any, Optional

HERE = Path(__file__).resolve().parent


def load_package() -> None:
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != HERE]
    if "benchmarks" not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            "benchmarks", HERE / "__init__.py", submodule_search_locations=[str(HERE)]
        )
        if spec is None or spec.loader is None:
            raise ImportError(f"cannot load {HERE}")
        module = sys.modules["benchmarks"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


class Worker:
    """The state between commands: a workload with its data, and at most one open store."""

    def __init__(self) -> None:
        from benchmarks.contenders import contenders
        from benchmarks.workloads import WORKLOADS

        self.contenders, self.workloads = contenders(), WORKLOADS
        self.own = set(sys.modules)
        self.store: Any = None
        self.prepared: Optional[tuple[str, int]] = None
        self.data: Any = None

    def inside(self, workload: str, size: int, rounds: int) -> dict[str, Any]:
        """All rows of a workload that is measured inside one process."""
        from benchmarks.workloads import INSIDE

        return {"rows": INSIDE[workload].measure(size, rounds)}

    def prepare(
        self, contender: str, workload: str, size: int, path: str, fresh: bool = False, modules: Iterable[str] = (),
        process: int = 0,
    ) -> dict[str, Any]:  # fmt: skip
        """Import the contender and make the data; nothing is opened.

        *fresh* for steps in a new process; *modules* are what such a step was seen to need, so that no importing is
        inside the clock, of whoever imports late. *process* counts those that work at the same time.
        """
        from benchmarks.clock import set_aside
        from benchmarks.remote import NOT_INSTALLED

        module = self.contenders[contender]
        versions: dict[str, str] = {}
        for name, requirement in needs(module, contender).items():
            try:
                found = importlib.import_module(name)
            except ImportError as error:
                return {"absent": f"{NOT_INSTALLED} ({error}): {requirement}"}
            version = getattr(found, "__version__", None)
            versions[name] = str(version) if isinstance(version, (str, tuple)) else ""
        self.open_store, self.size = module.VARIANTS[contender], size
        self.workload, self.path = self.workloads[workload], Path(path)
        for name in modules:
            with suppress(Exception):  # what cannot be imported by its name is imported by its owner
                importlib.import_module(name)
        if process:
            self.data, self.prepared = self.workload.prepare_beside(size, process), None
        elif fresh:
            self.data, self.prepared = self.workload.prepare_fresh(size), None
        elif self.prepared != (workload, size):
            self.data, self.prepared = self.workload.prepare(size), (workload, size)
            set_aside()
        return {"versions": versions, "python": sys.version}

    def open(self) -> dict[str, Any]:
        self.store = self.open_store(self.path, self.workload.shape, self.workload.durability)
        return {"note": self.store.note, "processes": self.store.processes, "in_memory": self.store.in_memory}

    def step(self, step: str, check: bool, at: int = 0) -> dict[str, Any]:
        """Run a step, as often as it says: the median counts. *at*: when to begin, on the clock of all processes."""
        from benchmarks.clock import Clock
        from benchmarks.workloads.base import PYPY, collects

        chosen = next(one for one in self.workload.steps if one.name == step)
        walls, cpus = [], []
        for number in range(chosen.times(self.size)):
            clock = Clock(at)
            if collects(self.size) and (number == 0 or not (chosen.quick or PYPY)):
                gc.collect()
            if chosen.fresh:
                with clock:
                    self.store = self.open_store(self.path, self.workload.shape, self.workload.durability)
            outcome = chosen.run(self.store, self.data, clock)
            walls.append(clock.wall)
            cpus.append(clock.cpu)
        if check:
            outcome.check()
        found = {
            "wall": round(median(walls)), "cpu": round(median(cpus)), "count": outcome.count,
            "began": clock.began, "ended": clock.ended,
        }  # fmt: skip
        if outcome.batches:
            found["batches"] = outcome.batches
        if chosen.sized and not self.store.in_memory:  # closed, since some write their files only then
            found["bytes"] = self.close(remove=False)["bytes"]
            self.open()
        return found

    def close(self, remove: bool) -> dict[str, Any]:
        if self.store is not None:
            self.store.close()
            self.store = None
        files = [file for file in self.path.rglob("*") if file.is_file()]
        # Blocks, not lengths: a sparse file takes what it takes.
        used = sum(file.stat().st_blocks * 512 for file in files)
        if remove:
            shutil.rmtree(self.path, ignore_errors=True)
        # In KiB on Linux, in bytes on macOS.
        unit = 1 if sys.platform == "darwin" else 1024
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        return {"bytes": used, "rss": rss, "modules": sorted(set(sys.modules) - self.own)}


def needs(module: Any, contender: str) -> dict[str, str]:
    """The modules that a contender must be able to import: its own, and that of its codec."""
    from benchmarks.codecs import LIBRARY

    found = {name: f"pip install '{requirement}'" for name, requirement in module.NEEDS.items()}
    for codec, library in LIBRARY.items():
        if contender.endswith(f" + {codec}"):
            found[library] = f"pip install {library}"
    return found


def answer(worker: Worker, command: dict[str, Any]) -> dict[str, Any]:
    from benchmarks.contenders.base import Cannot

    do = command.pop("do")
    try:
        result: dict[str, Any] = getattr(worker, do)(**command)
        return result
    except Cannot as error:
        return {"absent": str(error)}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"[:300], "trace": traceback.format_exc()}


def main() -> None:
    # What libraries print must not come between the answers.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    load_package()
    worker = Worker()
    for line in sys.stdin:
        replies.write(json.dumps(answer(worker, json.loads(line))) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
