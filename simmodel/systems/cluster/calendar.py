"""Planned and random changes of a cluster's capacity: failures, repairs, maintenance, drains and reservations."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from simmodel.foundation.errors import SnapshotError
from simmodel.resources.pools.absences import CapacityWindow, Purpose
from simmodel.snapshots.jobs import PlaceState, WindowState
from simmodel.systems.failing import FailingPart, Failures

if TYPE_CHECKING:
    from simmodel.environment import Call, ToCome
    from simmodel.platform.cluster import OutageSpec
    from simmodel.resources.pools.pool import Pool
    from simmodel.systems.cluster.core import ClusterCore
    from simmodel.systems.cluster.execution import JobExecution
    from simmodel.systems.cluster.reservations import Reserved
    from simmodel.work.job import LiveJob

__all__ = ["Calendar"]

Part: TypeAlias = int | Sequence[int]
"""Part of a pool: a number of processors, or nodes if nodes are identified."""
_REPAIR = 3600.0  # s, of a node whose boot has failed, if nothing says so
BACK = {"failure": "repair", "drain": "resume", "maintenance": "resume"}


class Calendar:
    """Carries out the outages, failures and reservations of a cluster's spec.

    Maintenance and reservations are known from the beginning: no job starts that is expected to run into one. A drain
    lets running jobs end. A failure stops the jobs on the failed part: on identified nodes, the jobs that run there; on
    counted processors, the failed ones are drawn from all that are up, busy or not.

    Jobs that overran into a reservation are stopped as by a failure when it begins. When it ends, jobs that still run
    there end with ``timeout``, and jobs that wait for it are cancelled. Nodes change hands once no body that cleans up
    holds any of them: until then neither the partition nor the reservation has them, and both expect them at the latest
    instant at which those bodies are killed. A node that fails is down in its
    partition and in its reservation; counted processors that are reserved do not fail, and neither do processors that a
    resize adds.

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
        cancel: Callable[[LiveJob], object],
    ) -> None:
        self._core = core
        self._execution = execution
        self._cancel = cancel
        self._env = core.env
        self._priority = core.calendar_priority
        self.endless = bool(core.spec.failures)
        parts = self._failing_parts
        self.failures = Failures(core.env, core.name, core.spec.failures, parts, self.plan, self._failed)
        self._taken = [core.spec.failing(each) if each.of != "nodes" else {} for each in core.spec.failures]
        cuts = any(each.of == "switches" for each in core.spec.failures)
        self._below = {each.name: each.nodes_below for each in core.spec.partitions if cuts}
        self._reserved: dict[Pool, list[Any]] = {}
        self._pending: dict[Reserved, str] = {}  # reservations whose part still has to change hands: open or return
        self._coming: dict[Call, tuple[str, tuple[Any, ...]]] = {}
        self._acts: dict[str, Callable[..., None]] = {
            "told": self._told,
            "down": self._down,
            "up": self._up,
            "fail": self._fail,
            "repair": self.failures.repair,
            "back": self.failures.back,
            "booted": self._booted,
            "boot repaired": self._boot_repaired,
        }
        for pool in core.places:
            if pool.sleeping is not None:
                pool.sleeping.plan = partial(self._plan_boot, pool)

    def begin(self) -> None:
        """Start to carry out the spec, from now on."""
        spec = self._core.spec
        for pool in self._core.places:
            if pool.part_of is not None:
                self._reserve(pool)  # type: ignore[arg-type]  # only a reservation is part of another pool
        for number in range(len(spec.outages)):
            self._outage(number)
        self.failures.begin()

    def _pool(self, name: int | str | None) -> Pool:
        return self._core.places[0] if name is None else self._core.pools[str(name)]

    def plan(self, at: float, what: str, *about: Any) -> None:
        """Plan an action of the calendar, by name, for an instant (s)."""
        call = self._env.call_at(at, lambda: self._act(call), self._priority)
        self._coming[call] = what, about

    def _act(self, call: Call) -> None:
        what, about = self._coming.pop(call)
        self._acts[what](*about)

    def to_come(self) -> list[ToCome]:
        """List the planned actions, including the capacity windows of the pools."""
        windows = [
            each
            for pool in self._core.places
            for number, window in enumerate(pool.windows)
            for each in window.to_come(number)
        ]
        return windows + [call.to_come(what, *about) for call, (what, about) in self._coming.items()]

    # ------------------------------------------------------------------ snapshots

    def state(self, *, actual: bool) -> tuple[PlaceState, ...]:
        """Return the capacity of the places; ``actual``: as needed to continue, not only as policies see it.

        Raises
        ------
        SnapshotError
            with ``actual``, if a window of capacity calls a function of a script
        """
        return tuple([self._place_state(pool, actual) for pool in self._core.places])

    def _place_state(self, pool: Any, actual: bool) -> PlaceState:
        windows = []
        for window in pool.windows:
            if actual and window.purpose.tell is not None and not window.why:
                message = f"{window!r} of {pool.name} cannot be copied: it calls a function but has no reason"
                raise SnapshotError(message)
            what = window.what if isinstance(window.what, int) else tuple(map(int, window.what))
            windows.append(WindowState(float(window.start), float(window.end), what, window.begun, window.why))
        is_open = pool.part_of is not None and pool in self._reserved.get(pool.part_of, ())
        pending, absences = self._pending.get(pool, ""), pool.absences
        sleep = None if pool.sleeping is None else pool.sleeping.state(actual=actual)
        return PlaceState(
            pool.name, absences.away, tuple(windows), is_open, pending, pool.size, absences.drained, sleep
        )

    def restore(self, places: Iterable[PlaceState]) -> None:
        """Restore the capacity of the places; planned events are planned again with :meth:`plan_again`."""
        for state in places:
            pool = self._core.pools[state.name]
            pool.absences.restore(state.size, state.down, state.drained)
            for start, end, what, begun, why in state.windows:
                window = CapacityWindow(pool, start, end, what, self.purpose(pool, why) if why else Purpose())
                window.begun = begun
                insort(pool.windows, window)
            if state.windows:
                pool.altered()
            if pool.sleeping is not None:
                pool.sleeping.restore(state.sleep or pool.sleeping.awake_since(self._env.now))
            if state.open and pool.part_of is not None:
                self._resume(pool, state.pending)  # type: ignore[arg-type]  # as in begin()

    def plan_again(self, at: float, what: str, *about: Any) -> None:
        """Plan an event of a snapshot, of a window or one of :meth:`plan`, for an instant (s)."""
        if what in ("begin", "over", "told") and isinstance(about[1], int):
            pool = self._core.pools[about[0]]
            pool.windows[about[1]].plan(what, at)
        else:
            if what in ("repair", "back"):
                self._down_already(*about)
            self.plan(at, what, *about)

    def _down_already(self, number: int, part: FailingPart) -> None:
        self.failures.resume(number, part)
        model = self._core.spec.failures[number]
        if model.of == "links":  # the places have their own state
            self._failed(number, part, 1)
        elif model.of == "switches":
            self._cut(model.partition, str(part), 1)

    # ------------------------------------------------------------------ failures, maintenance, drains

    def _parts(self, pool: Pool, what: Part) -> list[tuple[Pool, Part]]:
        """Return a part of a pool together with the same part of its reservations, each as (pool, part)."""
        inside = [(place, place.own_part(what)) for place in self._reserved.get(pool, ())]
        return [(pool, what), *((place, own) for place, own in inside if own)]

    def _outage_parts(self, number: int) -> list[tuple[Pool, Part]]:
        outage = self._core.spec.outages[number]
        pool = self._pool(outage.partition)
        return self._parts(pool, pool.absences.units_of(outage))

    def _outage(self, number: int) -> None:
        outage: OutageSpec = self._core.spec.outages[number]
        kind, now = outage.kind, self._env.now
        if outage.until <= now:
            return
        parts = self._outage_parts(number)
        if kind == "maintenance":
            for place, what in parts:
                place.announce(outage.at, outage.until, what, purpose=self.purpose(place, kind))
            return
        if outage.at > now:
            self.plan(outage.at, "down", number)
        else:  # nothing runs yet, and observers are told by the first event
            for place, what in parts:
                place.absences.lower(what)
            self.plan(now, "told", kind, *(place.name for place, _ in parts))
        if outage.until < float("inf"):
            self.plan(outage.until, "up", number)

    def purpose(self, pool: Any, why: str) -> Purpose:
        """Return the purpose of a capacity window of a pool, by its name."""
        if why == "maintenance":
            return Purpose(why, why, BACK[why])
        if why == "not yet open":
            return Purpose(why, "reservation", "reservation", may_return=lambda: self._hands_over(pool, "open"))
        if why == "closed":
            return Purpose(why, "resume", tell=lambda _: self._close(pool))
        place: Any = self._core.pools[why.removeprefix("reservation ")]
        return Purpose(
            why,
            "reservation",
            tell=lambda away: self._empty(place) if away else None,
            may_return=lambda: self._hands_over(place, "return"),
        )

    def _told(self, cause: str, *names: str) -> None:
        for name in names:
            self._core.tell("place_changed", self._core.pools[name], cause)

    def _down(self, number: int) -> None:
        self._take(self._outage_parts(number), self._core.spec.outages[number].kind)

    def _up(self, number: int) -> None:
        self._bring(self._outage_parts(number), BACK[self._core.spec.outages[number].kind])

    def _take(self, parts: list[tuple[Pool, Part]], kind: str) -> None:
        for place, what in parts:
            place.absences.go_down(what, kind)
            if kind == "failure":
                self._execution.fail(place.absences.hit_by(what, self._env.rng(f"{self._core.name}.hits")))
        self._core.wake()

    def _bring(self, parts: list[tuple[Pool, Part]], cause: str) -> None:
        for place, what in parts:
            place.absences.come_up(what, cause)

    # ------------------------------------------------------------------ boots

    def _plan_boot(self, pool: Pool, at: float, expected: float) -> None:
        self.plan(at, "booted", pool.name, expected)

    def _booted(self, name: str, _expected: float) -> None:
        """End the boots at a place that are over now: jobs start, and nodes whose boots have failed go down."""
        pool = self._core.pools[name]
        assert pool.sleeping is not None
        for node in pool.sleeping.booted():
            self._take(self._parts(pool, (node,)), "failure")
            self.plan(self._env.now + self._boot_repair(pool, node), "boot repaired", name, node)
        self._execution.booted(pool)
        pool.came_free()

    def _boot_repair(self, pool: Pool, node: int) -> float:
        """Return the seconds until a node is up again whose boot has failed."""
        assert pool.sleeping is not None
        given = pool.sleeping.powers[node].boot_repair
        if given is not None:
            return float(given)
        of = pool if pool.part_of is None else pool.part_of
        models = (each for each in self._core.spec.failures if each.of == "nodes" and self._pool(each.partition) is of)
        rng = self._env.rng(f"{self._core.name}.boots.repairs")
        return next((float(each.draw_time_to_repair(rng)) for each in models), _REPAIR)

    def _boot_repaired(self, name: str, node: int) -> None:
        self._bring(self._parts(self._core.pools[name], (node,)), "repair")

    def _failing_parts(self, number: int) -> Iterable[FailingPart]:
        model = self._core.spec.failures[number]
        return self._pool(model.partition).units if model.of == "nodes" else model.names or self._taken[number]

    def _failed(self, number: int, part: FailingPart, more: int) -> None:
        """Take a part of a failure model down, or end that."""
        model = self._core.spec.failures[number]
        taken = self._taken[number].get(str(part), ())
        if model.of == "links":
            assert self._core.io.network is not None
            for link, _ in taken:
                self._core.io.network.count_failed(link, more)
            return
        if model.of == "nodes":
            pool = self._pool(model.partition)
            parts = self._parts(pool, pool.unit(int(part)))
        else:
            names = dict.fromkeys(name for name, _ in taken)
            each = [(self._pool(name), [node for of, node in taken if of == name]) for name in names]
            parts = [both for pool, nodes in each for both in self._parts(pool, nodes)]
            self._cut(model.partition, str(part), more)
        if more > 0:
            self._take(parts, "failure")
        else:
            self._bring(parts, "repair")

    def _cut(self, partition: str | None, switch: str, more: int) -> None:
        """Take the links at a switch of the networks of partitions down for jobs with traffic, or end that."""
        for name, below in self._below.items():
            if partition in (None, name) and switch in below:
                self._execution.traffic.cut(self._pool(name), switch, more)

    def _fail(self, number: int, part: FailingPart) -> None:
        model = self._core.spec.failures[number]
        if model.of == "nodes" and part not in self._pool(model.partition).units:
            self.failures.wait(number, part)  # taken away by a resize
        else:
            self.failures.fail(number, part)

    # ------------------------------------------------------------------ reservations

    def _reserve(self, place: Reserved) -> None:
        spec, parent, now = place.reservation, place.part_of, self._env.now
        if spec.end <= now:
            place.absences.lower(place.absences.whole)
            self.plan(now, "told", "reservation", place.name)
            return
        self.open(place)
        # Jobs leave before others enter: at the start those of the partition, at the end those of the reservation.
        self._announce(place, spec.end, float("inf"), place.absences.whole, "closed")
        self._announce(parent, spec.start, spec.end, place.taken, f"reservation {place.name}")
        place.holds = spec.start <= now
        if not place.holds:
            self._announce(place, now, spec.start, place.absences.whole, "not yet open")

    def _announce(self, pool: Pool, start: float, end: float, what: Part, why: str) -> None:
        pool.announce(start, end, what, purpose=self.purpose(pool, why))

    def open(self, place: Reserved) -> None:
        """Let failures in the partition of a reservation also affect the reservation."""
        if not self._reserved:
            self._execution.after_each(self._hand_over)
        self._reserved.setdefault(place.part_of, []).append(place)

    def _resume(self, place: Reserved, pending: str) -> None:
        """Continue a reservation of a snapshot; ``pending``: as in :meth:`pending`."""
        waits = {window.why for window in place.windows}
        reserved = {window.why for window in place.part_of.windows if window.begun}
        self.open(place)
        if pending:
            self._pending[place] = pending
        if pending != "open" and "not yet open" not in waits:
            place.holds = pending == "return" or f"reservation {place.name}" in reserved

    def pending(self, place: Pool) -> str:
        """Return whether the part of a reservation still has to change hands: ``"open"``, ``"return"`` or ``""``."""
        return self._pending.get(place, "")  # type: ignore[call-overload, no-any-return]

    def _empty(self, place: Reserved) -> None:
        """Stop the work of the partition that is in the way of a reservation."""
        self._execution.fail(place.part_of.absences.in_the_way(place.taken))

    def _hands_over(self, place: Reserved, what: str) -> bool:
        """Whether the part of a reservation changes hands now; otherwise it does once the last body has left."""
        ready = not len(place.running) if what == "return" else place.vacant(self._reserved[place.part_of])
        if ready:
            place.holds = what == "open"
            parent = place.part_of.sleeping
            if parent is not None and place.sleeping is not None:
                numbers = [(node, own) for own, node in enumerate(place.taken)]
                if place.holds:
                    parent.move(place.sleeping, numbers)
                else:
                    place.sleeping.move(parent, [(own, node) for node, own in numbers])
            self._pending.pop(place, None)
        else:
            self._pending[place] = what
            self._awaited(place).extend(self._vacant_at(place, what))
        return ready

    def _awaited(self, place: Reserved) -> CapacityWindow:
        """Return the window that goes on until the part of a reservation that is pending changes hands."""
        opens = self._pending[place] == "open"
        pool, why = (place, "not yet open") if opens else (place.part_of, f"reservation {place.name}")
        return next(window for window in pool.windows if window.why == why and window.begun)

    def _vacant_at(self, place: Reserved, what: str) -> float:
        leaves = self._execution.leaves
        if what == "return":
            return max(map(leaves, place.running))
        return min(place.vacant_at(self._reserved[place.part_of], leaves), place.reservation.end)

    def _hand_over(self) -> None:
        """Hand over the parts that wait for it and that the last body has left."""
        for what in ("return", "open"):
            for place in [place for place, pending in self._pending.items() if pending == what]:
                if self.pending(place) == what:
                    window = self._awaited(place)
                    if self._hands_over(place, what):
                        window.close()

    def _close(self, place: Reserved) -> None:
        if self.pending(place):
            place.windows.remove(self._awaited(place))
            del self._pending[place]  # it never opened
        self._execution.stop_all(list(place.running), "timeout")
        for job in list(self._core.known.values()):
            if job.place is place and job.run is None:
                self._cancel(job)
