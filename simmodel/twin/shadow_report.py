"""What a shadow found: how well a policy explains and foretells the starts of a scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import attrs
import numpy as np

from simmodel.display import Cells, Shown, text_table
from simmodel.errors import InputError
from simmodel.metrics.report import duration
from simmodel.work.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simmodel.metrics.statistics import Interval
    from simmodel.view.style import Size

__all__ = ["Alarm", "ShadowReport"]


class Alarm(NamedTuple):
    """The mirrored policy has ceased to explain the starts: the instant (s), the decision, and the share explained."""

    at: float
    decision: int
    explained: float


@attrs.frozen(eq=False, repr=False)
class ShadowReport(Shown):
    """How well a mirrored policy explains and foretells the starts of a scheduler.

    Attributes
    ----------
    policy
        its name
    jobs
        one row a start: ``job``, ``submit``, ``start``, ``wanted`` (s, by the policy; nan: not by then), ``kind``
        (``same``, ``late``, ``early``), ``foretold`` (s, at the submission), ``foretold_there`` (s, by the scheduler)
    decisions, alarms
        how often the policy was asked; when it ceased to explain the starts
    advised, gain
        the advised policy, and by how much the mean wait would have been shorter under it (s)
    """

    policy: str
    jobs: Table
    decisions: int
    alarms: tuple[Alarm, ...] = ()
    advised: str | None = None
    gain: Interval | None = None

    @property
    def explained(self) -> float:
        """The share of starts that the policy explains."""
        return float((self.jobs["kind"] == "same").mean()) if len(self.jobs) else float("nan")

    def foretold(self, within: float, *, there: bool = False) -> float:
        """Return the share of foretold starts that came within so many seconds; ``there``: as the scheduler told."""
        known = self.jobs["foretold_there" if there else "foretold"]
        error = np.abs(self.jobs["start"] - known)[~np.isnan(known)]
        return float((error <= within).mean()) if len(error) else float("nan")

    def _cells(self) -> Cells:
        kinds = self.jobs["kind"]
        rows = [["", "value"], ["starts", f"{len(kinds):,}"], ["decisions", f"{self.decisions:,}"]]
        rows.append([f"explained by {self.policy}", _percent(self.explained)])
        rows += [[f"{kind} starts", f"{int((kinds == kind).sum()):,}"] for kind in ("late", "early")]
        for whose, there in (("", False), (" by the scheduler", True)):
            if not np.isnan(self.foretold(60.0, there=there)):
                rows += [
                    [f"foretold{whose} within {text}", _percent(self.foretold(seconds, there=there))]
                    for seconds, text in ((60.0, "1 min"), (600.0, "10 min"))
                ]
        rows.append(["alarms", f"{len(self.alarms):,}"])
        if self.gain is not None:
            shorter = f"{duration(abs(self.gain.mean))} ± {duration(self.gain.half_width)}"
            rows.append(
                [f"mean wait under {self.advised}", f"{shorter} {'shorter' if self.gain.mean >= 0 else 'longer'}"]
            )
        return rows

    def summary(self) -> str:
        """Return the figures as text."""
        lines = text_table(self._cells())[1:]
        lines += [
            f"alarm at {each.at:.10g} s, after {each.decision:,} decisions: {self.policy} explains "
            f"{_percent(each.explained)} of the last starts"
            for each in self.alarms[:5]
        ]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<ShadowReport by {self.policy}: {_percent(self.explained)} of {len(self.jobs):,} starts explained>"

    def plot(self, *, title: str | None = None, figsize: Size | None = None) -> Figure:
        """Plot over time which starts are explained, and how late or early the others are."""
        from simmodel.view.referee_plots import departures

        if not len(self.jobs):
            raise InputError("must have starts, got none", place="events")
        return departures(self, title=title, figsize=figsize)


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"
