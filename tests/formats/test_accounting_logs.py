"""Accounting logs of batch systems, and custom tables."""

import gzip
import io
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from simmodel.formats.named_columns import read_columns
from simmodel.formats.pbs import read_pbs
from simmodel.formats.sacct import MORE, SEVERAL, SHARED, read_sacct
from simmodel.formats.tables import duration, instant, memory
from simmodel.foundation.errors import InputError
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.runs.scenario import simulate

GB = 2.0**30
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC).timestamp()

# ruff: noqa: E501 (records are lines)
SACCT = """\
JobID|JobName|Submit|Start|End|Elapsed|Timelimit|AllocCPUS|ReqCPUS|NNodes|State|User|Account|Partition|QOS|ReqTRES|Priority
10|a|2024-05-01T12:00:00|2024-05-01T12:01:00|2024-05-01T13:01:00|01:00:00|1-00:00:00|64|64|2|COMPLETED|ann|phys|gpu|normal|cpu=64,gres/gpu=8,mem=512G,node=2|12
10.batch|b|2024-05-01T12:01:00|2024-05-01T12:01:00|2024-05-01T13:01:00|01:00:00||64|64|2|COMPLETED||||||
10.0|b|2024-05-01T12:01:00|2024-05-01T12:01:00|2024-05-01T13:01:00|01:00:00||64|64|2|COMPLETED||||||
12_3|c|2024-05-01T12:00:30|2024-05-01T12:02:00|2024-05-01T12:02:30|00:00:30|UNLIMITED|1|1|1|TIMEOUT|bob|bio|cpu|normal|cpu=1,mem=4000M,node=1|13
12_[4-9]|c|2024-05-01T12:00:30|Unknown|Unknown|00:00:00|10:00|0|1|1|PENDING|bob|bio|cpu|normal|cpu=1,mem=4000M,node=1|13
13+0|d|2024-05-01T12:00:40|2024-05-01T12:02:00|Unknown|00:00:30|Partition_Limit|4|4|1|RUNNING|bob|bio|cpu|normal|cpu=4,node=1|14
14|e|2024-05-01T12:00:50|None|2024-05-01T12:10:00|00:00:00|10:00|0|16|1|CANCELLED by 1000|eve|bio|cpu|high|cpu=16,node=1|15
15|f|2024-05-01T12:01:00|2024-05-01T12:10:00|2024-05-01T12:11:00|00:01:00|10:00|16|16|1|CANCELLED by 0|eve|bio|cpu|high|cpu=16,node=1|15
"""


def test_columns_of_sacct_are_read():
    log = read_sacct(io.StringIO(SACCT), timezone=None)
    assert log["job"].tolist() == ["10", "12_3", "13+0", "14", "15"]
    assert (log["submit"] - NOON).tolist() == [0, 30, 40, 50, 60]
    assert log["processors"].tolist() == [64, 1, 4, 16, 16]
    assert np.array_equal(log["run"], [3600, 30, np.nan, np.nan, 60], equal_nan=True)
    assert log["requested"].tolist() == [86400, np.inf, np.inf, 600, 600]
    assert log["wait"].tolist()[:2] == [60, 90]
    assert log["status"].tolist() == [1, 0, -1, 5, 5]
    assert log["state"].tolist() == ["COMPLETED", "TIMEOUT", "RUNNING", "CANCELLED", "CANCELLED"]
    assert np.array_equal(log["cancel"] - NOON, [np.nan, np.nan, np.nan, 600, np.nan], equal_nan=True)
    assert log["nodes"].tolist() == [2, 1, 1, 1, 1]
    assert log["cores_per_node"].tolist() == [32, 1, 4, 16, 16]
    assert log["gpus_per_node"].tolist() == [4, 0, 0, 0, 0]
    assert log["memory_per_node"][:2].tolist() == [256 * GB, 4000 * 2**20]
    assert log["requested_memory"][0] == 8 * GB
    assert log["user"].tolist() == ["ann", "bob", "bob", "eve", "eve"]
    assert log["group"].tolist() == ["phys", "bio", "bio", "bio", "bio"]
    assert log["queue"].tolist() == ["normal"] * 3 + ["high"] * 2
    assert log["priority"].tolist() == [12, 13, 14, 15, 15]
    assert log.report.skipped == {"job steps": 2, "arrays that wait as a whole": 1}


