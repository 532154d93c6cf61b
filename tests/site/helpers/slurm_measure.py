"""How far simulated starts are from those that slurmctld recorded."""

from __future__ import annotations

import sys
from itertools import combinations, pairwise
from math import floor
from typing import NamedTuple

import attrs

from simmodel import Job, simulate
from simmodel.platform import ClusterSpec, ConsumableSpec
from simmodel.scheduling.observer import Observer
from simmodel.scheduling.registry import PolicyLike
from simmodel.work.job import Run
from simmodel_site.policy.policy import Slurm, SlurmTiming
from simmodel_site.twin.slurm.describe import described
from tests.site.helpers.slurm_runs import Recorded, recorded

OVERHEAD = 0.024
"""Seconds from the end of a job's sleep until slurmctld has noted it, on an idle computer."""

COMPLETING = 0.0045
"""Seconds until the nodes of an ended job are free: slurmd answers after 5 ms at the earliest, in rounded ms."""


BEFORE = 3
"""Turns from the start of slurmctld to its first run: slurm.conf's batch_sched_delay counts from then on."""

TEST = 0.00027
"""Seconds that the backfill loop takes to test a job: the mean over the seven runs, on a busy computer."""


class Measure(NamedTuple):
    """How far the starts of a run are from the recorded ones; a job that is preempted has several."""

    jobs: int
    beyond: int
    """starts more than one bf_interval earlier or later, or on one side only"""
    error: float
    """mean of the absolute differences of starts (s)"""
    wait: float
    """mean wait, as a part of the recorded one"""
    order: float
    """part of the pairs of jobs that start in the recorded order"""
    victims: list[int]
    """the jobs that made way for others, in order"""


class _Victims(Observer):
    """The jobs that are preempted, in order."""

    def __init__(self) -> None:
        self.jobs: list[int] = []

    def job_ended(self, run: Run, status: str, /) -> None:
        """Note a job that is preempted."""
        if status == "preempted":
            self.jobs.append(int(run.work.id))


def origin_of(run: Recorded) -> float:
    """Return the instant (s since 1970) that is 0 in simulations: a whole hour."""
    first = min(job.at for job in run.jobs.values())
    return float(floor(first / 3600) * 3600)


def workload(run: Recorded, *, as_recorded: bool = True, overhead: float = OVERHEAD) -> list[Job]:
    """Return the jobs of a run; ``as_recorded``: submitted and executed as slurmctld noted, else as their users did."""
    origin = origin_of(run)
    noted = {int(row["job"]): float(row["time"]) for row in run.events if row["what"] == "submitted"}
    found = []
    for job in run.jobs.values():
        for name in job.names:
            start, end = run.all_starts[str(name)][-1], run.ends[str(name)]
            found.append(
                Job(
                    id=name,
                    submit=(noted[job.id] if as_recorded else job.at) - origin,
                    run=end - start if as_recorded else job.sleeps + overhead,
                    requested=job.limit,
                    nodes=job.nodes,
                    processors=job.processors,
                    exclusive=job.exclusive,
                    consumables=job.licences,
                    dependencies=[each for one in job.after for each in run.jobs[one].names],
                    queue=job.options.get("-p"),
                    priority=-float(job.options.get("--nice", 0)),
                    options=job.wishes,
                )
            )
    return found


def given(run: Recorded) -> Slurm:
    """Return the policy of a run, with the instants of its cycles."""
    origin = origin_of(run)
    of: dict[str, list[float]] = {"main": [], "full": [], "backfill": []}
    for line in run.log:
        if line.what in ("main", "backfill"):
            of["full" if "full queue" in line.words else line.what].append(line.at - origin)
    timing = SlurmTiming(completing=COMPLETING, stopping=COMPLETING, **of)
    return Slurm(run.settings, run.partitions, timing, switches=run.switches)


def free(run: Recorded) -> Slurm:
    """Return the policy of a run, with the phases of its loops alone."""
    timing = _begins(run, SlurmTiming().turn)
    return Slurm(run.settings, run.partitions, timing, switches=run.switches)


