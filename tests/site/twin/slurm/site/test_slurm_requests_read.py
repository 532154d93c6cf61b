"""What the jobs of Slurm's accounting ask for, when they could start, and how that is checked against the record."""

from __future__ import annotations

import re
from math import inf
from pathlib import Path
from typing import Any

import pytest

from simmodel.cli import main
from simmodel.platform import OutageSpec
from simmodel_site.twin.slurm.site.folder import SlurmFolder, read_folder
from simmodel_site.twin.slurm.site.replayed import replay
from simmodel_site.twin.slurm.site.requests import Asking
from simmodel_site.twin.slurm.site.sbatch import SubmitLine
from tests.site.helpers.slurm_sacct import site_folder

MB = 2.0**20
HEAD = (
    "JobID|Submit|Eligible|Start|End|Elapsed|Timelimit|AllocCPUS|ReqCPUS|State|ExitCode|User|Partition|ReqTRES|"
    "AllocTRES|NodeList|Reason|JobName|SubmitLine"
)
CONF = """
ClusterName=small
SlurmctldHost=head
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
NodeName=n[1-2] CPUs=4 RealMemory=2000
NodeName=n3 CPUs=4 RealMemory=2000 Gres=gpu:2
PartitionName=work Nodes=ALL Default=YES
PartitionName=whole Nodes=n[1-2] OverSubscribe=EXCLUSIVE
"""
CPUS = CONF.replace("CR_Core_Memory", "CR_Core")


def row(job: Any, options: str, *, submit: int = 0, start: int | None = 4, run: int = 60, **given: Any) -> str:
    """Return a line of sacct; instants in seconds after noon."""

    def at(seconds: int) -> str:
        return f"2024-05-01T{12 + seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"

    cpus = given.get("cpus", 1)
    cells = {
        "JobID": job,
        "Submit": at(submit),
        "Eligible": at(given.get("eligible", submit)),
        "Start": "None" if start is None else at(start),
        "End": at(given["end"] if "end" in given else (start or 0) + run),
        "Elapsed": f"{run // 3600:02}:{run // 60 % 60:02}:{run % 60:02}",
        "Timelimit": "00:20:00",
        "AllocCPUS": given.get("got", cpus),
        "ReqCPUS": cpus,
        "State": given.get("state", "COMPLETED"),
        "ExitCode": "0:0",
        "User": "ann",
        "Partition": given.get("partition", "work"),
        "ReqTRES": given.get("want", f"cpu={cpus},node=1"),
        "AllocTRES": given.get("tres", ""),
        "NodeList": given.get("nodes", "n1"),
        "Reason": given.get("reason", "None"),
        "JobName": given.get("name", f"job{job}"),
        "SubmitLine": f"sbatch {options} run.sh",
    }
    return "|".join(str(cells[name]) for name in HEAD.split("|"))


def read(folder: Path, *rows: str, conf: str = CPUS) -> SlurmFolder:
    site_folder(folder, [], conf)
    (folder / "jobs.txt").write_text("\n".join([HEAD, *rows]) + "\n")
    return read_folder(folder)


def listed(found: SlurmFolder) -> list[str]:
    return [str(each) for each in found.unsupported]


# ---------------------------------------------------------------------- memory and GPUs


def test_jobs_for_tasks_take_their_memory_and_not_that_of_their_nodes(tmp_path: Path) -> None:
    """Two jobs of 2 CPUs and 800 MB run beside each other on a node of 2000 MB, as they did."""
    got = {"cpus": 2, "want": "cpu=2,mem=800M,node=1", "tres": "cpu=2,mem=800M,node=1"}
    found = read(tmp_path, row(1, "-n 2 --mem=800", **got), row(2, "-n 2 --mem=800", **got), conf=CONF)
    assert [job.memory_per_node for job in found.jobs] == [800 * MB, 800 * MB]
    assert found.report().splitlines()[-2:] == [
        "recorded placements: 2 of 2 get here what they got there",
        "everything is expressed",
    ]
    assert replay(found).jobs["simulated"].tolist() == [3.0, 3.0]  # at the first turn of the main loop


