"""Draws the charts and writes the tables of the performance page, from the results saved in docs/results.

Sphinx runs it (see conf.py); what it makes goes to docs/_charts and is not committed. Run by hand, it also renews the
chart of the README: ``python docs/charts.py``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, Optional

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.report import duration, notes, rate, steps_of  # noqa: E402 - after the path is set
from benchmarks.results import common_base, per_operation, ratios, spread  # noqa: E402

RESULTS, CHARTS = HERE / "results", HERE / "_charts"
Rows = dict[str, Any]


class Theme(NamedTuple):
    """Okabe and Ito's colours, which people of every colour vision tell apart; the background stays transparent."""

    name: str
    ink: str
    faint: str
    ours: str
    raw: str
    old: str
    other: str

    def colour(self, label: str) -> str:
        if label.startswith("zlmdb 26"):
            return self.old
        if label.startswith("zlmdb"):
            return self.ours
        return self.raw if label.startswith(("raw lmdb", "official", "Python")) else self.other


THEMES = (
    Theme("light", "#222222", "#cccccc", "#0072B2", "#D55E00", "#009E73", "#777777"),
    Theme("dark", "#e6e6e6", "#4a4a4a", "#56B4E9", "#E69F00", "#2fc79a", "#a0a0a0"),
)
MARKERS = {"ours": "o", "raw": "D", "old": "s", "other": "^"}


def marker(label: str) -> str:
    """A form for each family, beside its colour."""
    if label.startswith("zlmdb 26"):
        return "s"
    if label.startswith("zlmdb"):
        return "o"
    return "D" if label.startswith(("raw lmdb", "official", "Python")) else "^"


class Saved:
    """All results of a directory: by interpreter and workload."""

    def __init__(self, directory: Path) -> None:
        self.data: dict[str, dict[str, Any]] = {}
        for path in sorted(directory.glob("*/*.json")):
            self.data.setdefault(path.parent.name, {})[path.stem] = json.loads(path.read_text(encoding="utf-8"))

    def interpreter(self, kind: str) -> Optional[str]:
        """The newest directory of ``cpython`` or ``pypy``."""
        return max((name for name in self.data if name.startswith(kind)), default=None)

    def sizes(self, workload: str, kind: str = "cpython") -> dict[int, Any]:
        data = self.data.get(self.interpreter(kind) or "", {}).get(workload, {"sizes": {}})
        return {int(size): measured for size, measured in data["sizes"].items()}

    def largest(self, workload: str, kind: str = "cpython", least: int = 8) -> tuple[int, Any]:
        """The largest size at which at least so many contenders took part; 0 and nothing when there is none."""
        found: tuple[int, Any] = (0, {"rows": {}, "machine": {}})
        for size, measured in sorted(self.sizes(workload, kind).items()):
            if sum("absent" not in row for row in measured["rows"].values()) >= least or not found[0]:
                found = size, measured
        return found


def where(measured: Any, size: int) -> str:
    """The line under a chart."""
    machine = measured["machine"]
    return f"{size:,} records. {machine['interpreter']}, {machine['cpu']}, {machine['cores']} cores, {machine['date'][:10]}"


def rates(step: Any) -> list[float]:
    """Operations a second, of each round."""
    return [1e9 / each for each in per_operation(step)]


# -- drawing -----------------------------------------------------------------------------------------------------------


