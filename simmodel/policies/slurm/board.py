"""The state that both loops of Slurm read: free nodes, running jobs by the end of their limits, and waiting jobs.

Source: the will-run test of select/cons_tres, by its behaviour.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import attrs

from simmodel.policies.slurm.selection import able, allocation_of, choose, enough, mask_of
from simmodel.resources.pools.allocation import AWAY

if TYPE_CHECKING:
    from simmodel.policies.slurm.accounts import Association, Qos
    from simmodel.policies.slurm.preemption import Preemption, Stake
    from simmodel.policies.slurm.selection import Free
    from simmodel.policies.slurm.settings import SlurmConf, SlurmPartition
    from simmodel.resources.pools.allocation import Allocation, NodeTable, Request
    from simmodel.work.job import LiveJob

__all__ = ["Board", "Held", "Pending", "Plan", "Site"]

_end = attrgetter("end")
WINDOW = 30
"""Seconds of the first window in which ends of running jobs are taken together."""


class Site(NamedTuple):
    """A partition on the nodes of a place: ``nodes`` as bits."""

    spec: SlurmPartition
    nodes: int


class Held(NamedTuple):
    """What a running job holds until the end of its limit (s, whole); ``nodes`` as bits; ``stake``: if preemptible."""

    end: int
    seq: int
    allocation: Allocation
    nodes: int
    stake: Stake | None = None

    @classmethod
    def of(cls, end: int, seq: int, allocation: Allocation, stake: Stake | None = None) -> Held:
        """Return what a job holds by its allocation."""
        return cls(end, seq, allocation, sum(1 << node for node in allocation.numbers), stake)


@attrs.define(eq=False)
class Pending:
    """A waiting job as both loops see it.

    Parameters
    ----------
    job, request
        the job, and what it asks of nodes
    board, site
        the nodes that it may have: a place, and its partition there
    limit
        seconds, in whole minutes
    priority, submitted, number
        by which it is sorted: lower numbers were submitted earlier
    ready
        whether the licences that it asks for are free
    over
        whether it has started
    begin
        the instant (s) from which it may start
    association, qos
        of its user and account, and its QOS, if they are known
    """

    job: LiveJob
    request: Request
    board: Board
    site: Site
    limit: int
    priority: float
    submitted: float
    number: int
    user: int | str | None = None
    ready: bool = True
    over: bool = False
    begin: float = 0.0
    association: Association | None = None
    qos: Qos | None = None

    @property
    def waits(self) -> bool:
        """Whether it still waits: a start can have others held, or be that of another entry of the same job."""
        return not self.over and self.job.state == "waiting"

    def key(self) -> tuple[float, float, float, int]:
        """Return the sort key of both loops: tier, priority, submission."""
        return (-self.site.spec.tier, -self.priority, self.submitted, self.number)


class Plan(NamedTuple):
    """When a job would start (s, whole), after so many ends of running jobs."""

    start: int
    released: int


class Board:
    """The nodes of a place at one instant; starts are noted as they are made.

    Parameters
    ----------
    table
        the free capacity of each node, which whoever carries out the starts keeps up to date
    settings
        of slurm.conf

    Attributes
    ----------
    now, running
        the instant (s, whole); what running jobs hold, by the ends of their limits
    up, completing
        nodes that are up, and nodes of ended jobs that are not free yet, as bits
    accepts
        whether the place takes a job with an allocation now: it may know of more than free nodes
    preemption
        the rules of preemption, if there are any
    """

    def __init__(self, table: NodeTable, settings: SlurmConf) -> None:
        self.table = table
        self.settings = settings
        self.now = 0
        self.running: list[Held] = []
        self.completing = self.up = 0
        self.accepts: Callable[[Pending, Allocation], bool] | None = None
        self.preemption: Preemption | None = None
        self._free: dict[int, Free] = {}  # after so many ends
        self._able: dict[Request, dict[int, int]] = {}

    def renew(self, now: float, running: Iterable[Held], completing: int = 0) -> None:
        """Take over the state at an instant (s), before a cycle."""
        self.now = int(now)
        self.running = sorted(running, key=lambda held: (held.end, held.seq))
        self.completing = completing
        self.up = mask_of(self.table.free[0] > -AWAY / 2)
        self._free.clear()
        self._able.clear()

    def started(self, held: Held) -> None:
        """Note a job that has just started."""
        insort(self.running, held, key=lambda each: (each.end, each.seq))
        self._free.clear()
        self._able.clear()

    def stopped(self, held: Held, completing: bool) -> None:
        """Note a job that has just been preempted; ``completing``: its nodes are not free yet."""
        self.running = [each for each in self.running if each is not held]
        if completing:
            self.completing |= held.nodes
        self._free.clear()
        self._able.clear()

    def like(self, table: NodeTable, running: Iterable[Held]) -> Board:
        """Return the same nodes with other free capacity and other running jobs."""
        other = Board(table, self.settings)
        other.now, other.up, other.completing, other.running = self.now, self.up, self.completing, list(running)
        return other

    def fits(self, request: Request, nodes: int) -> bool:
        """Whether a job could start now on these nodes."""
        return enough(self.table.free, request, self._usable(request, 0) & nodes)

    def select(self, job: Pending, nodes: int) -> Allocation | None:
        """Return the parts of these nodes that a job gets now, if it can start."""
        usable = self._usable(job.request, 0) & nodes
        if not enough(self.table.free, job.request, usable):
            return None
        chosen = choose(self.table.free, job.request, usable, least_loaded=self.settings.least_loaded)
        found = allocation_of(self.table, job.request, chosen)
        return found if self.accepts is None or self.accepts(job, found) else None

    def will_run(self, request: Request, nodes: int, latest: int = 0) -> Plan | None:
        """Return when a job could start on these nodes by the limits of running jobs; ``None``: never.

        Running jobs are released in the order of their ends, those of a window together: the first window ends 30 s
        after the first end, rounded up to 30 s, and each next one is twice as long, until it takes in the next end. The
        start is the end of the last job released.

        Parameters
        ----------
        latest
            an instant (s): of a later start, any bound after it is returned; 0: the start matters in any case
        """
        if self.fits(request, nodes):
            return Plan(self.now, 0)
        if latest:
            ended = bisect_right(self.running, latest, key=_end)
            if not self._fits_after(ended, request, nodes):
                return Plan(self.running[ended].end, 0) if ended < len(self.running) else None
        needed = self._needed(request, nodes)
        if needed is None:
            return None
        running, count = self.running, len(self.running)
        window, first, released, last = WINDOW, 0, 0, running[0]
        while True:
            while released < count:
                held = running[released]
                released += 1
                if not held.nodes & nodes:
                    continue
                first, last = first or -(-held.end // WINDOW) * WINDOW, held
                if released < count and running[released].end > first + window:
                    break
            if released >= needed:
                return Plan(self._end_of(last), released)
            window = self._wider(window, first, released)

    def _needed(self, request: Request, nodes: int) -> int | None:
        """Return after how many ends a job fits on these nodes, which it does after any more; ``None``: never."""
        low, high = 1, len(self.running)
        if not self._fits_after(high, request, nodes):
            return None
        while low < high:
            middle = (low + high) // 2
            if self._fits_after(middle, request, nodes):
                high = middle
            else:
                low = middle + 1
        return low

    def _fits_after(self, released: int, request: Request, nodes: int) -> bool:
        return enough(self._after(released), request, self._usable(request, released) & nodes)

    def _wider(self, window: float, first: int, released: int) -> int:
        """Return the next window: it takes in the next end."""
        step = self.settings.bf_window_scale
        while True:
            window = window + step if step else window * 2
            if released >= len(self.running) or self.running[released].end <= first + window:
                return int(window)

    def _end_of(self, held: Held) -> int:
        """Return when a job is thought to have ended: later than its limit if that has passed."""
        if held.end > self.now:
            return held.end
        over = self.settings.over_time_limit
        end = held.end + self.settings.kill_wait + (0.0 if over == float("inf") else over)
        return max(int(end), self.now + 1)

    def chosen(self, request: Request, nodes: int, released: int) -> int:
        """Return which of these nodes a job would get after so many ends, as bits."""
        usable = self._usable(request, released) & nodes
        chosen = choose(self._after(released), request, usable, least_loaded=self.settings.least_loaded)
        return sum(1 << node for node, _ in chosen)

    def _after(self, released: int) -> Free:
        """Return the free capacity after the first ends."""
        if not released:
            return self.table.free
        found = self._free.get(released)
        if found is None:
            before = max([each for each in self._free if each < released], default=0)
            found = self._after(before).copy()
            for held in self.running[before:released]:
                found[:, held.allocation.nodes] += held.allocation.amounts
            self._free[released] = found
        return found

    def _usable(self, request: Request, released: int) -> int:
        """Return the nodes that meet what a request asks of each node, after the first ends."""
        known = self._able.get(request)
        if known is None:
            known = self._able[request] = {}
        found = known.get(released)
        if found is None:
            found = known[released] = able(self._after(released), self.table.capacity, request)
        return found