def test_sacct_takes_any_fields_in_any_order():
    log = read_sacct(
        io.StringIO(
            "State|ReqMem|NCPUS|ElapsedRaw|JobID|Submit|NNodes|TimelimitRaw|\nFAILED|2Gc|4|90|7|1714564800|2|10|\n"
        )
    )
    assert log["submit"].tolist() == [NOON]
    assert log["run"].tolist() == [90]
    assert log["requested"].tolist() == [600]
    assert log["requested_memory"].tolist() == [2 * GB]
    assert log["memory_per_node"].tolist() == [4 * GB]
    assert log["job"].tolist() == [7]
    log = read_sacct(io.StringIO("JobID|Submit|Start|End|ReqCPUS|ReqMem|NNodes\n7|1|5|9|4|2Gn|2\n"))
    assert (log["wait"][0], log["run"][0], log["requested_memory"][0]) == (4, 4, GB)


def test_sacct_in_a_time_zone():
    log = read_sacct(io.StringIO(SACCT), timezone="Europe/Paris")
    assert log["submit"][0] == NOON - 7200


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "must start with a line of sacct field names, got an empty file"),
        ("a,b\n1,2\n", "line 1: must be sacct field names (JobID|Submit|...), got 'a,b'"),
        ("JobID|User\n1|x\n", "line 1: missing field Submit"),
        ("JobID|Submit|NCPUS\n1|2|3\n", "missing field Elapsed, or Start and End"),
        ("JobID|Submit|Elapsed\n1|2|3\n", "missing field AllocCPUS, NCPUS or ReqCPUS"),
        ("JobID|Submit|Elapsed|NCPUS\n", "no jobs"),
        ("JobID|Submit|Elapsed|NCPUS\n1|2|3\n", "line 2: must have 4 fields, got 3"),
        ("JobID|Submit|Elapsed|NCPUS\n1|yesterday|3|4\n", "line 2: field submit: cannot read 'yesterday'"),
        ("JobID|Submit|Elapsed|NCPUS\n1|5|1:2:3:4|4\n", "line 2: field elapsed: cannot read '1:2:3:4'"),
        ("JobID|Submit|Elapsed|NCPUS\n1|Unknown|3|4\n", "line 2: missing submit time"),
    ],
)
def test_wrong_sacct_output_gets_one_sentence(text, sentence):
    with pytest.raises(InputError) as caught:
        read_sacct(io.StringIO(text))
    assert sentence in str(caught.value)


def test_bad_lines_are_counted_where_that_is_asked_for():
    log = read_sacct(io.StringIO("JobID|Submit|Elapsed|NCPUS\n1|2|3|4\n1|2|3\n"), strict=False)
    assert len(log) == 1
    assert log.report.skipped == {"bad lines": 1}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("01:02:03", 3723),
        ("1-00:00:00", 86400),
        ("2-03", 183600),
        ("05:30", 330),
        ("00:01.5", 1.5),
        ("7", 7),
        ("", np.nan),
    ],
)
def test_durations_are_seconds(text, seconds):
    assert duration(text) == pytest.approx(seconds, nan_ok=True)


@pytest.mark.parametrize("text", ["x", "1:2:3:4", "-5", "a-01:00:00", "1:x"])
def test_what_is_no_duration(text):
    with pytest.raises(ValueError, match=r"."):
        duration(text)


def test_instants_and_sizes_of_memory_are_read():
    assert instant("2024-05-01T14:00:00+02:00") == NOON
    assert memory("16777216kb") == 16 * GB
    with pytest.raises(ValueError, match="4X"):
        memory("4X")


def epoch(clock):
    return int(datetime.strptime(clock, "%m/%d/%Y %H:%M:%S").replace(tzinfo=UTC).timestamp()) - 7200


def record(clock, kind, job, **words):
    text = " ".join(f"{key.replace('__', '.')}={value}" for key, value in words.items())
    return f"05/01/2024 {clock};{kind};{job}.server;{text}"


