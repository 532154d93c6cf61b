"""Hypothesis strategies: small batch cases, rich in corner cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from simmodel.work.workload import Workload
from tests.oracles.batch import Job

__all__ = ["Case", "cases", "to_workload"]


class Case(NamedTuple):
    """Jobs and the number of processors of their machine."""

    jobs: list[Job]
    processors: int


_GAPS = st.sampled_from([0, 0, 0, 0, 1, 1, 2, 3, 5, 8, 20, 60])
_RUNS = st.one_of(st.sampled_from([0, 1, 5, 5, 10, 10, 20]), st.integers(1, 40))


@st.composite
def cases(
    draw: st.DrawFn,
    max_jobs: int = 20,
    *,
    zero_runs: bool = True,
    overruns: bool = True,
    missing: bool = True,
    dirty: bool = False,
    cancelled: bool = False,
) -> Case:
    """Draw a case: clustered submits, equal requests, ties, jobs that fill the machine.

    Parameters
    ----------
    max_jobs
        the largest number of jobs
    zero_runs
        whether some jobs run for zero seconds
    overruns
        whether some jobs run longer than requested
    missing
        whether some jobs have no requested time
    dirty
        whether some jobs can never run, and submissions are out of order
    cancelled
        whether some jobs were cancelled while they waited
    """
    processors = draw(st.sampled_from([1, 2, 3, 4, 5, 8, 12, 16, 100]))
    unit = draw(st.sampled_from([1, 1, 1, 0.25, 600]))
    sizes = st.one_of(
        st.integers(1, processors),
        st.integers(1, max(1, processors // 3)),
        st.sampled_from([1, (processors + 1) // 2, processors // 2 + 1, processors]).map(lambda n: min(n, processors)),
    )
    jobs = []
    submit = draw(st.sampled_from([0, 0, 7, 1000]))
    for _ in range(draw(st.integers(1, max_jobs))):
        submit += draw(_GAPS)
        run: float | None = draw(_RUNS if zero_runs else _RUNS.filter(bool))
        assert run is not None
        kind = draw(st.sampled_from(["exact", "over", "over", "round", "under", "missing"]))
        requested: float | None = run
        if kind == "over":
            requested = run + draw(st.sampled_from([1, 5, 10, 30]))
        elif kind == "round":
            requested = -(-max(run, 1) // 10) * 10
        elif kind == "under" and overruns:
            requested = max(1, run // 2)
        elif kind == "missing" and missing:
            requested = draw(st.sampled_from([None, 0, -1]))
        size = draw(sizes)
        if dirty:
            run = draw(st.sampled_from([run, run, run, run, run, -1, None]))
            size = draw(st.sampled_from([size, size, size, size, size, 0, processors + 1]))
        scaled = None if requested is None else requested * unit
        cancel = None
        if cancelled and draw(st.integers(0, 3)) == 0:
            run, cancel = None, (submit + draw(st.sampled_from([0, 1, 5, 20, 60, 1000]))) * unit
        jobs.append(
            Job(
                submit * unit,
                None if run is None else run * unit,
                scaled,
                size,
                user=draw(st.integers(1, 3)),
                priority=draw(st.integers(0, 2)),
                cancel=cancel,
            )
        )
    if dirty and draw(st.booleans()):
        jobs = draw(st.permutations(jobs))
    return Case(list(jobs), processors)


def to_workload(jobs: Sequence[Job], processors: int | None = None) -> Workload:
    """Return the jobs as a workload; missing values are nan.

    >>> to_workload([Job(0, 10, None, 4)])["requested"]
    array([nan])
    """

    def seconds(values: Sequence[float | None]) -> np.ndarray:
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)

    cancels = {"cancel": seconds([job.cancel for job in jobs])} if any(job.cancel is not None for job in jobs) else {}
    return Workload(
        {
            "submit": seconds([job.submit for job in jobs]),
            "run": seconds([job.run for job in jobs]),
            "requested": seconds([job.requested for job in jobs]),
            "processors": np.array([job.processors for job in jobs], dtype=np.int64),
            "user": np.array([job.user if job.user is not None else -1 for job in jobs]),
            "priority": np.array([job.priority for job in jobs]),
            **cancels,
        },
        name="drawn",
        processors=processors,
    )
