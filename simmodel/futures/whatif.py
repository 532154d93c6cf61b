"""What-if: the futures of a snapshot under several policies, on any executor, by a deadline.

``view.simulate``, for policies inside a run, uses a lighter simulation of starts and ends alone
(:mod:`simmodel.systems.cluster.future.replay`), restored by the same code from the same snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import attrs
import numpy as np

from simmodel.environment import Environment, quiet_garbage_collector
from simmodel.foundation.errors import InputError, Stalled, of_class
from simmodel.futures.branches import Branch, Following, PoliciesBelow, follow
from simmodel.futures.executors import Ended, run_all
from simmodel.futures.in_worker import Watch
from simmodel.futures.outcomes import Outcome, Sample, Starting, sample_of
from simmodel.futures.run_times import draw_run_times, predictor_for
from simmodel.futures.sampling import Arrivals, draw_arrivals, with_jobs
from simmodel.futures.what_if_result import WhatIf, scored
from simmodel.records.observers import progress_bar
from simmodel.runs.simulation import Simulation
from simmodel.scheduling.objectives import ObjectiveLike, objective as objective_of
from simmodel.scheduling.registry import label, labelled
from simmodel.snapshots.cluster import ClusterSnapshot
from simmodel.snapshots.snapshot import Snapshot
from simmodel.systems.broker.policies import policies_of_places
from simmodel.systems.kinds import kind_of_snapshot, work_of
from simmodel.work.job import Job

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.scheduling.prediction import Predictor, PredictorLike
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.snapshots.snapshot import Snapshot
    from simmodel.systems.system import System
    from simmodel.work.workload import Workload

__all__ = ["Outcome", "Sample", "Starting", "WhatIf", "check_branch", "restored", "what_if"]

Tried: TypeAlias = "PolicyLike | Branch | None"
"""A policy or a branch to try; ``None``: the snapshot's own policy."""

_RUN_TIMES = 1  # of the random streams of a sample: that of the run times


