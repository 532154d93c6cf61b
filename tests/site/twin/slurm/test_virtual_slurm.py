"""The Slurm of the tests: real jobs on virtual nodes, private, and nothing of it is left afterwards."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.paths import ROOT
from tests.site.helpers.slurm_cluster import PROGRAMS, SlurmCluster, require, wait_until

pytestmark = pytest.mark.live

PROGRAM = """
import os, signal, sys, time
from tests.site.helpers.slurm_cluster import SlurmCluster, running
with running(SlurmCluster(nodes=2)) as cluster:
    cluster.submit(seconds=600)
    time.sleep(4)
    print(cluster.folder, *(each.pid for each in [cluster.controller, *cluster.daemons]), flush=True)
    if sys.argv[1] == "fail":
        raise ValueError
    if sys.argv[1] == "wait":
        time.sleep(60)
"""


def test_jobs_run_on_its_nodes(slurm: SlurmCluster) -> None:
    first, second = slurm.submit("-N2", "--exclusive", seconds=1), slurm.submit("-N32", seconds=0.1)
    assert second == first + 1
    wait_until(lambda: not slurm.unfinished())
    told = slurm.run("squeue", "-h", "-t", "all", "-j", f"{first},{second}", "-S", "i", "-o", "%T %D %C").splitlines()
    assert told == ["COMPLETED 2 8", "COMPLETED 32 32"]


def test_it_is_of_an_unprivileged_user_and_seen_from_this_computer_only(slurm: SlurmCluster) -> None:
    assert slurm.controller is not None
    for process in (slurm.controller, *slurm.daemons):
        assert Path(f"/proc/{process.pid}").stat().st_uid == slurm.user.pw_uid != 0
    listening = [
        line.split()[1].partition(":")[0]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if line.split()[3] == "0A" and int(line.split()[7]) == slurm.user.pw_uid
    ]
    assert len(listening) >= 33
    assert set(listening) == {"0100007F"}  # 127.0.0.1


@pytest.mark.parametrize("ending", ["end", "fail", "wait"])
def test_nothing_of_it_is_left(ending: str) -> None:
    require(*PROGRAMS)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM, ending]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, stderr=-3) as program:
        assert program.stdout is not None
        folder, *processes = program.stdout.readline().split()
        if ending == "wait":
            program.terminate()
        program.communicate(timeout=60)
    assert program.returncode == (0 if ending == "end" else 1 if ending == "fail" else program.returncode)
    assert not Path(folder).exists()
    assert not [each for each in processes if Path(f"/proc/{each}").exists()]
    mark = f"SLURM_CONF={folder}/slurm.conf".encode()
    for each in Path("/proc").glob("[0-9]*/environ"):
        try:
            assert mark not in each.read_bytes()
        except OSError:
            continue
