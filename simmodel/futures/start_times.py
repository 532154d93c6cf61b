"""Futures of one snapshot: when jobs will start with random run times, and light futures under several policies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from math import ceil, erfc, inf, sqrt
from typing import TYPE_CHECKING, NamedTuple

import attrs
import numpy as np

from simmodel.environment import END, SUBMIT, Environment, quiet_garbage_collector
from simmodel.foundation.errors import InputError, SimmodelError, of_class, unknown
from simmodel.futures.executors import run_all
from simmodel.futures.in_worker import Watch
from simmodel.metrics.statistics import replication_seeds
from simmodel.records.observers import progress_bar
from simmodel.runs.simulation import Simulation
from simmodel.scheduling.prediction import Predictor, predictor
from simmodel.scheduling.protocol import Policy
from simmodel.snapshots.cluster import ClusterSnapshot
from simmodel.snapshots.jobs import Planned, WorkState, just_after
from simmodel.snapshots.snapshot import PolicyState
from simmodel.systems.cluster.future.replay import Course, Prediction, follow, memory_of
from simmodel.systems.cluster.system import Cluster
from simmodel.work.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from simmodel.scheduling.prediction import PredictorLike
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.snapshots.snapshot import Snapshot

__all__ = ["FutureMissed", "LightFutures", "draw_run_times", "predict", "predict_starts", "predictor_for"]


class FutureMissed(SimmodelError):
    """A future is missing: its deadline passed, or its policy failed."""


def predict(
    snapshot: ClusterSnapshot,
    policy: PolicyLike | None = None,
    *,
    until: float | None = None,
    observers: Sequence[object] = (),
) -> Prediction:
    """Simulate from a snapshot to its end, or to an instant (s), and record starts and ends only.

    Uses everything in the snapshot, including actual run times; pass ``snapshot.expected()`` to exclude information
    that policies do not have.

    Parameters
    ----------
    snapshot
        the snapshot to start from
    policy
        default: that of the snapshot
    until
        instant at which to stop, in s; excludes events at that instant
    observers
        objects with the hooks of schedulers, such as ``decided``

    >>> from simmodel import Job
    >>> env = Environment(); cluster = Cluster(env, 4)
    >>> for size in (3, 3, 1): _ = cluster.submit(Job(processors=size, run=5, requested=10))
    >>> env.run(until=1)
    >>> predict(cluster.snapshot(actual=False), "easy").starts
    [(3, 'batch', 1.0), (2, 'batch', 10.0)]
    """
    env = Environment(snapshot.now, snapshot.seed)
    for observer in observers:
        env.observe(observer)
    return follow(Cluster.from_snapshot(env, snapshot, policy, record=False), snapshot, until)


class _Task(NamedTuple):
    policy: Policy
    memory: PolicyState
    until: float | None


def _expected(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    return snapshot.expected()


@attrs.frozen
class LightFutures:
    """The futures of a snapshot of a cluster, as ``view.simulate`` returns them, but of several policies at once.

    Parameters
    ----------
    snapshot
        the snapshot; only the parts that policies may know are used
    executor
        runs the simulations; default: this process
    deadline
        wall-clock seconds from each call on

    >>> from simmodel import Cluster, Environment, Job
    >>> from simmodel.scheduling.registry import policy
    >>> cluster = Cluster(Environment(), 4)
    >>> for size in (3, 3, 1): _ = cluster.submit(Job(processors=size, run=5, requested=10))
    >>> cluster.env.run(until=1)
    >>> futures = LightFutures(cluster.snapshot())
    >>> [future.starts for future in futures.of([policy("fcfs"), policy("easy")])]
    [[(2, 'batch', 10.0), (3, 'batch', 10.0)], [(3, 'batch', 1.0), (2, 'batch', 10.0)]]
    """

    snapshot: ClusterSnapshot = attrs.field(converter=_expected)
    executor: Executor | None = None
    deadline: float | None = None

    def of(
        self, policies: Sequence[Policy], *, horizon: float | None = None, estimates: str | None = None
    ) -> list[Prediction]:
        """Return the future under each policy, with its memory; ``horizon``: seconds to simulate.

        Raises
        ------
        FutureMissed
            a simulation did not end by the deadline, or failed
        InputError
            the estimates are not those that policies have
        """
        if estimates is not None:
            raise InputError(f"must be None: actual run times are not known, got {estimates!r}", place="estimates")
        until = None if horizon is None else self.snapshot.now + horizon
        tasks = [_Task(each.fresh(), memory_of(each), until) for each in policies]
        found = []
        for policy, how in zip(
            policies,
            run_all(_course, self.snapshot, tasks, executor=self.executor, deadline=self.deadline),
            strict=True,
        ):
            if how.status != "finished":
                raise FutureMissed(f"future under {policy.name}: {how.reason}")
            found.append(Prediction(self.snapshot, how.value))
        return found


def _course(snapshot: ClusterSnapshot, task: _Task, left: float | None) -> Course:
    """Simulate one future; runs in the workers."""
    seen = attrs.evolve(snapshot, policy=task.memory)
    watches = () if left is None else (Watch(left),)
    return predict(seen, task.policy, until=task.until, observers=watches).course


_ALIKE = 0.7  # the correlation of the run times of a user's jobs with what they have in common


class _Asking(NamedTuple):
    """The fields of a job in a snapshot that a predictor may read."""

    user: int | str | None
    group: int | str | None
    processors: int
    asked: float


def predictor_for(snapshot: Snapshot, given: PredictorLike | None) -> tuple[ClusterSnapshot, Predictor]:
    """Return the snapshot of a cluster, and its own predictor with its memory (``None``, ``"predicted"``) or another.

    Raises
    ------
    InputError
        if it is not the snapshot of a cluster, or it has no predictor and none is given
    """
    snapshot = of_class(snapshot, ClusterSnapshot, "that of a cluster", "snapshot")
    if isinstance(given, Predictor):
        return snapshot, given
    if given not in (None, "predicted"):
        return snapshot, predictor(given)
    if snapshot.prediction is None:
        raise InputError("must be given: the snapshot was taken without predictions", place="predictor")
    own = predictor(snapshot.options.estimates)
    if snapshot.prediction.state is not None:
        own.restore(snapshot.prediction.state)
    return snapshot, own


class _Shares:
    """Random shares from 0 to 1, of which those of one user's jobs are alike: one campaign, one program."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._users: dict[int | str | None, float] = {}

    def __call__(self, user: int | str | None) -> float:
        normal = self._rng.standard_normal
        if user not in self._users:
            self._users[user] = float(normal())
        mixed = _ALIKE * self._users[user] + sqrt(1 - _ALIKE**2) * float(normal())
        return erfc(-mixed / sqrt(2)) / 2


