"""The report of a shadow: how well a policy explains and foretells the starts of a scheduler."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import attrs
import numpy as np

from simmodel.foundation.display import Cells, Shown, counted, text_table
from simmodel.foundation.errors import InputError
from simmodel.metrics.report import duration
from simmodel.work.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simmodel.metrics.statistics import Interval
    from simmodel.view.style import Size

__all__ = ["Alarm", "ShadowReport"]


_MARKS = 5  # that are named
_WITHIN = ((60.0, "1 min"), (600.0, "10 min"))


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
        (``same``, ``late``, ``early``), ``foretold`` (s, forecast at its submission; nan: it had started by then),
        ``foretold_there`` (s, the first forecast of the scheduler; nan: none), ``unmodelled`` (the properties
        of the job that the mirror does not model, separated by ``"; "``)
    decisions, alarms
        how often the policy was asked; when it ceased to explain the starts
    advised, shorter, gain
        the advised policy, by how much the mean wait would have been shorter under it (s), and the interval of that;
        ``None`` if the jobs are too few for one (:func:`~simmodel.metrics.statistics.batch_means`)
    """

    policy: str
    jobs: Table
    decisions: int
    alarms: tuple[Alarm, ...] = ()
    advised: str | None = None
    shorter: float | None = None
    gain: Interval | None = None

    @property
    def explained(self) -> float:
        """The share of starts that the policy explains."""
        return float((self.jobs["kind"] == "same").mean()) if len(self.jobs) else float("nan")

    def foretold(self, within: float, *, there: bool = False, both: bool = False) -> float:
        """Return the share of foretold starts that came within a time; nan if none was foretold.

        Parameters
        ----------
        within
            s, before or after the start
        there
            of the forecasts of the scheduler
        both
            of the jobs that both foretold
        """
        ours, theirs = self.jobs["foretold"], self.jobs["foretold_there"]
        known = theirs if there else ours
        error = np.abs(self.jobs["start"] - known)[~np.isnan(ours + theirs if both else known)]
        return float((error <= within).mean()) if len(error) else float("nan")

    def _cells(self) -> Cells:
        kinds = self.jobs["kind"]
        rows = [["", "value"], ["starts", f"{len(kinds):,}"], ["decisions", f"{self.decisions:,}"]]
        rows.append([f"explained by {self.policy}", _percent(self.explained)])
        rows += [[f"{kind} starts", f"{int((kinds == kind).sum()):,}"] for kind in ("late", "early")]
        ours, theirs = ~np.isnan(self.jobs["foretold"]), ~np.isnan(self.jobs["foretold_there"])
        rows.append(["foretold starts", f"{int(ours.sum()):,} of {len(kinds):,}"])
        rows += self._shares("", False)
        if (ours & theirs).any():
            rows.append(["foretold by the scheduler too", f"{int((ours & theirs).sum()):,}"])
            rows += [*self._shares(", of these", False, both=True), *self._shares(" by the scheduler", True, both=True)]
        if marked := int((self.jobs["unmodelled"] != "").sum()):
            rows.append(["starts not modelled in full", f"{marked:,} of {len(kinds):,}"])
        rows.append(["alarms", f"{len(self.alarms):,}"])
        if self.shorter is not None:
            known = " (too few jobs for an interval)" if self.gain is None else f" ± {duration(self.gain.half_width)}"
            said = f"{duration(abs(self.shorter))}{known} {'shorter' if self.shorter >= 0 else 'longer'}"
            rows.append([f"mean wait under {self.advised}", said])
        return rows

    def _shares(self, whose: str, there: bool, both: bool = False) -> list[list[str]]:
        """Return the shares of starts that were foretold well, if any was foretold."""
        found = [(text, self.foretold(within, there=there, both=both)) for within, text in _WITHIN]
        return [[f"foretold{whose} within {text}", _percent(share)] for text, share in found if share == share]

    def summary(self) -> str:
        """Return the figures as text."""
        lines = text_table(self._cells())[1:]
        marks = Counter(mark for text in self.jobs["unmodelled"].tolist() if text for mark in text.split("; "))
        lines += [f"not modelled: {mark}: {counted(count, 'start')}" for mark, count in marks.most_common(_MARKS)]
        if len(marks) > _MARKS:
            lines.append(f"not modelled: {len(marks) - _MARKS:,} more, in the table of starts")
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
