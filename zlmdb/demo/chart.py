"""The figures as a picture."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .measure import Figures

# Okabe and Ito's colours, told apart with every kind of colour vision. https://jfly.uni-koeln.de/color/
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
_GREY = "#444444"
_PANELS = (
    ("fill", "Fill", "records/s", "longer is faster"),
    ("read", "Random read", "records/s", "longer is faster"),
    ("scan", "Scan", "records/s", "longer is faster"),
    ("value_bytes", "Size of a value", "bytes/record", "shorter is smaller"),
)


def save_chart(path: Path, figures: Sequence[Figures], *, title: str, fill_note: str, footer: str) -> None:
    """Draw *figures* into the PNG file *path*. *fill_note* stands beside the title of the fill rates."""
    # Not pyplot, which would choose a window system: the Agg canvas draws into memory, with or without a display.
    # The libraries' own types are partial, so they are Any here.
    figure_module: Any = importlib.import_module("matplotlib.figure")
    agg: Any = importlib.import_module("matplotlib.backends.backend_agg")
    figure = figure_module.Figure(figsize=(12, 6.75), dpi=120, layout="constrained")
    agg.FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=16, fontweight="bold")
    for axes, (field, name, unit, reading) in zip(figure.subplots(2, 2).flat, _PANELS):
        _draw_panel(axes, [one.format for one in figures], [getattr(one, field) for one in figures])
        axes.set_title(name, loc="left", fontweight="bold")
        axes.set_xlabel(f"{unit} ({reading})", color=_GREY)
        if field == "fill":
            axes.set_title(fill_note, loc="right", fontsize=9, color=_GREY)
    figure.supxlabel(footer, fontsize=10, color=_GREY)
    figure.get_layout_engine().set(h_pad=0.15, w_pad=0.15)  # inches
    figure.savefig(path, format="png")


def _draw_panel(axes: Any, names: Sequence[str], values: Sequence[float]) -> None:
    positions = range(len(names))
    colours = [_COLOURS[position % len(_COLOURS)] for position in positions]
    bars = axes.barh(positions, values, color=colours, height=0.7)
    axes.bar_label(bars, labels=[f"{value:,.0f}" for value in values], padding=4)
    axes.set_yticks(positions, labels=names)
    axes.invert_yaxis()  # the first one on top
    axes.set_xlim(0, max(values) * 1.15)  # room for the numbers behind the bars
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.locator_params(axis="x", nbins=5)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
