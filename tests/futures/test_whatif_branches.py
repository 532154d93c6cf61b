"""Branches of what-ifs: sequences of policies and manual actions."""

import pytest

from simmodel import Branch, Cluster, Environment, Job, what_if
from simmodel.futures.outcomes import CancelJob, Starting, StartJob, SubmitJob
from simmodel.platform import ClusterSpec, PartitionSpec
from tests.helpers.small_snapshots import QUEUE, drawn, small, starts, week


def nothing(view: object) -> None:
    """Start nothing, ever."""


def test_another_policy_takes_over_at_its_instant() -> None:
    snapshot = small((4, 100), (4, 300), (4, 50), (4, 10), (4, 5))
    fork = Branch("fcfs").fork(200, ["sjf", "ljf"])
    found = what_if(snapshot, {"fcfs": "fcfs", **fork})
    assert starts(found["fcfs"]) == {2: 100.0, 3: 400.0, 4: 450.0, 5: 460.0}
    assert starts(found["fcfs, sjf from 200 s"]) == {2: 100.0, 5: 400.0, 4: 405.0, 3: 415.0}
    assert starts(found["fcfs, ljf from 200 s"]) == {2: 100.0, 3: 400.0, 4: 450.0, 5: 460.0}
    three = Branch("fcfs", then=[(420.0, "fcfs"), (200.0, "sjf")])
    assert starts(what_if(snapshot, [three])[str(three)]) == {2: 100.0, 5: 400.0, 4: 405.0, 3: 415.0}


def test_a_switch_brings_a_decision_at_once() -> None:
    found = what_if(small(*QUEUE), {"late": Branch("fcfs").switch(30, "easy")})
    assert starts(found["late"]) == {3: 30.0, 2: 100.0, 4: 150.0}


@pytest.mark.parametrize("first", ["fcfs", "easy", "sjf+easy", "wfp+easy", "conservative"])
def test_switching_to_the_same_policy_changes_nothing(first: str) -> None:
    found = what_if(week(), {"one": first, "two": Branch(first).switch(350_000, first).switch(400_000, first)})
    assert starts(found["one"]) == starts(found["two"])


def test_jobs_start_by_hand() -> None:
    found = what_if(
        small(*QUEUE),
        {
            "now": Branch("fcfs").start(4),
            "later": Branch("fcfs", actions=[StartJob(3, "batch", at=40.0)]),
            "both": Branch("fcfs").start(4).switch(150, "sjf"),
            "too large": Branch("fcfs").start(2),
            "runs": Branch("fcfs").start(1),
            "nowhere": Branch("fcfs").start(3, "moon"),
        },
    )
    assert starts(found["now"]) == {4: 1.0, 2: 201.0, 3: 251.0}
    assert found["now"].now == (Starting(4, "batch", 1.0),)
    assert starts(found["later"]) == {3: 40.0, 2: 100.0, 4: 150.0}
    assert starts(found["both"]) == {4: 1.0, 3: 150.0, 2: 201.0}
    too_large = "job 2 cannot be started on batch at 1 s: 4 processors requested, 1 of 4 are free"
    assert found["too large"].reason == too_large
    assert found["runs"].reason == "job 1 cannot be started at 1 s: it is running"
    assert found["nowhere"].reason == "unknown place 'moon'; known places: batch"


def test_jobs_are_withdrawn_and_submitted() -> None:
    more = Job(id="more", processors=4, run=10)
    found = what_if(
        small(*QUEUE),
        {
            "without 2": Branch("fcfs").cancel(2),
            "stopped": Branch("fcfs", actions=[CancelJob(1, at=10.0)]),
            "one more": Branch("fcfs", actions=[SubmitJob(more)]),
            "later": Branch("easy").submit(more, at=120.0),
            "unknown": Branch("fcfs").cancel(99),
        },
    )
    assert starts(found["without 2"]) == {3: 1.0, 4: 21.0}
    assert found["without 2"].samples[0].jobs["job"].tolist() == [3, 4]
    assert starts(found["stopped"]) == {2: 10.0, 3: 60.0, 4: 60.0}
    assert starts(found["one more"]) == {2: 100.0, 3: 150.0, 4: 150.0, "more": 350.0}
    assert starts(found["later"])["more"] == 350.0
    assert found["unknown"].reason == "job 99 cannot be found at 1 s: not submitted, or ended"


def test_submissions_of_a_branch_come_beside_the_arrivals() -> None:
    branch = Branch("fcfs").submit(Job(id="more", processors=1, run=10), at=5.0)
    found = what_if(small((1, 10)), {"more": branch}, arrivals=drawn)["more"]
    assert len(found.starts) == 11
    assert starts(found)["more"] == 5.0


def test_a_job_goes_over_to_another_partition() -> None:
    env = Environment()
    parts = [PartitionSpec(name=name, processors=4) for name in ("left", "right")]
    cluster = Cluster(env, ClusterSpec(partitions=parts), "fcfs")
    for processors in (4, 2, 2):
        cluster.submit(Job(processors=processors, run=100, partition="left"))
    cluster.submit(Job(processors=3, run=10, partition="right"))
    env.run(until=1)
    found = what_if(cluster.snapshot(), {"as it is": None, "moved": Branch().start(2, "right", at=20)})
    assert found["as it is"].starts[0] == Starting(2, "left", 100.0)
    assert found["moved"].starts == (Starting(2, "right", 20.0), Starting(3, "left", 100.0))


def test_branches_say_what_they_are() -> None:
    branch = Branch("easy").start(3, "gpu", at=7).cancel("x").submit(Job(run=1, processors=5)).switch(60, nothing)
    assert str(branch) == "easy, nothing from 60 s, start job 3 on gpu at 7 s, cancel job x, submit 5 processors"
    assert branch == Branch("easy", [(60, nothing)], branch.actions)
    assert str(Branch()) == "as it is"
