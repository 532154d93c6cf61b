"""A kind of system of a user's own: a bag of jobs, of which a fixed number run at once, whatever they ask for."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from simmodel.environment import Environment
from simmodel.errors import InputError
from simmodel.resources.counts import CountPool
from simmodel.snapshots.job_system import JobSystemSnapshot
from simmodel.systems.jobs import JobSystem
from simmodel.systems.kinds import Kind, register_kind


@attrs.frozen(kw_only=True)
class BagSpec:
    """A bag of jobs: how many run at once."""

    slots: int
    name: str = "bag"

    def __attrs_post_init__(self) -> None:
        if self.slots < 1:
            raise InputError(f"slots: a whole number from 1 on expected, found {self.slots}")


@attrs.frozen(kw_only=True, eq=False, slots=False, repr=False)
class BagSnapshot(JobSystemSnapshot):
    """A bag at one instant."""

    system: ClassVar[str] = "bag"

    platform: BagSpec


class Bag(JobSystem):
    """Jobs of one processor each, in a fixed number of slots."""

    kind = "bag"
    snapshots = BagSnapshot

    def __init__(self, env: Environment, spec: BagSpec, policy: Any = "fcfs", *, name: str | None = None) -> None:
        name = name or spec.name
        super().__init__(env, spec, policy, places=[CountPool(env, name, spec.slots)], name=name)


BAG = register_kind(Kind(name="bag", spec=BagSpec, system=Bag, snapshot=BagSnapshot))
