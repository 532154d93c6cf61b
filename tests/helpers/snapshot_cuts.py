"""Cut runs of clusters and continue from the snapshots."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from simmodel.environment import Environment
from simmodel.foundation.errors import Stalled
from simmodel.snapshots.cluster import ClusterSnapshot
from simmodel.systems.cluster.system import Cluster
from simmodel.work.job import Job
from simmodel.work.workload import Workload

__all__ = ["Log", "check_cut", "check_rows", "log_of", "outcome", "plain_workload"]


class Log:
    """Records all hooks, in order."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.rows: list[tuple[Any, ...]] = []

    def _add(self, what: str, *about: Any) -> None:
        self.rows.append((float(self.env.now), what, *about))

    def job_submitted(self, job: Any) -> None:
        self._add("submitted", job.id, job.place.name)

    def job_eligible(self, job: Any) -> None:
        self._add("eligible", job.id)

    def job_rejected(self, job: Any, reason: str) -> None:
        self._add("rejected", job.id, reason)

    def job_started(self, run: Any) -> None:
        self._add("started", run.job.id, run.place.name, run.grant.nodes, run.expected_end, run.place.free)

    def job_ended(self, run: Any, status: str) -> None:
        self._add(status, run.job.id, run.started, run.place.free)

    def job_suspended(self, run: Any) -> None:
        self._add("suspended", run.job.id)

    def job_resumed(self, run: Any) -> None:
        self._add("resumed", run.job.id, run.grant.nodes, run.expected_end)

    def job_cancelled(self, job: Any) -> None:
        self._add("withdrawn", job.id)

    def job_promised(self, job: Any, place: Any, at: float) -> None:
        self._add("promised", job.id, place.name, at)

    def place_changed(self, place: Any, cause: str) -> None:
        self._add("changed", place.name, cause, place.free, place.up)


def plain_workload(jobs: Sequence[Job]) -> Workload:
    """Return jobs as the columns of a log."""
    columns = {"job": "id", "submit": "submit", "run": "run", "requested": "requested", "processors": "processors"}
    values: dict[str, Any] = {name: [getattr(job, field) for job in jobs] for name, field in columns.items()}
    values["requested"] = [math.nan if value is None else value for value in values["requested"]]
    values["user"] = [job.user for job in jobs]
    return Workload(values)


def log_of(env: Any) -> Log:
    """Observe an environment with a log."""
    log = Log(env)
    env.observe(log)
    return log


def outcome(env: Any, until: float | None) -> tuple[str, ...]:
    """Run to the end; return the waiters if it stalls."""
    try:
        env.run(until)
    except Stalled as error:
        return tuple(sorted(error.waiters))
    return ()


def check_cut(
    make: Any, policy: Any, cuts: Sequence[float], *, until: float | None = None, given: bool = False
) -> list[tuple[Any, ...]]:
    """Check that a run cut at these instants continues from each snapshot exactly as without the cut.

    Parameters
    ----------
    make
        ``make(policy)`` returns a new environment and a cluster with its work
    policy
        a name, or a function that returns a policy
    cuts
        the instants of the snapshots in s, ascending
    until
        the end of all runs; default: the last event
    given
        whether the policy must be passed again, because it has no name
    """
    again = policy if given else None
    env, cluster = make(policy() if given else policy)
    log = log_of(env)
    taken: list[tuple[ClusterSnapshot, int]] = []
    for at in cuts:
        env.run(until=at)
        taken.append((cluster.snapshot(), len(log.rows)))
        assert cluster.snapshot(actual=False) == taken[-1][0].expected()
    end = outcome(env, until)
    whole = cluster.result()
    for i, (snapshot, seen) in enumerate(taken):
        text = snapshot.to_json()
        read = ClusterSnapshot.from_json(text)
        assert read == snapshot
        assert read.to_json() == text
        assert hash(read) == hash(snapshot)
        assert json.loads(text)["schema"] == 1
        later = Environment(snapshot.now, snapshot.seed)
        resumed = Cluster.from_snapshot(later, read, again() if again else None)
        check_snapshot(resumed.snapshot(), snapshot)
        more = log_of(later)
        for after, _ in taken[i + 1 :]:
            later.run(until=after.now)
            check_snapshot(resumed.snapshot(), after)
        stuck = outcome(later, until)
        assert stuck == end, (stuck, end)
        check_same(more.rows, log.rows[seen:])
        check_rows(resumed.result(), whole)
    return log.rows


def check_same(found: list[Any], expected: list[Any]) -> None:
    """Check that two lists are equal, and show the first difference."""
    for i, (one, other) in enumerate(zip(found, expected, strict=False)):
        assert one == other, (found[max(0, i - 3) : i + 3], expected[max(0, i - 3) : i + 3])
    assert found == expected


def check_snapshot(found: ClusterSnapshot, expected: ClusterSnapshot) -> None:
    """Check that two snapshots are equal, and name the first field that differs."""
    document = expected.document()
    for name, value in found.document().items():
        assert value == document.get(name), name
    assert found == expected


KEPT = ("saved_work", "lost_work", "checkpoint_time", "restart_time", "checkpoints")
"""The columns of jobs that write checkpoints."""


def check_rows(part: Any, whole: Any) -> None:
    """Check that the jobs of a continued run have the same rows as in the whole run."""
    rows = {name: row for row, name in enumerate(whole.jobs["job"].tolist())}
    chosen = [rows[name] for name in part.jobs["job"].tolist()]
    for name in ("submit", "start", "end", "processors", "status", "requested", "run", "wait", "attempts", *KEPT):
        if name in KEPT and name not in part.jobs:
            continue
        found, expected = part.jobs[name], whole.jobs[name][chosen]
        if found.dtype.kind == "f":
            np.testing.assert_array_equal(found, expected, err_msg=name)
        else:
            assert found.tolist() == expected.tolist(), name
