"""What a what-if may see of a snapshot: expected ends instead of actual ones, and nothing that nobody knows yet."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING

import attrs

from simmodel.snapshots.cluster import Planned, Snapshot, Work, just_after

if TYPE_CHECKING:
    from simmodel.platform.cluster import ClusterSpec

__all__ = ["expected_end", "expected_plans", "foreseen", "seen_work"]

_WHEN = attrgetter("at", "priority")

_UNKNOWN = ("end", "arrivals", "submission", "cancel", "down", "fail")  # to a what-if, of what is planned


def expected_end(now: float, end: float) -> float:
    """Return when work is expected to end that was expected to end then (s): just after now where that is past."""
    return end if end > now else just_after(now)


def seen_work(work: Work) -> Work:
    """Return a job without what only its end will tell: it runs the time that it is planned with."""
    if work.spec is None and work.past is None:
        return work._replace(duration=None, outcome="completed")
    spec, past = work.spec, work.past
    if spec is not None:
        spec = attrs.evolve(spec, run=work.expected, body=None, cancel=None)
    if past is not None and past.whole is not None:
        past = past._replace(whole=(past.whole[0], past.whole[1], None))
    return work._replace(duration=None, outcome="completed", spec=spec, past=past)


def expected_plans(planned: Iterable[Planned], platform: ClusterSpec, now: float) -> list[Planned]:
    """Return what is known to come: windows, the return of what is away, think times, and the policy's own alarms.

    What failed by chance is expected back after the mean time to repair, and fails no more.
    """
    plans = list(planned)
    later = {each.about[0] for each in plans if each.what == "down"}  # outages that nobody knows of yet
    known = []
    for each in plans:
        if each.what in _UNKNOWN or (each.what == "up" and each.about[0] in later):
            continue
        if each.what == "repair":
            model = platform.failures[each.about[0]]
            each = each._replace(at=now + model.mean_time_to_repair, what="back")
        known.append(each)
    return sorted(known, key=_WHEN)


def foreseen(snapshot: Snapshot, actual: bool) -> Snapshot:
    """Return what a what-if may see of a snapshot."""
    planned = expected_plans(snapshot.planned, snapshot.platform, snapshot.now)
    parts = {name: getattr(snapshot, name) for name in ("running", "waiting", "held", "blocked")}
    if actual:
        ends = [each for each in snapshot.planned if each.what == "end"]
        planned = sorted([*ends, *planned], key=_WHEN)
    else:
        parts = {name: tuple(map(seen_work, works)) for name, works in parts.items() if name != "running"}
        parts["running"] = tuple(
            run._replace(work=seen_work(run.work), end=None) for run in snapshot.running if not run.released
        )
    works = [*(run.work for run in parts["running"]), *parts["waiting"], *parts["held"], *parts["blocked"]]
    return attrs.evolve(
        snapshot,
        **parts,
        arrivals=(),
        streams=(),
        seed=0,
        planned=tuple(planned),
        over=(),
        submitted=max((work.number for work in works), default=-1) + 1,
    )
