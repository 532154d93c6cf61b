"""What changes a cluster at given times or by chance: failures, repairs, maintenance, drains and reservations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from simmodel.systems.reservations import ReservedNodes, ReservedProcessors

if TYPE_CHECKING:
    from simmodel.platform.cluster import FailureModel, OutageSpec
    from simmodel.resources.pool import Pool
    from simmodel.systems.cluster import Cluster

__all__ = ["Calendar"]

BACK = {"failure": "repair", "drain": "resume", "maintenance": "resume"}


class Calendar:
    """Carries out the outages, failures and reservations of a cluster's description.

    Maintenance and reservations are announced from the first: no job starts that is expected to run into one. A drain
    lets running jobs end. A failure stops the jobs on what fails: on identified nodes those that run there; where only
    counts are known, the processors that fail are drawn among all that are up, busy or not.

    Jobs that overran into a reservation are stopped as by a failure when it begins. When it ends, jobs that still run
    there are cut (``timeout``), and those that wait for it are cancelled. What fails of a partition fails in its
    reservations too where nodes are identified; where only counts are known reserved processors do not fail.

    In an instant its changes come after the ends of jobs and before submissions.

    Attributes
    ----------
    endless
        whether some of it goes on for ever, so that a run needs another end than that of all events
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._env = cluster.env
        self._priority = cluster._end_priority + 0.5
        spec = cluster.spec
        self.endless = bool(spec.failures)
        self._reserved: dict[Pool, list[Any]] = {}
        for pool in cluster.places:
            pool.calendar_priority = self._priority
            if isinstance(pool, (ReservedNodes, ReservedProcessors)):
                self._reserve(pool)
        for outage in spec.outages:
            self._outage(self._pool(outage.partition), outage)
        for number, model in enumerate(spec.failures):
            self._failures(self._pool(model.partition), model, number)

    def _pool(self, name: Any) -> Pool:
        return self._cluster.places[0] if name is None else self._cluster.pools[str(name)]

    def _at(self, at: float, call: Callable[[], object]) -> None:
        self._env.call_at(at, call, self._priority)

    def _tell(self, pool: Pool, cause: str) -> None:
        self._cluster._tell("place_changed", pool, cause)

    # ------------------------------------------------------------------ failures, maintenance, drains

    def _parts(self, pool: Pool, what: Any) -> list[tuple[Pool, Any]]:
        """Return the part of a pool, and what of it is reserved, each as (pool, part)."""
        inside = [(place, place.own_part(what)) for place in self._reserved.get(pool, ())]
        return [(pool, what), *((place, own) for place, own in inside if own)]

    def _outage(self, pool: Pool, outage: OutageSpec) -> None:
        parts = self._parts(pool, pool.units_of(outage))
        kind, env = outage.kind, self._env
        if outage.until <= env.now:
            return
        if kind == "maintenance":
            for place, what in parts:
                place.announce(outage.at, outage.until, what, self._teller(place, kind, BACK[kind]))
            return
        if outage.at > env.now:
            self._at(outage.at, lambda: self._down(parts, kind))
        else:  # nothing runs yet; observers are there from the first event on
            for place, what in parts:
                place.take_down(what)
            self._at(env.now, lambda: self._tell_all(parts, kind))
        if outage.until < float("inf"):
            self._at(outage.until, lambda: self._up(parts, BACK[kind]))

    def _teller(self, pool: Pool, begun: str, over: str) -> Callable[[bool], None]:
        return lambda away: self._tell(pool, begun if away else over)

    def _tell_all(self, parts: list[tuple[Pool, Any]], cause: str) -> None:
        for place, _ in parts:
            self._tell(place, cause)

    def _down(self, parts: list[tuple[Pool, Any]], kind: str) -> None:
        cluster = self._cluster
        for place, what in parts:
            place.take_down(what)
            self._tell(place, kind)
            if kind == "failure":
                cluster.fail(place.hit_by(what, self._env.rng(f"{cluster.name}.hits")))
        cluster._changed()

    def _up(self, parts: list[tuple[Pool, Any]], cause: str) -> None:
        for place, what in parts:
            place.bring_up(what)
            self._tell(place, cause)

    def _failures(self, pool: Pool, model: FailureModel, number: int) -> None:
        rng = self._env.rng(f"{self._cluster.name}.failures.{number}")

        def fail(unit: int) -> None:
            parts = self._parts(pool, pool.unit(unit))
            self._down(parts, "failure")
            self._at(self._env.now + model.draw_time_to_repair(rng), lambda: repair(unit, parts))

        def repair(unit: int, parts: list[tuple[Pool, Any]]) -> None:
            self._up(parts, "repair")
            wait(unit)

        def wait(unit: int) -> None:
            self._at(self._env.now + model.draw_time_to_failure(rng), lambda: fail(unit))

        for unit in pool.units:
            wait(unit)

    # ------------------------------------------------------------------ reservations

    def _reserve(self, place: Any) -> None:
        spec, parent, now = place.reservation, place.part_of, self._env.now
        if spec.end <= now:
            place.take_down(place.own_all)
            self._at(now, lambda: self._tell(place, "reservation"))
            return
        self._reserved.setdefault(parent, []).append(place)
        # Its own windows come first: it is empty before the others may have its part back.
        if spec.start > now:
            place.announce(now, spec.start, place.own_all, lambda _: self._tell(place, "reservation"))
        place.announce(spec.end, float("inf"), place.own_all, lambda _: self._close(place))
        parent.announce(spec.start, spec.end, place.taken, lambda away: self._hand_over(place, away))

    def _hand_over(self, place: Any, away: bool) -> None:
        parent = place.part_of
        self._tell(parent, "reservation" if away else "resume")
        if away:
            self._cluster.fail(parent.in_the_way(place.taken))

    def _close(self, place: Any) -> None:
        cluster = self._cluster
        self._tell(place, "resume")
        cluster._stop_all(list(place.running), "timeout")
        for job in list(cluster._dependencies._known.values()):
            if job.place is place and job._run is None:
                cluster.cancel(job)
