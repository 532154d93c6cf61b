"""A folder of a site's own files as platform, policy and workload."""

from __future__ import annotations

import re
from math import inf
from pathlib import Path

import pytest

from simmodel import InputError, load_workload, simulate
from simmodel.platform import read_toml
from simmodel.work.job import Dependency
from simmodel_site.twin.described import Notes
from simmodel_site.twin.slurm.site.accounts import read_dump, read_qos
from simmodel_site.twin.slurm.site.folder import read_folder
from tests.helpers.data_files import data_file
from tests.site.helpers.slurm_sacct import CONF, HEAD, sacct_line, sacct_of, site_folder

RUNS = ("defaults", "fast", "tiers", "factors", "shapes", "preempt", "tree")

DUMP = """
# To edit this file start with a cluster line for the new cluster
# Cluster - 'cluster_name':MaxNodesPerJob=50
Cluster - 'small':Fairshare=1:QOS='normal'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'physics':Description='physics: all':Organization='science':Fairshare=10:GrpTRES=cpu=64,mem=2G
Parent - 'physics'
Account - 'theory':Description='theory':Organization='science':Fairshare=parent:GrpWall=90:MaxJobsAccrue=3
Parent - 'theory'
User - 'ann':DefaultAccount='theory':Fairshare=3:MaxJobs=2:MaxWallDurationPerJob=60:QOS='+normal,urgent'
User - 'bob':DefaultAccount='physics':Fairshare=1:Partition='fast'
"""
QOS = """\
Name|Priority|GraceTime|Preempt|PreemptExemptTime|PreemptMode|Flags|UsageFactor|GrpTRES|MaxWall|MaxTRESPU|MaxJobsPU
normal|0|00:00:00|||cluster||1.000000||||
urgent|100|00:00:30|normal|00:02:00|requeue|DenyOnLimit,NoReserve|2.000000|cpu=16|1-00:00:00|cpu=8,gres/gpu=1|4
"""
SHARES = """Account|User|RawShares|NormShares|RawUsage|EffectvUsage|FairShare
root|||0.000000|900|1.000000|
 physics||10|0.9|900|1.0|
  theory|ann|3|0.75|600|0.66|0.5
"""


def run_of(name: str) -> Path:
    return data_file(f"slurm/runs/{name}/slurm.conf").parent


def listed(folder: Path) -> list[str]:
    return [str(each) for each in read_folder(folder).unsupported]


# ---------------------------------------------------------------------- jobs


@pytest.mark.few(5)
@pytest.mark.parametrize("name", RUNS)
def test_the_two_forms_of_accounting_make_the_same_jobs(name: str, tmp_path: Path) -> None:
    """jobcomp/filetxt beside a table of submit lines, and sacct."""
    run = run_of(name)
    for file in ("slurm.conf", "topology.conf"):
        if (run / file).exists():
            (tmp_path / file).write_text((run / file).read_text())
    (tmp_path / "sacct.txt").write_text(sacct_of(run))
    one, other = read_folder(run), read_folder(tmp_path)
    assert one.recorded == other.recorded
    assert one.described.policy == other.described.policy
    assert [str(each) for each in one.unsupported] == [str(each) for each in other.unsupported]
    assert {"slurm.conf", "jobcomp.txt", "submissions.csv"} < set(one.read)
    assert "slurmctld.log.gz" in one.passed_over


@pytest.mark.parametrize("name", ["defaults", "factors"])
def test_jobs_are_as_they_were_submitted(name: str) -> None:
    found = read_folder(run_of(name))
    assert found.unsupported == ()
    assert "80 jobs submitted from 2026-11-23T04:13:07" in found.report()
    assert found.report().endswith("everything is expressed")
    jobs = {each.job.id: each for each in found.recorded}
    first = jobs[1].job
    assert (first.nodes, first.requested) == {"defaults": (2, 120.0), "factors": (1, 180.0)}[name]
    assert jobs[1].start == first.submit + 1 == 788.0  # at 04:13:08
    assert {job.queue for job in found.jobs} == {"defaults": {None}, "factors": {"a", "b"}}[name]
    assert len({job.priority for job in found.jobs}) == {"defaults": 1, "factors": 4}[name]


