"""Shares of the bandwidth of a machine's links, which tasks hold while they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from simpy.events import Event

from simmodel.resources.pools.pool import Consumables
from simmodel.work.task import shares_of

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.resources.network.network import Network
    from simmodel.resources.processors.taskplace import TaskPlace
    from simmodel.work.taskset import LiveTask

__all__ = ["TaskShares"]


class _Claim(NamedTuple):
    since: float  # when the data of the task were there (s)
    place: int
    task: LiveTask
    event: Event


class TaskShares:
    """The bandwidth that tasks hold, withheld from transfers; claims are served in order.

    Parameters
    ----------
    env, network, places
        the environment; the network whose shared links have the bandwidth; the processors, whose queues ask for some

    >>> from simmodel import Task, Workflow, simulate
    >>> from simmodel.platform import ArchitectureSpec, LinkSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
    >>> spec = MachineSpec(
    ...     pools=[MemoryPoolSpec(name="a"), MemoryPoolSpec(name="b")], architectures=[ArchitectureSpec(name="x")],
    ...     processors=[ProcessorSpec(name="p", count=3, type="CPU", architecture="x", pool="a")],
    ...     links=[LinkSpec(name="bus", bandwidth="10GB/s", between=("a", "b"))])
    >>> readers = [Task(id=i, run=5, bandwidth={"bus": "4GB/s"}) for i in range(3)]
    >>> simulate(spec, Workflow(readers), "hrr").tasks["start"].tolist()
    [0.0, 0.0, 5.0]
    """

    def __init__(self, env: Environment, network: Network, places: Sequence[TaskPlace] = ()) -> None:
        links = [link for link in network.links.values() if link.spec.sharing == "shared"]
        told = {link.name: partial(network.withhold, link) for link in links}
        self.amounts = Consumables({link.name: link.spec.bandwidth for link in links}, told)
        self._env = env
        self._places = places
        self._claims: list[_Claim] = []
        self._called = False

    def why_not(self, need: Mapping[str, float]) -> str | None:
        """Return why a task with this need can never run, or ``None``."""
        return self.amounts.why_not(need)

    def fits(self, task: LiveTask) -> bool:
        """Return whether the shares of a task are free, and not asked for by tasks that are on processors already."""
        need = shares_of(task.amounts)
        if not need or self._claims:
            return not need
        for place in self._places:
            for other in (*place.waiting, *(entry[3].work for entry in place.entries())):
                if other.stamps is None or len(other.stamps) < 6:
                    for name, rate in shares_of(other.amounts).items():
                        need[name] = need.get(name, 0.0) + rate
        return self.amounts.fits(need)

    def claim(self, task: LiveTask, since: float, place: int) -> Event | None:
        """Return the event of the instant at which a task has its shares; ``None`` if it asks for none."""
        if not shares_of(task.amounts):
            return None
        event = Event(self._env)
        self._claims.append(_Claim(since, place, task, event))
        self._look_again()
        return event

    def take(self, task: LiveTask) -> None:
        """Take the shares of a task that runs in a snapshot."""
        self.amounts.take(shares_of(task.amounts))

    def give_back(self, task: LiveTask) -> None:
        """Take back the shares of a task that has ended or was stopped."""
        need = shares_of(task.amounts)
        if need:
            self.amounts.give_back(need)
            if self._claims:
                self._look_again()

    def _look_again(self) -> None:
        """Serve the claims after the events of this instant that are already scheduled: their order is named."""
        if not self._called:
            self._called = True
            self._env.call_at(self._env.now, self._serve)

    def _serve(self) -> None:
        self._called = False
        self._claims.sort(key=lambda claim: (claim.since, claim.place, claim.task.index))
        while self._claims and self.amounts.fits(need := shares_of(self._claims[0].task.amounts)):
            claim = self._claims.pop(0)
            self.amounts.take(need)
            claim.event.succeed()
