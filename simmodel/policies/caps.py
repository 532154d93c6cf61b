"""Policies that keep a cap on the power of a cluster.

Source of the choice of levels: M. Etinski et al., "Parallel job scheduling for power constrained HPC systems", Parallel
Computing 38(12), 2012.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Protocol

from simmodel.foundation.errors import InputError, shown
from simmodel.foundation.units import parse_quantity
from simmodel.platform.signals import Signal
from simmodel.policies.around import Around
from simmodel.policies.backfilling import Easy
from simmodel.policies.planning import ConservativeKeep
from simmodel.resources.pools.power import POWER, PowerCount
from simmodel.scheduling.protocol import Decision, Reserve, SetLevel, View, WakeAt
from simmodel.scheduling.registry import PolicyLike, policy as policy_of

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.resources.pools.pool import Consumables, Pool
    from simmodel.work.job import LiveJob

__all__ = ["Cap"]

_HOW = ("wait", "lower")
_ENDLESS = 1 << 60


class Capped(Protocol):
    """A cluster."""

    env: Environment

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def places(self) -> Sequence[Pool]:
        """Its partitions."""

    @property
    def view(self) -> View:
        """What its policy sees."""


class Cap(Around):
    """Let another policy decide, with no more power than a cap.

    Power is one more amount that jobs hold, as they hold licences: a job draws what its nodes draw above idle at its
    level, and no job starts if the nodes of all partitions would then draw more than the cap, now or at any time
    until its limit. So the plans and promises of the other policy count it. Nodes that are alike and share their load
    linearly, or that jobs have whole, are counted exactly, others by the most that the job could draw there. Nodes
    that can sleep count with what they draw while they boot, awake or not. Where the cap is no lower than the power
    of all nodes under load, it limits nothing.

    Parameters
    ----------
    watts
        a number, or a quantity such as ``"2MW"``; steps, as ``[(0, 2e6), ("8h", "1MW")]``, each from an instant on, as
        a text ``"2MW;1MW@8h"``; a :class:`~simmodel.platform.Signal`, or the name of one that the run has; default:
        no cap
    policy
        the policy under the cap; default: EASY
    how
        what becomes of a job that fits but for its power: ``"wait"``: it waits; ``"lower"``: it is planned, and may
        start, at the highest level of its nodes at which it fits now

    Raises
    ------
    InputError
        the cap is below the power of idle nodes, a signal does not cover the run, or the policy keeps its promises,
        so that jobs cannot be planned at another level

    >>> from simmodel import Job, simulate
    >>> from simmodel.platform import ClusterSpec, NodePower, NodeSpec, PartitionSpec
    >>> nodes = NodeSpec(count=4, power=NodePower(idle=100, levels=[(1.0, 200), (0.8, 150)]))
    >>> spec = ClusterSpec(partitions=[PartitionSpec(nodes=[nodes])])
    >>> jobs = [Job(processors=2, run=100), Job(processors=2, run=100)]
    >>> for policy in ("cap(600)", "cap(700, easy, lower)"):
    ...     print(simulate(spec, jobs, policy).jobs["end"])
    [100. 200.]
    [100. 125.]
    """

    decides = "jobs"
    tries_every_submission = True

    def __init__(
        self,
        watts: float | str | Signal | Sequence[tuple[float | str, float | str]] = inf,
        policy: PolicyLike | None = None,
        how: str = "wait",
    ) -> None:
        if how not in _HOW:
            raise InputError(f"must be {' or '.join(map(repr, _HOW))}, got {shown(how)}", place="how")
        self.watts = watts
        self.policy = Easy() if policy is None else policy_of(policy)
        self.how = how
        self.preempts = self.policy.preempts
        if how == "lower" and isinstance(self.policy, ConservativeKeep):
            raise InputError(
                f"must be 'wait' for {self.policy.name}, which keeps its promises, got 'lower'", place="how"
            )
        told = f"{watts:g}" if isinstance(watts, int | float) else watts if isinstance(watts, str) else "steps"
        self.name = f"cap({told}{'' if how == 'wait' else f', {how}'}) {self.policy.name}"
        self._until = inf  # the end of a signal
        self._amounts: Consumables | None = None  # which it limits

    def attach(self, system: Capped) -> None:
        """Let the jobs of a cluster request their power, of which there is as much as the cap leaves."""
        super().attach(system)
        now, places = system.env.now, system.places
        counts = {place: PowerCount(place, lowers=self.how == "lower") for place in places}
        own = [count for place, count in counts.items() if place.part_of is None]
        idle, most = sum(count.idle for count in own), sum(count.most for count in own)
        steps = []
        for at, watts in self._steps(system):
            cap = int(1000 * watts + 1e-6) if watts < inf else _ENDLESS
            if cap < idle:
                text = f"must be at least {idle / 1000:g} W, what the idle or booting nodes of {system.name} draw"
                raise InputError(f"{text}, got {watts:g} W", place="watts")
            steps.append((at, cap - idle if cap < most else _ENDLESS))
        if steps[0][0] > now:
            raise InputError(f"must be known from {now:g} s on, got a cap from {steps[0][0]:g} s on", place="watts")
        if all(headroom == _ENDLESS for _, headroom in steps):
            return
        for place, count in counts.items():
            place.power = count
        self._amounts = places[0].consumables
        self._amounts.limit(POWER, system.env, steps, [place.running for place in places])

    def _steps(self, system: Capped) -> list[tuple[float, float]]:
        """Return the watts from instants (s) on."""
        given = self.watts
        if isinstance(given, str) and given in system.view.signals:
            given = system.view.signals[given]
        if isinstance(given, Signal):
            self._until = given.end
            return list(zip(given.times, given.values, strict=True))
        if given == inf:
            return [(-inf, inf)]
        if isinstance(given, int | float):
            given = [(-inf, given)]
        elif isinstance(given, str):
            parts = [part.partition("@") for part in given.split(";")]
            given = [(at or -inf, watts) for watts, _, at in parts]
        pairs = [(parse_quantity(at, "s") if isinstance(at, str) else at, watts) for at, watts in given]
        try:
            found = [(float(at), float(parse_quantity(watts, "W"))) for at, watts in pairs]
        except InputError:
            found = []
        if not found or not all(watts >= 0 for _, watts in found):
            named = f", or one of the signals {', '.join(system.view.signals)}" if system.view.signals else ""
            text = f"must be watts, or steps such as '2MW;1MW@8h'{named}"
            raise InputError(f"{text}, got {shown(self.watts)}", place="watts")
        for (before, _), (after, _) in pairwise(found):
            if not after > before:
                raise InputError(f"must have increasing instants, got {after:g} after {before:g} s", place="watts")
        return found

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Yield the decisions of the other policy, and wake when there is more power."""
        if view.now >= self._until:
            raise InputError(
                f"must last as long as the run, got a signal that ends at {self._until:g} s", place="watts"
            )
        yield from self.policy.decide(view) or ()
        amounts = self._amounts
        if amounts is None:
            return
        started = self.how == "lower"
        while started and (lowered := dict(self._lower(view))):
            for job, level in lowered.items():
                yield SetLevel(job, level)
            for decision in self.policy.decide(view) or ():
                if type(decision) is not Reserve or decision.work not in lowered:  # that is for now, not for later
                    yield decision
            waiting = [job for job in lowered if job.state == "waiting"]
            for job in waiting:
                yield SetLevel(job, None)
            started = len(waiting) < len(lowered)
        if len(view.waiting) and (at := amounts.rises_at()) < inf:
            yield WakeAt(at)

    def _lower(self, view: View) -> Iterable[tuple[LiveJob, float]]:
        """Yield the waiting jobs that lack nothing but power, each with the highest level at which it fits now."""
        for job in view.waiting:
            place = job.place
            if job in view.choices or job.processors > place.free or place.fits(job) or job.own_times:
                continue
            if job.level is None and not (job.history is not None and job.history.resumes):
                for level in place.levels[1:]:
                    with job.trying(level):
                        fits = place.fits(job)
                    if fits:
                        yield job, level
                        break