def test_options_of_the_submit_line_are_expressed(tmp_path: Path) -> None:
    lines = [
        sacct_line(1, "-N 2 -p fast --nice=7 -L matlab:2", more="fast|"),
        sacct_line(2, "-d afterok:1,after:3", submit=5),
        sacct_line("3_0", "-a 0-1", submit=6),
        sacct_line("3_1", "-a 0-1", submit=6),
        sacct_line(4, "-n 6 --ntasks-per-node=3 --nice", submit=7),
        sacct_line(5, "-d afterany:99", submit=8),
    ]
    found = read_folder(site_folder(tmp_path, lines))
    one, two, *_, four, five = found.jobs
    assert (one.nodes, one.queue, one.priority, dict(one.consumables)) == (2, "fast", -7.0, {"matlab": 2.0})
    assert two.dependencies == (
        Dependency("1", after="success"),
        *(Dependency(f"3_{i}", after="start") for i in (0, 1)),
    )
    assert (four.nodes, four.priority) == (2, -100.0)
    assert five.dependencies == ()
    assert listed(tmp_path) == [
        "jobs: that depend on jobs which the log does not have: 1 (they do not wait for these)",
    ]


def test_options_of_the_policy_come_with_the_job(tmp_path: Path) -> None:
    """What sacct tells of constraints, memory and eligible times counts also where the submit line lacks it."""
    site_folder(tmp_path, [])
    head = "JobID|Submit|Eligible|Start|End|ReqCPUS|ReqTRES|Constraints|Partition|SubmitLine"
    times = "2024-05-01T12:00:00|2024-05-01T12:01:30|2024-05-01T12:02:00|2024-05-01T12:03:00"
    lines = [
        f"1|{times}|4|cpu=4,mem=400M||batch|sbatch -n4 --exclusive --switches=1@60 -w n1 run.sh",
        f"2|{times}|2|cpu=2,mem=600M|big|batch|sbatch -n2 --mem-per-cpu=300 run.sh",
        f"3|{times}|2|cpu=2,mem=500M||batch|sbatch -N2 --mem=250 -b 12:01:30 run.sh",
        f"4_1|{times}|1|cpu=1||batch|sbatch -a 0-3%2 -p batch,fast run.sh",
        f"5|{times}|1|cpu=1||batch|sbatch --hold -x n[3-4] run.sh",
    ]
    (tmp_path / "jobs.txt").write_text("\n".join([head, *lines]))
    found = {job.id: job for job in read_folder(tmp_path).jobs}
    assert found["1"].exclusive
    assert {id: job.options for id, job in found.items()} == {
        "1": "--switches=1@60 --nodelist=n1 --mem-per-cpu=100 --begin=now+90",
        "2": "--mem-per-cpu=300 --constraint=big --begin=now+90",
        "3": "--begin=now+90",
        "4_1": "--partition=batch,fast --array=0-3%2",
        "5": "--hold=now+90 --exclude='n[3-4]'",
    }
    assert (found["2"].memory_per_node, found["3"].memory_per_node) == (0.0, 250 * 2.0**20)
    assert listed(tmp_path) == [
        "jobs 1, 2: eligible after its submission (a begin, hold or dependency that is not told: as if begun then)"
    ]


