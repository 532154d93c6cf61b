"""Episodes: sequences of a log within a range of time, drawn workloads, and warm beginnings from snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.catalogue.formats import is_workflow
from simmodel.catalogue.workloads import is_generator
from simmodel.foundation.errors import InputError, UnknownOption
from simmodel.foundation.units import in_seconds
from simmodel.learn.rewards import Reward
from simmodel.runs.scenario import check_option_names, platform_of, start
from simmodel.scheduling.objectives import ObjectiveLike
from simmodel.systems.kinds import kind_of_platform, snapshot_in
from simmodel.systems.submissions import read_workload
from simmodel.work.job import Job
from simmodel.work.prepare import Frame, as_workload
from simmodel.work.workload import Workload

if TYPE_CHECKING:
    from numpy.random import Generator

    from simmodel.runs.scenario import GivenPlatform
    from simmodel.runs.simulation import Simulation
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.snapshots.snapshot import Snapshot
    from simmodel.systems.submissions import GivenWork

__all__ = ["Episodes", "Filter", "Span", "apart", "seconds_of", "split_by_time", "within"]

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
        snapshots or their files, one of which each episode continues, instead of a platform: its queue and running jobs
        are there at the beginning, and so are arrivals that it knows. Drawn jobs, and a log that begins earlier, are
        shifted to begin at its instant
    accept
        a filter of the episodes
    options
        further arguments of :func:`~simmodel.runs.scenario.start`, such as ``estimates="exact"`` or ``until``

    Raises
    ------
    InputError
        the log has fewer jobs in the span than an episode needs; an option is unknown: that is a ``TypeError``, too

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
        warm: Sequence[Snapshot | str | Path] = (),
        accept: Filter | None = None,
        **options: Any,
    ) -> None:
        self.platform, self.workload, self.jobs, self.span = platform, workload, jobs, span
        self.warm, self.accept, self.options = warm, accept, options
        found = [snapshot_in(platform_of(each)) for each in warm] if isinstance(warm, list | tuple) else [None]
        self._queues = [each for each in found if each is not None]
        if len(self._queues) < len(found):
            raise InputError(f"must be a list of snapshots or their files, got {warm!r}", place="warm")
        if accept is not None and not isinstance(accept, Filter):
            raise InputError(f"must be a Filter, got {accept!r}", place="accept")
        for name in ("policy", "seed"):
            if name in options:
                raise InputError("must not be given: the agent decides, and reset(seed=) seeds", place=name)
        self._spec = self._queues[0] if self._queues else platform_of(platform)
        check_option_names(self._spec, options)
        self._blind = False
        self._log: Workload | None = None
        if jobs is None and span is None:
            return
        if workload is None:
            raise InputError("missing: jobs and span are those of a log", place="workload")
        if isinstance(workload, str) and is_generator(workload):
            raise InputError("must be None for a generator, whose parameters set the jobs", place="jobs, span")
        self._log = log = within(_known(read_workload(workload)), span)
        if not len(log):
            raise InputError(f"has no jobs of {log.name}, got {span!r}", place="span")
        if jobs is not None and not (isinstance(jobs, int) and 1 <= jobs <= len(log)):
            raise InputError(
                f"must be from 1 to {len(log)}, the jobs of {log.name} in the span, got {jobs!r}", place="jobs"
            )

    @classmethod
    def of(
        cls, given: GivenPlatform | Episodes, workload: GivenWork | None, options: Mapping[str, Any], drawing: None
    ) -> Episodes:
        """Return the episodes of a platform, or those that are given instead of one, of an environment.

        ``drawing``: how gymnasium wants it to be drawn: not at all.
        """
        if drawing is not None:
            raise UnknownOption(f"must be None: there is nothing to draw, got {drawing!r}", place="render_mode")
        return given if isinstance(given, Episodes) else cls(given, workload, **options)

    def blind(self) -> Episodes:
        """Return these episodes with jobs that request no time planned as if they had no end, unless by ``estimates``.

        Elsewhere policies plan them with their run times, from which an agent beside them would learn the future.

        Raises
        ------
        InputError
            jobs of a warm beginning request no time
        """
        if "estimates" in self.options:
            return self
        for job in (job for each in self._queues for job in each.unrequested):
            reason = (
                f"must request times, but job {job} does not: policies beside the agent would plan with its run time"
            )
            raise InputError(reason, place="warm")
        other = copy(self)
        other._blind = True
        return other

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
        if self._blind and policy is None:
            work = _endless(work, seed)
        if not self._queues:
            given = kind_of_platform(self._spec).policy if policy is None else policy
            return start(self._spec, work, given, seed=seed, **self.options)
        snapshot = self._queues[seed % len(self._queues)]
        if work is not None:
            log = read_workload(work, seed=seed)
            early = snapshot.now - log["submit"].min(initial=inf)
            work = log.replace(submit=log["submit"] + early) if early > 0 or self.jobs is not None else log
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

    def __attrs_post_init__(self) -> None:
        if not self.low <= self.high:
            raise InputError(f"must be at most high, {self.high!r}, got {self.low!r}", place="low")

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


def _endless(work: GivenWork | None, seed: int) -> GivenWork | None:
    """Return work in which the jobs of logs that request no time request one without end; workflows stay."""
    if isinstance(work, Mapping):
        return {name: _endless(each, seed) for name, each in work.items()}
    if isinstance(work, Job):
        return attrs.evolve(work, requested=inf) if work.requested is None and work.run else work
    if isinstance(work, (list, tuple)):
        given: Any = (_endless(each, seed) if isinstance(each, (Job, Workload)) else each for each in work)
        return type(work)(given)
    if isinstance(work, (str, Path)):
        work = work if Path(work).is_file() and is_workflow(Path(work)) else read_workload(work, seed=seed)
    elif isinstance(work, Frame):
        work = as_workload(work)
    if not isinstance(work, Workload):
        return work
    requested = np.asarray(work.get("requested", np.nan), dtype=np.float64)
    unknown = ~(requested > 0) & (work["run"] > 0)
    return work.replace(requested=np.where(unknown, inf, requested))


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
    pair = tuple(span) if isinstance(span, Sequence) else ()
    begin, end = (in_seconds(each) for each in pair) if len(pair) == 2 else ("", "")
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
    apart(spans)
    log = read_workload(workload)
    return {name: Episodes(platform, log, span=span, **options) for name, span in spans.items()}


def apart(spans: Mapping[str, Span], place: str = "spans") -> dict[str, tuple[float, float]]:
    """Return spans in s, by name; raises ``InputError`` if two overlap."""
    found = {name: seconds_of(span) for name, span in spans.items()}
    for (one, (_, end)), (other, (begin, _)) in pairwise(sorted(found.items(), key=lambda item: item[1])):
        if begin < end:
            raise InputError(f"must not overlap, as {one} and {other} do from {begin:g} s on", place=place)
    return found