class Drawing:
    """Draws a figure once in each theme."""

    def __init__(self, directory: Path) -> None:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as pyplot

        self.directory, self.pyplot = directory, pyplot
        directory.mkdir(parents=True, exist_ok=True)

    def draw(self, name: str, paint: Callable[[Any, Theme], Any]) -> str:
        """The reStructuredText that shows the figure that *paint* gives."""
        alt = ""
        for theme in THEMES:
            settings = {
                "text.color": theme.ink, "axes.edgecolor": theme.faint, "axes.labelcolor": theme.ink,
                "xtick.color": theme.ink, "ytick.color": theme.ink, "svg.hashsalt": "zlmdb", "svg.fonttype": "path",
                "font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 11,
                "axes.titleweight": "bold", "axes.titlelocation": "left", "xtick.minor.size": 0, "ytick.minor.size": 0,
            }  # fmt: skip
            with self.pyplot.rc_context(settings):
                figure, alt = paint(self.pyplot, theme)
                figure.savefig(self.directory / f"{name}-{theme.name}.svg", transparent=True, metadata={"Date": None})
                self.pyplot.close(figure)
        return "".join(
            f".. image:: _charts/{name}-{theme.name}.svg\n   :class: only-{theme.name}\n   :alt: {alt}\n"
            f"   :width: 100%\n\n"
            for theme in THEMES
        )


def dots(
    rows: Rows, steps: Iterable[str], labels: Iterable[str], foot: str, alt: str
) -> Callable[[Any, Theme], tuple[Any, str]]:
    """A panel for each step, a line for each contender, fastest first; whiskers from the slowest round to the fastest."""
    panels = []
    for step in steps:
        found = {label: rates(rows[label]["steps"][step]) for label in labels if step in rows[label]["steps"]}
        if found:
            panels.append((step, dict(sorted(found.items(), key=lambda item: median(item[1])))))

    def paint(pyplot: Any, theme: Theme) -> tuple[Any, str]:
        heights = [len(found) + 2.2 for _, found in panels]
        figure, axes = pyplot.subplots(
            len(panels), 1, figsize=(6.4, 0.215 * sum(heights) + 0.5), height_ratios=heights, layout="constrained",
            squeeze=False,
        )  # fmt: skip
        for ax, (step, found) in zip(axes[:, 0], panels):
            panel(ax, step, found, rows, theme)
        axes[-1, 0].set_xlabel(f"per second, more is better\n{foot}", fontsize=8)
        return figure, alt

    return paint


def panel(ax: Any, step: str, found: dict[str, list[float]], rows: Rows, theme: Theme) -> None:
    base = common_base(rows, step)
    for at, (label, figures) in enumerate(found.items()):
        middle, colour = median(figures), theme.colour(label)
        ax.plot([min(figures), max(figures)], [at, at], color=colour, linewidth=1.5)
        ax.plot(middle, at, marker(label), color=colour, markersize=6)
        times = ratios(rows[label], rows[base], step) if base else []
        text = f"{rate(1e9 / middle)}" + (f"  ×{median(times):.2g}" if times else "")
        ax.annotate(text, (max(figures), at), xytext=(7, -3), textcoords="offset points", fontsize=8, color=theme.ink)
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    ax.set_xlim(low / 1.1, high * (high / low) ** 0.28)
    ax.set_yticks(range(len(found)), list(found), fontsize=8.5)
    for text in ax.get_yticklabels():
        text.set_color(theme.colour(text.get_text()) if text.get_text().startswith(("zlmdb", "raw")) else theme.ink)
        text.set_fontweight("bold" if text.get_text().startswith("zlmdb") else "normal")
    ax.set_title(step)
    ax.grid(axis="x", color=theme.faint, linewidth=0.5)
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)