def test_a_folder_without_nodes_is_named_with_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "jobs.txt").write_text("JobID|Submit|Start\n")
    text = f"{tmp_path}: no nodes: give 'scontrol show node' or a slurm.conf with NodeName lines; read here: "
    with pytest.raises(InputError, match=re.escape(text + "no file of Slurm")):
        read_folder(tmp_path)
    for name in ("tiers", "fast"):
        (tmp_path / name).mkdir()
    with pytest.raises(InputError, match=r"no file of Slurm; folders inside are not read: fast, tiers$"):
        read_folder(tmp_path)
    (tmp_path / "slurm.conf").write_text("ClusterName=c\n")
    with pytest.raises(InputError, match=re.escape(text + "slurm.conf")):
        read_folder(tmp_path)


def test_the_components_of_a_job_have_their_own_options(tmp_path: Path) -> None:
    """Each part of the submit line is that of one component; a job that depends on the whole waits for all."""
    site_folder(tmp_path, [])
    head = "JobID|Submit|Start|End|Timelimit|ReqCPUS|State|Partition|SubmitLine"
    times = "2024-05-01T12:00:00|2024-05-01T12:01:00|2024-05-01T12:03:00|00:05:00|2|COMPLETED|batch"
    line = "sbatch -N1 -w n1 : -N2 -x n4 run.sh -w n2"
    lines = [f"9+0|{times}|{line}", f"9+1|{times}|{line}", f"11|{times}|sbatch -d afterok:9 run.sh"]
    (tmp_path / "jobs.txt").write_text("\n".join([head, *lines]))
    found = {str(job.id): job for job in read_folder(tmp_path).jobs}
    assert [(found[name].nodes, found[name].options) for name in ("9+0", "9+1")] == [
        (1, "--nodelist=n1 --hetjob=2"),
        (2, "--exclude=n4 --hetjob=2"),
    ]
    assert [each.job for each in found["11"].dependencies] == ["9+0", "9+1"]
    assert listed(tmp_path) == []


def test_deadlines_come_with_the_job(tmp_path: Path) -> None:
    """A job that missed its deadline would run as long as its limit; if that is not told, it is cancelled as it was."""
    site_folder(tmp_path, [])
    head = "JobID|Submit|Start|End|Timelimit|ReqCPUS|State|Partition|SubmitLine"
    times = "2024-05-01T12:00:00|Unknown|2024-05-01T12:03:00|00:05:00|1|DEADLINE|batch"
    lines = [
        f"1|{times}|sbatch --deadline=2024-05-01T12:06:40 run.sh",
        f"2|{times}|sbatch --deadline now+400 run.sh",
        f"3|{times}|sbatch run.sh",
        f"4|{times}|sbatch --deadline=noon run.sh",
    ]
    (tmp_path / "jobs.txt").write_text("\n".join([head, *lines]))
    found = {str(job.id): (job.options, job.run, job.cancel) for job in read_folder(tmp_path).jobs}
    same = ("--deadline=now+400", 300.0, None)
    assert found == {"1": same, "2": same, "3": ("", None, 180.0), "4": ("", None, 180.0)}
    assert listed(tmp_path) == ["job 4: --deadline=noon (not modelled)"]


