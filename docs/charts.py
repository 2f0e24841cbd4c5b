"""Draws the charts and writes the tables of the performance page, from the results saved in docs/results.

Sphinx runs it (see conf.py); what it makes goes to docs/_charts and is not committed. Run by hand, it also renews the
table of the README and the picture of the first page: ``python docs/charts.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import front
from beside import asked, links, zippondb
from saved import Rows, Saved, machine_of, rates, where
from tables import LEFT_OUT_STEPS, commands, figures, losses, operations
from targets import target_table

from benchmarks.report import factor, rate, steps_of
from benchmarks.results import common_base, per_operation, ratio

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

    def style(self, label: str) -> tuple[str, str]:
        """The colour and the form of a family of contenders."""
        if label.startswith("zlmdb 26"):
            return self.old, "s"
        if label.startswith("zlmdb"):
            return self.ours, "o"
        return (self.raw, "D") if label.startswith(("raw lmdb", "official", "Python")) else (self.other, "^")


THEMES = (
    Theme("light", "#222222", "#cccccc", "#0072B2", "#D55E00", "#009E73", "#777777"),
    Theme("dark", "#e6e6e6", "#4a4a4a", "#56B4E9", "#E69F00", "#2fc79a", "#a0a0a0"),
)

# -- drawing -----------------------------------------------------------------------------------------------------------

Paint = Callable[[Any, Theme], Any]
"""Makes a figure with pyplot."""


def recoloured(svg: str, theme: Theme) -> str:
    """A figure that was drawn in the first theme, in *theme*."""
    colours = {mine.lower(): its for mine, its in zip(THEMES[0][1:], theme[1:])}
    return re.sub(r"#[0-9a-f]{6}\b", lambda found: colours.get(found[0], found[0]).lower(), svg)


class Drawing:
    """Draws a figure once, and writes it in each theme."""

    def __init__(self, directory: Path) -> None:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as pyplot

        self.directory, self.pyplot = directory, pyplot
        directory.mkdir(parents=True, exist_ok=True)

    def draw(self, name: str, alt: str, paint: Paint) -> str:
        """The reStructuredText that shows the figure."""
        theme = THEMES[0]
        settings = {
            "text.color": theme.ink, "axes.edgecolor": theme.faint, "axes.labelcolor": theme.ink,
            "xtick.color": theme.ink, "ytick.color": theme.ink, "svg.hashsalt": "zlmdb", "svg.fonttype": "path",
            "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10,
            "axes.titleweight": "bold", "axes.titlelocation": "left", "xtick.minor.size": 0, "ytick.minor.size": 0,
            "axes.axisbelow": True, "grid.color": theme.faint, "grid.linewidth": 0.5,
            "figure.constrained_layout.use": True, "legend.frameon": False, "legend.labelcolor": theme.ink,
        }  # fmt: skip
        path = self.directory / f"{name}-{theme.name}.svg"
        with self.pyplot.rc_context(settings):
            figure = paint(self.pyplot, theme)
            figure.savefig(path, transparent=True, metadata={"Date": None})
            self.pyplot.close(figure)
        # To lay a figure out takes seconds: that of the other theme has the same lines in other colours.
        for other in THEMES[1:]:
            (self.directory / f"{name}-{other.name}.svg").write_text(
                recoloured(path.read_text("utf-8"), other), "utf-8"
            )
        return "".join(
            f".. image:: _charts/{name}-{theme.name}.svg\n   :class: only-{theme.name}\n   :alt: {alt}\n"
            f"   :width: 100%\n\n"
            for theme in THEMES
        )


class Mark(NamedTuple):
    """The rates of the rounds of one contender, and what is written beside them."""

    each: list[float]
    text: str


def dots(panels: dict[str, dict[str, list[Mark]]], foot: str, names: tuple[str, ...] = ()) -> Paint:
    """A panel for each operation, a line for each contender, fastest first; whiskers span the rounds.

    With *names*, which are told above, a line has a mark for each.
    """

    def paint(pyplot: Any, theme: Theme) -> Any:
        heights = [len(lines) + 2.2 for lines in panels.values()]
        figure, axes = pyplot.subplots(
            len(panels), 1, figsize=(4.6, 0.21 * sum(heights) + 0.6), height_ratios=heights, squeeze=False
        )
        for ax, (title, lines) in zip(axes[:, 0], panels.items()):
            ordered = sorted(lines, key=lambda label: median(lines[label][0].each))
            for at, label in enumerate(ordered):
                styles = [(theme.ours, "o"), (theme.raw, "D")] if names else [theme.style(label)]
                line = [(mark, *style) for mark, style in zip(lines[label], styles) if mark.each]
                line.sort(key=lambda one: median(one[0].each))
                ends = min(min(mark.each) for mark, *_ in line), max(max(mark.each) for mark, *_ in line)
                for number, (mark, colour, form) in enumerate(line):
                    low, high = min(mark.each), max(mark.each)
                    ax.plot([low, high], [at, at], color=colour, linewidth=1.5)
                    ax.plot(median(mark.each), at, form, color=colour, markersize=5.5)
                    last = number == len(line) - 1
                    ax.annotate(
                        mark.text, (ends[last], at), xytext=(6 if last else -6, 0), va="center",
                        ha="left" if last else "right", textcoords="offset points", fontsize=7.5,
                        color=colour if names else theme.ink,
                    )  # fmt: skip
            ax.set_xscale("log")
            low, high = ax.get_xlim()
            ax.set_xlim(low / ((high / low) ** 0.3 if names else 1.1), high * (high / low) ** 0.3)
            logarithmic(ax.xaxis, ax.get_xlim(), lambda value: rate(1e9 / value))
            ax.set_yticks(range(len(ordered)), ordered, fontsize=8)
            for text in ax.get_yticklabels() if not names else ():
                text.set_color(theme.style(text.get_text())[0] if theme.style(text.get_text())[1] != "^" else theme.ink)
                text.set_fontweight("bold" if text.get_text().startswith("zlmdb") else "normal")
            ax.set_ylim(-0.6, len(ordered) - 0.3)
            ax.set_title(title)
            ax.grid(axis="x")
            ax.tick_params(axis="y", length=0)
        figure.supxlabel(f"per second, more is better; {foot}".replace(". ", "\n"), fontsize=7)
        if names:
            handles = [pyplot.Line2D([], [], color=colour, marker=form, linestyle="", label=name)
                       for name, colour, form in zip(names, (theme.ours, theme.raw), "oD")]  # fmt: skip
            figure.legend(handles=handles, loc="outside upper center", ncols=2, fontsize=8)
        return figure

    return paint


def logarithmic(axis: Any, limits: tuple[float, float], write: Callable[[float], str]) -> None:
    """A few plain labels on a logarithmic axis: where it spans less than two decades, between the powers too."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = limits
    wide = high / low > 100
    axis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0), numticks=6 if wide else None))
    axis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))
    axis.set_minor_locator(NullLocator())  # they would have no length, and take a fifth of the time to draw


