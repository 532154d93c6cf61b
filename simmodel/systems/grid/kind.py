"""Grids as a kind of system."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import attrs

from simmodel.platform.grid import GridSpec
from simmodel.platform.options import GridOptions, Options
from simmodel.systems.grid.system import Grid
from simmodel.systems.kinds import Kind
from simmodel.systems.submissions import read_submissions

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.systems.kinds import GivenPolicies
    from simmodel.systems.submissions import GivenWork, Submissions
    from simmodel.systems.system import System

__all__ = ["GRID", "GridKind"]


@attrs.frozen(kw_only=True, repr=False)
class GridKind(Kind):
    """The kind of grids: the homes of work are sites, each of which has a policy."""

    asks = ("places", "systems")
    homes = True

    def read_work(
        self, given: GivenWork, spec: Any, seed: int, inputs: Mapping[str, Any] = MappingProxyType({})
    ) -> tuple[Submissions, Any]:
        """Return the submissions, whose homes are sites, and the spec."""
        return read_submissions("jobs", given, homes=[site.name for site in spec.sites], seed=seed), spec

    def build(
        self,
        env: Environment,
        spec: GridSpec,
        policy: PolicyLike,
        options: Options,
        *,
        policies: GivenPolicies = None,
        name: str | None = None,
    ) -> System[Any]:
        """Return a live grid."""
        return Grid(env, spec, policy, policies=policies, name=name, **options.values())


GRID = GridKind(
    name="grid",
    spec=GridSpec,
    system=Grid,
    snapshot="simmodel.snapshots.grid:GridSnapshot",
    options=GridOptions,
    policy="least-loaded",
)
