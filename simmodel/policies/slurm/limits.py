"""The limits of associations and QOS: which jobs are skipped until others have ended.

Source: the resource limits of Slurm 22.05, by their documentation: ``resource_limits``, sacctmgr(1).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from simmodel.policies.slurm.accounts import Limits
from simmodel.policies.slurm.settings import weights_of
from simmodel.policies.slurm.wishes import wishes_of

if TYPE_CHECKING:
    from simmodel.policies.slurm.accounts import Accounts, Association, Qos
    from simmodel.policies.slurm.settings import SlurmPartition
    from simmodel.resources.pools.allocation import Request
    from simmodel.work.job import LiveJob

__all__ = ["Counted", "Quotas", "billed", "tres_of"]


def tres_of(request: Request) -> dict[str, float]:
    """Return the resources that a job asks for, by Slurm's names: memory in MB.

    >>> from simmodel.resources.pools.allocation import Request
    >>> tres_of(Request(8, nodes=2, cores_per_node=4, memory_per_node=2**30))
    {'cpu': 8.0, 'node': 2.0, 'mem': 2048.0, 'gres/gpu': 0.0}
    """
    nodes = float(request.nodes or 1)
    found = {"cpu": float(request.processors), "node": nodes, "mem": request.memory_per_node * nodes / 2**20}
    found["gres/gpu"] = float(request.gpus_per_node) * nodes
    found |= {f"license/{name}": amount for name, amount in request.consumables.items()}
    return found


def billed(tres: Mapping[str, float], weights: str) -> float:
    """Return the billed resources of a job by ``TRESBillingWeights``; without weights: its CPUs.

    >>> billed({"cpu": 4, "mem": 400}, "CPU=2.0,Mem=1.0G")
    8.390625
    """
    if not weights:
        return tres["cpu"]
    return sum(weight * tres.get(name, 0.0) for name, weight in weights_of(weights))


class Counted(NamedTuple):
    """A job as limits count it.

    Parameters
    ----------
    number
        by which it is known
    user, account
        its user and its account, as texts
    association, qos
        its association, if there is one, and its QOS
    tres
        the resources that it asks for
    seconds
        its limit
    partition_qos
        the QOS of its partition, whose limits hold too
    started
        the instant of its start (s)
    """

    number: int
    user: str
    account: str
    association: Association | None
    qos: Qos
    tres: Mapping[str, float]
    seconds: float
    partition_qos: Qos | None = None
    started: float = 0.0

    @classmethod
    def of(
        cls, job: LiveJob, number: int, partition: SlurmPartition, request: Request, limit: float, accounts: Accounts
    ) -> Counted:
        """Return a job as limits and charges count it; ``limit`` in seconds."""
        of = accounts.association(job.user, job.group, partition.name)
        account = of.account if of is not None else "" if job.group is None else str(job.group)
        name = partition.qos
        return cls(
            number=number,
            user=str(job.user),
            account=account,
            association=of,
            qos=accounts.qos_of(job.id, of, wishes_of(job).qos),
            tres=tres_of(request),
            seconds=limit,
            partition_qos=accounts.qos_of(job.id, None, name) if name else None,
        )

    @property
    def qualities(self) -> tuple[Qos, ...]:
        """Its QOS and that of its partition: that whose limits replace the other's first."""
        own, other = self.qos, self.partition_qos
        if other is None or other.name == own.name:
            return (own,)
        return (own, other) if "OverPartQOS" in own.flags else (other, own)


class _Tally:
    """Running jobs and their resources."""

    __slots__ = ("jobs", "tres")

    def __init__(self) -> None:
        self.jobs = 0
        self.tres: defaultdict[str, float] = defaultdict(float)

    def add(self, tres: Mapping[str, float], sign: int) -> None:
        self.jobs += sign
        for name, amount in tres.items():
            self.tres[name] += sign * amount


