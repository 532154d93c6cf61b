"""Jobs with traffic: their progress, and ends that are planned anew when the rates of jobs change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy as np

from simmodel.platform.topology import ends_of
from simmodel.resources.network.progress import Fluid, Fluids, LinkUsage
from simmodel.snapshots.jobs import Pace
from simmodel.work.job import Refusal
from simmodel.work.traffic import Slowed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.environment import Call
    from simmodel.platform.topology import Topology
    from simmodel.resources.pools.pool import Pool
    from simmodel.systems.cluster.core import ClusterCore
    from simmodel.work.job import Job, Run
    from simmodel.work.traffic import Phase, Traffic

__all__ = ["JobTraffic", "why_no_traffic"]

_BEFORE_SCHEDULERS = -1
_ROUNDING = 1e-12  # relative
_BETWEEN = 1e-9
"""The share of a phase by which rounding may miss its end."""
_KEPT = 256
"""Sets of nodes whose links are kept, of the latest jobs."""
_NONE = np.zeros(0, dtype=np.int64), np.zeros(0)


class Ends(Protocol):
    """The part that ends runs: the execution of a cluster."""

    def finish(self, run: Run, status: str | None = None, /) -> None:
        """End a run, by default with the planned status."""
        ...


def why_no_traffic(spec: Job, place: Pool) -> str | None:
    """Return why a job's traffic cannot go through the network of a place, or ``None``."""
    assert spec.traffic is not None
    if place.network is None:
        return Refusal.of("traffic among its nodes", f"{place.name} has no network")
    return None if spec.nodes is None else spec.traffic.why_not(spec.nodes)


class _Part(NamedTuple):
    """A phase of a run: its links, the bytes over each at a progress of 1, the rates of its processors and alone.

    ``lag``: the longest latency (s) of its messages, after which it begins.
    """

    links: NDArray[np.int64]
    amounts: NDArray[np.float64]
    ceiling: float
    alone: float
    lag: float


class _Talk(Fluid):
    """A run with traffic: how much of it is left, of 1, at an instant (s), and the call that ends its phase."""

    __slots__ = (
        *("begun", "by", "call", "lag_call", "left", "limit_at", "lost", "pace", "part", "parts", "run", "since"),
        *("stands", "told"),
    )

    def __init__(self, run: Run, parts: Sequence[_Part], left: float) -> None:
        super().__init__(run.job.seq, *_NONE)
        self.run = run
        self.parts = parts
        self.left = self.begun = left  # now, and when the run began
        self.part = 0
        self.enter()
        self.since: float = run.started
        self.pace = 0.0  # its rate since then
        self.limit_at = inf
        self.call: Call | None = None
        self.lag_call: Call | None = None  # ends the latency of its phase
        self.stands = False  # whether it stands still: in this latency, or since a link on its way is down
        self.by: tuple[int, int | str] | None = None  # the link that limits it, and the job with most of it
        self.lost: dict[tuple[int, int | str], float] = {}  # seconds by these, until an instant (s)
        self.told: float = run.started

    @property
    def floor(self) -> float:
        """How much is left at the end of its phase."""
        return (len(self.parts) - 1 - self.part) / len(self.parts)

    def enter(self) -> None:
        """Take the traffic of the phase that it has come to."""
        count = len(self.parts)
        self.part = min(count - 1, int((1.0 - self.left) * count + _BETWEEN))
        self.links, self.amounts, self.ceiling, _, _ = self.parts[self.part]

    @property
    def fresh(self) -> bool:
        """Whether it has done nothing of its phase."""
        return self.left >= (len(self.parts) - self.part) / len(self.parts) * (1 - _BETWEEN)

    def seconds_alone(self) -> float:
        """Return the seconds that this run would have taken alone so far."""
        seconds, count = 0.0, len(self.parts)
        for number, part in enumerate(self.parts):
            share = min(self.begun, (count - number) / count) - max(self.left, (count - 1 - number) / count)
            if share > 0:
                fresh = self.begun >= (count - number) / count * (1 - _BETWEEN)
                seconds += share / part.alone + (part.lag if fresh else 0.0)
        return seconds

    def advance(self, now: float) -> None:
        """Count the progress since the last change; it stays within the phase."""
        floor = self.floor
        self.left = max(floor, self.left - float(now - self.since) * self.pace) if self.pace < inf else floor
        self.since = now
        self.lose(now)

    def lose(self, now: float) -> None:
        """Count the seconds lost to the job with most of the link that limits it."""
        if self.by is not None and self.pace < self.alone:
            lost = float(now - self.told) * (1 - self.pace / self.alone)
            self.lost[self.by] = self.lost.get(self.by, 0.0) + lost
        self.told = now