DAY = "05/01/2024 "
PBS = "\n".join(
    [
        "05/01/2024 11:00:00;L;license;floating license hour:3",
        record("14:00:00", "Q", 1, queue="work"),
        record("14:00:05", "Q", 2, queue="work"),
        record("14:00:06", "Q", 3, queue="work"),
        record("14:01:00", "S", 1, user="ann", ctime=epoch(DAY + "14:00:00"), start=epoch(DAY + "14:01:00")),
        record("14:02:00", "D", 2, requestor="bob@host"),
        record(
            "15:01:00",
            "E",
            1,
            user="ann",
            group="phys",
            queue="work",
            jobname="my long name",
            ctime=epoch(DAY + "14:00:00"),
            start=epoch(DAY + "14:01:00"),
            end=epoch(DAY + "15:01:00"),
            Exit_status=0,
            Resource_List__select="2:ncpus=8:ngpus=1:mem=4gb+1:ncpus=4",
            Resource_List__ncpus=20,
            Resource_List__nodect=3,
            Resource_List__mem="20gb",
            Resource_List__walltime="02:00:00",
            resources_used__walltime="00:59:58",
            resources_used__cput="10:00:00",
        ),
        record("15:02:00", "S", 3, user="cy", start=epoch(DAY + "15:02:00")),
        record("15:03:00", "R", 3, user="cy", start=epoch(DAY + "15:02:00")),
        record("15:04:00", "S", 3, user="cy", start=epoch(DAY + "15:04:00")),
        record(
            "15:05:00", "E", 3, user="cy", start=epoch(DAY + "15:04:00"), end=epoch(DAY + "15:05:00"), Exit_status=271,
            Resource_List__nodes="2:ppn=8+node7:ppn=4",
        ),
        record("15:06:00", "Q", "7[]", queue="work"),
        record("15:06:30", "E", "7[1]", ctime=epoch(DAY + "15:06:00"), start=epoch(DAY + "15:06:10"),
               end=epoch(DAY + "15:06:30"), Exit_status=1, exec_host="n1/0*4+n2/0*4"),
    ]
)  # fmt: skip


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        ("Resource_List.ncpus", str(2**63), "must be a whole number below 2^63"),
        ("Resource_List.nodect", str(2**63), "must be a whole number below 2^63"),
        ("Resource_List.ngpus", str(2**70), "must be a whole number below 2^63"),
        ("Resource_List.select", f"{2**63}:ncpus=1", "must be less than 2^63 of everything"),
        ("Resource_List.select", f"{2**40}:ncpus={2**40}", "must be less than 2^63 of everything"),
        ("Resource_List.select", f"1:ncpus=1:ngpus={2**63}", "must be less than 2^63 of everything"),
        ("Resource_List.nodes", f"{2**33}:ppn={2**33}", "must be less than 2^63 of everything"),
        ("Resource_List.select", "9" * 5000, "must be less than 2^63 of everything"),
        ("exec_host", f"n1/0*{2**63}", "must be less than 2^63 of everything"),
        ("exec_host", f"n1/0-{2**63}", "must be less than 2^63 of everything"),
        ("Resource_List.walltime", "9" * 400, "cannot read"),
        ("Resource_List.mem", "9" * 400 + "kb", "cannot read"),
        ("ctime", "9" * 400, "cannot read"),
        ("end", "inf", "cannot read"),
    ],
)
def test_numbers_beyond_64_bits_name_job_and_key(key, text, said):
    words = {"ctime": 1714564800, key.replace(".", "__"): text}
    good, bad = record("15:05:00", "E", 1, ctime=1714564800), record("15:05:00", "E", 2, **words)
    with pytest.raises(InputError) as caught:
        read_pbs(io.StringIO(f"{good}\n{bad}\n"))
    assert str(caught.value).startswith(f"an open file, job 2.server: {key}: {said}")
    log = read_pbs(io.StringIO(f"{good}\n{bad}\n"), strict=False)
    assert (len(log), dict(log.report.skipped)) == (1, {"jobs with a bad value": 1})


def test_the_largest_numbers_of_64_bits_are_read():
    words = {"ctime": 1714564800, "Resource_List__select": f"{2**30}:ncpus={2**32}", "Resource_List__ncpus": 2**62}
    log = read_pbs(io.StringIO(record("15:05:00", "E", 1, **words) + "\n"))
    assert (log["processors"].tolist(), log["nodes"].tolist()) == ([2**62], [2**30])


