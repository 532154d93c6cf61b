"""Holds: the order of records as slurmctld 22.05.8 numbers them, and simulations that continue from a snapshot."""

from __future__ import annotations

from math import inf

import pytest

from simmodel import Job, simulate, start
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.policies.slurm.holds import Records
from simmodel.policies.slurm.policy import Slurm, SlurmTiming


def test_the_order_of_records_is_that_of_a_real_slurmctld() -> None:
    """Ten jobs, the second held as it came and released after the seventh, the third held later and released last.

    The priorities were 4294901759 less 0, -, 1, 2, 3, 4, 5; of the second 6, of the eighth 7, of the third 8, and of
    the ninth 9.
    """
    records = Records()
    for number in range(7):
        records.submitted(number, hold={1: (-inf, 12.3), 2: (5.3, 13.4)}.get(number))
    assert [records.order(number) for number in (0, 2, 3, 4, 5, 6)] == [0, 1, 2, 3, 4, 5]
    records.turns_by(12.3)
    records.submitted(7)
    records.turns_by(13.4)
    records.submitted(8)
    assert [records.order(number) for number in (1, 7, 2, 8)] == [6, 7, 8, 9]


def test_tasks_of_an_array_are_one_record_and_are_released_together() -> None:
    records = Records()
    found = [records.submitted(number, "17", (-inf, 5.0)) for number in range(3)]
    records.submitted(3)
    assert (found, records.order(3), [records.holds(number) for number in found]) == ([0, 0, 0], 0, [True] * 3)
    records.turns_by(5.0)
    assert (records.order(0), records.holds(0)) == (1, False)


@pytest.mark.parametrize("until", [10.0, 30.0, 55.0])
def test_a_simulation_continues_from_a_snapshot(until: float) -> None:
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(names="n1")])])
    jobs = [
        Job(id=1, submit=0, nodes=1, requested=300, run=100),
        Job(id=2, submit=1, nodes=1, requested=60, run=10, options="--hold=now+49"),
        Job(id=3, submit=5, nodes=1, requested=60, run=10, options="--hold=now+25,now+60"),
        Job(id=4, submit=20, nodes=1, requested=60, run=10),
        Job(id=5, submit=60, nodes=1, requested=60, run=10),
    ]
    policy = Slurm(timing=SlurmTiming(turn=1.0))
    whole = simulate(spec, jobs, policy).jobs
    simulation = start(spec, jobs, policy)
    simulation.run(until=until)
    again = simulate(simulation.snapshot(), policy=policy).jobs
    starts = dict(zip(whole["job"].tolist(), whole["start"].tolist(), strict=True))
    assert sorted(starts, key=starts.__getitem__) == [1, 4, 2, 5, 3]
    assert dict(zip(again["job"].tolist(), again["start"].tolist(), strict=True)).items() <= starts.items()
