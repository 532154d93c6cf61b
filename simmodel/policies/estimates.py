"""Mapping by estimates: work goes where it is expected to start, to end or to run first.

Sources: see :mod:`simmodel.policies.mapping`.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.policies.mapping import IndexedLowest, Lowest, Rule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.policies.load_index import SiteColumns
    from simmodel.scheduling.protocol import Place, View
    from simmodel.work.job import Brokered, LiveJob
    from simmodel.work.taskset import LiveTask

__all__ = ["EarliestFinish", "EarliestStart", "FastestExecution", "GreedyDS"]

_next_end = attrgetter("next_end")


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

    def figures(self, view: View, work: LiveJob | LiveTask, places: Sequence[Place]) -> list[float]:
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
        """Return whether only the first of tied places matters."""
        return self.ties == "first" and type(self) is EarliestFinish

    def _columns(self, view: View) -> SiteColumns | None:
        """Return the columns; ``None`` also where kept futures depend on questions: where runs may be overdue."""
        index = super()._columns(view)
        return None if index is not None and view.simulated is None and not index.punctual else index

    def find(self, view: View, index: SiteColumns, work: Brokered, among: NDArray[np.bool_] | None) -> list[int]:
        """Return the number of the place with the earliest estimated end."""
        places: Sequence[Any] = index.places
        transfer = np.array([place.transfer(work) for place in places]) if work.needs_files else 0.0
        if self.simulated or view.simulated is None:
            return [_first_by_bounds(view, work, index, transfer, among)]
        run = places[0].nominal_run(work) / index.speed
        asked: dict[int, float] = {}

        def end(i: int) -> float:
            if i not in asked:
                asked[i] = view.estimate(work, places[i]).finish
            return asked[i]

        best = index.earliest(view.env._now, work.processors, transfer, run, end, among)
        end(best)  # for the record
        return [best]

    def figures(self, view: View, work: LiveJob | LiveTask, places: Sequence[Place]) -> list[float]:
        """Return the estimated ends (s)."""
        ask = view.foresee if self.simulated else view.estimate
        estimates = [ask(work, place) for place in places]
        return [start + setup + transfer + run for start, setup, transfer, run in estimates]


def _first_by_bounds(
    view: View,
    work: Brokered,
    index: SiteColumns,
    transfer: NDArray[np.float64] | float,
    among: NDArray[np.bool_] | None,
) -> int:
    """Return the number of the first place with the earliest end by simulation.

    Each place has a lower bound of its end: first from the columns, then from its running work, at last the answer of
    its simulation. The place with the lowest one is asked until that is an answer: where many are idle, that is one.
    """
    places: Sequence[Any] = index.places
    now = view.env._now
    ends_there = index.figures(now, _next_end)
    known = index.alike and (work.plain or view.simulated is not None)
    run = (places[0].unslowed_run(work) if known else 0.0) * index.factors(work.home and work.home.name)
    run /= index.top_speed
    starts = np.where(index.free >= work.processors, now, np.maximum(ends_there, now)) if work.plain else now
    bounds = starts + transfer + run
    if among is not None:
        bounds[~among] = np.inf
    ends: list[float] = bounds.tolist()
    asked = [0] * len(ends)
    alone = view.simulated is None  # whether no other place can run it: then nobody asks
    while True:
        i = ends.index(low := min(ends))
        place, times = places[i], asked[i]
        if times == 2 or low == np.inf:
            return i if among is None or among[i] else int(among.argmax())
        asked[i] += 1
        if times:  # grids ask also sites that are closed
            alone = alone and not any(each.can_run(work) for each in places if each is not place)
            if alone:
                return i
            start, setup, moved, seconds = view.foresee(work, place)
            ends[i] = start + setup + moved + seconds
        elif view.simulated is None and not place.can_run(work):
            ends[i] = np.inf
        elif (first := place.earliest_start(work)) > now:
            ends[i] = float(first + (transfer if isinstance(transfer, float) else transfer[i]) + run[i])


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
