"""Futures with random run times of the jobs of a snapshot, drawn from a predictor."""

from __future__ import annotations

from math import erfc, inf, sqrt
from typing import TYPE_CHECKING, NamedTuple

import attrs

from simmodel.environment import END, SUBMIT
from simmodel.foundation.errors import InputError, of_class
from simmodel.scheduling.prediction import Predictor, predictor
from simmodel.snapshots.cluster import ClusterSnapshot
from simmodel.snapshots.jobs import Planned, WorkState, just_after

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from simmodel.scheduling.prediction import PredictorLike
    from simmodel.snapshots.snapshot import Snapshot

__all__ = ["draw_run_times", "predictor_for"]


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
    >>> snapshot = start(4, [Job(run=9, requested=60), Job(processors=4, run=5)]).run(until=1).snapshot().expected()
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
