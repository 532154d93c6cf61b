"""What-if: the futures of a snapshot under several policies, on any executor, by a deadline.

``view.simulate``, for policies inside a run, uses a lighter simulation of starts and ends alone
(:mod:`simmodel.systems.cluster.future.replay`), restored by the same code from the same snapshot.
"""

from __future__ import annotations

import inspect
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import attrs
import numpy as np

from simmodel.environment import Environment, quiet_garbage_collector
from simmodel.foundation.errors import InputError, Plain, Stalled, of_class
from simmodel.futures.executors import Ended, run_all
from simmodel.futures.in_worker import Watch
from simmodel.futures.outcomes import Branch, Following, Outcome, PoliciesBelow, Sample, Starting, follow, sample_of
from simmodel.futures.start_times import draw_run_times, predictor_for
from simmodel.futures.what_if_result import WhatIf, scored
from simmodel.metrics.statistics import replication_seeds
from simmodel.records.observers import progress_bar
from simmodel.runs.simulation import Simulation
from simmodel.scheduling.objectives import ObjectiveLike, objective as objective_of
from simmodel.scheduling.registry import label, labelled
from simmodel.snapshots.cluster import ClusterSnapshot
from simmodel.snapshots.snapshot import Snapshot
from simmodel.systems.broker.policies import policies_of_places
from simmodel.systems.kinds import kind_of_snapshot, work_of
from simmodel.work.job import Job
from simmodel.work.prepare import JobsGiven, as_workload
from simmodel.work.transformations import between, shift
from simmodel.work.workload import Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.environment import Environment
    from simmodel.scheduling.prediction import Predictor, PredictorLike
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.snapshots.snapshot import Snapshot
    from simmodel.systems.system import System
    from simmodel.work.workload import Workload

__all__ = [
    "Arrivals",
    "Outcome",
    "Sample",
    "Starting",
    "WhatIf",
    "check_branch",
    "draw_arrivals",
    "restored",
    "what_if",
    "with_jobs",
]

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
        :class:`~simmodel.futures.outcomes.Branch` values; ``None``: the snapshot's own policy
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

    >>> from simmodel import Cluster, Environment, Job
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


Arrivals: TypeAlias = JobsGiven | Mapping[str, Any] | Callable[[np.random.Generator], JobsGiven]
"""A workload, a data frame or jobs with absolute submission times; or generator settings or ``function(rng)``, drawn
relative to the snapshot."""


def draw_arrivals(
    arrivals: Arrivals | None,
    samples: int,
    seed: int,
    *,
    now: float = 0.0,
    until: float = float("inf"),
    taken: Iterable[int | str] = (),
) -> tuple[list[int], list[Workload | None]]:
    """Return the seed and the arrivals (``None`` without any) of each sample.

    Parameters
    ----------
    arrivals
        see :data:`Arrivals`
    samples
        number of samples; a given workload is the same in each
    seed
        seed of all samples; a larger number of samples starts with the same ones
    now
        the instant of the snapshot (s), added to the submission times of drawn work
    until
        later arrivals are dropped, s
    taken
        ids of existing jobs, which drawn jobs do not get

    Raises
    ------
    InputError
        if ``samples`` is not a whole number >= 1, or the arrivals are not a workload

    >>> from simmodel.generators import synthetic
    >>> def more(rng):
    ...     return synthetic(3, gap=10.0, run=5.0, processors=4, rng=rng)
    >>> seeds, drawn = draw_arrivals(more, 2, seed=1, now=100.0, taken=[7])
    >>> drawn[0]["job"].tolist(), bool(drawn[0]["submit"].min() >= 100)
    ([8, 9, 10], True)
    """
    if not isinstance(samples, int) or samples < 1:
        raise InputError(f"samples: must be a whole number >= 1, got {samples!r}")
    seeds = replication_seeds(samples, seed)
    if arrivals is None:
        return seeds, [None] * samples
    if isinstance(arrivals, Workload) or not (callable(arrivals) or isinstance(arrivals, Mapping)):
        return seeds, [_cut(_given(arrivals, list(taken)), now, until)] * samples
    names = list(taken)
    return seeds, [_cut(_renamed(shift(_drawn(arrivals, each), now), names), now, until) for each in seeds]


