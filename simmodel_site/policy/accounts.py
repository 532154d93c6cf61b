"""The accounts, users and QOS of slurmdbd: shares, limits and who may preempt whom.

Source: sacctmgr(1) of Slurm 22.05; the names of limits are those of sacctmgr in lower case, with underscores.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import attrs

from simmodel import InputError
from simmodel.extending import Fields, shown, unknown

__all__ = ["Accounts", "Association", "Limits", "Qos"]


def _tres() -> Any:
    return attrs.field(factory=dict, converter=dict)


def _names(value: Iterable[str]) -> tuple[str, ...]:
    return tuple(value)


def _associations(value: Iterable[Association]) -> tuple[Association, ...]:
    return tuple(value)


def _qualities(value: Iterable[Qos]) -> tuple[Qos, ...]:
    return tuple(value)


@attrs.frozen(kw_only=True, repr=False)
class Limits(Fields):
    """The limits of an association or of a QOS; ``None``, or a resource that is not named: no limit.

    Resources are named as Slurm does: ``cpu``, ``node``, ``mem`` (MB), ``billing``, ``gres/gpu``, ``license/NAME``.

    Parameters
    ----------
    grp_tres, grp_jobs, grp_submit_jobs
        of all jobs of a QOS, or of an association with those below it: resources of running jobs, running jobs, and
        jobs that wait or run
    grp_tres_mins, grp_tres_run_mins, grp_wall
        of all those jobs: resources times minutes used, resources times minutes that running jobs may still use, and
        seconds used
    max_tres_per_job, max_tres_per_node, min_tres_per_job, max_tres_mins_per_job, max_wall
        of each job; ``max_wall`` in seconds
    max_jobs, max_submit_jobs
        of each association, without those below it: running jobs, and jobs that wait or run
    max_tres_per_user, max_jobs_per_user, max_submit_jobs_per_user
        of each user of a QOS
    max_tres_per_account, max_jobs_per_account, max_submit_jobs_per_account
        of each account of a QOS

    >>> Limits(grp_tres={"cpu": 64}, max_jobs_per_user=4)
    Limits(grp_tres={'cpu': 64}, max_jobs_per_user=4)
    """

    grp_tres: Mapping[str, float] = _tres()
    grp_tres_mins: Mapping[str, float] = _tres()
    grp_tres_run_mins: Mapping[str, float] = _tres()
    max_tres_per_job: Mapping[str, float] = _tres()
    max_tres_per_node: Mapping[str, float] = _tres()
    max_tres_per_user: Mapping[str, float] = _tres()
    max_tres_per_account: Mapping[str, float] = _tres()
    max_tres_mins_per_job: Mapping[str, float] = _tres()
    min_tres_per_job: Mapping[str, float] = _tres()
    grp_jobs: int | None = None
    grp_submit_jobs: int | None = None
    grp_wall: float | None = None
    max_jobs: int | None = None
    max_submit_jobs: int | None = None
    max_jobs_per_user: int | None = None
    max_submit_jobs_per_user: int | None = None
    max_jobs_per_account: int | None = None
    max_submit_jobs_per_account: int | None = None
    max_wall: float | None = None


@attrs.frozen(kw_only=True, repr=False)
class Association(Fields):
    """An account, or a user of an account.

    Parameters
    ----------
    account, user, partition
        its account; its user, or ``None``: the account itself; the partition for which it holds, or ``None``: all
    parent
        the account above that of an account; the account ``root`` is above all
    shares
        ``Fairshare``; ``None``: those of the parent (``Fairshare=parent``)
    priority
        for ``PriorityWeightAssoc``
    default
        whether it is the user's default account
    qos, default_qos
        the QOS that its jobs may name, and that of those that name none; default: those of the parent
    limits
        its limits
    usage
        ``RawUsage`` at the instant 0: billed resources times seconds, decayed

    >>> Association(account="physics", user="ada", shares=3).user
    'ada'
    """

    account: str
    user: str | None = None
    partition: str | None = None
    parent: str = "root"
    shares: int | None = 1
    priority: int = 0
    default: bool = False
    qos: tuple[str, ...] = attrs.field(default=(), converter=_names)
    default_qos: str | None = None
    limits: Limits = attrs.field(factory=Limits)
    usage: float = 0.0


@attrs.frozen(kw_only=True, repr=False)
class Qos(Fields):
    """A quality of service.

    Parameters
    ----------
    name
        its name, which jobs give
    priority
        for ``PriorityWeightQOS``
    preempts, preempt_mode
        the QOS whose jobs its jobs may preempt; what happens to its own jobs when they are preempted: ``requeue``,
        ``cancel`` or ``suspend``; ``None``: the ``PreemptMode`` of the cluster
    exempt_time, grace_time
        seconds from a start before which its jobs are not preempted (``None``: ``PreemptExemptTime`` of the cluster),
        and seconds between a preemption and the end
    usage_factor
        by which the usage of its jobs is multiplied
    flags
        its flags, such as ``OverPartQOS`` and ``NoReserve``
    limits
        its limits

    >>> Qos(name="urgent", priority=100, preempts=["normal"]).preempts
    ('normal',)
    """

    name: str
    priority: int = 0
    preempts: tuple[str, ...] = attrs.field(default=(), converter=_names)
    preempt_mode: str | None = None
    exempt_time: float | None = None
    grace_time: float = 0.0
    usage_factor: float = 1.0
    flags: tuple[str, ...] = attrs.field(default=(), converter=_names)
    limits: Limits = attrs.field(factory=Limits)


@attrs.frozen(kw_only=True, repr=False)
class Accounts(Fields):
    """The accounts, users and QOS of a cluster, as ``sacctmgr dump`` has them, and the QOS of jobs.

    A job's user is its ``user``; its account is its ``group``, or else the default account of the user; its QOS is
    that of ``asked``, or else the default one of its association.

    Parameters
    ----------
    associations
        the accounts and their users; the account ``root`` may be left out
    qos
        the QOS; ``normal``, without limits, may be left out
    asked
        the QOS that jobs name, by the ids of jobs

    Raises
    ------
    InputError
        an association or a QOS is given twice, an account above is unknown, or a QOS is unknown

    >>> accounts = Accounts(
    ...     associations=[
    ...         Association(account="physics", shares=2),
    ...         Association(account="physics", user="ada"),
    ...     ],
    ...     qos=[Qos(name="urgent", priority=100, preempts=["normal"])],
    ...     asked={7: "urgent"},
    ... )
    >>> accounts.qos_of(7, accounts.association("ada")).name, accounts.qos_of(8, None).name
    ('urgent', 'normal')
    """

    associations: tuple[Association, ...] = attrs.field(default=(), converter=_associations)
    qos: tuple[Qos, ...] = attrs.field(default=(), converter=_qualities)
    asked: Mapping[int | str, str] = attrs.field(factory=dict)
    _keyed: dict[tuple[str, str | None, str | None], Association] = attrs.field(init=False, repr=False, eq=False)
    _default: dict[str, Association] = attrs.field(init=False, repr=False, eq=False)
    _qos: dict[str, Qos] = attrs.field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        keyed: dict[tuple[str, str | None, str | None], Association] = {}
        for each in self.associations:
            key = (each.account, each.user, each.partition)
            if key in keyed:
                raise InputError(f"association {shown(_named(each))} is given twice", place="associations")
            keyed[key] = each
        default: dict[str, Association] = {}
        for each in self.associations:
            if each.user is not None and (each.user not in default or each.default):
                default[each.user] = each
        qos = {each.name: each for each in self.qos}
        if len(qos) < len(self.qos):
            raise InputError("a QOS is given twice", place="qos")
        qos.setdefault("normal", Qos(name="normal"))
        for name, value in (("_keyed", keyed), ("_default", default), ("_qos", qos)):
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        accounts = {each.account for each in self.associations if each.user is None} | {"root"}
        for each in self.associations:
            place = _named(each)
            above = each.parent if each.user is None else each.account
            if each.account != "root":
                _known("account", above, accounts, place)
            for name in (*each.qos, *([] if each.default_qos is None else [each.default_qos])):
                _known("QOS", name, self._qos, place)
            if len(list(islice(self.path(each), len(accounts) + 2))) > len(accounts) + 1:
                raise InputError("its account is above itself", place=place)
        for quality in self.qos:
            for name in quality.preempts:
                _known("QOS", name, self._qos, f"qos {quality.name}")
        for name in dict.fromkeys(self.asked.values()):
            _known("QOS", name, self._qos, "asked")

    def association(
        self, user: int | str | None, account: int | str | None = None, partition: str | None = None
    ) -> Association | None:
        """Return the association of a user's jobs, in an account and a partition; ``None``: there is none."""
        if user is None:
            return None
        if account is None:
            found = self._default.get(str(user))
            if found is None:
                return None
            account = found.account
        own = self._keyed.get((str(account), str(user), partition))
        return own or self._keyed.get((str(account), str(user), None))

    def above(self, association: Association) -> Association | None:
        """Return the association above another one; ``None``: it is the root, or the root is not given."""
        if association.user is not None:
            return self._keyed.get((association.account, None, None))
        return None if association.account == "root" else self._keyed.get((association.parent, None, None))

    def path(self, association: Association | None) -> Iterator[Association]:
        while association is not None:
            yield association
            association = self.above(association)

    def priority_of(self, association: Association | None) -> float:
        """Return the priority of an association, or else of the one above it, as a part of the largest."""
        largest = max([each.priority for each in self.associations], default=0)
        return next((each.priority for each in self.path(association) if each.priority), 0) / max(largest, 1)

    def rank_of(self, qos: Qos) -> float:
        """Return the priority of a QOS, as a part of the largest."""
        return qos.priority / max(1, *(each.priority for each in self._qos.values()))

    def qos_of(self, job: int | str | None, association: Association | None, named: str = "") -> Qos:
        """Return the QOS of a job by its id and its association; ``named``: the one that its options name.

        Raises
        ------
        InputError
            that QOS is unknown
        """
        name = named or (None if job is None else self.asked.get(job))
        if named:
            _known("QOS", named, self._qos, f"job {job}")
        if name is None:
            name = next((each.default_qos for each in self.path(association) if each.default_qos), "normal")
        return self._qos[name]


def _known(kind: str, name: str, known: Collection[str], place: str) -> None:
    """Raise an error if a name is not known."""
    if name not in known:
        raise InputError(unknown(kind, name, sorted(known)).message, place=place)


def _named(association: Association) -> str:
    parts = [association.account, association.user, association.partition]
    return "/".join(part for part in parts if part is not None)