Points = dict[str, list[tuple[str, float]]]
"""The places on the x axis and the figures there, by label."""


def lines(panels: dict[str, Points], x_label: str, y_label: str, foot: str) -> Paint:
    """A panel each, a line a contender, over named places on the x axis."""
    labels = list(dict.fromkeys(label for found in panels.values() for label in found))

    def paint(pyplot: Any, theme: Theme) -> Any:
        figure, axes = pyplot.subplots(len(panels), 1, figsize=(4.6, 2.1 * len(panels) + 0.9), squeeze=False)
        hues = (theme.ours, theme.raw, "#CC79A7", theme.old, theme.other, theme.ink)
        styles = dict(zip(labels, zip(hues, "osD^vP", ("-", "--", ":", "-.", (0, (5, 1)), (0, (1, 1))))))
        for ax, (title, found) in zip(axes.flat, panels.items()):
            places = list(dict.fromkeys(place for points in found.values() for place, _ in points))
            for label, points in found.items():
                colour, form, dashes = styles[label]
                ax.plot(
                    [places.index(place) for place, _ in points], [y for _, y in points], linestyle=dashes,
                    marker=form, color=colour, label=label, markersize=4.5, linewidth=1.4,
                )  # fmt: skip
            ax.set_yscale("log")
            logarithmic(ax.yaxis, ax.get_ylim(), lambda value: f"{value:,.0f}" if value >= 10 else f"{value:g}")
            ax.set_xticks(range(len(places)), places, fontsize=8)
            ax.set_title(title)
            ax.grid()
            ax.set_ylabel(y_label, fontsize=8)
        handles, names = axes.flat[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=2, fontsize=8)
        figure.supxlabel(f"{x_label}. {foot}".replace(". ", "\n"), fontsize=7)
        return figure

    return paint


