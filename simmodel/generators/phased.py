"""Synthetic work in phases: jobs of one class after another, at a steady pace.

Source: the synthetic workload of Zhang, Kurkure, Tao, Papka, Lan, "A real-time digital twin for adaptive scheduling",
arXiv 2512.18894, 2025 (SchedTwin): 150 jobs on 32 nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, Plain
from simmodel.generators.distributions import stream
from simmodel.work.workload import Workload

__all__ = ["SCHEDTWIN", "JobClass", "schedtwin"]


def _range(value: float | Sequence[float]) -> tuple[float, float]:
    low, high = value if isinstance(value, Sequence) else (value, value)
    return low, high


@attrs.frozen(repr=False)
class JobClass(Fields):
    """A class of similar jobs: each number is drawn uniformly from a range, whole numbers with both ends included.

    Parameters
    ----------
    jobs
        number of jobs
    nodes
        least and most nodes requested
    walltime
        least and most requested time, whole seconds

    >>> JobClass(25, (2, 4), (60, 180)).nodes
    (2, 4)
    """

    jobs: int
    nodes: tuple[int, int] = attrs.field(converter=_range)
    walltime: tuple[int, int] = attrs.field(converter=_range)

    def __attrs_post_init__(self) -> None:
        for name, (low, high) in (("nodes", self.nodes), ("walltime", self.walltime)):
            if low != int(low) or high != int(high) or not 1 <= low <= high:
                raise InputError(f"{name}: must be whole numbers 1 <= least <= most, got {low!r} and {high!r}")
        if self.jobs != int(self.jobs) or self.jobs < 0:
            raise InputError(f"jobs: must be a whole number >= 0, got {self.jobs!r}")


def _class(given: JobClass | Mapping[str, Plain]) -> JobClass:
    if isinstance(given, JobClass):
        return given
    if set(given) != {"jobs", "nodes", "walltime"}:
        raise InputError(f"classes: each must have jobs, nodes and walltime, got {', '.join(given) or 'nothing'}")
    fields: dict[str, Any] = dict(given)
    return JobClass(**fields)


SCHEDTWIN = (
    JobClass(25, (2, 4), (60, 180)),
    JobClass(35, (16, 20), (500, 700)),
    JobClass(40, (6, 8), (200, 300)),
    JobClass(50, (2, 4), (60, 180)),
)
"""The classes of the paper: 150 jobs, first short narrow ones, then long wide ones, then ever smaller ones."""


def schedtwin(
    *,
    classes: Sequence[JobClass | Mapping[str, Plain]] = SCHEDTWIN,
    gap: float = 5.0,
    processors: int = 32,
    run_share: Sequence[float] | float = 1.0,
    rng: np.random.Generator | None = None,
    seed: int | None = None,
    name: str = "schedtwin",
) -> Workload:
    """Generate jobs class after class, one every ``gap`` seconds.

    Parameters
    ----------
    classes
        in order of submission; a class as a mapping has ``jobs``, ``nodes`` and ``walltime``
    gap
        time between submissions, s; the first is at 0
    processors
        size of the machine; a node is a processor
    run_share
        run time / walltime: a number, or bounds of a uniform distribution, > 0 and <= 1. The paper does not specify run
        times; by default jobs run for all of their walltime
    rng, seed
        the random stream, or its seed; default: seed 0
    name
        the workload's name

    Raises
    ------
    InputError
        a number is out of bounds, or a job is wider than the machine

    >>> log = schedtwin(seed=1)
    >>> len(log), log.processors, int(log["submit"][-1]), int(log["processors"][25:60].min())
    (150, 32, 745, 16)
    """
    each = [_class(given) for given in classes]
    least, most = _range(run_share)
    if not 0 < least <= most <= 1:
        raise InputError(f"run_share: must be 0 < least <= most <= 1, got {least!r} and {most!r}")
    if not gap >= 0:
        raise InputError(f"gap: must be >= 0 s, got {gap!r}")
    widest = max((one.nodes[1] for one in each), default=0)
    if widest > processors:
        raise InputError(f"classes: must have at most {processors} nodes per job, got {widest}")
    jobs = sum(one.jobs for one in each)
    if not jobs:
        raise InputError("classes: must have at least one job, got none")
    sizing, asking, running = stream(rng, seed).spawn(3)
    nodes = [sizing.integers(*one.nodes, one.jobs, endpoint=True) for one in each]
    walltimes = np.concatenate([asking.integers(*one.walltime, one.jobs, endpoint=True) for one in each])
    columns = {
        "submit": gap * np.arange(jobs, dtype=np.float64),
        "run": walltimes * (running.uniform(least, most, jobs) if least < most else least),
        "processors": np.concatenate(nodes),
        "requested": walltimes.astype(np.float64),
    }
    return Workload(columns, name=name, processors=processors)