def _given(arrivals: JobsGiven, taken: list[int | str]) -> Workload:
    also = ", or generator settings or a function"
    workload = as_workload(arrivals, name="arrivals", place="arrivals", also=also)
    if workload.specs is not None and not isinstance(arrivals, Workload):
        return with_jobs(None, workload.specs, taken)
    _check_names([*taken, *workload["job"].tolist()])
    return workload


def _drawn(arrivals: Mapping[str, Plain] | Callable[[np.random.Generator], JobsGiven], seed: int) -> Workload:
    if isinstance(arrivals, Mapping):
        from simmodel.generators.settings import generate

        return generate(arrivals, seed=seed, source="arrivals")
    rng = np.random.default_rng(seed)
    by_name = "rng" in inspect.signature(arrivals).parameters  # as the built-in generators take it
    drawn = arrivals(rng=rng) if by_name else arrivals(rng)  # type: ignore[call-arg]
    return as_workload(drawn, name="arrivals", place="arrivals returned by the function")


def _renamed(workload: Workload, taken: list[int | str]) -> Workload:
    """Return the workload with new job ids that are not taken."""
    if not len(workload):
        return workload
    before = workload["job"].tolist()
    numbers = all(isinstance(name, int) for name in before)
    new: dict[Any, Any] = dict(zip(before, _free(taken if numbers else [*taken, ""]), strict=False))
    columns: dict[str, Any] = {"job": _column([new[name] for name in before])}
    if "preceding" in workload:
        columns["preceding"] = _column([new.get(name, name) for name in workload["preceding"].tolist()])
    renamed = workload.replace(**columns)
    if workload.specs is not None:
        renamed.specs = [_renamed_spec(job, new[name], new) for job, name in zip(workload.specs, before, strict=True)]
    return renamed


def _renamed_spec(job: Job, name: int | str, new: Mapping[int | str, int | str]) -> Job:
    dependencies = [attrs.evolve(each, job=new.get(each.job, each.job)) for each in job.dependencies]
    return attrs.evolve(job, id=name, dependencies=dependencies)


def _column(names: list[int | str]) -> NDArray[np.generic]:
    return np.array(names, dtype=object if any(isinstance(name, str) for name in names) else None)


def _cut(workload: Workload, now: float, until: float) -> Workload:
    early = int((workload["submit"] < now).sum())
    if early:
        raise InputError(f"arrivals: must be submitted at or after {now:g} s, got {early} earlier")
    return between(workload, now, np.nextafter(until, np.inf)) if until < np.inf else workload


def with_jobs(workload: Workload | None, jobs: Iterable[Job], taken: Iterable[int | str] = ()) -> Workload:
    """Return a workload with additional jobs; those without an id get one that is not taken.

    Raises
    ------
    InputError
        if two jobs have the same id

    >>> both = with_jobs(Workload({"submit": [5], "run": [10], "processors": [1]}), [Job(run=1), Job(id=7, run=1)])
    >>> both["job"].tolist(), both["submit"].tolist()
    ([1, 8, 7], [5.0, 0.0, 0.0])
    """
    if workload is None:
        return Workload.from_jobs(_named(jobs, taken), name="arrivals")
    specs = workload.jobs(strict=False)
    named = [job.id for job in specs if job.id is not None]
    return Workload.from_jobs([*specs, *_named(jobs, [*taken, *named])], name=workload.name)


def _named(jobs: Iterable[Job], taken: Iterable[int | str]) -> list[Job]:
    """Return the jobs with ids, unique among them and those taken."""
    jobs = [job if job.id is not None or job.name is None else attrs.evolve(job, id=job.name) for job in jobs]
    names = [*taken, *(job.id for job in jobs if job.id is not None)]
    _check_names(names)
    free = _free(names)
    return [attrs.evolve(job, id=next(free)) if job.id is None else job for job in jobs]


def _check_names(names: Iterable[int | str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(f"arrivals: duplicate job {name!r} (in the snapshot or among the arrivals)")


def _free(taken: Iterable[int | str]) -> Iterator[int | str]:
    """Yield names that are not taken: numbers after the largest if all names are numbers, otherwise strings."""
    names = set(taken)
    if all(isinstance(name, int) for name in names):
        yield from itertools.count(max((int(name) for name in names), default=0) + 1)
    for i in itertools.count(1):
        name = f"new {i}"
        while name in names:
            name += "'"
        yield name
