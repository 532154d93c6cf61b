"""The priorities of waiting jobs: priority/basic and priority/multifactor.

Source: priority/basic and priority/multifactor of Slurm 22.05, by their behaviour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from simmodel.policies.slurm.settings import SlurmConf, SlurmPartition

__all__ = ["Asked", "basic", "multifactor"]

TOP = 4294901759
MOST = 2**32 - 1


class Asked(NamedTuple):
    """What the priority of a job depends on.

    Parameters
    ----------
    nodes, cpus
        parts of all nodes and of all CPUs that it asks for
    age
        seconds since it became eligible
    partition
        its ``PriorityJobFactor``, as a part of the largest one
    nice
        what its user takes away
    """

    nodes: float
    cpus: float
    age: float
    partition: float
    nice: float = 0.0


def basic(number: int, nice: float = 0.0) -> float:
    """Return the priority of the job that was submitted as the first (0), the second, ... by priority/basic.

    >>> basic(0), basic(1, nice=50)
    (4294901759.0, 4294901708.0)
    """
    return float(max(TOP - number - nice, 1))


def multifactor(job: Asked, settings: SlurmConf) -> float:
    """Return the priority of a job by priority/multifactor: a whole number from 1 to 2^32 - 1.

    >>> from simmodel.policies.slurm.settings import SlurmConf
    >>> settings = SlurmConf(multifactor=True, weight_size=2000, weight_partition=500)
    >>> multifactor(Asked(1 / 8, 1 / 8, 0.0, 0.1), settings)
    300.0
    """
    size = (1.0 - job.nodes + 1.0 - job.cpus) / 2 if settings.favor_small else (job.nodes + job.cpus) / 2
    age = min(1.0, max(job.age, 0.0) / settings.max_age) if settings.max_age else 1.0
    found = settings.weight_age * age + settings.weight_size * size + settings.weight_partition * job.partition
    return float(min(max(int(found - job.nice), 1), MOST))


def largest_factor(partitions: tuple[SlurmPartition, ...]) -> int:
    """Return the largest ``PriorityJobFactor``, at least 1."""
    return max([1, *(each.job_factor for each in partitions)])
