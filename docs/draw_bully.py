"""Draws ``bully.png``: how placements slow light and heavy jobs on a dragonfly, for each draw of the jobs.

``python docs/draw_bully.py`` makes the runs, too, in some seconds.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

from simmodel.studies.bully import BULLY_PLACEMENTS, bully_claims, bully_study
from simmodel.view.style import COLOURS, INK, tidy

PICTURE = Path(__file__).parent.parent / "images" / "bully.png"


def draw() -> plt.Figure:
    """Return the picture: a panel a kind of job, a point a draw of the jobs, a line for their mean."""
    found = bully_study()
    for claim in bully_claims(found).rows():
        print(claim)
    figure, panels = plt.subplots(1, 2, figsize=(9.0, 3.6))
    for ax, kind in zip(panels, ("light", "heavy"), strict=True):
        for number, placement in enumerate(BULLY_PLACEMENTS):
            own = (found["placement"] == placement) & (found["kind"] == kind)
            values = found["slowdown"][own]
            x = [number + 0.025 * (place - len(values) / 2) for place in range(len(values))]
            ax.plot(x, values, "o", ms=4, color=COLOURS[number], alpha=0.7)
            ax.hlines(values.mean(), number - 0.25, number + 0.25, color=COLOURS[number])
            ax.annotate(f"{values.mean():.2f}", (number + 0.27, values.mean()), va="center", fontsize=9, color=INK)
        ax.set_title(f"{kind} jobs: time / time on a network that never binds", loc="left", fontsize=9.5)
        ax.set_xticks(range(len(BULLY_PLACEMENTS)), BULLY_PLACEMENTS)
        ax.set_xlim(-0.5, len(BULLY_PLACEMENTS) - 0.3)
        ax.set_ylim(0, None)
        tidy(ax)
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    mpl.use("agg")
    draw().savefig(PICTURE, dpi=110)
