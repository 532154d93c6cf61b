"""Recorded sites: a real slurmctld with slurmdbd, its own files as a site has them, and a log with all cycles.

    python -m tests.site.helpers.slurm_sites gpus|life FOLDER

records one afresh, which takes three to five minutes. A folder has what ``simmodel slurm read`` takes (slurm.conf,
gres.conf, sacct.txt, events of nodes, reservations), the commands that were given, and the lines of slurmctld.log that
tell submissions, starts, ends and cycles.
"""

from __future__ import annotations

import csv
import gzip
import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import attrs

from simmodel import Job, simulate
from simmodel_site.policy.policy import SlurmTiming
from simmodel_site.twin.slurm.site.folder import SlurmFolder, read_folder
from tests.site.helpers.slurm_accounting import AccountedCluster
from tests.site.helpers.slurm_cluster import wait_until
from tests.site.helpers.slurm_decisions import named
from tests.site.helpers.slurm_measure import COMPLETING
from tests.site.helpers.slurm_recorder import LOGGED
from tests.site.helpers.slurm_runs import Line, lines_of, what_of

_MANAGED = re.compile(r"update_node: node \S+ state set|returned to service|hold on JobId=|release hold on JobId=")
"""Lines of slurmctld.log that tell what an administrator does."""

RECORDED = Path(__file__).parents[1] / "twin" / "slurm" / "site" / "recorded"

SACCT = (
    "JobID,Submit,Eligible,Start,End,Elapsed,Timelimit,AllocCPUS,ReqCPUS,ReqNodes,NNodes,State,ExitCode,User,Account,"
    "Partition,QOS,ReqTRES,AllocTRES,Priority,NodeList,Reservation,Constraints,Reason,JobName,SubmitLine"
)
"""The fields of docs/how_to/slurm_replay.md."""


class Step(NamedTuple):
    """Seconds after the step before, and a command: ``sbatch`` with options and the seconds of the sleep, or others.

    ``{3}`` stands for the id of the fourth job.
    """

    after: float
    command: str
    seconds: float = 0.0


class Scenario(NamedTuple):
    """A cluster and what is done with it; ``watched``: the step after which reservations are looked at."""

    cluster: dict[str, Any]
    steps: Sequence[Step]
    watched: int = -1


def gpus() -> Scenario:
    """GPUs that the accounting does not track, arrays, whole nodes, licences and memory in all forms."""
    drawn = Random(45)
    forms = (
        "--gres=gpu:{g} --mem={m}",
        "--gres=gpu:{g} -n {n} --mem={m}",
        "--gpus={g} --mem={m}",
        "--gpus={g} -n {n} --mem-per-cpu=150",
        "--gpus-per-node={g} -N 2 --mem={m}",
        "-n {g} --gpus-per-task=1 --mem={m}",
        "--gpus={g} --mem-per-gpu=400",
        "--gres=gpu:a100:{g} --mem={m}",
        "-N 2 --gpus=3 --mem={m}",
        "-n {n} --mem={m}",
        "-n {n}",
        "-n {n} --mem-per-cpu={c}",
        "-N 2 -n {n} --mem={m}",
        "-n 3 -c 3 --mem={m}",
        "-N 2 --ntasks-per-node=3 --mem={m}",
        "-n {n} --mem={m} -L matlab:1",
        "-a 0-3%2 --gres=gpu:1 --mem={m}",
        "-a 0-2 -n {n} --mem={m}",
        "-p whole -n {n} --mem={m}",
        "-p whole --gres=gpu:1",
        "-n 2 --exclusive --mem={m}",
        "-N 1 --mem=0",
    )
    steps = []
    for _ in range(3):
        for form in drawn.sample(forms, len(forms)):
            draws = {"g": drawn.choice((1, 1, 2)), "n": drawn.randrange(2, 11), "c": drawn.choice((200, 400))}
            options = form.format(m=drawn.choice((300, 800, 1500)), **draws)
            limit = drawn.choice((1, 2, 3))
            seconds = round(drawn.uniform(4, 55 if limit > 1 else 40), 1)
            steps.append(Step(round(drawn.uniform(0.3, 3.2), 2), f"sbatch -t {limit} {options}", seconds))
    settings = {
        **_USUAL,
        "SelectTypeParameters": "CR_Core_Memory",
        "GresTypes": "gpu",
        "DefMemPerCPU": "250",
    }
    gres = (
        "AutoDetect=off\nNodeName=n[3-4] Name=gpu Count=4 File={folder}/gpu[0-3]\n"
        "NodeName=n[5-6] Name=gpu Type=a100 Count=2 File={folder}/gpu[0-1]\n"
    )
    cluster = {
        "kinds": [
            ("n[1-2]", 2, "CPUs=8 RealMemory=4000"),
            ("n[3-4]", 2, "CPUs=8 RealMemory=6000 Gres=gpu:4"),
            ("n[5-6]", 2, "CPUs=4 RealMemory=4000 Gres=gpu:a100:2"),
        ],
        "settings": settings,
        "extra": "Licenses=matlab:2",
        "partitions": "PartitionName=work Nodes=ALL Default=YES MaxTime=60\n"
        "PartitionName=whole Nodes=n[2-5] MaxTime=60 OverSubscribe=EXCLUSIVE",
        "files": {"gres.conf": gres},
    }
    return Scenario(cluster, steps)


