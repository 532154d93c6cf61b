"""A real Slurm with a twin that acts and a watchdog, processes that can be killed, and jobs that note their runs."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.platform.toml import write_toml
from simmodel_site.twin.slurm.commands import SlurmCommands
from simmodel_site.twin.slurm.source import SlurmHands
from tests.helpers.paths import ROOT
from tests.site.helpers.redis_server import RedisServer
from tests.site.helpers.slurm_cluster import SlurmCluster, hold_for, wait_until

CONFIG = """
cluster = "virtual"
platform = "platform.toml"
policy = "fcfs"
audit = "audit.jsonl"
report_every = 5

[source]
kind = "slurm"
interval = 0.5
requested = "comment"
marks = true
{wake}
[advise]
policy = "{policy}"
fallback = "fcfs"

[act]
mode = "{mode}"
maximum_delay = {maximum_delay}
stale_after = {stale_after}
rate = {rate}
heartbeat = "{heartbeat}"
stop_file = "{stop_file}"
"""

WAKE = 'wake = {{ kind = "redis", url = "{url}" }}'


class ActingPlant:
    """A twin and a watchdog beside a Slurm whose jobs note each of their runs.

    Parameters
    ----------
    slurm
        the cluster
    folder
        the folder of the twin
    policy, mode, maximum_delay
        those of the twin
    stream
        the server whose stream wakes it; default: it looks twice a second
    """

    def __init__(
        self,
        slurm: SlurmCluster,
        folder: Path,
        policy: str = "easy",
        mode: str = "hold-and-release",
        maximum_delay: float = 20.0,
        stream: RedisServer | None = None,
    ) -> None:
        self.slurm, self.folder = slurm, folder
        self.act = hold_for(slurm, maximum_delay)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.jobs: list[str] = []
        self.ran = slurm.folder / f"ran-{folder.name}"
        self.ran.touch()
        self.ran.chmod(0o666)
        nodes = NodeSpec(names=f"n[1-{slurm.nodes}]", count=slurm.nodes, cores=slurm.cpus)
        write_toml(
            ClusterSpec(name="virtual", partitions=[PartitionSpec(name="batch", nodes=[nodes])]),
            folder / "platform.toml",
        )
        text = CONFIG.format(
            wake="" if stream is None else WAKE.format(url=stream.settings.url),
            policy=policy,
            mode=mode,
            maximum_delay=self.act.maximum_delay,
            stale_after=self.act.stale_after,
            rate=self.act.rate,
            heartbeat=self.act.heartbeat,
            stop_file=self.act.stop_file,
        )
        (folder / "twin.toml").write_text(text)
        self.hands = SlurmHands(SlurmCommands(conf=str(slurm.conf)))

    # ------------------------------------------------------------------ processes

    def start(self, name: str, *, file_limit: int | None = None) -> None:
        """Start ``"twin"`` or ``"watchdog"``; ``file_limit``: the bytes after which its files are full."""
        action = "run" if name == "twin" else name
        command = [sys.executable, "-m", "simmodel", "twin", action, str(self.folder / "twin.toml")]

        def limit() -> None:
            if file_limit is not None:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))

        with (self.folder / f"{name}.out").open("ab") as out:
            self.processes[name] = subprocess.Popen(
                command,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=out,
                stderr=out,
                preexec_fn=limit,
            )
        stopped = Path(self.act.stop_file).exists()
        if name == "twin" and file_limit is None and not stopped:
            wait_until(lambda: Path(self.act.heartbeat).exists(), 120, lambda: self.said("twin"))

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """End a process, by default as a crash does."""
        process = self.processes.pop(name)
        process.send_signal(number)
        process.wait(60)

    def said(self, name: str) -> str:
        """Return what a process has printed."""
        file = self.folder / f"{name}.out"
        return file.read_text()[-3000:] if file.exists() else ""

    # ------------------------------------------------------------------ jobs

    def submit(self, nodes: int = 1, seconds: float = 1.0, *options: str) -> str:
        """Submit a job that notes that it runs, and sleeps."""
        return self.submit_script(
            f"#!/bin/sh\necho $SLURM_JOB_ID >> {self.ran}\nexec sleep {seconds:g}\n", nodes, seconds, *options
        )

    def submit_script(self, script: str, nodes: int, seconds: float, *options: str) -> str:
        """Submit a script whose requested time is given in seconds."""
        words = (
            "sbatch",
            "--parsable",
            "-o",
            "/dev/null",
            f"-N{nodes}",
            "--exclusive",
            "-t1",
            f"--comment={seconds:g}",
        )
        job = self.slurm.run(*words, *options, text=script).split(";")[0].strip()
        self.jobs.append(job)
        return job

    def held(self) -> list[str]:
        """Return the jobs that are held for the twin now."""
        return [str(job.job) for job in self.hands.marked() if job.held]

    def runs(self) -> Counter[str]:
        """Return how often each job has begun."""
        return Counter(self.ran.read_text().split())

    def all_over(self, seconds: float = 90) -> None:
        """Wait until no job is left, and check that each has run once."""
        wait_until(lambda: not self.slurm.unfinished(), seconds, self.story)
        wait_until(lambda: len(self.runs()) >= len(self.jobs), 10, self.story)
        assert self.runs() == Counter(self.jobs), self.story()

    def story(self) -> str:
        """Tell what is known, for a failure."""
        queue = self.slurm.run("squeue", "-h", "-o", "%i %T %r %S")
        parts = [f"runs {self.runs()}", f"held {self.held()}", queue, self.said("twin"), self.said("watchdog")]
        return "\n".join(parts)

    def close(self) -> None:
        """End all processes."""
        for name in list(self.processes):
            self.kill(name)
        for path in (self.act.heartbeat, self.act.stop_file):
            Path(path).unlink(missing_ok=True)


@contextmanager
def acting_plant(
    slurm: SlurmCluster,
    folder: Path,
    policy: str = "easy",
    mode: str = "hold-and-release",
    maximum_delay: float = 20.0,
    stream: RedisServer | None = None,
) -> Iterator[ActingPlant]:
    """Yield a plant, and end its processes."""
    plant = ActingPlant(slurm, folder, policy, mode, maximum_delay, stream)
    try:
        yield plant
    finally:
        plant.close()
