"""Draws ``layers.svg``, the packages of simmodel in their order: ``python docs/draw_layers.py``."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch

# From the first row of the order of packages to the last: colour, packages, and what they are for.
BANDS = (
    ("#e8edf3", ("foundation",), "errors, display, units, files, classes by name"),
    ("#e8edf3", ("environment",), "SimPy's environment with what computing systems need"),
    ("#dbe9f6", ("work", "platform"), "values: jobs, tasks and workloads; specs of all parts, TOML"),
    ("#c3dcf0", ("resources",), "live parts: nodes, processors, memory pools, links, storages"),
    ("#a9cfe8", ("scheduling",), "policy protocol, scheduler process, registry, waiting work"),
    ("#a9cfe8", ("policies", "predictors"), "orders, backfilling, mapping, planners; run times"),
    ("#d5ecd4", ("records", "metrics"), "what happened, as columns; functions of it"),
    ("#d5ecd4", ("formats", "generators", "catalogue"), "readers and writers; synthetic work; bundled files by name"),
    ("#d5ecd4", ("view", "results"), "plots; records with metrics, plots and files"),
    ("#fde8c4", ("snapshots",), "states of systems as plain values, JSON"),
    ("#fbd7a0", ("systems",), "cluster, machine, broker, grid: the life of work"),
    ("#f9c6b0", ("runs", "futures"), "simulate, start, Scenario; what_if"),
    ("#f9c6b0", ("experiments", "studies", "learn"), "many runs; papers; learning agents"),
    ("#f9c6b0", ("referee", "testing"), "schedules judged; checks of what users add"),
    ("#eeeeee", ("commands", "extending", "cli"), "the command line; for packages beside"),
    ("#efe3f5", ("simmodel_site",), "a package beside: a twin, Slurm's rules"),
)
WIDTH, HEIGHT, GAP, BOX = 10.2, 0.62, 0.12, 1.38


def draw() -> plt.Figure:
    """Return the drawing: one band per line, the foundations at the bottom."""
    figure, axes = plt.subplots(figsize=(9.6, 8.6))
    for i, (colour, packages, purpose) in enumerate(BANDS):
        y = i * (HEIGHT + GAP)
        axes.add_patch(_box(0.0, y, WIDTH, colour, "none"))
        for j, name in enumerate(packages):
            width = max(BOX, 0.13 * len(name))
            axes.add_patch(_box(0.12 + j * (BOX + 0.1), y + 0.09, width, "white", "#5b6b7b", HEIGHT - 0.18))
            axes.text(0.12 + j * (BOX + 0.1) + width / 2, y + HEIGHT / 2, name, ha="center", va="center", weight="bold")
        axes.text(4.72, y + HEIGHT / 2, purpose, va="center", color="#333333")
    top = len(BANDS) * (HEIGHT + GAP) - GAP
    axes.annotate("", (-0.3, 0.0), (-0.3, top), arrowprops={"arrowstyle": "-|>", "color": "#333333", "lw": 1.4})
    axes.text(-0.5, top / 2, "imports", rotation=90, ha="center", va="center", color="#333333")
    axes.set(xlim=(-0.7, WIDTH + 0.1), ylim=(-0.1, top + 0.1))
    axes.axis("off")
    figure.tight_layout(pad=0.3)
    return figure


def _box(x: float, y: float, width: float, colour: str, edge: str, height: float = HEIGHT) -> FancyBboxPatch:
    shape = "round,pad=0,rounding_size=0.08"
    return FancyBboxPatch((x, y), width, height, boxstyle=shape, facecolor=colour, edgecolor=edge)


if __name__ == "__main__":
    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "simmodel", "font.family": "sans-serif", "font.size": 10}
    path = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).with_name("layers.svg")
    draw().savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=90)
