"""What if: the futures of a snapshot under several policies, here or on other processes and machines, by a deadline.

A policy that asks ``view.simulate`` inside a run gets a lighter one, of starts and ends alone
(:mod:`simmodel.systems.cluster.prediction`), restored by the same code from the same snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from math import inf, isfinite
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import attrs

from simmodel.environment import Environment
from simmodel.errors import InputError, Stalled
from simmodel.futures.branches import Branch
from simmodel.futures.executors import Ended, OutOfTime, run_all
from simmodel.futures.outcomes import Outcome, Sample, Starting
from simmodel.futures.restoring import check_branch, restored
from simmodel.futures.samples import sample_of
from simmodel.futures.sampling import Arrivals, draw_arrivals, with_jobs
from simmodel.futures.what_if_result import WhatIf, scored
from simmodel.records.observers import progress_bar
from simmodel.runs.simulation import Simulation
from simmodel.scheduling.labels import labelled
from simmodel.scheduling.objectives import ObjectiveLike, objective as objective_of
from simmodel.scheduling.observer import Observer
from simmodel.scheduling.registry import label
from simmodel.snapshots.snapshot import Snapshot
from simmodel.systems.kinds import kind_of_snapshot, work_of
from simmodel.work.job import Job

if TYPE_CHECKING:
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.scheduling.scheduler import Scheduler
    from simmodel.work.workload import Workload

__all__ = ["Outcome", "Sample", "Starting", "WhatIf", "what_if"]

Tried: TypeAlias = "PolicyLike | Branch | None"
"""What is tried: a policy, or a branch; ``None``: the snapshot's own policy."""


def what_if(
    snapshot: Snapshot | str | Path,
    policies: Mapping[str, Tried] | Iterable[Tried],
    *,
    horizon: float | None = None,
    executor: Executor | None = None,
    deadline: float | None = None,
    arrivals: Arrivals | None = None,
    samples: int = 1,
    seed: int = 0,
    objective: ObjectiveLike = "raw:wait_mean",
    actual: bool = False,
    results: bool = False,
    progress: bool = False,
) -> WhatIf:
    """Simulate what each policy would make of a snapshot, and return the outcomes side by side.

    The futures know what a scheduler knows: what runs ends when it is expected to, what waits takes the time that it is
    planned with, and nothing arrives or fails but what ``arrivals`` says.

    Parameters
    ----------
    snapshot
        of a system, or the JSON file of one
    policies
        labels and policies, or policies alone: names, policies, functions of a view, or
        :class:`~simmodel.futures.branches.Branch` values; ``None``: the snapshot's own policy
    horizon
        seconds to simulate; default: until all is over
    executor
        runs the simulations, where one is given: processes of this machine, a Dask cluster's ``client.get_executor()``
    deadline
        wall-clock seconds; what is not finished then is reported as such and not waited for. A simulation
        itself looks at the clock after each decision: here and in threads one cannot be ended in another way
    arrivals
        what is still to come: a workload or jobs at the instants that they say; or ``function(rng)`` that returns a
        workload, or the settings of a generator, drawn once a sample, from the instant of the snapshot on
    samples
        how many futures of each policy; all policies meet the same arrivals
    seed
        of all that is drawn
    objective
        by which outcomes are compared: what :func:`~simmodel.scheduling.objectives.objective` takes; a function gets a
        :class:`Sample`
    actual
        whether work takes its actual run time, which only the snapshot of a simulation has
    results
        whether each sample keeps its whole result
    progress
        whether to show a bar, one step a simulation

    Raises
    ------
    InputError
        where there is no policy, a name is not known, or a number is not possible; before anything runs

    The snapshot of a system that runs tasks has tasks in the place of jobs, and takes no arrivals; with
    ``objective=lambda sample: sample.ended`` the least makespan is the best.

    A policy that fails, or takes its worker process down, is reported as ``failed`` and stops nobody else. The outcomes
    are the same on every executor.

    >>> from simmodel import Environment
    >>> from simmodel import Cluster
    >>> from simmodel import Job
    >>> env = Environment()
    >>> cluster = Cluster(env, 4, "fcfs")
    >>> for processors, requested in ((3, 100), (4, 50), (1, 20)):
    ...     _ = cluster.submit(Job(processors=processors, run=requested))
    >>> env.run(until=1)
    >>> found = what_if(cluster.snapshot(), ["fcfs", "easy"])
    >>> found["easy"].starts
    (Starting(job=3, place='batch', at=1.0), Starting(job=2, place='batch', at=100.0))
    >>> found.best.name, found.decisions
    ('easy', (Starting(job=3, place='batch', at=1.0),))
    """
    if isinstance(snapshot, (str, Path)):
        snapshot = Snapshot.from_json(snapshot)
    kind = kind_of_snapshot(snapshot)
    now = float(snapshot.now)
    for what, seconds in (("horizon", horizon), ("deadline", deadline)):
        if seconds is not None and not (seconds > 0 and isfinite(seconds)):
            raise InputError(f"{what}: seconds > 0 expected, found {seconds!r}")
    goal = objective_of(objective)
    branches = _branches(policies)
    until = inf if horizon is None else now + horizon
    seen = snapshot.expected(actual=actual)
    for branch in branches.values():
        check_branch(seen, branch)
        if branch.submitted:
            with_jobs(None, _submitted(branch, now), seen.ids)
    if arrivals is not None and work_of(seen) != "jobs":
        raise InputError(f"no arrivals expected for a {kind.name}, whose work is tasks, found some", place="arrivals")
    seeds, drawn = draw_arrivals(
        arrivals, samples, seed, now=now, until=until, taken=() if arrivals is None else seen.ids
    )
    material = _Material(seen, tuple(seeds), tuple(drawn), until, results)
    tasks = [_Task(branch, sample) for sample in range(samples) for branch in branches.values()]
    with progress_bar(len(tasks), "future", progress) as bar:
        ended = run_all(
            _simulate, material, tasks, executor=executor, deadline=deadline, ended=lambda *_: bar.update(1)
        )
    n = len(branches)
    found = [_outcome(name, branch, ended[i::n]) for i, (name, branch) in enumerate(branches.items())]
    return WhatIf(now, tuple(scored(found, goal)), goal, horizon)