# -- what is drawn -----------------------------------------------------------------------------------------------------

NOT_DRAWN = (
    "zlmdb Json", "zlmdb Cbor", "zlmdb 26 Json", "zlmdb 26 Cbor", "zlmdb FlatBuffers, key by key",
    "zlmdb Pickle, plain dict",
    *(f"raw lmdb + zlmdb {codec}" for codec in ("codec", "Json", "Cbor", "FlatBuffers")),
    "RocksDB + pickle", "LevelDB + pickle", "zlmdb 26 FlatBuffers, NumPy",
)  # fmt: skip
"""In the tables: as marks they would crowd the charts."""

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


def titled(title: str, picture: str) -> str:
    return f"{title}\n{'~' * len(title)}\n\n{picture}"


def drawn(rows: Rows) -> list[str]:
    return [label for label in rows if label not in NOT_DRAWN and "absent" not in rows[label]]


def panels(rows: Rows, steps: Iterable[str], labels: Iterable[str]) -> dict[str, dict[str, list[Mark]]]:
    """A mark for each contender: its rate, and how many times that of the base of its step."""
    found: dict[str, dict[str, list[Mark]]] = {}
    for step in steps:
        base = common_base(rows, step)
        for label in labels:
            if step in rows[label]["steps"]:
                each = rates(rows[label]["steps"][step])
                times = ratio(rows[label], rows[base], step) if base else None
                text = f"{rate(1e9 / median(each))}" + ("" if times is None else f"  ×{factor(times)}")
                found.setdefault(step, {})[label] = [Mark(each, text)]
    return found


def contest(saved: Saved, drawing: Drawing, workload: str) -> Iterator[str]:
    size, measured = saved.largest(workload)
    rows, title = measured["rows"], CONTESTS[workload]
    steps = [step for step in steps_of(rows) if not step.startswith(LEFT_OUT_STEPS)]
    if size:
        paint = dots(panels(rows, steps, drawn(rows)), where(measured, size))
        yield titled(title, drawing.draw(workload, f"{title}: rates of each store", paint))


def interpreters(saved: Saved, drawing: Drawing, workload: str, title: str, steps: Iterable[str]) -> Iterator[str]:
    """CPython beside PyPy, at the largest size that both have: two marks on the line of each contender."""
    sizes = [saved.sizes(workload, kind) for kind in ("cpython", "pypy")]
    shared = set(sizes[0]) & set(sizes[1])
    if not shared:
        return
    size = max(shared)
    both = [measured[size] for measured in sizes]
    found: dict[str, dict[str, list[Mark]]] = {}
    for step in steps:
        for label in dict.fromkeys(label for measured in both for label in drawn(measured["rows"])):
            size_of = both[0]["rows"].get(label, {}).get("object_bytes") if step == "user: encode" else None
            # What ran on another interpreter than the one of the run says nothing of it.
            rows = [measured["rows"].get(label, {"steps": {}, "note": ""}) for measured in both]
            each = [rates(row["steps"][step]) if step in row["steps"] and "runs on" not in row["note"] else []
                    for row in rows]  # fmt: skip
            if each[0] and (workload == "serializers" or label.startswith(("zlmdb", "raw lmdb"))):
                marks = [Mark(one, rate(1e9 / median(one)) if one else "") for one in each]
                found.setdefault(step, {})[label + (f" ({size_of:.0f} bytes)" if size_of else "")] = marks
    names = tuple(measured["machine"]["interpreter"] for measured in both)
    yield titled(title, drawing.draw(workload + "-both", title, dots(found, where(both[0], size), names)))