def test_jobs_that_did_not_run_as_others(tmp_path: Path) -> None:
    """One was cancelled while it waited, one runs, one waits, one was requeued, one has a partition that is gone."""
    lines = [
        "1|2024-05-01T12:00:00|Unknown|2024-05-01T12:05:00|00:10:00|1|CANCELLED by 7|ann|batch||sbatch run.sh",
        "2|2024-05-01T12:00:00|2024-05-01T12:01:00|Unknown|00:10:00|1|RUNNING|ann|batch||sbatch run.sh",
        "3|2024-05-01T12:00:00|Unknown|Unknown|00:10:00|1|PENDING|ann|batch||sbatch run.sh",
        "4|2024-05-01T12:00:00|2024-05-01T12:01:00|2024-05-01T12:02:00|00:10:00|1|PREEMPTED|ann|batch||sbatch run.sh",
        "4|2024-05-01T12:02:00|2024-05-01T12:06:00|2024-05-01T12:09:00|00:10:00|1|COMPLETED|ann|batch||sbatch run.sh",
        sacct_line(5, more="old|"),
        sacct_line(6, run=-60),
    ]
    found = read_folder(site_folder(tmp_path, lines))
    one, two, first, four, six = found.recorded
    assert six.job.run == 600.0
    assert (one.job.cancel, one.job.run, one.start) == (300.0, None, inf)
    assert (two.job.run, two.start) == (600.0, 60.0)
    assert (first.job.id, first.job.submit, first.start, first.job.run) == ("4 (run 1)", 0.0, 60.0, 60.0)
    assert (four.job.id, four.job.submit, four.start, four.job.run) == (4, 120.0, 360.0, 180.0)
    assert [each.job for each in four.job.dependencies] == ["4 (run 1)"]
    assert first.job.options == four.job.options == "--requeued=4"
    assert listed(tmp_path) == [
        "job 5: partition=old (left out: the site has no such partition)",
        "jobs: still running: 1 (as long as their limit)",
        "jobs: still waiting: 1 (left out: when they run is not known)",
        "jobs: requeued: 1 (when they were)",
        "jobs: ended, but with a run time that is negative or not told: 1 (as long as their limit)",
    ]


def test_a_log_without_submit_lines_says_what_is_not_known(tmp_path: Path) -> None:
    site_folder(tmp_path, [])
    (tmp_path / "jobs.txt").write_text(
        "JobID|Submit|Start|End|ReqCPUS|Constraints|Reservation\n"
        "7|2024-05-01T12:00:00|2024-05-01T12:01:00|2024-05-01T12:02:00|1|big&fast|course\n"
    )
    assert listed(tmp_path) == [
        "job 7: --reservation=course (the site tells of no such reservation)",
        "jobs: without submit lines (what jobs ask for beyond nodes, CPUs, memory, GPUs and time is not known: ask "
        "sacct for SubmitLine)",
    ]


def test_the_platform_and_the_workload_are_written_as_simmodel_reads_them(tmp_path: Path) -> None:
    found = read_folder(site_folder(tmp_path, [sacct_line(i, "-N 2 --nice=3", submit=60 * i) for i in range(1, 5)]))
    found.platform_to_toml(tmp_path / "site.toml")
    found.workload_to_csv(tmp_path / "jobs.csv")
    spec, log = read_toml(tmp_path / "site.toml"), load_workload(tmp_path / "jobs.csv")
    assert spec == found.described.spec
    assert (log["nodes"].tolist(), log["priority"].tolist(), log["wait"].tolist()) == ([2] * 4, [-3] * 4, [0] * 4)
    policy = found.described.policy
    own, again = (simulate(spec, jobs, policy).jobs["start"] for jobs in (found.jobs, log))
    assert own.tolist() == again.tolist()


# ---------------------------------------------------------------------- files


