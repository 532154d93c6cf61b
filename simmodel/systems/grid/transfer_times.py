"""How long files take from site to site on idle links: each way is looked up once between changes of the links."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from simmodel.foundation.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simmodel.resources.network.network import Network
    from simmodel.systems.grid.site import Site

__all__ = ["Ways"]


class Ways:
    """The ways between the sites of a grid.

    Parameters
    ----------
    network
        the network
    sites
        the sites, in the order of the catalogue, which is that of their numbers
    """

    def __init__(self, network: Network, sites: Sequence[Site]) -> None:
        self._network = network
        self._sites = sites
        self._number = {site: number for number, site in enumerate(sites)}
        # To each site, by source; None: not looked up yet.
        self._joined: dict[Site, list[bool | None]] = {}  # whether there is a route
        self._idle: dict[Site, list[tuple[float, float] | None]] = {}  # wait (s) and rate (bytes/s)
        network.on_link_change(lambda _link: self._idle.clear())

    def sources(self, numbers: Sequence[int], site: Site) -> list[Site]:
        """Return the sites with these numbers that can send files to a site now: up, and joined by a route."""
        sites, joined = self._sites, self._joined.get(site)
        if joined is None:
            joined = self._joined[site] = [None] * len(sites)
            joined[self._number[site]] = False
        for number in numbers:
            if joined[number] is None:
                joined[number] = self.joined(sites[number], site)
        return [sites[number] for number in numbers if joined[number] and not sites[number].down]

    def joined(self, source: Site, site: Site) -> bool:
        """Return whether there is a route from a site to another."""
        try:
            self._network.route(source.name, site.name)
        except InputError:
            return False
        return True

    def seconds(self, size: float, sources: Sequence[Site], site: Site) -> list[float]:
        """Return how long bytes take from each source to a site on idle links, infinity if one is down."""
        row = self._idle.get(site)
        if row is None:
            row = self._idle[site] = [None] * len(self._sites)
        numbers = [source.number for source in sources]
        try:
            return [wait + size / rate for wait, rate in [row[number] for number in numbers]]  # type: ignore[misc]
        except (TypeError, ZeroDivisionError):  # some are unknown, or have a link that is down
            return [self._between(row, number, size, site) for number in numbers]

    def _between(self, row: list[tuple[float, float] | None], number: int, size: float, site: Site) -> float:
        idle = row[number]
        if idle is None:
            idle = row[number] = self._network.idle(self._sites[number].name, site.name)
        wait, rate = idle
        return wait + size / rate if rate > 0 else inf if size else wait
