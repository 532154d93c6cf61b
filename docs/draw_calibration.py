"""Draws ``calibration.png``, the search of each method for the speeds and overheads of fifty sites.

``python docs/draw_calibration.py`` draws the losses in ``draw_calibration.json``; with ``--run`` the searches are made
first, or those of the methods named after it, which takes a quarter of an hour.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from time import process_time

import attrs
import matplotlib.pyplot as plt
import numpy as np

from simmodel.experiments import calibrate
from simmodel.experiments.calibration.fitting import times_of
from simmodel.view.calibration_plots import convergence
from simmodel.view.style import GREY
from simmodel.work.table import Table

METHODS = {"random": "random", "grid": "grid", "tpe": "TPE", "gp": "Gaussian process", "cmaes": "CMA-ES"}
TRIALS = {"gp": 30}  # its time between trials grows
DEFAULT = 60
KEPT = Path(__file__).with_suffix(".json")


@attrs.frozen
class Kept:
    """The best loss over the trials of a search."""

    convergence: Table


def run(methods: Sequence[str]) -> None:
    """Make the searches, and keep their best losses; ``hidden`` is the loss of the true values, that of the noise."""
    from tests.helpers.calibration_cases import hidden_grid

    case = hidden_grid(50, 200)
    for method in methods:
        begun = process_time()
        budget = TRIALS.get(method, DEFAULT)
        losses = ["walltime", "queue_time"]
        each = calibrate(case.model, case.record, case.parameters, losses, method, budget=budget, intervals=False)
        found = json.loads(KEPT.read_text()) if KEPT.exists() else {}
        found["hidden"] = [each.fit.losses(times_of(each.fit, case.hidden))["loss"]]
        found[method] = each.convergence["best"].round(5).tolist()
        print(f"{method}: {found[method][-1]:.1%}, {process_time() - begun:.0f} s", flush=True)
        KEPT.write_text(json.dumps(found) + "\n")


def draw() -> plt.Figure:
    """Return the picture: a line per method, and the loss of the true values."""
    kept = json.loads(KEPT.read_text())
    lines = {
        label: Kept(Table({"number": np.arange(len(kept[method])), "best": np.array(kept[method])}))
        for method, label in METHODS.items()
        if method in kept
    }
    figure = convergence(lines, title="Fifty sites: the best loss of each method", figsize=(7.4, 4.2))
    [floor] = kept["hidden"]
    ax = figure.axes[0]
    ax.axhline(floor, color=GREY, linewidth=0.8, linestyle="--")
    ax.annotate(f"true values: {floor:.1%}", (1, floor), (0, 3), textcoords="offset points", color=GREY)
    return figure


if __name__ == "__main__":
    if "--run" in sys.argv:
        run(sys.argv[2:] or list(METHODS))
    path = KEPT.parents[1] / "images" / "calibration.png"
    draw().savefig(path, dpi=150)
    print(f"wrote {path}")
