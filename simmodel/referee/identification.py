"""Which policy made a schedule: the share of its starts that each candidate explains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from simmodel.experiments.calls import map_calls
from simmodel.foundation.display import Cells, Shown, text_table
from simmodel.foundation.errors import InputError
from simmodel.referee.schedules import GivenSchedule, Schedule, schedule_of
from simmodel.referee.verification import Judgement, cluster_of, judge
from simmodel.scheduling.registry import labelled, policy as policy_of
from simmodel.systems.submissions import read_workload
from simmodel.work.table import Table

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from simmodel.platform.cluster import ClusterSpec
    from simmodel.runs.scenario import GivenPlatform
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.systems.submissions import GivenWork
    from simmodel.view.style import Size

__all__ = ["CANDIDATES", "Identification", "identify"]

CANDIDATES = (
    *("fcfs", "sjf", "ljf", "smallest", "largest", "wfp", "unicef", "f1", "f2", "f3", "f4"),
    *("easy", "easy-sjbf", "sjf+easy", "wfp+easy", "conservative", "conservative-keep", "best-fit"),
)
"""The policies that are tried by default."""


@attrs.frozen(eq=False, repr=False, slots=False)
class Identification(Shown):
    """The candidates, and the share of a schedule that each explains.

    Attributes
    ----------
    judgements
        one for each candidate, by label
    schedule
        the schedule beside its workload
    tolerance
        seconds by which a start may come later than a candidate wanted it
    """

    judgements: Mapping[str, Judgement]
    schedule: Schedule
    tolerance: float = 0.0

    @cached_property
    def shares(self) -> dict[str, float]:
        """The share of starts that each candidate explains, the highest first."""
        found = {name: each.explained(self.tolerance) for name, each in self.judgements.items()}
        return dict(sorted(found.items(), key=lambda each: -each[1]))

    @property
    def best(self) -> str:
        """The candidate that explains most."""
        return next(iter(self.shares))

    @property
    def judged(self) -> int:
        return min(len(each.jobs) for each in self.judgements.values())

    @cached_property
    def unexplained(self) -> float:
        """The share of starts that no candidate explains."""
        none = np.ones(self.judged, dtype=bool)
        for each in self.judgements.values():
            none &= ~each.explains(self.tolerance)
        return float(none.mean()) if len(none) else float("nan")

    @property
    def table(self) -> Table:
        """One row a candidate: ``policy`` and the shares of starts: ``explained, late, early, impossible``."""
        names = list(self.shares)
        columns: dict[str, Any] = {"policy": np.array(names, dtype=str), "explained": list(self.shares.values())}
        for kind in ("late", "early", "impossible"):
            columns[kind] = [float((self.judgements[name].jobs["kind"] == kind).mean()) for name in names]
        return Table(columns)

    def _cells(self) -> Cells:
        rows = [
            [row["policy"], *(f"{100 * row[name]:.4g} %" for name in self.table.names[1:])] for row in self.table.rows()
        ]
        return [["", "explained", "late", "early", "impossible"], *rows]

    def report(self) -> str:
        """Return the table, and the share that no candidate explains, as text."""
        starts = len(self.schedule.start)
        some = f"{self.judged:,} of " if self.judged < starts else ""
        head = f"{self.schedule.workload.name}: {some}{starts:,} starts"
        if self.tolerance:
            head += f", explained if at most {self.tolerance:g} s later than wanted"
        last = f"{100 * self.unexplained:.4g} % of the starts are explained by none of them"
        kinds = Counter(fault.kind for fault in self.schedule.faults)
        notes = [*self.schedule.notes, *(f"{kind}: {count:,}" for kind, count in kinds.items())]
        return "\n".join([head, *notes, "", *text_table(self._cells()), "", last])

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the shares that each candidate explains as JSON, and write them to ``path`` if given."""
        from simmodel.results.stores import json_text

        found = {"workload": self.schedule.workload.name, "starts": len(self.schedule.start), "judged": self.judged}
        return json_text({**found, "policies": list(self.table.rows()), "unexplained": self.unexplained}, path)

    def __str__(self) -> str:
        return self.report()

    def __repr__(self) -> str:
        best = self.best
        return f"<Identification of {self.schedule.workload.name}: {best} explains {100 * self.shares[best]:.4g} %>"

    def plot(
        self,
        most: int = 6,
        *,
        title: str | None = None,
        figsize: Size | None = None,
        style: str | None = None,
        save: str | Path | None = None,
    ) -> Figure:
        """Plot over time the share of starts that the best candidates explain.

        Parameters
        ----------
        most
            the number of candidates
        title, figsize
            of the figure
        """
        from simmodel.view.referee_plots import explained

        shown = {name: self.judgements[name] for name in list(self.shares)[:most]}
        curves = {name: (each.jobs["start"], each.explains(self.tolerance)) for name, each in shown.items()}
        return explained(curves, title=title, figsize=figsize, style=style, save=save)


class _Shared(NamedTuple):
    spec: ClusterSpec
    schedule: Schedule
    sample: int | None
    options: dict[str, Any]


def _judged(shared: _Shared, policy: PolicyLike) -> Judgement:
    return judge(shared.spec, shared.schedule, policy, polled=True, sample=shared.sample, **shared.options)


def identify(
    workload: GivenWork,
    schedule: GivenSchedule = None,
    platform: GivenPlatform = None,
    candidates: Mapping[str, PolicyLike] | Iterable[PolicyLike] = CANDIDATES,
    *,
    tolerance: float = 0.0,
    sample: int | None = None,
    executor: Executor | None = None,
    progress: bool = False,
    **options: Any,
) -> Identification:
    """Replay each state of a schedule under candidate policies, and return the starts that each of them explains.

    Candidates are asked at each start, too, also if nothing else happens then: real schedulers look now and then.

    Parameters
    ----------
    workload, schedule, platform
        as of :func:`~simmodel.referee.verification.verify`
    candidates
        the policies to try, or ``{label: policy}``
    tolerance
        seconds by which a start may come later than a policy wants it: real schedulers decide now and then
    sample
        how many of the starts to judge, in stretches of consecutive ones that are evenly spread over the schedule, each
        on the whole state of its instant; default: all
    executor
        runs the candidates; default: this process
    progress
        whether to show a progress bar, one step a candidate
    options
        ``decide_on``, ``event_order`` and ``estimates``, as of :func:`~simmodel.runs.scenario.simulate`

    Raises
    ------
    InputError
        a file cannot be read, the schedule is of other jobs, there is no candidate, or a name is unknown

    >>> from simmodel import Workload
    >>> log = Workload({"submit": [0, 1, 2], "run": [10, 5, 5], "processors": [3, 4, 1]}, processors=4)
    >>> found = identify(log, {1: 0, 2: 10, 3: 2}, candidates=["fcfs", "easy"])
    >>> found.best, found.shares["fcfs"] < 1
    ('easy', True)
    """
    if not 0 <= tolerance < float("inf"):
        raise InputError(f"must be a number >= 0 (s), got {tolerance!r}", place="tolerance")
    if sample is not None and not (isinstance(sample, int) and sample >= 1):
        raise InputError(f"must be a whole number from 1 on, got {sample!r}", place="sample")
    log = read_workload(workload)
    chosen = labelled(candidates, "policy", "policies", purpose=" to try", check=policy_of)
    shared = _Shared(cluster_of(platform, log), schedule_of(log, schedule), sample, options)
    found = map_calls(_judged, shared, list(chosen.values()), executor, progress)
    return Identification(dict(zip(chosen, found, strict=True)), shared.schedule, tolerance)