class Quotas:
    """The limits of associations and QOS, and what running and waiting jobs count against them.

    A limit of a QOS replaces that of the same name of associations, and one of the QOS of a partition that of a job's
    QOS, unless this has the flag ``OverPartQOS``. Limits of groups hold for an association with all
    those below it, and are checked on the whole way up; others are those of the association, or else of the next one
    above it that has them.

    Parameters
    ----------
    accounts
        the associations and QOS

    >>> from simmodel.policies.slurm.accounts import Accounts, Limits, Qos
    >>> short = Qos(name="short", limits=Limits(max_jobs_per_user=1))
    >>> quotas = Quotas(Accounts(qos=[short]))
    >>> first, second = (Counted(i, "ada", "", None, short, {"cpu": 4.0}, 60.0) for i in (1, 2))
    >>> quotas.started(first)
    >>> quotas.reason(second)
    'QOSMaxJobsPerUserLimit'
    >>> quotas.ended(1); quotas.reason(second) is None
    True
    """

    def __init__(self, accounts: Accounts) -> None:
        self.accounts = accounts
        self._tallies: defaultdict[tuple[str, ...], _Tally] = defaultdict(_Tally)
        self._running: dict[int, Counted] = {}
        self._there: dict[int, Counted] = {}  # jobs that wait or run
        self._submitted: Counter[tuple[str, ...]] = Counter()
        self.taken_off = -inf
        """The instant (s) until which running jobs have used up their minutes, as far as limits are concerned."""

    def started(self, job: Counted) -> None:
        """Count a job that runs from now on, once."""
        self.ended(job.number)
        self._running[job.number] = job
        for key in self._keys(job):
            self._tallies[key].add(job.tres, 1)

    def ended(self, number: int) -> None:
        """Count a job no longer; one that is unknown is ignored."""
        job = self._running.pop(number, None)
        if job is not None:
            for key in self._keys(job):
                self._tallies[key].add(job.tres, -1)

    def submitted(self, job: Counted) -> None:
        """Count a job that waits from now on, once."""
        if job.number not in self._there:
            self._there[job.number] = job
            self._submitted.update(self._keys(job))

    def left(self, number: int) -> None:
        """Count a job no longer that has ended or was cancelled; one that is unknown is ignored."""
        job = self._there.pop(number, None)
        if job is not None:
            self._submitted.subtract(self._keys(job))

    def refusal(self, job: Counted) -> str | None:
        """Return why a job is refused when it is submitted, in Slurm's words; ``None``: it is not."""
        over = Limits()
        for qos in job.qualities:
            name, limits = qos.name, _left(qos.limits, over)
            for reason, most, key in (
                ("QOSGrpSubmitJobsLimit", limits.grp_submit_jobs, ("qos", name)),
                ("QOSMaxSubmitJobPerUserLimit", limits.max_submit_jobs_per_user, ("user", name, job.user)),
                ("QOSMaxSubmitJobPerAccountLimit", limits.max_submit_jobs_per_account, ("account", name, job.account)),
            ):
                if most is not None and self._submitted[key] >= most:
                    return reason
            over = _joined(over, limits)
        path = list(self.accounts.path(job.association))
        for each in path:
            most = each.limits.grp_submit_jobs if over.grp_submit_jobs is None else None
            if most is not None and self._submitted[_key(each)] >= most:
                return "AssocGrpSubmitJobsLimit"
        if path and over.max_submit_jobs_per_user is None:
            own = next((each.limits.max_submit_jobs for each in path if each.limits.max_submit_jobs is not None), None)
            if own is not None and self._submitted[_key(path[0])] >= own:
                return "AssocMaxSubmitJobLimit"
        return None

    def _keys(self, job: Counted) -> Iterator[tuple[str, ...]]:
        for each in job.qualities:
            yield "qos", each.name
            yield "user", each.name, job.user
            yield "account", each.name, job.account
        for association in self.accounts.path(job.association):
            yield _key(association)

    def reason(self, job: Counted) -> str | None:
        """Return why limits keep a job from starting, in Slurm's words; ``None``: they do not."""
        return next(self._reasons(job), None)

    def _reasons(self, job: Counted) -> Iterator[str]:
        over = Limits()
        for qos in job.qualities:
            limits = _left(qos.limits, over)
            yield from self._by_qos(qos.name, limits, job)
            over = _joined(over, limits)
        yield from self._by_association(job, over)

    def _by_qos(self, name: str, limits: Limits, job: Counted) -> Iterator[str]:
        alone = self._tallies["qos", name]
        yield from _group("QOSGrp", limits.grp_jobs, limits.grp_tres, alone, job)
        yield from self._minutes("QOSGrp", limits.grp_tres_run_mins, ("qos", name), job)
        yield from _of_job("QOS", limits, job)
        user, account = self._tallies["user", name, job.user], self._tallies["account", name, job.account]
        yield from _jobs("QOSMaxJobsPerUserLimit", limits.max_jobs_per_user, user)
        yield from _jobs("QOSMaxJobsPerAccountLimit", limits.max_jobs_per_account, account)
        yield from _tres("QOSMax", "PerUserLimit", limits.max_tres_per_user, user, job)
        yield from _tres("QOSMax", "PerAccountLimit", limits.max_tres_per_account, account, job)
        for each, least in limits.min_tres_per_job.items():
            if job.tres.get(each, 0.0) < least:
                yield f"QOSMin{_named(each)}"

    def _by_association(self, job: Counted, over: Limits) -> Iterator[str]:
        path = list(self.accounts.path(job.association))
        for each in path:
            own, key = _left(each.limits, over), _key(each)
            yield from _group("AssocGrp", own.grp_jobs, own.grp_tres, self._tallies[key], job)
            yield from self._minutes("AssocGrp", own.grp_tres_run_mins, key, job)
        yield from _of_job("Assoc", _inherited([each.limits for each in path], over), job)
        if path and over.max_jobs_per_user is None:
            most = next((each.limits.max_jobs for each in path if each.limits.max_jobs is not None), None)
            yield from _jobs("AssocMaxJobsLimit", most, self._tallies[_key(path[0])])

    def _minutes(self, word: str, most: Mapping[str, float], key: tuple[str, ...], job: Counted) -> Iterator[str]:
        """Yield the limits of resources times the minutes that running jobs may still use, with those of a job."""
        if not most:
            return
        mine = [each for each in self._running.values() if key in self._keys(each)]
        for name, limit in most.items():
            asked = job.tres.get(name, 0.0) * job.seconds
            for each in mine:
                used = max(self.taken_off - each.started, 0.0)
                asked += each.tres.get(name, 0.0) * max(each.seconds - used, 0.0)
            if job.tres.get(name) and asked > limit * 60:
                yield f"{word}{_named(name)}RunMinutesLimit"