@pytest.mark.parametrize(
    ("options", "want", "tres", "nodes", "shape", "more"),
    [
        ("-n 6 --mem=800", "cpu=6,mem=800M,node=1", "cpu=6,mem=1600M,node=2", "n[1-2]", (None, 6, 800), {}),
        ("-n 6 --mem-per-cpu=100", "cpu=6,mem=600M,node=1", "cpu=6,mem=600M,node=2", "n[1-2]", (None, 6, 0), "100"),
        ("-N 2 --mem=0", "cpu=2,mem=4000M,node=2", "cpu=2,mem=4000M,node=2", "n[1-2]", (2, 2, 0), {"mem": "0"}),
        # asked for in the script: by node, as it grew with the nodes; by CPU, as it did not; all, as it is all
        ("", "cpu=6,mem=700M,node=1", "cpu=6,mem=1400M,node=2", "n[1-2]", (None, 6, 700), {}),
        ("", "cpu=6,mem=600M,node=1", "cpu=6,mem=600M,node=2", "n[1-2]", (None, 6, 0), "100"),
        ("", "cpu=2,mem=2000M,node=1", "cpu=2,mem=2000M,node=1", "n1", (None, 2, 0), {"mem": "0"}),
        # the record comes before the submit line, which an update or a plug-in may have changed
        ("-n 2 --mem=500", "cpu=2,mem=900M,node=1", "cpu=2,mem=900M,node=1", "n1", (None, 2, 0), "450"),
        ("-N 2 -n 5", "cpu=5,mem=1G,node=2", "cpu=5,mem=1G,node=2", "n[1-2]", (None, 5, 512), {"nodes": "2"}),
        ("-N 1-2 -n 5", "cpu=5,node=1", "cpu=5,node=2", "n[1-2]", (None, 5, 0), {"nodes": "1-2"}),
        (
            "-n 2 -c 2 --ntasks-per-node=1",
            "cpu=4,node=2",
            "cpu=4,node=2",
            "n[1-2]",
            (2, 4, 0),
            {"ntasks-per-node": "1"},
        ),
        ("-n 3 -c 2", "cpu=6,node=1", "cpu=6,node=2", "n[1-2]", (None, 6, 0), {"cpus-per-task": "2"}),
    ],
)
def test_memory_and_cores_are_read_as_they_were_asked_for(
    options: str, want: str, tres: str, nodes: str, shape: tuple[int | None, int, float], more: Any, tmp_path: Path
) -> None:
    cpus = int(tres.partition("cpu=")[2].partition(",")[0])
    found = read(tmp_path, row(1, options, cpus=cpus, want=want, tres=tres, nodes=nodes), conf=CONF)
    job = found.jobs[0]
    assert (job.nodes, job.processors, job.memory_per_node / MB) == shape
    words = {"mem-per-cpu": more} if isinstance(more, str) else more
    assert job.options == " ".join(f"--{name}={value}" for name, value in words.items())
    assert (found.placed, found.agreeing) == (1, 1)


@pytest.mark.parametrize(
    ("options", "tres", "gpus", "more"),
    [
        ("--gres=gpu:2", "", 2, ""),
        ("--gpus=2", "", 1, "--gpus=2"),
        ("-N 1 --gpus=2", "", 2, ""),
        ("-G a100:1", "", 1, "--gpus=1 --gres=gpu:a100:0"),
        ("-n 2 --gpus-per-task=1", "", 1, "--gpus-per-task=1"),
        ("--gpus-per-node=1", "", 1, ""),
        ("--gpus=2 --ntasks-per-gpu=1", "", 1, "--gpus=2"),
        ("", "gres/gpu=2", 2, ""),
        ("", "gres/gpu:a100=1", 1, ""),
        ("--gres=gpu:1", "gres/gpu=2", 2, ""),
        ("", "", 0, ""),
    ],
)
def test_gpus_are_those_of_the_accounting_or_of_the_submit_line(options: str, tres: str, gpus: int, more: str) -> None:
    line = {"processors": 1, "requested_processors": 1, "node_list": "n3", "requested_tres": "cpu=1,node=1"}
    line["allocated_tres"] = f"cpu=1,node=1,{tres}".rstrip(",")
    asking = Asking(line, SubmitLine.of(f"sbatch {options} run.sh").values, {})
    assert asking.shape()["gpus_per_node"] == gpus
    assert " ".join(f"--{name}={value}" for name, value in asking.options.items()) == more
    assert asking.doubts == (["other GPUs than in the submit line"] if options and tres else [])


