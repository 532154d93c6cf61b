"""When waiting jobs will start: quantiles over futures with random run times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from math import ceil, inf
from typing import TYPE_CHECKING, NamedTuple

import attrs
import numpy as np

from simmodel.environment import quiet_garbage_collector
from simmodel.foundation.errors import InputError, unknown
from simmodel.futures.executors import run_all
from simmodel.futures.light import predict
from simmodel.futures.run_times import draw_run_times, predictor_for
from simmodel.metrics.statistics import replication_seeds
from simmodel.runs.simulation import Simulation
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.scheduling.prediction import Predictor, PredictorLike
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.snapshots.cluster import ClusterSnapshot
    from simmodel.snapshots.snapshot import Snapshot

__all__ = ["predict_starts"]

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
    >>> found = predict_starts(start(4, waiting).run(until=1), predictor="request")
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
    ended = run_all(_futures, _Material(seen, used, policy, tuple(names)), parts, executor=executor)
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