def test_columns_of_pbs_are_read():
    log = read_pbs(io.StringIO(PBS))
    assert log["job"].tolist() == ["1", "2", "3", "7[1]"]
    assert (log["submit"] - NOON).tolist() == [0, 5, 6, 3960]
    assert np.array_equal(log["wait"], [60, np.nan, 3834, 10], equal_nan=True)
    assert np.array_equal(log["run"], [3600, np.nan, 60, 20], equal_nan=True)
    assert np.array_equal(log["requested"], [7200, np.nan, np.inf, np.inf], equal_nan=True)
    assert log["processors"].tolist() == [20, 1, 20, 8]
    assert log["nodes"].tolist() == [3, -1, 3, 2]
    assert log["chunks"].tolist() == [f"2*8:gpus=1:memory={4 * GB:.0f}+4", "", "2*8+4", ""]
    assert log["gpus_per_node"].tolist() == [1, 0, 0, 0]
    assert log["status"].tolist() == [1, 5, 5, 0]
    assert np.array_equal(log["cancel"] - NOON, [np.nan, 120, np.nan, np.nan], equal_nan=True)
    assert log["user"].tolist() == ["ann", "", "cy", ""]
    assert log["queue"].tolist() == ["work"] * 3 + [""]
    assert log["requested_memory"][0] == GB
    assert log["cpu_time"][0] == 1800
    assert log.report.skipped == {"records L": 1, "arrays, read as their jobs": 1}
    assert log.report.repaired.total() == 1


R = "Resource_List__"
SIZES = {
    "Cray": (
        {R + "mppwidth": 64, R + "mppnppn": 2, R + "ncpus": 1, R + "select": 1, "exec_host": "nid7/17"},
        (64, 32, "", 1),
    ),
    "Cray, uneven": (
        {R + "mppwidth": 7, R + "mppnppn": 4, R + "mppdepth": 2, "exec_host": "nid7/17"},
        (14, 2, "8+6", 1),
    ),
    "Cray, fewer than a node": ({R + "mppwidth": 3, R + "mppnppn": 4}, (3, 1, "", 1)),
    "Cray, nodes unknown": ({R + "mppwidth": 64, R + "mppdepth": 4, "exec_host": "login/0"}, (256, -1, "", 1)),
    "older Cray": ({R + "size": 128, R + "nodect": 1, "exec_host": "login1/0"}, (128, -1, "", 1)),
    "Torque": ({R + "nodes": "1:ppn=8+1:ppn=2", "exec_host": "n1/0-7+n2/0-1"}, (10, 2, "8+2", -1)),
    "Torque, as asked": ({R + "nodes": "1:ppn=8+1:ppn=2"}, (10, 2, "8+2", -1)),
    "Torque, names": ({R + "nodes": "node7:ppn=4+2:bigmem:ppn=8#excl"}, (20, 3, "2*8+4", 1)),
    "Torque, a property": ({R + "nodes": "bigmem"}, (1, 1, "", -1)),
    "Torque, shared GPUs": ({R + "nodes": "2:ppn=4:gpus=1:shared"}, (8, 2, "", -1)),
    "Torque, procs": ({R + "procs": 10}, (10, -1, "", -1)),
    "Torque, procs on hosts": (
        {R + "procs": 10, R + "nodect": 10, "exec_host": "+".join(f"n{1 + i // 6}/{i}" for i in range(10))},
        (10, 2, "6+4", -1),
    ),
    "PBS": (
        {
            R + "select": "1:ncpus=2+1:ncpus=32:ngpus=2:mem=4gb",
            R + "ncpus": 34,
            R + "nodect": 2,
            "exec_host": "a/0*2+b/0*32",
        },
        (34, 2, f"32:gpus=2:memory={4 * GB:.0f}+2", -1),
    ),
    "PBS, on one host": (
        {R + "select": "2:ncpus=4", R + "ncpus": 8, R + "nodect": 2, "exec_host": "a/0*4+a/1*4"},
        (8, 1, "", -1),
    ),
    "PBS, hosts alone": ({"exec_host": "n1/0*8+n2/0*2"}, (10, 2, "8+2", -1)),
    "PBS, whole nodes": ({R + "select": "2:ncpus=4", R + "ncpus": 8, R + "place": "scatter:excl"}, (8, 2, "", 1)),
    "PBS, whole hosts": ({R + "select": "1:ncpus=4", R + "place": "exclhost"}, (4, 1, "", 1)),
    "PBS, GPUs of the job": (
        {R + "select": "3:ncpus=4", R + "ngpus": 4, R + "mem": "6gb"},
        (12, 3, f"4:gpus=2:memory={2 * GB:.0f}+2*4:gpus=1:memory={2 * GB:.0f}", -1),
    ),
    "PBS, more CPUs than in chunks": ({R + "select": "3:ncpus=1", R + "ncpus": 10}, (10, 3, "4+2*3", -1)),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_of_pbs_are_as_they_were(name):
    words, (processors, nodes, chunks, exclusive) = SIZES[name]
    log = read_pbs(io.StringIO(record("15:05:00", "E", 1, ctime=1714564800, start=1714564800, end=1714568400, **words)))
    found = [log.get(column)[0] for column in ("processors", "nodes", "exclusive")]
    assert (*found, log["chunks"][0] if "chunks" in log else "") == (processors, nodes, exclusive, chunks)


@pytest.mark.parametrize(
    ("used", "limit", "run", "suspended"),
    [
        ("00:15:00", "00:20:00", 900, 1),
        ("00:29:58", "01:00:00", 1800, 0),  # prologue and epilogue
        ("00:19:50", "00:20:00", 1190, 1),
        ("00:00:00", "01:00:00", 1800, 0),  # not told
        ("00:31:00", "01:00:00", 1800, 0),
        ("", "01:00:00", 1800, 0),
    ],
)
def test_suspended_time_of_pbs_is_no_run_time(used, limit, run, suspended):
    about = {"ctime": 1714564800, "start": 1714564800, "end": 1714566600, R + "walltime": limit}
    log = read_pbs(io.StringIO(record("15:05:00", "E", 1, resources_used__walltime=used, **about)))
    assert log["run"].tolist() == [run]
    assert log.report.repaired.total() == suspended


def test_resources_of_pbs_that_are_not_read_are_named():
    words = {R + "software": "matlab", R + "ncpus": 2, R + "cput": "01:00:00", R + "scratch": "1gb"}
    log = read_pbs(io.StringIO("\n".join(record("15:05:00", "E", n, ctime=1714564800, **words) for n in (1, 2))))
    assert log.report.notes == (
        "resource software is not read (licences that jobs hold are not simulated; 2 jobs)",
        "resource scratch is not known, and is not read (2 jobs)",
    )


GRES = """\
JobID|Submit|Start|End|Elapsed|Timelimit|AllocCPUS|NNodes|State|AllocGRES|ReqGRES
1|2017-05-01T12:00:00|2017-05-01T12:00:00|2017-05-01T13:00:00|01:00:00|02:00:00|2|1|COMPLETED|gpu:2|gpu:2
2|2017-05-01T12:00:01|2017-05-01T12:00:01|2017-05-01T13:00:01|01:00:00|02:00:00|2|1|COMPLETED|gpu:tesla:2|gpu:tesla:2
3|2017-05-01T12:00:02|2017-05-01T12:00:02|2017-05-01T13:00:02|01:00:00|02:00:00|4|2|COMPLETED|gpu:4,craynetwork:2|gpu:2
4|2017-05-01T12:00:03|2017-05-01T12:00:03|2017-05-01T13:00:03|01:00:00|02:00:00|4|2|COMPLETED||gpu:k80:1(S:0),gpu:v100:1
5|2017-05-01T12:00:04|2017-05-01T12:00:04|2017-05-01T13:00:04|01:00:00|02:00:00|1|1|COMPLETED|7696487:1|
6|2017-05-01T12:00:05|2017-05-01T12:00:05|2017-05-01T13:00:05|01:00:00|02:00:00|1|1|COMPLETED||gpu
7|2017-05-01T12:00:06|2017-05-01T12:00:06|2017-05-01T13:00:06|01:00:00|02:00:00|1|1|COMPLETED|gpumem:9|mygpu:2
"""


def test_gpus_of_slurm_before_20_11():
    log = read_sacct(io.StringIO(GRES))
    assert log["gpus_per_node"].tolist() == [2, 2, 2, 2, 1, 1, 0]
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(cores=8, gpus=2)])])
    assert simulate(spec, log.where(slice(0, 2)), "easy").jobs["wait"].tolist() == [0, 3599]