def test_gpus_that_nobody_tells_are_counted(tmp_path: Path) -> None:
    """On n3 a script may have asked for GPUs; on n1 there are none, and where one job has them all are told."""
    rows = [row(1, "-n 1", nodes="n3"), row(2, "--gres=gpu:1", nodes="n3"), row(3, "-n 1")]
    found = read(tmp_path, *rows)
    assert [job.gpus_per_node for job in found.jobs] == [0, 1, 0]
    assert listed(found) == [
        "jobs: on nodes with GPUs, which the accounting does not count: 1 (AccountingStorageTRES lacks gres/gpu: what "
        "a script asks for is not known)"
    ]
    rows = [row(1, "-n 1", nodes="n3"), row(2, "", nodes="n3", tres="cpu=1,gres/gpu=1")]
    assert listed(read(tmp_path, *rows)) == []


def test_jobs_of_a_partition_for_whole_nodes_get_them(tmp_path: Path) -> None:
    """It shares its nodes with another one: job 2 waits for a node of its own, although 3 CPUs of n1 are free."""
    rows = [
        row(1, "-n 1 -w n1", run=600, nodes="n1"),
        row(2, "-p whole -n 1", partition="whole", got=4, nodes="n2", run=600, start=5, tres="cpu=4,node=1"),
        row(3, "-p whole -n 1", partition="whole", got=4, nodes="n2", run=60, start=610, tres="cpu=4,node=1"),
    ]
    found = read(tmp_path, *rows)
    assert [job.exclusive for job in found.jobs] == [False, True, True]
    assert (found.agreeing, listed(found)) == (3, [])
    assert replay(found).jobs["simulated"][2] > 600


# ---------------------------------------------------------------------- the record


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ([row(1, "-n 3", cpus=3), row(2, "-n 3", cpus=3)], "job 2: recorded where too little is free here: on n1"),
        ([row(1, "-n 9", cpus=9)], "job 1: recorded where too little is free here: on n1"),
        ([row(1, "-N 2", cpus=2)], "job 1: recorded with other CPUs than here: 2, 1 here"),
        ([row(1, "-n 1", nodes="n9")], "job 1: recorded where too little is free here: on n9"),
        (
            [row(1, "-n 2 --mem=500", cpus=2, tres="cpu=3,mem=500M,node=1")],
            "job 1: recorded with other CPUs than here: 3, 2 here",
        ),
    ],
)
def test_what_was_recorded_and_is_impossible_here_is_named(rows: list[str], named: str, tmp_path: Path) -> None:
    found = read(tmp_path, *rows)
    assert found.placed == len(rows)
    assert found.agreeing == len(rows) - 1
    assert [text for text in listed(found) if text.startswith(named)], listed(found)
    assert "everything is expressed" not in found.report()


def test_jobs_that_follow_each_other_within_a_second_are_possible(tmp_path: Path) -> None:
    found = read(tmp_path, row(1, "-n 4", cpus=4, run=10), row(2, "-n 4", cpus=4, start=14))
    assert (found.placed, found.agreeing) == (2, 2)


