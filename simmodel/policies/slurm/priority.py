"""The priorities of waiting jobs: priority/basic and priority/multifactor.

Source: priority/basic and priority/multifactor of Slurm 22.05, by their behaviour.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from simmodel.policies.slurm.settings import weights_of

if TYPE_CHECKING:
    from simmodel.policies.slurm.settings import SlurmConf, SlurmPartition

__all__ = ["Asked", "basic", "multifactor"]

TOP = 4294901759
MOST = 2**32 - 1


class Asked(NamedTuple):
    """What the priority of a job depends on; factors are from 0 to 1.

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
    fair_share, association, qos
        the factor of fair share; the priorities of its association and of its QOS, as parts of the largest ones
    tres
        parts of the resources of its partition that it asks for, by name
    site
        what a plug-in of the site adds
    """

    nodes: float
    cpus: float
    age: float
    partition: float
    nice: float = 0.0
    fair_share: float = 0.0
    association: float = 0.0
    qos: float = 0.0
    tres: Mapping[str, float] = MappingProxyType({})
    site: float = 0.0


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
    found = settings.weight_age * age + settings.weight_assoc * job.association
    found += settings.weight_fair_share * job.fair_share + settings.weight_size * size
    found += settings.weight_partition * job.partition + settings.weight_qos * job.qos
    for name, weight in weights_of(settings.weight_tres):
        found += weight * job.tres.get(name, 0.0)
    return float(min(max(int(found + job.site - job.nice), 1), MOST))


def largest_factor(partitions: tuple[SlurmPartition, ...]) -> int:
    """Return the largest ``PriorityJobFactor``, at least 1."""
    return max([1, *(each.job_factor for each in partitions)])
