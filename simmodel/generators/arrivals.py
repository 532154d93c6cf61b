"""Renewal arrivals: of jobs with sizes and run times of given distributions, of tasks, of whole workflows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.foundation.distributions import GivenDistribution
from simmodel.foundation.errors import InputError
from simmodel.generators.distributions import (
    Distribution,
    distribution,
    exponential,
    stream,
    uniform,
    whole,
)
from simmodel.generators.tasksets import changed
from simmodel.work.taskset import TaskSet
from simmodel.work.workflow import Workflow
from simmodel.work.workload import Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["arrive", "poisson_arrivals", "renewal_arrivals", "synthetic", "works_over_time"]


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
    InputError
        a gap is negative

    >>> from simmodel.generators import deterministic
    >>> renewal_arrivals(3, deterministic(5.0))
    array([ 5., 10., 15.])
    """
    drawn = gaps.draw(stream(rng, seed), jobs)
    if (drawn < 0).any():
        raise InputError(f"gaps: must be >= 0, got {drawn.min()!r} from {gaps.name}")
    return start + np.cumsum(drawn, dtype=np.float64)


def poisson_arrivals(
    jobs: int, rate: float, *, start: float = 0.0, rng: np.random.Generator | None = None, seed: int | None = None
) -> NDArray[np.float64]:
    """Return the instants of the arrivals of a Poisson process with ``rate`` arrivals per second.

    >>> bool((np.diff(poisson_arrivals(100, 0.5, seed=1)) > 0).all())
    True
    """
    if not rate > 0:
        raise InputError(f"rate: must be > 0, got {rate!r}")
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
    InputError
        ``jobs`` is below 1

    >>> log = synthetic(1000, gap=exponential(10.0), run={"distribution": "gamma", "mean": 60, "cv": 2}, size=4, seed=1)
    >>> log["processors"][:3], log["run"].mean().round()
    (array([4, 4, 4]), np.float64(66.0))
    """
    if jobs < 1:
        raise InputError(f"jobs: must be >= 1, got {jobs!r}")
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


# ---------------------------------------------------------------------- tasks and workflows

Gap = GivenDistribution | None


def _instants(
    n: int, rate: float | None, gap: Gap, max_delay: float | None, start: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return arrival instants by rate, gap or max_delay; with ``max_delay`` the first is ``start`` itself."""
    given = [name for name, value in (("rate", rate), ("gap", gap), ("max_delay", max_delay)) if value is not None]
    if len(given) != 1:
        raise InputError(f"must have exactly one of rate, gap and max_delay, got {' and '.join(given) or 'none'}")
    numbers = [("start", start), (given[0], {"rate": rate, "max_delay": max_delay}.get(given[0], 0))]
    for name, value in numbers:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < np.inf:
            raise InputError(f"must be a number >= 0, got {value!r}", place=name)
    try:
        if rate is not None:
            return poisson_arrivals(n, rate, start=start, rng=rng)
        if gap is not None:
            return renewal_arrivals(n, distribution(gap), start=start, rng=rng)
    except (TypeError, ValueError) as error:
        raise InputError(str(error), place=given[0] if given[0] not in str(error) else None) from None
    assert max_delay is not None
    later = renewal_arrivals(n - 1, uniform(0, max_delay), start=start, rng=rng) if n > 1 else np.empty(0)
    return np.concatenate([[float(start)], later])


def arrive(
    work: TaskSet | Workflow,
    *,
    rate: float | None = None,
    gap: Gap = None,
    max_delay: float | None = None,
    start: float = 0.0,
    rng: np.random.Generator,
) -> TaskSet:
    """Return the tasks with random submission instants, in their order.

    Parameters
    ----------
    work
        the tasks
    rate, gap, max_delay
        exactly one: arrivals per second of a Poisson process; the distribution of gaps, s; or the maximum of uniformly
        distributed gaps, s (HetSim's ``max_task_delay``)
    start
        time before the first gap, s after the submission of the set
    rng
        the random stream

    Raises
    ------
    InputError
        not exactly one of the three is passed, or a value is invalid

    >>> arrive(TaskSet([1.0, 2.0, 3.0]), gap=5, rng=np.random.default_rng(0)).submit
    [5.0, 10.0, 15.0]
    """
    tasks = TaskSet.of(work)
    return changed(tasks, submit=_instants(len(tasks), rate, gap, max_delay, start, rng).tolist())


def works_over_time(
    works: Sequence[TaskSet | Workflow] | Callable[[np.random.Generator], TaskSet | Workflow],
    copies: int | None = None,
    *,
    rate: float | None = None,
    gap: Gap = None,
    max_delay: float | None = None,
    start: float = 0.0,
    rng: np.random.Generator,
) -> list[tuple[float, TaskSet | Workflow]]:
    """Return workflows or task sets with random submission instants.

    Parameters
    ----------
    works
        the works in order; or a function ``works(rng)`` that generates one, called with an independent stream each time
    copies
        number of works, taken in turn; default: each of ``works`` once
    rate, gap, max_delay, start
        as for :func:`arrive`, between works
    rng
        the random stream

    Raises
    ------
    InputError
        as for :func:`arrive`

    >>> pairs = works_over_time([TaskSet([1.0]), TaskSet([2.0, 3.0])], 3, gap=60, rng=np.random.default_rng(0))
    >>> [(at, len(work)) for at, work in pairs]
    [(60.0, 1), (120.0, 2), (180.0, 1)]
    """
    if copies is None and callable(works):
        raise InputError("must be a number for generated works, got None", place="copies")
    n = whole("copies", copies, least=1) if copies is not None else len(works)  # type: ignore[arg-type]
    if not callable(works) and not works:
        raise InputError("must not be empty", place="works")
    arriving, drawing = rng.spawn(2)
    made = [works(each) for each in drawing.spawn(n)] if callable(works) else [works[i % len(works)] for i in range(n)]
    return list(zip(_instants(n, rate, gap, max_delay, start, arriving).tolist(), made, strict=True))
