"""What if the site had other nodes and partitions: lines of slurm.conf, paired with the site as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simmodel import InputError
from simmodel.cli import main
from simmodel_site.twin.slurm.site.changed import changed_site
from simmodel_site.twin.slurm.site.folder import SlurmFolder, read_folder
from simmodel_site.twin.slurm.site.replayed import change
from tests.site.helpers.slurm_sacct import sacct_line, site_folder


@pytest.fixture
def site(tmp_path: Path) -> SlurmFolder:
    """Return a site of four nodes, on which ten jobs of whole nodes and 5 minutes wait for each other."""
    folder = tmp_path / "site"
    folder.mkdir()
    lines = [sacct_line(i, "-N 4 -n 16", submit=10 * i, start=300 * i, run=300) for i in range(1, 11)]
    return read_folder(site_folder(folder, lines))


@pytest.mark.parametrize(
    ("lines", "nodes", "partitions"),
    [
        (["NodeName=n[5-6] CPUs=8"], {"n1": 4, "n4": 4, "n5": 8, "n6": 8}, {"batch": "n[1-6]", "fast": "n[1-2]"}),
        (["NodeName=n[1-2] CPUs=8"], {"n1": 8, "n2": 8, "n3": 4}, {"batch": "n[1-4]", "fast": "n[1-2]"}),
        (["nodename=n[1,4] State=DOWN"], {"n2": 4, "n3": 4}, {"batch": "n[2-3]", "fast": "n2"}),
        (["PartitionName=fast Nodes=ALL"], {"n1": 4}, {"batch": "n[1-4]", "fast": "n[1-4]"}),
        (["PartitionName=new Nodes=n4"], {"n4": 4}, {"batch": "n[1-4]", "fast": "n[1-2]", "new": "n4"}),
    ],
)
def test_lines_change_nodes_and_partitions(
    lines: list[str], nodes: dict[str, int], partitions: dict[str, str], site: SlurmFolder
) -> None:
    found = changed_site(site.site, lines)
    there = {node.name: node.cpus for node in found.nodes or ()}
    assert there.items() >= nodes.items()
    assert {part.name: part.nodes for part in found.partitions or ()} == partitions


def test_a_new_node_is_as_the_last_one_but_for_what_its_line_says(site: SlurmFolder) -> None:
    *_, last, new = changed_site(site.site, ["NodeName=n9 CPUs=64 Feature=big"]).nodes or ()
    assert (new.cpus, new.features, new.memory) == (64, ("big",), last.memory)


def test_a_partition_keeps_what_its_line_does_not_say(site: SlurmFolder) -> None:
    _, fast = changed_site(site.site, ["PartitionName=fast MaxTime=12:00:00"]).partitions or ()
    assert (fast.max_time, fast.tier, fast.nodes) == (43200, 10, "n[1-2]")


@pytest.mark.parametrize(
    ("change_", "sentence"),
    [
        ("MaxTime=60", r'setting of partitions: --set "PartitionName=batch MaxTime=60"; partitions here: batch, fast'),
        ("RealMemory=9000", r'setting of nodes: --set "NodeName=n1 RealMemory=9000"; nodes here: n\[1-4\]'),
        ("PartitionName=bath MaxTime=60", "unknown partition 'bath'; did you mean 'batch'.*; a new one needs Nodes="),
        ("PartitionName=batch MaxTime", "must consist of Name=Value"),
        ("PartitionName=batch Default=YES", "it changes nothing"),
        ("NodeName=n1 CPUs=4", "it changes nothing"),
        ("NodeName=n1 CPUs=many", "must be a number such as '4'"),
    ],
)
def test_a_wrong_change_gets_one_sentence(change_: str, sentence: str, site: SlurmFolder) -> None:
    with pytest.raises(InputError, match=sentence):
        change(site, [change_], phases=2)


def test_new_nodes_need_a_partition(site: SlurmFolder) -> None:
    two = site.changed(["PartitionName=batch Nodes=n[1-3]"])
    with pytest.raises(InputError, match=r'no partition has n5: add "PartitionName=NAME Nodes='):
        two.changed(["NodeName=n5 CPUs=4"])
    assert (
        two.changed(["NodeName=n5 CPUs=4", "PartitionName=fast Nodes=n5"]).described.spec.nodes == 4
    )  # n4 is in no partition


def test_more_nodes_shorten_the_waits_of_the_same_jobs(site: SlurmFolder) -> None:
    found = change(site, ["NodeName=n[5-8] CPUs=4"], phases=2)
    mean = found.effects[0]
    assert found.jobs[""] == 10
    assert mean.value < mean.before / 1.9
    assert mean.difference.high < 0
    assert found.left_out == ()


@pytest.mark.parametrize("way", ["reject", "cut", "split"])
def test_jobs_above_a_new_limit_are_left_out_cut_or_split(way: Any, tmp_path: Path) -> None:
    lines = [sacct_line(i, "-N 4 -n 16", submit=10 * i, start=300 * i, run=300) for i in range(1, 11)]
    lines += [sacct_line(i, "-N 1 -n 4", submit=10 * i, more="fast|") for i in (11, 12)]
    site = read_folder(site_folder(tmp_path, lines))
    found = change(site, ["PartitionName=batch MaxTime=00:02:00"], phases=2, too_long=way)
    assert len(found.left_out) == (10 if way == "reject" else 0)
    mean = found.effects[0]
    assert (mean.value < 0.6 * mean.before) is (way != "split")


def test_the_command_counts_the_jobs_that_it_cuts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [sacct_line(i, "-N 4 -n 16", submit=10 * i, start=300 * i, run=300) for i in range(1, 11)]
    folder = str(site_folder(tmp_path, lines))
    line = "PartitionName=batch MaxTime=00:02:00"
    assert main(["slurm", "replay", folder, "--set", line, "--too-long", "cut", "--phases", "2"]) == 0
    assert "changed: requested time above the limit: cut: 10 jobs" in capsys.readouterr().out
    assert main(["slurm", "replay", folder, "--too-long", "cut"]) == 2
    assert "--too-long: needs --set" in capsys.readouterr().err