def pairs(
    by_interpreter: dict[str, Rows], steps: Iterable[str], foot: str, alt: str, sizes: bool = False
) -> Callable[[Any, Theme], tuple[Any, str]]:
    """CPython beside PyPy: two marks on the line of each contender. *sizes* adds the bytes of an object."""
    labels = list(dict.fromkeys(label for rows in by_interpreter.values() for label in rows))

    def value(rows: Rows, label: str, step: str) -> Optional[float]:
        row = rows.get(label, {"steps": {}})
        if step == "bytes/object":
            return row.get("object_bytes")
        return median(rates(row["steps"][step])) if step in row["steps"] else None

    def paint(pyplot: Any, theme: Theme) -> tuple[Any, str]:
        wanted = [*steps, *(["bytes/object"] if sizes else [])]
        shown = {
            step: [label for label in labels if any(value(rows, label, step) for rows in by_interpreter.values())]
            for step in wanted
        }
        heights = [len(found) + 2.4 for found in shown.values()]
        figure, axes = pyplot.subplots(
            len(wanted), 1, figsize=(6.4, 0.215 * sum(heights) + 0.7), height_ratios=heights, layout="constrained",
            squeeze=False,
        )  # fmt: skip
        for ax, (step, found) in zip(axes[:, 0], shown.items()):
            first = next(iter(by_interpreter.values()))
            found.sort(key=lambda label: value(first, label, step) or 0, reverse=step == "bytes/object")
            for (name, rows), form, colour in zip(by_interpreter.items(), "oD", (theme.ours, theme.raw)):
                points = [(value(rows, label, step), at) for at, label in enumerate(found)]
                real = [(x, at) for x, at in points if x is not None]
                filled = form == "o"
                ax.plot(
                    [x for x, _ in real], [at for _, at in real], form, color=colour, label=name, markersize=6,
                    markerfacecolor=colour if filled else "none",
                )  # fmt: skip
                for x, at in real:
                    text = f"{x:.0f}" if step == "bytes/object" else rate(1e9 / x)
                    ax.annotate(
                        text, (x, at), xytext=(0, 4), textcoords="offset points", fontsize=6.5, ha="center", color=colour
                    )
            ax.set_yticks(range(len(found)), found, fontsize=8.5)
            ax.set_title(step)
            ax.grid(color=theme.faint, linewidth=0.5)
            ax.set_ylim(-0.6, len(found) - 0.1)
            ax.tick_params(axis="y", length=0)
            if step == "bytes/object":
                ax.set_xlim(left=0)
                ax.set_xlabel("bytes of an object, less is better", fontsize=8)
            else:
                ax.set_xscale("log")
                ax.set_xlabel("per second, more is better", fontsize=8)
        legend = axes[0, 0].legend(fontsize=8.5, frameon=False, loc="lower right")
        for text in legend.get_texts():
            text.set_color(theme.ink)
        figure.supxlabel(foot, fontsize=8)
        return figure, alt

    return paint


