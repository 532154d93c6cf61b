"""Rules of one's own for the rates of transfers, in place of max-min fairness."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from simmodel.foundation.errors import InputError
from simmodel.resources.models import Model, check_model, model_named, read_options
from simmodel.resources.network.flow import Channel, Group
from simmodel.resources.network.sharing import Sharing

if TYPE_CHECKING:
    from simmodel.platform.network import SharingModel
    from simmodel.resources.network.flow import Bundle
    from simmodel.resources.network.links import Link
    from simmodel.resources.network.transfer import Transfer

__all__ = ["FlowView", "RuledSharing", "SharingRule", "make_rule"]

_TOLERANCE = 1e-9


class FlowView(NamedTuple):
    """A transfer that moves, as a sharing rule sees it.

    ``links``: those of its route whose capacity (``link.capacity``, bytes/s) all transfers over them share; ``weight``;
    ``cap``: the most bytes/s that it may have, by its own cap, its fatpipes and the limits of its links.
    """

    transfer: Transfer
    links: tuple[Link, ...]
    weight: float
    cap: float


class SharingRule(Model):
    """The base class of rules by which transfers share links: one method, :meth:`rates`.

    The rule is asked for all transfers whenever one starts or ends or a link changes, and must depend on nothing else.

    Parameters
    ----------
    spec
        the model of the network, with the options
    """

    def __init__(self, spec: SharingModel) -> None:
        self.spec = spec
        self.options = read_options(type(self), spec.options, f"options of model {spec.name}")

    def rates(self, flows: Sequence[FlowView]) -> Sequence[float]:
        """Return the rate of each transfer, in bytes/s: at most its cap, and in sum at most the capacity of a link.

        Parameters
        ----------
        flows
            the transfers that move, in the order in which they began to
        """
        raise NotImplementedError


def make_rule(spec: SharingModel) -> SharingRule:
    """Return the rule of a sharing model.

    Raises
    ------
    InputError
        it is unknown, or refuses its options
    """
    model = model_named(spec.rule or "", SharingRule, f"model {spec.name}, rule")
    check_model(model, spec, f"model {spec.name}, rule")
    return model(spec)


class RuledSharing(Sharing):
    """The rates of groups of one transfer each, by a rule; a solution costs as much as the rule does for all of them.

    >>> from simmodel import Environment, Network
    >>> from simmodel.platform import LinkSpec
    >>> links = [LinkSpec(name="x", bandwidth=90.0), LinkSpec(name="y", bandwidth=20.0)]
    >>> network = Network(Environment(), links, model="equal-split")
    >>> moving = [network.transfer(900, route=route) for route in (["x"], ["x"], ["x", "y"])]
    >>> [each.rate for each in moving]
    [30.0, 30.0, 20.0]
    """

    __slots__ = ("rule",)

    def __init__(self, rule: SharingRule) -> None:
        super().__init__()
        self.rule = rule

    def join_alone(self, group: Group) -> bool:
        """Return ``False``: the rule is always asked."""
        return False

    def leave_alone(self, group: Group) -> bool:
        """Return ``False``: the rule is always asked."""
        return False

    def solve(self) -> tuple[list[Group], list[Channel]]:
        """Ask the rule for all rates, and check them; return all groups, and the channels that may have changed."""
        groups = list(self._joined)
        flows = [_view(group) for group in groups]  # type: ignore[arg-type]
        rates = list(self.rule.rates(flows)) if flows else []
        name = type(self.rule).__name__
        if len(rates) != len(flows):
            raise InputError(f"{name}.rates must return a rate for each of {len(flows)} flows, got {len(rates)}")
        channels = dict.fromkeys(channel for group in groups for channel, _ in group.uses) | self._seeds
        for channel in channels:
            channel.load = 0.0
        for group, flow, rate in zip(groups, flows, rates, strict=True):
            if not 0 <= rate < inf or rate > flow.cap * (1 + _TOLERANCE):
                message = f"{name}.rates must be from 0 to the cap of {flow.cap:.9g} bytes/s, got {rate!r}"
                raise InputError(message, place=flow.transfer.describe())
            group.level = rate / group.demand
            for channel, _ in group.uses:
                channel.load += rate
        for channel in channels:
            if channel.load > channel.capacity * (1 + _TOLERANCE):
                message = f"{name}.rates give {channel.load:.9g} bytes/s to transfers over it"
                raise InputError(f"{message}, its capacity is {channel.capacity:.9g}", place=f"link {channel.name}")
            channel.saturated = channel.load >= channel.capacity * (1 - _TOLERANCE)
        self._solved()
        return groups, list(channels)


def _view(bundle: Bundle) -> FlowView:
    transfer: Transfer = bundle.head()[3]
    links: tuple[Link, ...] = tuple(link for link, _ in bundle.uses)  # type: ignore[misc]
    return FlowView(transfer, links, bundle.demand, min([bundle.cap, *(pipe.capacity for pipe in bundle.pipes)]))
