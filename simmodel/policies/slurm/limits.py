"""The limits of associations and QOS: which jobs are skipped until others have ended.

Source: the resource limits of Slurm 22.05, by their documentation: ``resource_limits``, sacctmgr(1).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from simmodel.policies.slurm.accounts import Limits
from simmodel.policies.slurm.priority import weights_of

if TYPE_CHECKING:
    from simmodel.policies.slurm.accounts import Accounts, Association, Qos
    from simmodel.resources.pools.allocation import Request

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
    """

    number: int
    user: str
    account: str
    association: Association | None
    qos: Qos
    tres: Mapping[str, float]
    seconds: float


class _Tally:
    """Running jobs and their resources."""

    __slots__ = ("jobs", "tres")

    def __init__(self) -> None:
        self.jobs = 0
        self.tres: Counter[str] = Counter()

    def add(self, tres: Mapping[str, float], sign: int) -> None:
        self.jobs += sign
        for name, amount in tres.items():
            self.tres[name] += sign * amount  # type: ignore[assignment]


class Quotas:
    """The limits of associations and QOS, and what running jobs count against them.

    A limit of a QOS replaces that of the same name of associations. Limits of groups hold for an association with all
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
        self._accounts = accounts
        self._tallies: defaultdict[tuple[str, ...], _Tally] = defaultdict(_Tally)
        self._running: dict[int, Counted] = {}

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

    def _keys(self, job: Counted) -> Iterator[tuple[str, ...]]:
        qos = job.qos.name
        yield "qos", qos
        yield "user", qos, job.user
        yield "account", qos, job.account
        for each in self._accounts.path(job.association):
            yield _key(each)

    def reason(self, job: Counted) -> str | None:
        """Return why limits keep a job from starting, in Slurm's words; ``None``: they do not."""
        return next(chain(self._by_qos(job), self._by_association(job)), None)

    def _by_qos(self, job: Counted) -> Iterator[str]:
        limits, name = job.qos.limits, job.qos.name
        alone = self._tallies["qos", name]
        yield from _group("QOSGrp", limits.grp_jobs, limits.grp_tres, alone, job)
        yield from _of_job("QOS", limits, job)
        user, account = self._tallies["user", name, job.user], self._tallies["account", name, job.account]
        yield from _jobs("QOSMaxJobsPerUserLimit", limits.max_jobs_per_user, user)
        yield from _jobs("QOSMaxJobsPerAccountLimit", limits.max_jobs_per_account, account)
        yield from _tres("QOSMax", "PerUserLimit", limits.max_tres_per_user, user, job)
        yield from _tres("QOSMax", "PerAccountLimit", limits.max_tres_per_account, account, job)
        for each, least in limits.min_tres_per_job.items():
            if job.tres.get(each, 0.0) < least:
                yield f"QOSMin{_named(each)}"

    def _by_association(self, job: Counted) -> Iterator[str]:
        over, path = job.qos.limits, list(self._accounts.path(job.association))
        for each in path:
            own = each.limits
            tres = {name: most for name, most in own.grp_tres.items() if name not in over.grp_tres}
            jobs = own.grp_jobs if over.grp_jobs is None else None
            yield from _group("AssocGrp", jobs, tres, self._tallies[_key(each)], job)
        yield from _of_job("Assoc", _inherited([each.limits for each in path], over), job)
        if path and over.max_jobs_per_user is None:
            most = next((each.limits.max_jobs for each in path if each.limits.max_jobs is not None), None)
            yield from _jobs("AssocMaxJobsLimit", most, self._tallies[_key(path[0])])


def _key(association: Association) -> tuple[str, ...]:
    return "association", association.account, association.user or "", association.partition or ""


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
