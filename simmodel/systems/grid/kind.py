"""Grids as a kind of system."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import attrs

from simmodel.platform.grid import GridSpec
from simmodel.platform.options import GridOptions, Options
from simmodel.scheduling.registry import policy as policy_of
from simmodel.scheduling.scheduler import check_decides
from simmodel.snapshots.grid import GridSnapshot
from simmodel.systems.grid.core import asked_of_sites
from simmodel.systems.grid.data_scheduler import chosen_data_policy
from simmodel.systems.grid.system import Grid
from simmodel.systems.kinds import Kind
from simmodel.systems.submissions import read_submissions

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.snapshots.snapshot import Snapshot
    from simmodel.systems.kinds import GivenPolicies
    from simmodel.systems.submissions import GivenWork, Submissions
    from simmodel.systems.system import System

__all__ = ["GRID", "GridKind"]


@attrs.frozen(kw_only=True, repr=False)
class GridKind(Kind):
    """The kind of grids: the homes of work are sites, each of which has a policy."""

    asks = Grid.asks
    homes = True

    def of_nodes(self, spec: Any) -> frozenset[str]:
        """Return ``"files"``, ``"cores"`` if all sites have hosts, and ``"memory"`` if any of these has some."""
        return asked_of_sites(spec)

    def read_work(
        self, given: GivenWork, spec: Any, seed: int, inputs: Mapping[str, Any] = MappingProxyType({})
    ) -> tuple[Submissions, Any]:
        """Return the submissions, whose homes are sites, and the spec."""
        homes = [site.name for site in spec.sites]
        return read_submissions("jobs", given, homes=homes, of_nodes=self.of_nodes(spec), seed=seed), spec

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

    def check_data(self, snapshot: Snapshot, given: PolicyLike | None) -> None:
        """Raise ``InputError`` if the data policy is unknown, or none is given and that of the snapshot has no name."""
        assert isinstance(snapshot, GridSnapshot)
        check_decides(policy_of(chosen_data_policy(snapshot.data, given)), ("data",), "the data manager of a grid")

    def restore(
        self,
        env: Environment,
        snapshot: Snapshot,
        policy: PolicyLike | None = None,
        *,
        policies: GivenPolicies = None,
        data: PolicyLike | None = None,
    ) -> System[Any]:
        """Return a live grid that continues from a snapshot."""
        assert isinstance(snapshot, GridSnapshot)
        return Grid.from_snapshot(env, snapshot, policy, policies, data)


GRID = GridKind(
    name="grid",
    spec=GridSpec,
    system=Grid,
    snapshot="simmodel.snapshots.grid:GridSnapshot",
    options=GridOptions,
    policy="least-loaded",
)