_Load: TypeAlias = "tuple[NDArray[np.int64], NDArray[np.float64], float]"


class _Wires:
    """The network of a place: how its jobs load and share the links."""

    def __init__(self, topology: Topology, rule: str) -> None:
        self.usage = LinkUsage(topology)
        self.fluids = Fluids(rule)
        self._kept: dict[tuple[Traffic, bytes], _Load] = {}
        self.down: Counter[str] = Counter()  # switches, by how many reasons

    def blocks(self, part: _Part) -> bool:
        """Whether a phase uses a link at a switch that is down."""
        if not self.down:
            return False
        ends = (end for link in part.links.tolist() for end in ends_of(self.usage.name(link)))
        return any(end in self.down for end in ends)

    def loads(self, traffic: Traffic, hosts: NDArray[np.int64]) -> _Load:
        """Return the links that traffic among hosts uses, the bytes over each, and the longest latency (s)."""
        key = traffic, hosts.tobytes()
        found = self._kept.pop(key, None)
        if found is None:
            sources, destinations, amounts = traffic.messages(len(hosts))
            ends = hosts[sources], hosts[destinations]
            links, amounts = self.usage.of(*ends, amounts)
            found = links, amounts, self.usage.longest(*ends) if self.usage.lags else 0.0
        self._kept[key] = found
        if len(self._kept) > _KEPT:
            del self._kept[next(iter(self._kept))]
        return found

    def parts(self, phases: Sequence[Phase], hosts: NDArray[np.int64], speed: float) -> list[_Part]:
        """Return the phases of a run on hosts, the slowest of which has a speed."""
        made: dict[Phase, _Part] = {}
        for phase in phases:
            if phase not in made:
                links, amounts, lag = (*_NONE, 0.0) if phase.traffic is None else self.loads(phase.traffic, hosts)
                amounts = amounts * len(phases)
                ceiling = (speed / phase.compute if phase.compute else inf) / len(phases)
                own = self.usage.capacity[links] / amounts
                made[phase] = _Part(links, amounts, ceiling, min(ceiling, float(own.min(initial=inf))), lag)
        return [made[phase] for phase in phases]


