"""Sites that go down, or take no jobs, for a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol

from simmodel.foundation.errors import InputError
from simmodel.snapshots.grid import FailingState
from simmodel.systems.failing import FailingPart, Failures

if TYPE_CHECKING:
    from simmodel.environment import Call, Environment
    from simmodel.platform.grid import GridSpec
    from simmodel.scheduling.scheduler import Scheduler
    from simmodel.systems.destination import BrokeredJob
    from simmodel.systems.grid.data import DataManager
    from simmodel.systems.grid.site import Site
    from simmodel.systems.grid.staging import Stays
    from simmodel.systems.system import Timing

__all__ = ["Outages"]


class Owner(Protocol):
    """The grid whose sites have outages."""

    env: Environment
    name: str
    data: DataManager
    spec: GridSpec
    scheduler: Scheduler
    stays: Stays
    reasons: dict[BrokeredJob, str]
    timing: Timing

    def site(self, name: str, /) -> Site:
        """Return a site by its name."""
        ...


class Outages:
    """The outages of the sites of a grid: those of its spec, those that a script begins, and failures by chance.

    Parameters
    ----------
    grid
        the grid

    Attributes
    ----------
    calls
        the beginnings and ends of the outages of its spec: by the position of the outage, ``"begin"`` or ``"end"``
    failures
        the random failures of its sites, links and switches
    coming
        the next event of each of their parts, by the position of the model: what (``"fail"``, ``"repair"``, ``"back"``)
        and its call
    """

    def __init__(self, grid: Owner) -> None:
        self.grid = grid
        self.calls: dict[tuple[int, str], Call] = {}
        models = grid.spec.failures
        self._taken = [grid.spec.failing(model) for model in models]
        self.failures = Failures(grid.env, grid.name, models, self._failing_parts, self._plan, self._failed)
        self.coming: dict[tuple[int, str], tuple[str, Call]] = {}

    def _at(self, at: float, call: Callable[[], object]) -> Call:
        """Plan a change for an instant (s), in which it follows all ends, as in clusters."""
        grid = self.grid
        return grid.env.call_at(at, call, grid.timing.ends + 0.5)

    # ------------------------------------------------------------------ failures by chance

    def _failing_parts(self, number: int) -> Iterable[str]:
        return self.grid.spec.failures[number].names or self._taken[number]

    def _plan(self, at: float, what: str, number: int, part: FailingPart) -> None:
        key = number, str(part)
        self.coming[key] = what, self._at(at, partial(self._act, key))

    def _act(self, key: tuple[int, str]) -> None:
        what, _ = self.coming.pop(key)
        acts = {"fail": self.failures.fail, "repair": self.failures.repair, "back": self.failures.back}
        acts[what](*key)
        self.grid.scheduler.wake()

    def _failed(self, number: int, part: FailingPart, more: int) -> None:
        """Take a part of a failure model down, or end that."""
        of = self.grid.spec.failures[number].of
        for name in self._taken[number][str(part)]:
            if of != "sites":
                self.grid.data.network.count_failed(name, more)
            elif more > 0:
                self.begin(self.grid.site(name), "down")
            else:
                self.end(self.grid.site(name), "down")

    def failing(self) -> tuple[FailingState, ...]:
        """Return the next events of the parts that fail by chance."""
        return tuple(FailingState(float(call.at), what, *key) for key, (what, call) in self.coming.items())

    def resume_failing(self, states: Iterable[FailingState]) -> None:
        """Plan the events of a snapshot again, and take the links down that are down; sites have their own state."""
        for at, what, number, part in states:
            if what != "fail":
                self.failures.resume(number, part)
                if self.grid.spec.failures[number].of != "sites":
                    self._failed(number, part, 1)
            self._plan(at, what, number, part)

    # ------------------------------------------------------------------ outages

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
                self.calls[i, "begin"] = self._at(outage.at, partial(self.begin, site, outage.kind))
            if now <= outage.until < float("inf") and (i, "end") not in past:
                self.calls[i, "end"] = self._at(outage.until, partial(self.end, site, outage.kind))

    def begin(self, site: Site, kind: Literal["down", "closed"]) -> None:
        """Take a site down or close it; each call needs its own :meth:`end`."""
        grid = self.grid
        if kind == "closed":
            site.closed += 1
        else:
            site.down += 1
            if site.down == 1:
                pool = site.system.places[0]
                pool.absences.go_down(pool.absences.whole, "failure")
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
                pool.absences.come_up(pool.absences.whole, "repair")
                self.grid.stays.site_is_back(site)
        self._tell("site_up" if kind == "down" else "site_reopened", site)
        self.grid.scheduler.wake()

    def _tell(self, hook: str, site: Site) -> None:
        for call in self.grid.env.hooks(hook):
            call(site)
