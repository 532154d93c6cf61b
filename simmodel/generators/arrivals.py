"""Renewal arrivals, and jobs with sizes and run times of given distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.generators.distributions import Distribution, GivenDistribution, distribution, exponential
from simmodel.generators.draws import stream
from simmodel.work.workload import Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["poisson_arrivals", "renewal_arrivals", "synthetic"]


def renewal_arrivals(
    jobs: int,
    gaps: Distribution,
    *,
    start: float = 0.0,
    rng: np.random.Generator | None = None,
    seed: int | None = None,
) -> NDArray[np.float64]:
    """Return the instants of the arrivals of a renewal process, whose gaps are independent draws.

    Parameters
    ----------
    jobs
        number of jobs
    gaps
        the distribution of the gaps, s; the first arrival is one gap after ``start``
    start
        s
    rng, seed
        the random stream, or its seed; default: seed 0

    Raises
    ------
    ValueError
        a gap is negative

    >>> from simmodel.generators import deterministic
    >>> renewal_arrivals(3, deterministic(5.0))
    array([ 5., 10., 15.])
    """
    drawn = gaps.draw(stream(rng, seed), jobs)
    if (drawn < 0).any():
        raise ValueError(f"gaps: must be >= 0, got {drawn.min()!r} from {gaps.name}")
    return start + np.cumsum(drawn, dtype=np.float64)


def poisson_arrivals(
    jobs: int,
    rate: float,
    *,
    start: float = 0.0,
    rng: np.random.Generator | None = None,
    seed: int | None = None,
) -> NDArray[np.float64]:
    """Return the instants of the arrivals of a Poisson process with ``rate`` arrivals per second.

    >>> bool((np.diff(poisson_arrivals(100, 0.5, seed=1)) > 0).all())
    True
    """
    if not rate > 0:
        raise ValueError(f"rate: must be > 0, got {rate!r}")
    return renewal_arrivals(jobs, exponential(1 / rate), start=start, rng=rng, seed=seed)


def synthetic(
    jobs: int,
    *,
    gap: GivenDistribution,
    run: GivenDistribution,
    size: GivenDistribution = 1,
    request_factor: GivenDistribution | None = None,
    users: int = 0,
    processors: int | None = None,
    rng: np.random.Generator | None = None,
    seed: int | None = None,
    name: str = "synthetic",
) -> Workload:
    """Generate jobs with independent gaps, run times and sizes.

    Parameters
    ----------
    jobs
        number of jobs
    gap, run
        the distributions of the gaps between submissions and of the run times, s; a number is a constant
    size
        the distribution of the requested processors, rounded and clipped to 1 ... ``processors``
    request_factor
        the distribution of requested time / run time, clipped to at least 1; ``None``: both times are equal
    users
        number of users, to whom jobs belong with equal probability; 0: jobs have no user
    processors
        the size of the machine, if known
    rng, seed
        the random stream, or its seed; default: seed 0
    name
        the workload's name

    Raises
    ------
    InputError
        the mapping of a distribution is invalid
    ValueError
        ``jobs`` is below 1

    >>> log = synthetic(1000, gap=exponential(10.0), run={"distribution": "gamma", "mean": 60, "cv": 2}, size=4, seed=1)
    >>> log["processors"][:3], log["run"].mean().round()
    (array([4, 4, 4]), np.float64(66.0))
    """
    if jobs < 1:
        raise ValueError(f"jobs: must be >= 1, got {jobs!r}")
    arriving, running, sizing, requesting, owning = stream(rng, seed).spawn(5)
    runs = np.maximum(distribution(run).draw(running, jobs), 0.0)
    sizes = np.clip(np.rint(distribution(size).draw(sizing, jobs)), 1, processors or np.inf).astype(np.int64)
    columns: dict[str, NDArray[Any]] = {
        "submit": renewal_arrivals(jobs, distribution(gap), rng=arriving),
        "run": runs,
        "processors": sizes,
        "requested": runs,
    }
    if request_factor is not None:
        columns["requested"] = runs * np.maximum(distribution(request_factor).draw(requesting, jobs), 1.0)
    if users:
        columns["user"] = owning.integers(1, users + 1, jobs)
    return Workload(columns, name=name, processors=processors)
