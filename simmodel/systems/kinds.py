"""The registry of the kinds of system, which simulations, scenarios, what-ifs, brokers and commands go through.

Each kind is registered once; no code outside its package tests for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import attrs

from simmodel.foundation.display import Fields
from simmodel.foundation.entries import Entries, load
from simmodel.foundation.errors import InputError, unknown
from simmodel.platform.kinds import KINDS as SPECS
from simmodel.platform.options import NoOptions, Options
from simmodel.scheduling.protocol import Decides, Policy
from simmodel.scheduling.registry import policy
from simmodel.scheduling.scheduler import check_decides
from simmodel.snapshots.snapshot import Snapshot
from simmodel.systems.policy_state import chosen_policy
from simmodel.systems.submissions import read_submissions

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.platform.broker import SystemSpec
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.systems.submissions import GivenWork, Submissions
    from simmodel.systems.system import System

__all__ = [
    "Kind",
    "added_kinds",
    "kind_named",
    "kind_of",
    "kind_of_platform",
    "kind_of_snapshot",
    "kinds",
    "register_kind",
    "snapshot_in",
    "work_of",
]

_BUILT_IN = {
    "cluster": "simmodel.systems.cluster.system:CLUSTER",
    "machine": "simmodel.systems.machine.system:MACHINE",
    "broker": "simmodel.systems.broker.system:BROKER",
    "grid": "simmodel.systems.grid.system:GRID",
}


@attrs.frozen(kw_only=True, repr=False)
class Kind(Fields):
    """A kind of system.

    Parameters
    ----------
    name
        its name in specs and snapshots
    spec, system, snapshot
        the classes of its specs, live systems and snapshots (or ``"module:Class"``; ``None``: no snapshots)
    options
        the class of the options of its systems
    inputs
        further arguments of simulate(), which complete the spec or the workload
    kept_inputs
        those of them that the document of a scenario stores, since neither the spec nor the workload does
    policy
        the default policy
    work
        the work that it runs: ``"jobs"`` or ``"tasks"``
    """

    asks: ClassVar[tuple[Decides, ...]] = ("jobs",)
    """The values of ``Policy.decides`` that it accepts."""
    homes: ClassVar[bool] = False
    """Whether a place can be the home of work."""

    name: str
    spec: type[Any]
    system: type[System[Any]]
    snapshot: type[Snapshot] | str | None = None
    options: type[Options] = NoOptions
    inputs: tuple[str, ...] = ()
    kept_inputs: tuple[str, ...] = ()
    policy: str = "fcfs"
    work: Literal["jobs", "tasks"] = "jobs"

    @property
    def snapshot_class(self) -> type[Snapshot] | None:
        """The class of the snapshots of its systems, ``None`` if they have none."""
        return load(self.snapshot)

    def read_options(self, values: Mapping[str, Any]) -> Options:
        """Return the options with these values, by name; raises ``InputError`` if a name is unknown."""
        return self.options.of(values)

    def option_names(self, spec: Any) -> list[str]:
        """Return the names of the options of a system with this spec."""
        return self.options.names()

    def work_of(self, spec: Any) -> Literal["jobs", "tasks"]:
        """Return whether a system with this spec runs ``"jobs"`` or ``"tasks"``."""
        return self.work

    def of_nodes(self, spec: Any) -> frozenset[str]:
        """Return the amounts that jobs can request of nodes at each place: ``"cores"``, ``"memory"``; none if counted.

        The tasks of workflows that run as jobs request this much.
        """
        return frozenset()

    def read_work(
        self, given: GivenWork, spec: Any, seed: int, inputs: Mapping[str, Any] = MappingProxyType({})
    ) -> tuple[Submissions, Any]:
        """Return the submissions of a workload, and the spec as completed by the workload and the inputs."""
        return read_submissions(self.work_of(spec), given, of_nodes=self.of_nodes(spec), seed=seed), spec

    def build(
        self,
        env: Environment,
        spec: Any,
        policy: PolicyLike,
        options: Options,
        *,
        policies: GivenPolicies = None,
        name: str | None = None,
    ) -> System[Any]:
        """Return a live system.

        Parameters
        ----------
        policies
            policies of the places, if these are systems: one for all, or by name
        name
            name in reports; default: that of the spec
        """
        _no_places(policies, self.name)
        given = {"name": name} if name is not None else {}
        return self.system(env, spec, policy, **given, **options.values())  # type: ignore[call-arg]

    def policy_of(self, snapshot: Snapshot, given: PolicyLike | None = None) -> Policy:
        """Return the given policy, or else that of a snapshot, without its memory.

        Raises
        ------
        InputError
            if the policy is unknown, or none is given and that of the snapshot was passed as an object
        """
        found = policy(chosen_policy(snapshot, given), self.asks)
        check_decides(found, self.asks, f"the {self.name}")
        return found

    def check_data(self, snapshot: Snapshot, given: PolicyLike | None) -> None:
        """Raise ``InputError`` if a system that continues from a snapshot cannot have this data policy."""
        if given is not None:
            raise InputError(f"must be None for a {self.name}, which has no data policy", place="data")

    def restore(
        self,
        env: Environment,
        snapshot: Snapshot,
        policy: PolicyLike | None = None,
        *,
        policies: GivenPolicies = None,
        data: PolicyLike | None = None,
    ) -> System[Any]:
        """Return a live system that continues from a snapshot, under the given policy or else that of the snapshot.

        ``policies``: of its places, if these can be homes: one for all, or by path; ``data``: of its files.
        """
        self.check_data(snapshot, data)
        if self.homes:
            return self.system.from_snapshot(env, snapshot, policy, policies)  # type: ignore[call-arg]
        _no_places(policies, self.name)
        return self.system.from_snapshot(env, snapshot, policy)


_KINDS = Entries[Kind](_BUILT_IN)

GivenPolicies: TypeAlias = "PolicyLike | Mapping[str, PolicyLike] | None"
"""The policies of the places of a broker: one for all, or by path."""


def _no_places(policies: GivenPolicies, kind: str) -> None:
    if policies is not None:
        raise InputError(f"must be None for a {kind}, whose places have no policies", place="policies")


def register_kind(kind: Kind) -> Kind:
    """Register a kind of system for use by simulate(), scenarios, what-ifs, brokers, documents and commands.

    Raises
    ------
    InputError
        if another kind has its name
    """
    if kind.name in _KINDS and _KINDS[kind.name] is not kind:
        raise InputError(f"duplicate kind {kind.name!r}")
    _KINDS[kind.name] = kind
    SPECS[kind.name] = kind.spec
    return kind


def kinds() -> dict[str, Kind]:
    """Return all kinds by name.

    >>> kinds()["machine"].work
    'tasks'
    """
    return dict(_KINDS)


def added_kinds() -> list[Kind]:
    """Return the custom kinds, without importing the built-in ones."""
    return [_KINDS[name] for name in _KINDS if name not in _BUILT_IN]


def kind_named(name: str) -> Kind:
    """Return the kind of a name.

    Raises
    ------
    InputError
        if the name is unknown

    >>> kind_named("machine").policy
    'hrr'
    """
    if name not in _KINDS:
        raise unknown("kind", name, _KINDS)
    return _KINDS[name]


def kind_of(spec: Any) -> Kind | None:
    """Return the kind of system of a spec, or ``None`` if the argument is not a spec.

    >>> from simmodel.platform import ClusterSpec
    >>> kind_of(ClusterSpec.simple(4)).name
    'cluster'
    """
    name = SPECS.name_of(type(spec))
    return kind_named(name) if name is not None else None


def kind_of_snapshot(snapshot: Snapshot) -> Kind:
    """Return the kind of system of a snapshot.

    Raises
    ------
    InputError
        if the argument is not a snapshot, or its kind is unknown
    """
    if not isinstance(snapshot, Snapshot):
        raise InputError(f"must be a snapshot or a snapshot file, got {snapshot!r}", place="snapshot")
    return kind_named(snapshot.system)


def snapshot_in(given: object) -> Snapshot | None:
    """Return the argument if it is a snapshot, else ``None``."""
    return given if isinstance(given, Snapshot) else None


def kind_of_platform(platform: SystemSpec | Snapshot | None) -> Kind:
    """Return the kind of system of a spec or a snapshot; for anything else that of clusters, as for a bare log."""
    if isinstance(platform, Snapshot):
        return kind_of_snapshot(platform)
    return kind_of(platform) or kind_named("cluster")


def work_of(platform: SystemSpec | Snapshot | None) -> Literal["jobs", "tasks"]:
    """Return whether the system of a spec or a snapshot runs ``"jobs"`` or ``"tasks"``.

    >>> from simmodel.platform import ClusterSpec
    >>> work_of(ClusterSpec.simple(4))
    'jobs'
    """
    kind = kind_of_platform(platform)
    if isinstance(platform, Snapshot):
        return work_of(platform.below[0]) if platform.below else kind.work
    return kind.work if platform is None else kind.work_of(platform)
