"""Fresh schedules of a real Slurm, replayed from its own slurm.conf and accounting."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from simmodel_site.twin.slurm.site.folder import read_folder
from simmodel_site.twin.slurm.site.replayed import replay
from tests.site.helpers.slurm_cluster import PROGRAMS, SlurmCluster, require
from tests.site.helpers.slurm_decisions import cycles_of
from tests.site.helpers.slurm_measure import by_turns, free, given, measure
from tests.site.helpers.slurm_recorder import LOGGED, Asked, record
from tests.site.helpers.slurm_runs import Recorded

pytestmark = pytest.mark.live

COMMON = {
    "SchedulerType": "sched/backfill",
    "JobCompType": "jobcomp/filetxt",
    "JobCompLoc": "{folder}/jobcomp.txt",
    "Epilog": "/bin/true",  # after each job its end starts the main loop at once; without, some do, by a race
}
TIERS = (
    "PartitionName=low Nodes=ALL Default=YES PriorityTier=1 State=UP\n"
    "PartitionName=high Nodes=n[1-5] PriorityTier=10 MaxTime=2 State=UP"
)
ONE = "PartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
RUNS: Mapping[str, tuple[str, str]] = {
    "defaults": ("bf_max_time=60", ONE),
    "tiers": ("bf_max_time=60,bf_interval=10", TIERS),
    "quick": ("bf_max_time=60,bf_interval=20,batch_sched_delay=1", ONE),
}


def recorded(name: str, folder: Path, seed: int, count: int = 40) -> Recorded:
    """Let a real Slurm run jobs that are drawn, and keep its files."""
    parameters, partitions = RUNS[name]
    drawn = Random(seed)
    cluster = SlurmCluster(8, 1, {**COMMON, **LOGGED, "SchedulerParameters": parameters}, partitions)
    jobs = []
    for _ in range(count):
        nodes = drawn.choice((1, 1, 1, 2, 2, 3, 4, 5, 8))
        high = "-p high " if name == "tiers" and nodes <= 5 and drawn.random() < 0.3 else ""
        limit = drawn.choice((1, 2) if high else (1, 2, 3))
        jobs.append(Asked(drawn.expovariate(1 / 1.2), f"{high}-N {nodes} -t {limit}", drawn.uniform(2, 12)))
    return record(cluster, jobs, folder)


def test_three_fresh_runs_are_replayed(tmp_path: Path) -> None:
    """They run beside each other, with an Epilog, so that they can be foreseen.

    From the log: cycles decide as recorded. With their instants given a run starts as recorded, if no cycle began while
    the nodes of an ended job were answering, which takes longer on a busy computer. With the turns of the background
    loop given, a tenth of the starts differ by more than a cycle at most, the mean wait by 3 %, and 95 % of the pairs
    are in order, too, if no end was noted late; with the first turns alone that holds less often on a busy computer,
    where a turn takes longer. So at least one run must keep each. From accounting alone the loops make nearly all
    recorded starts; it tells neither phases nor parts of seconds, and a free schedule drifts away.
    """
    require(*PROGRAMS)
    folders = {name: tmp_path / name for name in RUNS}
    for folder in folders.values():
        folder.mkdir()
    with ThreadPoolExecutor(len(RUNS)) as pool:
        runs = list(pool.map(recorded, folders, folders.values(), range(len(RUNS))))
    found = [cycle for run in runs for cycle in cycles_of(run)]
    assert sum(cycle.same for cycle in found) >= 0.98 * len(found) > 50
    assert min(measure(run, given(run)).beyond for run in runs) <= 0.02 * 40
    by_turn = [measure(run, by_turns(run)) for run in runs]
    for run, turns in zip(runs, by_turn, strict=True):
        print(turns, measure(run, free(run), as_recorded=False))
    assert any(each.beyond <= 0.1 * 40 and abs(each.wait - 1) <= 0.03 and each.order >= 0.95 for each in by_turn)
    for folder in folders.values():
        site = read_folder(folder)
        assert len(site.recorded) == 40
        assert site.unsupported == ()
        replayed = replay(site)
        waits = [float((replayed.jobs[each] - replayed.jobs["submit"]).mean()) for each in ("recorded", "simulated")]
        assert len(replayed.departures or ()) <= 2
        assert replayed.order >= 0.85
        assert waits[1] == pytest.approx(waits[0], rel=0.3)
