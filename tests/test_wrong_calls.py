"""Typical mistakes of new users in Python: the error is one sentence with the accepted values and the value found."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import nan
from typing import Any

import numpy as np
import pytest
import simpy

import simmodel
from simmodel import (
    Cluster,
    Environment,
    InputError,
    Job,
    Machine,
    Network,
    PolicyError,
    Scenario,
    Start,
    Task,
    Workflow,
    Workload,
    compare,
    load_platform,
    load_workload,
    replicate,
    simulate,
    snapshot_of,
    start,
)
from simmodel.generators import exponential
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec, SiteSpec
from simmodel.work import Checkpoint, Elastic, scale_load
from simmodel.work.traffic import Traffic

PROBE = load_workload("probe-4")
NODE = load_platform("hetsim-slow")
FLOW = Workflow([Task(id="a", run=10)])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate(True, PROBE), "a number of processors, a name or a path, got True"),
        (lambda: simulate(12.5, PROBE), "a number of processors, a name or a path, got 12.5"),
        (
            lambda: simulate(12, 3, "fcfs"),
            "must be a workload, a data frame, jobs or a workflow, a name or a path, got 3",
        ),
        (lambda: simulate(12, PROBE, "fcfs", processors="4"), "processors: must be a whole number > 0, got '4'"),
        (lambda: simulate(12, PROBE, "fcfs", until=nan), "until: must be > 0 s, the current time, got nan"),
        (lambda: simulate(12, PROBE, "fcfs", seed=-1), "seed: must be a whole number >= 0, or None, got -1"),
        (lambda: simulate("hetsim-slow", FLOW, seed=1.5), "seed: must be a whole number >= 0, or None, got 1.5"),
        (lambda: simulate([16, "hetsim-slow"], PROBE), "places: must all run jobs or all run tasks"),
        (
            lambda: Cluster(Environment(), "theta"),
            "or a number of processors (load_platform reads names and files), got 'theta'",
        ),
        (lambda: Cluster(Environment(), NODE), "got <MachineSpec"),
        (lambda: Cluster(simpy.Environment(), 4), "env: must be a simmodel Environment, got simpy.core.Environment"),
        (lambda: Machine(simpy.Environment(), NODE), "env: must be a simmodel Environment, got simpy.core.Environment"),
        (lambda: Machine(Environment(), 4), "spec: must be a MachineSpec (load_platform reads names and files), got 4"),
        (lambda: Cluster(Environment(), 4).submit(FLOW), "work: must be a Job, got <Workflow"),
        (lambda: Machine(Environment(), NODE).submit(Job(run=1)), "must be a Workflow or a TaskSet, got Job"),
        (lambda: Machine(Environment(), NODE).submit("layered:n=4"), "a TaskSet, got 'layered:n=4'"),
        (lambda: Machine(Environment(), NODE).submit(FLOW, at=nan), "at: must be an instant >= 0 s, got nan"),
        (lambda: Job(run=1, processors=1.5), "processors: must be a whole number >= 1, got 1.5"),
        (lambda: Job(run=1, processors="4"), "processors: must be a whole number >= 1, got '4'"),
        (lambda: Job(run="-5"), "run: must be a number >= 0 or a quantity such as '2h' or '16GB', got '-5'"),
        (
            lambda: Job(run=1, memory_per_node="4h"),
            "memory_per_node: must be a number >= 0 or a quantity such as '2h' or '16GB', got '4h'",
        ),
        (lambda: Job(run=1, priority=nan), "priority: must be a number, got nan"),
        (lambda: Job(run=1, cancel=nan), "cancel: must be a number, got nan"),
        (lambda: Job(run=1, body=3), "body: must be a generator function body(env, job, grant), got 3"),
        (lambda: Job(run=1, consumables={"tape": -1}), "consumables['tape']: must be >= 0, got -1"),
        (
            lambda: Job(run=1, partition=["a", "b"]),
            "partition: must be one name (partitions=... takes several), got ['a', 'b']",
        ),
        (lambda: Job(run=1, partition="a,b"), "partition: must be one name (partitions=... takes several), got 'a,b'"),
        (
            lambda: snapshot_of(4, now=0.0, waiting=Job(run=1)),
            "waiting: must be a list of jobs or mappings of their fields, got Job(processors=1, run=1)",
        ),
        (
            lambda: snapshot_of(4, now=0.0, running={"run": 1}),
            "running: must be a list of jobs or mappings of their fields, got {'run': 1}",
        ),
        (lambda: Job(run=1, dependencies="first"), "dependencies: must be a list of jobs, got 'first'"),
    ],
)
def test_wrong_calls_get_one_sentence(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_a_machine_is_no_cluster() -> None:
    with pytest.raises(InputError, match="machines run tasks, not jobs"):
        simulate({"a": NODE}, PROBE)


@pytest.mark.parametrize("number", [np.int64(12), np.uint8(12)])
def test_numbers_of_numpy_are_numbers(number: Any) -> None:
    assert simulate(number, PROBE, "easy").jobs["start"].tolist() == [0, 900, 1000, 1100]
    assert ClusterSpec.simple(number).processors == 12
    assert Environment(seed=number).seed == 12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate(4, [{"run": 5}], "fcfs"), "rows are Job(**row)"),
        (lambda: start(128, PROBE, "fcfs", until="soon"), "until: must be > 0 s, the current time, got 'soon'"),
        (
            lambda: start(128, PROBE, "fcfs").run(until="soon"),
            "until: must be an instant (s), or a text such as '2d', got 'soon'",
        ),
        (
            lambda: replicate(128, "lublin-128", "easy", n=5),
            "function: must be a function and seeds, the rest by name: replicate(simulate, 20, platform=64, "
            "workload=..., policy=...), got 128",
        ),
        (lambda: simulate(4, [Job(run=5)], "fcfs").to_pandas(), "result.jobs.to_pandas()"),
        (
            lambda: ClusterSpec(partitions=[PartitionSpec(processors=4)], failures=None),
            "must be several specs, as in a list",
        ),
        (
            lambda: simulate(4, [Job(run=5)], lambda view: [Start(job) for job in view.waiting]),
            "must name a place of this scheduler (",
        ),
        (
            lambda: SiteSpec(name="a", hosts=[NodeSpec(count=1, cores=4)], overhead=exponential(mean=300)),
            "must be seconds, or a distribution of seconds such as DelaySpec(distribution='exponential', mean=300)",
        ),
        (lambda: simmodel.LinkSpec, "No simmodel attribute LinkSpec; it is in simmodel.platform"),
    ],
)
def test_first_mistakes_get_one_sentence(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((InputError, PolicyError, ValueError, AttributeError)) as raised:
        call()
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_texts_with_units_and_mappings_are_taken() -> None:
    assert start(12, PROBE, "fcfs", until="15min").until == 900
    assert Scenario(platform=12, workload=PROBE, until="1h").until == 3600
    assert start(12, PROBE, "fcfs").run(until="15min").env.now == 900
    network = Network(Environment(), [{"name": "l", "bandwidth": "10GB/s", "latency": "1ms"}])
    assert network.links["l"].bandwidth == 10e9
    cluster = Cluster(Environment(), 4)
    jobs = [cluster.submit(Job(processors=4, run=5)) for _ in range(2)]
    cluster.env.run(until=1)
    assert list(cluster.waiting) == jobs[1:]


def test_a_result_says_how_many_jobs_were_rejected() -> None:
    jobs = Workload({"submit": [0, 0], "processors": [5, 1], "run": [5, 5]})
    assert repr(simulate(4, jobs, "fcfs")) == "<Result fcfs: 2 jobs on 4 processors, 1 rejected>"
    assert repr(simulate({"a": 4, "b": 2}, jobs, "round-robin")).endswith(", 1 rejected>")


def run_of_one() -> Any:
    return simulate(2, [Job(id=1, processors=1, run=5)], "fcfs")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Job(processors=0, run=1), "processors: must be a whole number >= 1, got 0"),
        (lambda: Job(run=-1), "run: must be >= 0, got -1"),
        (lambda: Job(run=1, outcome="tired"), "outcome: must be "),
        (lambda: Task(id=1, run=-1), "run"),
        (lambda: Traffic(pattern="all-to-nobody", bytes=1), "pattern"),
        (lambda: Elastic(minimum=0, maximum=2, preferred=1), "minimum: must be a whole number >= 1, got 0"),
        (lambda: Checkpoint(interval=0, cost=1), "interval"),
        (lambda: exponential(0), "must be > 0"),
        (lambda: scale_load(PROBE, factor=-1), "factor"),
        (lambda: Workflow([Task(id=1, run=1), Task(id=2, run=1)], [(1, 2)]).data(2, 1), "no edge leads from 2 to 1"),
        (lambda: Workload([Job(run=1)]), "columns: must be columns by name (from_jobs takes jobs), got [Job("),
        (lambda: run_of_one().jobs["speed"], "unknown column 'speed'"),
        (lambda: compare(2, [Job(run=1)], ["fcfs"])["easy"], "unknown result 'easy'"),
    ],
)
def test_each_error_that_is_meant_is_one_of_simmodel_and_of_python(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(simmodel.SimmodelError, match=re.escape(message)) as caught:
        call()
    assert isinstance(caught.value, InputError)
    assert isinstance(caught.value, ValueError)


def test_unknown_names_are_key_errors_as_well() -> None:
    with pytest.raises(KeyError, match="unknown column 'speed'"):
        run_of_one().jobs["speed"]