class JobTraffic:
    """The jobs with traffic that run on a cluster.

    Rates are solved once an instant, after ends and submissions and before decisions, for the jobs that share links
    with those that started or ended. Only a job whose rate has changed gets another end.

    Parameters
    ----------
    core
        that of the cluster
    ends
        the execution of the cluster
    """

    def __init__(self, core: ClusterCore, ends: Ends) -> None:
        self._core = core
        self._ends = ends
        self._wires: dict[Pool, _Wires] = {}
        self._talks: dict[Run, _Talk] = {}
        self._settle_at_end = core.env.at_instant_end(self.settle, _BEFORE_SCHEDULERS)

    def _wires_of(self, place: Pool) -> _Wires:
        """Return the network of a place: a reservation has that of its partition."""
        whole = place.part_of or place
        if whole not in self._wires:
            assert whole.network is not None
            self._wires[whole] = _Wires(whole.network.topology, self._core.options.sharing)
        return self._wires[whole]

    # ------------------------------------------------------------------ starts and ends

    def begin(self, run: Run, pace: Pace | None = None) -> None:
        """Begin a run, or continue one that was suspended, or one of a snapshot at its ``pace``."""
        job, place = run.job, run.place
        spec, past, wires = job._job, job.history, self._wires_of(place)
        assert spec is not None
        assert spec.traffic is not None
        assert place.network is not None
        nodes = sorted(run.grant.nodes)
        speed = place.speed_of(job, run.grant.nodes)
        faster = 1.0 if job.elastic is None else job.elastic.speed(job.processors)
        parts = wires.parts(spec.traffic.phases(spec.compute), place.network.hosts[nodes], speed * faster)
        talk = _Talk(run, parts, 1.0 if past is None else 1.0 - past.done)
        if self._core.overrun == "stop" and spec.requested is not None:
            ran = past._whole[0] - job.planned if past is not None and past._whole is not None else 0.0
            left = spec.requested - ran if job.elastic is None else job.planned
            talk.limit_at = run.started + left / speed
        if pace is not None:
            talk.left, talk.since, talk.pace = pace
            talk.told = self._core.env._now
            talk.enter()
        self._talks[run] = talk
        if pace is None:
            self._enter(talk, wires)
        elif talk.since > self._core.env._now:
            talk.stands = True
            self._lag(talk, talk.since)
        else:
            wires.fluids.join(talk, wires.usage.capacity, wires.usage.apart, pace.rate)

    def _enter(self, talk: _Talk, wires: _Wires) -> None:
        """Begin a phase, or go on with it: after the latency of its messages, once no link on its way is down."""
        part = talk.parts[talk.part]
        if wires.blocks(part):
            self._stand(talk)
        elif part.lag and talk.fresh:
            self._stand(talk)
            talk.since = self._core.env._now + part.lag
            self._lag(talk, talk.since)
        else:
            self._join(talk, wires)

    def _lag(self, talk: _Talk, at: float) -> None:
        talk.lag_call = self._core.env.call_at(at, lambda: self._lag_over(talk), self._core.end_priority)

    def _lag_over(self, talk: _Talk) -> None:
        talk.lag_call, talk.since = None, self._core.env._now
        self._join(talk, self._wires_of(talk.run.place))

    def _stop_lag(self, talk: _Talk) -> None:
        if talk.lag_call is not None:
            if talk.lag_call.pending:
                self._core.env.withdraw(talk.lag_call)
            talk.lag_call = None
            talk.since = self._core.env._now

    def _join(self, talk: _Talk, wires: _Wires) -> None:
        talk.stands = False
        wires.fluids.join(talk, wires.usage.capacity, wires.usage.apart)
        self._settle_at_end()

    def _stand(self, talk: _Talk) -> None:
        """Let a run stand still, until its limit."""
        talk.stands, talk.rate, talk.pace, talk.by = True, 0.0, 0.0, None
        talk.run.job.end_as(cut=talk.limit_at < inf)
        talk.run.job.changed()
        if talk.call is None or not talk.call.pending or talk.run._end != talk.limit_at:
            self.plan_end(talk.run, talk.limit_at)

    def cut(self, place: Pool, switch: str, more: int) -> None:
        """Take the links at a switch of the network of a place down (1), or end that (-1).

        Runs over these links stand still; routes do not change.
        """
        wires = self._wires_of(place)
        wires.down[switch] += more
        if not wires.down[switch]:
            del wires.down[switch]
        for run, talk in self._talks.items():
            blocked, waits = wires.blocks(talk.parts[talk.part]), talk.stands and talk.lag_call is None
            if self._wires_of(run.place) is not wires or blocked == waits:
                continue
            self._stop_lag(talk)
            talk.advance(self._core.env._now)
            if waits:
                talk.enter()
                self._enter(talk, wires)
            elif talk.stands:
                self._stand(talk)
            else:
                wires.fluids.leave(talk)
                self._settle_at_end()
                self._stand(talk)

    def resize(self, former: Run, run: Run) -> None:
        """Continue a run on other nodes, as another run: what is done of it stays done."""
        self.end(former, "resized")
        self.begin(run)

    def end(self, run: Run, status: str | None) -> None:
        """End a run with a status, ``None``: as if it had not begun; keep what is done of it where its job keeps work.

        Observers hear ``job_slowed(run, slowed)``.
        """
        talk = self._talks.pop(run, None)
        if talk is None:
            return
        wires = self._wires_of(run.place)
        self._stop_lag(talk)
        if not talk.stands:
            wires.fluids.leave(talk)
            self._settle_at_end()
        if talk.call is not None and talk.call.pending:
            self._core.env.withdraw(talk.call)
        if status is None:
            return
        talk.advance(self._core.env._now)
        job = run.job
        assert job._job is not None
        keeps = status in ("suspended", "resized") or (status in ("preempted", "requeued") and job._job.keeps_work)
        if keeps or job.history is not None:
            job.remember().done = 1.0 - talk.left if keeps else 0.0
        lost = sorted(((-seconds, key[0], str(key[1]), key[1]) for key, seconds in talk.lost.items() if seconds > 0))
        by = tuple((other, wires.usage.where(link), -seconds) for seconds, link, _, other in lost)
        self._core.tell("job_slowed", run, Slowed(talk.seconds_alone(), by))

    def _over(self, talk: _Talk) -> None:
        """End a run at its limit or after its last phase, or begin its next phase."""
        talk.call = None
        cut = talk.run.job._outcome == "timeout" and self._core.env._now >= talk.limit_at
        if cut or talk.part == len(talk.parts) - 1:
            self._ends.finish(talk.run)
            return
        wires = self._wires_of(talk.run.place)
        wires.fluids.leave(talk)
        talk.advance(self._core.env._now)
        talk.left, talk.pace, talk.by = talk.floor, 0.0, None
        talk.enter()
        self._settle_at_end()
        self._enter(talk, wires)

    # ------------------------------------------------------------------ rates

    def settle(self) -> None:
        """Solve the rates that changes of this instant reach, and plan the ends anew."""
        for wires in self._wires.values():
            if wires.fluids.waiting:
                self._plan(wires.fluids)

    def _plan(self, fluids: Fluids) -> None:
        now = self._core.env._now
        for talk in fluids.solve():
            assert isinstance(talk, _Talk)
            beside = talk.beside
            found = (talk.limit, beside.run.job.id) if isinstance(beside, _Talk) else None
            if talk.rate == talk.pace and talk.call is not None:
                if found != talk.by:
                    talk.lose(now)
                    talk.by = found
                continue
            talk.advance(now)
            talk.pace, talk.by = talk.rate, found
            rest = talk.left - talk.floor
            at = now if not rest or talk.rate == inf else now + rest / talk.rate if talk.rate else inf
            late = at > talk.limit_at + _ROUNDING * max(1.0, abs(talk.limit_at))
            talk.run.job.end_as(cut=late)
            talk.run.job.changed()
            self.plan_end(talk.run, max(now, min(at, talk.limit_at)))

    def runs(self, run: Run) -> bool:
        return run in self._talks

    def plan_end(self, run: Run, at: float) -> None:
        """Plan the end of a run at an instant (s), in place of an earlier plan."""
        talk, env = self._talks[run], self._core.env
        if talk.call is not None and talk.call.pending:
            env.withdraw(talk.call)
        talk.call = None
        run._end = at
        if at < inf:
            talk.call = env.call_at(at, lambda: self._over(talk), self._core.end_priority)

    # ------------------------------------------------------------------ snapshots

    def endings(self) -> Iterator[tuple[float, float, int, Run]]:
        """Yield the planned ends: instant (s), priority, number and run."""
        self.settle()
        for run, talk in self._talks.items():
            if talk.call is not None and talk.call.pending:
                yield float(talk.call.at), float(talk.call.priority), talk.call.number, run

    def pace_of(self, run: Run) -> Pace | None:
        """Return how far a run is; ``None``: it has no traffic."""
        talk = self._talks.get(run)
        return None if talk is None else Pace(talk.left, float(talk.since), talk.pace)
