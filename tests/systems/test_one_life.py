"""All systems that run jobs share their life: a log by one door, submission, cancellation, rejection."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from simmodel import Broker, Cluster, Environment, Grid, Job, Workload
from simmodel.platform import GridSpec, SiteSpec
from simmodel.resources import CountPool
from simmodel.systems import JobSystem, System
from simmodel.systems.arrivals import Door, JobLife

STEPS = ("replay", "come", "cancel_at", "forget_cancellation", "cancellations")


class Slots(JobSystem):
    kind = "slots"


def systems(env: Environment) -> list[System]:
    return [
        Cluster(env, 4, name="cluster"),
        Slots(env, SimpleNamespace(name="slots"), places=[CountPool(env, "slots", 4)]),
        Broker(env, [Cluster(env, 4, name="a"), Cluster(env, 2, name="b")], "round-robin"),
        Grid(env, GridSpec(sites=[SiteSpec(name="site", cores=4)])),
    ]


def test_the_shared_steps_are_those_of_one_class() -> None:
    for kind in (Cluster, JobSystem, Broker):
        assert [step for step in STEPS if getattr(kind, step) is not getattr(JobLife, step)] == []
    for door in Door.__subclasses__():
        assert {"take", "take_chunks", "read_the_rest", "blocks"} & vars(door).keys() == set()


@pytest.mark.parametrize("which", range(4))
def test_a_log_comes_cancels_and_is_refused_alike(which: int) -> None:
    env = Environment()
    system = systems(env)[which]
    jobs = [
        Job(id=1, run=10, processors=4),
        Job(id=2, submit=2, run=9, processors=4, cancel=6),
        Job(id=3, submit=2, run=3),
        Job(id=4, submit=3, run=3, processors=9),
    ]
    prepared = system.replay(Workload.from_jobs(jobs))
    assert len(prepared.rows) == 3
    env.run()
    assert system.unfinished == 0
    result = system.result()
    states = dict(zip(result.jobs["job"].tolist(), result.jobs["status"].tolist(), strict=True))
    assert states == {1: "completed", 2: "cancelled", 3: "completed", **({4: "rejected"} if 4 in states else {})}
    assert result.report.rejected.total() == 1
