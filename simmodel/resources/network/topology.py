"""Topologies: networks whose routes and links follow from a rule, and are made when first used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from simmodel.platform.network import LinkSpec

__all__ = ["Topology"]


class Topology(Protocol):
    """End points in order, the route between two of them, and the links of the routes by name."""

    @property
    def hosts(self) -> Sequence[str]:
        """The names of the end points, in order."""
        ...

    def route(self, source: int, destination: int, /) -> Sequence[str]:
        """Return the names of the links from one end point to another, given by their numbers, in order."""
        ...

    def link(self, name: str, /) -> LinkSpec:
        """Return the link with a name."""
        ...
