"""Jobs that Slurm's users put on hold and release, as a mirror under policy slurm has them: they go last."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from simmodel import simulate
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel_site.twin import Released, StateReport
from simmodel_site.twin.mirror.mirror import Mirror
from simmodel_site.twin.mirror.present_state import explain_in_mirror
from simmodel_site.twin.slurm.jobs import JobRecord, queue_of

SPEC = ClusterSpec(name="alps", partitions=[PartitionSpec(name="batch", nodes=[NodeSpec(names="n1", cores=1)])])


def pending(job: int, submit: float, reason: str = "Priority", **more: Any) -> JobRecord:
    held = reason == "JobHeldUser"
    return JobRecord(
        job=job, submit=submit, states=("PENDING",), reason=reason, held=held, limit=60.0, partition="batch", **more
    )


def told(mirror: Mirror, time: float, *records: JobRecord) -> None:
    report = StateReport(cluster="alps", time=time, jobs=queue_of(records))
    assert mirror.apply(report) or time > 0


def order(mirror: Mirror) -> list[int]:
    """Return the jobs in the order of their simulated starts."""
    table = simulate(mirror.snapshot(), policy=mirror.policy).jobs
    rows = sorted(zip(table["start"].tolist(), table["job"].tolist(), strict=True))
    return [job for _, job in rows]


@pytest.mark.parametrize("policy", ["slurm", "fcfs"])
@pytest.mark.parametrize("since", [1.0, 25.0])
def test_a_job_that_is_released_goes_behind_those_that_were_submitted_until_then(policy: str, since: float) -> None:
    """Jobs 1 to 3 come at 1, 2 and 3 s; job 1 is on hold from then, or from 25 s, until 60 s. Job 4 comes at 70 s.

    Under ``fcfs`` it is the first again.
    """
    mirror = Mirror(SPEC, "alps", policy)
    first = pending(1, 1.0)
    others = [pending(2, 2.0), pending(3, 3.0)]
    on_hold = attrs.evolve(first, reason="JobHeldUser", held=True)
    told(mirror, 20.0, on_hold if since < 20 else first, *others)
    told(mirror, 30.0, on_hold, *others)
    assert order(mirror) == [2, 3]
    told(mirror, 60.0, first, *others)
    told(mirror, 80.0, first, *others, pending(4, 70.0))
    expected = [2, 3, 1, 4] if policy == "slurm" else [1, 2, 3, 4]
    assert order(mirror) == expected
    assert order(mirror.copy()) == expected


def test_a_job_of_the_second_of_a_release_counts_as_later() -> None:
    """The report of 60.9 s tells the release of job 1; job 3 comes right after it, in the second 60."""
    mirror = Mirror(SPEC, "alps", "slurm")
    told(mirror, 20.0, pending(1, 1.0, "JobHeldUser"), pending(2, 2.0))
    told(mirror, 60.9, pending(1, 1.0), pending(2, 2.0))
    told(mirror, 62.0, pending(1, 1.0), pending(2, 2.0), pending(3, 60.0))
    assert order(mirror) == [2, 1, 3]


def test_a_job_at_a_limit_keeps_its_place() -> None:
    """It is held in the mirror, which does not know when the limit is over, but nobody releases it."""
    mirror = Mirror(SPEC, "alps", "slurm")
    told(mirror, 20.0, pending(1, 1.0, "QOSMaxJobsPerUserLimit"), pending(2, 2.0))
    assert order(mirror) == [2]
    told(mirror, 60.0, pending(1, 1.0), pending(2, 2.0))
    assert order(mirror) == [1, 2]


def test_several_releases_keep_their_order() -> None:
    """Jobs 1 and 2 are on hold; 2 is released at 40 s, 1 at 60 s; job 3 came at 3 s, job 4 at 50 s."""
    mirror = Mirror(SPEC, "alps", "slurm")
    one, two, three, four = (pending(i, at) for i, at in ((1, 1.0), (2, 2.0), (3, 3.0), (4, 50.0)))
    held = [attrs.evolve(each, reason="JobHeldUser", held=True) for each in (one, two)]
    told(mirror, 20.0, *held, three)
    told(mirror, 40.0, held[0], two, three)
    told(mirror, 55.0, held[0], two, three, four)
    told(mirror, 60.0, one, two, three, four)
    assert order(mirror) == [3, 2, 4, 1]


def test_the_explanation_of_a_held_job_is_that_as_if_it_were_released_now() -> None:
    mirror = Mirror(SPEC, "alps", "slurm")
    told(mirror, 20.0, pending(1, 1.0, "JobHeldUser"), pending(2, 2.0))
    assert "is held by the scheduler" in str(explain_in_mirror(mirror, 1))
    mirror.apply(Released(cluster="alps", job=1, submit=1.0, time=30.0))
    assert order(mirror) == [2, 1]
