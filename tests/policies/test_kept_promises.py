"""Conservative backfilling that keeps its promises: no job starts after any instant it was promised."""

import numpy as np
import pytest

from simmodel import Job, Start, simulate, start
from simmodel.platform import ClusterSpec, NodeSpec, OutageSpec, PartitionSpec


class Promises:
    """Records the promises and the start of each job."""

    def __init__(self):
        self.promised = {}
        self.started = {}

    def job_promised(self, job, _place, at):
        self.promised.setdefault(job.id, []).append(at)

    def job_started(self, run):
        self.started[run.job.id] = run.started

    def broken(self):
        """The jobs that started after a promise, with their promises and their start."""
        return [
            (job, promises, self.started[job])
            for job, promises in self.promised.items()
            if job in self.started and self.started[job] > min(promises)
        ]


def broken(spec, jobs, policy="conservative-keep"):
    watch = Promises()
    simulate(spec, jobs, policy, observers=[watch])
    return watch.broken()


def drawn_nodes(rng):
    kinds = [
        NodeSpec(
            name=f"n{i}",
            count=int(rng.integers(1, 4)),
            cores=int(rng.choice([1, 2, 4, 8])),
            gpus=int(rng.integers(0, 3)),
            memory=int(rng.choice([0, 8])),
        )
        for i in range(rng.integers(1, 4))
    ]
    placement = str(rng.choice(["first-fit", "best-fit", "packed"]))
    return ClusterSpec(partitions=[PartitionSpec(nodes=kinds, placement=placement, exclusive=bool(rng.integers(0, 2)))])


def drawn_jobs(rng):
    """Jobs that never run longer than requested, some of which no cluster can run."""
    jobs, submit = [], 0
    for number in range(int(rng.integers(5, 40))):
        submit += int(rng.choice([0, 0, 1, 2, 3, 5]))
        run = int(rng.integers(1, 20))
        requested = run if rng.random() < 0.4 else run + int(rng.integers(0, 15))
        asked = {"processors": int(rng.integers(1, 6))}
        if rng.random() < 0.6:
            asked = {
                "nodes": int(rng.integers(1, 3)),
                "cores_per_node": int(rng.integers(1, 5)),
                "gpus_per_node": int(rng.choice([0, 0, 1])),
                "memory_per_node": int(rng.choice([0, 0, 3])),
            }
        jobs.append(Job(id=number, submit=submit, run=run, requested=requested, **asked))
    return jobs


def test_work_that_is_due_starts_on_its_own_nodes_before_other_work_that_is_due_is_placed():
    kinds = [NodeSpec(name="small", cores=4), NodeSpec(name="large", cores=8)]
    cores = [(3, 19, 28, 2), (10, 19, 32, 5), (15, 11, 13, 2), (15, 11, 16, 5), (22, 1, 9, 2)]
    jobs = [
        Job(id=i, submit=submit, run=run, requested=requested, processors=processors)
        for i, (submit, run, requested, processors) in enumerate(cores)
    ]
    jobs.append(Job(id=5, submit=8, run=17, requested=17, nodes=1, cores_per_node=4))
    assert broken(ClusterSpec(partitions=[PartitionSpec(nodes=kinds)]), jobs) == []


@pytest.mark.parametrize(
    "runs",
    [
        range(90, 105),
        pytest.param(range(90, 140), marks=pytest.mark.long),
        pytest.param(range(2000), marks=pytest.mark.exhaustive),
    ],
)
def test_promises_on_identified_nodes_are_kept_if_work_ends_within_its_requested_time(runs):
    for seed in runs:
        rng = np.random.default_rng(seed)
        assert broken(drawn_nodes(rng), drawn_jobs(rng)) == [], seed


def test_a_job_that_started_elsewhere_and_comes_back_has_no_promise_left():
    """Promised 100 s in a, it is started in b from outside at 10 s, and b fails at 20 s: a has its 80 s free again."""
    spec = ClusterSpec(
        partitions=[PartitionSpec(name=name, processors=4) for name in "ab"],
        outages=[OutageSpec(at=20, partition="b", processors=4)],
    )
    jobs = [
        Job(id="first", processors=4, run=100, partition="a"),
        Job(id="short", processors=4, run=10, partition="b"),
        Job(id="either", processors=4, run=80, partitions=["a", "b"]),
        Job(id="next", processors=4, run=50, partition="a"),
    ]
    watch = Promises()
    sim = start(spec, jobs, "conservative-keep", observers=[watch])
    while (view := sim.next_decision()) is not None:
        if view.now == 10:  # the policy is not asked
            sim.decide([Start(job, view.places[1]) for job in view.waiting if job.id == "either"])
        else:
            sim.decide()
    assert watch.promised["either"] == [100.0, 10.0, 100.0]
    assert sim.result().jobs["end"].tolist() == [100.0, 10.0, 180.0, 230.0]
