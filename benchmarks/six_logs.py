"""Is B better than A on six public logs: five policies against EASY, by users, shaken, weeks, logs and seeds.

    python benchmarks/six_logs.py FOLDER [--runs 20] [--sources users,weeks] [--jobs 50000] [--logs KTH-SP2,Theta]

FOLDER holds the logs (SWF). Prints the verdict on the mean wait of each policy on each log as Markdown, and how far the
resampled logs are from theirs in load, mean run time, and arrivals by hour and by weekday.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from simmodel import Workload, compare, load_workload
from simmodel.generators import lublin
from simmodel.work import first, offered_load

LOGS = {
    "KTH-SP2": "KTH-SP2-1996-2-filtered.swf.gz",
    "SDSC-SP2": "SDSC-SP2-1998-4-filtered.swf.gz",
    "SDSC-BLUE": "SDSC-BLUE-2000-4-filtered.swf.gz",
    "HPC2N": "hpc2n-first3170.swf.gz",
    "Theta": "theta_2022.swf.gz",
    "RICC": "RICC-2010-2.swf.gz",
}
POLICIES = ["easy", "easy-sjbf", "sjf", "wfp", "conservative"]


def read(folder: Path, most: int) -> dict[str, Workload]:
    """Return the logs by name, the first jobs of each."""
    found = {
        name: load_workload(folder / file, strict=False) for name, file in LOGS.items() if (folder / file).exists()
    }
    return {name: first(log, most) for name, log in found.items()}


def drawn(seed: int) -> Workload:
    """Return three weeks of Lublin's model, whose load is about that of the logs."""
    return lublin(2000, 128, seed=seed)


def off(log: Workload, runs: int) -> list[float]:
    """Return how far resamples are from a log in percent: load, run time, arrivals by hour and by weekday."""

    def told(work: Workload) -> list[Any]:
        hours = [np.bincount(work["submit"].astype(int) // unit % size, minlength=size) for unit, size in _CYCLES]
        return [offered_load(work), float(np.nanmean(work["run"])), *(each / each.sum() for each in hours)]

    own = told(log)
    apart = []
    for seed in range(runs):
        load, run, hour, day = told(log.resampled(seed=seed))
        apart.append(
            [abs(load / own[0] - 1), abs(run / own[1] - 1), np.abs(hour - own[2]).sum(), np.abs(day - own[3]).sum()]
        )
    return [float(each) for each in 100 * np.mean(apart, axis=0)]


_CYCLES = ((3600, 24), (86400, 7))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--sources", default="users,shaken,weeks,logs,seeds")
    parser.add_argument("--jobs", type=int, default=50_000, help="the first ones of each log (default: 50,000)")
    parser.add_argument("--logs", default=",".join(LOGS), help="names of logs, with commas")
    options = parser.parse_args()
    logs, sources = read(options.folder, options.jobs), options.sources.split(",")
    logs = {name: logs[name] for name in options.logs.split(",") if name in logs}
    print(f"| log | sample | {' | '.join(POLICIES[1:])} |\n|---|---|{'---|' * len(POLICIES[1:])}")
    for name, log in logs.items():
        for how in [each for each in sources if each in ("users", "shaken", "weeks")]:
            runs = {"runs": options.runs} if how != "weeks" else {}
            row(name, how, compare(None, log, POLICIES, resample=how, **runs))
    if "logs" in sources:
        row(f"all {len(logs)}", "logs", compare(None, logs, POLICIES))
    if "seeds" in sources:
        row("Lublin's model", "seeds", compare(128, drawn, POLICIES, seeds=options.runs))
    if "users" in sources:
        print("\n| log | load | mean run time | hours | weekdays |\n|---|---|---|---|---|")
        for name, log in logs.items():
            print(f"| {name} | {' | '.join(f'{each:.1f} %' for each in off(log, options.runs))} |", flush=True)


def row(name: str, how: str, found: Any) -> None:
    """Print the verdicts on one log, or over all of them."""
    told = {
        each["policy"]: each["verdict"]
        for each in found.differences.rows()
        if each["metric"] == "wait_mean" and (how != "logs" or not each["workload"])
    }
    print(f"| {name} | {how} | {' | '.join(told[policy] for policy in POLICIES[1:])} |", flush=True)
    for doubt in found.source.doubts:
        print(f"{name}: only an indication: {doubt}", file=sys.stderr)


if __name__ == "__main__":
    main()
