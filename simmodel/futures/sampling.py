"""Future arrivals of a what-if: given, or drawn from a generator once per sample."""

from __future__ import annotations

import inspect
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import numpy as np

from simmodel.foundation.errors import InputError, Plain
from simmodel.metrics.statistics import replication_seeds
from simmodel.work.job import Job
from simmodel.work.prepare import JobsGiven, as_workload
from simmodel.work.transformations import between, shift
from simmodel.work.workload import Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Arrivals", "draw_arrivals", "with_jobs"]

Arrivals: TypeAlias = JobsGiven | Mapping[str, Any] | Callable[[np.random.Generator], JobsGiven]
"""A workload, a data frame or jobs with absolute submission times; or generator settings or ``function(rng)``, drawn
relative to the snapshot."""


def draw_arrivals(
    arrivals: Arrivals | None,
    samples: int,
    seed: int,
    *,
    now: float = 0.0,
    until: float = float("inf"),
    taken: Iterable[int | str] = (),
) -> tuple[list[int], list[Workload | None]]:
    """Return the seed and the arrivals (``None`` without any) of each sample.

    Parameters
    ----------
    arrivals
        see :data:`Arrivals`
    samples
        number of samples; a given workload is the same in each
    seed
        seed of all samples; a larger number of samples starts with the same ones
    now
        the instant of the snapshot (s), added to the submission times of drawn work
    until
        later arrivals are dropped, s
    taken
        ids of existing jobs, which drawn jobs do not get

    Raises
    ------
    InputError
        if ``samples`` is not a whole number >= 1, or the arrivals are not a workload

    >>> from simmodel.generators import synthetic
    >>> def more(rng):
    ...     return synthetic(3, gap=10.0, run=5.0, processors=4, rng=rng)
    >>> seeds, drawn = draw_arrivals(more, 2, seed=1, now=100.0, taken=[7])
    >>> drawn[0]["job"].tolist(), bool(drawn[0]["submit"].min() >= 100)
    ([8, 9, 10], True)
    """
    if not isinstance(samples, int) or samples < 1:
        raise InputError(f"samples: must be a whole number >= 1, got {samples!r}")
    seeds = replication_seeds(samples, seed)
    if arrivals is None:
        return seeds, [None] * samples
    if isinstance(arrivals, Workload) or not (callable(arrivals) or isinstance(arrivals, Mapping)):
        return seeds, [_cut(_given(arrivals, list(taken)), now, until)] * samples
    names = list(taken)
    return seeds, [_cut(_renamed(shift(_drawn(arrivals, each), now), names), now, until) for each in seeds]


def _given(arrivals: JobsGiven, taken: list[int | str]) -> Workload:
    also = ", or generator settings or a function"
    workload = as_workload(arrivals, name="arrivals", place="arrivals", also=also)
    if workload.specs is not None and not isinstance(arrivals, Workload):
        return with_jobs(None, workload.specs, taken)
    _check_names([*taken, *workload["job"].tolist()])
    return workload


def _drawn(arrivals: Mapping[str, Plain] | Callable[[np.random.Generator], JobsGiven], seed: int) -> Workload:
    if isinstance(arrivals, Mapping):
        from simmodel.generators.settings import generate

        return generate(arrivals, seed=seed, source="arrivals")
    rng = np.random.default_rng(seed)
    by_name = "rng" in inspect.signature(arrivals).parameters  # as the built-in generators take it
    drawn = arrivals(rng=rng) if by_name else arrivals(rng)  # type: ignore[call-arg]
    return as_workload(drawn, name="arrivals", place="arrivals returned by the function")


def _renamed(workload: Workload, taken: list[int | str]) -> Workload:
    """Return the workload with new job ids that are not taken."""
    if not len(workload):
        return workload
    before = workload["job"].tolist()
    numbers = all(isinstance(name, int) for name in before)
    new: dict[Any, Any] = dict(zip(before, _free(taken if numbers else [*taken, ""]), strict=False))
    columns: dict[str, Any] = {"job": _column([new[name] for name in before])}
    if "preceding" in workload:
        columns["preceding"] = _column([new.get(name, name) for name in workload["preceding"].tolist()])
    renamed = workload.replace(**columns)
    if workload.specs is not None:
        renamed.specs = [_renamed_spec(job, new[name], new) for job, name in zip(workload.specs, before, strict=True)]
    return renamed


def _renamed_spec(job: Job, name: int | str, new: Mapping[int | str, int | str]) -> Job:
    dependencies = [attrs.evolve(each, job=new.get(each.job, each.job)) for each in job.dependencies]
    return attrs.evolve(job, id=name, dependencies=dependencies)


def _column(names: list[int | str]) -> NDArray[np.generic]:
    return np.array(names, dtype=object if any(isinstance(name, str) for name in names) else None)


def _cut(workload: Workload, now: float, until: float) -> Workload:
    early = int((workload["submit"] < now).sum())
    if early:
        raise InputError(f"arrivals: must be submitted at or after {now:g} s, got {early} earlier")
    return between(workload, now, np.nextafter(until, np.inf)) if until < np.inf else workload


def with_jobs(workload: Workload | None, jobs: Iterable[Job], taken: Iterable[int | str] = ()) -> Workload:
    """Return a workload with additional jobs; those without an id get one that is not taken.

    Raises
    ------
    InputError
        if two jobs have the same id

    >>> both = with_jobs(Workload({"submit": [5], "run": [10], "processors": [1]}), [Job(run=1), Job(id=7, run=1)])
    >>> both["job"].tolist(), both["submit"].tolist()
    ([1, 8, 7], [5.0, 0.0, 0.0])
    """
    if workload is None:
        return Workload.from_jobs(_named(jobs, taken), name="arrivals")
    specs = workload.jobs(strict=False)
    named = [job.id for job in specs if job.id is not None]
    return Workload.from_jobs([*specs, *_named(jobs, [*taken, *named])], name=workload.name)


def _named(jobs: Iterable[Job], taken: Iterable[int | str]) -> list[Job]:
    """Return the jobs with ids, unique among them and those taken."""
    jobs = [job if job.id is not None or job.name is None else attrs.evolve(job, id=job.name) for job in jobs]
    names = [*taken, *(job.id for job in jobs if job.id is not None)]
    _check_names(names)
    free = _free(names)
    return [attrs.evolve(job, id=next(free)) if job.id is None else job for job in jobs]


def _check_names(names: Iterable[int | str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(f"arrivals: duplicate job {name!r} (in the snapshot or among the arrivals)")


def _free(taken: Iterable[int | str]) -> Iterator[int | str]:
    """Yield names that are not taken: numbers after the largest if all names are numbers, otherwise strings."""
    names = set(taken)
    if all(isinstance(name, int) for name in names):
        yield from itertools.count(max((int(name) for name in names), default=0) + 1)
    for i in itertools.count(1):
        name = f"new {i}"
        while name in names:
            name += "'"
        yield name