def test_rows_that_never_started_do_not_start_and_end_no_replay(tmp_path: Path) -> None:
    """One was rejected, one was cancelled in the queue, as slurmctld writes that, and one as Slurm 21 does."""
    nowhere = {"nodes": "None assigned", "run": 0, "cpus": 4}
    rows = [
        row(1, "-p side -w n9", submit=0, start=0, state="FAILED", **nowhere),
        row(2, "-n 4", submit=0, start=60, state="CANCELLED by 7", **nowhere),
        row(3, "-n 4", submit=1, start=None, end=90, state="CANCELLED by 7", **nowhere),
        row(4, "-n 4", submit=2, start=6, cpus=4, run=600),
    ]
    found = read(tmp_path, *rows)
    lives = [(job.id, job.cancel, job.run) for job in found.jobs]
    assert lives == [(2, 60.0, None), (3, 90.0, None), (4, None, 600.0)]
    assert "3 jobs submitted from 2024-05-01T12:00:00 to 2024-05-01T12:00:02, 1 of which have started" in found.report()
    assert listed(found) == ["jobs: rejected at their submission: 1 (left out)"]
    told = replay(found)
    assert (told.beyond, told.departures) == (0, ())


def test_a_job_that_can_never_start_is_named_and_the_others_are_replayed(tmp_path: Path, capsys: Any) -> None:
    """It was recorded on more GPUs than there are; another one waits for it."""
    rows = [
        row(1, "--gres=gpu:3", nodes="n3"),
        row(2, "-n 1", submit=5, start=9),
        row(3, "-n 1 -d afterok:1", submit=6, start=70, reason="Dependency", eligible=64),
    ]
    read(tmp_path, *rows)
    assert main(["slurm", "replay", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "never start in the simulation, left out of the means: 2 jobs: 1, 3" in told
    assert main(["slurm", "read", str(tmp_path)]) == 0
    assert "job 1: recorded where too little is free here: on n3" in capsys.readouterr().out


def test_chains_after_failures_run_the_right_way_round(tmp_path: Path) -> None:
    """Job 1 failed: the job after its success never ran, the one after its failure did."""
    rows = [
        row(1, "-n 1", state="FAILED"),
        row(2, "-d afterok:1", submit=1, start=None, end=70, run=0, nodes="None assigned", state="CANCELLED"),
        row(3, "-d afternotok:1", submit=2, start=66, eligible=64),
    ]
    found = replay(read(tmp_path, *rows))
    assert found.jobs["job"].tolist() == [1, 3]
    assert found.beyond == 0


# ---------------------------------------------------------------------- when they could start


def test_holds_and_begin_times_are_those_that_slurm_tells(tmp_path: Path) -> None:
    """``Reason`` says why a job was not eligible; without it that is named."""
    later = {"submit": 0, "eligible": 300, "start": 302}
    rows = [
        row(1, "-n 1", reason="JobHeldUser", **later),
        row(2, "-H", reason="JobHeldUser", **later),
        row(3, "-n 1", reason="BeginTime", **later),
        row(4, "-n 1", **later),
        row(5, "-n 1", reason="JobHeldAdmin", start=None, run=0, end=99, state="CANCELLED", nodes="None assigned"),
    ]
    lines = "\n".join([HEAD, *rows]).replace("12:00:00|2024-05-01T12:00:00|None", "12:00:00|Unknown|None")
    site_folder(tmp_path, [], CPUS)
    (tmp_path / "jobs.txt").write_text(lines)
    found = read_folder(tmp_path)
    held, begins = "--hold=now+300", "--begin=now+300"
    assert [job.options for job in found.jobs] == [held, held, begins, begins, "--hold"]
    assert listed(found) == [
        "job 4: eligible after its submission (a begin, hold or dependency that is not told: as if begun then)"
    ]
    assert replay(found).beyond == 0


def test_jobs_of_one_name_run_one_after_the_other_if_they_ask_for_it(tmp_path: Path) -> None:
    """Each waits for those of its name and user before it, also those that do not ask for it."""
    one = "-J sweep --dependency=singleton"
    rows = [
        row(1, "-J sweep", name="sweep"),
        row(2, one, submit=1, name="sweep", start=64),
        row(3, "-n 1 --dependency=singleton,afterany:1", submit=2, name="other"),
        row(4, one, submit=3, name="sweep", start=124),
    ]
    found = read(tmp_path, *rows)
    assert [[each.job for each in job.dependencies] for job in found.jobs] == [[], [1], [1], [2]]
    assert listed(found) == []
    starts = replay(found).jobs["simulated"]
    assert starts[1] >= starts[0] + 60
    assert starts[-1] >= starts[1] + 60
    bare = read(tmp_path, row(1, "--dependency=singleton", name=""))
    assert listed(bare) == ["job 1: --dependency=singleton (not modelled)"]


def test_the_runs_of_a_requeued_job_follow_each_other(tmp_path: Path) -> None:
    """The first was stopped after 50 s; the second may begin 121 s later, and has its place in the order."""
    rows = [
        row(1, "-n 4 -w n1", cpus=4, run=50, state="REQUEUED"),
        row(1, "-n 4 -w n1", cpus=4, submit=54, eligible=175, start=176, run=80, reason="BeginTime"),
        row(2, "-n 1 -d afterok:1", submit=5, eligible=256, start=257, reason="Dependency"),
    ]
    found = read(tmp_path, *rows)
    first, second, after = found.recorded
    assert (first.job.id, first.job.run, second.job.id, second.job.run) == ("1 (run 1)", 50.0, 1, 80.0)
    assert (second.job.submit, second.start) == (54.0, 176.0)
    assert second.job.options == "--nodelist=n1 --begin=now+121 --requeued=1"
    assert [each.job for each in after.job.dependencies] == [1]
    assert "2 jobs submitted" in found.report()
    told = replay(found)
    assert (told.beyond, told.departures) == (0, ())


def test_nodes_are_away_when_slurm_says_so(tmp_path: Path) -> None:
    """n1 and n3 are away: job 1 gets n2, and job 2 waits until one is back."""
    day = "2024-05-01T"
    events = [
        "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User",
        f"c||{day}11:00:00|Unknown||Cluster Registered TRES|",
        f"c|n[1,3]|{day}12:00:01|{day}12:03:20|DRAIN|x|root",
        f"c|n2|{day}12:00:02|{day}12:00:02|DOWN||",
    ]
    (tmp_path / "events.txt").write_text("\n".join(events))
    rows = [row(1, "-N 1 -n 4", submit=2, cpus=4, nodes="n2", run=600), row(2, "-n 4", submit=3, cpus=4, start=201)]
    found = read(tmp_path, *rows)
    away = [OutageSpec(at=1, until=200, partition="work", nodes=(name,), kind="drain") for name in ("n1", "n3")]
    assert list(found.described.spec.outages) == away
    assert "events.txt" in found.read
    told = replay(found)
    assert (told.beyond, told.departures) == (0, ())
    assert told.jobs["simulated"][1] >= 200


def test_the_log_tells_holds_of_whole_arrays(tmp_path: Path) -> None:
    day = "2024-05-01T12:"
    lines = (
        f"[{day}00:30.000] sched: _hold_job_rec: hold on JobId=7_* by uid 0",
        f"[{day}00:40.000] sched: _hold_job_rec: hold on JobId=7_1(8) by uid 0",
        f"[{day}02:00.000] sched: _release_job_rec: release hold on JobId=7_* by uid 0",
        f"[{day}02:10.000] sched: _release_job_rec: release hold on JobId=7_1(8) by uid 0",
    )
    (tmp_path / "slurmctld.log").write_text("\n".join(lines))
    rows = [row(f"7_{task}", "-a 1-2 -n 1", start=200, eligible=120) for task in (1, 2)]
    found = read(tmp_path, *rows)
    assert [re.findall("--hold=(\\S+)", job.options) for job in found.jobs] == [["now+40,now+130"], ["now+30,now+120"]]


def test_failures_of_nodes_of_which_nothing_else_tells_are_counted(tmp_path: Path) -> None:
    failed = row(1, "-n 1", state="NODE_FAIL")
    named = "jobs: stopped by the failure of a node, which was away then: 1 (since when and until when is not told"
    assert [text.startswith(named) for text in listed(read(tmp_path, failed))] == [True]
    (tmp_path / "events.txt").write_text("NodeName|TimeStart|TimeEnd\nn1|2024-05-01T12:01:04|2024-05-01T13:00:00\n")
    assert listed(read_folder(tmp_path)) == []


def test_the_log_of_slurmctld_tells_drains_and_holds(tmp_path: Path) -> None:
    """The log tells a drain from its order on, events from when the node is empty. Job 2 is held from 6 s to 300 s."""
    day = "2024-05-01T12:"
    (tmp_path / "events.txt").write_text(
        f"NodeName|TimeStart|TimeEnd\nn1|{day}01:00|{day}03:20\nn2|{day}06:00|{day}07:00\n"
    )
    lines = [
        "00:01.500] update_node: node n1 state set to DRAINING",
        "00:01.600] update_node: node n1 state set to DRAINING",
        "00:06.000] sched: _hold_job_rec: hold on JobId=2 by uid 0",
        "03:20.250] update_node: node n1 state set to IDLE",
        "05:00.000] sched: _release_job_rec: release hold on JobId=2 by uid 0",
        "20:00.000] update_node: node n9 state set to DOWN",
        "20:00.000] update_node: node n3 state set to IDLE",
        "30:00.000] update_node: node n3 state set to DOWN*",
        "29:00.000] sched: _hold_job_rec: hold on JobId=3 by uid 0",
    ]
    (tmp_path / "slurmctld.log").write_text("".join(f"[{day}{each}\n" for each in lines))
    (tmp_path / "slurmd.log").write_text(f"[{day}00:00.000] slurmd started\n")
    rows = [
        row(1, "-N 2 -n 8", submit=2, cpus=8, nodes="n[2-3]", run=100),
        row(2, "-N 1 -n 4", submit=5, eligible=300, start=300, cpus=4, reason="Priority"),
        row(3, "-N 1 -n 4", submit=1700, start=None, end=2500, state="CANCELLED", nodes="None assigned", run=0),
    ]
    found = read(tmp_path, *rows)
    away = {(each.nodes[0], each.at, each.until) for each in found.described.spec.outages}
    assert away == {("n1", 1.5, 200.25), ("n2", 360.0, 420.0), ("n3", 1800.0, inf)}
    held = ["--nodes=2", "--hold=now+1,now+295", "--hold=now+40,now+31536000"]
    assert [job.options for job in found.jobs] == held
    assert {"slurmctld.log", "events.txt"} <= set(found.read)
    assert found.passed_over == ("slurmd.log",)
    told = replay(found)
    assert (told.beyond, told.departures) == (0, ())


# ---------------------------------------------------------------------- files


def test_strange_files_are_passed_over_and_named(tmp_path: Path) -> None:
    strange = {
        "commands.csv": "time,command\n1.0,scontrol update NodeName=n1 State=DRAIN\n2.0,scontrol show node\n",
        "submissions.csv": "job,submitted,seconds,options\n1,0.0,5,-n 1\n",
        "package.json": '{"name": "x"}',
        "notes.md": "# How to\n\nscontrol create reservation ReservationName=a Nodes=n1\nSwitchName=s1\n",
        "broken.json": "{",
        "empty.txt": "",
        "picture.png": "\x89PNG\r\n",
        "queue.txt": "JOBID|PARTITION|ST\n1|work|R\n",
    }
    for name, text in strange.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "archive.gz").write_bytes(b"\x1f\x8bbroken")
    (tmp_path / "database.db").write_bytes(b"SQLite format 3\0")
    found = read(tmp_path, row(1, "-n 1"))
    assert {*strange, "archive.gz", "database.db"} <= set(found.passed_over)
    assert set(found.read) == {"slurm.conf", "jobs.txt"}
    assert re.search("passed over, as not read .*: .*commands.csv.*submissions.csv", found.report())


def test_submit_lines_beside_the_accounting_are_read_where_it_has_none(tmp_path: Path) -> None:
    bare = "\n".join(line.rpartition("|")[0] for line in [HEAD, row(1, "", cpus=2)])
    site_folder(tmp_path, [], CONF)
    (tmp_path / "jobs.txt").write_text(bare)
    (tmp_path / "submissions.csv").write_text("job,submitted,seconds,options\n1,0.0,5,-n 2 --exclusive\n")
    found = read_folder(tmp_path)
    assert found.jobs[0].exclusive
    assert "submissions.csv" in found.read
    assert found.recorded[0].start < inf
