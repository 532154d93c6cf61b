"""The queue: waiting jobs in the order of their priorities, by priority/basic and priority/multifactor.

Source: priority/basic and priority/multifactor of Slurm 22.05, by their behaviour.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import ceil, inf, nextafter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from simmodel.extending import Request, counted
from simmodel_site.policy.backfill import Kind, kind_of
from simmodel_site.policy.board import Array, Hetero, Pending
from simmodel_site.policy.fair_share import Charges, FairShare
from simmodel_site.policy.limits import Counted, tres_of
from simmodel_site.policy.places import request_of
from simmodel_site.policy.preemption import BEGINS
from simmodel_site.policy.settings import YEAR, weights_of
from simmodel_site.policy.wishes import NOTHING, Wishes, wishes_of

if TYPE_CHECKING:
    from simmodel.resources import Pool
    from simmodel.scheduling import View
    from simmodel.work import LiveJob, Run
    from simmodel_site.policy.accounts import Accounts
    from simmodel_site.policy.board import Board
    from simmodel_site.policy.holds import Records, Turn
    from simmodel_site.policy.limits import Quotas
    from simmodel_site.policy.places import SlurmPlaces
    from simmodel_site.policy.preemption import Stops
    from simmodel_site.policy.settings import SlurmConf, SlurmPartition

__all__ = ["Asked", "Priorities", "Queue", "basic", "multifactor"]

TOP = 4294901759
MOST = 2**32 - 1


class Asked(NamedTuple):
    """What the priority of a job depends on; factors are from 0 to 1.

    Parameters
    ----------
    nodes, cpus
        parts of all nodes and of all CPUs that it asks for
    age
        seconds since it became eligible
    partition
        its ``PriorityJobFactor``, as a part of the largest one
    nice
        what its user takes away
    fair_share, association, qos
        the factor of fair share; the priorities of its association and of its QOS, as parts of the largest ones
    tres
        parts of the resources of its partition that it asks for, by name
    site
        what a plug-in of the site adds
    """

    nodes: float
    cpus: float
    age: float
    partition: float
    nice: float = 0.0
    fair_share: float = 0.0
    association: float = 0.0
    qos: float = 0.0
    tres: Mapping[str, float] = MappingProxyType({})
    site: float = 0.0


def basic(number: int, nice: float = 0.0) -> float:
    """Return the priority of the job that was submitted as the first (0), the second, ... by priority/basic.

    >>> basic(0), basic(1, nice=50)
    (4294901759.0, 4294901708.0)
    """
    return float(max(TOP - number - nice, 1))


def multifactor(job: Asked, settings: SlurmConf) -> float:
    """Return the priority of a job by priority/multifactor: a whole number from 1 to 2^32 - 1.

    >>> from simmodel_site.policy.settings import SlurmConf
    >>> settings = SlurmConf(multifactor=True, weight_size=2000, weight_partition=500)
    >>> multifactor(Asked(1 / 8, 1 / 8, 0.0, 0.1), settings)
    300.0
    """
    size = (1.0 - job.nodes + 1.0 - job.cpus) / 2 if settings.favor_small else (job.nodes + job.cpus) / 2
    age = min(1.0, max(job.age, 0.0) / settings.max_age) if settings.max_age else 1.0
    found = settings.weight_age * age + settings.weight_assoc * job.association
    found += settings.weight_fair_share * job.fair_share + settings.weight_size * size
    found += settings.weight_partition * job.partition + settings.weight_qos * job.qos
    for name, weight in weights_of(settings.weight_tres):
        found += weight * job.tres.get(name, 0.0)
    return float(min(max(int(found + job.site - job.nice), 1), MOST))


class Priorities:
    """The priorities of waiting jobs: those of submissions, and once a ``PriorityCalcPeriod`` those of all.

    Parameters
    ----------
    settings, partitions, accounts
        those of the policy
    first
        the instant of the first calculation (s)
    records
        the order of submissions
    boards
        the boards of all places, of whose resources jobs ask for parts

    Attributes
    ----------
    charges
        the charges of running jobs, if fair share counts
    """

    def __init__(
        self,
        settings: SlurmConf,
        partitions: Sequence[SlurmPartition],
        accounts: Accounts | None,
        first: float,
        records: Records,
        boards: Mapping[Pool, Board],
    ) -> None:
        self._settings = settings
        self._accounts = accounts
        self._first = first
        self._records = records
        self._boards = boards
        self._largest_factor = max([1, *(each.job_factor for each in partitions)])
        self._all: tuple[tuple[float, int], tuple[int, float]] | None = None  # nodes and CPUs, and when they were
        self._calculated = -1  # the last calculation without fair share
        self.charges: Charges | None = None
        if accounts is not None and settings.multifactor and settings.weight_fair_share:
            half_life, damping = settings.decay_half_life, settings.damping
            share = FairShare(accounts, half_life=half_life, fair_tree=settings.fair_tree, damping=damping)
            self.charges = Charges(share, first, settings.calc_period)

    def of(self, job: Pending, now: float) -> float:
        """Return the priority of a waiting job at an instant (s)."""
        spec = job.job.spec
        nice = 0.0 if spec is None else -float(spec.priority)
        if not self._settings.multifactor:
            return basic(self._records.order(job.record), nice)
        nodes, cpus = self._all_at(now)
        past = job.job.history
        eligible = job.submitted if past is None or past.eligible is None else past.eligible
        eligible = max(eligible, job.begin)
        part = job.site.spec.job_factor / self._largest_factor
        asked = Asked(job.shape.nodes / nodes, job.request.processors / cpus, now - eligible, part, nice)
        if self._settings.weight_tres:
            totals = job.board.totals(job.site.nodes)
            parts = {
                name: value / totals[name]
                for name, value in tres_of(job.request, job.wishes).items()
                if totals.get(name)
            }
            asked = asked._replace(tres=parts)
        if self._accounts is not None:
            asked = asked._replace(
                fair_share=self._share_of(job),
                association=self._accounts.priority_of(None if job.counted is None else job.counted.association),
                qos=0.0 if job.qos is None else self._accounts.rank_of(job.qos),
            )
        return multifactor(asked, self._settings)

    def _all_at(self, now: float) -> tuple[int, float]:
        """Return the numbers of all nodes and of all CPUs at an instant (s), which are counted once."""
        if self._all is None or self._all[0] != (now, len(self._boards)):
            nodes = sum(len(board.table) for board in self._boards.values())
            cpus = sum(float(board.table.capacity[0].sum()) for board in self._boards.values())
            self._all = (now, len(self._boards)), (nodes, cpus)
        return self._all[1]

    def _share_of(self, job: Pending) -> float:
        """Return the factor of fair share of a job."""
        of = None if job.counted is None else job.counted.association
        if self.charges is None or of is None or of.user is None:
            return 0.0
        return self.charges.share.factor(of.account, of.user, of.partition)

    def calculate(self, queue: Iterable[Pending], now: float) -> bool:
        """Calculate priorities by priority/multifactor, and usage, at all instants until now (s).

        With fair share, each instant is calculated; without, the last one is enough. Returns whether there was any.
        """
        settings = self._settings
        if self.charges is not None:
            return self.charges.pass_to(now, partial(self._to_calculate, queue))
        number = int((now - self._first) // settings.calc_period)
        if not settings.weight_age or number == self._calculated:
            return False
        self._calculated = number
        for _, call in self._to_calculate(queue, self._first + number * settings.calc_period):
            call()
        return True

    def _to_calculate(self, queue: Iterable[Pending], at: float) -> list[tuple[int, Callable[[], None]]]:
        """Return the numbers of the jobs that wait at an instant (s), and what gives each its priority then."""

        def calculate(job: Pending) -> None:
            job.priority = self.of(job, at)

        return [(job.number, partial(calculate, job)) for job in queue if job.waits and job.submitted <= at]

    def state(self) -> dict[str, Any]:
        """Return the values that :meth:`restore` takes."""
        return {} if self.charges is None else {"charges": self.charges.state()}

    def restore(self, values: Mapping[str, Any]) -> None:
        """Restore the values of :meth:`state`."""
        if self.charges is not None and "charges" in values:
            self.charges.restore(values["charges"])


NEVER = "no nodes of its partition could run it"


class Queue:
    """The waiting jobs, in the order of both loops; one of several partitions is in it once for each.

    Parameters
    ----------
    places, records, priorities, stops
        the boards of all places, the order of submissions, the priorities, and when requeued jobs begin
    accounts, quotas
        the accounts and limits, if there are any

    Attributes
    ----------
    jobs, kinds
        the jobs, sorted, and how many there are by width and limit
    plain
        whether no job had options, licences, a past or several partitions so far
    timed, resumes
        whether time alone might let a job start so far, and whether any had a past
    anew
        whether each cycle looks at all jobs anew
    alike
        whether all jobs so far asked for nodes of one core, all alike
    nodes
        the sets of nodes, as bits, of the partitions of all jobs so far
    """

    def __init__(
        self,
        places: SlurmPlaces,
        records: Records,
        priorities: Priorities,
        stops: Stops,
        accounts: Accounts | None,
        quotas: Quotas | None,
    ) -> None:
        self._places = places
        self._records = records
        self._priorities = priorities
        self._stops = stops
        self._accounts = accounts
        self._quotas = quotas
        self.jobs: list[Pending] = []
        self.kinds: Counter[Kind] = Counter()
        self.plain = self.alike = True
        self.timed = self.resumes = self.anew = False
        self.nodes: set[int] = set()
        self._known: dict[LiveJob, Pending] = {}
        self._begun: list[Pending] = []  # jobs that the present cycle has started
        self._arrays: dict[str, Array] = {}
        self._consumes = False  # whether any job so far asked for a licence
        self._unread: dict[str, list[int | str]] = {}  # jobs by an option that is not modelled
        self._refused: dict[LiveJob, str] = {}  # jobs beyond limits of submissions, and why
        self._refusals: Counter[str] = Counter()  # how many there were

    def notes(self) -> Iterator[str]:
        """Yield how many jobs were refused at submission, and which options of jobs are left out."""
        for reason, count in self._refusals.items():
            yield f"refused {counted(count, 'job')} at submission: {reason}"
        for option, jobs in self._unread.items():
            yield f"leaves out {option} of {counted(len(jobs), 'job')}, such as {jobs[0]}"

    # ------------------------------------------------------------------ submissions and ends

    def submitted(self, job: LiveJob) -> None:
        """Note the record of a job that was submitted, and count it, or refuse it by the limits of submissions."""
        number = self._number(job)
        self._record(job, number)
        own = self._places.reservation(job)
        if own is not None and (reason := own.refusal(str(job.user), self._account_of(job))) is not None:
            self._refuse(job, reason)
            return
        if self._quotas is None:
            return
        self._places.board(job.place)
        site = self._places.sites(job, job.place)[0]
        asked = Counted.of(job, number, site.spec, Request(job.processors), 0.0, self._quotas.accounts)
        reason = self._quotas.refusal(asked)
        if reason is None:
            self._quotas.submitted(asked)
        else:
            self._refuse(job, reason)

    def _refuse(self, job: LiveJob, reason: str) -> None:
        self._refused[job] = reason
        self._refusals[reason] += 1

    def _account_of(self, job: LiveJob) -> str:
        """Return the account of a job: its group, or else the default one of its user."""
        if job.group is not None or self._accounts is None:
            return "" if job.group is None else str(job.group)
        of = self._accounts.association(job.user)
        return "" if of is None else of.account

    def take_refused(self) -> list[tuple[LiveJob, str]]:
        """Return the jobs that have been refused, and why, once."""
        found = list(self._refused.items())
        self._refused.clear()
        return found

    def left(self, job: LiveJob) -> None:
        """Count a job no longer that is over."""
        if self._quotas is not None:
            self._quotas.left(self._number(job))
        self._records.left(int(job.seq))

    def take_in(self, view: View, now: float) -> bool:
        """Take in the jobs that wait since the last decision, at each place; return whether there are any."""
        queues = [view.waiting.at(place) for place in view.places]
        new = [job for queue in queues for job in queue.new if job not in self._known and job.state == "waiting"]
        some = bool(new)
        if len(self._known) + len(new) < sum([queue.count for queue in queues]):  # after a snapshot
            new = [job for queue in queues for job in queue if job not in self._known]
            new.sort(key=self._number)
        for job in new:  # those that were released before it was submitted go before it
            for turn in self._records.turns_by(nextafter(job.submit, -inf), before=self._number(job)):
                self.hold(turn)
            self._add(job, now)
        return some

    def _add(self, job: LiveJob, now: float) -> None:
        place: Pool = job.place
        board = self._places.board(place)
        wishes = wishes_of(job)
        own = self._places.reservation(job)
        unknown = bool(wishes.reservation) and own is None and place.name != wishes.reservation
        for option in (*wishes.unread, *([f"--reservation={wishes.reservation}"] if unknown else [])):
            self._unread.setdefault(option, []).append(job.id)
        request = request_of(job, place)
        number = self._number(job)
        record, array = self._record(job, number), None
        if wishes.array:
            array = self._arrays.setdefault(_array_of(job), Array(wishes.array_limit))
        submitted, begin = self._begins(job, wishes, now)
        never = NEVER
        for site in self._places.sites(job, place):
            limits = [each for each in (job.asked, site.spec.max_time) if each is not None and each < inf]
            limit = max(ceil(min(limits, default=site.spec.default_time or YEAR) / 60) * 60, 60)
            pending = Pending(
                job,
                request,
                board,
                site,
                limit,
                0.0,
                submitted,
                number,
                user=job.user,
                wishes=wishes,
                array=array,
                record=record,
                begin=begin,
                held=self._records.holds(record),
                hetero=Hetero(str(job.id).rpartition("+")[0], wishes.components) if wishes.components else None,
                reservation=None if own is None or (own.stays and own.end <= now) else own,
            )
            if pending.shape.never or not board.ever(pending):
                never = pending.shape.never or never
                continue
            self._enter(pending, now)
        if job not in self._known:
            self._refuse(job, never)

    def _begins(self, job: LiveJob, wishes: Wishes, now: float) -> tuple[float, float]:
        """Return the instants (s) by which a job is sorted, and from which on it may start."""
        if job.history is not None and job.history.last_start is not None and not job.history.resumes:  # requeued
            begin = self._stops.begin_of(job, now)
            return begin - BEGINS, begin
        begin = int(job.submit) + wishes.begin if wishes.begin else 0.0
        if wishes.hold is not None and not wishes.hold[0] and wishes.hold[1] < inf:  # its age begins with its release
            begin = max(begin, int(job.submit + wishes.hold[1]))
        return job.submit, begin

    def _enter(self, job: Pending, now: float) -> None:
        """Put a job into the queue, and count it."""
        entry = job.job
        if self._accounts is not None:
            job.counted = Counted.of(entry, job.number, job.site.spec, job.request, float(job.limit), self._accounts)
            job.qos = job.counted.qos
            job.quotas = self._quotas
            if self._quotas is not None and entry not in self._refused:
                self._quotas.submitted(job.counted)
        job.priority = self._priorities.of(job, now)
        insort(self.jobs, job, key=Pending.key)
        self.kinds[kind_of(job)] += 1
        special = entry in self._known or job.begin or entry.history is not None or job.request.consumables
        self._consumes = self._consumes or bool(job.request.consumables)
        self.timed = self.timed or job.begin > 0 or job.wishes.timed
        self.resumes = self.resumes or entry.history is not None
        self.plain = self.plain and not (special or job.wishes is not NOTHING)
        self.alike = self.alike and job.board.alike(job.shape)
        self.nodes.add(job.site.nodes)
        self._known[entry] = job

    def _number(self, job: LiveJob) -> int:
        """Return the number of a job in the order of submissions."""
        return self._records.number(int(job.seq))

    def _record(self, job: LiveJob, number: int) -> int:
        """Return the record of a job, by which its priority is lower: tasks of an array have one."""
        wishes = wishes_of(job)
        hold = None
        if wishes.hold is not None:
            begin, until = wishes.hold
            hold = (job.submit + begin if begin else -inf), job.submit + until
        return self._records.submitted(number, _array_of(job) if wishes.array else wishes.requeued, hold)

    # ------------------------------------------------------------------ order

    def stay(self, now: float) -> None:
        """Let the jobs of reservations that are over at an instant (s) be ordinary ones, if these say so."""
        for job in self.jobs:
            if job.reservation is not None and job.reservation.stays and job.reservation.end <= now:
                job.reservation = None
        self.jobs.sort(key=Pending.key)

    def hold(self, turn: Turn) -> None:
        """Hold the jobs of a record, or release them: then they wait behind all that were submitted until now."""
        for job in self.jobs:
            if job.record == turn.record:
                job.held = turn.held
                job.priority = self._priorities.of(job, turn.at)
        self.jobs.sort(key=Pending.key)

    def calculate(self, now: float) -> bool:
        """Calculate all priorities again if it is time; return whether it was."""
        changed = self._priorities.calculate(self.jobs, now)
        if changed:
            self.jobs.sort(key=Pending.key)
        return changed

    # ------------------------------------------------------------------ cycles

    def tidy(self, view: View) -> None:
        """Forget the jobs that wait no longer, before a cycle."""
        waiting = sum([view.waiting.at(place).count for place in view.places])
        if self.anew or not waiting == len(self._known) == len(self.jobs):
            self.jobs = [job for job in self.jobs if job.waits]
            self.kinds = Counter([kind_of(job) for job in self.jobs])
        if len(self._known) != len(self.jobs):  # some have been cancelled
            self._known = {job.job: job for job in self.jobs}

    def renew(self, running: Iterable[Run]) -> None:
        """Count the running tasks of arrays, and see which licences are free, before a cycle."""
        for array in self._arrays.values():
            array.running = 0
        for run in running if self._arrays else ():
            if (name := _array_of(run.work)) in self._arrays:
                self._arrays[name].running += 1
        self._see_consumables()

    def _see_consumables(self) -> None:
        for job in self.jobs if self._consumes else ():
            if job.request.consumables:
                job.ready = job.job.place.consumables.fits(job.request.consumables)

    def started(self, job: Pending, *, runs: bool) -> None:
        """Note that a job has been started; ``runs``: it has not ended at once."""
        job.over = True
        self._begun.append(job)
        self._known.pop(job.job, None)
        if not runs:
            return
        if job.array is not None:
            job.array.running += 1
        if job.request.consumables:
            self._see_consumables()

    def drop_begun(self) -> None:
        """Forget the jobs that a cycle has started."""
        for job in self._begun:
            at = bisect_left(self.jobs, job.key(), key=Pending.key)
            if not self.anew and at < len(self.jobs) and self.jobs[at] is job:
                del self.jobs[at]
                self.kinds[kind_of(job)] -= 1
        self._begun.clear()


def _array_of(job: LiveJob) -> str:
    """Return the name of the array of a task, which is a job such as ``17_3``."""
    name = str(job.id)
    return name.rpartition("_")[0] or name