def _branches(policies: Mapping[str, Tried] | Iterable[Tried]) -> dict[str, Branch]:
    if isinstance(policies, (str, Branch)) or not isinstance(policies, Iterable):
        raise InputError(f"a list of policies, or labels and policies, expected, found {policies!r}")
    found = labelled(policies, "policy", "policies", label=_label)
    return {name: each if isinstance(each, Branch) else Branch(each) for name, each in found.items()}


def _label(given: Tried) -> str:
    return str(given) if isinstance(given, Branch) else label(given)


def _outcome(name: str, branch: Branch, ended: Sequence[Ended]) -> Outcome:
    """Return what came of a policy, of how its simulations ended."""
    for status in ("failed", "unfinished"):
        reasons = [each.reason for each in ended if each.status == status]
        if reasons:
            break
    else:
        status = "finished"
    return Outcome(
        name=name,
        branch=branch,
        status=status,  # type: ignore[arg-type]
        reason=reasons[0] if reasons else "",
        samples=tuple(each.value if each.status == "finished" else None for each in ended),
        seconds=sum(each.seconds for each in ended),
    )


# ---------------------------------------------------------------------- one simulation


class _Material(NamedTuple):
    """What all simulations share."""

    snapshot: Snapshot
    seeds: tuple[int, ...]
    arrivals: tuple[Workload | None, ...]
    until: float
    results: bool


class _Task(NamedTuple):
    branch: Branch
    sample: int


class _Watch(Observer):
    """Ends a simulation that takes longer than it may, in seconds."""

    def __init__(self, seconds: float) -> None:
        self._until = monotonic() + seconds

    def decided(self, _scheduler: Scheduler, _seconds: float, _decisions: int) -> None:
        """Look at the clock after each decision."""
        if monotonic() > self._until:
            raise OutOfTime


def _submitted(branch: Branch, now: float) -> list[Job]:
    """Return the jobs that a branch submits, each at its instant."""
    return [attrs.evolve(each.job, submit=now if each.at is None else each.at) for each in branch.submitted]


def _simulate(material: _Material, task: _Task, left: float | None) -> Sample:
    """Simulate one future; what runs in the workers."""
    snapshot, until = material.snapshot, material.until
    seed, arrivals = material.seeds[task.sample], material.arrivals[task.sample]
    branch = task.branch
    if branch.submitted:
        arrivals = with_jobs(arrivals, _submitted(branch, snapshot.now), snapshot.ids)
    env = Environment(snapshot.now, seed)
    if left is not None:
        env.observe(_Watch(left))
    system = restored(env, snapshot, branch)
    if arrivals is not None:
        system.replay(arrivals)
    with suppress(Stalled):  # what waits for ever is left waiting
        Simulation(system, until=until if until < inf else None).run()
    came = [] if arrivals is None else arrivals["job"].tolist()
    return sample_of(snapshot, system.result(), until=until, seed=seed, came=came, keep=material.results)