def lines(
    panels: dict[str, dict[str, list[tuple[str, float]]]], x_label: str, y_label: str, foot: str, alt: str
) -> Callable[[Any, Theme], tuple[Any, str]]:
    """A panel each, a line a contender, over named places on the x axis."""
    labels = list(dict.fromkeys(label for found in panels.values() for label in found))
    forms = dict(zip(labels, "osD^vPX*<>hd"))

    def paint(pyplot: Any, theme: Theme) -> tuple[Any, str]:
        rows = (len(panels) + 1) // 2
        figure, axes = pyplot.subplots(
            rows, min(2, len(panels)), figsize=(6.6, 2.7 * rows + 0.9), layout="constrained", squeeze=False
        )
        styles = ["-", "--", ":", "-."]
        greys = 0
        for label in labels:
            greys += theme.colour(label) == theme.other
        for ax, (title, found) in zip(axes.flat, panels.items()):
            places = list(dict.fromkeys(place for points in found.values() for place, _ in points))
            seen: dict[str, int] = {}
            for label, points in found.items():
                colour = theme.colour(label)
                number = seen[colour] = seen.get(colour, -1) + 1
                ax.plot(
                    [places.index(place) for place, _ in points], [y for _, y in points], styles[number % 4],
                    marker=forms[label], color=colour, label=label, markersize=4.5, linewidth=1.4,
                )  # fmt: skip
            ax.set_yscale("log")
            ax.set_xticks(range(len(places)), places, fontsize=8)
            ax.set_title(title)
            ax.grid(color=theme.faint, linewidth=0.5)
            ax.set_ylabel(y_label, fontsize=8)
            ax.tick_params(axis="y", labelsize=8)
        for ax in list(axes.flat)[len(panels) :]:
            ax.set_visible(False)
        handles, names = axes.flat[0].get_legend_handles_labels()
        legend = figure.legend(handles, names, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
        for text in legend.get_texts():
            text.set_color(theme.ink)
        figure.supxlabel(f"{x_label}. {foot}", fontsize=7.5)
        return figure, alt

    return paint


# -- what is drawn -----------------------------------------------------------------------------------------------------

NOT_DRAWN = ("zlmdb Json", "zlmdb Cbor", "zlmdb 26 Json", "zlmdb 26 Cbor", "raw lmdb + zlmdb codec")
"""In the tables: as bars they would crowd the charts."""

CONTESTS = {
    "fill_read": "The user of 11 fields: fill in transactions of 10,000, each synced; get at random; scan",
    "zds": "Documents (ZDS): write all, read all, look 1,000 up at random",
    "zippondb": "Persons (ZipponDB): populate in transactions of 1,000; queries without an index",
    "db_benchmark": "128 bytes by an integer key (db_benchmark): a transaction for each operation, or for 100",
    "db_benchmark_durable": "The same, every commit synced to the disk",
    "go_persist_full": "Reads and writes mixed (go-persist), every write synced to the disk",
}
LEFT_OUT_STEPS = ("seed-faithful", "prefill")


def drawn(rows: Rows) -> list[str]:
    return [label for label in rows if label not in NOT_DRAWN and "absent" not in rows[label]]


def contest(saved: Saved, drawing: Drawing, workload: str) -> Iterator[str]:
    size, measured = saved.largest(workload)
    if not size:
        return
    rows = measured["rows"]
    steps = [step for step in steps_of(rows) if not step.startswith(LEFT_OUT_STEPS)]
    title = CONTESTS[workload]
    yield f"{title}\n{'~' * len(title)}\n\n"
    yield drawing.draw(workload, dots(rows, steps, drawn(rows), where(measured, size), f"{title}: rates of each store"))


def both(saved: Saved, workload: str) -> tuple[dict[str, Rows], str]:
    """The rows of CPython and of PyPy at the largest size that both have."""
    found: dict[str, Rows] = {}
    foot = ""
    shared = set(saved.sizes(workload)) & set(saved.sizes(workload, "pypy")) or set(saved.sizes(workload))
    if not shared:
        return {}, ""
    size = max(shared)
    for kind in ("cpython", "pypy"):
        measured = saved.sizes(workload, kind).get(size)
        if measured is not None:
            found[measured["machine"]["interpreter"]] = measured["rows"]
            foot = foot or f"{size:,} objects. {measured['machine']['cpu']}, {measured['machine']['date'][:10]}"
    return found, foot


def interpreters(saved: Saved, drawing: Drawing) -> Iterator[str]:
    found, foot = both(saved, "serializers")
    if found:
        title = "Serializers"
        yield f"{title}\n{'~' * len(title)}\n\n"
        steps = ["user: encode", "user: decode", "small record: encode", "small record: decode"]
        yield drawing.draw("serializers", pairs(found, steps, foot, "Objects a second of each serializer", True))
    found, foot = both(saved, "fill_read")
    if found:
        ours = {
            name: {label: row for label, row in rows.items() if label.startswith(("zlmdb", "raw lmdb"))}
            for name, rows in found.items()
        }
        title = "Fill and read, on CPython and PyPy"
        yield f"{title}\n{'~' * len(title)}\n\n"
        steps = ["fill", "random get, one field", "scan"]
        yield drawing.draw("interpreters", pairs(ours, steps, foot, "Fill and read rates of CPython and PyPy"))


def growth(saved: Saved, drawing: Drawing) -> Iterator[str]:
    sizes = saved.sizes("growth")
    if len(sizes) < 2:
        return
    panels: dict[str, dict[str, list[tuple[str, float]]]] = {}
    labels = ("zlmdb", "raw lmdb + msgspec", "RocksDB + msgspec", "LevelDB + msgspec", "sqlite3, typed columns")
    for step in ("get", "scan", "insert in order", "insert at random places", "count"):
        for size, measured in sorted(sizes.items()):
            for label in labels:
                row = measured["rows"].get(label, {"steps": {}})
                if step in row["steps"]:
                    y = median(per_operation(row["steps"][step])) / 1000
                    panels.setdefault(step, {}).setdefault(label, []).append((f"{size:,}", y))
    last = sizes[max(sizes)]
    title = "How the cost of an operation grows with the number of records"
    yield f"{title}\n{'~' * len(title)}\n\n"
    machine = last["machine"]
    foot = f"{machine['interpreter']}, {machine['cpu']}, {machine['date'][:10]}"
    yield drawing.draw("growth", lines(panels, "records", "µs each, less is better", foot, title))


def threads(saved: Saved, drawing: Drawing) -> Iterator[str]:
    labels = ("zlmdb", "raw lmdb + msgspec", "RocksDB + msgspec", "LevelDB + msgspec", "sqlite3, typed columns", "dict + lock")
    panels: dict[str, dict[str, list[tuple[str, float]]]] = {}
    for workload, name in (("go_persist", "structs"), ("go_persist_strings", "strings")):
        size, measured = saved.largest(workload, least=3)
        for label in labels if size else ():
            row = measured["rows"].get(label) or measured["rows"].get(label.replace("msgspec", "bytes"), {"steps": {}})
            for step in row["steps"]:
                if step.startswith("80/20, "):
                    place = step.partition(", ")[2].replace(" threads", "").replace(" thread", "").replace("processes", "proc.")
                    y = median(rates(row["steps"][step])) / 1000
                    panels.setdefault(f"{name}, {size:,} keys", {}).setdefault(label, []).append((place, y))
    if not panels:
        return
    title = "Reads and writes mixed (go-persist): threads and processes"
    yield f"{title}\n{'~' * len(title)}\n\n"
    foot = f"{measured['machine']['interpreter']}, {measured['machine']['cpu']}, {measured['machine']['date'][:10]}"
    yield drawing.draw("threads", lines(panels, "threads, or processes", "1,000 ops/s, more is better", foot, title))


# -- tables ------------------------------------------------------------------------------------------------------------


def table(header: list[str], rows: Iterable[list[str]], widths: str = "auto") -> str:
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for cells in [header, *rows]:
        lines += [f"   {'* -' if at == 0 else '  -'} {escape(cell)}".rstrip() for at, cell in enumerate(cells)]
    return "\n".join(lines) + "\n\n"


def escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("*", "\\*").replace("`", "\\`").replace("|", "\\|").replace("_", "\\_")


def figures(saved: Saved) -> Iterator[str]:
    """Every figure: a section a workload and interpreter, a table a size."""
    for interpreter, workloads in saved.data.items():
        yield f"{interpreter}\n{'-' * len(interpreter)}\n\n"
        for data in workloads.values():
            for size, measured in data["sizes"].items():
                title = f"{data['title']}, {int(size):,}"
                yield f"{title}\n{'~' * len(title)}\n\n"
                yield from size_table(measured, int(size))
            for size, reason in data.get("left_out", {}).items():
                yield f"{data['title']}, {int(size):,}: not run, {escape(reason)}.\n\n"


def size_table(measured: Any, size: int) -> Iterator[str]:
    rows = measured["rows"]
    steps = steps_of(rows)
    if not steps:
        yield "\n".join(f"* {escape(line)}" for line in notes(rows)) + "\n\n"
        return
    extra = [name for name in ("bytes", "object_bytes") if any(name in row for row in rows.values())]
    titles = {"bytes": "disk, bytes/record", "object_bytes": "bytes/object"}
    body = []
    for label, row in rows.items():
        if "absent" in row:
            continue
        cells = [cell(rows, label, step) for step in steps]
        for name in extra:
            per = row.get(name, 0) / (size if name == "bytes" else 1)
            cells.append(f"{per:.0f}" if per else "")
        body.append([label, *cells])
    yield table(["", *steps, *(titles[name] for name in extra)], body)
    base = ", ".join(sorted({base for step in steps if (base := common_base(rows, step))}))
    yield (
        f"Median time of an operation; × is how many times the rate of {base}, and ± the spread of the rounds, half the "
        f"distance between the quartiles. {escape(where(measured, size))}. ``{measured['command']}``\n\n"
    )
    yield "".join(f"* {escape(line)}\n" for line in notes(rows)) + "\n"


def cell(rows: Rows, label: str, step: str) -> str:
    row = rows[label]
    if step not in row["steps"]:
        return "–" if step in row["skipped"] else ""
    each = per_operation(row["steps"][step])
    base = common_base(rows, step)
    times = f", ×{median(found):.2g}" if base and (found := ratios(row, rows[base], step)) else ""
    return f"{duration(median(each))}{times}, ±{spread(each):.0%}"


REASONS: tuple[tuple[str, str, str], ...] = (
    ("dict + lock", "", "in memory: no file, no encoding, no transaction, and the object itself comes back"),
    ("ZODB", "", "its cache holds the objects alive: what is read again is not decoded again"),
    ("pandas", "read all, open", "the open handle is a copy in memory, as columns"),
    ("pandas", "", "CSV is one text, read by C in one go; nothing can be changed in place"),
    ("Hugging Face", "write", "Arrow columns are written in bulk by C++"),
    ("sqlite3", "no hit", "SQLite compares in C inside its page and makes no Python object; zlmdb decodes every record"),
    ("sqlite3", "Charlie", "SQLite filters in C and makes objects of the hits only; zlmdb decodes every record"),
    ("sqlite3", "project", "SQLite reads one column in C; zlmdb decodes whole records"),
    ("SQLAlchemy", "Q", "SQLite filters and projects in C; zlmdb decodes every record"),
    ("peewee", "Q", "SQLite filters and projects in C; zlmdb decodes every record"),
    ("ObjectBox", "Q", "its query runs in C++ inside the store; zlmdb decodes every record"),
    ("raw lmdb", "fill", "stores what it is given; a table checks that it can be read again"),
    ("raw lmdb", "", "the same engine with nothing around it: no checks, no translated errors, no table of types"),
    ("RocksDB", "query", "a read is one call: no transaction is begun for it"),
    ("LevelDB", "query", "a read is one call: no transaction is begun for it"),
    ("RocksDB", "thread", "a put appends to a log and a table in memory, and no transaction is begun for a read"),
    ("LevelDB", "thread", "a put appends to a log and a table in memory, and no transaction is begun for a read"),
    ("RocksDB", "", "an LSM tree appends to a log and sorts later; a B+tree finds its page, and copies it to commit"),
    ("LevelDB", "", "an LSM tree appends to a log and sorts later; a B+tree finds its page, and copies it to commit"),
    ("sqlite3", "synced", "one log is synced; LMDB writes and syncs the pages it copied"),
    ("sqlite3", "", "a prepared statement binds in C, and its transaction begins without a Python object"),
    ("shelve", "", "one file is appended to, without a transaction"),
    ("zlmdb 26", "", "the maps of the predecessor check nothing"),
)


def reason(label: str, step: str) -> str:
    return next((why for who, what, why in REASONS if label.startswith(who) and what in step), "not known")


def losses(saved: Saved) -> Iterator[str]:
    """Every step in which a contender is faster than a table of zlmdb with its default codec, by more than a tie."""
    rows_found = []
    for workload in ("fill_read", "zds", "zippondb", "db_benchmark", "db_benchmark_16", "db_benchmark_durable",
                     "go_persist", "go_persist_strings", "go_persist_commit", "go_persist_full", "growth"):  # fmt: skip
        for size, measured in saved.sizes(workload).items():
            rows = measured["rows"]
            for step in steps_of(rows):
                if "zlmdb" not in rows or step not in rows["zlmdb"]["steps"] or step.startswith(LEFT_OUT_STEPS):
                    continue
                for label, row in rows.items():
                    found = ratios(row, rows["zlmdb"], step)
                    if label.startswith("zlmdb") and not label.startswith("zlmdb 26"):
                        continue
                    if found and median(found) > 1.15:
                        name = f"{workload}, {size:,}: {step}"
                        rows_found.append([name, label, f"×{median(found):.2g}", reason(label, f"{workload} {step}")])
    if rows_found:
        yield table(["workload, records: step", "faster", "by", "why, as far as known"], rows_found, "34 22 8 36")


# -- targets -----------------------------------------------------------------------------------------------------------


class Target(NamedTuple):
    what: str
    goal: str
    found: Optional[float]
    shown: str
    met: Optional[bool]


def quotient(saved: Saved, kind: str, workload: str, label: str, base: str, step: str, least: int = 1) -> Optional[float]:
    """How many times the rate of *base*, at the largest size that has both."""
    for _, measured in sorted(saved.sizes(workload, kind).items(), reverse=True):
        rows = measured["rows"]
        if label in rows and base in rows and (found := ratios(rows[label], rows[base], step)):
            return median(found)
    return None


def at_least(what: str, goal: float, found: Iterable[Optional[float]], unit: str = "×") -> Target:
    """Met when the least of *found* is."""
    known = [figure for figure in found if figure is not None]
    if not known:
        return Target(what, f">= {goal:g}", None, "not measured", None)
    shown = ", ".join(f"{figure:.2f}" if figure < 10 else f"{figure:.1f}" for figure in known) + f" {unit}"
    return Target(what, f">= {goal:g}", min(known), shown, min(known) >= goal)


def more_than_raw(saved: Saved, label: str, goal: float) -> Target:
    what = f"point read over the raw loop: {label}"
    for _, measured in saved.sizes("layer").items():
        rows, step = measured["rows"], "point read, int key, str value"
        if step in rows.get(label, {"steps": {}})["steps"]:
            ours, raw = (per_operation(rows[one]["steps"][step]) for one in (label, "raw lmdb"))
            found = median(our - its for our, its in zip(ours, raw))
            return Target(what, f"<= {goal:g} ns", found, f"{found:.0f} ns", found <= goal)
    return Target(what, f"<= {goal:g} ns", None, "not measured", None)


def targets(saved: Saved, kind: str = "cpython") -> list[Target]:
    def of(workload: str, label: str, base: str, *steps: str) -> list[Optional[float]]:
        return [quotient(saved, kind, workload, label, base, step) for step in steps]

    official, ours, old = "official FlatBuffers", "zlmdb FlatBuffers", "zlmdb 26 FlatBuffers"
    pypy = kind == "pypy"
    found = [
        at_least("FlatBuffers encode, user, over the official runtime", 2.2 if pypy else 15, of("serializers", ours, official, "user: encode")),
        at_least("FlatBuffers encode, small record", 5 if pypy else 30, of("serializers", ours, official, "small record: encode")),
        at_least("FlatBuffers decode, user", 2 if pypy else 20, of("serializers", ours, official, "user: decode")),
        at_least("FlatBuffers decode, small record", 1.5 if pypy else 15, of("serializers", ours, official, "small record: decode")),
    ]  # fmt: skip
    if pypy:
        return found
    codecs = ("Pickle", "Json", "Cbor")
    index = "one unique index: "
    return [
        more_than_raw(saved, "zlmdb", 70), more_than_raw(saved, "zlmdb classic map", 150), *found,
        at_least("FlatBuffers users, fill, over zlmdb 26", 15, of("fill_read", ours, old, "fill")),
        at_least("FlatBuffers users, get and scan of all fields, over zlmdb 26", 18, of("fill_read", ours, old, "random get, one field", "scan")),
        *(at_least(f"{codec} users, fill and get, over zlmdb 26", 1.5, of("fill_read", f"zlmdb {codec}", f"zlmdb 26 {codec}", "fill", "random get, one field")) for codec in codecs),
        Target("scan 1 M FlatBuffers rows, filter to 1%, two fields", ">= 5 M rows/s", None, "there is no such query yet", False),
        at_least("default codec, get and scan, over raw lmdb + msgspec", 0.85, of("fill_read", "zlmdb", "raw lmdb + msgspec", "random get, one field", "scan")),
        at_least("fill, checked, over raw lmdb + msgspec", 0.6, of("fill_read", "zlmdb", "raw lmdb + msgspec", "fill")),
        at_least("fill, Unchecked", 0.85, of("fill_read", "zlmdb Unchecked", "raw lmdb + msgspec", "fill")),
        at_least("one unique index: insert, get by it, update, insert and delete, over a loop by hand", 0.8, of("layer", "zlmdb", "raw lmdb", f"{index}insert", f"{index}get by index", f"{index}update of the indexed field", f"{index}insert and delete")),
        at_least("bulk load over a loop of txn.put", 1.2, of("layer", "zlmdb", "raw lmdb", "bulk load of small records")),
        length(saved),
        at_least("ZDS documents, read all and random get, over sqlite3 with JSON text", 2, of("zds", "zlmdb", "sqlite3, JSON text", "read all, open handle", "random, open handle")),
    ]  # fmt: skip


def length(saved: Saved) -> Target:
    what, goal = "len(table), whatever the number of records", "< 5 µs"
    figures = {
        size: median(per_operation(measured["rows"]["zlmdb"]["steps"]["count"]))
        for size, measured in saved.sizes("growth").items()
        if "count" in measured["rows"].get("zlmdb", {"steps": {}})["steps"]
    }
    if not figures:
        return Target(what, goal, None, "not measured", None)
    worst = max(figures.values())
    shown = ", ".join(f"{duration(figure)} at {size:,}" for size, figure in figures.items())
    return Target(what, goal, worst, f"{shown}, its transaction included", worst < 5000)


def target_table(saved: Saved) -> Iterator[str]:
    rows = []
    for kind in ("cpython", "pypy"):
        interpreter = saved.interpreter(kind)
        for target in targets(saved, kind) if interpreter else ():
            verdict = {True: "met", False: "missed", None: ""}[target.met]
            rows.append([f"{target.what} ({interpreter})", target.goal, target.shown, verdict])
    if rows:
        yield table(["target", "goal", "measured", ""], rows, "46 14 30 10")


def commands(saved: Saved) -> Iterator[str]:
    seen = {
        (measured["command"], measured["machine"]["interpreter"])
        for workloads in saved.data.values()
        for data in workloads.values()
        for measured in data["sizes"].values()
    }
    for command, interpreter in sorted(seen):
        yield f"* ``{command}``, {interpreter}\n"
    yield "\n"


def build(results: Path = RESULTS, charts: Path = CHARTS) -> None:
    """Write every chart, and the reStructuredText that the pages include."""
    saved, drawing = Saved(results), Drawing(charts)
    parts: list[str] = [*interpreters(saved, drawing)]
    for workload in CONTESTS:
        parts += contest(saved, drawing, workload)
    parts += [*growth(saved, drawing), *threads(saved, drawing)]
    nothing = "No results are saved.\n\n"
    pages = {
        "charts": parts, "figures": figures(saved), "losses": losses(saved), "targets": target_table(saved),
        "commands": commands(saved),
    }  # fmt: skip
    for name, text in pages.items():
        (charts / f"{name}.rst").write_text("".join(text) or nothing, encoding="utf-8")


def readme(results: Path = RESULTS) -> None:
    """Renew the chart of the README: the documents of ZDS."""
    saved = Saved(results)
    size, measured = saved.largest("zds")
    rows = measured["rows"]
    steps = ["write", "read all, open handle", "random, open handle"]
    labels = [label for label in drawn(rows) if label not in ("zlmdb Unchecked", "zlmdb Pickle", "dict + lock", "shelve")]
    if size:
        Drawing(results).draw("readme", dots(rows, steps, labels, where(measured, size), "Documents"))


if __name__ == "__main__":
    build()
    readme()
