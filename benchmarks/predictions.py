"""What predictions of run times are worth: errors of predicted starts, bounds that hold, and EASY with predictions.

Run ``python benchmarks/predictions.py``, or name some of ``starts``, ``bounds`` and ``easy``. Real logs are looked for
in ``SIMMODEL_DATA`` or ``../shared/data``; what needs a log that is not there is left out.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from simmodel.formats.swf import read_swf
from simmodel.futures import predict_starts
from simmodel.predictors import Learning, SimilarJobs
from simmodel.predictors.similar import RecentTwo, Request
from simmodel.runs.scenario import simulate, start
from simmodel.scheduling import Observer, Predictor
from simmodel.work import LiveJob, Run, Workload

DATA = Path(os.environ.get("SIMMODEL_DATA", Path(__file__).parents[2] / "shared" / "data"))
LOGS = {
    "KTH-SP2": ("KTH-SP2-1996-2-filtered", 100),
    "SDSC-SP2": ("SDSC-SP2-1998-4-filtered", 128),
    "SDSC-BLUE": ("SDSC-BLUE-2000-4-filtered", 1152),
    "Gaia without queue 2": ("UniLu-Gaia-2014-2", 2004),
}


def logs(*names: str) -> Iterator[tuple[str, Workload, int]]:
    """Yield names, workloads and processors of those logs that are there."""
    for name in names:
        file, processors = LOGS[name]
        path = DATA / "swf" / f"{file}.swf.gz"
        if not path.exists():
            print(f"{name}: not in {DATA}, left out")
            continue
        workload = read_swf(path)
        if "Gaia" in name:
            workload = workload.where((workload["queue"] != 2) & (workload["run"] >= 0))
        yield name, workload, processors


def start_errors(workload: Workload, processors: int, rows: range, *kinds: Predictor) -> dict[str, float]:
    """Return the median error (min) of the starts predicted at submission, of the jobs that wait, by predictor."""
    simulation = start(processors, workload, "easy", observers=[Learning(kind) for kind in kinds])
    foretold: dict[str, dict[int, float]] = {kind.name: {} for kind in kinds}
    for row in rows:
        job = int(workload["job"][row])
        after = float(np.nextafter(workload["submit"][row], np.inf))
        if after > simulation.env.now:
            simulation.run(until=after)
        snapshot = simulation.system.snapshot(actual=False)  # type: ignore[call-arg]
        if job in {work.id for work in snapshot.waiting}:
            for kind in kinds:
                foretold[kind.name][job] = predict_starts(snapshot, [job], draws=0, predictor=kind)["predicted"][0]
    jobs = simulation.run().result().jobs
    real = dict(zip(jobs["job"].tolist(), jobs["start"].tolist(), strict=True))
    return {
        name: float(np.median([abs(at - real[job]) / 60 for job, at in starts.items()]))
        for name, starts in foretold.items()
    }


class Bounds(Observer):
    """Counts how many jobs end within the bounds that a predictor gave at their submission."""

    def __init__(self, predictor: Predictor, levels: tuple[float, ...]) -> None:
        self.predictor = predictor
        self.held = dict.fromkeys(levels, 0)
        self.jobs = 0
        self._bounds: dict[int, list[float]] = {}

    def job_submitted(self, job: LiveJob) -> None:
        self._bounds[job.seq] = [self.predictor.quantile(job, q) for q in self.held]

    def job_ended(self, run: Run, status: str) -> None:
        self.jobs += 1
        for q, bound in zip(self.held, self._bounds.pop(run.job.seq), strict=True):
            self.held[q] += run.place.env.now - run.started <= bound


def held(workload: Workload, processors: int) -> dict[float, float]:
    """Return the share of jobs that end within the 80 % and the 95 % bound of the default predictor."""
    past = SimilarJobs()
    bounds = Bounds(past, (0.8, 0.95))
    simulate(processors, workload, "easy", observers=[bounds, Learning(past)])
    return {q: count / bounds.jobs for q, count in bounds.held.items()}


def main(wanted: list[str]) -> None:
    if not wanted or "starts" in wanted:
        for name, workload, processors in logs("SDSC-SP2"):
            errors = start_errors(workload, processors, range(20_000, 26_000), Request(), RecentTwo(), SimilarJobs())
            print(f"{name}, jobs 20,000 to 26,000, median error of the predicted start:", end=" ")
            print(", ".join(f"{kind} {minutes:.0f} min" for kind, minutes in errors.items()), flush=True)
    if not wanted or "bounds" in wanted:
        for name, workload, processors in logs("KTH-SP2", "SDSC-SP2", "Gaia without queue 2"):
            found = held(workload, processors)
            print(f"{name}, jobs within bounds:", *(f"{q:.0%}: {share:.1%}" for q, share in found.items()), flush=True)
    if not wanted or "easy" in wanted:
        kinds = ("requested", "predicted", "recent-two", "exact")
        for name, workload, processors in logs("KTH-SP2", "SDSC-SP2", "SDSC-BLUE"):
            for policy in ("easy", "easy-sjbf"):
                print(f"{name}, {policy}, mean bounded slowdown:", end=" ")
                for kind in kinds:
                    metrics = simulate(processors, workload, policy, estimates=kind).metrics()
                    print(f"{kind} {metrics['bounded_slowdown_mean']:.1f}", end=", ", flush=True)
                print()


if __name__ == "__main__":
    main(sys.argv[1:])