COMPARED = ("zlmdb", "raw lmdb + msgspec", "RocksDB + msgspec", "LevelDB + msgspec", "sqlite3, typed columns")
"""In the charts that have a line for each."""


def growth(saved: Saved, drawing: Drawing) -> Iterator[str]:
    sizes = dict(sorted(saved.sizes("growth").items()))
    found: dict[str, Points] = {}
    for step in ("get", "scan", "insert in order", "insert at random places", "count"):
        for size, measured in sizes.items():
            for label in COMPARED:
                row = measured["rows"].get(label, {"steps": {}})
                if step in row["steps"]:
                    y = median(per_operation(row["steps"][step])) / 1000
                    found.setdefault(step, {}).setdefault(label, []).append((f"{size:,}", y))
    if len(sizes) > 1:
        title, size = "How the cost of an operation grows with the number of records", max(sizes)
        paint = lines(found, "number of records", "µs, less is better", machine_of(sizes[size]))
        yield titled(title, drawing.draw("growth", title, paint))


def threads(saved: Saved, drawing: Drawing) -> Iterator[str]:
    found: dict[str, Points] = {}
    foot = ""
    for workload, name in (("go_persist", "structs"), ("go_persist_strings", "strings")):
        size, measured = saved.largest(workload, least=3)
        foot = machine_of(measured) if size else foot
        for label in (*COMPARED, "dict + lock"):
            row = measured["rows"].get(label) or measured["rows"].get(label.replace("msgspec", "bytes"), {"steps": {}})
            for step in row["steps"]:
                if step.startswith("80/20, "):
                    place = step.removeprefix("80/20, ").replace("processes", "proc.").partition(" thread")[0]
                    y = median(rates(row["steps"][step])) / 1000
                    store = label.removesuffix(" + msgspec")
                    found.setdefault(f"{name}, {size:,} keys", {}).setdefault(store, []).append((place, y))
    if found:
        title = "Reads and writes mixed (go-persist): threads and processes"
        paint = lines(found, "threads, or processes", "1,000 per s, more is better", foot)
        yield titled(title, drawing.draw("threads", title, paint))


def build(results: Path = RESULTS, charts: Path = CHARTS) -> None:
    """Write every chart, and the reStructuredText that the pages include."""
    saved, drawing = Saved(results), Drawing(charts)
    formats = ("user: encode", "user: decode", "small record: encode", "small record: decode")
    reads = ("fill", "random get", "random get, one field", "scan")
    parts = [*(part for workload in CONTESTS for part in contest(saved, drawing, workload))]
    parts += [*growth(saved, drawing), *threads(saved, drawing)]
    parts += interpreters(saved, drawing, "serializers", "Serializers, on CPython and PyPy", formats)
    parts += interpreters(saved, drawing, "fill_read", "Fill and read, on CPython and PyPy", reads)
    pages = {
        "charts": parts, "figures": figures(saved), "losses": losses(saved), "targets": target_table(saved),
        "operations": operations(saved), "beside": asked(saved), "zippondb": [*zippondb(saved), *links(saved)],
        "commands": commands(saved), "front": [front.restructured(saved)],
    }  # fmt: skip
    for name, text in pages.items():
        (charts / f"{name}.rst").write_text("".join(text) or "No results are saved.\n\n", encoding="utf-8")


def readme(results: Path = RESULTS, page: Path = HERE.parent / "README.md") -> None:
    """Renew the table of the README, and the picture of the first page: reading objects, by few stores."""
    saved = Saved(results)
    size, measured = saved.largest("fill_read", least=3)
    rows = measured["rows"]
    labels = [label for label in ("zlmdb", *front.OTHERS.values()) if label in drawn(rows)]
    if size:
        paint = dots(panels(rows, ["random get", "scan"], labels), where(measured, size))
        Drawing(results).draw("readme", "Objects read a second", paint)
    front.renew(saved, page)


if __name__ == "__main__":
    build()
    readme()
