"""Which nodes jobs get, and how much of each, against a real slurmctld: requests as sbatch takes them.

``placements.csv`` was recorded with slurmctld 22.05.8: jobs that ran before, the options of another one, its CPUs, and
what it got (node:cores:MB:GPUs; ``-``: it waited).
"""

from __future__ import annotations

import csv
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from simmodel import Job, simulate
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.platform.node_lists import node_names
from simmodel.resources.pools.allocation import Allocation, NodeTable, Request
from simmodel_site.policy.board import Board, Pending, Site
from simmodel_site.policy.layout import Layout, SlurmNodes
from simmodel_site.policy.policy import Slurm, SlurmTiming
from simmodel_site.policy.settings import SlurmConf, SlurmPartition
from simmodel_site.policy.wishes import Wishes
from simmodel_site.twin.slurm.site.requests import Asking
from simmodel_site.twin.slurm.site.sbatch import SubmitLine

MB = 2.0**20
SITES = {  # names, cores, MB, GPUs, weight, type
    "mixed": [
        ("n[1-4]", 4, 2000, 0, 1, ()),
        ("n[5-6]", 8, 4000, 2, 1, ()),
        ("n7", 8, 4000, 4, 1, ("a100",)),
        ("n8", 8, 4000, 2, 1, ("v100",)),
    ],
    "alike": [("n[1-6]", 8, 4000, 4, 1, ()), ("n[7-8]", 8, 4000, 2, 1, ())],
    "weighted": [("n[1-4]", 8, 4000, 0, 1, ()), ("n[5-6]", 8, 4000, 0, 5, ()), ("n[7-8]", 4, 2000, 0, 1, ())],
}
PARTITIONS = {"cpu": "n[1-4]", "gpu": "n[5-8]", "ex": "n[1-4]", "batch": "n[1-8]", "four": "n[1-6]"}
PARTITIONS |= {"mixed": "n[5-8]", "a": "n[1-4]", "b": "n[3-8]", "d": "n[1-4]"}  # d: DefMemPerCPU=100

with (Path(__file__).parent / "placements.csv").open() as file:
    PLACED = list(csv.DictReader(file, delimiter="|"))


class Nodes:
    """The nodes of a site, and what jobs hold of them."""

    def __init__(self, site: str, settings: SlurmConf) -> None:
        kinds = SITES[site]
        self.names = [name for kind in kinds for name in node_names(kind[0])]
        each = [(cores, gpus, mb * MB) for names, cores, mb, gpus, *_ in kinds for _ in node_names(names)]
        self.table = NodeTable(np.array(each, dtype=float).T)
        told = [SlurmNodes(names=names, weight=weight, gpus=types) for names, _, _, _, weight, types in kinds]
        self.layout = Layout(self.names, len(each), told)
        self.board = Board(self.table, settings, self.layout)
        self.board.renew(0, [])

    def select(self, options: str, cpus: int = -1) -> tuple[Allocation | None, list[str]]:
        """Return what a job of these options gets, and which of them are not expressed."""
        line = SubmitLine.of(f"sbatch {options} run.sh")
        exclusive = line.values.get("exclusive") == "" or line.values["partition"] == "ex"
        asking = Asking({"requested_processors": cpus}, line.values, {}, exclusive=exclusive)
        shape = asking.shape()
        others = {name: line.values[name] for name in ("nodelist", "exclude") if name in line.values}
        words = " ".join(f"--{name}={value}" for name, value in {**asking.options, **others}.items())
        nodes = self.layout.mask(PARTITIONS[line.values["partition"]])
        live: Any = SimpleNamespace(state="waiting")
        site = Site(SlurmPartition(name="any"), nodes)
        request = Request.of(Job(run=1, exclusive=exclusive, options=words, **shape))
        job = Pending(live, request, self.board, site, 60, 0, 0, 1, wishes=Wishes.of(words))
        return self.board.select(job, nodes), [name for name, _ in line.unread({"exclusive", *asking.known, *others})]


def shown(names: list[str], got: Allocation | None) -> str:
    if got is None:
        return "-"
    return " ".join(sorted(f"{names[node]}:{cores}:{memory / MB:.0f}:{gpus}" for node, cores, gpus, memory in got.rows))


