"""Submissions among two real controllers whose twins die and return, by clients that die as well: each job once."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random

import pytest

from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.platform.toml import write_toml
from simmodel_site.twin.submitting import new_token
from tests.helpers.paths import ROOT
from tests.site.helpers.slurm_cluster import PROGRAMS, SlurmCluster, require, running, wait_until

pytestmark = pytest.mark.live

NODES = {"small": 2, "large": 6}
TWIN = """
cluster = "{name}"
platform = "{name}-platform.toml"
policy = "fcfs"
[source]
kind = "slurm"
interval = 0.5
conf = "{conf}"
[serve]
port = {port}
"""
ROUTE = """
default = "small"
timeout = 60
patience = 2
"""
CLUSTER = """
[[clusters]]
name = "{name}"
conf = "{conf}"
port = {port}
commands = "{folder}"
"""


class Site:
    """A controller with its nodes, and a twin that can be killed."""

    def __init__(self, slurm: SlurmCluster, folder: Path, name: str) -> None:
        self.slurm, self.folder, self.name = slurm, folder, name
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        nodes = NodeSpec(names=f"n[1-{slurm.nodes}]", count=slurm.nodes, cores=slurm.cpus)
        platform = ClusterSpec(name=name, partitions=[PartitionSpec(name="batch", nodes=[nodes])])
        write_toml(platform, folder / f"{name}-platform.toml")
        (folder / f"{name}.toml").write_text(TWIN.format(name=name, conf=slurm.conf, port=self.port))
        self.commands = folder / name
        self.commands.mkdir()
        for command in ("sbatch", "squeue"):
            text = f'#!/bin/sh\nexec {" ".join(slurm._as_user())} {command} "$@"\n'
            (self.commands / command).write_text(text)
            (self.commands / command).chmod(0o755)
        self.twin: subprocess.Popen[bytes] | None = None

    @property
    def table(self) -> str:
        return CLUSTER.format(name=self.name, conf=self.slurm.conf, port=self.port, folder=self.commands)

    def start(self) -> None:
        command = [sys.executable, "-m", "simmodel", "twin", "run", str(self.folder / f"{self.name}.toml")]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.twin = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        if self.twin is not None:
            self.twin.kill()
            self.twin.wait()
            self.twin = None

    def names(self) -> Counter[str]:
        return Counter(self.slurm.run("squeue", "-h", "-t", "all", "-o", "%j").split())


@contextmanager
def two_sites(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Site]]:
    require(*PROGRAMS)
    for name in [name for name in os.environ if name.startswith(("SLURM_", "SBATCH_", "SQUEUE_"))]:
        monkeypatch.delenv(name)
    with ExitStack() as stack:
        sites = []
        for name, nodes in NODES.items():
            slurm = stack.enter_context(running(SlurmCluster(nodes=nodes, settings={"ClusterName": name})))
            monkeypatch.setenv("PATH", slurm.environment["PATH"])
            sites.append(Site(slurm, folder, name))
            stack.callback(sites[-1].kill)
            sites[-1].start()
        (folder / "route.toml").write_text(ROUTE + "".join(site.table for site in sites))
        yield sites


def command(folder: Path, *words: str, token: str | None = None, dry: bool = False) -> list[str]:
    options = [*(["--token", token] if token else []), *(["--dry-run"] if dry else [])]
    return [sys.executable, "-m", "simmodel", "twin", "submit", str(folder / "route.toml"), *options, "--", *words]


def run(words: list[str], kill_after: float | None = None) -> tuple[int, str]:
    """Run a client, or kill it after some seconds; return its status and what it said."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    script = "#!/bin/sh\nexec sleep 0.2\n"
    with subprocess.Popen(words, env=environment, stdin=-1, stdout=-1, stderr=subprocess.STDOUT, text=True) as client:
        try:
            said, _ = client.communicate(script, timeout=kill_after)
        except subprocess.TimeoutExpired:
            client.send_signal(signal.SIGKILL)
            with suppress(ValueError):
                client.communicate()
            return -9, ""
    return client.returncode, said


def check(folder: Path, monkeypatch: pytest.MonkeyPatch, jobs: int, seed: int) -> None:
    drawn = Random(seed)
    with two_sites(folder, monkeypatch) as sites:
        for number in range(jobs):
            if drawn.random() < 0.15:
                site = drawn.choice(sites)
                site.kill() if site.twin is not None else site.start()
            token = new_token()
            words = ("sbatch", "-o", "/dev/null", f"-N{drawn.choice((1, 1, 2))}", "-t1", f"--job-name=job{number}")
            kill_after = drawn.uniform(0.1, 1.0) if drawn.random() < 0.2 else None
            status, said = run(command(folder, *words), None) if kill_after is None else (-9, "")
            if kill_after is not None:
                run(command(folder, *words, token=token), kill_after)
                status, said = run(command(folder, *words, token=token))
            assert (status, "Submitted batch job" in said) == (0, True), said
        found = sum((site.names() for site in sites), Counter[str]())
        assert found == Counter(f"job{number}" for number in range(jobs))
        for site in sites:
            wait_until(lambda site=site: not site.slurm.unfinished(), 120)  # type: ignore[misc]


def test_each_of_twenty_submissions_is_on_one_cluster_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(tmp_path, monkeypatch, 20, 3)


@pytest.mark.exhaustive
def test_each_of_three_hundred_submissions_is_on_one_cluster_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(tmp_path, monkeypatch, 300, 4)


def test_a_full_cluster_is_avoided_while_its_twin_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with two_sites(tmp_path, monkeypatch) as (small, large):
        dry = command(tmp_path, "sbatch", "-N2", "-t1", dry=True)
        wait_until(lambda: run(dry)[1].count("ends after") == 2, 30)
        small.slurm.submit("-N2", "--exclusive", "-t10", seconds=30)
        wait_until(lambda: run(dry)[1].startswith("large: ends after 60 s"), 30, lambda: run(dry)[1])
        large.kill()
        wait_until(lambda: run(dry)[1].startswith("small: ends after"), 30, lambda: run(dry)[1])
        small.kill()
        assert run(dry)[1].startswith("small: ")
        status, said = run(command(tmp_path, "sbatch", "-p", "none"))  # Slurm says what is wrong
        assert (status, "invalid partition" in said) == (1, True), said
