"""Draws the charts and writes the tables of the performance page, from the results saved in docs/results.

Sphinx runs it (see conf.py); what it makes goes to docs/_charts and is not committed. Run by hand, it also renews the
table of the README and the picture of the first page: ``python docs/charts.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, Optional

import front
from beside import asked
from saved import Rows, Saved, rates, where
from tables import LEFT_OUT_STEPS, commands, figures, losses, operations
from targets import target_table

from benchmarks.report import factor, rate, steps_of
from benchmarks.results import common_base, per_operation, ratios

HERE = Path(__file__).resolve().parent

RESULTS, CHARTS = HERE / "results", HERE / "_charts"


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
    """A panel for each step, a line for each contender, fastest first; whiskers span the rounds."""
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
    for at, (label, each) in enumerate(found.items()):
        middle, colour = median(each), theme.colour(label)
        ax.plot([min(each), max(each)], [at, at], color=colour, linewidth=1.5)
        ax.plot(middle, at, marker(label), color=colour, markersize=6)
        times = ratios(rows[label], rows[base], step) if base else []
        text = f"{rate(1e9 / middle)}" + (f"  ×{factor(median(times))}" if times else "")
        ax.annotate(text, (max(each), at), xytext=(7, -3), textcoords="offset points", fontsize=8, color=theme.ink)
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    ax.set_xlim(low / 1.1, high * (high / low) ** 0.28)
    logarithmic(ax.xaxis, ax.get_xlim(), as_rate)
    ax.set_yticks(range(len(found)), list(found), fontsize=8.5)
    for text in ax.get_yticklabels():
        text.set_color(theme.colour(text.get_text()) if text.get_text().startswith(("zlmdb", "raw")) else theme.ink)
        text.set_fontweight("bold" if text.get_text().startswith("zlmdb") else "normal")
    ax.set_title(step)
    ax.grid(axis="x", color=theme.faint, linewidth=0.5)
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)


def logarithmic(axis: Any, limits: tuple[float, float], write: Callable[[float], str]) -> None:
    """A few plain labels on a logarithmic axis: where it spans less than two decades, between the powers too."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = limits
    axis.set_major_locator(LogLocator(subs=(1.0,) if high / low > 100 else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))
    axis.set_minor_formatter(NullFormatter())


def as_rate(value: float) -> str:
    return rate(1e9 / value)


def as_number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:g}"


def as_bytes(value: float) -> str:
    return f"{value:.0f}"


def beside(ax: Any, at: float, marks: list[tuple[float, str]], write: Callable[[float], str]) -> None:
    """Write the figures of the marks on a line: the greatest on its right, the other on its left; the same once."""
    ordered = sorted(marks)
    if len({write(x) for x, _ in ordered}) == 1:
        ordered = ordered[-1:]
    for number, (x, colour) in enumerate(ordered):
        last = number == len(ordered) - 1
        ax.annotate(
            write(x), (x, at), xytext=(6 if last else -6, 0), textcoords="offset points", size=6.5, va="center",
            ha="left" if last else "right", color=colour,
        )  # fmt: skip


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
        shown = {step: found for step, found in shown.items() if found}
        heights = [len(found) + 2.4 for found in shown.values()]
        figure, axes = pyplot.subplots(
            len(shown), 1, figsize=(6.4, 0.215 * sum(heights) + 0.7), height_ratios=heights, layout="constrained",
            squeeze=False,
        )  # fmt: skip
        for ax, (step, found) in zip(axes[:, 0], shown.items()):
            first = next(iter(by_interpreter.values()))
            found.sort(key=lambda label: value(first, label, step) or 0, reverse=step == "bytes/object")
            told: dict[int, list[tuple[float, str]]] = {}
            for (name, rows), form, colour in zip(by_interpreter.items(), "oD", (theme.ours, theme.raw)):
                points = [(value(rows, label, step), at) for at, label in enumerate(found)]
                real = [(x, at) for x, at in points if x is not None]
                for x, at in real:
                    told.setdefault(at, []).append((x, colour))
                filled = form == "o"
                ax.plot(
                    [x for x, _ in real], [at for _, at in real], form, color=colour, label=name, markersize=6,
                    markerfacecolor=colour if filled else "none",
                )  # fmt: skip
            for at, marks in told.items():
                beside(ax, at, marks, as_bytes if step == "bytes/object" else lambda x: rate(1e9 / x))
            ax.set_yticks(range(len(found)), found, fontsize=8.5)
            ax.set_title(step)
            ax.grid(color=theme.faint, linewidth=0.5)
            ax.set_ylim(-0.6, len(found) - 0.1)
            ax.tick_params(axis="y", length=0)
            if step == "bytes/object":
                ax.margins(x=0.1)
                ax.set_xlim(left=0)
                ax.set_xlabel("bytes of an object, less is better", fontsize=8)
            else:
                ax.set_xscale("log")
                ax.margins(x=0.12)
                logarithmic(ax.xaxis, ax.get_xlim(), as_rate)
                ax.set_xlabel("per second, more is better", fontsize=8)
        handles, names = axes[0, 0].get_legend_handles_labels()
        legend = figure.legend(handles, names, loc="outside upper center", ncols=2, fontsize=8.5, frameon=False)
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
        styles = dict(zip(labels, ("-", "--", ":", "-.", (0, (5, 1)), (0, (1, 1)))))
        hues = dict(zip(labels, (theme.ours, theme.raw, "#CC79A7", theme.old, theme.other, theme.ink)))
        for ax, (title, found) in zip(axes.flat, panels.items()):
            places = list(dict.fromkeys(place for points in found.values() for place, _ in points))
            for label, points in found.items():
                ax.plot(
                    [places.index(place) for place, _ in points], [y for _, y in points], linestyle=styles[label],
                    marker=forms[label], color=hues[label], label=label, markersize=4.5, linewidth=1.4,
                )  # fmt: skip
            ax.set_yscale("log")
            logarithmic(ax.yaxis, ax.get_ylim(), as_number)
            ax.set_xticks(range(len(places)), places, fontsize=8)
            ax.set_title(title)
            ax.grid(color=theme.faint, linewidth=0.5)
            ax.set_ylabel(y_label, fontsize=8)
            ax.tick_params(axis="y", labelsize=8)
        for ax in list(axes.flat)[len(panels) :]:
            ax.set_visible(False)
        handles, names = axes.flat[0].get_legend_handles_labels()
        legend = figure.legend(handles, names, loc="outside upper center", ncols=2, fontsize=8, frameon=False)
        for text in legend.get_texts():
            text.set_color(theme.ink)
        figure.supxlabel(f"{x_label}. {foot}", fontsize=7.5)
        return figure, alt

    return paint