def life() -> Scenario:
    """Holds, releases, requeues, a node that goes down, drains, updates, a reservation, and jobs that never start."""
    drawn = Random(2205)
    jobs = []
    for i in range(52):
        options = drawn.choice(("-n 1", "-n 2", "-n 3", "-N 2", "-N 2 -n 4", "-n 4", "-N 1 -n 2"))
        limit = drawn.choice((1, 2))
        jobs.append(Step(round(drawn.uniform(0.5, 4.0), 2), f"sbatch -t {limit} {options}", drawn.uniform(5, 38)))
        if i % 9 == 4:
            jobs[-1] = jobs[-1]._replace(command="sbatch -t 1 -n 1 -J same -d singleton")
    extra = {
        2: [Step(0.2, "reject -p side -w n4")],
        5: [Step(0.3, "sbatch -t 1 -H -n 1", 8.0), Step(0.2, "sbatch -t 1 -n 1 --begin=now+25", 8.0)],
        8: [Step(0.5, "scontrol hold {last}")],
        10: [Step(0.4, "scancel {last}")],
        12: [Step(0.5, "scontrol release {6}"), Step(0.3, "scontrol requeue {running}")],
        15: [Step(0.2, "scontrol release {held}")],
        17: [Step(0.3, "scontrol update NodeName=n2 State=DRAIN Reason=test")],
        19: [Step(0.2, "scontrol update JobId={last} TimeLimit=3")],
        21: [Step(0.4, "sbatch -t 1 -n 1 -d afternotok:{1}", 6.0), Step(0.2, "sbatch -t 1 -n 1 -d afterok:{1}", 6.0)],
        23: [Step(0.2, "scontrol update NodeName=n2 State=RESUME")],
        25: [Step(0.3, "scontrol update NodeName=n3 State=DOWN Reason=broken")],
        30: [Step(0.3, "scontrol update NodeName=n3 State=RESUME"), Step(0.2, "scancel {last}")],
        36: [Step(0.3, "scontrol requeuehold {running}")],
        40: [Step(0.3, "scontrol release {requeued}"), Step(0.2, "reject -p side -w n3")],
        44: [Step(0.2, "scontrol hold {last}")],
        47: [Step(0.3, "scontrol release {held}"), Step(0.3, "scancel {running}")],
    }
    course = "ReservationName=course StartTime=now+75 Duration=1 Nodes=n4 Users=root Flags=IGNORE_JOBS"
    steps = [Step(0.0, f"scontrol create reservation {course}")]  # when it was made is told nowhere
    for i, job in enumerate(jobs):
        steps += [job, *extra.get(i, ())]
    cluster = {
        "kinds": [("n[1-4]", 4, "CPUs=2 RealMemory=2000")],
        "settings": {**_USUAL, "SelectTypeParameters": "CR_Core", "ReturnToService": "0"},
        "partitions": "PartitionName=work Nodes=ALL Default=YES MaxTime=60\nPartitionName=side Nodes=n[1-2] MaxTime=60",
    }
    return Scenario(cluster, steps, watched=0)


