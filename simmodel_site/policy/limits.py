"""The limits of associations and QOS: which jobs are skipped until others have ended.

Source: the resource limits of Slurm 22.05, by their documentation: ``resource_limits``, sacctmgr(1).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from simmodel_site.policy.accounts import Limits
from simmodel_site.policy.fair_share import decay_of
from simmodel_site.policy.settings import SlurmConf, weights_of
from simmodel_site.policy.wishes import MIB, NOTHING, Wishes, wishes_of

if TYPE_CHECKING:
    from simmodel.extending import Request
    from simmodel.work import LiveJob
    from simmodel_site.policy.accounts import Accounts, Association, Qos
    from simmodel_site.policy.settings import SlurmPartition

__all__ = ["Counted", "Quotas", "billed", "tres_of"]


def tres_of(request: Request, wishes: Wishes = NOTHING) -> dict[str, float]:
    """Return the resources that a job asks for, by Slurm's names: memory in MB.

    >>> from simmodel.resources.pools.allocation import Request
    >>> tres_of(Request(8, nodes=2, cores_per_node=4, memory_per_node=2**30))
    {'cpu': 8.0, 'node': 2.0, 'mem': 2048.0, 'gres/gpu': 0.0}
    >>> tres_of(Request(8), Wishes.of("--nodes=2 --gpus=3 --mem-per-cpu=100"))
    {'cpu': 8.0, 'node': 2.0, 'mem': 800.0, 'gres/gpu': 3.0}
    """
    nodes = float(request.nodes or (wishes.nodes or (1, 1))[0])
    per_task = wishes.gpus_per_task * request.processors // wishes.cores_per_task
    gpus = float(wishes.gpus or per_task or max(request.gpus_per_node, wishes.gpus_per_node) * nodes)
    memory = max(request.memory_per_node, wishes.memory_per_node) * nodes
    memory = memory or (wishes.memory_per_cpu or 0.0) * request.processors + (wishes.memory_per_gpu or 0.0) * gpus
    found = {"cpu": float(request.processors), "node": nodes, "mem": memory / MIB, "gres/gpu": gpus}
    return found | {f"license/{name}": amount for name, amount in request.consumables.items()}


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
        name, tres = partition.qos, tres_of(request, wishes_of(job))
        return cls(
            number=number,
            user=str(job.user),
            account=account,
            association=of,
            qos=accounts.qos_of(job.id, of, wishes_of(job).qos),
            tres={**tres, "billing": billed(tres, partition.billing)},
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


class _Spent:
    """The resources and the seconds that jobs have used, each times seconds."""

    __slots__ = ("decays", "tres", "wall")

    def __init__(self, decays: bool = True) -> None:
        self.decays = decays
        self.wall = 0.0
        self.tres: defaultdict[str, float] = defaultdict(float)

    def add(self, tres: Mapping[str, float], seconds: float) -> None:
        self.wall += seconds
        for name, amount in tres.items():
            self.tres[name] += amount * seconds

    def decay(self, by: float) -> None:
        if self.decays:
            self.wall *= by
            for name in self.tres:
                self.tres[name] *= by


class Quotas:
    """The limits of associations and QOS, and what running and waiting jobs count against them.

    A limit of a QOS replaces that of the same name of associations, and one of the QOS of a partition that of a job's
    QOS, unless this has the flag ``OverPartQOS``. Limits of groups hold for an association with all
    those below it, and are checked on the whole way up; others are those of the association, or else of the next one
    above it that has them.

    With priority/multifactor, minutes are counted once a ``PriorityCalcPeriod`` and at the end of each job: what
    running jobs may still use goes down, and what is used goes up and decays, but not that of a QOS with ``NoDecay``.

    Parameters
    ----------
    accounts
        the associations and QOS
    settings
        of slurm.conf: whether and when minutes are counted, how they decay, and whether limits are safe
    first
        the instant of a calculation (s)

    >>> from simmodel_site.policy.accounts import Accounts, Limits, Qos
    >>> short = Qos(name="short", limits=Limits(max_jobs_per_user=1))
    >>> quotas = Quotas(Accounts(qos=[short]))
    >>> first, second = (Counted(i, "ada", "", None, short, {"cpu": 4.0}, 60.0) for i in (1, 2))
    >>> quotas.started(first)
    >>> quotas.reason(second)
    'QOSMaxJobsPerUserLimit'
    >>> quotas.ended(1, 60.0); quotas.reason(second) is None
    True
    """

    def __init__(self, accounts: Accounts, settings: SlurmConf | None = None, first: float = 0.0) -> None:
        self.accounts = accounts
        self._settings = SlurmConf() if settings is None else settings
        self._first = first
        self._decay = decay_of(self._settings.decay_half_life)
        limits = [*(each.limits for each in accounts.associations), *(each.limits for each in accounts.qos)]
        self._spends = any(each.grp_wall is not None or each.grp_tres_mins for each in limits)
        self._moves = self._spends or any(each.grp_tres_run_mins for each in limits)
        self._spent: dict[tuple[str, ...], _Spent] = {}
        self._tallies: defaultdict[tuple[str, ...], _Tally] = defaultdict(_Tally)
        self._running: dict[int, Counted] = {}
        self._there: dict[int, Counted] = {}  # jobs that wait or run
        self._submitted: Counter[tuple[str, ...]] = Counter()
        self._moved = False  # whether a calculation may have changed which jobs may start
        self._counted = -inf  # the last calculation (s), until which running jobs have used up their minutes

    def started(self, job: Counted) -> None:
        """Count a job that runs from now on, once."""
        self._drop(job.number)
        self._running[job.number] = job
        for key in self._keys(job):
            self._tallies[key].add(job.tres, 1)

    def ended(self, number: int, at: float) -> None:
        """Count a job no longer that has ended at an instant (s), but for what it has used; ignore an unknown one."""
        self.pass_to(at)
        job = self._drop(number)
        if job is not None:
            self._spend(job, at)

    def _drop(self, number: int) -> Counted | None:
        job = self._running.pop(number, None)
        if job is not None:
            for key in self._keys(job):
                self._tallies[key].add(job.tres, -1)
        return job

    # ------------------------------------------------------------------ minutes

    def notes(self) -> Iterator[str]:
        if self._spends:
            yield "leaves out what was used before, of GrpTRESMins and GrpWall"

    @property
    def next_calculation(self) -> float:
        """The next instant at which what running jobs have used may reach a limit (s)."""
        if not self._stops or not self._running:
            return inf
        return self._first if self._counted == -inf else self._counted + self._settings.calc_period

    @property
    def _stops(self) -> bool:
        """Whether running jobs are stopped once what is used reaches a limit."""
        return self._spends and self._settings.multifactor and not self._settings.safe_limits

    def moved_by(self, now: float) -> bool:
        """Whether a limit may have another reason by the calculations until now (s), since this was last asked."""
        self.pass_to(now)
        moved, self._moved = self._moved, False
        return moved

    def pass_to(self, now: float) -> None:
        """Count minutes at all calculations until now (s)."""
        first, period = self._first, self._settings.calc_period
        if not self._settings.multifactor or now < first:
            return
        last = first + (now - first) // period * period
        if last <= self._counted:
            return
        at = self._counted
        if at == -inf:  # a twin's time is that since 1970
            begin = min([job.started for job in self._running.values()], default=last)
            at = max(first + ((begin - first) // period - 1) * period, first - period)
        while self._spends and at < last:
            before, at = at, at + period if self._running else last
            for each in self._spent.values():
                each.decay(self._decay ** (int(at) - int(before)))
            for job in self._running.values():
                self._spend(job, at)
            self._counted = at
        self._counted = last
        self._moved = self._moves

    def _spend(self, job: Counted, until: float) -> None:
        """Add what a job has used since the last calculation until an instant (s)."""
        if not self._spends or not self._settings.multifactor:
            return
        seconds = int(until) - int(max(job.started, self._counted))
        if seconds <= 0:
            return
        lasting = {qos.name for qos in job.qualities if "NoDecay" in qos.flags}
        for key in self._keys(job):
            spent = self._spent.get(key)
            if spent is None:
                spent = self._spent[key] = _Spent(not (key[0] == "qos" and key[1] in lasting))
            left = self._decay**seconds if spent.decays else 1.0
            spent.add(job.tres, seconds * left * job.qos.usage_factor)

    def exhausted(self) -> Iterator[tuple[int, str]]:
        """Yield the numbers of the running jobs that are stopped as their minutes are used up, and why."""
        for number, job in self._running.items() if self._stops else ():
            reason = next(self._used_up(job), None)
            if reason is not None:
                yield number, reason

    def state(self) -> dict[str, Any]:
        """Return the values that :meth:`restore` takes."""
        if not self._spends or self._counted == -inf:
            return {}
        spent = [[list(key), each.decays, each.wall, dict(each.tres)] for key, each in self._spent.items()]
        return {"minutes": {"counted": self._counted, "spent": spent}}

    def restore(self, values: Mapping[str, Any]) -> None:
        """Restore the values of :meth:`state`; running jobs are noted anew."""
        minutes = values.get("minutes")
        if minutes is None:
            return
        self._counted = float(minutes["counted"])
        for key, decays, wall, tres in minutes["spent"]:
            spent = self._spent[tuple(key)] = _Spent(decays)
            spent.wall = float(wall)
            spent.tres.update(tres)

    # ------------------------------------------------------------------ submissions

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
            over = _left(limits, over, joined=True)
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
            over = _left(limits, over, joined=True)
        yield from self._by_association(job, over)

    def _by_qos(self, name: str, limits: Limits, job: Counted) -> Iterator[str]:
        alone = self._tallies["qos", name]
        yield from _jobs("QOSGrpJobsLimit", limits.grp_jobs, alone)
        yield from self._past("QOSGrp", limits, ("qos", name), job)
        yield from _tres("QOSGrp", "Limit", limits.grp_tres, alone, job)
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
            tally = self._tallies[key]
            yield from _jobs("AssocGrpJobsLimit", own.grp_jobs, tally)
            if each.account != "root":
                yield from self._past("AssocGrp", own, key, job)
            yield from _tres("AssocGrp", "Limit", own.grp_tres, tally, job)
            yield from self._minutes("AssocGrp", own.grp_tres_run_mins, key, job)
        yield from _of_job("Assoc", _inherited([each.limits for each in path], over), job)
        if path and over.max_jobs_per_user is None:
            most = next((each.limits.max_jobs for each in path if each.limits.max_jobs is not None), None)
            yield from _jobs("AssocMaxJobsLimit", most, self._tallies[_key(path[0])])

    def _used_up(self, job: Counted) -> Iterator[str]:
        """Yield the limits of what is used that a running job has reached."""
        over = Limits()
        for qos in job.qualities:
            limits = _left(qos.limits, over)
            yield from self._past("QOSGrp", limits, ("qos", qos.name), None)
            over = _left(limits, over, joined=True)
        for each in self.accounts.path(job.association):
            if each.account != "root":
                yield from self._past("AssocGrp", _left(each.limits, over), _key(each), None)

    def _past(self, word: str, limits: Limits, key: tuple[str, ...], job: Counted | None) -> Iterator[str]:
        """Yield the limits of what is used; with a job and safe limits, also of what it and running jobs may use."""
        if limits.grp_wall is None and not limits.grp_tres_mins:
            return
        spent = self._spent.get(key) or _Spent()
        asks = job if job is not None and self._settings.safe_limits else None
        if (most := limits.grp_wall) is not None:
            more = 0.0 if asks is None else asks.seconds
            if spent.wall // 60 >= most // 60 or spent.wall // 60 * 60 + more > most:
                yield f"{word}WallLimit"
        for name, most in limits.grp_tres_mins.items():
            used, reason = spent.tres[name] // 60, f"{word}{_minutes_of(name)}"
            if used >= most:
                yield reason
            elif asks is not None:
                asked = asks.tres.get(name, 0.0) * asks.seconds // 60
                if asked and used + asked + self._running_seconds(name, key) // 60 > most:
                    yield reason

    def _minutes(self, word: str, most: Mapping[str, float], key: tuple[str, ...], job: Counted) -> Iterator[str]:
        """Yield the limits of resources times the minutes that running jobs may still use, with those of a job."""
        for name, limit in most.items():
            asked = job.tres.get(name, 0.0) * job.seconds
            if asked and asked + self._running_seconds(name, key) > limit * 60:
                yield f"{word}{_minutes_of(name, 'Run')}"

    def _running_seconds(self, name: str, key: tuple[str, ...]) -> float:
        """Return a resource times the seconds that running jobs may still use."""
        found = 0.0
        for job in [each for each in self._running.values() if key in self._keys(each)]:
            left = max(job.seconds - max(self._counted - job.started, 0.0), 0.0)
            found += job.tres.get(name, 0.0) * left * job.qos.usage_factor
        return found


def _key(association: Association) -> tuple[str, ...]:
    return "association", association.account, association.user or "", association.partition or ""


def _left(limits: Limits, over: Limits, *, joined: bool = False) -> Limits:
    """Return what limits of a higher precedence leave of others; ``joined``: together with them."""
    if over == _NONE:
        return limits
    found: dict[str, Any] = {}
    for field in attrs.fields(Limits):
        mine, other = getattr(limits, field.name), getattr(over, field.name)
        if isinstance(mine, dict):
            left = {name: most for name, most in mine.items() if name not in other}
            found[field.name] = {**left, **other} if joined else left
        else:
            found[field.name] = mine if other is None else other if joined else None
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
        (limits.max_tres_mins_per_job, job.seconds / 60, "MinutesPerJob"),
    ):
        for name, most in limit.items():
            if job.tres.get(name, 0.0) * share > most:
                last = "Limit" if end == "MinutesPerJob" and name == "cpu" else ""
                yield f"{word}Max{_named(name)}{end}{last}"


def _named(resource: str) -> str:
    kind = resource.partition("/")[0]
    return {"cpu": "Cpu", "mem": "Memory", "node": "Node", "gres": "GRES", "license": "License"}.get(kind, kind.title())


def _minutes_of(resource: str, word: str = "") -> str:
    """Return how Slurm names a limit of minutes of a resource.

    >>> _minutes_of("cpu"), _minutes_of("gres/gpu", "Run")
    ('CPUMinutesLimit', 'GRESRunMinutes')
    """
    return f"CPU{word}MinutesLimit" if resource == "cpu" else f"{_named(resource)}{word}Minutes"
