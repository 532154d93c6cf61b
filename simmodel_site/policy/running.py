"""Running jobs as both loops see them, and the nodes of ended jobs until slurmctld has them back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil, inf
from typing import TYPE_CHECKING, Any

from simmodel.extending import Allocation, Booting
from simmodel.resources import NodePool
from simmodel_site.policy.board import Held, Stake
from simmodel_site.policy.fair_share import Bill
from simmodel_site.policy.limits import Counted, billed
from simmodel_site.policy.places import request_of, table_of, windows_of
from simmodel_site.policy.selection import mask_of, nodes_in
from simmodel_site.policy.settings import YEAR

if TYPE_CHECKING:
    from simmodel.resources import Pool
    from simmodel.work import Run
    from simmodel_site.policy.accounts import Accounts
    from simmodel_site.policy.board import Board, Pending, Site
    from simmodel_site.policy.fair_share import Charges
    from simmodel_site.policy.holds import Records
    from simmodel_site.policy.limits import Quotas
    from simmodel_site.policy.places import SlurmPlaces
    from simmodel_site.policy.settings import SlurmConf

__all__ = ["Completing", "Running"]


class Completing:
    """The nodes of ended jobs that are not free yet, and the runs of the main loop that the end of an Epilog starts.

    Parameters
    ----------
    settings
        of slurm.conf
    completing, stopping
        how long the nodes of an ended job, and of a preempted one, are not free (s)
    asks
        whether the end of an Epilog starts a run; not where the runs of the main loop are given

    >>> from simmodel_site.policy.settings import SlurmConf
    >>> completing = Completing(SlurmConf(epilog=True, complete_wait=5), 1.5, 0.05, asks=True)
    >>> completing.ended(10.0, "batch", 0b11, stopped=False)
    >>> completing.next_run, completing.wait(11.0), completing.wait(11.5), completing.due(11.5, idle=False)
    (11.5, True, False, True)
    """

    def __init__(self, settings: SlurmConf, completing: float, stopping: float, *, asks: bool) -> None:
        self._wait = settings.complete_wait
        self._lasts, self._stopping = completing, stopping
        self._epilog = settings.epilog and not settings.defer
        self._asks = asks
        self._ended: list[tuple[float, float, str, int]] = []  # an end, until when, the place, its nodes
        self._at_once: list[float] = []

    def ended(self, at: float, place: str, nodes: int, *, stopped: bool) -> None:
        """Note a job that has ended at an instant (s), by its place and its nodes; ``stopped``: it was preempted."""
        lasts = self._stopping if stopped else self._lasts
        if (stopped or self._epilog) and self._asks:
            self._at_once.append(at + lasts)
        if lasts or self._wait:
            self._ended.append((at, at + lasts, place, nodes))

    @property
    def some(self) -> bool:
        """Whether there are such nodes, as far as is known."""
        return bool(self._ended)

    def nodes(self, place: Pool) -> int:
        """Return the nodes of a place that are not free yet though their job has ended, as bits."""
        mask = 0
        for _, _, name, nodes in self._ended:
            mask |= nodes if name == place.name else 0
        return mask

    def wait(self, now: float) -> bool:
        """Forget the nodes that are free, and return whether CompleteWait keeps all jobs from starting."""
        self._ended = [each for each in self._ended if each[1] > now]
        return any(each[0] + self._wait > now for each in self._ended)

    def answers(self, now: float) -> Iterator[float]:
        """Yield the instants (s) at which the last node of a job will have answered, where no run starts at once."""
        for _, until, *_ in self._ended:
            if until > now and until not in self._at_once:
                yield until

    @property
    def next_run(self) -> float:
        """The next instant at which the main loop runs at once (s)."""
        return min(self._at_once, default=inf)

    def due(self, now: float, *, idle: bool) -> bool:
        """Whether the main loop runs at once now; ``idle``: earlier runs found nothing waiting. Those are forgotten."""
        if not self._at_once:
            return False
        due = any(at <= now and (at == now or not idle) for at in self._at_once)
        self._at_once = [at for at in self._at_once if at > now]
        return due

    def state(self) -> dict[str, Any]:
        """Return the values that :meth:`restore` takes."""
        found: dict[str, Any] = {"completing": [list(each) for each in self._ended]}
        return found | ({"at_once": list(self._at_once)} if self._at_once else {})

    def restore(self, values: Mapping[str, Any]) -> None:
        """Restore the values of :meth:`state`."""
        self._ended = [(end, until, name, nodes) for end, until, name, nodes in values["completing"]]
        self._at_once = list(values.get("at_once", ()))


class Running:
    """The running jobs: what each holds on its board, counts against limits and is charged.

    Parameters
    ----------
    places, records
        the boards of all places, and the order of submissions
    accounts, quotas, charges
        the accounts, limits and charges, if there are any
    preempts
        whether running jobs may make way for others

    Attributes
    ----------
    held
        what each running job holds, as far as it has been started or found
    noted
        whether all starts and ends are noted, so that boards need no look at their places
    """

    def __init__(
        self,
        places: SlurmPlaces,
        records: Records,
        accounts: Accounts | None,
        quotas: Quotas | None,
        charges: Charges | None,
        *,
        preempts: bool,
    ) -> None:
        self._places = places
        self._records = records
        self._accounts = accounts
        self._quotas = quotas
        self._charges = charges
        self._preempts = preempts
        self.held: dict[Run, Held] = {}
        self.noted = False
        self._before: dict[int, tuple[int, int, int]] = {}  # what jobs held before a snapshot: end, number, nodes

    def state(self) -> dict[str, Any]:
        """Return the values that :meth:`restore` takes: what jobs hold, by their numbers."""
        held = [each for each in self.held.items() if not isinstance(each[0], Booting)]
        known = {int(run.work.seq): (each.end, each.seq, each.nodes) for run, each in held}
        found = [[job, *values] for job, values in sorted((self._before | known).items())]
        return {"held": found} if found else {}

    def restore(self, values: Mapping[str, Any]) -> None:
        """Restore the values of :meth:`state`."""
        self._before = {
            int(job): (int(end), int(number), int(nodes)) for job, end, number, nodes in values.get("held", ())
        }

    def started(self, job: Pending, run: Run, now: float, allocation: Allocation) -> None:
        """Note a job that has just started."""
        stake = self._stake(job.site, run, job.counted)
        held = Held.of(int(now) + job.limit, len(self.held), allocation, stake, job.reservation)
        self.held[run] = held
        self._count(job.site, run, job.counted)
        job.board.started(held)
        if not isinstance(job.job.place, NodePool):
            job.board.table.take(allocation)

    def ended(self, run: Run, at: float) -> Held | None:
        """Note a job that has ended at an instant (s); return what it held, if that is known."""
        if self._accounts is not None:
            number = self._records.number(int(run.work.seq))
            if self._charges is not None:
                self._charges.ended(number, at)
            if self._quotas is not None:
                self._quotas.ended(number, at)
        held = self.held.pop(run, None) or self._booted(run)
        before = self._before.pop(int(run.work.seq), None)
        if held is None and before is not None:  # no cycle has come since a snapshot
            end, number, nodes = before
            return Held(end, number, Allocation.of(()), nodes)
        if held is not None:
            self._places.boards[run.place].ended(held, release=not isinstance(run.place, NodePool))
        return held

    def _booted(self, run: Run) -> Held | None:
        """Return what a running job held while its nodes booted, if it began so, and forget that."""
        was = next((each for each in self.held if isinstance(each, Booting) and each.work is run.work), None)
        return None if was is None else self.held.pop(was)

    def _with_boot(self, run: Run) -> Held | None:
        """Return what a running job holds, if that is known; its limit counts from the end of the boot."""
        held = self.held.get(run)
        if held is None and (before := self._booted(run)) is not None:
            held = before._replace(end=self._end(run))
        return held

    def suspended(self, held: Held, now: float) -> None:
        """Charge a running job that is suspended now."""
        if held.stake is not None and self._charges is not None:
            self._charges.ended(held.stake.number, now)

    def limits(self, over: float) -> list[tuple[Run, float]]:
        """Return the running jobs, and when their limits end (s), with ``OverTimeLimit``."""
        runs = [run for place in self._places.boards for _, _, _, run in place.running.entries()]
        return [(run, self._end(run) + over) for run in runs if not isinstance(run, Booting)]

    def exhausted(self, now: float) -> list[tuple[Run, str]]:
        """Return the running jobs that are stopped at an instant (s), as the minutes of their group are used up."""
        if self._quotas is None:
            return []
        self._quotas.pass_to(now)
        over = dict(self._quotas.exhausted())
        numbers = [(run, self._records.number(int(run.work.seq))) for run in self.held] if over else []
        return [(run, over[number]) for run, number in numbers if number in over]

    def renew(self, now: float, completing: Completing, *, plain: bool) -> bool:
        """Take over the state of all places before a cycle; return whether more than time had to be passed on.

        Parameters
        ----------
        now
            the present instant (s)
        completing
            the nodes that are not free yet
        plain
            whether no job had options, licences, a past or several partitions so far
        """
        boards = self._places.boards
        if plain and all(self._in_step(place, board) for place, board in boards.items()):
            for place, board in boards.items():
                board.pass_to(now, completing.nodes(place))
            return False
        held: dict[Run, Held] = {}
        for place, board in boards.items():
            mine = self._held_at(place, board)
            held |= mine
            away, board.closures = windows_of(place, len(board.table), now)
            board.renew(now, [*mine.values(), *away], completing.nodes(place))
            for each in away:
                board.up |= each.nodes
        for run in [run for run in self.held if isinstance(run, Booting) and run not in held]:
            self.ended(run, now)  # a boot has failed: its job waits again
        self.held = held
        return True

    def _in_step(self, place: Pool, board: Board) -> bool:
        """Whether the board of counted processors, which notes starts and ends, agrees with its place."""
        if isinstance(place, NodePool) or self._preempts or not self.noted:
            return False
        if len(board.table) != place.capacity or len(place.running) != len(board.running):
            return False
        return board.all_up and board.idle == place.free and not place.windows and not board.closures

    def _held_at(self, place: Pool, board: Board) -> dict[Run, Held]:
        """Return what each running job of a place holds, and renew its table."""
        entries = list(place.running.entries())
        if isinstance(place, NodePool):
            board.table = place.table
            known = {run: self._with_boot(run) for _, _, _, run in entries}
            return {
                run: known[run] or self._found(place, run, number, run.grant.allocation)
                for _, number, _, run in entries
            }
        table = board.table = table_of(place)
        found: dict[Run, Held] = {}
        for run in [run for _, _, _, run in entries if run in self.held]:
            found[run] = self.held[run]
        table.add([(held.allocation, -1) for held in found.values()])
        others = [(number, processors, run) for _, number, processors, run in entries if run not in found]
        for number, processors, run in sorted(others, key=self._is_new):
            free = mask_of(table.free[0] > 0)
            _, _, had = self._before.get(int(run.work.seq), (0, 0, 0))
            nodes = nodes_in(free & had)
            if len(nodes) != processors:
                nodes = nodes_in(free)[:processors]
            found[run] = self._found(place, run, number, Allocation.alike(tuple(nodes), 1))
            table.take(found[run].allocation)
        spare = (table.free[0] > 0).nonzero()[0][max(int(place.free), 0) :]
        table.take(Allocation.away(spare.tolist()))
        return found

    def _is_new(self, entry: tuple[int, int, Run]) -> bool:
        """Whether nothing is known of what a running job held before."""
        return int(entry[2].work.seq) not in self._before

    def _found(self, place: Pool, run: Run, number: int, allocation: Allocation) -> Held:
        """Return what a running job holds that the policy has not started, and count it."""
        job = run.work
        site = self._places.sites(job, place)[0]
        counted = None
        if self._accounts is not None:
            request, limit = request_of(job, place), float(self._end(run) - int(run.started))
            counted = Counted.of(job, self._records.number(int(job.seq)), site.spec, request, limit, self._accounts)
        self._count(site, run, counted)
        end = self._end(run)
        _, number, _ = self._before.pop(int(job.seq), (end, number, 0))
        own = self._places.reservation(job)
        return Held.of(end, number, allocation, self._stake(site, run, counted), own)

    def _end(self, run: Run) -> int:
        """Return the end of the limit of a running job (s, whole)."""
        held = self.held.get(run)
        if held is not None:
            return held.end
        before = self._before.get(int(run.work.seq))
        if before is not None:
            return before[0]
        seconds = run.work.asked if run.work.asked < inf else run.expected_end - run.started
        return int(run.started) + ceil(min(seconds, YEAR) / 60) * 60

    def _stake(self, site: Site, run: Run, counted: Counted | None) -> Stake | None:
        """Return what decides whether a running job makes way for others; ``None``: nothing does."""
        job = run.work
        if not self._preempts or (job.spec is not None and job.spec.on_preempt == "no"):
            return None
        number = self._records.number(int(job.seq))
        return Stake(number, float(run.started), site.spec, None if counted is None else counted.qos)

    def _count(self, site: Site, run: Run, counted: Counted | None) -> None:
        """Count a running job, and note what it is charged."""
        if counted is None:
            return
        of = counted.association
        if self._quotas is not None:
            self._quotas.started(counted._replace(started=float(run.started)))
        if self._charges is not None and of is not None and of.user is not None:
            amount = billed(counted.tres, site.spec.billing) * counted.qos.usage_factor
            bill = Bill(of.account, of.user, of.partition, amount, int(run.started))
            self._charges.started(counted.number, bill)