def test_cpus_of_sacct_fill_the_first_nodes_and_gpus_are_spread():
    rows = ["JobID|Submit|Elapsed|AllocCPUS|NNodes|AllocTRES|ReqMem", "1|0|3600|10|3|cpu=10,node=3|", "2|1|60|2|1||"]
    rows += ["3|2|60|6|3|gres/gpu=4|6Gn", "4|3|60|4|3||2Gc", "5|4|60|2|3||", "6|5|60|9|3|gres/gpu=3|"]
    log = read_sacct(io.StringIO("\n".join(rows)))
    assert log["chunks"].tolist() == [
        "2*4+2",
        "",
        f"2:gpus=2:memory={6 * GB:.0f}+2*2:gpus=1:memory={6 * GB:.0f}",
        f"2:memory={4 * GB:.0f}+2*1:memory={2 * GB:.0f}",
        "",
        "",
    ]
    assert log.report.repaired == {"CPUs or GPUs not the same on all nodes: first nodes filled": 3}
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=3, cores=4)])])
    assert simulate(spec, log.where(slice(0, 2)), "fcfs").jobs["wait"].tolist() == [0, 0]
    few = read_sacct(io.StringIO("JobID|Submit|Elapsed|NCPUS|NNodes|Partition\n1|0|9|10|3|a\n2|0|9|8|1|b\n3|0|9|9|2|b"))
    assert few["chunks"].tolist() == ["2*4+2", "", "8+1"]  # as large as those of the partition are known to be


