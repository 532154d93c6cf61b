"""Draws ``malleable_study.png``: turnaround and waits by the share of malleable jobs, on a year of Theta.

``python docs/draw_malleable.py`` draws what ``malleable_study.json`` has; ``--run LOG`` makes the runs first, which
takes some minutes for the 23,911 jobs of ``theta_2022.swf.gz``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

from simmodel import load_workload
from simmodel.studies import malleable_study
from simmodel.studies.malleable import MALLEABLE_POLICIES, PAPER_GAINS
from simmodel.view.style import COLOURS, GREY, INK, tidy

HERE = Path(__file__).parent
TITLES = {"turnaround": "Mean turnaround / that under EASY", "wait": "Mean wait / that under EASY"}


def run(path: str) -> None:
    """Make the runs, and keep the measures of each."""
    log = load_workload(path)
    table = malleable_study(log, seeds=10, each=True, progress=True)
    columns = {
        name: [round(each, 4) if isinstance(each, float) else each for each in table[name].tolist()]
        for name in table.names
    }
    found = {"log": log.name, "jobs": len(log), "processors": log.processors, "runs": columns}
    (HERE / "malleable_study.json").write_text(json.dumps(found, indent=1) + "\n")


def of_runs(runs: dict[str, list[float]], policy: str, measure: str) -> dict[float, list[float]]:
    """Return the values of a measure under a policy, by share."""
    found: dict[float, list[float]] = {0.0: [1.0]}
    for name, share, value in zip(runs["policy"], runs["share"], runs[measure], strict=True):
        if name == policy:
            found.setdefault(share, []).append(value)
    return dict(sorted(found.items()))


def draw() -> plt.Figure:
    """Return the picture: a panel a measure, a line a policy, the range of the draws, and the ranges of the paper."""
    study = json.loads((HERE / "malleable_study.json").read_text())
    figure, panels = plt.subplots(1, len(TITLES), figsize=(10.5, 4.0), sharey=True)
    for ax, (measure, title) in zip(panels, TITLES.items(), strict=True):
        least, most = PAPER_GAINS[measure]
        ax.axhspan(1 - most, 1 - least, color=GREY, alpha=0.18, lw=0)
        ax.annotate(
            "range in the paper", (99, 1 - least), (0, -4), textcoords="offset points",
            ha="right", va="top", fontsize=8, color=INK,
        )  # fmt: skip
        for number, policy in enumerate(MALLEABLE_POLICIES):
            found = of_runs(study["runs"], policy, measure)
            x = [100 * share for share in found]
            means = [sum(values) / len(values) for values in found.values()]
            low, high = ([one(values) for values in found.values()] for one in (min, max))
            colour, style = COLOURS[number], ("-", "-", "--")[number]
            ax.fill_between(x, low, high, color=colour, alpha=0.2, lw=0)
            ax.plot(x, means, style, marker="o", ms=4, color=colour, label=policy)
        ax.set_title(title, loc="left", fontsize=10)
        ax.set_xticks([0, 20, 50, 100])
        ax.set_xlabel("malleable jobs, %")
        ax.set_ylim(0, 1.1)
        tidy(ax)
    panels[0].legend(frameon=False, fontsize=8.5, labelcolor=INK, loc="lower left")
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    if "--run" in sys.argv[1:]:
        run(sys.argv[sys.argv.index("--run") + 1])
    mpl.use("agg")
    draw().savefig(HERE.parent / "images" / "malleable_study.png", dpi=110)
