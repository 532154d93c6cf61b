"""Episodes: sequences of a log within a range of time, drawn workloads, and warm beginnings from snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.catalogue.workloads import is_generator
from simmodel.foundation.errors import InputError
from simmodel.foundation.units import in_seconds
from simmodel.learn.rewards import Reward
from simmodel.runs.scenario import start
from simmodel.scheduling.objectives import ObjectiveLike
from simmodel.systems.submissions import read_workload
from simmodel.work.workload import Workload

if TYPE_CHECKING:
    from numpy.random import Generator

    from simmodel.runs.scenario import GivenPlatform
    from simmodel.runs.simulation import Simulation
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.snapshots.snapshot import Snapshot
    from simmodel.systems.submissions import GivenWork

__all__ = ["Episodes", "Filter", "Span", "seconds_of", "split_by_time", "within"]

Span = tuple[float | str, float | str]


class Episodes:
    """Draws the simulation of each episode from a random stream: same stream, same episode, in any process.

    Parameters
    ----------
    platform
        as for :func:`~simmodel.runs.scenario.start`; one policy for each place of a broker among the ``options``
    workload
        as there; a text with a generator and its parameters, such as ``"lublin:jobs=256,processors=128"``, is drawn
        anew for each episode
    jobs
        the number of jobs of an episode, consecutive ones of the log from a random one on; default: all
    span
        the range of the log from which jobs are taken, by their submission: (from, until), in s after the first
        submission or as texts such as ``("0d", "30d")``
    warm
        snapshots, one of which each episode continues, instead of a platform: its queue and running jobs are there at
        the beginning, and the jobs of the workload are submitted from its instant on
    accept
        a filter of the episodes
    options
        further arguments of :func:`~simmodel.runs.scenario.start`, such as ``estimates="exact"`` or ``until``

    Raises
    ------
    InputError
        the log has fewer jobs in the span than an episode needs

    >>> draw = Episodes(12, "probe-4", jobs=2)
    >>> draw(np.random.default_rng(0)).run().result().jobs["job"].tolist()
    [2, 3]
    """

    def __init__(
        self,
        platform: GivenPlatform,
        workload: GivenWork | None = None,
        *,
        jobs: int | None = None,
        span: Span | None = None,
        warm: Sequence[Snapshot] = (),
        accept: Filter | None = None,
        **options: Any,
    ) -> None:
        self.platform, self.workload, self.jobs, self.span = platform, workload, jobs, span
        self.warm, self.accept, self.options = warm, accept, options
        self._log: Workload | None = None
        if jobs is None and span is None:
            return
        if workload is None:
            raise InputError("missing: jobs and span are those of a log", place="workload")
        if isinstance(workload, str) and is_generator(workload):
            raise InputError("must be None for a generator, whose parameters set the jobs", place="jobs, span")
        self._log = log = within(_known(read_workload(workload)), span)
        if jobs is not None and not 1 <= jobs <= len(log):
            raise InputError(
                f"must be from 1 to {len(log)}, the jobs of {log.name} in the span, got {jobs!r}", place="jobs"
            )

    @classmethod
    def of(cls, given: GivenPlatform | Episodes, workload: GivenWork | None, options: Mapping[str, Any]) -> Episodes:
        """Return the episodes of a platform, or those that are given instead of one."""
        return given if isinstance(given, Episodes) else cls(given, workload, **options)

    def __call__(self, rng: Generator, policy: PolicyLike | None = None) -> Simulation:
        """Return the simulation of an episode, ready to run; ``policy``: to be run by it."""
        for _ in range(1000):
            seed, work = int(rng.integers(2**31)), self._drawn(rng)
            if self.accept is None or self.accept(self._start(seed, work, self.accept.policy)):
                return self._start(seed, work, policy)
        raise InputError("must accept at least one of 1,000 episodes", place="accept")

    def _drawn(self, rng: Generator) -> GivenWork | None:
        log = self._log
        if log is None or self.jobs is None:
            return self.workload if log is None else log
        first = int(rng.integers(len(log) - self.jobs + 1))
        return log.where(slice(first, first + self.jobs))

    def _start(self, seed: int, work: GivenWork | None, policy: PolicyLike | None = None) -> Simulation:
        if not self.warm:
            return start(self.platform, work, policy, seed=seed, **self.options)
        snapshot = self.warm[seed % len(self.warm)]
        return start(snapshot, work, policy, seed=seed, **self.options)


@attrs.frozen
class Filter:
    """Which episodes are used: those that a heuristic finds neither easy nor hopeless, as in RLScheduler.

    Parameters
    ----------
    low, high
        the least and the greatest objective of an episode under the policy
    policy
        the heuristic
    objective
        any argument of :class:`~simmodel.learn.rewards.Reward`
    """

    low: float
    high: float
    policy: PolicyLike = "sjf"
    objective: ObjectiveLike = "bounded_slowdown_mean"

    @classmethod
    def of_medians(
        cls,
        episodes: Episodes,
        draws: int = 100,
        *,
        seed: int = 0,
        policy: PolicyLike = "sjf",
        objective: ObjectiveLike = "bounded_slowdown_mean",
    ) -> Filter:
        """Return the filter of RLScheduler, from drawn episodes."""
        rng = np.random.default_rng(seed)
        values = [Reward(objective).value(episodes(rng, policy).run()) for _ in range(draws)]
        return cls(float(np.median(values)), 2 * float(np.mean(values)), policy, objective)

    def __call__(self, simulation: Simulation) -> bool:
        """Return whether the objective of an episode, which is run, lies within the bounds."""
        return self.low <= Reward(self.objective).value(simulation.run()) <= self.high


def _known(log: Workload) -> Workload:
    """Return a log without the columns of which it knows nothing: each episode copies them."""
    if log.specs is not None:
        return log
    columns = {name: log[name] for name in log.table.names}
    unknown = [name for name, each in columns.items() if each.dtype.kind in "if" and not (each > -1).any()]
    for name in set(unknown) - {"job", "submit", "run", "processors"}:
        del columns[name]
    return Workload(columns, name=log.name, processors=log.processors, header=log.header, report=log.report)


def within(log: Workload, span: Span | None) -> Workload:
    """Return the jobs of a log that are submitted within a span."""
    if span is None:
        return log
    begin, end = seconds_of(span)
    since = log["submit"] - log["submit"].min(initial=inf)
    return log.where((since >= begin) & (since < end))


def seconds_of(span: Span) -> tuple[float, float]:
    """Return both ends of a span (s); raises ``InputError`` if they are not two instants in order."""
    begin, end = (in_seconds(each) for each in span)
    if isinstance(begin, str) or isinstance(end, str) or not 0 <= begin < end:
        raise InputError(f"must be two instants >= 0 s, the first one before the second, got {span!r}", place="span")
    return float(begin), float(end)


def split_by_time(
    platform: GivenPlatform, workload: GivenWork, spans: Mapping[str, Span], **options: Any
) -> dict[str, Episodes]:
    """Return the episodes of several spans of a log, such as to train, validate and test.

    Raises
    ------
    InputError
        two spans overlap

    >>> parts = split_by_time(12, "probe-4", {"train": (0, 900), "test": (900, "1h")})
    >>> parts["train"](np.random.default_rng()).run().result().jobs["job"].tolist()
    [1]
    """
    found = sorted((*seconds_of(span), name) for name, span in spans.items())
    for (_, end, name), (begin, _, other) in pairwise(found):
        if begin < end:
            raise InputError(f"{name} and {other} overlap from {begin:g} to {end:g} s", place="spans")
    log = read_workload(workload)
    return {name: Episodes(platform, log, span=span, **options) for name, span in spans.items()}