def test_suspended_time_of_sacct_is_no_run_time():
    text = "JobID|Submit|Start|End|Suspended|NCPUS\n1|0|0|1800|00:15:00|1\n2|0|0|1800||1\n3|0|0|1800|00:00:00|1\n"
    assert read_sacct(io.StringIO(text))["run"].tolist() == [900, 1800, 1800]


# The fields that 'sacct --helpformat' lists in Slurm 22.05, and those that other versions have beside them.
FIELDS = """
Account AdminComment AllocCPUS AllocNodes AllocTRES AssocID AveCPU AveCPUFreq AveDiskRead AveDiskWrite AvePages AveRSS
AveVMSize BlockID Cluster Comment Constraints ConsumedEnergy ConsumedEnergyRaw Container CPUTime CPUTimeRAW DBIndex
DerivedExitCode Elapsed ElapsedRaw Eligible End ExitCode Flags GID Group JobID JobIDRaw JobName Layout MaxDiskRead
MaxDiskReadNode MaxDiskReadTask MaxDiskWrite MaxDiskWriteNode MaxDiskWriteTask MaxPages MaxPagesNode MaxPagesTask MaxRSS
MaxRSSNode MaxRSSTask MaxVMSize MaxVMSizeNode MaxVMSizeTask McsLabel MinCPU MinCPUNode MinCPUTask NCPUS NNodes NodeList
NTasks Partition Planned PlannedCPU PlannedCPURAW Priority QOS QOSRAW Reason ReqCPUFreq ReqCPUFreqGov ReqCPUFreqMax
ReqCPUFreqMin ReqCPUS ReqMem ReqNodes ReqTRES Reservation ReservationId Start State Submit SubmitLine Suspended
SystemComment SystemCPU Timelimit TimelimitRaw TotalCPU TRESUsageInAve TRESUsageInMax TRESUsageInMaxNode
TRESUsageInMaxTask TRESUsageInMin TRESUsageInMinNode TRESUsageInMinTask TRESUsageInTot TRESUsageOutAve TRESUsageOutMax
TRESUsageOutMaxNode TRESUsageOutMaxTask TRESUsageOutMin TRESUsageOutMinNode TRESUsageOutMinTask TRESUsageOutTot UID User
UserCPU WCKey WCKeyID WorkDir
AllocGRES ReqGRES Reserved ResvCPU ResvCPURAW Extra FailedNode Licenses QOSREQ Restarts SegmentSize SLUID StdErr StdIn
StdOut
"""


def test_fields_of_sacct_that_may_change_the_result_are_named_and_so_are_unknown_ones():
    must = ["JobID", "Submit", "Elapsed", "AllocCPUS"]
    others = [name for name in FIELDS.split() if name not in must]
    known = {"TimelimitRaw": "5", "Timelimit": "5:00", "ElapsedRaw": "60", "Suspended": "0", "Elapsed": "60"}
    counts = ("NCPUS", "ReqCPUS", "AllocNodes", "NNodes", "ReqNodes", "Priority")
    values = [known.get(name, "1" if name in counts else "") for name in others]
    head, row = "|".join([*must, *others, "Colour", ""]), "|".join(["1", "0", "60", "1", *values, "blue", ""])
    assert read_sacct(io.StringIO(f"{head}\n{row}\n")).report.notes == (
        "field Colour is not known, and is not read (1 job)",
    )
    text = "JobID|Submit|Elapsed|NCPUS|Licenses|SEGMENTSIZE|JobName\n1|0|60|1|matlab:2|4|x\n2|0|60|1||4|x\n"
    assert read_sacct(io.StringIO(text)).report.notes == (
        "field Licenses is not read (licences that jobs hold are not simulated; 1 job)",
        "field SegmentSize is not read (nodes that must be near each other are chosen by the placement of the platform; "
        "2 jobs)",
    )


