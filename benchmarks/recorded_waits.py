"""Which policy, over-estimation and backfilling explain the recorded starts of real logs best, and how well.

Run ``python benchmarks/recorded_waits.py``, or name some of the logs. They are looked for in ``SIMMODEL_DATA`` or
``../shared/data``; those that are not there are left out. Prints a Markdown table: the mean distance of simulated and
recorded waits over the mean recorded wait, its median,
the share of starts within a minute, and the correlation of waits.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from simmodel.formats.swf import read_swf
from simmodel.runs.scenario import simulate
from simmodel.work import Workload

DATA = Path(os.environ.get("SIMMODEL_DATA", Path(__file__).parents[2] / "shared" / "data"))
LOGS = {
    "KTH-SP2-1996-2.1-cln": 100,
    "LANL-CM5-1994-4.1-cln": 1024,
    "UniLu-Gaia-2014-2": 2004,
    "RICC-2010-2": 8192,
}
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "fcfs": ("fcfs", {}),
    "easy": ("easy", {}),
    "easy, shortest candidates first": ("easy-sjbf", {}),
    "easy, exact run times": ("easy", {"factor": None}),
    "easy, requests x 2": ("easy", {"factor": 2.0}),
    "easy, predicted run times": ("easy", {"estimates": "predicted"}),
    "sjf+easy": ("sjf+easy", {}),
    "wfp+easy": ("wfp+easy", {}),
    "best-fit": ("best-fit", {}),
    "conservative": ("conservative", {}),
}


def asked(workload: Workload, factor: float | None) -> Workload:
    """Return the log with requests of the run times (``None``), or that many times as long."""
    known = workload["requested"] > 0
    if factor is None:
        return workload.replace(requested=np.maximum(workload["run"], 1.0))
    return workload.replace(requested=np.where(known, workload["requested"] * factor, workload["requested"]))


def measured(workload: Workload, processors: int, policy: str, options: dict[str, Any]) -> tuple[float, ...]:
    """Return the relative mean error of waits, the median error (s), the share within 60 s, and the correlation."""
    given = dict(options)
    factor = given.pop("factor", 1.0)
    log = workload if factor == 1.0 else asked(workload, factor)
    jobs = simulate(processors, log, policy, **given).jobs
    recorded = dict(zip(workload["job"].tolist(), workload.recorded_starts().tolist(), strict=True))
    truth = np.array([recorded[job] for job in jobs["job"].tolist()]) - jobs["submit"]
    known = np.isfinite(truth) & np.isfinite(jobs["wait"])
    truth, found = truth[known], jobs["wait"][known]
    error = np.abs(found - truth)
    both = np.corrcoef(found, truth)[0, 1] if found.std() > 0 else np.nan
    return float(error.mean() / truth.mean()), float(np.median(error)), float((error <= 60).mean()), float(both)


def rows(name: str, processors: int) -> Iterator[str]:
    """Yield the lines of a log."""
    workload = read_swf(DATA / "swf" / f"{name}.swf.gz")
    for setting, (policy, options) in SETTINGS.items():
        begin = process_time()
        relative, median, near, both = measured(workload, processors, policy, options)
        print(f"{name}, {setting}: {process_time() - begin:.1f} s", file=sys.stderr, flush=True)
        yield f"| {name} | {setting} | {100 * relative:.0f} % | {median:,.0f} | {100 * near:.1f} % | {both:.2f} |"


if __name__ == "__main__":
    print("| log | policy | mean error of waits / mean wait | median error (s) | starts within 60 s | correlation |")
    print("|---|---|---:|---:|---:|---:|")
    for log in sys.argv[1:] or LOGS:
        if not (DATA / "swf" / f"{log}.swf.gz").exists():
            print(f"{log}: not in {DATA}, left out", file=sys.stderr)
            continue
        for line in rows(log, LOGS[log]):
            print(line, flush=True)