def draw_run_times(snapshot: ClusterSnapshot, given: Predictor, rng: np.random.Generator | None) -> ClusterSnapshot:
    """Return a snapshot whose jobs have random run times, as a predictor expects them: those that run, run on.

    The snapshot is one for a what-if (:meth:`~simmodel.snapshots.cluster.ClusterSnapshot.expected`). Its policy knows
    as much as before: requested or predicted times. Without random numbers, jobs run as long as predicted.

    >>> import numpy as np
    >>> from simmodel import Job, start
    >>> from simmodel.predictors.similar import Request
    >>> jobs = [Job(run=9, requested=60), Job(processors=4, run=5)]
    >>> snapshot = start(4, jobs, "fcfs").run(until=1).snapshot().expected()
    >>> drawn = draw_run_times(snapshot, Request(), np.random.default_rng(0))
    >>> drawn.running[0].end, drawn.waiting[0].duration
    (60.0, 5.0)
    """
    limits: Mapping[int, float] = {} if snapshot.prediction is None else dict(snapshot.prediction.limits)

    share_of = None if rng is None else _Shares(rng)

    def drawn(work: WorkState, elapsed: float = 0.0) -> WorkState:
        group = None if work.spec is None else work.spec.group
        asked = inf if work.unrequested else limits.get(work.number, work.requested)
        job = _Asking(work.user, group, work.processors, asked)
        if share_of is not None:
            seconds = given.draw(job, share_of(work.user), elapsed)
        else:
            seconds = given.predict(job)
            seconds = min(asked, seconds if seconds > elapsed else given.correct(job, seconds, elapsed))
        return work._replace(duration=float(seconds if seconds < inf else work.requested))  # nothing else is known

    options, now = snapshot.options, snapshot.now
    first = options.decide_on == "event" and options.event_order == "submits-first"
    running, planned = [], list(snapshot.planned)
    for i, run in enumerate(snapshot.running):
        work = drawn(run.work, now - run.started)
        assert work.duration is not None
        end = max(run.started + work.duration, just_after(now))
        running.append(run._replace(work=work._replace(duration=end - run.started), end=end))
        planned.append(Planned(end, float(SUBMIT if first else END), "end", (i,)))
    return attrs.evolve(
        snapshot,
        running=tuple(running),
        waiting=tuple(map(drawn, snapshot.waiting)),
        held=tuple(map(drawn, snapshot.held)),
        blocked=tuple(map(drawn, snapshot.blocked)),
        planned=tuple(sorted(planned, key=lambda each: (each.at, each.priority))),
    )


_AT_ONCE = 10  # futures of a task