def _key(association: Association) -> tuple[str, ...]:
    return "association", association.account, association.user or "", association.partition or ""


def _left(limits: Limits, over: Limits) -> Limits:
    """Return limits without those that others replace."""
    if over == _NONE:
        return limits
    found: dict[str, Any] = {}
    for field in attrs.fields(Limits):
        mine, other = getattr(limits, field.name), getattr(over, field.name)
        if isinstance(mine, dict):
            found[field.name] = {name: most for name, most in mine.items() if name not in other}
        else:
            found[field.name] = mine if other is None else None
    return Limits(**found)


def _joined(over: Limits, limits: Limits) -> Limits:
    """Return limits together with others of other names."""
    if over == _NONE:
        return limits
    found: dict[str, Any] = {}
    for field in attrs.fields(Limits):
        mine, other = getattr(limits, field.name), getattr(over, field.name)
        found[field.name] = {**mine, **other} if isinstance(mine, dict) else mine if other is None else other
    return Limits(**found)


_NONE = Limits()


def _inherited(limits: Sequence[Limits], over: Limits) -> Limits:
    """Return the limits of each job of an association: the next that is set on the way up, and not by the QOS."""
    found: dict[str, Any] = {}
    for name in ("max_tres_per_job", "max_tres_per_node", "max_tres_mins_per_job"):
        mine = {key: most for each in reversed(limits) for key, most in getattr(each, name).items()}
        found[name] = {key: most for key, most in mine.items() if key not in getattr(over, name)}
    if over.max_wall is None:
        found["max_wall"] = next((each.max_wall for each in limits if each.max_wall is not None), None)
    return Limits(**found)


def _group(word: str, jobs: int | None, tres: Mapping[str, float], tally: _Tally, job: Counted) -> Iterator[str]:
    yield from _jobs(f"{word}JobsLimit", jobs, tally)
    yield from _tres(word, "Limit", tres, tally, job)


def _jobs(reason: str, most: int | None, tally: _Tally) -> Iterator[str]:
    if most is not None and tally.jobs >= most:
        yield reason


def _tres(word: str, end: str, most: Mapping[str, float], tally: _Tally, job: Counted) -> Iterator[str]:
    for name, limit in most.items():
        asked = job.tres.get(name, 0.0)
        if asked and tally.tres[name] + asked > limit:
            yield f"{word}{_named(name)}{end}"


def _of_job(word: str, limits: Limits, job: Counted) -> Iterator[str]:
    nodes = max(job.tres.get("node", 1.0), 1.0)
    if limits.max_wall is not None and job.seconds > limits.max_wall:
        yield f"{word}MaxWallDurationPerJobLimit"
    for limit, share, end in (
        (limits.max_tres_per_job, 1.0, "PerJobLimit"),
        (limits.max_tres_per_node, 1 / nodes, "PerNode"),
        (limits.max_tres_mins_per_job, job.seconds / 60, "MinutesPerJobLimit"),
    ):
        for name, most in limit.items():
            if job.tres.get(name, 0.0) * share > most:
                yield f"{word}Max{_named(name)}{end}"


def _named(resource: str) -> str:
    kind = resource.partition("/")[0]
    return {"cpu": "Cpu", "mem": "Memory", "node": "Node", "gres": "GRES", "license": "License"}.get(kind, kind.title())
