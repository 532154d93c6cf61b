"""The priorities of waiting jobs, by priority/basic and priority/multifactor, and when they are calculated again.

Source: priority/basic and priority/multifactor of Slurm 22.05, by their behaviour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from simmodel.policies.slurm.fair_share import Charges, FairShare
from simmodel.policies.slurm.limits import tres_of
from simmodel.policies.slurm.settings import weights_of

if TYPE_CHECKING:
    from simmodel.policies.slurm.accounts import Accounts
    from simmodel.policies.slurm.board import Board, Pending
    from simmodel.policies.slurm.holds import Records
    from simmodel.policies.slurm.settings import SlurmConf, SlurmPartition
    from simmodel.resources.pools.pool import Pool

__all__ = ["Asked", "Priorities", "basic", "multifactor"]

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

    >>> from simmodel.policies.slurm.settings import SlurmConf
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
        nodes = sum(len(board.table) for board in self._boards.values())
        cpus = sum(float(board.table.capacity[0].sum()) for board in self._boards.values())
        past = job.job.past
        eligible = job.submitted if past is None or past.eligible is None else past.eligible
        eligible = max(eligible, job.begin)
        part = job.site.spec.job_factor / self._largest_factor
        asked = Asked((job.request.nodes or 1) / nodes, job.request.processors / cpus, now - eligible, part, nice)
        if self._settings.weight_tres:
            totals = job.board.totals(job.site.nodes)
            parts = {name: value / totals[name] for name, value in tres_of(job.request).items() if totals.get(name)}
            asked = asked._replace(tres=parts)
        if self._accounts is not None:
            asked = asked._replace(
                fair_share=self._share_of(job),
                association=self._accounts.priority_of(None if job.counted is None else job.counted.association),
                qos=0.0 if job.qos is None else self._accounts.rank_of(job.qos),
            )
        return multifactor(asked, self._settings)

    def _share_of(self, job: Pending) -> float:
        """Return the factor of fair share of a job."""
        of = None if job.counted is None else job.counted.association
        if self.charges is None or of is None or of.user is None:
            return 0.0
        return self.charges.share.factor(of.account, of.user, of.partition)

    def calculate(self, queue: Iterable[Pending], now: float) -> bool:
        """Calculate the priorities of waiting jobs, and usage, at all instants until now (s); return if there were any.

        With fair share, each instant is calculated; without, the last one tells all.
        """
        settings = self._settings
        if not settings.multifactor:
            return False
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