@quiet_garbage_collector()
def predict_starts(
    given: Snapshot | Simulation,
    jobs: Iterable[int | str] | None = None,
    *,
    quantiles: Sequence[float] = (0.1, 0.5, 0.9),
    draws: int = 100,
    predictor: PredictorLike | None = None,
    policy: PolicyLike | None = None,
    executor: Executor | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Table:
    """Predict when waiting jobs of a cluster start, from futures with run times drawn from a predictor.

    The futures use the knowledge of a scheduler: the run times of ended jobs, and how long the others have run. No more
    jobs arrive.

    Parameters
    ----------
    given
        a snapshot of a cluster, or a simulation of one
    jobs
        ids of waiting jobs; default: all
    quantiles
        the probabilities, between 0 and 1, with which a job has started by the instants returned
    draws
        number of futures with random run times; 0: the ``predicted`` starts alone
    predictor
        a predictor that has learned, or the name of one that needs not; default: that of the simulation
    policy
        default: that of the snapshot
    executor
        runs the futures; default: this process
    seed
        seed of all draws
    progress
        show a progress bar, one step per future

    Returns
    -------
    Table
        one row per job: ``job, submit``, ``predicted``, its start if all jobs run as long as predicted, the ``mean`` of
        the draws and, for each quantile, such as 0.1, a column ``q10``; instants in s, infinite if the job never starts

    Raises
    ------
    InputError
        a job does not wait, a number is invalid, or there is no predictor

    >>> from simmodel import Job, start
    >>> waiting = [Job(processors=4, run=9, requested=60), Job(id="b", processors=4, run=5)]
    >>> found = predict_starts(start(4, waiting, "fcfs").run(until=1), predictor="request")
    >>> found["job"].tolist(), found["q50"].tolist()
    (['b'], [60.0])
    """
    if not isinstance(draws, int) or draws < 0:
        raise InputError(f"must be a whole number >= 0, got {draws!r}", place="draws")
    for q in quantiles:
        if not 0 < q < 1:
            raise InputError(f"must be numbers between 0 and 1, got {q!r}", place="quantiles")
    snapshot, used = predictor_for(given.snapshot() if isinstance(given, Simulation) else given, predictor)
    waits = {work.id: work for work in (*snapshot.waiting, *snapshot.held, *snapshot.blocked)}
    names = list(waits) if jobs is None else list(jobs)
    for name in names:
        if name not in waits:
            raise unknown("waiting job", str(name), map(str, waits))
    seen = snapshot.expected()
    if seen.prediction is not None:  # no more jobs arrive, for which it would need a memory
        seen = attrs.evolve(seen, prediction=attrs.evolve(seen.prediction, state=None))
    seeds: list[int | None] = [None, *(replication_seeds(draws, seed) if draws else ())]
    parts = [tuple(seeds[i : i + _AT_ONCE]) for i in range(0, len(seeds), _AT_ONCE)]
    material = _Material(seen, used, policy, tuple(names))
    with progress_bar(len(seeds), "future", progress) as bar:
        ended = run_all(_futures, material, parts, executor=executor, ended=lambda at, _: bar.update(len(parts[at])))
    for each in ended:
        if each.status != "finished":
            raise InputError(each.reason, place="predict_starts")
    found = np.concatenate([each.value for each in ended])
    predicted, starts = found[0], np.sort(found[1:], axis=0)
    columns = {
        "job": np.array(names, dtype=object if any(isinstance(name, str) for name in names) else np.int64),
        "submit": np.array([waits[name].submit for name in names], dtype=np.float64),
        "predicted": predicted,
    }
    if draws:
        columns["mean"] = starts.mean(axis=0)
    for q in quantiles if draws else ():
        columns[f"q{100 * q:g}"] = starts[min(draws, ceil(q * (draws + 1))) - 1]
    return Table(columns)


class _Material(NamedTuple):
    snapshot: ClusterSnapshot
    predictor: Predictor
    policy: PolicyLike | None
    jobs: tuple[int | str, ...]


def _futures(material: _Material, seeds: tuple[int | None, ...], _left: float | None) -> NDArray[np.float64]:
    """Return the starts (s) of the jobs in futures, one row per seed (``None``: as predicted); runs in the workers."""
    found = np.full((len(seeds), len(material.jobs)), inf)
    column = {job: i for i, job in enumerate(material.jobs)}
    for row, seed in zip(found, seeds, strict=True):
        rng = None if seed is None else np.random.default_rng(seed)
        drawn = draw_run_times(material.snapshot, material.predictor, rng)
        for job, _, at in predict(drawn, material.policy).starts:
            if job in column:
                row[column[job]] = min(row[column[job]], at)
    return found
