"""What slurmctld.log tells: when administrators drain nodes, hold and release jobs, and how long nodes boot.

Source: slurmctld 22.05 at its usual level of messages, by its behaviour; that nodes are woken it says with
``DebugFlags=Power``. ``sacct`` tells the last release of a job alone, ``sacctmgr show event`` a drain from when the
last job of the node has ended; the start of a job that waits for a boot is set to the end of the boot.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, tzinfo
from math import inf
from typing import NamedTuple

from simmodel_site.twin.slurm.power import Boot
from simmodel_site.twin.slurm.values import nodes_of

__all__ = ["Managed", "is_log", "learnt", "read_log"]

_LINE = re.compile(
    r"^\[(\d{4}-\d\d-\d\dT[\d:.]+)\] (?:sched: )?(?:update_node: node (\S+) state set to ([A-Z]+)"
    r"|(?:_(hold|release)_job_rec: )(?:release )?hold on JobId=([\w+]+)"
    r"|(?:POWER: )?power_save: (?:pid \d+ )?(waking) nodes (\S+)"
    r"|[Nn]ode (\S+) (now responding|powered up|not resumed by ResumeTimeout\((\d+)\)))",
    re.MULTILINE,
)
_AWAY = ("DRAIN", "DOWN", "FAIL")


class Managed(NamedTuple):
    """From when until when (s since 1970) nodes were away, and jobs were held, by name; unknown: -inf or inf.

    And how long each boot took (s); one that failed, longer than it may.
    """

    away: Mapping[str, list[tuple[float, float]]]
    held: Mapping[str, list[tuple[float, float]]]
    boots: list[float]

    def tells(self, node: str, at: float, until: float) -> bool:
        """Whether the absence of a node, told in whole seconds, is one of these or a part of one."""
        return any(begin - 1 <= at and until <= end + 1 for begin, end in self.away.get(node, ()))


def is_log(text: str) -> bool:
    """Whether a text is a log of Slurm that tells what administrators did.

    >>> error = "[2026-11-28T11:53:13.027] error: Could not open node state file\\n"
    >>> is_log(error), is_log(error + "[2026-11-28T11:53:14.000] update_node: node n2 state set to DOWN")
    (False, True)
    """
    begins = re.match(r"\s*\[\d{4}-\d\d-\d\dT[\d:.]+\] ", text) is not None
    return begins and _LINE.search(text) is not None


def read_log(text: str, local: tzinfo) -> Managed:
    """Return what administrators did, of the text of slurmctld.log.

    >>> from datetime import UTC
    >>> read_log('''[1970-01-01T00:01:00.500] update_node: node n2 state set to DRAINING
    ... [1970-01-01T00:02:00.000] update_node: node n2 state set to IDLE
    ... [1970-01-01T00:02:30.000] sched: _release_job_rec: release hold on JobId=7 by uid 0
    ... ''', UTC)
    Managed(away={'n2': [(60.5, 120.0)]}, held={'7': [(-inf, 150.0)]}, boots=[])
    >>> read_log('''[1970-01-01T00:01:00.000] POWER: power_save: pid 12 waking nodes n[1-2]
    ... [1970-01-01T00:05:00.000] Node n1 now responding
    ... [1970-01-01T00:11:10.000] node n2 not resumed by ResumeTimeout(600) - marking down and power_save
    ... ''', UTC).boots
    [240.0, 601.0]
    """
    found = Managed({}, {}, [])
    woken: dict[str, float] = {}
    for stamp, node, state, hold, job, wakes, nodes, up, _, limit in _LINE.findall(text):
        at = datetime.fromisoformat(stamp).replace(tzinfo=local).timestamp()
        if wakes:
            woken |= dict.fromkeys(nodes_of(nodes), at)
        elif up in woken:
            found.boots.append(float(limit) + 1 if limit else at - woken[up])
            del woken[up]
        if wakes or up:
            continue
        spans = found.away if node else found.held
        several = spans.setdefault(node or job, [])  # type: ignore[attr-defined]
        begins = state.startswith(_AWAY) if node else hold == "hold"
        open_ = bool(several) and several[-1][1] == inf
        if begins and not open_:
            several.append((at, inf))
        elif not begins and open_:
            several[-1] = several[-1][0], at
        elif not begins and job:  # held from its submission on, or when it was requeued
            several.append((-inf, at))
    return found


def learnt(boots: list[float]) -> Boot:
    """Return the distribution of boots (s): each of those of a log is as likely; of many, 100 quantiles.

    >>> learnt([90.0, 60.0])
    {'distribution': 'choice', 'values': [60.0, 90.0]}
    """
    values = sorted(boots)
    if len(values) > _MOST:
        values = [values[int((i + 0.5) * len(values) / _MOST)] for i in range(_MOST)]
    return {"distribution": "choice", "values": values}


_MOST = 100
