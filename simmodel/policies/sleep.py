"""Policies that put idle nodes to sleep."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

from simmodel.environment import WAKE_UP
from simmodel.foundation.errors import InputError, shown
from simmodel.foundation.units import in_seconds
from simmodel.policies.around import Around
from simmodel.policies.backfilling import Easy
from simmodel.scheduling.protocol import Decision, Sleep, View
from simmodel.scheduling.registry import PolicyLike, policy as policy_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from simmodel.resources.pools.pool import Pool
    from simmodel.scheduling.scheduler import Scheduler

__all__ = ["SleepAfter"]


class Execution(Protocol):
    """What starts and ends the jobs of a cluster."""

    def after_each(self, call: Callable[[], object]) -> None:
        """Call a function after each start and each end."""
        ...


class Attached(Protocol):
    """A cluster."""

    @property
    def places(self) -> Sequence[Pool]:
        """Its places."""
        ...

    @property
    def scheduler(self) -> Scheduler:
        """Its scheduler."""
        ...

    @property
    def execution(self) -> Execution:
        """What starts and ends its jobs."""
        ...


class SleepAfter(Around):
    """Let another policy decide, then put the nodes to sleep that have been idle for long enough.

    The nodes that have been idle for longest sleep first. Jobs wake the nodes that they need. Under EASY, none sleeps
    that could not be up again when the first waiting job is to start; under other policies, none while jobs wait.

    Parameters
    ----------
    seconds
        for how long a node is idle before it sleeps: a number, or a quantity such as ``"5min"``; infinite: never
    policy
        the policy that starts jobs
    spare
        how many idle nodes of each partition stay awake
    begin
        from which instant (s) on nodes sleep

    Raises
    ------
    InputError
        a negative time or number

    >>> from simmodel import Job, simulate
    >>> from simmodel.platform import ClusterSpec, NodePower, NodeSpec, PartitionSpec
    >>> power = NodePower(idle=95, load=190.7, off=9.75, boot=("150s", 125), stop=("6s", 101))
    >>> spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(cores=1, power=power)])])
    >>> result = simulate(spec, [Job(run=60), Job(run=60, submit=400)], "sleep-after(300)")
    >>> result.jobs["start"], result.changes["cause"].tolist()
    (array([  0., 550.]), ['sleep', 'wake', 'boot'])
    """

    decides = "jobs"

    def __init__(
        self, seconds: float | str = 300.0, policy: PolicyLike | None = None, *, spare: int = 0, begin: float = -inf
    ) -> None:
        self.seconds: float = in_seconds(seconds)
        if isinstance(self.seconds, bool) or not isinstance(self.seconds, (int, float)) or not self.seconds >= 0:
            raise InputError(f"must be a time >= 0, got {shown(seconds)}", place="seconds")
        if isinstance(spare, bool) or not isinstance(spare, int) or spare < 0:
            raise InputError(f"must be a whole number of nodes >= 0, got {shown(spare)}", place="spare")
        self.policy = Easy() if policy is None else policy_of(policy)
        self.spare = spare
        self.begin = begin
        self._continues = False  # whether its alarms are those of a snapshot
        self.preempts = self.policy.preempts
        self.tries_every_submission = self.policy.tries_every_submission
        more = f", spare={spare}" if spare else ""
        self.name = f"sleep-after({self.seconds:g}{more}) {self.policy.name}"

    def attach(self, system: Attached) -> None:
        """Ask to decide when nodes have been idle for long enough."""
        super().attach(system)
        scheduler, env = system.scheduler, system.scheduler.env
        if self.seconds < inf and any(place.sleeping is not None for place in system.places):
            system.execution.after_each(lambda: self._ask(scheduler))
            env.call_at(env.now, lambda: self._begin(scheduler), what=WAKE_UP)

    def _begin(self, scheduler: Scheduler) -> None:
        """Ask for a decision about the nodes that are idle from the beginning."""
        since = [each for place in scheduler.view.places for _, each in self._idle(place)]
        if since and not self._continues:
            at = max(min(since) + self.seconds, self.begin)
            scheduler.wake_at(at) if at > scheduler.env.now else scheduler.wake_anyway()

    def _ask(self, scheduler: Scheduler) -> None:
        """Ask for a decision once the nodes that have come free now have been idle for long enough."""
        now = scheduler.env.now
        for place in scheduler.view.places:
            idle = place.sleeping.idle_since if place.sleeping is not None else None
            if idle and next(reversed(idle.values())) == now:
                if self.spare or not self.seconds:
                    scheduler.wake_anyway()
                scheduler.wake_at(now + self.seconds)

    def _idle(self, place: Pool) -> list[tuple[int, float]]:
        """Return the idle nodes that need not stay awake, each with the instant (s) since which it is idle."""
        idle = [] if place.sleeping is None else place.sleeping.idle()
        return idle[: max(len(idle) - self.spare, 0)]

    def notes(self, system: Attached, /) -> tuple[str, ...]:
        """Return a sentence if no node can sleep."""
        can = any(place.sleeping is not None for place in system.places)
        own = () if can else (f"policy {self.name} puts no node to sleep: none has a boot in its power",)
        return *own, *super().notes(system)

    def restore(self, values: dict[str, Any]) -> None:
        self._continues = True
        super().restore(values)

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Yield the decisions of the other policy, then put nodes to sleep."""
        yield from self.policy.decide(view) or ()
        slept = False
        for place in view.places if view.now >= self.begin else ():
            nodes = [node for node, since in self._idle(place) if since + self.seconds <= view.now]
            if nodes and not self._starts_soon(view, place):
                slept = True
                yield Sleep(place, nodes)
        if slept and view.waiting.count:  # whose nodes have to be woken in time
            yield from self.policy.decide(view) or ()

    def _starts_soon(self, view: View, place: Pool) -> bool:
        """Whether the first waiting job is to start before a node that is put to sleep now could be up again.

        Under other policies than EASY, whether any job waits: each may be the next to start.
        """
        queue = view.waiting.at(place)
        if place.sleeping is None or not queue.count:
            return False
        if not isinstance(self.policy, Easy):
            return True
        at, _ = place.earliest(queue.by(self.policy.order).head())
        return bool(at < view.now + place.sleeping.longest)
