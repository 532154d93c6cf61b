"""Strict priority: transfers of higher weight take the links before those of lower weight get anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from simmodel.resources.network.sharing import max_min_rates
from simmodel.resources.network.sharing_rule import FlowView, SharingRule

__all__ = ["StrictPriority"]


class StrictPriority(SharingRule):
    """Transfers of the highest weight share the links by max-min fairness, those of the next one the rest."""

    takes: ClassVar = {}

    def rates(self, flows: Sequence[FlowView]) -> list[float]:
        """Return the rates, class by class."""
        left = {link.name: link.capacity for flow in flows for link in flow.links}
        rates = [0.0] * len(flows)
        for weight in sorted({flow.weight for flow in flows}, reverse=True):
            those = [i for i, flow in enumerate(flows) if flow.weight == weight]
            routes = [[link.name for link in flows[i].links] for i in those]
            found = max_min_rates(left, routes, caps=[flows[i].cap for i in those])
            for i, route, rate in zip(those, routes, found, strict=True):
                rates[i] = rate
                for name in route:
                    left[name] = max(0.0, left[name] - rate)
        return rates