# -- what is drawn -----------------------------------------------------------------------------------------------------

NOT_DRAWN = (
    "zlmdb Json", "zlmdb Cbor", "zlmdb 26 Json", "zlmdb 26 Cbor", "zlmdb FlatBuffers, key by key",
    *(f"raw lmdb + zlmdb {codec}" for codec in ("codec", "Json", "Cbor", "FlatBuffers")),
)  # fmt: skip
"""In the tables: as bars they would crowd the charts."""

CONTESTS = {
    "fill_read": "The user of 11 fields: fill in transactions of 10,000, each synced; get at random; scan",
    "zds": "Documents (ZDS): write all, read all, look 1,000 up at random",
    "zippondb": "Persons (ZipponDB): populate in transactions of 1,000; queries without an index",
    "db_benchmark": "128 bytes by an integer key (db_benchmark): a transaction for each operation, or for 100",
    "db_benchmark_durable": "The same, every commit synced to the disk",
    "go_persist_full": "Reads and writes mixed (go-persist), every write synced to the disk",
    "transactions": "Small transactions: one operation each, without sync",
    "transactions_durable": "Small transactions, synced: threads, writes in flight, tasks of asyncio",
}


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
            name: {
                label: row
                for label, row in rows.items()
                # What ran on another interpreter than the one of the run says nothing of it.
                if label.startswith(("zlmdb", "raw lmdb")) and "runs on" not in row["note"]
            }
            for name, rows in found.items()
        }
        title = "Fill and read, on CPython and PyPy"
        yield f"{title}\n{'~' * len(title)}\n\n"
        steps = ["fill", "random get", "random get, one field", "scan"]
        yield drawing.draw("interpreters", pairs(ours, steps, foot, "Fill and read rates of CPython and PyPy"))


COMPARED = ("zlmdb", "raw lmdb + msgspec", "RocksDB + msgspec", "LevelDB + msgspec", "sqlite3, typed columns")
"""In the charts that have a line for each."""


def growth(saved: Saved, drawing: Drawing) -> Iterator[str]:
    sizes = saved.sizes("growth")
    if len(sizes) < 2:
        return
    panels: dict[str, dict[str, list[tuple[str, float]]]] = {}
    for step in ("get", "scan", "insert in order", "insert at random places", "count"):
        for size, measured in sorted(sizes.items()):
            for label in COMPARED:
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
    labels = (*COMPARED, "dict + lock")
    machine: dict[str, str] = {}
    panels: dict[str, dict[str, list[tuple[str, float]]]] = {}
    for workload, name in (("go_persist", "structs"), ("go_persist_strings", "strings")):
        size, measured = saved.largest(workload, least=3)
        if size:
            machine = measured["machine"]
        for label in labels if size else ():
            row = measured["rows"].get(label) or measured["rows"].get(label.replace("msgspec", "bytes"), {"steps": {}})
            store = label.removesuffix(" + msgspec")
            for step in row["steps"]:
                if step.startswith("80/20, "):
                    place = step.removeprefix("80/20, ").replace("processes", "proc.").partition(" thread")[0]
                    y = median(rates(row["steps"][step])) / 1000
                    panels.setdefault(f"{name}, {size:,} keys", {}).setdefault(store, []).append((place, y))
    if not panels:
        return
    title = "Reads and writes mixed (go-persist): threads and processes"
    yield f"{title}\n{'~' * len(title)}\n\n"
    foot = f"structs by msgspec. {machine['interpreter']}, {machine['cpu']}, {machine['date'][:10]}"
    yield drawing.draw("threads", lines(panels, "threads, or processes", "1,000 ops/s, more is better", foot, title))


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
        "operations": operations(saved), "beside": asked(saved),
        "commands": commands(saved), "front": [front.restructured(saved)],
    }  # fmt: skip
    for name, text in pages.items():
        (charts / f"{name}.rst").write_text("".join(text) or nothing, encoding="utf-8")


def readme(results: Path = RESULTS, page: Path = HERE.parent / "README.md") -> None:
    """Renew the table of the README, and the picture of the first page: reading objects, by few stores."""
    saved = Saved(results)
    size, measured = saved.largest("fill_read", least=3)
    rows = measured["rows"]
    labels = [label for label in ("zlmdb", *front.OTHERS.values()) if label in drawn(rows)]
    if size:
        foot = where(measured, size)
        Drawing(results).draw("readme", dots(rows, ["random get", "scan"], labels, foot, "Objects read a second"))
    front.renew(saved, page)


if __name__ == "__main__":
    build()
    readme()