def test_pbs_folder_of_days_and_given_zone(tmp_path):
    lines = PBS.split("\n")
    (tmp_path / "20240501").write_text("\n".join(lines[:6]) + "\n")
    (tmp_path / "20240502.gz").write_bytes(gzip.compress("\n".join(lines[6:]).encode(), mtime=0))
    log = read_pbs(tmp_path, timezone="Europe/Paris")
    assert np.array_equal(log["submit"], read_pbs(io.StringIO(PBS))["submit"])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "no jobs"),
        ("hello\n", "line 1: must be 'MM/DD/YYYY HH:MM:SS;kind;job;key=value ...', got 'hello'"),
        ("13/45/2024 00:00:00;E;1.s;user=x\n", "line 1: must start with an instant, got '13/45/2024 00:00:00'"),
        ("05/01/2024 12:00:00;E;1.s;ctime=x end=3 start=1\n", "job 1.s: ctime: cannot read 'x'"),
    ],
)
def test_a_wrong_pbs_log_gets_one_sentence(text, sentence):
    with pytest.raises(InputError) as caught:
        read_pbs(io.StringIO(text))
    assert sentence in str(caught.value)
    if text:
        with pytest.raises(InputError, match="no jobs"):
            read_pbs(io.StringIO(text), strict=False)


FRAME = pd.DataFrame(
    {
        "when": pd.to_datetime(["2024-05-01 12:00:00", "2024-05-01 12:00:30", None]),
        "began": pd.to_datetime(["2024-05-01 12:00:10", None, None]),
        "ended": pd.to_datetime(["2024-05-01 12:01:10", None, None]),
        "limit": pd.to_timedelta(["1h", "30min", None]),
        "cores": [4, 2, 1],
        "user": ["ann", None, "bob"],
        "other": [1, 2, 3],
        "status": [1.0, np.nan, 0.0],
    }
)
NAMES = {"submit": "when", "start": "began", "end": "ended", "requested": "limit", "processors": "cores"}