_USUAL = {
    **LOGGED,
    "SchedulerType": "sched/backfill",
    "SchedulerParameters": "bf_interval=5,bf_resolution=1,bf_max_time=60,batch_sched_delay=1",
    "MinJobAge": "86400",
    "MaxArraySize": "100",
}

SCENARIOS = {"gpus": gpus, "life": life}


# ---------------------------------------------------------------------- recording


def record(scenario: Scenario, folder: Path) -> None:
    """Let a cluster do what a scenario says, and keep the files of its site in a folder."""
    cluster = AccountedCluster(**scenario.cluster)
    told: list[tuple[str, str, str]] = []
    ids: list[int] = []
    names: dict[str, str] = {}
    try:
        cluster.start()
        due = time.time() + 3
        for number, step in enumerate(scenario.steps):
            due += step.after
            time.sleep(max(0.0, due - time.time()))
            words = _filled(step.command, cluster, ids, names).split()
            at = time.time()
            if words[0] == "sbatch":
                ids.append(cluster.submit(*words[1:], seconds=step.seconds))
                words.append(f"# {ids[-1]}")
            elif words[0] == "reject":
                try:
                    cluster.submit(*words[1:])
                except AssertionError:
                    words = ["sbatch", *words[1:], "# rejected"]
                else:
                    raise AssertionError(f"not rejected: {words}")
            else:
                cluster.run(*words)
            told.append((f"{at:.3f}", " ".join(words), f"{step.seconds:.1f}"))
            if number == scenario.watched:
                found = cluster.run("env", "-u", "SLURM_TIME_FORMAT", "scontrol", "show", "reservation")
                (folder / "scontrol_reservations.txt").write_text(found)
        wait_until(lambda: not _unfinished(cluster), 900, "the end of all jobs")
        time.sleep(8)  # until slurmdbd has all of it
        asked = ("env", "SLURM_TIME_FORMAT=standard")
        rows = ("sacct", "-a", "-X", "-D", "-P", "-S", "2020-01-01", f"--format={SACCT}")
        (folder / "sacct.txt").write_text(cluster.run(*asked, *rows))
        events = cluster.run(*asked, "sacctmgr", "-P", "show", "event", "Start=2020-01-01")
        (folder / "sacctmgr_events.txt").write_text(events)
        for name in ("slurm.conf", "gres.conf"):
            if (cluster.folder / name).exists():
                text = (cluster.folder / name).read_text().replace(str(cluster.folder), "{folder}")
                (folder / name).write_text(re.sub(r"(NodeHostname|SlurmctldHost)=[^ (\n]+", r"\1=host", text))
        log = (cluster.folder / "slurmctld.log").read_text(errors="replace").replace(str(cluster.folder), "{folder}")
    finally:
        cluster.stop()
    with gzip.open(folder / "slurmctld.log.gz", "wt") as packed:
        packed.writelines(f"{line}\n" for line in log.splitlines() if what_of(line) or _MANAGED.search(line))
    with (folder / "commands.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("time", "command", "seconds"), *told])


def _filled(command: str, cluster: AccountedCluster, ids: Sequence[int], names: dict[str, str]) -> str:
    """Return a command with the ids of jobs; what it holds or requeues is kept by name."""
    if "{running}" in command:
        names["running"] = cluster.run("squeue", "-h", "-t", "R", "-o", "%i", "--sort=i").split()[-1]
    for number in re.findall(r"\{(\d+)\}", command):
        command = command.replace(f"{{{number}}}", str(ids[int(number)]))
    command = command.replace("{last}", str(ids[-1]) if ids else "")
    for name, id in names.items():
        command = command.replace(f"{{{name}}}", id)
    for word, name in (("hold", "held"), ("requeuehold", "requeued")):
        if command.startswith(f"scontrol {word} "):
            names[name] = command.split()[-1]
    return command


def _unfinished(cluster: AccountedCluster) -> list[str]:
    """Return the jobs that are not over; those whose dependency will never be met are cancelled."""
    rows = [line.split("|") for line in cluster.run("squeue", "-h", "-o", "%i|%r").splitlines()]
    for id, reason in rows:
        if reason == "DependencyNeverSatisfied":
            cluster.run("scancel", id)
    return [id for id, _ in rows]


# ---------------------------------------------------------------------- measuring


class Measured(NamedTuple):
    """Runs of jobs that have started, and those that start more than a cycle earlier or later with instants given."""

    runs: int
    beyond: dict[str, tuple[float, float]]
    """by id: the recorded and the simulated start (s)"""
    agreeing: float
    """the part of recorded placements that agree"""
    error: float
    """mean of the absolute differences of starts (s)"""


def lives_of(lines: Sequence[Line]) -> Mapping[str, list[list[float]]]:
    """Return the submission, start and end of each run of each job, by its name (s since 1970)."""
    found: dict[str, list[list[float]]] = {}
    arrays: dict[str, float] = {}
    for at, what, words in lines:
        name = named(words[0])[0] if words else ""
        if what == "submitted":
            arrays[words[0]] = at
            found.setdefault(words[0], []).append([at])
        elif what.endswith(" start"):
            runs = found.setdefault(name, [[arrays.get(name.partition("_")[0], at)]])
            runs[-1] = [*runs[-1][:1], at]
        elif what in ("ended", "stopped", "requeued") and name in found and len(found[name][-1]) == 2:
            found[name][-1].append(at)
        if what == "requeued" and name in found:
            found[name].append([at])
    return found


def as_logged(site: SlurmFolder, lines: Sequence[Line]) -> list[Job]:
    """Return the jobs of a site, submitted and ended when its log says: it tells ms, the accounting seconds."""
    lives = lives_of(lines)
    jobs = []
    for run in site.runs:
        id = str(run.job.id).partition(" ")[0]
        life = lives[id][run.restarts] if id in lives and run.restarts < len(lives[id]) else []
        change: dict[str, Any] = {}
        if life:
            change["submit"] = life[0] - site.origin
        if len(life) == 3 and run.job.run is not None:
            change["run"] = life[2] - life[1]
        if run.job.cancel is not None:
            change["cancel"] = max(run.job.cancel, change.get("submit", 0.0))
        jobs.append(attrs.evolve(run.job, **change))
    return jobs


def measured(folder: Path) -> Measured:
    """Return how near the reading of a site is, if the instants of cycles, submissions and ends are given."""
    site, lines = read_folder(folder), lines_of(folder / "slurmctld.log.gz")
    of: dict[str, list[float]] = {"main": [], "full": [], "backfill": []}
    for line in lines:
        if line.what in ("main", "backfill"):
            of["full" if "full queue" in line.words else line.what].append(line.at - site.origin)
    policy = site.policy.evolve(timing=SlurmTiming(completing=COMPLETING, stopping=COMPLETING, scans=False, **of))
    result = simulate(site.described.spec, as_logged(site, lines), policy, overrun="continue")
    simulated = dict(zip(map(str, result.jobs["job"].tolist()), result.jobs["start"].tolist(), strict=True))
    lives = lives_of(lines)
    beyond, errors = {}, []
    for run in site.runs:
        if not run.start < float("inf"):
            continue
        id = str(run.job.id)
        at = lives[id.partition(" ")[0]][run.restarts][1] - site.origin
        own = simulated[id]
        errors.append(abs(own - at))
        if not abs(own - at) <= policy.settings.bf_interval:
            beyond[id] = at, own
    known = [each for each in errors if each == each]
    return Measured(len(errors), beyond, site.agreeing / max(site.placed, 1), sum(known) / max(len(known), 1))


if __name__ == "__main__":
    kind, target = sys.argv[1], Path(sys.argv[2])
    target.mkdir(parents=True, exist_ok=True)
    record(SCENARIOS[kind](), target)
    print(measured(target))
