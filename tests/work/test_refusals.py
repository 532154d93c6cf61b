"""Refusals: reports count them by the rule that jobs break, whatever the texts and the names in them are."""

import copy
import pickle

from simmodel import Job, simulate
from simmodel.platform import ClusterSpec, PartitionSpec, QueueSpec
from simmodel.work.job import Refusal, rule_of


def test_a_refusal_is_its_text_and_keeps_its_rule_in_copies():
    reason = Refusal.of("8 processors", "batch has 4")
    for each in (reason, copy.deepcopy(reason), pickle.loads(pickle.dumps(reason))):
        assert (each, rule_of(each)) == ("8 processors requested, batch has 4", "batch has 4")
    assert rule_of("of another kind of system requested, too") == "of another kind of system requested, too"


def test_jobs_count_by_the_rule_also_if_a_name_looks_like_a_reason():
    name = "a requested, b"
    spec = ClusterSpec(
        partitions=[PartitionSpec(name="p", processors=4)], queues=[QueueSpec(name=name, max_requested=10)]
    )
    jobs = [Job(run=5, requested=20 + i, queue=name) for i in range(3)]
    rejected = simulate(spec, jobs, "fcfs").report.rejected
    assert rejected == {"queue a requested, b allows 10": 3}


def test_a_broker_counts_by_the_rules_of_all_systems():
    limited = [
        ClusterSpec(partitions=[PartitionSpec(name="p", processors=4, max_requested=limit)]) for limit in (10, 20)
    ]
    jobs = [Job(run=5, requested=30 + i) for i in range(3)]
    rejected = simulate(limited, jobs, "round-robin").report.rejected
    assert rejected == {"p allows 10; p allows 20": 3}