def test_what_is_told_by_several_files_is_taken_once(tmp_path: Path) -> None:
    """slurm.conf comes before reports; a report tells what slurm.conf does not."""
    folder = site_folder(tmp_path, [])
    (folder / "jobs.txt").unlink()
    (folder / "a-partition.txt").write_text("PartitionName=old Nodes=n1 MaxTime=UNLIMITED State=UP\n")
    (folder / "b-reservation.txt").write_text(
        "ReservationName=course StartTime=2030-01-01T08:00:00 EndTime=2030-01-01T12:00:00 Nodes=n1 Users=ann Flags=\n"
    )
    (folder / "notes.md").write_text("# of us\n")
    found = read_folder(folder)
    assert [each.name for each in found.site.partitions or ()] == ["batch", "fast"]
    assert [each.name for each in found.described.spec.reservations] == ["course"]
    assert found.read == ("slurm.conf", "b-reservation.txt")
    assert found.passed_over == ("a-partition.txt", "notes.md")
    told = "passed over, as not read or told by these already: a-partition.txt, notes.md"
    assert found.report().splitlines()[1] == told
    assert "workload: none; give the output of sacct" in found.report()


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"slurm.conf": "ClusterName=c\n"}, "no nodes: give 'scontrol show node'"),
        ({"sacct.txt": HEAD + "\n" + sacct_line(1)}, "the accounting is told twice"),
        ({"more.conf": CONF}, "settings are told twice"),
        ({"jobs.txt": HEAD + "\n1|soon"}, "line 2: must have 11 fields, got 2"),
        ({"dump.cfg": DUMP, "old.cfg": DUMP}, "sacctmgr dump is told twice"),
        ({"dump.cfg": "Cluster - 'c'\nUsers - 'ann'\n"}, "line 2: must be a line of sacctmgr dump"),
        ({"dump.cfg": "Cluster - 'c'\nAccount - 'a':MaxJobs=many\n"}, "line 2, account a, MaxJobs: must be a number"),
        ({"qos.txt": QOS.replace("2.000000", "two")}, "line 3: UsageFactor: must be a number, got 'two'"),
        ({"qos.txt": QOS + "x|1\n"}, "line 4: must have 12 fields, got 2"),
        ({"shares.txt": SHARES.replace("600", "most")}, "line 4: RawUsage: must be a number, got 'most'"),
    ],
)
def test_wrong_files_are_refused_in_one_sentence(files: dict[str, str], sentence: str, tmp_path: Path) -> None:
    site_folder(tmp_path, [sacct_line(1)])
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as error:
        read_folder(tmp_path)
    assert sentence in str(error.value)


# ---------------------------------------------------------------------- accounts


def test_accounts_and_users_have_their_shares_and_limits() -> None:
    notes = Notes()
    found = {(each.account, each.user): each for each in read_dump(DUMP, "dump", notes)}
    assert {key: (each.parent, each.shares) for key, each in found.items()} == {
        ("root", None): ("root", 1),
        ("root", "root"): ("root", 1),
        ("physics", None): ("root", 10),
        ("theory", None): ("physics", None),
        ("theory", "ann"): ("root", 3),
        ("theory", "bob"): ("root", 1),
    }
    assert found["physics", None].limits.grp_tres == {"cpu": 64.0, "mem": 2048.0}
    assert found["theory", None].limits.grp_wall == 5400.0
    ann, bob = found["theory", "ann"], found["theory", "bob"]
    assert (ann.default, ann.qos, ann.limits.max_jobs, ann.limits.max_wall) == (True, ("normal", "urgent"), 2, 3600.0)
    assert (bob.default, bob.partition) == (False, "fast")
    assert [str(each) for each in notes] == ["account theory: MaxJobsAccrue=3 (not modelled)"]


def test_qos_have_their_priorities_limits_and_preemption() -> None:
    normal, urgent = read_qos(QOS, "qos", Notes())
    assert (normal.preempts, normal.preempt_mode, normal.exempt_time) == ((), None, None)
    assert (urgent.priority, urgent.preempts, urgent.preempt_mode) == (100, ("normal",), "requeue")
    assert (urgent.grace_time, urgent.exempt_time, urgent.usage_factor) == (30.0, 120.0, 2.0)
    assert urgent.flags == ("DenyOnLimit", "NoReserve")
    limits = urgent.limits
    assert (limits.grp_tres, limits.max_wall, limits.max_jobs_per_user) == ({"cpu": 16.0}, 86400.0, 4)
    assert limits.max_tres_per_user == {"cpu": 8.0, "gres/gpu": 1.0}


