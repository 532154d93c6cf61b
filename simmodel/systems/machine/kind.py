"""Machines as a kind of system."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import attrs

from simmodel.formats.hetsim_config import read_hetsim_config
from simmodel.platform.machine import MachineSpec
from simmodel.platform.options import MachineOptions
from simmodel.systems.kinds import Kind
from simmodel.systems.machine.system import Machine
from simmodel.systems.submissions import read_submissions

if TYPE_CHECKING:
    from simmodel.systems.submissions import GivenWork, Submissions

__all__ = ["MACHINE", "MachineKind"]


@attrs.frozen(kw_only=True, repr=False)
class MachineKind(Kind):
    """The kind of machines; a HetSim configuration may define the distribution of the work and complete the spec."""

    asks = ("places", "plans", "tasks")

    def read_work(
        self, given: GivenWork, spec: Any, seed: int, inputs: Mapping[str, Any] = MappingProxyType({})
    ) -> tuple[Submissions, Any]:
        """Return the work, and the machine spec with the reconfiguration times of the configuration."""
        config = inputs.get("config")
        if isinstance(config, (str, Path)):
            config = read_hetsim_config(config)
        if config is not None:
            spec = config.on_machine(spec)
        return read_submissions("tasks", given, seed=seed, machine=spec, config=config), spec


MACHINE = MachineKind(
    name="machine",
    spec=MachineSpec,
    system=Machine,
    snapshot="simmodel.snapshots.machine:MachineSnapshot",
    options=MachineOptions,
    inputs=("config",),
    policy="hrr",
    work="tasks",
)
