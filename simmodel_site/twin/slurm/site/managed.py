"""What administrators do, of slurmctld.log: when nodes are away, and when jobs are held and released.

Source: slurmctld 22.05 at its usual level of messages, by its behaviour. ``sacct`` tells the last release of a job
alone, ``sacctmgr show event`` a drain from when the last job of the node has ended.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, tzinfo
from math import inf
from typing import NamedTuple

__all__ = ["Managed", "is_log", "read_log"]

_LINE = re.compile(
    r"^\[(\d{4}-\d\d-\d\dT[\d:.]+)\] (?:sched: )?(?:update_node: node (\S+) state set to ([A-Z]+)"
    r"|(?:_(hold|release)_job_rec: )(?:release )?hold on JobId=([\w+]+))",
    re.MULTILINE,
)
_AWAY = ("DRAIN", "DOWN", "FAIL")


class Managed(NamedTuple):
    """From when until when (s since 1970) nodes were away, and jobs were held, by name; unknown: -inf or inf."""

    away: Mapping[str, list[tuple[float, float]]]
    held: Mapping[str, list[tuple[float, float]]]

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
    Managed(away={'n2': [(60.5, 120.0)]}, held={'7': [(-inf, 150.0)]})
    """
    found = Managed({}, {})
    for stamp, node, state, hold, job in _LINE.findall(text):
        at = datetime.fromisoformat(stamp).replace(tzinfo=local).timestamp()
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
