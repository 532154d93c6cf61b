"""Accounts, users, QOS and absences of nodes in the output of sacctmgr and sshare.

Source: sacctmgr(1), sshare(1) of Slurm 22.05: ``sacctmgr dump CLUSTER``, ``sacctmgr --parsable2 show qos``,
``sacctmgr --parsable2 show event`` and ``sshare --all --parsable2``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import tzinfo
from math import inf, isfinite
from typing import Any

import attrs

from simmodel import InputError
from simmodel.extending import csv_rows, shown
from simmodel_site.policy.accounts import Accounts, Association, Limits, Qos
from simmodel_site.policy.keys import DUMP, QOS, Keys
from simmodel_site.twin.described import Notes
from simmodel_site.twin.slurm.values import amounts, instant, is_none, nodes_of, seconds, split_list, whole

__all__ = [
    "is_dump",
    "is_events",
    "is_qos",
    "is_shares",
    "read_accounts",
    "read_dump",
    "read_events",
    "read_qos",
    "read_shares",
]

_LINE = re.compile(r"(Cluster|Parent|Account|User) - '?([^':]*)'?((?::.*)?)")
_PART = re.compile(r":(\w+)=('[^']*'|[^:]*)")
_TRES = {"1": "cpu", "2": "mem", "3": "energy", "4": "node", "5": "billing"}


def is_dump(text: str) -> bool:
    """Whether a text is the output of ``sacctmgr dump``.

    >>> is_dump("# To edit this file\\nCluster - 'alps':Fairshare=1")
    True
    """
    return re.search(r"^Cluster - ", text, re.M) is not None


def is_qos(head: str) -> bool:
    """Whether the first line of a text is that of ``sacctmgr --parsable2 show qos``."""
    return {"Name", "Priority", "Preempt"} <= set(head.split("|"))


def is_shares(head: str) -> bool:
    """Whether the first line of a text is that of ``sshare --parsable2``."""
    return {"Account", "User", "RawShares", "RawUsage"} <= set(head.split("|"))


def is_events(head: str) -> bool:
    """Whether the first line of a text is that of ``sacctmgr --parsable2 show event``."""
    return {"NodeName", "TimeStart", "TimeEnd"} <= set(head.split("|"))


# ---------------------------------------------------------------------- values


def _tres(text: str) -> Mapping[str, float]:
    """Return resources by name, memory in MB.

    >>> _tres("cpu=64,mem=2G,gres/gpu=4"), _tres("1=8")
    ({'cpu': 64.0, 'mem': 2048.0, 'gres/gpu': 4.0}, {'cpu': 8.0})
    """
    named = ",".join(
        _TRES.get(name, name) + sign + value for name, sign, value in (each.partition("=") for each in split_list(text))
    )
    return {
        name: value / 2**20 if name == "mem" else value for name, value in amounts(named).items() if isfinite(value)
    }


def _minutes(text: str) -> float | None:
    """Return a time (s): a number alone is in minutes."""
    return float(text) * 60 if text.isdecimal() else seconds(text)


_LIMITS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "grptres": ("grp_tres", _tres),
    "grptresmins": ("grp_tres_mins", _tres),
    "grptresrunmins": ("grp_tres_run_mins", _tres),
    "grpjobs": ("grp_jobs", whole),
    "grpsubmitjobs": ("grp_submit_jobs", whole),
    "grpsubmit": ("grp_submit_jobs", whole),
    "grpwall": ("grp_wall", _minutes),
    "maxtresperjob": ("max_tres_per_job", _tres),
    "maxtres": ("max_tres_per_job", _tres),
    "maxtrespernode": ("max_tres_per_node", _tres),
    "maxtresminsperjob": ("max_tres_mins_per_job", _tres),
    "maxtresmins": ("max_tres_mins_per_job", _tres),
    "mintres": ("min_tres_per_job", _tres),
    "maxjobs": ("max_jobs", whole),
    "maxsubmitjobs": ("max_submit_jobs", whole),
    "maxwalldurationperjob": ("max_wall", _minutes),
    "maxwall": ("max_wall", _minutes),
    "maxtrespu": ("max_tres_per_user", _tres),
    "maxjobspu": ("max_jobs_per_user", whole),
    "maxsubmitpu": ("max_submit_jobs_per_user", whole),
    "maxtrespa": ("max_tres_per_account", _tres),
    "maxjobspa": ("max_jobs_per_account", whole),
    "maxsubmitpa": ("max_submit_jobs_per_account", whole),
}
"""The limits by the names of sacctmgr, in lower case."""


def _limits(values: Mapping[str, str], where: str, notes: Notes, keys: Keys) -> Limits:
    """Return the limits in values by name; what is not expressed is noted."""
    found: dict[str, Any] = {}
    for what, why in keys.named(values):
        notes.add(where, what, why)
    for name, text in values.items():
        if name.lower() in _LIMITS and not is_none(text):
            field, take = _LIMITS[name.lower()]
            try:
                found[field] = take(text)
            except InputError as error:
                raise InputError(error.message, place=f"{where}, {name}") from None
    return Limits(**found)


# ---------------------------------------------------------------------- sacctmgr dump


def read_dump(text: str, source: str, notes: Notes) -> tuple[Association, ...]:
    """Return the accounts and users in the output of ``sacctmgr dump``; limits that are not expressed are noted.

    Raises
    ------
    InputError
        a line is malformed

    >>> dump = '''Cluster - 'alps':Fairshare=1:QOS='normal'
    ... Parent - 'root'
    ... Account - 'physics':Description='physics':Fairshare=10:GrpTRES=cpu=64
    ... Parent - 'physics'
    ... User - 'ada':DefaultAccount='physics':Fairshare=3:MaxJobs=2'''
    >>> for each in read_dump(dump, "dump", Notes()): print(each.account, each.user, each.parent, each.shares)
    root None root 1
    physics None root 10
    physics ada root 3
    """
    found: list[Association] = []
    parent = "root"
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise InputError(f"must be a line of sacctmgr dump, got {shown(line)}", source, f"line {number}")
        kind, name = match[1], match[2]
        if kind == "Parent":
            parent = name
            continue
        try:
            found.append(_association(kind, name, parent, match[3], notes))
        except InputError as error:
            place = f"line {number}" if error.place is None else f"line {number}, {error.place}"
            raise InputError(error.message, source, place) from None
    return tuple(found)


def _association(kind: str, name: str, parent: str, text: str, notes: Notes) -> Association:
    values = {key: value.strip("'") for key, value in _PART.findall(text)}
    told = {key.lower(): value for key, value in values.items()}
    shares = told.get("fairshare", "1")
    account = {"Cluster": "root", "Account": name, "User": parent}[kind]
    return Association(
        account=account,
        user=name if kind == "User" else None,
        partition=told.get("partition") or None,
        parent=parent if kind == "Account" else "root",
        shares=None if shares.lower() == "parent" else whole(shares),
        priority=whole(told.get("priority", "0")) or 0,
        default=kind == "User" and told.get("defaultaccount") == account,
        qos=tuple(each.lstrip("+") for each in split_list(told.get("qos", ""))),
        default_qos=told.get("defaultqos") or None,
        limits=_limits(values, f"{kind.lower()} {name}", notes, DUMP),
    )


# ---------------------------------------------------------------------- tables


def _rows(text: str, source: str) -> Iterator[tuple[int, dict[str, str]]]:
    lines = csv_rows(text.splitlines(), source, "|")
    head = next(lines)[1]
    for number, cells in lines:
        if len(cells) != len(head):
            raise InputError(f"must have {len(head)} fields, got {len(cells)}", source, f"line {number}")
        yield number, dict(zip(head, cells, strict=True))


def read_qos(text: str, source: str, notes: Notes) -> tuple[Qos, ...]:
    """Return the QOS in the output of ``sacctmgr --parsable2 show qos``; limits that are not expressed are noted.

    Raises
    ------
    InputError
        a line is malformed

    >>> text = "Name|Priority|GraceTime|Preempt|PreemptMode|MaxTRESPU\\nurgent|100|00:00:30|normal|cluster|cpu=8"
    >>> urgent = read_qos(text, "qos", Notes())[0]
    >>> urgent.preempts, urgent.grace_time, urgent.limits
    (('normal',), 30.0, Limits(max_tres_per_user={'cpu': 8.0}))
    """
    found = []
    for number, row in _rows(text, source):
        told = {key.lower(): value for key, value in row.items()}
        try:
            mode = told.get("preemptmode", "").lower()
            exempt = told.get("preemptexempttime", "")
            qos = Qos(
                name=told["name"],
                priority=whole(told.get("priority", "0")) or 0,
                preempts=tuple(split_list(told.get("preempt", ""))),
                preempt_mode=None if mode in ("", "cluster", "off") else mode,
                exempt_time=seconds(exempt) if exempt else None,
                grace_time=seconds(told.get("gracetime", "")) or 0.0,
                usage_factor=float(told.get("usagefactor") or 1.0),
                flags=tuple(split_list(told.get("flags", ""))),
                limits=_limits(row, f"QOS {told['name']}", notes, QOS),
            )
        except InputError as error:
            raise InputError(error.message, source, f"line {number}") from None
        except ValueError:
            message = f"UsageFactor: must be a number, got {shown(told['usagefactor'])}"
            raise InputError(message, source, f"line {number}") from None
        found.append(qos)
    return tuple(found)


def read_events(text: str, source: str, local: tzinfo) -> list[tuple[str, float, float]]:
    """Return when nodes were down or drained, of the output of ``sacctmgr --parsable2 show event``.

    Each has the name of a node, from when and until when (s since 1970). What ran there when a node went down ends as
    the accounting says. Nodes that came back within the second are left out.

    Parameters
    ----------
    local
        the zone of times

    Raises
    ------
    InputError
        a line is malformed

    >>> from datetime import UTC
    >>> text = "NodeName|State|TimeStart|TimeEnd\\nn2|DRAIN|1970-01-01T00:01:00|1970-01-01T00:02:00"
    >>> read_events(text, "events", UTC)
    [('n2', 60.0, 120.0)]
    """
    found: list[tuple[str, float, float]] = []
    for number, row in _rows(text, source):
        try:
            begin, end = instant(row["TimeStart"], local), instant(row["TimeEnd"], local)
        except InputError as error:
            raise InputError(error.message, source, f"line {number}") from None
        at, until = -inf if begin is None else begin, inf if end is None else end
        found += [(name, at, until) for name in nodes_of(row["NodeName"]) if at < until]
    return found


def read_shares(text: str, source: str) -> Mapping[tuple[str, str | None], float]:
    """Return the usage of accounts and users (s) in the output of ``sshare --all --parsable2``.

    >>> text = "Account|User|RawShares|NormShares|RawUsage\\nroot|||0|500\\n physics|ada|3|1|500"
    >>> read_shares(text, "sshare")["physics", "ada"]
    500.0
    """
    found: dict[tuple[str, str | None], float] = {}
    for number, row in _rows(text, source):
        try:
            found[row["Account"].strip(), row["User"].strip() or None] = float(row["RawUsage"] or 0)
        except ValueError:
            message = f"RawUsage: must be a number, got {shown(row['RawUsage'])}"
            raise InputError(message, source, f"line {number}") from None
    return found


def read_accounts(
    associations: Iterable[Association],
    qos: Iterable[Qos] | None,
    usage: Mapping[tuple[str, str | None], float],
    asked: Mapping[int | str, str],
    notes: Notes,
) -> Accounts:
    """Return the accounts of a cluster of what sacctmgr and sshare tell, and of the QOS of jobs.

    QOS of which only the name is known have no limits, which is noted.

    Raises
    ------
    InputError
        an account is unknown
    """
    known = {each.name: each for each in qos or ()}
    given = [attrs.evolve(each, usage=usage.get((each.account, each.user), 0.0)) for each in associations]
    named = [name for each in given for name in (*each.qos, each.default_qos or "")]
    missing = [name for name in dict.fromkeys([*named, *asked.values()]) if name and name not in known]
    for name in missing:
        known[name] = Qos(name=name)
        if name != "normal" or qos is not None:
            notes.add(f"QOS {name}", "not told", "without priority and limits: give 'sacctmgr --parsable2 show qos'")
    return Accounts(associations=given, qos=tuple(known.values()), asked=asked)
