"""The limits of associations and QOS: which jobs are skipped until others have ended.

Source: the resource limits of Slurm 22.05, by their documentation: ``resource_limits``, sacctmgr(1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from simmodel.policies.slurm.priority import weights_of

if TYPE_CHECKING:
    from simmodel.resources.pools.allocation import Request

__all__ = ["billed", "tres_of"]


def tres_of(request: Request) -> dict[str, float]:
    """Return the resources that a job asks for, by Slurm's names: memory in MB.

    >>> from simmodel.resources.pools.allocation import Request
    >>> tres_of(Request(8, nodes=2, cores_per_node=4, memory_per_node=2**30))
    {'cpu': 8.0, 'node': 2.0, 'mem': 2048.0, 'gres/gpu': 0.0}
    """
    nodes = float(request.nodes or 1)
    found = {"cpu": float(request.processors), "node": nodes, "mem": request.memory_per_node * nodes / 2**20}
    found["gres/gpu"] = float(request.gpus_per_node) * nodes
    found |= {f"license/{name}": amount for name, amount in request.consumables.items()}
    return found


def billed(tres: Mapping[str, float], weights: str) -> float:
    """Return the billed resources of a job by ``TRESBillingWeights``; without weights: its CPUs.

    >>> billed({"cpu": 4, "mem": 400}, "CPU=2.0,Mem=1.0G")
    8.390625
    """
    if not weights:
        return tres["cpu"]
    return sum(weight * tres.get(name, 0.0) for name, weight in weights_of(weights))
