"""Nodes and pods of openb, a cluster of shared GPUs."""

import gzip
import io
import re

import numpy as np
import pytest

from simmodel import load_platform, load_workload, simulate
from simmodel.cli import main
from simmodel.formats.openb import NEVER, NO_TIMES, read_openb, read_openb_nodes
from simmodel.foundation.errors import InputError
from tests.helpers.data_files import data_file

NODES = "sn,cpu_milli,memory_mib,gpu,model\na-0,4000,8192,2,G2\na-1,4000,8192,2,G2\nb-0,8000,1024,0,\n"
HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
PODS = HEAD + (
    "p-0,1000,1024,1,600,,LS,Running,0,100,0\n"
    "p-1,1500,1024,2,1000,G2|G3,LS,Running,5,105,9\n"
    "p-2,7000,512,0,0,,BE,Pending,6,26,\n"
)


def test_nodes_have_their_gpus_by_model_and_their_names():
    part = read_openb_nodes(io.StringIO(NODES)).partitions[0]
    assert part.node_names == ("a-0", "a-1", "b-0")
    assert [(kind.count, kind.cores, kind.gpu_types) for kind in part.nodes] == [(2, 4000, {"G2": 2}), (1, 8000, {})]
    assert part.nodes[0].memory == 8192 * 2**20


def test_pods_are_jobs_for_one_node():
    pods = read_openb(io.StringIO(PODS))
    assert pods.report.repaired == {NEVER: 1}
    assert [(job.gpus_per_node, job.gpu, job.cores_per_node, job.run) for job in pods.jobs()] == [
        (0.6, "", 1000, 100),
        (2, "G2|G3", 1500, 96),
        (0, "", 7000, 20),
    ]
    assert pods["memory_per_node"].tolist() == [2**30, 2**30, 2**29]
    np.testing.assert_array_equal(pods["wait"], [0, 4, -1])


def test_pods_without_times_have_no_run_time():
    pods = read_openb(io.StringIO("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1000,1,1,500\n"))
    assert pods.report.repaired == {NO_TIMES: 1}
    assert pods["run"].tolist() == [-1]


def test_the_command_replays_pods_on_nodes(tmp_path, capsys):
    pods, nodes = tmp_path / "openb_pods.csv", tmp_path / "openb_nodes.csv.gz"
    pods.write_text(PODS)
    nodes.write_bytes(gzip.compress(NODES.encode()))
    assert load_workload(pods)["gpus_per_node"].tolist() == [0.6, 2, 0]
    assert load_platform(nodes).processors == 16000
    assert main(["batch", str(pods), "--platform", str(nodes)]) == 0
    assert "3 (3 completed)" in capsys.readouterr().out


def test_a_run_of_the_files_holds_devices():
    result = simulate(read_openb_nodes(io.StringIO(NODES)), read_openb(io.StringIO(PODS)), "fcfs")
    assert result.jobs["start"].tolist() == [0, 5, 6]
    assert result.runs["nodes"].tolist() == [(0,), (1,), (2,)]
    assert result.runs["devices"].tolist() == [(((0, 600),),), (((0, 1000), (1, 1000)),), ((),)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("p,0,1,1,460,,,,0,9,0", "line 2: cpu_milli: must be a whole number >= 1, got '0'"),
        ("p,9,1,1,1460,,,,0,9,0", "line 2: gpu_milli: must be a share of one GPU or 1000 of each, got 1460 of 1"),
        ("p,9,1,2,460,,,,0,9,0", "line 2: gpu_milli: must be a share of one GPU or 1000 of each, got 460 of 2"),
        ("p,9,1,1,460,,,,5,3,", "line 2: deletion_time: must not be before the pod was scheduled, got 3"),
        ("p,9,x,1,460,,,,5,9,", "line 2: memory_mib: must be a whole number >= 0, got 'x'"),
    ],
)
def test_bad_pods_are_errors_or_counted(row, message):
    with pytest.raises(InputError, match=re.escape(message)):
        read_openb(io.StringIO(f"{HEAD}{row}\n"), strict=True)
    assert len(read_openb(io.StringIO(f"{PODS}{row}\n"), strict=False)) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NODES + "a-0,4000,8192,2,G2\n", "line 5: sn: duplicate node name 'a-0'"),
        (NODES + "c-0,4000,8192,2,\n", "line 5: model: must be that of the GPUs, got none"),
        ("sn,cpu_milli,memory_mib,gpu\n", "line 1: missing column model"),
        ("sn,cpu_milli,memory_mib,gpu,model\n", "no nodes"),
    ],
)
def test_bad_nodes_are_errors(text, message):
    with pytest.raises(InputError, match=re.escape(message)):
        read_openb_nodes(io.StringIO(text))


def test_the_published_files_are_read_whole():
    nodes = read_openb_nodes(data_file("gpu/openb_node_list_all_node.csv.gz")).partitions[0]
    assert sum(kind.count for kind in nodes.nodes) == 1523
    assert sum(kind.count * kind.gpus for kind in nodes.nodes) == 6212
    assert sum(kind.count for kind in nodes.nodes if kind.gpus) == 1213
    pods = read_openb(data_file("gpu/openb_pod_list_default.csv.gz"))
    assert len(pods) == 8152
    shares = pods["gpus_per_node"]
    assert ((shares > 0) & (shares < 1)).sum() == 3078
    assert pods.report.repaired == {NEVER: 897}
