"""Sites that go down, or take no jobs, for a time."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol

from simmodel.foundation.errors import InputError

if TYPE_CHECKING:
    from simmodel.environment import Call, Environment
    from simmodel.platform.grid import GridSpec
    from simmodel.scheduling.scheduler import Scheduler
    from simmodel.systems.destination import BrokeredJob
    from simmodel.systems.grid.site import Site
    from simmodel.systems.grid.staging import Stays

__all__ = ["Outages"]


class Owner(Protocol):
    """The grid whose sites have outages."""

    env: Environment
    spec: GridSpec
    scheduler: Scheduler
    stays: Stays
    reasons: dict[BrokeredJob, str]

    def plan(self, at: float, call: Callable[[], object], /) -> Call:
        """Schedule a call at an instant (s)."""
        ...

    def site(self, name: str, /) -> Site:
        """Return a site by its name."""
        ...


class Outages:
    """The outages of the sites of a grid: those of its spec, and those that a script begins.

    Parameters
    ----------
    grid
        the grid

    Attributes
    ----------
    calls
        the beginnings and ends of the outages of its spec: by the position of the outage, ``"begin"`` or ``"end"``
    """

    def __init__(self, grid: Owner) -> None:
        self.grid = grid
        self.calls: dict[tuple[int, str], Call] = {}

    def state(self) -> tuple[tuple[int, str], ...]:
        """Return the events of outages that were planned for this instant and are over, by number of the outage."""
        now = self.grid.env.now
        return tuple(key for key, call in self.calls.items() if call.at == now and not call.pending)

    def restore(self, past: Collection[tuple[int, str]] = ()) -> None:
        """Plan the outages of the spec that are still to come, except those of this instant that are ``past``."""
        now = self.grid.env.now
        for i, outage in enumerate(self.grid.spec.outages):
            site = self.grid.site(outage.site)
            if outage.at >= now and (i, "begin") not in past:
                self.calls[i, "begin"] = self.grid.plan(outage.at, partial(self.begin, site, outage.kind))
            if now <= outage.until < float("inf") and (i, "end") not in past:
                self.calls[i, "end"] = self.grid.plan(outage.until, partial(self.end, site, outage.kind))

    def begin(self, site: Site, kind: Literal["down", "closed"]) -> None:
        """Take a site down or close it; each call needs its own :meth:`end`."""
        grid = self.grid
        if kind == "closed":
            site.closed += 1
        else:
            site.down += 1
            if site.down == 1:
                pool = site.system.places[0]
                everything = pool.units
                pool.go_down(len(everything) if pool.spec.processors is not None else list(everything), "failure")
        self._tell("site_down" if kind == "down" else "site_closed", site)
        if kind == "down" and site.down == 1:
            self._lose_jobs(site)
        grid.scheduler.wake()

    def _lose_jobs(self, site: Site) -> None:
        cluster, pool = site.system, site.system.places[0]
        self.grid.stays.lose(site)
        for job in list(cluster.view.waiting):
            self.grid.reasons[job] = "site failed"
            cluster.cancel(job)
        cluster.execution.fail(list(pool.running))

    def end(self, site: Site, kind: Literal["down", "closed"]) -> None:
        """End an outage; raises ``InputError`` if there is none."""
        if not (site.closed if kind == "closed" else site.down):
            raise InputError(f"cannot end: {site.name} is not {kind}", place="site")
        if kind == "closed":
            site.closed -= 1
        else:
            site.down -= 1
            if not site.down:
                pool = site.system.places[0]
                everything = pool.units
                pool.come_up(len(everything) if pool.spec.processors is not None else list(everything), "repair")
                self.grid.stays.site_is_back(site)
        self._tell("site_up" if kind == "down" else "site_reopened", site)
        self.grid.scheduler.wake()

    def _tell(self, hook: str, site: Site) -> None:
        for call in self.grid.env.hooks(hook):
            call(site)
