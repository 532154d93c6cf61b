"""Slurm's backfill loop: every waiting job is planned against a table of the nodes that planned jobs leave free.

Source: sched/backfill of Slurm 22.05, by its behaviour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from simmodel_site.policy.board import Array, Board, Hetero, Pending
from simmodel_site.policy.hopes import Hopes
from simmodel_site.policy.layout import ANYWHERE
from simmodel_site.policy.main_loop import reserves

if TYPE_CHECKING:
    from simmodel.extending import Allocation
    from simmodel_site.policy.preemption import Preemption, Victims
    from simmodel_site.policy.selection import Each
    from simmodel_site.policy.settings import SlurmConf

__all__ = ["BackfillCycle", "Kind", "Planned", "Slot", "Tallies", "Window", "kind_of"]

Kind = tuple[int, int, int]
"""The processors, the limit (s) and the nodes of a job; 0 nodes: any number."""


def kind_of(job: Pending) -> Kind:
    return job.request.processors, job.limit, job.request.nodes or 0


class Planned(NamedTuple):
    """The planned start of a waiting job (s, whole), its nodes as bits, and whether they are reserved for it."""

    job: Pending
    start: int
    nodes: int
    reserved: bool


class Known(NamedTuple):
    """What a cycle has found of a job: its plan, if there is one, whether a test was needed, and whether it moved."""

    job: Pending
    plan: Planned | None
    tested: bool
    moved: bool


class Slot:
    """A span of time (s, whole) and the nodes, as bits, that no planned job has in it."""

    __slots__ = ("begin", "end", "nodes")

    def __init__(self, begin: int, end: int, nodes: int) -> None:
        self.begin = begin
        self.end = end
        self.nodes = nodes


class _Table:
    """The slots of a place, in order of time, up to an end (s)."""

    def __init__(self, begin: int, end: int, nodes: int, resolution: int) -> None:
        self.slots = [Slot(begin, end, nodes)]
        self.end = end
        self._resolution = resolution

    def free(self, begin: int, end: int) -> int:
        """Return the nodes that no planned job has from an instant to another."""
        found = -1
        for slot in self.slots:
            if slot.begin > end:
                break
            if slot.end > begin:
                found &= slot.nodes
        return found

    def divided_by(self, begin: int, end: int) -> float:
        """Return the end of a table from which on it is divided otherwise by a span of time; ``inf``: none."""
        last = self.end if begin >= self.end else max(end, begin + self._resolution)
        return last + self._resolution if last >= self.end else inf

    def overlaps(self, begin: int, end: int, nodes: int) -> bool:
        """Whether a planned job has one of these nodes in a span of time."""
        for slot in self.slots:
            if slot.begin >= end:
                return False
            if slot.end > begin and nodes & ~slot.nodes:
                return True
        return False

    def reserve(self, begin: int, end: int, nodes: int) -> int:
        """Keep nodes for a planned job in a span of time, of one slot at least; return the number of new records."""
        slots, made = self.slots, 0
        begin = max(begin, slots[0].begin)
        end = max(end, begin + self._resolution)
        at = next((i for i, slot in enumerate(slots) if slot.end >= begin), None)
        if at is None:
            return 0
        before = max(at - 1, 0)
        if slots[at].end > begin:
            slots.insert(at + 1, Slot(begin, slots[at].end, slots[at].nodes))
            slots[at].end = begin
            made += 1
        last = at + 1
        while last < len(slots):
            slot = slots[last]
            if end < slot.end:
                slots.insert(last + 1, Slot(end, slot.end, slot.nodes))
                slot.end = end
                made += 1
            slot.nodes &= ~nodes
            last += 1
            if end == slot.end:
                break
        self._merge(before, last)
        return made

    def _merge(self, first: int, last: int) -> None:
        """Join the first two neighbours with the same nodes, from one slot to another."""
        slots = self.slots
        for i in range(first, min(last, len(slots) - 1)):
            if slots[i].nodes == slots[i + 1].nodes:
                slots[i].end = slots[i + 1].end
                del slots[i + 1]
                return


class Window:
    """The slots of a table that a span of time touches, while it moves on: what is free in all of them is kept.

    The slots up to a middle one are kept as what is free from each to the middle, those after it as one set.

    Parameters
    ----------
    slots
        the slots, in order of time
    nodes
        the nodes that matter, as bits
    least
        how many of them must be free: a slot that alone has fewer is passed over at once

    >>> window = Window([Slot(0, 60, 0b011), Slot(60, 120, 0b110)], 0b111)
    >>> window.move(0, 60), window.move(60, 90)
    ((2, 60), (6, 0))
    """

    def __init__(self, slots: list[Slot], nodes: int, least: int = 0) -> None:
        self.slots = slots
        self._least = least
        self._nodes = nodes
        self.first = self.stop = self._middle = 0  # the first slot that is touched, and the first after it that is not
        self._before: list[int] = []  # free from each slot to the middle, that of the first slot last
        self._after = nodes
        self._gain = 0  # no slot that is touched and before this one has a successor with more nodes
        self._counted = 0  # whether slots before this one have enough nodes has been counted

    def move(self, begin: int, end: int) -> tuple[int, int]:
        """Return which nodes are free from begin to end, and the next instant at which more may be; 0: none.

        That is the end of the first slot whose successor has a node that this one lacks. If too few are free, it is the
        last such instant before a slot that alone has too few: until then all spans touch that slot.
        """
        slots, first, count = self.slots, self.first, len(self.slots)
        while first < count and slots[first].end <= begin:
            first += 1
        self.first = first
        stop = self.stop
        if stop < first:
            stop = first
        while stop < count and slots[stop].begin <= end:
            self._after &= slots[stop].nodes
            stop += 1
        self.stop = stop
        before = self._before
        if first < self._middle:
            del before[self._middle - first :]
        else:
            found = self._nodes
            before = self._before = []
            for i in range(stop - 1, first - 1, -1):
                found &= slots[i].nodes
                before.append(found)
            self._after, self._middle = self._nodes, stop
        found = before[-1] & self._after if before else self._after
        gain, last, nodes = max(self._gain, first), min(stop, count - 2), self._nodes
        while gain <= last and not slots[gain + 1].nodes & ~slots[gain].nodes & nodes:
            gain += 1
        self._gain = gain
        if gain > last:
            return found, 0
        return found, slots[gain if found.bit_count() >= self._least else self._before_few(gain)].end

    def _before_few(self, gain: int) -> int:
        """Return the last slot before one that alone has too few nodes whose next one has more; else the first."""
        slots, nodes, least = self.slots, self._nodes, self._least
        few, known, self._counted = self.stop - 1, max(self._counted, gain + 1), self.stop
        while few >= known and (slots[few].nodes & nodes).bit_count() >= least:
            few -= 1
        if few < known:
            return gain
        few -= 1
        while few > gain and not slots[few + 1].nodes & ~slots[few].nodes & nodes:
            few -= 1
        return few


class Tallies:
    """The numbers of jobs of users and partitions that a cycle has tested, and their limits in slurm.conf."""

    def __init__(self, settings: SlurmConf) -> None:
        limits = settings.bf_max_job_user_part, settings.bf_max_job_part, settings.bf_max_job_user
        self._of_association = settings.bf_max_job_assoc
        self._limits = limits if any(limits) or self._of_association else None
        self._tested: Counter[object] = Counter()

    def counts(self, job: Pending) -> bool:
        """Whether a job is within these limits; it is counted."""
        if self._limits is None:
            return True
        partition = job.site.spec.name
        both, parts, users = self._limits
        limits: dict[tuple[int | str | None, ...], int] = {
            ("both", job.user, partition): both,
            ("partition", partition): parts,
            ("user", job.user): users,
        }
        if self._of_association:
            del limits["user", job.user]
            of = None if job.counted is None else job.counted.association
            if of is not None:
                limits["association", of.account, of.user, of.partition] = self._of_association
        if any(limit and self._tested[key] >= limit for key, limit in limits.items()):
            return False
        self._tested.update(limits.keys())
        return True


class BackfillCycle:
    """One cycle of the backfill loop.

    Parameters
    ----------
    queue
        the jobs, sorted
    settings
        of slurm.conf
    now
        the instant (s)
    preemption
        the rules of preemption, if there are any
    test
        how long a test takes (s): a cycle ends once it has lasted ``bf_max_time``, in whole seconds
    short
        whether it ends once no job left can start and nothing else is to be found; not with preemption or tests that
        take time
    before
        the last cycle, if nothing has changed since but the queue: what it has found of the first jobs holds

    Attributes
    ----------
    planned
        the planned starts of jobs that could not start, once the cycle is over
    tested, started
        the number of tests, and of starts
    found
        what it has found of each job that it has planned, in order
    moved
        whether a job was tried at a later instant than that at which enough running jobs have ended, as others are
        planned before: slurmctld notes that as a change of the job
    """

    def __init__(
        self,
        queue: Sequence[Pending],
        settings: SlurmConf,
        now: float,
        preemption: Preemption | None = None,
        test: float = 0.0,
        *,
        short: bool = False,
        before: BackfillCycle | None = None,
    ) -> None:
        self._test, self._exact = test, now
        self._queue = queue
        self._preemption = preemption
        self._settings = settings
        self._now = int(now)
        self._horizon = self._now + settings.bf_window * 60
        self._tables: dict[Board, _Table] = {}
        self._records = 1
        self._tallies = Tallies(settings)
        self._tested: set[Array] = set()
        self._tasks: Counter[Array] = Counter()  # of each array that have a plan
        self._over: set[Array] = set()  # those of which no further task is tested
        self._able: dict[tuple[Board, Each], dict[int, int]] = {}  # nodes by an instant, until a job starts
        self._components: dict[Hetero, list[Planned]] = {}  # of heterogeneous jobs, as far as they have a plan
        self.planned: list[Planned] = []
        self.tested = self.started = 0
        self.moved = False
        self._looked = 0  # the first plan, since the last start, that reserves idle nodes
        self._before: Sequence[Known] = () if before is None else before.found
        self._valid = inf if before is None else before.valid
        self.found: list[Known] = []
        self._hopes = Hopes(queue, self._now, self._free) if short and preemption is None and not test else None

    @property
    def marked(self) -> bool:
        """Whether idle nodes are reserved."""
        planned, looked = self.planned, self._looked
        while looked < len(planned) and not (
            planned[looked].reserved and planned[looked].nodes & ~planned[looked].job.board.busy
        ):
            looked += 1
        self._looked = looked
        return looked < len(planned)

    @property
    def valid(self) -> float:
        """The instant (s) before which all that it has found holds, and no more jobs can start than now.

        Then a job that is tried now touches the same slots, no plan comes into the window, and none begins.
        """
        now = self._now
        if self._test and self.tested * self._test + 1 >= self._most:  # it ends by parts of seconds
            return now
        ends = [next((slot.end for slot in table.slots if slot.end > now), now) for table in self._tables.values()]
        return min([self._valid, *ends])

    def starts(self) -> Iterator[tuple[Pending, Allocation | Victims | str]]:
        """Yield the starts of the cycle, and the jobs that make way; whoever asks has made each at once.

        A job that is reached and cannot meet its deadline any more comes with the reason why it is cancelled. The
        components of a heterogeneous job come last, if all of them can start.
        """
        yield from self._singles()
        for hetero, plans in self._components.items():
            if len(plans) < hetero.size or any(plan.start > self._now for plan in plans):
                continue
            found = [(job, job.board.select(job, nodes)) for job, _, nodes, _ in plans]
            if all(allocation is not None for _, allocation in found):
                yield from ((job, allocation) for job, allocation in found if allocation is not None)
                self.started += hetero.size

    def _singles(self) -> Iterator[tuple[Pending, Allocation | Victims | str]]:
        settings = self._settings
        for number, job in enumerate(self._queue):
            if self.tested >= settings.bf_max_job_test or self._ends(number):
                return
            if not job.waits or job.barred or not self._counts(job) or not job.allowed:
                continue
            if (missed := job.missed) is not None:
                yield job, missed
                continue
            plan, tries = self._find(job)
            self.tested += tries
            if plan is None:
                self._no_more_of(job)
            elif job.hetero is not None:
                if plan.start <= self._now:
                    self._valid = self._now
                    plan = plan._replace(nodes=job.board.chosen(job, plan.nodes, 0), reserved=True)
                self._components.setdefault(job.hetero, []).append(plan)
                if not self._reserve(plan):
                    return
            elif plan.start <= self._now:
                if not (yield from self._start(plan)):
                    return
            elif not self._reserve(plan):
                return
            elif job.array is not None:
                self._tasks[job.array] += 1
                if self._tasks[job.array] >= settings.bf_max_job_array_resv:
                    self._no_more_of(job)

    def _start(self, plan: Planned) -> Generator[tuple[Pending, Allocation | Victims], None, bool]:
        """Yield the start of a job now, or the jobs that make way for it; return whether the cycle goes on."""
        job, board = plan.job, plan.job.board
        allocation = board.seen_by(job, self._now)[0].select(job, plan.nodes)
        if allocation is None and self._preemption is not None:
            nodes = plan.nodes & ~board.completing
            kept = self._preemption.seen_by(board, job, plan.nodes).chosen(job, plan.nodes, 0)
            victims = self._preemption.victims(board, job, nodes)
            if victims is not None:
                yield job, victims
                allocation = board.select(job, nodes) if victims.suspended else None
                if allocation is None and not self._reserve(plan._replace(nodes=kept, reserved=True)):
                    return False
        if allocation is None:
            self._no_more_of(job)
            self._valid = self._now
            return True
        yield job, allocation
        self._before = ()
        self._looked = 0
        self._able.clear()
        self.started += 1
        return self.started != self._settings.bf_max_job_start

    @property
    def _most(self) -> float:
        """The time that it may last (s)."""
        return self._settings.bf_max_time or self._settings.bf_interval

    def _ends(self, number: int) -> bool:
        """Whether it ends before a job: it has lasted long, or no job can start and what it changes is known."""
        if self._test:
            return int(self._exact + self.tested * self._test) - self._now >= self._most
        hopes = self._hopes
        if hopes is None or self._components or hopes.from_on(number):
            return False
        return self.marked or ((self.moved or self.started > 0) and not hopes.unheld)

    def _free(self, board: Board, until: int) -> int:
        """Return the nodes, as bits, that no planned job has from now until an instant (s)."""
        return self._table(board).free(self._now, until)

    def _no_more_of(self, job: Pending) -> None:
        """Note that no further task of the array of a job is tested in this cycle."""
        if job.array is not None:
            self._over.add(job.array)

    def _counts(self, job: Pending) -> bool:
        """Whether a job is within the numbers of jobs tested of a user and a partition; it is counted."""
        array = job.array
        if array is not None:
            if array in self._over:
                return False
            if array in self._tested:
                return True
            self._tested.add(array)
        return self._tallies.counts(job)

    def _table(self, board: Board) -> _Table:
        table = self._tables.get(board)
        if table is None:
            step = self._settings.bf_resolution
            end = int(self._horizon)
            table = _Table(self._now // step * step, end // step * step, board.up, step)
            self._tables[board] = table
            for begin, until, nodes in board.closures:
                if begin < end:
                    self._holds(table.divided_by(begin + 1, -(-until // step) * step))
                    table.reserve(begin + 1, -(-until // step) * step, nodes)  # a job may end at its begin
                else:
                    self._holds(begin)
        return table

    def _holds(self, end: float) -> None:
        """Note that what is found holds until the window of plans reaches an instant (s)."""
        self._valid = min(self._valid, end - self._settings.bf_window * 60)

    def _see(self, job: Pending, window: Window, at: int) -> None:
        """Note until when a job that is tried at an instant (s) finds the same: in no slot, or now."""
        slots = window.slots
        if window.first == len(slots):
            self._holds((at // self._settings.bf_resolution + 1) * self._settings.bf_resolution)
        elif at == self._now:
            kept = job.board.kept
            turns = [
                slots[window.first].end,
                *(slot.begin - job.limit for slot in slots[window.stop : window.stop + 1]),
            ]
            self._valid = min(self._valid, *turns, inf if kept is None else kept.holds(job, at))

    def _later(self, start: int) -> int:
        """Return the start (s) of a job that does not start now, and note until when it is the same."""
        if start <= self._now:
            self._valid = self._now
            return self._now + 1
        if start > self._horizon:
            self._holds(start)
        return start

    def _find(self, job: Pending) -> tuple[Planned | None, bool]:
        """Return the plan of a job, and whether a test was needed: as the last cycle found it, or anew."""
        at = len(self.found)
        if at < len(self._before) and self._before[at].job is job:
            known = self._before[at]
        else:
            self._before = ()
            moved, self.moved = self.moved, False
            known = Known(job, *self._plan(job), self.moved)
            self.moved = moved
        self.found.append(known)
        self.moved |= known.moved
        return known.plan, known.tested

    def _plan(self, job: Pending) -> tuple[Planned | None, bool]:
        """Return when and where a job would start beside all planned ones, and whether a test was needed to know.

        It is tested on the nodes that no planned job has from an instant to the end of its limit, first from now on,
        then from each instant on at which more of these are free: until it can start before the next such instant, on
        nodes that no planned job has from then on. A test is left out if it cannot start before the next such instant
        by the number of nodes alone, or on the nodes that are free by then.

        The nodes are those to choose from if it can start now, else those chosen.
        """
        now, board, limit, preemption = self._now, job.board, job.limit, self._preemption
        reserving, later = self._keeps(job), self._opens(job)
        tested, base, least = False, board, job.shape.nodes
        wanted = self._wanted(job)
        known = self._able.setdefault((board, job.shape.each), {})
        window = Window(self._table(board).slots, job.site.nodes & board.up & job.where.may, least)
        while True:
            at = later
            free, later = window.move(at, at + limit)
            self._see(job, window, at)
            if board.kept is not None:
                base, barred, again = board.seen_by(job, at)
                free &= ~barred
                later = min(filter(None, (later, int(again))), default=0)
            bound = later if reserving else 0
            plan = None
            if free.bit_count() >= least:
                tested = True
                if bound and wanted:  # most jobs end here, most often
                    able = known.get(bound)
                    if able is None:
                        able = known[bound] = board.able_by(job.shape, bound)
                    if (able & free).bit_count() < wanted:
                        continue
                elif bound and preemption is None and base.later_than(bound, job, free):
                    continue
                seen = base if preemption is None else preemption.seen_by(base, job, free)
                plan = seen.will_run(job, free, bound)
            if plan is None:
                if bound:
                    continue
                return None, tested
            start = max(plan.start, at)
            self.moved |= at > plan.start
            if bound and start > bound:
                continue
            chosen = seen.chosen(job, free, plan.released)
            if start <= now and not chosen & board.completing:
                return Planned(job, start, free, False), tested
            if not reserving:
                return None, tested
            later = self._later(start)
            if not self._taken(job, at, later, chosen):
                return Planned(job, later, chosen, later <= self._horizon), tested

    def _opens(self, job: Pending) -> int:
        """Return the first instant (s) for which a job is tested: not before the components in front of it."""
        front = () if job.hetero is None else self._components.get(job.hetero, ())
        opens = 0 if job.board.kept is None else int(job.board.kept.opens(job))
        return max(self._now, opens, *(plan.start for plan in front))

    def _keeps(self, job: Pending) -> bool:
        return reserves(job, self._settings) and not (job.qos is not None and "NoReserve" in job.qos.flags)

    def _wanted(self, job: Pending) -> int:
        """Return without how many nodes that meet its shape a job cannot start; 0: their number does not tell it."""
        board = job.board
        if job.where is not ANYWHERE or job.wishes.switches or board.kept is not None or self._preemption is not None:
            return 0
        return job.request.processors if board.alike(job.shape) else job.request.nodes or 0

    def _taken(self, job: Pending, at: int, start: int, nodes: int) -> bool:
        """Whether nodes that are free from an instant (s) on are not so if a job starts on them at a later one."""
        board, step = job.board, self._settings.bf_resolution
        if board.kept is not None and start > at and nodes & board.seen_by(job, start)[1]:
            return True
        begin, end = start // step * step, (start + job.limit) // step * step
        return start <= self._horizon and self._table(board).overlaps(begin, end, nodes)

    def _reserve(self, plan: Planned) -> bool:
        """Keep the nodes of a planned job, unless it starts beyond the window; ``False``: the table is full."""
        job, start, nodes, reserved = plan
        if reserved:
            if self._records >= self._settings.slots:
                return False
            step = self._settings.bf_resolution
            begin, end = start // step * step, (start + job.limit) // step * step
            self._holds(self._table(job.board).divided_by(begin, end))
            self._records += self._table(job.board).reserve(begin, end, nodes)
        self.planned.append(plan)
        return True
