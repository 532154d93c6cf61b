"""The kinds of system: what simulations, scenarios, what-ifs, brokers and commands know about each.

A kind is registered once; nothing outside asks which one it deals with.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import attrs

from simmodel.entries import Entries, load
from simmodel.errors import InputError, unknown
from simmodel.platform.kinds import KINDS as SPECS
from simmodel.platform.options import NoOptions, Options
from simmodel.scheduling.policy_base import Decides, Policy
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
    "cluster": "simmodel.systems.cluster.kind:CLUSTER",
    "machine": "simmodel.systems.machine.kind:MACHINE",
    "broker": "simmodel.systems.broker.kind:BROKER",
}


@attrs.frozen(kw_only=True)
class Kind:
    """A kind of system.

    Parameters
    ----------
    name
        how descriptions and snapshots give it
    spec, system, snapshot
        the classes of its spec, of the live system and of its snapshot (or ``"module:Class"``; ``None``: it has none)
    options
        the class of the options that its systems take besides a policy
    inputs
        what simulate() takes besides, to complete the description or the workload
    policy
        the policy of systems that are given none
    work
        what it runs: ``"jobs"`` or ``"tasks"``
    """

    asks: ClassVar[tuple[Decides, ...]] = ("jobs",)
    """What its policies may decide."""
    homes: ClassVar[bool] = False
    """Whether work may belong to one of the places."""

    name: str
    spec: type[Any]
    system: type[System[Any]]
    snapshot: type[Snapshot] | str | None = None
    options: type[Options] = NoOptions
    inputs: tuple[str, ...] = ()
    policy: str = "fcfs"
    work: Literal["jobs", "tasks"] = "jobs"

    @property
    def snapshot_class(self) -> type[Snapshot] | None:
        """The class of the snapshots of its systems, ``None`` if they have none."""
        return load(self.snapshot)

    def read_options(self, values: Mapping[str, Any]) -> Options:
        """Return the options that a user gives by name; raises ``InputError`` where one is not known."""
        return self.options.of(values)

    def option_names(self, spec: Any) -> list[str]:
        """Return the names of the options that a system of a description takes."""
        return self.options.names()

    def work_of(self, spec: Any) -> Literal["jobs", "tasks"]:
        """Return what a system of a description runs."""
        return self.work

    def read_work(
        self, given: GivenWork, spec: Any, seed: int, inputs: Mapping[str, Any] = MappingProxyType({})
    ) -> tuple[Submissions, Any]:
        """Return what users give as a workload of a system, and its description as that and the inputs complete it."""
        return read_submissions(self.work_of(spec), given, seed=seed), spec

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
            of the places below, where they are systems: one for all, or by name
        name
            what reports call it; default: as its description says
        """
        _no_places(policies, self.name)
        given = {"name": name} if name is not None else {}
        return self.system(env, spec, policy, **given, **options.values())  # type: ignore[call-arg]

    def policy_of(self, snapshot: Snapshot, given: PolicyLike | None = None) -> Policy:
        """Return a policy to go on from a snapshot with, nothing remembered: the one given, or the snapshot's own.

        Raises
        ------
        InputError
            where it is not known, or none is given and the snapshot's own was given as an object
        """
        found = policy(chosen_policy(snapshot, given))
        check_decides(found, self.asks, f"the {self.name}")
        return found

    def restore(
        self, env: Environment, snapshot: Snapshot, policy: PolicyLike | None = None, *, policies: GivenPolicies = None
    ) -> System[Any]:
        """Return a live system that goes on from a snapshot, under the snapshot's policy unless another is given."""
        _no_places(policies, self.name)
        return self.system.from_snapshot(env, snapshot, policy)


_KINDS = Entries[Kind](_BUILT_IN)

GivenPolicies: TypeAlias = "PolicyLike | Mapping[str, PolicyLike] | None"
"""The policies of the places below a broker: one for all, or by path."""


def _no_places(policies: GivenPolicies, kind: str) -> None:
    if policies is not None:
        raise InputError(f"policies: the places of a {kind} take none; a policy is its own")


def register_kind(kind: Kind) -> Kind:
    """Make a kind of system known: to simulate(), scenarios, what-ifs, brokers, documents and commands.

    Raises
    ------
    ValueError
        where another kind has its name
    """
    if kind.name in _KINDS and _KINDS[kind.name] is not kind:
        raise ValueError(f"kind {kind.name!r} is registered already")
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
    """Return the kinds that were registered beside the package's own, without importing those."""
    return [_KINDS[name] for name in _KINDS if name not in _BUILT_IN]


def kind_named(name: str) -> Kind:
    """Return the kind of a name.

    Raises
    ------
    InputError
        where there is none

    >>> kind_named("machine").policy
    'hrr'
    """
    if name not in _KINDS:
        raise unknown("kind", name, _KINDS)
    return _KINDS[name]


def kind_of(spec: Any) -> Kind | None:
    """Return the kind of system that a description describes, ``None`` where it is no description.

    >>> from simmodel.platform import ClusterSpec
    >>> kind_of(ClusterSpec.simple(4)).name
    'cluster'
    """
    name = SPECS.name_of(type(spec))
    return kind_named(name) if name is not None else None


def kind_of_snapshot(snapshot: Snapshot) -> Kind:
    """Return the kind of system that a snapshot is of.

    Raises
    ------
    InputError
        where it is no snapshot, or of a kind that is not known
    """
    if not isinstance(snapshot, Snapshot):
        raise InputError(f"a snapshot, or a file of one, expected, found {snapshot!r}")
    return kind_named(snapshot.system)


def snapshot_in(given: object) -> Snapshot | None:
    """Return the snapshot that stands in the place of a description, ``None`` where none does."""
    return given if isinstance(given, Snapshot) else None


def kind_of_platform(platform: SystemSpec | Snapshot | None) -> Kind:
    """Return the kind of system that a description or a snapshot is of; of neither: a cluster, as of a log."""
    if isinstance(platform, Snapshot):
        return kind_of_snapshot(platform)
    return kind_of(platform) or kind_named("cluster")


def work_of(platform: SystemSpec | Snapshot | None) -> Literal["jobs", "tasks"]:
    """Return what a system runs, of its description or snapshot.

    >>> from simmodel.platform import ClusterSpec
    >>> work_of(ClusterSpec.simple(4))
    'jobs'
    """
    kind = kind_of_platform(platform)
    if isinstance(platform, Snapshot):
        return work_of(platform.below[0]) if platform.below else kind.work
    return kind.work if platform is None else kind.work_of(platform)
