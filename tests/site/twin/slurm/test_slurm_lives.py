"""A real Slurm as a source: each job is seen through its life once, whatever its name, and though Slurm is killed."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel_site.twin import Ended
from simmodel_site.twin.mirror.mirror import Mirror
from simmodel_site.twin.slurm.source import SlurmSettings, SlurmSource
from simmodel_site.twin.sources.stream import StreamSource
from tests.site.helpers.redis_server import RedisServer
from tests.site.helpers.slurm_cluster import SlurmCluster, wait_until
from tests.site.helpers.told_lives import events_of, told_of

pytestmark = pytest.mark.live


class Followed:
    """What a source of a cluster tells, applied to a mirror."""

    def __init__(self, slurm: SlurmCluster, stream: RedisServer | None = None, interval: float = 0.5) -> None:
        wake = None if stream is None else StreamSource("virtual", stream.settings)
        self.source = SlurmSource("virtual", SlurmSettings(timeout=5.0, interval=interval), wake=wake)
        nodes = NodeSpec(names=f"n[1-{slurm.nodes}]", count=slurm.nodes, cores=slurm.cpus)
        platform = ClusterSpec(partitions=[PartitionSpec(name="batch", nodes=[nodes])])
        self.mirror = Mirror(platform, "virtual", clock=time.time)

    def read(self, timeout: float = 0.1) -> None:
        for event in self.source.events(timeout):
            self.mirror.apply(event)

    def until(self, true: Callable[[], object], seconds: float = 60) -> None:
        wait_until(
            lambda: self.read() or true(),
            seconds,
            lambda: f"{told_of(self.mirror)} {self.mirror.refused} {self.source.refused}",
        )

    def of(self, job: int | str) -> dict[str, int]:
        """Return how many events of each kind were told of a job."""
        return {kind: count for (each, kind), count in told_of(self.mirror).items() if each == job}


ONCE = {"submitted": 1, "started": 1, "ended": 1}


def test_each_job_is_submitted_starts_and_ends_once(slurm: SlurmCluster, slurm_stream: RedisServer) -> None:
    followed = Followed(slurm, slurm_stream, interval=10)
    followed.read()
    jobs = [slurm.submit(f"-N{1 + number % 7}", "--exclusive", seconds=0.3 + number % 3) for number in range(12)]
    followed.until(lambda: all(followed.of(job).keys() == ONCE.keys() for job in jobs))
    for _ in range(30):  # nothing is told again
        followed.read()
    assert {job: followed.of(job) for job in jobs} == dict.fromkeys(jobs, ONCE)
    assert not followed.mirror.refused
    assert not followed.source.refused


@pytest.mark.parametrize(
    "name", ["a\nb", "'; touch x #", '$(touch x)`touch x`"', "\x1b[2J\x07", "%j|%A\x1e\x1f", "N/A", "ß" * 400]
)
def test_hostile_names_and_comments_do_no_harm(slurm: SlurmCluster, slurm_stream: RedisServer, name: str) -> None:
    followed = Followed(slurm, slurm_stream)
    followed.read()
    job = slurm.submit(f"--job-name={name}", f"--comment={name}", seconds=0.1)
    followed.until(lambda: followed.of(job) == ONCE)  # a start may be told after the end
    entry = followed.mirror.entry(job)
    assert entry is not None
    assert entry.request.name == name.strip()[:256]
    assert not followed.source.refused
    assert not followed.mirror.refused
    assert not list(slurm.folder.rglob("x"))


def test_holds_arrays_and_cancelled_jobs(slurm: SlurmCluster, slurm_stream: RedisServer) -> None:
    followed = Followed(slurm, slurm_stream)
    held = slurm.submit("--hold", "-N1", "--exclusive", seconds=0.1)
    array = slurm.submit("--array=1-3", "-N1", "--exclusive", seconds=0.1)
    followed.until(lambda: all(followed.of(f"{array}_{task}").keys() >= ONCE.keys() for task in (1, 2, 3)))
    assert followed.of(held) == {"submitted": 1}
    assert followed.mirror.jobs["held"] == 1
    slurm.run("scontrol", "release", str(held))
    cancelled = slurm.submit("--hold", seconds=1)
    followed.until(lambda: followed.of(cancelled))
    slurm.run("scancel", str(cancelled))
    followed.until(lambda: followed.of(held).keys() >= ONCE.keys() and "ended" in followed.of(cancelled))
    assert "started" not in followed.of(cancelled)
    ends = {(each.job, each.status) for each in events_of(followed.mirror) if isinstance(each, Ended)}
    assert ends >= {(held, "completed"), (cancelled, "cancelled")}
    assert not followed.mirror.refused


def test_nodes_that_drain_go_down_and_return(slurm: SlurmCluster) -> None:
    followed = Followed(slurm)
    try:
        slurm.run("scontrol", "update", "nodename=n3", "state=drain", "reason=test's \n |\x1e")
        slurm.run("scontrol", "update", "nodename=n[5-6]", "state=down", "reason=test")
        followed.until(lambda: set(followed.mirror.nodes.out) == {"n3", "n5", "n6"})
    finally:
        slurm.run("scontrol", "update", "nodename=n[3,5-6]", "state=resume")
    followed.until(lambda: not followed.mirror.nodes.out)
    assert not followed.source.refused


def test_a_job_that_is_requeued_is_a_new_one_since_slurm_submits_it_again(
    slurm: SlurmCluster, slurm_stream: RedisServer
) -> None:
    followed = Followed(slurm, slurm_stream)
    job = slurm.submit("--requeue", "-N2", "--exclusive", seconds=600)
    followed.until(lambda: followed.of(job).get("started"))
    time.sleep(1.1)  # Slurm tells whole seconds
    slurm.run("scontrol", "requeue", str(job))
    followed.until(lambda: followed.of(job).get("submitted") == 2 and followed.mirror.jobs["held"] == 1)
    slurm.run("scancel", str(job))
    followed.until(lambda: followed.of(job).get("ended", 0) > 1 and followed.mirror.jobs["held"] == 0)
    told = followed.of(job)
    assert (told["submitted"], told["started"]) == (2, 1)
    assert told["ended"] in (2, 3)  # a report without the job may come before the script that tells its end
    assert not followed.mirror.refused


def test_after_a_crash_of_slurm_an_id_used_again_is_a_new_job(slurm: SlurmCluster) -> None:
    followed = Followed(slurm)
    first = slurm.submit("-N1", "--exclusive", seconds=600)
    followed.until(lambda: followed.of(first).get("started"))
    kept = slurm.keep_state()
    lost = slurm.submit("-N1", "--exclusive", "--hold", seconds=600)
    followed.until(lambda: followed.of(lost))
    slurm.lose_state(kept)
    followed.read(2.0)
    assert followed.source.trouble
    slurm.start_controller()
    again = slurm.submit("-N2", "--exclusive", "--hold", seconds=600)
    assert again == lost
    followed.until(lambda: followed.of(lost) == {"submitted": 2, "ended": 1})
    assert followed.of(first) == {"submitted": 1, "started": 1}
    entry = followed.mirror.entry(again)
    assert entry is not None
    assert entry.request.nodes == 2
    assert not followed.mirror.refused