def test_a_data_frame_with_names_of_its_own():
    log = read_columns(FRAME, NAMES, processors=16, name="mine")
    assert np.array_equal(log["submit"], [NOON, NOON + 30, np.nan], equal_nan=True)
    assert np.array_equal(log["run"], [60, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(log["wait"], [10, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(log["requested"], [3600, 1800, np.nan], equal_nan=True)
    assert log["processors"].tolist() == [4, 2, 1]
    assert log["user"].tolist() == ["ann", "", "bob"]
    assert log["status"].tolist() == [1, -1, 0]
    assert "other" not in log
    assert (log.name, log.processors) == ("mine", 16)


def test_a_csv_file_gives_what_the_frame_gives(tmp_path):
    FRAME.to_csv(tmp_path / "jobs.csv", index=False, sep=";")
    names = {key: value for key, value in NAMES.items() if key != "requested"}
    log = read_columns(tmp_path / "jobs.csv", names)
    frame = read_columns(FRAME, names)
    assert log.name == "jobs"
    for name in frame.table.names:
        equal_nan = frame[name].dtype.kind == "f"
        assert np.array_equal(log[name], frame[name], equal_nan=equal_nan), name


def test_time_zones_of_timestamps():
    paris = read_columns(FRAME, NAMES, timezone="Europe/Paris")
    assert paris["submit"][0] == NOON - 7200
    aware = FRAME.assign(when=FRAME["when"].dt.tz_localize("Europe/Paris"))
    assert read_columns(aware, {**NAMES})["submit"][0] == NOON - 7200
    objects = {"submit": [datetime(2024, 5, 1, 12)], "run": [timedelta(minutes=1)]}
    log = read_columns(objects, timezone="Europe/Paris")
    assert (log["submit"][0], log["run"][0], log["processors"][0]) == (NOON - 7200, 60, 1)


def test_a_workload_written_as_csv_is_read_back(tmp_path):
    log = read_sacct(io.StringIO(SACCT))
    log.table.to_csv(tmp_path / "log.csv.gz")
    copy = read_columns(tmp_path / "log.csv.gz")
    for name in copy.table.names:
        assert np.array_equal(copy[name], log[name], equal_nan=log[name].dtype.kind == "f"), name


def test_a_schedule_is_read_back_as_a_workload():
    text = "job,submit,start,end,processors,status\n1,0,5,15,2,completed\n2,1,,,4,waiting\n3,2,3,4,4,cancelled\n"
    log = read_columns(io.StringIO(text))
    assert np.array_equal(log["run"], [10, np.nan, 1], equal_nan=True)
    assert log["status"].tolist() == [1, -1, 5]


@pytest.mark.parametrize(
    ("text", "names", "sentence"),
    [
        ("", {}, "must start with a line of column names, got an empty file"),
        ("a,b\n1,2\n", {}, "missing column submit; columns: a, b"),
        ("submit,b\n1,2\n", {}, "missing column run (or start and end)"),
        ("submit,run\n", {}, "no jobs"),
        ("submit,run\n1,2,3\n", {}, "line 2: must have 2 cells, got 3"),
        ("submit,run\n1,2\nx,2\n", {}, "line 3: column 'submit': must be an instant (seconds or a timestamp), got 'x'"),
        ("submit,run,processors\n1,2,1.5\n", {}, "line 2: column 'processors': must be a whole number, got '1.5'"),
        ("submit,run\n1,2\n", {"procesors": "run"}, "'procesors'"),
        ("submit,run,cores\n1,2,3\n", {"processors": "core"}, "missing column 'core' (for processors); did you mean 'cores'?; columns: submit, run, cores"),
    ],
)  # fmt: skip
def test_a_wrong_table_gets_one_sentence(text, names, sentence):
    with pytest.raises(InputError) as caught:
        read_columns(io.StringIO(text), names)
    assert sentence in str(caught.value)


HEAD = "JobID|Submit|Start|End|Elapsed|AllocCPUS|NNodes|State|ReqTRES|AllocTRES\n"


@pytest.mark.parametrize(
    ("asked", "got", "gpus", "kinds", "said"),
    [
        ("", "cpu=4,gres/gpu:a100=2", 2, "a100", {}),
        ("cpu=4,gres/gpu=2", "cpu=4,gres/gpu:a100=2,gres/gpu=2", 2, "", {}),
        ("cpu=4,gres/gpu:a100=2,gres/gpu=2", "cpu=4,gres/gpu:a100=2,gres/gpu=2", 2, "a100", {}),
        ("gres/gpu:1g.5gb=1", "gres/gpu:1g.5gb=1", 1, "1g.5gb", {}),
        ("gres/gpu:nvidia_a100_3g.20gb=1,gres/gpu=1", "", 1, "nvidia_a100_3g.20gb", {}),
        ("", "gres/gpu=3,gres/gpu:t4=1,gres/gpu:v100=2", 3, "t4|v100", {SEVERAL: 1}),
        ("gres/shard=3", "gres/shard=3", 0.375, "", {}),
        ("gres/shard:a100=3", "", 0.375, "", {}),
        ("gres/mps=50", "gres/mps=50", 0.5, "", {}),
        ("gres/shard=12", "gres/shard=12", 2, "", {MORE: 1}),
        ("gres/shard=8", "", 1, "", {}),
        ("gres/fpga=3", "gres/fpga=3", 0, "", {}),
    ],
)
def test_types_and_shares_of_gpus(asked, got, gpus, kinds, said):
    row = f"1|2024-05-01T12:00:00|2024-05-01T12:00:01|2024-05-01T12:00:02|00:00:01|4|1|COMPLETED|{asked}|{got}\n"
    log = read_sacct(io.StringIO(HEAD + row), shares={"shard": 8})
    assert log.get("gpus_per_node", [0])[0] == gpus
    assert log.get("gpu", [""])[0] == kinds
    assert log.report.repaired == said


def test_shards_without_their_number_on_a_gpu_are_counted():
    row = "1|2024-05-01T12:00:00|2024-05-01T12:00:01|2024-05-01T12:00:02|00:00:01|4|1|COMPLETED|gres/shard=2|\n"
    log = read_sacct(io.StringIO(HEAD + row))
    assert log.report.repaired == {SHARED: 1}
    assert "gpus_per_node" not in log


def test_types_of_gpus_are_ignored_where_no_node_has_any_and_refused_where_others_have():
    row = "1|2024-05-01T12:00:00|2024-05-01T12:00:01|2024-05-01T12:00:02|00:00:01|4|1|COMPLETED|gres/gpu:a100=2|\n"
    log = read_sacct(io.StringIO(HEAD + row))
    untyped, others = (
        ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(cores=8, gpus=g)])]) for g in (2, {"t4": 2})
    )
    result = simulate(untyped, log, "easy")
    assert result.jobs["start"].tolist() == log["submit"].tolist()
    assert result.report.repaired["types of GPUs not on the platform: any GPU taken"] == 1
    refused = simulate(others, log, "easy")
    assert list(refused.report.rejected) == ["GPU of type a100 requested, batch has t4"]
