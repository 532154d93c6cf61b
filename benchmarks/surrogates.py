"""How well surrogates, Tsafrir's predictor and the users' requests foretell the run times and waits of real logs.

Run ``python benchmarks/surrogates.py``, or name some of the logs. They are looked for in ``SIMMODEL_DATA`` or
``../shared/data``; those that are not there are left out. The models are fitted to the first 70 % of each log and
judged by the jobs after these for which every rule has an answer: those with a request, for run times. Prints two
Markdown tables of mean absolute errors over the mean run time and the mean wait.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import numpy as np

from simmodel.experiments import judge_surrogates
from simmodel.experiments.surrogates import SurrogateReport, Target
from simmodel.formats.swf import read_swf
from simmodel.results.result import recorded_result

DATA = Path(os.environ.get("SIMMODEL_DATA", Path(__file__).parents[2] / "shared" / "data"))
LOGS = {
    "KTH-SP2-1996-2.1-cln": 100,
    "LANL-CM5-1994-4.1-cln": 1024,
    "hpc2n-first3170": 240,
    "UniLu-Gaia-2014-2": 2004,
    "RICC-2010-2": 8192,
    "theta_2022": 4360,
}
METHODS: dict[Target, tuple[str, ...]] = {
    "run": ("gradient boosting", "user's last two", "request"),
    "wait": ("gradient boosting", "recent waits", "work ahead"),
}


def errors(report: SurrogateReport, target: Target) -> tuple[int, list[float]]:
    """Return the number of jobs that all methods predict, and the relative mean error of each method on them."""
    truth = report.features[target][report.first :]
    predicted = [report.predicted[target, method] for method in METHODS[target]]
    known = np.isfinite([truth, *predicted]).all(axis=0)
    found = [float(np.abs(each - truth)[known].mean() / truth[known].mean()) for each in predicted]
    return int(known.sum()), found


def rows(name: str, processors: int) -> Iterator[tuple[Target, str]]:
    """Yield the lines of a log, each with its table."""
    begin = process_time()
    log = read_swf(DATA / "swf" / f"{name}.swf.gz")
    report = judge_surrogates(recorded_result(log, processors=processors))
    asked = 100 * (log["requested"] > 0).mean()
    for target in METHODS:
        jobs, found = errors(report, target)
        best = min(found)
        cells = [f"**{100 * each:,.0f} %**" if each == best else f"{100 * each:,.0f} %" for each in found]
        yield target, f"| {name} | {asked:.0f} % | {jobs:,} | {' | '.join(cells)} |"
    print(f"{name}: {process_time() - begin:.1f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    chosen = sys.argv[1:] or list(LOGS)
    tables: dict[Target, list[str]] = {target: [] for target in METHODS}
    for log in chosen:
        if (DATA / "swf" / f"{log}.swf.gz").exists():
            for target, line in rows(log, LOGS[log]):
                tables[target].append(line)
    for target, lines in tables.items():
        print(f"| {target} | with request | judged | {' | '.join(METHODS[target])} |")
        print("|---|---:|---:|---:|---:|---:|", *lines, sep="\n", end="\n\n")
