"""Published logs of deep learning on clusters of GPUs, and GPUs of jobs as a column of tables."""

import gzip
import io
import json
import re

import numpy as np
import pytest

from simmodel import load_platform, load_workload, simulate
from simmodel.cli import main
from simmodel.formats import (
    read_columns,
    read_gavel,
    read_helios,
    read_openb,
    read_openb_nodes,
    read_philly,
    read_tiresias,
)
from simmodel.formats.training import NO_CPUS, NO_RUN, UNEVEN
from simmodel.foundation.errors import InputError
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from tests.helpers.data_files import data_file

HELIOS = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
ACME = (
    "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,end_time,"
    "fail_time,stop_time,duration,queue,gpu_time\n"
)
DAY = "2020-04-01 00:"
FULL = f"{HELIOS}1,u,v,8,32,1,COMPLETED,{DAY}00:00,{DAY}01:00,{DAY}02:00,60,60\n"
NODES = "sn,cpu_milli,memory_mib,gpu,model\na-0,4000,8192,2,G2\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time,scheduled_time\n"


def test_gpus_of_helios_are_those_of_the_job():
    rows = [
        f"1,u,v,16,64,2,COMPLETED,{DAY}00:00,{DAY}00:10,{DAY}01:10,60,10",
        f"2,u,v,9,0,2,FAILED,{DAY}00:00,{DAY}00:10,{DAY}01:10,60,10",
        f"3,w,v,0,4,1,CANCELLED,{DAY}00:00,,{DAY}00:30,0,30",
        f"4,w,v,8.0,4,1,NODE_FAIL,{DAY}00:00,,,,",
    ]
    log = read_helios(io.StringIO(HELIOS + "\n".join(rows)))
    assert log["gpus_per_node"].tolist() == [8, 5, 0, 8]
    assert log["chunks"].tolist() == ["", "5:gpus=5+4:gpus=4", "", ""]
    assert log["cores_per_node"].tolist() == [32, 5, 4, 4]
    assert log["outcome"].tolist() == ["completed", "failed", "cancelled", "node-failure"]
    np.testing.assert_array_equal(log["run"], [60, 60, np.nan, np.nan])
    np.testing.assert_array_equal(log["wait"], [10, 10, np.nan, np.nan])
    assert log["cancel"][2] - log["submit"][2] == 30
    assert log.report.repaired == {NO_CPUS: 1, UNEVEN: 1, NO_RUN: 1}


def test_acme_is_read_whatever_its_order_ends_of_lines_and_compression(tmp_path):
    text = ACME + (
        "a,u1,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 13:01:08+02:00,"
        "2023-05-17 11:02:08+00:00,2023-05-17 11:02:08+00:00,,60,10,1\n"
    )
    rows = [line.split(",")[::-1] for line in text.splitlines()]
    mixed = "\r\n".join(",".join(row) for row in rows)
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "one.csv").write_text(text)
    (folder / "two.csv.gz").write_bytes(gzip.compress(f"\ufeff{mixed}".encode()))
    for name in ("one.csv", "two.csv.gz"):
        log = load_workload(folder / name)
        assert (log["gpus_per_node"].tolist(), log["nodes"].tolist(), log["run"].tolist()) == ([8], [8], [60])
        assert (log["memory_per_node"].tolist(), log["wait"].tolist(), log["type"].tolist()) == (
            [1e12],
            [10],
            ["Other"],
        )


def test_jobs_of_helios_run_on_gpus(tmp_path, capsys):
    (tmp_path / "cluster_log.csv").write_text(FULL + FULL.splitlines()[1].replace("1,u", "2,u", 1))
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(cores=64, gpus=8)])])
    result = simulate(spec, load_workload(tmp_path / "cluster_log.csv"), "easy")
    assert np.diff(result.jobs["start"]).tolist() == [60]
    assert main(["batch", str(tmp_path / "cluster_log.csv"), "--processors", "64"]) == 0
    assert "2 (2 completed)" in capsys.readouterr().out


def test_the_published_files_of_tiresias_and_gavel_are_read():
    jobs = load_workload(data_file("gpu/tiresias_60_job.csv.gz"))
    assert len(jobs) == 60
    assert jobs["run"][0] == 164
    assert jobs["nodes"].max() * 8 >= jobs["processors"].max()
    trace = load_workload(data_file("gpu/gavel_msr_seed0_ee9e8c.trace.gz"))
    assert len(trace) == 2000
    assert trace.report.repaired == {NO_RUN: 2000}
    assert "throughputs=" in str(trace.report)


def test_gavel_takes_run_times_from_its_file_of_throughputs(tmp_path):
    path = tmp_path / "simulation_throughputs.json"
    path.write_text(json.dumps({"v100": {"('LM', 1)": {"null": 5.0, "('LM', 1)": [1, 1]}, "('LM', 12)": {"null": 50}}}))
    old = "LM\tpython3 a\t-s\t1\t500\t60.5\t1\n"
    new = "LM\tpython3 a\tfolder\t-s\t1\t500\t12\t1\t-1\t70\n"
    log = read_gavel(io.StringIO(old + new), throughputs=path)
    assert (log["submit"].tolist(), log["run"].tolist()) == ([60.5, 70], [100, 10])
    assert log["chunks"].tolist() == ["", "8:gpus=8+4:gpus=4"]
    with pytest.raises(InputError, match="missing key 'k80'"):
        read_gavel(io.StringIO(old), throughputs=path, gpu="k80")


