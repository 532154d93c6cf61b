"""Draws ``live_twin.png``, SchedTwin's experiment on a real Slurm beside its simulation.

``python docs/draw_live_twin.py`` draws what ``live_twin.json`` has; with ``--run`` the four runs are made first, which
takes half an hour and a machine with Slurm (``.ci/schedulers``).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt

from simmodel.metrics.objective_scores import kiviat_of_measures, measured, started_shares
from simmodel.studies.schedtwin import PAPER_AREAS, PAPER_SHARES, schedtwin_run
from simmodel.view.plots import radar
from simmodel.view.style import COLOURS

NAMES = ("wfp", "fcfs", "sjf", "portfolio")
SHARED = ("wfp", "fcfs", "sjf")
HERE = Path(__file__).parent


def run() -> None:
    """Make the runs on Slurm, and keep their measures."""
    from tests.site.helpers.live_schedtwin import live_run

    found: dict[str, Any] = {"measures": {}, "shares": {}, "runs": {}}
    for name in NAMES:
        with TemporaryDirectory() as folder:
            live = live_run(name, Path(folder))
        found["measures"][name] = measured(live.record)
        found["runs"][name] = {
            "jobs": len(live.runs),
            "runs": sum(live.runs.values()),
            "released": live.released,
            "decisions": live.replay.decisions,
            "reproduced": live.replay.reproduced,
            "longest_wait": live.longest,
            "makespan": float(live.record.jobs["end"].max()),
        }
        print(name, found["runs"][name], flush=True)
        if name == "portfolio":
            shares = started_shares(live.record)
            found["shares"] = dict(zip(shares["policy"].tolist(), shares["share"].tolist(), strict=True))
        (HERE / "live_twin.json").write_text(json.dumps(found, indent=1) + "\n")


def draw() -> plt.Figure:
    """Return the picture: two radar charts, and the shares of jobs started by each policy."""
    live = json.loads((HERE / "live_twin.json").read_text())
    simulated = schedtwin_run(0)
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14.5, 4.8), gridspec_kw={"width_ratios": [1, 1, 0.9]})
    axes = ("wait_max", "slowdown_max", "wait_mean", "slowdown_mean")
    radar(simulated.chart, title="Simulated", ax=left)
    measures = [live["measures"][name] for name in NAMES]
    radar(kiviat_of_measures(NAMES, measures, axes), title="Real Slurm, 32 virtual nodes, times / 100", ax=middle)
    shares = simulated.shares
    columns = {
        "paper": PAPER_SHARES,
        "simulated": dict(zip(shares["policy"].tolist(), shares["share"].tolist(), strict=True)),
        "real Slurm": live["shares"],
    }
    for number, name in enumerate(SHARED):
        at = [group + 0.26 * (number - 1) for group in range(len(columns))]
        heights = [100 * each.get(name, 0.0) for each in columns.values()]
        bars = right.bar(at, heights, 0.24, label=name, color=COLOURS[NAMES.index(name)])
        right.bar_label(bars, fmt="%.0f", fontsize=8)
    right.set_xticks(range(len(columns)), list(columns))
    right.set_title("Jobs started by each policy (%)", loc="left", fontsize=10)
    right.spines[["top", "right"]].set_visible(False)
    right.legend(frameon=False, fontsize=8.5)
    figure.tight_layout()
    print("areas in the paper:", PAPER_AREAS)
    return figure


if __name__ == "__main__":
    if "--run" in sys.argv[1:]:
        run()
    mpl.use("agg")
    draw().savefig(HERE.parent / "images" / "live_twin.png", dpi=110)