@quiet_garbage_collector()
def what_if(
    snapshot: Snapshot | str | Path,
    policies: Mapping[str, Tried] | Iterable[Tried],
    *,
    horizon: float | None = None,
    executor: Executor | None = None,
    deadline: float | None = None,
    arrivals: Arrivals | None = None,
    samples: int = 1,
    predictor: PredictorLike | None = None,
    seed: int = 0,
    objective: ObjectiveLike = "raw:wait_mean",
    actual: bool = False,
    results: bool = False,
    progress: bool = False,
    trust: bool = False,
) -> WhatIf:
    """Simulate the future of a snapshot under each policy, and return the outcomes side by side.

    The futures use only information that a scheduler has: running jobs end at their expected end, waiting jobs run for
    their planned time, nothing fails, and no jobs arrive except those of ``arrivals``.

    Parameters
    ----------
    snapshot
        a snapshot, or its JSON file
    policies
        labels and policies, or policies alone: names, policies, functions of a view, or
        :class:`~simmodel.futures.branches.Branch` values; ``None``: the snapshot's own policy
    horizon
        seconds to simulate; default: until all work has ended
    executor
        runs the simulations, such as a process pool or the ``client.get_executor()`` of a Dask cluster; default: this
        process
    deadline
        wall-clock seconds; simulations unfinished by then are reported as such. Each simulation checks the clock after
        every decision, which is the only way to end it in this process and in threads
    arrivals
        future arrivals: a workload or jobs with absolute submission times; or ``function(rng)`` that returns a
        workload, or the settings of a generator, drawn once per sample and relative to the snapshot
    samples
        number of futures per policy; all policies get the same arrivals and run times
    predictor
        draws the run times of the jobs of the snapshot of a cluster, once per sample: a predictor that has learned, or
        ``"predicted"`` for that of the snapshot; default: work runs for its planned time
    seed
        seed of all random draws
    objective
        compares outcomes: an argument of :func:`~simmodel.scheduling.objectives.objective`; a function gets a
        :class:`Sample`
    actual
        whether work takes its actual run time, which only snapshots of simulations have
    results
        whether each sample keeps its complete result
    progress
        whether to show a progress bar, one step per simulation
    trust
        whether the policies of a snapshot file may be ``module:name``, which imports code

    Raises
    ------
    InputError
        if there is no policy, a name is unknown, or a number is invalid; before any simulation

    For a system that runs tasks, outcomes have tasks instead of jobs, and there are no arrivals;
    ``objective=lambda sample: sample.ended`` selects the shortest makespan.

    A policy that fails or kills its worker process is reported as ``failed`` and does not affect the others. The
    outcomes are the same on every executor.

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
        snapshot = Snapshot.from_json(snapshot, trust=trust)
    kind = kind_of_snapshot(snapshot)
    now = float(snapshot.now)
    for what, seconds in (("horizon", horizon), ("deadline", deadline)):
        if seconds is not None and not (seconds > 0 and isfinite(seconds)):
            raise InputError(f"{what}: must be a finite number > 0 (s), got {seconds!r}")
    goal = objective_of(objective)
    branches = _branches(policies)
    until = inf if horizon is None else now + horizon
    seen = snapshot.expected(actual=actual)
    for branch in branches.values():
        check_branch(seen, branch)
        if branch.submitted:
            with_jobs(None, _submitted(branch, now), seen.ids)
    if arrivals is not None and work_of(seen) != "jobs":
        raise InputError(f"must be None for a {kind.name} that runs tasks", place="arrivals")
    seeds, drawn = draw_arrivals(
        arrivals, samples, seed, now=now, until=until, taken=() if arrivals is None else seen.ids
    )
    drawing = None if predictor is None else predictor_for(snapshot, predictor)[1]
    material = _Material(seen, tuple(seeds), tuple(drawn), until, results, drawing)
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
        raise InputError(f"policies: must be a list of policies, or a mapping of labels to policies, got {policies!r}")
    found = labelled(policies, "policy", "policies", label=_label)
    return {name: each if isinstance(each, Branch) else Branch(each) for name, each in found.items()}


def _label(given: Tried) -> str:
    return str(given) if isinstance(given, Branch) else label(given)


def _outcome(name: str, branch: Branch, ended: Sequence[Ended]) -> Outcome:
    """Return the outcome of a policy from the ends of its simulations."""
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
    """The arguments shared by all simulations."""

    snapshot: Snapshot
    seeds: tuple[int, ...]
    arrivals: tuple[Workload | None, ...]
    until: float
    results: bool
    predictor: Predictor | None = None


class _Task(NamedTuple):
    branch: Branch
    sample: int


def _submitted(branch: Branch, now: float) -> list[Job]:
    """Return the jobs that a branch submits, each at its instant."""
    return [attrs.evolve(each.job, submit=now if each.at is None else each.at) for each in branch.submitted]


@quiet_garbage_collector()
def _simulate(material: _Material, task: _Task, left: float | None) -> Sample:
    """Simulate one future; runs in the workers."""
    snapshot, until = material.snapshot, material.until
    seed, arrivals = material.seeds[task.sample], material.arrivals[task.sample]
    branch = task.branch
    if material.predictor is not None:
        cluster = of_class(snapshot, ClusterSnapshot, "that of a cluster", "snapshot")
        snapshot = draw_run_times(cluster, material.predictor, np.random.default_rng((seed, _RUN_TIMES)))
    if branch.submitted:
        arrivals = with_jobs(arrivals, _submitted(branch, snapshot.now), snapshot.ids)
    env = Environment(snapshot.now, seed)
    if left is not None:
        env.observe(Watch(left))
    system = restored(env, snapshot, branch)
    if arrivals is not None:
        system.replay(arrivals)
    with suppress(Stalled):  # work that can never start is left waiting
        Simulation(system, until=until if until < inf else None).run()
    came = {} if arrivals is None else dict(zip(arrivals["job"].tolist(), arrivals["run"].tolist(), strict=True))
    sample = sample_of(snapshot, system.result(), until=until, seed=seed, came=came, keep=material.results)
    for each in system.all_below():
        each.forget_ended()
    return sample


# ---------------------------------------------------------------------- from a snapshot


def check_branch(snapshot: Snapshot, branch: Branch) -> None:
    """Check that a branch can continue from a snapshot.

    Raises
    ------
    InputError
        if a policy is unknown, the policy of the snapshot was given as an object, a place is unknown, an instant is
        past, or a job is submitted to a system that runs tasks
    """
    kind = kind_of_snapshot(snapshot)
    kind.policy_of(snapshot, branch.policy)
    for _, policy in branch.then:
        kind.policy_of(snapshot, policy)
    branch.check(snapshot.now)
    if branch.submitted and work_of(snapshot) != "jobs":
        raise InputError(f"branch '{branch}': cannot submit a job to a {kind.name}: it runs tasks")
    if branch.policies is not None:
        _check_below(snapshot, branch.policies)
    kind.check_data(snapshot, branch.data)


def _check_below(snapshot: Snapshot, policies: PoliciesBelow) -> None:
    kinds = {each.name: kind_of_snapshot(each) for each in snapshot.below}
    if not kinds:
        raise InputError(f"must be None for a {snapshot.system}, whose places have no policies", place="policies")
    given = policies_of_places(policies, kinds)
    for each in snapshot.below:
        own, below = given[each.name]
        if own is not None:
            kinds[each.name].policy_of(each, own)
        if below is not None:
            _check_below(each, below)


def restored(env: Environment, snapshot: Snapshot, branch: Branch) -> System[Any]:
    """Return the live system that continues from a snapshot under a branch, without its submissions."""
    kind = kind_of_snapshot(snapshot)
    policy = follow(branch, kind.policy_of(snapshot, branch.policy), lambda given: kind.policy_of(snapshot, given))
    data = {} if branch.data is None else {"data": branch.data}
    system = kind.restore(env, snapshot, policy, policies=branch.policies, **data)
    own = system.scheduler.policy
    if isinstance(own, Following) and own.system is None:
        own.attach(system)
    return system