def test_philly_adds_attempts_and_counts_them(tmp_path):
    attempts = [
        {"start_time": "2017-10-01 12:01:00", "end_time": "2017-10-01 12:02:00", "detail": []},
        {
            "start_time": "2017-10-01 12:05:00",
            "end_time": "2017-10-01 12:06:30",
            "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0"]}],
        },
    ]
    job = {"status": "Pass", "vc": "v", "jobid": "a", "user": "u", "submitted_time": "2017-10-01 12:00:00"}
    killed = {**job, "jobid": "b", "status": "Killed", "attempts": []}
    path = tmp_path / "cluster_job_log"
    path.write_text(json.dumps([{**job, "attempts": attempts}, killed]))
    log = load_workload(path)
    np.testing.assert_array_equal(log["run"], [150, np.nan])
    assert log["chunks"].tolist() == ["2:gpus=2+1:gpus=1", ""]
    assert log["outcome"].tolist() == ["completed", "cancelled"]
    assert log.report.repaired == {"several attempts: run times added": 1}
    with pytest.raises(InputError, match="job 1: attempts: must be a list of tables"):
        read_philly(io.StringIO(json.dumps([job])), strict=True)


BAD = [
    (
        read_helios,
        HELIOS + "1,u,v,x,32,1,COMPLETED,0,0,9,9,0\n",
        "line 2: gpu_num: must be a whole number >= 0, got 'x'",
    ),
    (
        read_helios,
        HELIOS + "1,u,v,1.5,3,1,COMPLETED,0,0,9,9,0\n",
        "line 2: gpu_num: must be a whole number >= 0, got '1.5'",
    ),
    (read_helios, HELIOS + "1,u,v,8,32,1,COMPLETED,,,,9,0\n", "line 2: submit_time: must be an instant"),
    (read_helios, HELIOS + "1,u,v,8,32,1,COMPLETED,soon,,,9,0\n", "line 2: submit_time: must be an instant"),
    (read_helios, HELIOS + "1,u,v,8,32,1,COMPLETED,9,8,10,2,0\n", "line 2: times: must be in the order"),
    (read_helios, HELIOS + "1,u,v,8,32,1,DONE?,0,0,9,9,0\n", "line 2: must be completed, "),
    (read_tiresias, "job_id,num_gpu,submit_time,duration\n0,1,,9\n", "line 2: submit_time: must be seconds, got ''"),
    (
        read_tiresias,
        "job_id,num_gpu,submit_time,duration\n0,,3,9\n",
        "line 2: num_gpu: must be a whole number >= 0, got ''",
    ),
    (read_gavel, "LM\tpython3 a\t-s\t1\t500\t60.5\t0\n", "line 1: gpus: must be a whole number >= 1, got '0'"),
    (read_gavel, "LM\tpython3\n", "line 1: must have 7 or 10 fields with tabs between them, got 2"),
    (read_openb, PODS + "p,0,1,1,460,,0,9,0\n", "line 2: cpu_milli: must be a whole number >= 1, got '0'"),
    (read_openb, PODS + "p,9,1,1,1500,,0,9,0\n", "line 2: gpu_milli: must be a share of one GPU"),
    (read_openb, PODS + "p,9,1,1,460,,,9,0\n", "line 2: creation_time: must be a whole number >= 0, got ''"),
    (read_openb_nodes, NODES + "a-0,4000,8192,2,G2\n", "line 3: sn: duplicate node name 'a-0'"),
    (read_openb_nodes, NODES + ",4000,8192,2,G2\n", "line 3: sn: must be the name of the node, got none"),
    (
        read_columns,
        "submit,run,gpus_per_node\n0,5,1.5\n",
        "line 2: column 'gpus_per_node': must be a whole number, or a share",
    ),
]


@pytest.mark.parametrize(("read", "text", "message"), BAD)
def test_bad_rows_are_named_or_counted(read, text, message):
    with pytest.raises(InputError, match=re.escape(message)):
        read(io.StringIO(text))
    if read is not read_openb_nodes:
        with pytest.raises(InputError, match="no jobs"):
            read(io.StringIO(text), strict=False)


@pytest.mark.parametrize(
    ("read", "text", "column"),
    [
        (read_helios, HELIOS, "gpu_num"),
        (read_tiresias, "job_id,num_gpu,submit_time,duration\n", "num_gpu"),
        (read_openb, PODS, "cpu_milli"),
        (read_openb_nodes, NODES, "model"),
    ],
)
def test_missing_columns_and_columns_that_come_twice_are_named(read, text, column):
    with pytest.raises(InputError, match=f"line 1: missing column {column}"):
        read(io.StringIO(text.replace(column, "another")))
    with pytest.raises(InputError, match=f"line 1: duplicate column '{column}'"):
        read(io.StringIO(text.replace("\n", f",{column}\n", 1)))


def test_gpus_of_jobs_are_a_column_of_tables():
    table = "submit,run,processors,nodes,gpus\n0,5,4,2,16\n1,5,3,2,3\n2,5,1,1,\n3,5,2,,8\n"
    log = read_columns(io.StringIO(table))
    assert log["gpus_per_node"].tolist() == [8, 2, -1, 8]
    assert log["chunks"].tolist() == ["", "2:gpus=2+1:gpus=1", "", ""]
    assert log["nodes"].tolist() == [2, 2, 1, 1]


def test_shares_and_types_of_openb_go_through_a_table(tmp_path):
    pods = read_openb(io.StringIO(f"{PODS}p,1000,1024,1,600,G2|G3,0,100,0\nq,1000,1024,2,1000,,0,100,0\n"))
    pods.table.to_csv(tmp_path / "jobs.csv")
    log = load_workload(tmp_path / "jobs.csv")
    assert log["gpus_per_node"].tolist() == [0.6, 2]
    assert log["gpu"].tolist() == ["G2|G3", ""]
    (tmp_path / "nodes.csv").write_text(NODES)
    result = simulate(load_platform(tmp_path / "nodes.csv"), log, "fcfs")
    assert result.jobs["start"].tolist() == [0, 100]
