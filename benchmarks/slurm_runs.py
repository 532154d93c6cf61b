"""Decisions and starts of the policy slurm, and of the nearest other policies, against recorded runs of slurmctld.

    python benchmarks/slurm_runs.py [--phases] [RUN ...]
    python benchmarks/slurm_runs.py --record RUN SEED FOLDER [NAME=VALUE ...]

A run is the name of one below SIMMODEL_DATA, or a folder; without: all of them. With ``--phases``: free runs of slurm
with turns of several lengths, and with ends that are noted later or earlier. ``--record`` lets the Slurm of this
computer run jobs that are drawn from those of a run, and keeps a folder; the settings of slurm.conf are those of the
run but for these.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

import attrs

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.site.helpers.slurm_decisions import cycles_of
from tests.site.helpers.slurm_measure import by_turns, free, given, measure
from tests.site.helpers.slurm_recorder import like, record
from tests.site.helpers.slurm_runs import Recorded, recorded

RUNS = ("defaults", "fast", "tiers", "factors", "shapes", "preempt", "tree")


def run_of(name: str) -> Recorded:
    """Return a run by its name, or by its folder."""
    return Recorded(Path(name)) if Path(name).is_dir() else recorded(name)


def main(names: list[str]) -> None:
    """Print two tables of these runs."""
    print("run         cycles  slurm differs  EASY differs")
    for name in names:
        run = run_of(name)
        own, easy = cycles_of(run), cycles_of(run, easy=True)
        counts = [sum(not cycle.same for cycle in found) for found in (own, easy)]
        print(f"{run.name:10} {len(own):7} {counts[0]:14} {counts[1]:13}")
    print("\nrun        policy                 beyond a cycle  mean error  wait   order")
    for name in names:
        run = run_of(name)
        for label, policy, exact in (
            ("fcfs", "fcfs", True),
            ("easy", "easy", True),
            ("conservative", "conservative", True),
            ("slurm, instants given", given(run), True),
            ("slurm, turns given", by_turns(run), True),
            ("slurm, free", free(run), False),
        ):
            found = measure(run, policy, as_recorded=exact)
            share = f"{found.beyond} of {found.jobs}"
            print(f"{run.name:10} {label:22} {share:>14} {found.error:9.4f} s  {found.wait:.3f}  {found.order:.3f}")


def phases(names: list[str]) -> None:
    """Print how far 24 free runs are."""
    print("run        beyond a cycle: median, at most 10 %  wait           order")
    for name in names:
        run = run_of(name)
        policy = free(run)
        found = [
            measure(run, policy.evolve(timing=attrs.evolve(policy.timing, turn=turn)), as_recorded=False, overhead=end)
            for end in (0.024, 0.055, 0.085)
            for turn in (1.0015, 1.002, 1.003, 1.0035, 1.004, 1.005, 1.006, 1.007)
        ]
        parts = [each.beyond / each.jobs for each in found]
        waits, few = [each.wait for each in found], sum(part <= 0.1 for part in parts)
        print(f"{run.name:10} {median(parts):22.3f} {few:9} of {len(found)}", end="  ")
        print(f"{min(waits):.3f} to {max(waits):.3f} {min(each.order for each in found):.3f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--record"]:
        kind, seed, folder, *settings = sys.argv[2:]
        Path(folder).mkdir(parents=True)
        record(*like(run_of(kind), int(seed), **dict(each.split("=", 1) for each in settings)), Path(folder))
        sys.exit()
    names = [each for each in sys.argv[1:] if each != "--phases"] or list(RUNS)
    (phases if "--phases" in sys.argv else main)(names)