def test_jobs_get_what_slurmctld_gave_them() -> None:
    """But for options that are named as not modelled, of which some change nothing here."""
    wrong = []
    for row in PLACED:
        options = row["options"] if "-p " in row["options"] else f"-p batch {row['options']}"
        settings = SlurmConf(memory=True, def_mem_per_cpu=100 * MB if "-p d" in options else 0.0)
        nodes = Nodes(row["site"], settings)
        for other in filter(None, row["before"].split(";")):
            held, _ = nodes.select(other)
            assert held is not None
            nodes.table.take(held)
            nodes.board.renew(0, [])
        got, named = nodes.select(options, int(row["cpus"]))
        if shown(nodes.names, got) != row["nodes"] and not named:
            wrong.append((row, shown(nodes.names, got)))
    assert wrong == []
    assert len(PLACED) > 250


# ---------------------------------------------------------------------- worked by hand


SMALL = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(names="n1", cores=4, memory="2000MB")])])


def test_jobs_share_the_memory_of_a_node() -> None:
    """Two jobs of 2 CPUs and 800 MB fit on one node of 4 CPUs and 2000 MB, three do not."""
    jobs = [Job(id=i, submit=0, run=600, processors=2, memory_per_node=800 * 10**6) for i in (1, 2, 3)]
    starts = simulate(SMALL, jobs, Slurm(SlurmConf(memory=True))).jobs["start"]
    assert starts[0] == starts[1] < 10
    assert starts[2] > 600


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ("--nodes=2 --mem=100", ((0, 3, 0), (1, 1, 0))),
        ("--cpus-per-task=2 --nodes=2", ((0, 2, 0), (1, 2, 0))),
        ("--gpus=3", ((0, 3, 2), (1, 1, 1))),
        ("--gpus-per-task=1", ((0, 2, 2), (1, 2, 2))),
        ("-G 1", ((0, 4, 1),)),
    ],
)
def test_options_of_a_job_spread_its_cores_and_gpus(options: str, rows: tuple[tuple[int, ...], ...]) -> None:
    """Four cores on nodes with 4 cores and 2 GPUs each; GPUs in all on several nodes leave one for each of them."""
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(names="n[1-3]", cores=4, gpus=2)])])
    job = Job(id=1, run=60, processors=4, options=options)
    result = simulate(spec, [job], "slurm")
    nodes = result.runs["nodes"][0]
    assert list(nodes) == [node for node, *_ in rows]
    assert result.jobs["status"].tolist() == ["completed"]


def test_a_job_that_no_nodes_could_run_is_refused_and_the_others_go_on() -> None:
    """It names a node that is not there, or asks for more nodes, GPUs or memory in all than there are."""
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(names="n[1-2]", cores=4, gpus=1, memory="1GB")])])
    wrong = ["-w n9", "--nodes=3", "--gpus=3", "-C big", "--nodes=2-9 --mem=2000", "--gpus-per-task=2"]
    jobs = [Job(id=i, submit=i, run=60, processors=3, options=text) for i, text in enumerate(wrong, 1)]
    jobs.append(Job(id="fits", submit=20, run=60, processors=8, options="--nodes=2 --gpus=2"))
    result = simulate(spec, jobs, Slurm(SlurmConf(memory=True)))
    assert result.jobs["status"].tolist() == ["cancelled"] * 6 + ["completed"]
    assert "refused 6 jobs at submission: no nodes of its partition could run it" in str(result.report)


@pytest.mark.parametrize("loop", ["main", "backfill"])
def test_a_loop_goes_on_when_a_job_that_never_ran_leaves_at_its_turn(loop: str) -> None:
    """Job 1 has two of four CPUs, and job 2 wants all. At 30 s a loop reaches job 3, which leaves, and starts job 4."""
    jobs = [
        Job(id=1, submit=0, run=300, requested=300, processors=2),
        Job(id=2, submit=1, run=100, requested=120, processors=4),
        Job(id=3, submit=2, requested=60, processors=1, cancel=500, outcome="cancelled"),
        Job(id=4, submit=3, run=50, requested=60, processors=2),
    ]
    if loop == "main":  # which does not look behind a job that cannot start
        jobs = jobs[2:]
    timing = SlurmTiming(main=[4.0, 30.0] if loop == "backfill" else [30.0], full=[], backfill=[30.5, 600.0])
    found = simulate(ClusterSpec.simple(4), jobs, Slurm(SlurmConf(), timing=timing)).jobs
    assert found["status"].tolist()[-2:] == ["withdrawn", "completed"]
    assert found["start"].tolist()[-1] == (30.0 if loop == "main" else 30.5)
