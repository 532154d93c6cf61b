"""What users and administrators of a real Slurm change between a twin's look and its act stays as they have set it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from time import time

import pytest

from simmodel_site.twin.acting.actions import HELD, PREFERRED, Action, Command, JobNow, mark_parts
from simmodel_site.twin.acting.performing import perform, restore
from simmodel_site.twin.slurm.commands import SlurmCommands
from simmodel_site.twin.slurm.source import SlurmHands
from tests.site.helpers.acting_plant import ActingPlant, acting_plant
from tests.site.helpers.slurm_cluster import SlurmCluster, wait_until

pytestmark = pytest.mark.live

WISHES = {
    ("update", "JobId={job}", "StartTime=now+1day"): "EligibleTime",
    ("update", "JobId={job}", "StartTime=now+2hours"): "EligibleTime",
    ("update", "JobId={job}", "StartTime=now"): "EligibleTime",
    ("update", "JobId={job}", "Nice=50"): "Nice",
    ("update", "JobId={job}", "Nice=-3"): "Nice",
    ("update", "JobId={job}", "Priority=77"): "Priority",
    ("update", "JobId={job}", "Comment=please"): "Comment",
    ("update", "JobId={job}", "AdminComment=ticket"): "AdminComment",
    ("update", "JobId={job}", "Deadline=now+3days"): "Deadline",
    ("update", "JobId={job}", "TimeLimit=7"): "TimeLimit",
    ("hold", "{job}"): "Priority",
    ("uhold", "{job}"): "Priority",
    ("requeuehold", "{job}"): "Priority",
    ("release", "{job}"): "Priority",
    ("requeue", "{job}"): "EligibleTime",
    ("update", "JobId={job}", "Partition=other"): "Partition",
    ("update", "JobId={job}", "Partition=batch,other"): "Partition",
    ("update", "PartitionName=batch", "State=DOWN"): "State",
    ("update", "PartitionName=batch", "State=DRAIN"): "State",
    ("update", "PartitionName=batch", "State=UP"): "State",
    ("update", "PartitionName=batch", "PriorityTier=7"): "PriorityTier",
    ("cancel", "{job}"): "JobState",
}
"""What is wished of ``scontrol`` (``scancel`` for the last), and the field of ``scontrol show`` that tells it."""

FIELD = re.compile(
    r"(?:^| )(EligibleTime|Nice|Priority|Comment|AdminComment|Deadline|TimeLimit|JobState|Partition|State|PriorityTier)"
    r"=(\S*)"
)


class Wishing:
    """Acts as a twin does, while wishes come before any of its commands; notes those that do not last."""

    def __init__(self, plant: ActingPlant, seed: int) -> None:
        self.plant, self.drawn = plant, Random(seed)
        self.hands = SlurmHands(SlurmCommands(conf=str(plant.slurm.conf)), allowed=("release", "prefer", "unprefer"))
        self.commands = self.hands.commands
        self.jobs: list[str] = []
        self.wished: dict[str, dict[str, str]] = {}
        self.story: list[str] = []
        self.rate = 0.5

    # ------------------------------------------------------------------ hands whose calls are interrupted

    def words(self, command: Command) -> str:
        return self.hands.words(command)

    def look(self, job: int | str) -> JobNow | None:
        self.meanwhile()
        found = self.hands.look(job)
        self.meanwhile()
        return found

    def marked(self) -> tuple[JobNow, ...]:
        found = self.hands.marked()
        self.meanwhile()
        return found

    def send(self, command: Command, job: int | str, value: int = 0) -> None:
        self.meanwhile()
        self.story.append(f"{command} {job}")
        self.hands.send(command, job, value)

    # ------------------------------------------------------------------ users

    def meanwhile(self) -> None:
        if self.drawn.random() < self.rate:
            self.wish()

    def wish(self) -> None:
        """Let somebody change a job; what was wished before must still be there."""
        job, words = self.drawn.choice(self.jobs), self.drawn.choice(list(WISHES))
        self.check()
        program = ["scancel"] if words[0] == "cancel" else ["scontrol", words[0]]
        done = subprocess.run(
            [*program, *(word.format(job=job) for word in words[1:])],
            env=self.plant.slurm.environment,
            capture_output=True,
            timeout=60,
        )
        self.story.append(f"{' '.join(words)} {job}: {done.returncode}")
        if done.returncode:
            return
        if words[1].startswith("PartitionName"):
            job = "batch"
        now, fields = self.now(job), {WISHES[words], *self.wished.get(job, ())}
        self.wished[job] = {field: now.get(field, "") for field in fields}

    def now(self, job: str) -> dict[str, str]:
        """Return the fields of a job, or of the partition ``batch``."""
        kind = "partition" if job == "batch" else "job"
        return dict(FIELD.findall(self.plant.slurm.run("scontrol", "show", kind, "--oneliner", job)))

    def check(self) -> None:
        for job, wished in self.wished.items():
            now = self.now(job)
            found = {field: now.get(field, "") for field in wished}
            assert found == wished, (job, self.story)

    # ------------------------------------------------------------------ a sequence

    def sequence(self) -> None:
        """Let two jobs come, one held for the twin and one not; act and wish; at the end give everything back."""
        plant, drawn = self.plant, self.drawn
        self.wished, self.story = {}, []
        beat = Path(plant.act.heartbeat)
        beat.write_text(f"{time():.0f} 7 hold")
        held = plant.submit(1, 0.1)
        beat.unlink()
        free = plant.submit(1, 0.1)
        self.jobs, self.rate = [held, free], 0.35
        assert plant.held() == [held]
        submits = {job: found.submit for job in self.jobs if (found := self.hands.look(int(job))) is not None}
        for _ in range(drawn.randint(1, 3)):
            act = drawn.choice(("release", "prefer", "unprefer", "restore", "script"))
            job = held if act == "release" else free
            if act == "restore":
                restore(self)
            elif act == "script":
                beat.write_text("0 7 hold")
                script = subprocess.Popen([plant.slurm.folder / "hooks" / "release"], env=plant.slurm.environment)
                self.meanwhile()
                assert script.wait(60) == 0
            else:
                command: Command = "release" if act == "release" else "prefer" if act == "prefer" else "unprefer"
                value = 900 if act == "prefer" else 0
                found = perform(
                    self,
                    Action(
                        number=1, advice=1, command=command, job=int(job), submit=submits[job], time=0.0, value=value
                    ),
                )
                self.story.append(f"{act}: {found.what} {found.sentence}")
        self.rate = 0.0
        left = restore(self).left
        self.check()
        plant.slurm.run("scontrol", "update", "PartitionName=batch", "State=UP")
        for job in self.jobs:
            now, wished = self.now(job), self.wished.get(job, {})
            if now["JobState"] != "PENDING":
                continue
            said = any(each.startswith(f"job {job}: ") for each in left)
            word, value = mark_parts(now.get("AdminComment", ""))
            assert said or word != HELD or begin_of(now) <= time() + 1, (job, self.story)
            assert said or word != PREFERRED or int(now["Nice"]) == -(value or 0), (job, self.story)
            theirs = {"EligibleTime", "AdminComment"} & wished.keys()  # whose mark is gone waits for its begin time
            assert theirs or begin_of(now) <= time() + 1, (job, self.story)
            assert wished or (now["Nice"], PREFERRED in now.get("AdminComment", "")) == ("0", False), (job, self.story)


def begin_of(now: dict[str, str]) -> float:
    """Return the begin time of a job (s), 0 if it has none."""
    return float(now["EligibleTime"]) if now["EligibleTime"].isdecimal() else 0.0


@contextmanager
def other_partition(slurm: SlurmCluster) -> Iterator[None]:
    """Give a cluster a second partition, with the same nodes, for a while."""
    slurm.run("scontrol", "create", "PartitionName=other", "Nodes=ALL", "MaxTime=INFINITE", "State=UP")
    try:
        yield
    finally:
        slurm.run("scontrol", "update", "PartitionName=batch", "State=UP", "PriorityTier=1")
        slurm.clear()
        slurm.run("scontrol", "delete", "PartitionName=other")


def check(slurm: SlurmCluster, folder: Path, sequences: int, seed: int) -> None:
    with acting_plant(slurm, folder) as plant, other_partition(slurm):
        for first in range(0, sequences, 25):
            full = plant.submit(slurm.nodes, 3000.0, "-t99")
            wait_until(lambda: full in plant.runs(), 30, plant.story)  # noqa: B023 (called at once)
            waits: set[str] = set()
            wishing = Wishing(plant, seed + first)
            plant.jobs.clear()
            for _ in range(min(25, sequences - first)):
                wishing.sequence()
            slurm.run("scancel", full)
            for job in plant.jobs:
                now = wishing.now(job)
                later = now["Priority"] == "0" or begin_of(now) > time() + 60
                if now["JobState"] == "CANCELLED" or (now["JobState"] == "PENDING" and later):
                    waits.add(job)
            run = set(plant.jobs) - waits
            wait_until(lambda: run <= plant.runs().keys(), 60, plant.story)  # noqa: B023 (called at once)
            assert {plant.runs()[job] for job in run} <= {1}
            assert not waits & plant.runs().keys()
            slurm.clear()
            plant.ran.write_text("")


def test_wishes_that_come_while_a_twin_acts_are_granted(slurm: SlurmCluster, tmp_path: Path) -> None:
    check(slurm, tmp_path, 8, 1)


@pytest.mark.exhaustive
def test_in_two_hundred_sequences_no_wish_is_overridden(slurm: SlurmCluster, tmp_path: Path) -> None:
    check(slurm, tmp_path, 200, 100)
