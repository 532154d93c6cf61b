"""Mapping by estimates: work goes where it is expected to start, to end or to run first.

Sources: see :mod:`simmodel.policies.mapping`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.policies.mapping import IndexedLowest, Lowest, Rule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.policies.load_index import SiteColumns
    from simmodel.scheduling.protocol import View
    from simmodel.work.job import LiveJob
    from simmodel.work.livetask import LiveTask

__all__ = ["EarliestFinish", "EarliestStart", "FastestExecution", "GreedyDS"]


class EarliestStart(Lowest):
    """Assign work to the place where it is expected to start first; with simulations as estimates this is SGS-W.

    Parameters
    ----------
    ties, name
        as in :class:`Lowest`
    simulated
        whether to ask for simulations as estimates where those of the system are quick ones

    >>> EarliestStart().name
    'earliest-start'
    """

    name = "earliest-start"

    def __init__(self, ties: str | Rule = "first", *, name: str | None = None, simulated: bool = False) -> None:
        super().__init__(ties, name=name)
        self.simulated = simulated

    def figures(self, view: View, work: LiveJob | LiveTask, places: Sequence[Any]) -> list[float]:
        """Return the estimated starts (s)."""
        ask = view.foresee if self.simulated else view.estimate
        return [ask(work, place).start for place in places]


class EarliestFinish(IndexedLowest):
    """Assign work to the place where it is expected to end first, after start, setup, transfers and run.

    With simulations as estimates this is simulation-guided scheduling by turnaround (SGS-T).

    Parameters
    ----------
    ties, name
        as in :class:`Lowest`
    simulated
        whether to ask for simulations as estimates where those of the system are quick ones

    >>> EarliestFinish("least-loaded").name
    'earliest-finish'
    """

    name = "earliest-finish"

    def __init__(self, ties: str | Rule = "first", *, name: str | None = None, simulated: bool = False) -> None:
        super().__init__(ties, name=name)
        self.simulated = simulated

    def indexed(self, view: View) -> bool:
        """Return whether the system has quick estimates, too, and only the first of tied places matters."""
        return view.simulated is not None and self.ties == "first" and type(self) is EarliestFinish

    def find(self, view: View, index: SiteColumns, work: Any, among: NDArray[np.bool_] | None) -> list[int]:
        """Return the number of the place with the earliest estimated end."""
        places: Sequence[Any] = index.places
        transfer = np.array([place.transfer(work) for place in places]) if work.needs_files else 0.0
        if self.simulated:
            run = places[0].nominal_run(work) / np.array([place.top_speed for place in places])
            starts = np.array([place.earliest_start(work) for place in places])
            return [_first_by_bounds(view, work, places, starts + transfer + run, among)]
        run = places[0].nominal_run(work) / index.speed
        best = index.earliest(
            view.now, work.processors, transfer, run, lambda i: view.estimate(work, places[i]).finish, among
        )
        view.estimate(work, places[best])  # for the record
        return [best]

    def figures(self, view: View, work: LiveJob | LiveTask, places: Sequence[Any]) -> list[float]:
        """Return the estimated ends (s)."""
        ask = view.foresee if self.simulated else view.estimate
        estimates = [ask(work, place) for place in places]
        return [start + setup + transfer + run for start, setup, transfer, run in estimates]


def _first_by_bounds(
    view: View, work: Any, places: Sequence[Any], bounds: NDArray[np.float64], among: NDArray[np.bool_] | None
) -> int:
    """Return the number of the first place with the earliest end by simulation, given the earliest possible ends.

    Simulates no place that cannot end the work before the best one found: where many are idle, that is one.
    """
    best: tuple[float, int] | None = None
    ends = bounds.tolist()
    for i in np.argsort(bounds, kind="stable").tolist():
        if among is not None and not among[i]:
            continue
        if best is not None and (ends[i], i) > best:
            break
        start, setup, transfer, run = view.foresee(work, places[i])
        found = start + setup + transfer + run, i
        if best is None or found < best:
            best = found
    assert best is not None
    return best[1]


class FastestExecution(Lowest):
    """Assign each task to the processor that is expected to run it fastest, whatever its queue (GreedyET of HetSim).

    >>> FastestExecution().name
    'greedy-et'
    """

    name = "greedy-et"
    decides = "tasks"

    def candidates(self, view: View) -> Sequence[Any]:
        """Return the first place of each spec, as places of one spec are equally fast."""
        first: dict[Any, Any] = {}
        for place in view.places:
            first.setdefault(id(getattr(place, "spec", place)), place)
        return list(first.values())

    def figures(self, view: View, work: LiveJob | LiveTask, places: Sequence[Any]) -> list[float]:
        """Return the expected run times (s)."""
        return [place.expected_run(work) for place in places]


class GreedyDS(Lowest):
    """Assign each task where setup, transfers and run take least, whatever the queue there (GreedyDS of HetSim).

    Setup includes a reconfiguration if another family is loaded now, whatever the queue ends with; transfers are those
    of data not in the place's pool now.

    >>> GreedyDS().name
    'greedy-ds'
    """

    name = "greedy-ds"
    decides = "tasks"

    def figures(self, view: View, work: LiveJob | LiveTask, places: Sequence[Any]) -> list[float]:
        """Return the seconds for which the task would hold each place."""
        return [
            place.expected_setup(work, now=True) + place.expected_transfer(work) + place.expected_run(work)
            for place in places
        ]