def test_the_accounts_of_a_folder_have_usage_and_the_qos_of_jobs(tmp_path: Path) -> None:
    site_folder(tmp_path, [sacct_line(1, more="batch|urgent"), sacct_line(2, more="batch|normal")])
    (tmp_path / "dump.cfg").write_text(DUMP)
    accounts = read_folder(tmp_path).accounts
    assert accounts is not None
    assert [each.name for each in accounts.qos] == ["normal", "urgent"]
    assert "QOS urgent: not told (without priority and limits: give 'sacctmgr --parsable2 show qos')" in listed(
        tmp_path
    )
    (tmp_path / "qos.txt").write_text(QOS)
    (tmp_path / "shares.txt").write_text(SHARES)
    accounts = read_folder(tmp_path).accounts
    assert accounts is not None
    ann = accounts.association("ann")
    assert ann is not None
    assert ann.usage == 600.0
    assert [accounts.qos_of(job, ann).priority for job in (1, 2)] == [100, 0]


RESERVATIONS = """\
ReservationName=flex StartTime=2024-05-01T12:30:00 EndTime=2024-05-01T12:32:00 Duration=00:02:00 Nodes=n1 NodeCnt=1 \
CoreCnt=4 Features=(null) PartitionName=(null) Flags=FLEX,SPEC_NODES TRES=cpu=4 Users=ada Groups=(null) \
Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)
ReservationName=core StartTime=2024-05-01T12:30:00 EndTime=2024-05-01T12:33:00 Duration=00:03:00 Nodes=n[2-3] \
NodeCnt=2 CoreCnt=3 Features=(null) PartitionName=batch Flags=SPEC_NODES,DAILY TRES=cpu=3 Users=-bob Groups=(null) \
Accounts=physics,biology Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)
ReservationName=plain StartTime=2024-05-01T13:00:00 EndTime=2024-05-01T13:03:00 Duration=00:03:00 Nodes=n4 NodeCnt=1 \
CoreCnt=4 Features=(null) PartitionName=(null) Flags=SPEC_NODES TRES=cpu=4 Users=ada Groups=(null) Accounts=(null) \
Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)
"""


def test_reservations_that_the_platform_does_not_express_are_those_of_the_policy(tmp_path: Path) -> None:
    """In the form of ``scontrol --oneliner show reservation`` of 22.05.8; jobs for them name them in their options."""
    conf = "ClusterName=c\nNodeName=n[1-4] CPUs=4\nPartitionName=batch Nodes=ALL Default=YES\n"
    (tmp_path / "slurm.conf").write_text(conf)
    (tmp_path / "reservations.txt").write_text(RESERVATIONS)
    row = "2024-05-01T12:00:00|2024-05-01T12:00:03|2024-05-01T12:01:00|02:00:00|4|COMPLETED|ada|batch"
    jobs = [f"1|{row}|flex|sbatch --reservation=flex a", f"2|{row}|core|sbatch b", f"3|{row}|plain|sbatch c"]
    head = "JobID|Submit|Start|End|Timelimit|ReqCPUS|State|User|Partition|Reservation|SubmitLine"
    (tmp_path / "sacct.txt").write_text("\n".join([head, *jobs, f"4|{row}|gone|sbatch d", ""]))
    found = read_folder(tmp_path)
    assert [each.text for each in found.policy.reservations] == [
        "flex:nodes=n1:start=1800:end=1920:users=ada:flex",
        "core:nodes=n[2-3]:start=1800:end=1980:users=-bob:accounts=physics+biology:cores=2+1",
    ]
    assert [each.name for each in found.described.spec.reservations] == ["plain"]
    assert [(job.partition, job.options) for job in found.jobs] == [
        (None, "--reservation=flex"),
        (None, "--reservation=core"),
        ("plain", ""),
        (None, ""),
    ]
    assert [str(each) for each in found.unsupported if "core" in str(each) or "flex" in str(each)] == [
        "reservation core: TRES=cpu=3 (2+1 on its nodes here)",
        "reservation core: Flags=DAILY (not modelled)",
    ]
    assert "job 4: --reservation=gone (the site tells of no such reservation)" in map(str, found.unsupported)
    assert float(simulate(found.described.spec, found.jobs[:1], found.policy).jobs["wait"][0]) < 61
