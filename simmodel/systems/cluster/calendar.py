"""Planned and random changes of a cluster's capacity: failures, repairs, maintenance, drains and reservations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    from simmodel.environment import Call, ToCome
    from simmodel.platform.cluster import OutageSpec
    from simmodel.resources.pool import Pool
    from simmodel.systems.cluster.core import ClusterCore
    from simmodel.systems.cluster.execution import JobExecution
    from simmodel.systems.cluster.reservations import Reserved
    from simmodel.systems.dependencies import Dependencies
    from simmodel.work.job import LiveJob

__all__ = ["Calendar"]

Part: TypeAlias = int | Sequence[int]
"""Part of a pool: a number of processors, or nodes if nodes are identified."""
BACK = {"failure": "repair", "drain": "resume", "maintenance": "resume"}


class Calendar:
    """Carries out the outages, failures and reservations of a cluster's spec.

    Maintenance and reservations are known from the beginning: no job starts that is expected to run into one. A drain
    lets running jobs end. A failure stops the jobs on the failed part: on identified nodes, the jobs that run there; on
    counted processors, the failed ones are drawn from all that are up, busy or not.

    Jobs that overran into a reservation are stopped as by a failure when it begins. When it ends, jobs that still run
    there end with ``timeout``, and jobs that wait for it are cancelled. A node that fails is down in its partition and
    in its reservation; counted processors that are reserved do not fail.

    Within an instant, changes follow the ends of jobs and precede submissions.

    Attributes
    ----------
    endless
        whether it has events forever, so that a run needs an explicit end
    """

    def __init__(
        self,
        core: ClusterCore,
        execution: JobExecution,
        dependencies: Dependencies,
        cancel: Callable[[LiveJob], object],
    ) -> None:
        self._core = core
        self._execution = execution
        self._dependencies = dependencies
        self._cancel = cancel
        self._env = core.env
        self._priority = core.calendar_priority
        self.endless = bool(core.spec.failures)
        self._reserved: dict[Pool, list[Any]] = {}
        self._coming: dict[Call, tuple[str, tuple[Any, ...]]] = {}
        self._acts: dict[str, Callable[..., None]] = {
            "told": self._told,
            "down": self._down,
            "up": self._up,
            "fail": self._fail,
            "repair": self._repair,
            "back": self._back,
        }

    def begin(self) -> None:
        """Start to carry out the spec, from now on."""
        spec = self._core.spec
        for pool in self._core.places:
            if pool.part_of is not None:
                self._reserve(pool)  # type: ignore[arg-type]  # only a reservation is part of another pool
        for number in range(len(spec.outages)):
            self._outage(number)
        for number, model in enumerate(spec.failures):
            for unit in self._pool(model.partition).units:
                self._wait(number, unit)

    def _pool(self, name: int | str | None) -> Pool:
        return self._core.places[0] if name is None else self._core.pools[str(name)]

    def _tell(self, pool: Pool, cause: str) -> None:
        self._core.tell("place_changed", pool, cause)

    def plan(self, at: float, what: str, *about: Any) -> None:
        """Plan an action of the calendar, by name, for an instant (s)."""
        call = self._env.call_at(at, lambda: self._act(call), self._priority)
        self._coming[call] = what, about

    def _act(self, call: Call) -> None:
        what, about = self._coming.pop(call)
        self._acts[what](*about)

    def to_come(self) -> list[ToCome]:
        """List the planned actions, including the capacity windows of the pools."""
        windows = [each for pool in self._core.places for each in pool.to_come()]
        return windows + [call.to_come(what, *about) for call, (what, about) in self._coming.items()]

    # ------------------------------------------------------------------ failures, maintenance, drains

    def _parts(self, pool: Pool, what: Part) -> list[tuple[Pool, Part]]:
        """Return a part of a pool together with the same part of its reservations, each as (pool, part)."""
        inside = [(place, place.own_part(what)) for place in self._reserved.get(pool, ())]
        return [(pool, what), *((place, own) for place, own in inside if own)]

    def _outage_parts(self, number: int) -> list[tuple[Pool, Part]]:
        outage = self._core.spec.outages[number]
        pool = self._pool(outage.partition)
        return self._parts(pool, pool.units_of(outage))

    def _outage(self, number: int) -> None:
        outage: OutageSpec = self._core.spec.outages[number]
        kind, now = outage.kind, self._env.now
        if outage.until <= now:
            return
        parts = self._outage_parts(number)
        if kind == "maintenance":
            for place, what in parts:
                place.announce(outage.at, outage.until, what, self.teller(place, kind), kind)
            return
        if outage.at > now:
            self.plan(outage.at, "down", number)
        else:  # nothing runs yet, and observers are told by the first event
            for place, what in parts:
                place.take_down(what)
            self.plan(now, "told", kind, *(place.name for place, _ in parts))
        if outage.until < float("inf"):
            self.plan(outage.until, "up", number)

    def teller(self, pool: Any, why: str) -> Callable[[bool], None]:
        """Return the function that a capacity window of a pool calls, by its purpose."""
        if why == "maintenance":
            return lambda away: self._tell(pool, why if away else BACK[why])
        if why == "not yet open":
            return lambda _: self._tell(pool, "reservation")
        if why == "closed":
            return lambda _: self._close(pool)
        place: Any = self._core.pools[why.removeprefix("reservation ")]
        return lambda away: self._hand_over(place, away)

    def _told(self, cause: str, *names: str) -> None:
        for name in names:
            self._tell(self._core.pools[name], cause)

    def _down(self, number: int) -> None:
        self._take(self._outage_parts(number), self._core.spec.outages[number].kind)

    def _up(self, number: int) -> None:
        self._bring(self._outage_parts(number), BACK[self._core.spec.outages[number].kind])

    def _take(self, parts: list[tuple[Pool, Part]], kind: str) -> None:
        for place, what in parts:
            place.take_down(what)
            self._tell(place, kind)
            if kind == "failure":
                self._execution.fail(place.hit_by(what, self._env.rng(f"{self._core.name}.hits")))
        self._core.wake()

    def _bring(self, parts: list[tuple[Pool, Part]], cause: str) -> None:
        for place, what in parts:
            place.bring_up(what)
            self._tell(place, cause)

    def _unit(self, number: int, unit: int) -> list[tuple[Pool, Part]]:
        pool = self._pool(self._core.spec.failures[number].partition)
        return self._parts(pool, pool.unit(unit))

    def _rng(self, number: int) -> np.random.Generator:
        return self._env.rng(f"{self._core.name}.failures.{number}")

    def _wait(self, number: int, unit: int) -> None:
        model = self._core.spec.failures[number]
        self.plan(self._env.now + model.draw_time_to_failure(self._rng(number)), "fail", number, unit)

    def _fail(self, number: int, unit: int) -> None:
        self._take(self._unit(number, unit), "failure")
        model = self._core.spec.failures[number]
        self.plan(self._env.now + model.draw_time_to_repair(self._rng(number)), "repair", number, unit)

    def _repair(self, number: int, unit: int) -> None:
        self._back(number, unit)
        self._wait(number, unit)

    def _back(self, number: int, unit: int) -> None:
        """Repair a unit without planning its next failure, as what-ifs do."""
        self._bring(self._unit(number, unit), "repair")

    # ------------------------------------------------------------------ reservations

    def _reserve(self, place: Reserved) -> None:
        spec, parent, now = place.reservation, place.part_of, self._env.now
        if spec.end <= now:
            place.take_down(place.own_all)
            self.plan(now, "told", "reservation", place.name)
            return
        self.open(place)
        # Jobs leave before others enter: at the start those of the partition, at the end those of the reservation.
        self._announce(place, spec.end, float("inf"), place.own_all, "closed")
        self._announce(parent, spec.start, spec.end, place.taken, f"reservation {place.name}")
        if spec.start > now:
            self._announce(place, now, spec.start, place.own_all, "not yet open")

    def _announce(self, pool: Pool, start: float, end: float, what: Part, why: str) -> None:
        pool.announce(start, end, what, self.teller(pool, why), why)

    def open(self, place: Reserved) -> None:
        """Let failures in the partition of a reservation also affect the reservation."""
        self._reserved.setdefault(place.part_of, []).append(place)

    def is_open(self, place: Reserved) -> bool:
        """Whether failures in the partition of a reservation also affect the reservation."""
        return place in self._reserved.get(place.part_of, ())

    def _hand_over(self, place: Reserved, away: bool) -> None:
        parent = place.part_of
        self._tell(parent, "reservation" if away else "resume")
        if away:
            self._execution.fail(parent.in_the_way(place.taken))

    def _close(self, place: Reserved) -> None:
        self._tell(place, "resume")
        self._execution.stop_all(list(place.running), "timeout")
        for job in list(self._dependencies.known.values()):
            if job.place is place and job.run is None:
                self._cancel(job)
