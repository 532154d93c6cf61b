"""Real logs, cut and continued, have the schedule of the uncut run."""

from __future__ import annotations

import pytest

from simmodel.environment import Environment
from simmodel.formats.swf import read_swf
from simmodel.policies.multifactor import Multifactor
from simmodel.runs.scenario import simulate
from simmodel.systems.cluster.system import Cluster
from tests.helpers.data_files import data_file
from tests.helpers.snapshot_cuts import check_cut, check_rows

MODES = [{}, {"decide_on": "event"}, {"decide_on": "event", "event_order": "ends-first", "estimates": "cqsim"}]
RUNS = [
    ("KTH-SP2-1996-2-filtered", "easy", 0),
    ("KTH-SP2-1996-2-filtered", "easy", 1),
    ("KTH-SP2-1996-2-filtered", "wfp+easy", 0),
    ("KTH-SP2-1996-2-filtered", "conservative", 1),
    ("theta_1000", "conservative", 2),
    ("theta_1000", "conservative-keep", 0),
    ("theta_1000", "multifactor+easy", 0),
    ("SDSC-SP2-1998-4-filtered", "easy-sjbf", 1),
    ("SDSC-SP2-1998-4-filtered", "best-fit", 0),
]


@pytest.mark.few(2)
@pytest.mark.parametrize(("log", "policy", "mode"), RUNS)
def test_a_log_that_is_cut_has_the_schedule_of_the_whole(log, policy, mode):
    workload = read_swf(data_file(f"swf/{log}.swf.gz")).where(slice(0, 2500))
    submits = workload["submit"]

    def make(policy):
        env = Environment()
        cluster = Cluster(env, workload.processors, policy, **MODES[mode])
        cluster.replay(workload)
        return env, cluster

    # Cuts at the instant of a submission, between two submissions, and after the last one.
    cuts = [float(submits[len(submits) // 3]), float(submits[len(submits) // 2]) + 0.5, float(submits.max()) + 1000]
    rows = check_cut(make, policy, cuts)
    assert sum(row[1] == "started" for row in rows) == len(workload)


def test_simulate_goes_on_with_a_log():
    workload = read_swf(data_file("swf/KTH-SP2-1996-2-filtered.swf.gz")).where(slice(0, 1500))
    whole = simulate(None, workload, "easy")
    env = Environment()
    cluster = Cluster(env, workload.processors, "easy")
    cluster.replay(workload)
    env.run(until=float(workload["submit"][700]))
    snapshot = cluster.snapshot()
    part = simulate(snapshot)
    check_rows(part, whole)
    assert len(part.jobs) == len(snapshot.running) + len(snapshot.waiting) + len(snapshot.arrivals)
    users = dict(zip(whole.jobs["job"].tolist(), whole.jobs["user"].tolist(), strict=True))
    assert part.jobs["user"].tolist() == [users[job] for job in part.jobs["job"].tolist()]
    assert (part.started, part.ended) == (snapshot.now, whole.ended)
    assert part.busy().at([whole.ended - 50_000]) == whole.busy().at([whole.ended - 50_000])


def test_fair_share_with_a_half_life_of_its_own_goes_on():
    workload = read_swf(data_file("swf/KTH-SP2-1996-2-filtered.swf.gz")).where(slice(0, 400))

    def make(policy):
        env = Environment()
        cluster = Cluster(env, workload.processors, policy)
        cluster.replay(workload)
        return env, cluster

    submits = workload["submit"]
    check_cut(make, lambda: Multifactor(half_life=86400.0), [float(submits[100]), float(submits[300])], given=True)
