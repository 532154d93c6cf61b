"""What changes a cluster at given times or by chance: failures, repairs, maintenance, drains and reservations."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simpy.events import Event

    from simmodel.platform.cluster import FailureModel, OutageSpec, ReservationSpec
    from simmodel.resources.pool import Pool
    from simmodel.systems.cluster import Cluster

__all__ = ["Calendar"]


class Calendar:
    """Runs the outages, failures and reservations of a cluster's description as processes.

    Maintenance and reservations are announced: no job starts that is expected to run into one. A drain lets running
    jobs end. A failure stops the jobs on what fails: on identified nodes those that run there; where only counts are
    known those that started last, until what is left is enough.

    Attributes
    ----------
    endless
        whether some of it goes on for ever, so that a run needs another end than that of all events
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        spec = cluster.spec
        env = cluster.env
        self.endless = bool(spec.failures)
        for outage in spec.outages:
            pool = self._pool(outage.partition)
            if outage.kind == "maintenance":
                pool.announce(outage.at, outage.until, outage)
            env.process(self._outage(pool, outage))
        for reservation in spec.reservations:
            pool = self._pool(reservation.partition)
            pool.announce(reservation.start, reservation.end, reservation)
            env.process(self._reservation(pool, reservation))
        for number, model in enumerate(spec.failures):
            pool = self._pool(model.partition)
            for unit in pool.units:
                env.process(self._failures(pool, model, unit, f"{cluster.name}.failures.{number}.{unit}"))

    def _pool(self, name: Any) -> Pool:
        return self._cluster.places[0] if name is None else self._cluster.pools[str(name)]

    def _tell(self, pool: Pool, cause: str) -> None:
        self._cluster._tell("place_changed", pool, cause)

    def _outage(self, pool: Pool, outage: OutageSpec) -> Generator[Event, Any, None]:
        env = self._cluster.env
        if outage.at > env.now:
            yield env.timeout(outage.at - env.now)
        what = pool.units_of(outage)
        self._down(pool, what, outage.kind)
        if outage.until == float("inf"):
            return
        yield env.timeout(outage.until - env.now)
        pool.bring_up(what)
        self._tell(
            pool, "resume" if outage.kind == "drain" else "repair" if outage.kind == "failure" else "maintenance"
        )

    def _down(self, pool: Pool, what: Any, kind: str) -> None:
        pool.take_down(what)
        self._tell(pool, kind)
        if kind == "failure":
            self._cluster.fail(pool.hit_by(what))

    def _failures(self, pool: Pool, model: FailureModel, unit: int, stream: str) -> Generator[Event, Any, None]:
        env = self._cluster.env
        rng = env.rng(stream)
        while True:
            yield env.timeout(model.draw_time_to_failure(rng))
            what = pool.unit(unit)
            self._down(pool, what, "failure")
            yield env.timeout(model.draw_time_to_repair(rng))
            pool.bring_up(what)
            self._tell(pool, "repair")

    def _reservation(self, pool: Pool, reservation: ReservationSpec) -> Generator[Event, Any, None]:
        env = self._cluster.env
        place = self._cluster.pools.get(reservation.name)
        if reservation.start > env.now:
            yield env.timeout(reservation.start - env.now)
        what = pool.units_of(reservation)
        pool.take_down(what)
        self._tell(pool, "reservation")
        if place is not None:
            place.bring_up(what)
        yield env.timeout(reservation.end - env.now)
        if place is not None:
            place.take_down(what)
            self._cluster.fail(place.hit_by(what))
        pool.bring_up(what)
        self._tell(pool, "resume")
