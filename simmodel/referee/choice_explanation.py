"""Why a broker sent a job to a place: its estimates, the job's times at each place, and why it waited there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf, nan
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from simmodel.foundation.display import Cells
from simmodel.foundation.errors import InputError, SnapshotError, Stalled
from simmodel.referee.explanation import Change, span_table, table_lines, told_of
from simmodel.referee.job_life import after_instant
from simmodel.referee.obstacles import why_waits
from simmodel.results.stored import Told
from simmodel.scheduling.protocol import Decision, Policy, Start, View
from simmodel.scheduling.registry import policy as policy_of

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from simmodel.referee.explanation import Explanation
    from simmodel.runs.scenario import Scenario
    from simmodel.runs.simulation import Simulation
    from simmodel.scheduling.protocol import At, View
    from simmodel.view.style import Size
    from simmodel.work.job import Brokered, LiveJob
    from simmodel.work.table import Table
    from simmodel.work.taskset import LiveTask

__all__ = ["ChoiceExplanation", "Redirected", "Seen", "explain_choice"]


Seen = Callable[[View, Any, Any], object]
"""Called with the view, the work and the place that the policy chose, before the decision is carried out."""


class Redirected(Policy):
    """Decides as another policy does; one job or task goes to a given place instead, by name.

    Parameters
    ----------
    policy
        decides, whatever it is asked
    work
        the id of the job or task; of a job of a broker also its home and its id, ``"a:7"``
    place
        the name of the place; ``None``: the one that the policy chose
    seen
        is called with the decision on the work

    >>> from simmodel import Job, simulate
    >>> from simmodel.scheduling import policy
    >>> jobs = [Job(id=name, run=10) for name in (1, 2)]
    >>> simulate({"a": 4, "b": 4}, jobs, Redirected(policy("round-robin"), 1, "b")).jobs["destination"].tolist()
    ['b', 'b']
    """

    def __init__(self, policy: Policy, work: int | str, place: str | None = None, seen: Seen | None = None) -> None:
        self.policy = policy
        self.work = work
        self.place = place
        self.seen = seen
        for trait in ("name", "decides", "plans", "preempts", "tries_every_submission", "draws", "at_home"):
            setattr(self, trait, getattr(policy, trait))

    def destinations(self, home: At | None, places: Sequence[At], /) -> Sequence[At]:
        return self.policy.destinations(home, places)

    def forget(self) -> None:
        """Have the policy discard its cached values."""
        self.policy.forget()

    def state(self) -> Any:
        return self.policy.state()

    def restore(self, values: Mapping[str, Any]) -> None:
        self.policy.restore(values)

    def _meant(self, work: LiveJob | LiveTask) -> bool:
        home = getattr(work, "home", None)
        return str(self.work) in (str(work.id), "" if home is None else f"{home.name}:{work.id}")

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Yield the decisions of the policy."""
        for decision in self.policy.decide(view) or ():
            if type(decision) is Start and self._meant(decision.work):
                if self.seen is not None:
                    self.seen(view, decision.work, decision.place)
                if self.place is not None and decision.place.name != self.place:
                    there = next(place for place in view.places if place.name == self.place)
                    decision = decision._replace(place=there, allocation=None)
            yield decision


_TRIED = 8  # places
_CALLED = {
    "estimated_start": "estimated start (s)",
    "estimated_end": "estimated end (s)",
    "start": "start (s)",
    "end": "end (s)",
}


@attrs.frozen(eq=False, repr=False)
class ChoiceExplanation(Told):
    """Why a broker, or the broker of a grid, sent a job to a place.

    Attributes
    ----------
    job, at, chosen, policy
        the job, the instant (s) of the decision, the place that was chosen, and the policy of the broker
    start
        of the job (s); nan: not reached
    places
        one row per place: ``place``, its ``free`` processors and ``waiting`` jobs at the decision, ``estimated_start``
        and ``estimated_end`` (s) of the job there, as the broker could estimate them then, and ``start`` and ``end``
        (s) with which the job ran, or would have run there if everything else was decided by the same policies; nan:
        the place cannot run the job, or was not tried
    changes
        another place with which it would have started earlier, confirmed by running all again
    there
        why it waited at the place that was chosen, right after the decision; ``None``: it did not
    told
        the reasons that the policy gave with its decisions on the job: ``time`` (s), ``decision``, ``reason``
    """

    job: int | str
    at: float
    chosen: str
    policy: str
    start: float
    places: Table
    changes: tuple[Change, ...] = ()
    there: Explanation | None = None
    told: Table = attrs.field(factory=lambda: told_of([], ""))

    def _lines(self) -> Iterator[str]:
        started = "" if self.start != self.start else f", where it starts at {self.start:.10g} s"
        yield f"job {self.job} at {self.at:.10g} s: sent to {self.chosen} by {self.policy}{started}"
        for change in self.changes:
            yield f"  {change.text}"
        yield from table_lines("the places", self.places, _CALLED)
        yield from table_lines("what the policy said", self.told, {"time": "at (s)"})
        if self.there is not None:
            yield f"  at {self.chosen}:"
            yield from (f"    {line}" for line in self.there.report().split("\n"))

    def document(self) -> dict[str, Any]:
        """Return it as plain values."""
        plain: dict[str, Any] = {name: getattr(self, name) for name in ("job", "at", "chosen", "policy", "start")}
        plain["changes"] = [each._asdict() for each in self.changes]
        plain["there"] = None if self.there is None else self.there.document()
        return plain | {name: list(getattr(self, name).rows()) for name in ("places", "told")}

    def _cells(self) -> Cells:
        rows = [["", ""], ["job", str(self.job)], ["at (s)", f"{self.at:.10g}"], ["chosen", self.chosen]]
        rows += [[f"start on {row['place']} (s)", f"{row['start']:.10g}"] for row in self.places.rows()]
        return rows

    def __repr__(self) -> str:
        return f"<ChoiceExplanation of job {self.job} at {self.at:g} s: {self.chosen}>"

    def plot(
        self,
        *,
        title: str | None = None,
        figsize: Size | None = None,
        style: str | None = None,
        save: str | Path | None = None,
    ) -> Figure:
        """Draw when the job would wait and run at each place: as estimated, and as simulated."""
        from simmodel.view.referee_plots import places_for_a_job

        name = f"Why job {self.job} went to {self.chosen}" if title is None else title
        return places_for_a_job(
            list(self.places.rows()), self.chosen, self.at, title=name, figsize=figsize, style=style, save=save
        )


