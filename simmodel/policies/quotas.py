"""Quotas of tenants: what each may use of a cluster, what it may borrow from others, and how it gets its own back.

Source: the ClusterQueues and cohorts of Kueue with its classic preemption, https://kueue.sigs.k8s.io/docs/concepts. A
job is admitted when its quota is reserved for it, whole or not at all; the policy for admitted jobs starts them. What
differs: a job that may have one of several types of GPUs counts for all of them, since it is not bound to one of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from math import ceil, inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import attrs

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, shown, unknown
from simmodel.foundation.loading import Source, parse_toml, read_bytes
from simmodel.foundation.units import parse_quantity, show_quantity
from simmodel.policies.around import Around
from simmodel.policies.backfilling import Easy
from simmodel.scheduling.protocol import Decision, Hold, Preempt, Release, View
from simmodel.scheduling.registry import PolicyLike, policy as policy_of
from simmodel.work.job import ANY, entry_of

if TYPE_CHECKING:
    from simmodel.platform.cluster import ClusterSpec, PartitionSpec
    from simmodel.platform.devices import DeviceSpec
    from simmodel.resources.pools.allocation import Request
    from simmodel.scheduling.scheduler import Scheduler
    from simmodel.work.job import LiveJob

__all__ = ["Quota", "Quotas", "read_quotas"]

Amounts = tuple[int, ...]
"""Of each resource, in the order of the ledger: processors, bytes, and thousandths of GPUs."""
Uses = Mapping[str, list[int]]
"""What each tenant uses of each resource."""

_BY = ("user", "group", "queue")
_RECLAIM = ("any", "lower-priority", "never")
_WITHIN = ("never", "lower-priority", "lower-or-newer-equal-priority")
_ENDLESS = 1 << 62


def _amounts(value: Mapping[str, float | str]) -> Mapping[str, float]:
    """Return amounts by resource, of memory in bytes."""
    if not isinstance(value, Mapping):
        raise InputError(f"must be amounts by resource, such as {{'gpus': 8}}, got {shown(value)}")
    found = {}
    for name, amount in value.items():
        if name == "memory" and isinstance(amount, str):
            amount = parse_quantity(amount, "B", place=name)
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < inf:
            raise InputError(f"must be a number >= 0, got {shown(amount)}", place=str(name))
        found[str(name)] = amount
    return found


def _one_of(accepted: tuple[str, ...]) -> Callable[[Quota, attrs.Attribute[str], str], None]:
    def check(_instance: Quota, attribute: attrs.Attribute[str], value: str) -> None:
        if value not in accepted:
            raise InputError(
                f"must be {', '.join(accepted[:-1])} or {accepted[-1]}, got {shown(value)}", attribute.name
            )

    return check


@attrs.frozen(repr=False)
class Quota(Fields):
    """What a tenant may use at the same time.

    Parameters
    ----------
    nominal
        its own amounts by resource: ``"processors"``, ``"memory"`` (bytes, or ``"64GB"``), ``"gpus"`` of any type, or
        a type of GPUs by name. Of what others have and it does not name, it has nothing; what no tenant names is not
        limited
    cohort
        the name of the tenants that borrow from each other what they do not use; ``None``: it does not
    borrow
        the most that it may borrow, by resource; default: all that the cohort has
    lend
        the most that it lends, by resource; default: all
    reclaim
        whose jobs its own may preempt if these fit into its nominal quota: those of borrowers of the cohort, ``"any"``
        or of ``"lower-priority"``; ``"never"``: nobody's
    within
        its own jobs that may be preempted: those of ``"lower-priority"``, of ``"lower-or-newer-equal-priority"``, or
        ``"never"`` any
    borrow_within
        whether a job that has to borrow may preempt jobs of lower priority of other borrowers, too

    Raises
    ------
    InputError
        an amount is negative; a limit of a resource without a nominal amount, or without a cohort

    >>> Quota({"A100": 4, "memory": "64GB"}, cohort="ab", borrow={"A100": 2}).nominal["memory"]
    64000000000.0
    """

    nominal: Mapping[str, float] = attrs.field(converter=_amounts)
    cohort: str | None = attrs.field(default=None, kw_only=True)
    borrow: Mapping[str, float] = attrs.field(factory=dict, converter=_amounts, kw_only=True)
    lend: Mapping[str, float] = attrs.field(factory=dict, converter=_amounts, kw_only=True)
    reclaim: Literal["any", "lower-priority", "never"] = attrs.field(
        default="any", validator=_one_of(_RECLAIM), kw_only=True
    )
    within: Literal["never", "lower-priority", "lower-or-newer-equal-priority"] = attrs.field(
        default="never", validator=_one_of(_WITHIN), kw_only=True
    )
    borrow_within: bool = attrs.field(default=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        for name, limits in (("borrow", self.borrow), ("lend", self.lend)):
            if limits and self.cohort is None:
                raise InputError("must be that of a tenant with a cohort", place=name)
            for resource in limits:
                if resource not in self.nominal:
                    raise InputError(unknown("resource", resource, self.nominal).message, place=name)


def read_quotas(file: Source) -> dict[str, Quota]:
    """Read the quotas of tenants from a TOML file, a table each with the fields of :class:`Quota`.

    Raises
    ------
    InputError
        the file is no TOML, or a field is unknown or wrong

    >>> import io
    >>> read_quotas(io.BytesIO(b'[team-a]\\ncohort = "ab"\\nnominal = {A100 = 4}'))["team-a"].cohort
    'ab'
    """
    data, name = read_bytes(file)
    try:
        return _quotas_of(parse_toml(data, name))
    except InputError as error:
        if error.source is None:
            error.source = name
        raise


def _quotas_of(given: Mapping[str, Quota | Mapping[str, Any]]) -> dict[str, Quota]:
    """Return the quotas by tenant, of values or of mappings of their fields."""
    if not isinstance(given, Mapping):
        raise InputError(f"must be quotas by tenant, got {shown(given)}", place="quotas")
    found = {}
    for tenant, each in given.items():
        try:
            if isinstance(each, Mapping):
                known = [field.name for field in attrs.fields(Quota)]
                for name in each:
                    if name not in known:
                        raise unknown("field", name, known)
                each = Quota(**{"nominal": {}, **each})
            if not isinstance(each, Quota):
                raise InputError(f"must be a Quota, got {shown(each)}")
        except InputError as error:
            place = str(tenant) if error.place is None else f"{tenant}.{error.place}"
            raise InputError(error.message, place=place) from None
        found[str(tenant)] = each
    return found


# ---------------------------------------------------------------------- what is used


def _units(resource: str) -> int:
    """Return the units of the ledger in one of a resource."""
    return 1 if resource in ("processors", "memory") else 1000


def _shown(resource: str, amount: int) -> str:
    if resource == "memory":
        return show_quantity(amount, "B")
    return f"{amount / _units(resource):g}"


class _Limits(NamedTuple):
    """The amounts of a tenant of one resource: its own, of which it does not lend some, and what it may borrow."""

    nominal: int
    kept: int
    borrow: int


class _Admitted:
    """A job for which quota is reserved.

    Attributes
    ----------
    job, tenant
        the job, and whose it is
    amounts
        what is reserved
    rank
        a number that later admissions have higher
    attempts
        the starts of the job before it was admitted
    leaves
        whether it was preempted, and cleans up
    """

    __slots__ = ("amounts", "attempts", "job", "leaves", "rank", "tenant")

    def __init__(self, job: LiveJob, tenant: str, amounts: Amounts, rank: int, attempts: int) -> None:
        self.job, self.tenant, self.amounts, self.rank, self.attempts = job, tenant, amounts, rank, attempts
        self.leaves = False


class _Ledger:
    """The quotas of tenants, and what is reserved of them.

    Attributes
    ----------
    resources
        the resources that quotas name
    admitted
        the jobs for which quota is reserved, by number
    used
        the sums of what is reserved, by tenant
    cohort
        the tenants that borrow from each other, by each of them
    rank
        that of the last admission
    """

    def __init__(self, quotas: Mapping[str, Quota]) -> None:
        self.quotas = quotas
        self.resources = tuple(dict.fromkeys(name for each in quotas.values() for name in each.nominal))
        self.admitted: dict[int, _Admitted] = {}
        self.used: dict[str, list[int]] = {name: [0] * len(self.resources) for name in quotas}
        self._limits = {
            name: tuple(map(self._limits_of, [each] * len(self.resources), self.resources))
            for name, each in quotas.items()
        }
        self.cohort = {
            name: [name] if quota.cohort is None else [each for each in quotas if quotas[each].cohort == quota.cohort]
            for name, quota in quotas.items()
        }
        self.rank = 0

    @staticmethod
    def _limits_of(quota: Quota, resource: str) -> _Limits:
        units = _units(resource)
        nominal = round(quota.nominal.get(resource, 0) * units)
        if quota.cohort is None or resource not in quota.nominal:
            return _Limits(nominal, nominal, 0)
        borrow, lend = quota.borrow.get(resource), quota.lend.get(resource)
        kept = 0 if lend is None else max(0, nominal - round(lend * units))
        return _Limits(nominal, kept, _ENDLESS if borrow is None else round(borrow * units))

    def reserve(self, job: LiveJob, tenant: str, amounts: Amounts) -> None:
        """Reserve amounts for a job."""
        self.rank += 1
        self.admitted[job.seq] = _Admitted(job, tenant, amounts, self.rank, job.attempts)
        self._add(tenant, amounts, 1)

    def give_back(self, number: int) -> _Admitted:
        """Give back what is reserved for a job."""
        entry = self.admitted.pop(number)
        self._add(entry.tenant, entry.amounts, -1)
        return entry

    def _add(self, tenant: str, amounts: Amounts, sign: int) -> None:
        _change(self.used[tenant], amounts, sign)

    def available(self, tenant: str, at: int, used: Uses) -> int:
        """Return how much more of a resource a tenant may use: what it keeps for itself, and what its cohort has."""
        own, uses = self._limits[tenant][at], used[tenant][at]
        there = 0
        for each in self.cohort[tenant]:
            limits = self._limits[each][at]
            there += limits.nominal - limits.kept - max(0, used[each][at] - limits.kept)
        most = own.nominal - own.kept - max(0, uses - own.kept) + own.borrow
        return max(0, own.kept - uses) + min(there, most)

    def lacking(self, tenant: str, amounts: Amounts, used: Uses | None = None, *, borrows: bool = True) -> list[int]:
        """Return the resources of which a tenant may not use these amounts more; ``borrows``: whether it may borrow."""
        used = self.used if used is None else used
        return [
            at
            for at, amount in enumerate(amounts)
            if amount
            and (
                amount > self.available(tenant, at, used)
                or (not borrows and used[tenant][at] + amount > self._limits[tenant][at].nominal)
            )
        ]

    def never(self, tenant: str, amounts: Amounts) -> str:
        """Return why a tenant could not use amounts if nobody used anything; an empty text if it could."""
        nothing = {name: [0] * len(self.resources) for name in self.quotas}
        lacking = self.lacking(tenant, amounts, nothing)
        if not lacking:
            return ""
        at = lacking[0]
        most = _shown(self.resources[at], self.available(tenant, at, nothing))
        asked = _shown(self.resources[at], amounts[at])
        return f"quota of {tenant} is too small: {asked} {self.resources[at]} asked for, {most} at most"

    def why(self, tenant: str, amounts: Amounts) -> str:
        """Return why a tenant cannot use amounts now; an empty text if it can."""
        for at in self.lacking(tenant, amounts):
            name = self.resources[at]
            own, used, asked = (
                _shown(name, each) for each in (self._limits[tenant][at].nominal, self.used[tenant][at], amounts[at])
            )
            cohort = self.quotas[tenant].cohort
            left = _shown(name, max(0, self.available(tenant, at, self.used)))
            more = "" if cohort is None else f", {left} left with what cohort {cohort} lends"
            return f"quota of {tenant} used up: {used} of {own} {name} in use, {asked} asked for{more}"
        return ""

    # ------------------------------------------------------------------ preemption

    def over(self, tenant: str, among: Iterable[int], used: Uses) -> bool:
        """Whether a tenant borrows some of these resources."""
        return any(used[tenant][at] > self._limits[tenant][at].nominal for at in among)

    def victims(self, job: LiveJob, tenant: str, amounts: Amounts) -> list[_Admitted]:
        """Return the jobs to preempt so that a job can be admitted; empty if there are no such, or they leave already.

        Candidates are taken in order until it fits; then, in reverse, each without which it fits as well is left out.
        """
        leaving = self._when_left()
        needed = self.lacking(tenant, amounts, leaving)
        quota, limits = self.quotas[tenant], self._limits[tenant]
        if any(amounts[at] > limits[at].nominal for at in needed) and not quota.borrow_within:
            return []
        under = all(leaving[tenant][at] < limits[at].nominal for at in needed)
        owners = self._owners(tenant, needed, leaving, under)
        if not needed or not owners:
            return []
        found = sorted(
            (
                each
                for each in self.admitted.values()
                if each.tenant in owners and self._may_stop(each, job, tenant, needed)
            ),
            key=lambda each: (each.tenant == tenant, each.job.priority, -each.rank),
        )
        mine = [each for each in found if each.tenant == tenant]
        if len(mine) == len(found):
            return self._least(tenant, amounts, needed, mine, leaving, borrows=True)
        if quota.borrow_within:
            if not under:
                found = [each for each in found if each.tenant == tenant or each.job.priority < job.priority]
            return self._least(tenant, amounts, needed, found, leaving, borrows=True, below=job.priority)
        least = self._least(tenant, amounts, needed, found, leaving, borrows=False)
        return least or self._least(tenant, amounts, needed, mine, leaving, borrows=True)

    def _when_left(self) -> Uses:
        """Return what is used once the jobs that were preempted have left."""
        left = {name: list(each) for name, each in self.used.items()}
        for entry in self.admitted.values():
            if entry.leaves:
                _change(left[entry.tenant], entry.amounts, -1)
        return left

    def waits(self, tenant: str) -> bool:
        """Whether jobs of a cohort that were preempted still clean up."""
        return any(each.leaves and each.tenant in self.cohort[tenant] for each in self.admitted.values())

    def _owners(self, tenant: str, needed: Iterable[int], used: Uses, under: bool) -> set[str]:
        """Return the tenants whose jobs may be preempted for a tenant; ``under``: it is under its nominal quota."""
        quota = self.quotas[tenant]
        own = {tenant} if quota.within != "never" else set()
        if quota.reclaim == "never" or not (under or quota.borrow_within):
            return own
        return own | {each for each in self.cohort[tenant] if each != tenant and self.over(each, needed, used)}

    def _may_stop(self, entry: _Admitted, job: LiveJob, tenant: str, needed: Iterable[int]) -> bool:
        """Whether a job may be preempted for another one, of the same tenant or of a borrower."""
        other, quota = entry.job, self.quotas[tenant]
        spec = other.spec
        if entry.leaves or not any(entry.amounts[at] for at in needed):
            return False
        if other.course is not None or (spec is not None and spec.on_preempt == "no"):
            return False
        lower = other.priority < job.priority
        if entry.tenant == tenant:
            newer = other.priority == job.priority and (job.submit, job.seq) < (other.submit, other.seq)
            return lower or (newer and quota.within != "lower-priority")
        return quota.reclaim == "any" or lower

    def _least(
        self,
        tenant: str,
        amounts: Amounts,
        needed: list[int],
        candidates: list[_Admitted],
        used: Uses,
        *,
        borrows: bool,
        below: float | None = None,
    ) -> list[_Admitted]:
        """Return the first candidates without which amounts fit, without those of them that need not go.

        ``below``: the priority from which on a victim of another tenant forbids to borrow
        """
        left = {name: list(each) for name, each in used.items()}
        chosen: list[_Admitted] = []
        for each in candidates:
            if each.tenant != tenant:
                if not self.over(each.tenant, needed, left):
                    continue
                borrows = borrows and (below is None or each.job.priority < below)
            _change(left[each.tenant], each.amounts, -1)
            chosen.append(each)
            if not self.lacking(tenant, amounts, left, borrows=borrows):
                break
        else:
            return []
        for each in chosen[-2::-1]:
            _change(left[each.tenant], each.amounts, 1)
            if self.lacking(tenant, amounts, left, borrows=borrows):
                _change(left[each.tenant], each.amounts, -1)
            else:
                chosen.remove(each)
        return chosen


def _change(used: list[int], amounts: Amounts, sign: int) -> None:
    for at, amount in enumerate(amounts):
        used[at] += sign * amount


# ---------------------------------------------------------------------- what jobs ask for


class _Asked:
    """What jobs ask for of the resources of a ledger, at the places of a cluster."""

    def __init__(self, resources: tuple[str, ...], partitions: Iterable[PartitionSpec]) -> None:
        self.resources = resources
        self._types = {
            each.name: list(dict.fromkeys(t for kind in each.nodes for t in kind.gpu_types)) for each in partitions
        }
        self._known: dict[str, DeviceSpec] = {spec.name: spec for each in partitions for spec in each.devices}

    def of(self, job: LiveJob) -> Amounts:
        """Return the amounts of a job."""
        processors = job.width if job.elastic is None else job.elastic.maximum
        total = Counter({"processors": processors})
        request = job.request
        for part in () if request is None else request.alike() if request.chunks else (request,):
            nodes = part.nodes or 1
            total["memory"] += ceil(part.memory_per_node) * nodes
            shares = self._shares(part, request.gpu, request.gpu_memory, self._types_for(job))
            total["gpus"] += max(shares.values(), default=0) * nodes
            for name, share in shares.items():
                total[name] += share * nodes if name else 0
        return tuple(total[name] for name in self.resources)

    def _types_for(self, job: LiveJob) -> list[str]:
        """Return the types of GPUs at the places where a job may run."""
        named = "" if job.spec is None or job.spec.partition is None else str(job.spec.partition)
        if named == ANY or "," in named:
            return list(dict.fromkeys(name for types in self._types.values() for name in types))
        return self._types.get(job.place.name, [])

    def _shares(self, part: Request, gpu: str, memory: float, types: Iterable[str]) -> dict[str, int]:
        """Return the thousandths of GPUs that a request has of each node, by the types that it may have."""
        if not part.gpus_per_node:
            return {}
        named, _, cut = gpu.partition(":")
        found = {}
        for name in named.split("|") if named else list(types) or [""]:
            spec = self._known.get(name)
            if cut and spec is not None and cut in spec.slices:
                found[name] = spec.slices[cut][0] * 1000 // spec.places
            elif memory and spec is not None and spec.memory:
                found[name] = ceil(memory * 1000 / spec.memory)
            else:
                found[name] = round(part.gpus_per_node * 1000)
        return found


# ---------------------------------------------------------------------- the policy


class Batch(Protocol):
    """A cluster."""

    changed: list[Callable[[], object]]

    @property
    def spec(self) -> ClusterSpec:
        """Its platform."""
        ...

    @property
    def scheduler(self) -> Scheduler:
        """Its scheduler."""
        ...

    def present(self) -> Iterator[LiveJob]:
        """Yield the submitted jobs that have not ended."""
        ...


class Quotas(Around):
    """Admit jobs within the quotas of their tenants, by preemption if necessary; another policy starts those admitted.

    Tenants that need not borrow come first, then higher priority, then the order of the other policy. A job waits for
    quota without being seen by the other policy; if it could never have enough, it is cancelled. Amounts are those that
    jobs request; an elastic job counts with its maximum. Jobs of tenants without a quota are not limited.

    Parameters
    ----------
    quotas
        by tenant: :class:`Quota` values or mappings of their fields; or a TOML file of these
    policy
        the policy for admitted jobs; default: EASY
    by
        what names the tenant of a job: its ``"user"``, ``"group"`` or ``"queue"``
    strict
        whether a job that cannot be admitted keeps those of its tenant behind it waiting (Kueue's ``StrictFIFO``)

    Raises
    ------
    InputError
        a quota is wrong, or ``by`` unknown

    >>> from simmodel import Job, simulate
    >>> teams = {"a": Quota({"processors": 4}, cohort="ab"), "b": Quota({"processors": 4}, cohort="ab")}
    >>> jobs = [Job(user="a", processors=4, run=10)] * 2 + [Job(user="b", processors=4, run=10, submit=5)]
    >>> simulate(8, jobs, Quotas(teams, "fcfs")).jobs["end"].tolist()
    [10.0, 20.0, 15.0]
    """

    decides = "jobs"
    preempts = True
    tries_every_submission = True

    def __init__(
        self,
        quotas: Mapping[str, Quota | Mapping[str, Any]] | str | Path | None = None,
        policy: PolicyLike | None = None,
        *,
        by: Literal["user", "group", "queue"] = "user",
        strict: bool = False,
    ) -> None:
        if by not in _BY:
            raise InputError(unknown("tenant", by, _BY).message, place="by")
        self.quotas = quotas
        self.policy = Easy() if policy is None else policy_of(policy)
        self.by = by
        self.strict = strict
        self.order: Any = getattr(self.policy, "order", self.policy)
        self.name = f"quota {self.policy.name}"
        self._quotas = (
            read_quotas(quotas) if isinstance(quotas, str | Path) else _quotas_of({} if quotas is None else quotas)
        )
        self._clear()

    def _clear(self) -> None:
        self._ledger = _Ledger(self._quotas)
        self._lines: dict[str, dict[int, LiveJob]] = {name: {} for name in self._quotas}  # not admitted, by number
        self._wants: dict[int, Amounts] = {}  # what these ask for
        self._came: list[tuple[str, LiveJob]] = []  # since the last decision
        self._retry: set[str] = set()  # tenants for whose cohorts something has changed
        self._fresh = True  # it has neither decided nor been restored
        self._deciding = False
        self._unlimited = self._cancelled = 0

    def attach(self, system: Batch) -> None:
        """Check the tenants if they are queues, and be asked when jobs end while some wait for quota."""
        super().attach(system)
        if self.by == "queue":
            names = [queue.name for queue in system.spec.queues]
            for name in self._quotas:
                if name not in names:
                    raise InputError(unknown("queue", name, names).message, place="quotas")
        types = [name for each in system.spec.partitions for kind in each.nodes for name in kind.gpu_types]
        known = ["processors", "memory", "gpus", *dict.fromkeys(types)]
        for name in self._ledger.resources:
            if name not in known:
                raise InputError(unknown("resource", name, known).message, place="quotas")
        self._asked = _Asked(self._ledger.resources, system.spec.partitions)
        self._present, self._scheduler = system.present, system.scheduler
        system.changed.append(self._woken)

    def _woken(self) -> None:
        if not self._deciding and any(self._lines.values()):
            self._scheduler.wake_for_running()

    def notes(self, system: Batch, /) -> tuple[str, ...]:
        """Return sentences about jobs that quotas do not limit, and about those that they never allow."""
        own = []
        if not self._quotas:
            own.append(f"policy {self.name} limits nothing: it has no quotas")
        elif self._unlimited:
            own.append(f"policy {self.name} did not limit {self._unlimited:,} jobs of a {self.by} without a quota")
        if self._cancelled:
            own.append(f"policy {self.name} cancelled {self._cancelled:,} jobs that no quota could ever hold")
        return *own, *super().notes(system)

    def state(self) -> Any:
        """Return the reservations, the numbers of the jobs that wait for quota, and the state of the other policy."""
        kept = [
            [number, each.tenant, list(each.amounts), each.rank, each.attempts, each.leaves]
            for number, each in self._ledger.admitted.items()
        ]
        lines = [[name, list(line)] for name, line in self._lines.items()]
        told = [self._unlimited, self._cancelled, self._ledger.rank]
        return {
            "admitted": kept,
            "lines": lines,
            "told": told,
            "retry": sorted(self._retry),
            **super().state(),
        }

    def restore(self, values: Mapping[str, Any]) -> None:
        """Continue with the values of :meth:`state`, among the jobs of the system."""
        self._clear()
        self._fresh = False
        jobs = {job.seq: job for job in self._present()}
        for number, tenant, amounts, rank, attempts, leaves in values["admitted"]:
            if number in jobs:
                self._ledger.reserve(jobs[number], tenant, tuple(amounts))
                entry = self._ledger.admitted[number]
                entry.rank, entry.attempts, entry.leaves = rank, attempts, leaves
            else:  # it has ended at this instant
                self._retry.add(tenant)
        for name, line in values["lines"]:
            self._lines[name] = {number: jobs[number] for number in line if number in jobs}
        self._unlimited, self._cancelled, self._ledger.rank = values["told"]
        self._retry.update(values["retry"])
        super().restore(values)

    def _look_around(self, view: View) -> Iterator[Decision]:
        """Count the jobs that are there already when it decides first."""
        self._fresh = False
        for run in sorted(view.running, key=lambda each: (each.started, each.work.seq)):
            tenant = self._tenant(run.work)
            if tenant in self._quotas:
                self._ledger.reserve(run.work, tenant, self._of(run.work))
                self._ledger.admitted[run.work.seq].attempts -= 1
        for job in view.waiting:
            if self._tenant(job) in self._quotas:
                yield from self._come(job)

    def _tenant(self, job: LiveJob) -> str:
        return str(getattr(job, self.by))

    def _of(self, job: LiveJob) -> Amounts:
        """Return what a job asks for."""
        if job.seq not in self._wants:
            self._wants[job.seq] = self._asked.of(job)
        return self._wants[job.seq]

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Admit jobs, hold those that are not, and yield the decisions of the other policy."""
        if not self._quotas:
            yield from self.policy.decide(view) or ()
            return
        self._deciding = True
        try:
            if self._fresh:
                yield from self._look_around(view)
            self._settle()
            for job in list(view.waiting.new):
                yield from self._come(job)
            if self._retry:
                yield from self._admit(view)
            yield from self._hold()
            yield from self.policy.decide(view) or ()
        finally:
            self._deciding = False

    def _settle(self) -> None:
        """Give back what is reserved for jobs that have ended, or wait again."""
        for number, entry in list(self._ledger.admitted.items()):
            job = entry.job
            if job.over or (job.run is None and job.attempts > entry.attempts):
                self._ledger.give_back(number)
                self._retry.add(entry.tenant)
                if job.over:
                    self._wants.pop(number, None)
                else:
                    self._wait(job, entry.tenant)

    def _come(self, job: LiveJob) -> Iterator[Decision]:
        """Let a job wait for quota; cancel it if it could never have enough."""
        tenant = self._tenant(job)
        if tenant not in self._quotas:
            self._unlimited += not job.attempts
        elif job.state == "waiting" and job.seq not in self._ledger.admitted:
            never = self._ledger.never(tenant, self._of(job))
            if never:
                self._cancelled += 1
                yield Preempt(job, "cancel", never)
            else:
                self._wait(job, tenant)
                self._retry.add(tenant)

    def _wait(self, job: LiveJob, tenant: str) -> None:
        self._lines[tenant][job.seq] = job
        self._came.append((tenant, job))

    def _hold(self) -> Iterator[Decision]:
        """Hold the jobs in the queue that are not admitted."""
        for tenant, job in self._came:
            if job.state == "waiting" and job.seq in self._lines[tenant]:
                why = self._ledger.why(tenant, self._of(job))
                yield Hold(job, inf, why or f"other jobs of {tenant} go first")
        self._came.clear()

    def why_held(self, job: LiveJob) -> str:
        """Return why a job is held."""
        tenant = self._tenant(job)
        if tenant not in self._quotas or job.seq not in self._lines[tenant]:
            return ""
        return self._ledger.why(tenant, self._of(job)) or f"other jobs of {tenant} go first"

    # ------------------------------------------------------------------ admission

    def _sorted(self, tenant: str, now: float) -> list[tuple[Any, ...]]:
        """Return the jobs of a tenant that wait for quota, in order: their keys, and they."""
        line = self._lines[tenant]
        for number in [number for number, job in line.items() if job.over]:
            del line[number]
            self._wants.pop(number, None)
        key = getattr(self.order, "key", None)
        if key is not None and self.order.changes:
            key = partial(_key_at, key, now)
        return sorted(entry_of(job, key) for job in line.values())

    def _admit(self, view: View) -> Iterator[Decision]:
        """Admit jobs of the tenants of the cohorts for which something has changed."""
        tenants = list(dict.fromkeys(each for name in sorted(self._retry) for each in self._ledger.cohort[name]))
        self._retry.clear()
        ledger = self._ledger
        lines = {name: iter(self._sorted(name, view.now)) for name in tenants}
        tried: dict[str, set[tuple[Amounts, float]]] = {name: set() for name in tenants}
        heads = {name: head for name in tenants if (head := self._next(lines[name], tried[name])) is not None}
        turns: dict[str, tuple[Any, ...]] = {}  # of the heads, until usage changes
        while heads:
            turns |= {name: self._turn(name, *head) for name, head in heads.items() if name not in turns}
            tenant = min(heads, key=turns.__getitem__)
            entry, amounts = heads.pop(tenant)
            del turns[tenant]
            job = entry[-1]
            if not ledger.lacking(tenant, amounts):
                turns.clear()
                yield from self._let_in(job, tenant, amounts)
            else:
                victims = ledger.victims(job, tenant, amounts)
                for victim in victims:
                    yield from self._stop(victim, job, tenant)
                if victims and not ledger.lacking(tenant, amounts):
                    turns.clear()
                    yield from self._let_in(job, tenant, amounts)
                    self._retry.update(tenants)  # what the victims leave over may be enough for others
                elif ledger.waits(tenant):
                    heads = {name: head for name, head in heads.items() if name not in ledger.cohort[tenant]}
                    continue  # until they have left
                elif self.strict:
                    continue
                else:
                    tried[tenant].add((amounts, job.priority))
            head = self._next(lines[tenant], tried[tenant])
            if head is not None:
                heads[tenant] = head
        if self._retry:
            yield from self._admit(view)

    def _next(
        self, line: Iterator[tuple[Any, ...]], tried: set[tuple[Amounts, float]]
    ) -> tuple[tuple[Any, ...], Amounts] | None:
        """Return the next job of a line with its key, and its amounts, unless one like it has been tried in vain."""
        for entry in line:
            amounts = self._of(entry[-1])
            if (amounts, entry[-1].priority) not in tried:
                return entry, amounts
        return None

    def _turn(self, tenant: str, entry: tuple[Any, ...], amounts: Amounts) -> tuple[Any, ...]:
        return bool(self._ledger.lacking(tenant, amounts, borrows=False)), entry[:-1]

    def _let_in(self, job: LiveJob, tenant: str, amounts: Amounts) -> Iterator[Decision]:
        self._ledger.reserve(job, tenant, amounts)
        del self._lines[tenant][job.seq]
        if job.state == "blocked":
            yield Release(job)

    def _stop(self, entry: _Admitted, job: LiveJob, tenant: str) -> Iterator[Decision]:
        """Preempt a job for another one; if it runs, it returns to the queue, at once unless it cleans up."""
        other = entry.job
        if other.run is not None:
            spec = other.spec
            mode: Any = "requeue" if spec is None or spec.has_body else spec.on_preempt
            yield Preempt(other, mode, f"gives way to job {job.id} of {tenant}")
        if other.run is None:
            self._ledger.give_back(other.seq)
            self._wait(other, entry.tenant)
        else:
            entry.leaves = True


def _key_at(key: Callable[[LiveJob, float], Any], now: float, job: LiveJob) -> Any:
    return key(job, now)