def by_turns(run: Recorded) -> Slurm:
    """Return the policy of a run, with the instants of all turns of its background loop: not which of them ran."""
    turns = turns_of(run)
    timing = attrs.evolve(_begins(run, turns[1] - turns[0]), main_first=turns[0], turns=turns)
    return Slurm(run.settings, run.partitions, timing, switches=run.switches)


def _begins(run: Recorded, turn: float) -> SlurmTiming:
    """Return when the loops of a run begin."""
    main, backfill = (run.cycles(what)[0] - origin_of(run) for what in ("main", "backfill"))
    return SlurmTiming(main_first=main - BEFORE * turn, backfill_first=backfill, completing=COMPLETING, test=TEST)


def turns_of(run: Recorded) -> list[float]:
    """Return the instants of turns: runs of the main loop but those that an Epilog started, and even ones between."""
    cleaned = [line.at for line in run.log if line.what == "cleaned"]
    runs = [
        line.at - origin_of(run)
        for line in run.log
        if line.what == "main" and ("full queue" in line.words or all(not 0 <= line.at - at < 0.004 for at in cleaned))
    ]
    turns = [runs[0] - i * SlurmTiming().turn for i in range(BEFORE, 0, -1)] + runs[:1]
    for one, other in pairwise(runs):
        count = max(round((other - one) / 1.004), 1)
        turns += [one + (other - one) * i / count for i in range(1, count + 1)]
    return turns


def platform(run: Recorded) -> ClusterSpec:
    """Return the platform of a run, with its licences."""
    licences = [ConsumableSpec(name=name, amount=amount) for name, amount in run.licences.items()]
    return attrs.evolve(described(run.site).spec, consumables=licences)


def measure(run: Recorded, policy: PolicyLike, *, as_recorded: bool = True, overhead: float = OVERHEAD) -> Measure:
    """Return how far the starts of a run under a policy are from the recorded ones."""
    origin = origin_of(run)
    noted = _Victims()
    result = simulate(
        platform(run), workload(run, as_recorded=as_recorded, overhead=overhead), policy, observers=[noted]
    )
    jobs = result.jobs.to_pandas().set_index("job")
    cycle = run.settings.bf_interval
    errors, beyond = [], 0
    started = {}
    rows = result.runs.to_pandas()[["job", "start", "end", "status"]]
    for name in [name for job in run.jobs.values() for name in job.names]:
        starts = run.all_starts[str(name)]
        modelled = rows[rows["job"] == name]["start"].tolist()
        started[name] = float(jobs.loc[name]["start"]), starts[0]
        differ = [a + origin - b for a, b in zip(modelled, starts, strict=False)]
        errors += differ
        beyond += sum(abs(each) > cycle for each in differ) + abs(len(modelled) - len(starts))
    pairs = list(combinations(started.values(), 2))
    same = sum((a[0] - b[0]) * (a[1] - b[1]) > 0 or a[1] == b[1] or abs(a[1] - b[1]) < 0.05 for a, b in pairs)
    submits = sum(job.at * len(job.names) for job in run.jobs.values())
    waits = sum(at for _, at in started.values()) - submits
    simulated = sum(at + origin for at, _ in started.values()) - submits
    return Measure(
        len(errors),
        beyond,
        sum(map(abs, errors)) / len(errors),
        simulated / waits,
        same / len(pairs),
        noted.jobs,
    )


if __name__ == "__main__":
    for name in sys.argv[1:]:
        run = recorded(name)
        for label, policy, exact in (
            ("fcfs", "fcfs", True),
            ("easy", "easy", True),
            ("conservative", "conservative", True),
            ("slurm, instants given", given(run), True),
            ("slurm, turns given", by_turns(run), True),
            ("slurm, free", free(run), False),
        ):
            print(f"{name:10} {label:22}", measure(run, policy, as_recorded=exact))