class _Offer(NamedTuple):
    """The state of a place, and its estimates for a job, at the decision."""

    free: int
    waiting: int
    able: bool
    start: float
    end: float


def explain_choice(scenario: Scenario, job: int | str) -> ChoiceExplanation:
    """Run a scenario of a broker or a grid, and explain why a job went where it did.

    Parameters
    ----------
    scenario
        it is run again with the job at each other place that can run it, at most eight
    job
        its id, or its home and id (``"a:7"``) if ids repeat; of several decisions the first

    Raises
    ------
    InputError
        the job is unknown, was never sent to a place, or ids repeat
    """
    decided = _Decision()
    simulation = _started(scenario, job, None, decided)
    with_all = _run(simulation, inf)
    row = _row_of(with_all.jobs, job)
    if not decided.offers:
        raise InputError(f"job {job} was not sent to a place: it is {with_all.jobs['status'][row]}", place="job")
    jobs = with_all.jobs
    found = {decided.chosen: (float(jobs["start"][row]), float(jobs["end"][row]))}
    others = [name for name, offer in decided.offers.items() if offer.able and name != decided.chosen]
    for name in sorted(others, key=lambda name: decided.offers[name].end)[:_TRIED]:
        result = _run(_started(scenario, job, name, None), inf)
        found[name] = float(result.jobs["start"][row]), float(result.jobs["end"][row])
    start = found[decided.chosen][0]
    rows = [
        (name, offer.free, offer.waiting, offer.start, offer.end, *found.get(name, (nan, nan)))
        for name, offer in decided.offers.items()
    ]
    columns = ("place", "free", "waiting", "estimated_start", "estimated_end", "start", "end")
    reasons = [] if with_all.reasons is None else list(with_all.reasons.rows())
    return ChoiceExplanation(
        job=jobs["job"].tolist()[row],
        at=decided.at,
        chosen=decided.chosen,
        policy=simulation.system.scheduler.policy_name,
        start=start,
        places=span_table(rows, columns),
        changes=tuple(_earlier(found, start)),
        there=_there(_started(scenario, job, None, None), decided, job),
        told=told_of(reasons, job),
    )


class _Decision:
    """The first decision on a job: its instant (s), the place that was chosen, and the offer of each place."""

    def __init__(self) -> None:
        self.at = nan
        self.chosen = ""
        self.offers: dict[str, _Offer] = {}

    def __call__(self, view: View, work: Brokered, chosen: Any) -> None:
        """Note a decision."""
        if self.offers:
            return
        self.at, self.chosen = float(view.now), chosen.name
        for place in view.places:
            able = place.can_run(work)
            estimate = place.estimate(work) if able else None
            start, end = (nan, nan) if estimate is None else (estimate.start, estimate.finish)
            self.offers[place.name] = _Offer(int(place.free), int(place.queued), able, float(start), float(end))


def _started(scenario: Scenario, job: int | str, place: str | None, seen: _Decision | None) -> Any:
    given = scenario.policy or scenario.kind.policy
    return attrs.evolve(scenario, policy=Redirected(policy_of(given).fresh(), job, place, seen)).start()


def _run(simulation: Simulation, until: float) -> Any:
    try:
        return simulation.run(until=until if until < inf else None).result()
    except Stalled:  # other jobs never start
        return simulation.result()


def _row_of(jobs: Table, job: int | str) -> int:
    names = jobs["job"].astype(str)
    found = np.flatnonzero(names == str(job))
    if len(found) == 1:
        return int(found[0])
    homes = sorted(name for name in names.tolist() if name.endswith(f":{job}"))
    if homes:
        raise InputError(f"must name its home: {', '.join(homes)}, got {job!r}", place="job")
    raise InputError(f"must be one of the {len(names):,} jobs, got {job!r}", place="job")


def _earlier(found: dict[str, tuple[float, float]], start: float) -> Iterator[Change]:
    """Yield the place with the earliest start, if that is earlier than that of the job."""
    name, (at, _) = min(found.items(), key=lambda each: each[1][0] if each[1][0] == each[1][0] else inf)
    if at < start or (at == at and start != start):
        sooner = f", {start - at:.10g} s earlier" if start == start else ""
        yield Change("place", name, f"on {name} it would start at {at:.10g} s{sooner}")


def _there(simulation: Simulation, decided: _Decision, job: int | str) -> Explanation | None:
    """Return why the job waits in the cluster that was chosen, right after the decision; ``None``: it does not."""
    (place,) = (each for each in simulation.system.places if each.name == decided.chosen)
    name = str(job).rpartition(":")[2]
    try:
        return why_waits(after_instant(simulation, decided.at, place.system), name)
    except (SnapshotError, InputError):  # of another kind, without snapshots, or under a policy passed as an object
        return None
