"""The priorities of waiting jobs: priority/basic and priority/multifactor.

Source: priority/basic and priority/multifactor of Slurm 22.05, by their behaviour.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from simmodel.policies.slurm.settings import SlurmConf, SlurmPartition

__all__ = ["Asked", "basic", "multifactor", "weights_of"]

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


@cache
def weights_of(text: str) -> tuple[tuple[str, float], ...]:
    """Return the weights of resources of a text such as ``CPU=1000,Mem=0.25G``; of memory: per MB.

    Raises
    ------
    ValueError
        a weight is not a number

    >>> weights_of("CPU=2,Mem=1.0G,GRES/gpu=10")
    (('cpu', 2.0), ('mem', 0.0009765625), ('gres/gpu', 10.0))
    """
    found = []
    for part in text.split(","):
        if part.strip():
            name, _, value = part.partition("=")
            value = value.strip().upper()
            per = _UNITS.get(value[-1:], 1.0)
            number = float(value[:-1] if value[-1:] in _UNITS else value)
            found.append((name.strip().lower(), number / per))
    return tuple(found)


_UNITS = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
"""The units of weights of memory, in MB."""


def largest_factor(partitions: tuple[SlurmPartition, ...]) -> int:
    """Return the largest ``PriorityJobFactor``, at least 1."""
    return max([1, *(each.job_factor for each in partitions)])
