"""Brokers as a kind of system."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import attrs

from simmodel.foundation.errors import InputError, unknown
from simmodel.platform.broker import BrokerSpec, Slowdowns
from simmodel.platform.options import BrokerOptions, Options
from simmodel.scheduling.registry import PolicyLike, unused
from simmodel.systems.broker.policies import policies_of_places
from simmodel.systems.broker.system import Broker
from simmodel.systems.kinds import Kind, kind_of
from simmodel.systems.submissions import read_submissions
from simmodel.systems.system import System

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.systems.kinds import GivenPolicies
    from simmodel.systems.submissions import GivenWork, Submissions

__all__ = ["BROKER", "BrokerKind"]


@attrs.frozen(kw_only=True, repr=False)
class BrokerKind(Kind):
    """The kind of brokers: the kind of work is that of the places, and each place has its own policy and options."""

    asks = Broker.asks
    homes = True

    def work_of(self, spec: BrokerSpec) -> Literal["jobs", "tasks"]:
        """Return the kind of work that all places run.

        Raises
        ------
        InputError
            if some run jobs and some tasks
        """
        found = {_kind(each).work_of(each): name for name, each in spec.places.items()}
        if len(found) > 1:
            raise InputError(
                f"places: must all run jobs or all run tasks; {found['jobs']} runs jobs, {found['tasks']} runs tasks"
            )
        return next(iter(found))

    def read_options(self, values: Mapping[str, Any]) -> Options:
        """Return the options of the broker, including those of its places."""
        return BrokerOptions.of(values)

    def option_names(self, spec: BrokerSpec) -> list[str]:
        """Return the names of the options of a broker and of the places below it."""
        below = [name for place in spec.places.values() for name in _kind(place).option_names(place)]
        return list(dict.fromkeys([*BrokerOptions.names()[:-1], *below]))

    def of_nodes(self, spec: Any) -> frozenset[str]:
        """Return the amounts that jobs can request of nodes at every place; no file moves from one place to another."""
        found = [_kind(place).of_nodes(place) - {"files"} for place in spec.places.values()]
        return frozenset.intersection(*found) if found else frozenset()

    def read_work(
        self, given: GivenWork, spec: Any, seed: int, inputs: Mapping[str, Any] = MappingProxyType({})
    ) -> tuple[Submissions, Any]:
        """Return the workloads with their homes, and the broker spec with the given slowdowns."""
        slowdowns: Slowdowns = inputs.get("slowdowns")
        if slowdowns is not None:
            spec = attrs.evolve(spec, slowdowns=slowdowns)
        homes, of_nodes = list(spec.places), self.of_nodes(spec)
        return read_submissions(self.work_of(spec), given, homes=homes, of_nodes=of_nodes, seed=seed), spec

    def build(
        self,
        env: Environment,
        spec: BrokerSpec,
        policy: PolicyLike,
        options: Options,
        *,
        policies: GivenPolicies = None,
        name: str | None = None,
    ) -> System[Any]:
        """Return a broker over places built from their specs, each with its policy and options."""
        assert isinstance(options, BrokerOptions)
        kinds = {place: _kind(below) for place, below in spec.places.items()}
        chosen = policies_of_places(policies, kinds)
        missing = [place for place, each in chosen.items() if each == (None, None)]
        if isinstance(policies, Mapping) and missing:
            raise InputError(f"policies: missing {', '.join(missing)}; every place needs a policy")
        known: set[str] = set()
        systems: list[Any] = []
        for place, below in spec.places.items():
            kind, (own, deeper) = kinds[place], chosen[place]
            names = kind.option_names(below)
            mine = {key: value for key, value in options.below.items() if key in names}
            known.update(names)
            plain = _default(kind) if own is None else unused(own)
            systems.append(kind.build(env, below, plain, kind.read_options(mine), policies=deeper, name=place))
        for key in options.below:
            if key not in known:
                raise unknown("option", key, self.option_names(spec))
        return Broker(env, systems, policy, slowdowns=_factors(spec), by=options.by, name=name or spec.name)


def _kind(spec: Any) -> Kind:
    found = kind_of(spec)
    if found is None:
        raise InputError(f"places: must be specs of systems, got {spec!r}")
    return found


def _factors(spec: BrokerSpec) -> Slowdowns:
    return {(each.home, each.place) if each.home is not None else each.place: each.factor for each in spec.slowdowns}


def _default(kind: Kind) -> str:
    """Return the default policy of a place: clusters under brokers backfill, as in the CQSim+ papers."""
    return "easy" if kind.name == "cluster" else kind.policy


BROKER = BrokerKind(
    name="broker",
    spec=BrokerSpec,
    system=Broker,
    snapshot="simmodel.snapshots.broker:BrokerSnapshot",
    options=BrokerOptions,
    inputs=("slowdowns",),
    policy="sgs-t",
)
