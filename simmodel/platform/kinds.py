"""The kinds of systems that specs describe, by name."""

from __future__ import annotations

from typing import Any

from simmodel.entries import Entries

__all__ = ["KINDS"]

KINDS = Entries[type[Any]](
    {
        "cluster": "simmodel.platform.cluster:ClusterSpec",
        "machine": "simmodel.platform.machine:MachineSpec",
        "broker": "simmodel.platform.broker:BrokerSpec",
    }
)
"""What ``kind`` at the top of a document may be, and the class of the spec that it stands for."""
