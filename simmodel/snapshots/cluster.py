"""Snapshots of clusters, with a consistency check for those read from files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from math import inf, nan
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, shown, unknown
from simmodel.platform.cluster import ClusterSpec
from simmodel.platform.options import ClusterOptions
from simmodel.resources.pools.sleeping import SleepState
from simmodel.snapshots.jobs import (
    Choice,
    JobsSnapshot,
    PlaceState,
    Planned,
    RunningWork,
    Wait,
    WorkState,
    expected_plans,
    seen_running,
    seen_works,
)
from simmodel.snapshots.types import Columns, Instant, check_each

if TYPE_CHECKING:
    pass

__all__ = ["ClusterSnapshot", "PredictorState"]


OPTIONS = ClusterOptions()


@attrs.frozen(repr=False)
class PredictorState(Fields):
    """The state of a predictor, as JSON values, and (number, requested time in s) of each job with a prediction."""

    state: Any = None
    limits: tuple[tuple[int, float], ...] = ()


@attrs.frozen(kw_only=True, eq=False, slots=False, repr=False)
class ClusterSnapshot(JobsSnapshot):
    """A cluster at one instant, with the fields of every :class:`~simmodel.snapshots.snapshot.Snapshot` and:

    Parameters
    ----------
    platform, options
        the spec and options of the cluster
    running
        running jobs, place by place, in the order of their starts
    waiting, held, blocked
        waiting jobs, in order of arrival; jobs held by a limit; jobs that wait for other jobs
    new
        numbers of the waiting jobs that arrived since the last decision
    arrivals
        jobs still to be submitted
    places, consumables
        unavailable parts of each place; the free amount of each consumable
    waits
        pending dependencies of blocked jobs
    choices
        the waiting jobs that may start at several places
    prediction
        the memory of the predictor of run times, if jobs are planned with predictions
    over
        (id, final state) of ended jobs on which arrivals depend
    usage
        (half-life in s, ((user, processor seconds, processors held, instant), ...)) of each usage record
    planned
        planned events, in order
    """

    system: ClassVar[str] = "cluster"

    name: str = "cluster"
    platform: ClusterSpec
    options: ClusterOptions = OPTIONS
    running: Columns[RunningWork] = ()
    waiting: Columns[WorkState] = ()
    held: Columns[WorkState] = ()
    blocked: Columns[WorkState] = ()
    new: tuple[int, ...] = ()
    arrivals: Columns[WorkState] = ()
    places: tuple[PlaceState, ...] = ()
    consumables: tuple[tuple[str, Instant], ...] = ()
    waits: tuple[Wait, ...] = ()
    over: tuple[tuple[int | str, str], ...] = ()
    usage: tuple[tuple[float, tuple[tuple[int | str | None, float, float, Instant], ...]], ...] = ()
    planned: tuple[Planned, ...] = ()
    choices: tuple[Choice, ...] = ()
    prediction: PredictorState | None = None

    def __repr__(self) -> str:
        return (
            f"<ClusterSnapshot of {self.name} at {self.now:g} s: {len(self.running)} running, "
            f"{len(self.waiting)} waiting, {len(self.arrivals)} to arrive>"
        )

    @property
    def works(self) -> Iterator[WorkState]:
        """The submitted jobs that have not ended: running, waiting, held and blocked."""
        yield from (run.work for run in self.running)
        for works in (self.waiting, self.held, self.blocked):
            yield from works

    @cached_property
    def columns(self) -> dict[str, Any]:
        """The columns of its jobs for a recorder, with requested times instead of predictions."""
        columns = super().columns
        if self.prediction is not None:
            requested = columns["requested"].copy()
            for number, limit in self.prediction.limits:
                requested[self.rows[number]] = limit if limit < inf else nan
            columns = {**columns, "requested": requested}
        return columns

    def expected(self, *, actual: bool = False) -> ClusterSnapshot:
        """Return the part that a what-if may see: no future arrivals, failures or cancellations, no actual run times.

        Running jobs end at their expected end, or just after now if that is past; waiting jobs run for their planned
        time. With ``actual``, run times are kept.
        """
        parts: dict[str, Any] = {}
        if not actual:
            parts = {name: seen_works(getattr(self, name)) for name in ("waiting", "held", "blocked")}
            parts["running"] = seen_running(self.running)
        seen = attrs.evolve(
            self,
            **parts,
            arrivals=(),
            streams=(),
            seed=0,
            planned=tuple(expected_plans(self.planned, self.platform, self.now, actual=actual)),
            over=(),
        )
        return attrs.evolve(seen, submitted=max((work.number for work in seen.works), default=-1) + 1)

    def check(self) -> None:
        """Raise ``InputError``, with its place, if parts of the snapshot do not fit together."""
        _Check(self).run()


def _within(part: int | tuple[tuple[int, int], ...], whole: int | tuple[tuple[int, int], ...]) -> bool:
    """Whether the capacity that is down includes a part."""
    if isinstance(part, int):
        return not part or (isinstance(whole, int) and part <= whole)
    most = {} if isinstance(whole, int) else dict(whole)
    return all(times <= most.get(node, 0) for node, times in part)


class _Check:
    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self.snapshot = snapshot
        platform = snapshot.platform
        self.capacity = {each.name: each.capacity for each in platform.partitions}
        self.nodes = {each.name: len(each.node_names) for each in platform.partitions if each.nodes}
        for each in platform.reservations:
            parent = platform.partition(each.partition)
            kinds = [kind for kind in parent.nodes for _ in range(kind.count)]
            if kinds:
                self.nodes[each.name] = len(each.nodes)
                numbers = [node if isinstance(node, int) else parent.node_names.index(node) for node in each.nodes]
                self.capacity[each.name] = sum(kinds[node].cores for node in numbers)
            else:
                self.capacity[each.name] = each.processors or 0
        self.resized = {state.name for state in snapshot.places if isinstance(state.size, int)}
        self.known: dict[int, WorkState] = {}

    def error(self, message: str, place: str) -> InputError:
        return InputError(message, place=place)

    def run(self) -> None:
        """Check all parts."""
        self._works()
        self._places()
        self._running()
        self._references()
        self._planned()

    # ------------------------------------------------------------------ jobs

    def _each(self) -> Iterator[tuple[str, int, WorkState]]:
        snapshot = self.snapshot
        for i, run in enumerate(snapshot.running):
            yield "running", i, run.work
        for name in ("waiting", "held", "blocked", "arrivals"):
            for i, work in enumerate(getattr(snapshot, name)):
                yield name, i, work

    def _works(self) -> None:
        now = self.snapshot.now
        queues = {queue.name for queue in self.snapshot.platform.queues}
        until = {each.about[0] for each in self.snapshot.planned if each.what == "eligible"}
        for part, i, work in self._each():
            if work.number in self.known and work.number >= 0:
                raise self.error(f"duplicate number {work.number}", f"{part}.number[{i}]")
            self.known[work.number] = work
            if (work.submit < now) if part == "arrivals" else (work.submit > now):
                limit = ">=" if part == "arrivals" else "<="
                raise self.error(f"must be an instant {limit} {now:g} s, got {work.submit:g}", f"{part}.submit[{i}]")
            spec = work.spec
            if spec is not None and spec.queue is not None and queues and str(spec.queue) not in queues:
                raise self.error(unknown("queue", str(spec.queue), sorted(queues)).message, f"{part}.spec[{i}].queue")
            if part == "held" and (spec is None or spec.queue is None or not queues):
                raise self.error("must name a queue: other jobs cannot be held", f"held.spec[{i}]")
            free = (spec is None or not spec.dependencies) and work.number not in until
            if part == "blocked" and free and self.snapshot.policy.state is None:
                text = "must have dependencies, or an instant until which it is held: other jobs cannot be blocked"
                raise self.error(text, f"blocked.spec[{i}]")
            if work.place not in self.capacity and not (part == "arrivals" and spec is not None and not work.place):
                raise self.error(unknown("place", work.place, self.capacity).message, f"{part}.place[{i}]")
            if part in ("waiting", "held"):
                self._fits(work.processors, work.place, f"{part}.processors[{i}]")

    def _running(self) -> None:
        now = self.snapshot.now
        used = dict.fromkeys(self.capacity, 0)
        for i, run in enumerate(self.snapshot.running):
            place = run.place
            if run.started > now:
                raise self.error(f"must be an instant <= {now:g} s, got {run.started:g}", f"running.started[{i}]")
            if run.started < run.work.submit:
                message = f"must be an instant >= {run.work.submit:g} s (the submission), got {run.started:g}"
                raise self.error(message, f"running.started[{i}]")
            if run.end is not None and run.end < now:
                raise self.error(f"must be an instant >= {now:g} s, got {run.end:g}", f"running.end[{i}]")
            if (run.held is not None) != (place in self.nodes):
                expected = f"nodes of {place}" if place in self.nodes else f"None ({place} has no nodes)"
                raise self.error(f"must be {expected}, got {run.held}", f"running.held[{i}]")
            if run.held is not None:
                for node in run.held.nodes.tolist():
                    self._node(node, place, f"running.held[{i}]")
                self._fits(run.held.processors, place, f"running.held[{i}]")
            if not run.released:
                used[place] += run.work.processors
                if used[place] > self.capacity[place] and place not in self.resized:
                    raise self.error(
                        f"must be at most {self.capacity[place]} in total on {place}, got {used[place]}",
                        f"running.processors[{i}]",
                    )

    def _fits(self, processors: int, place: str, where: str) -> None:
        if processors > self.capacity[place]:
            raise self.error(f"must be at most {self.capacity[place]} processors on {place}, got {processors}", where)

    def _node(self, node: int, place: str, where: str) -> None:
        if not 0 <= node < self.nodes[place]:
            raise self.error(f"must be a node of {place} (0 to {self.nodes[place] - 1}), got {node}", where)

    # ------------------------------------------------------------------ places

    def _places(self) -> None:
        for i, state in enumerate(self.snapshot.places):
            where = f"places[{i}]"
            if state.name not in self.capacity:
                raise self.error(unknown("place", state.name, self.capacity).message, f"{where}.name")
            identified = state.name in self.nodes
            if state.down and isinstance(state.down, int) == identified:
                raise self.error(
                    f"must be {'nodes' if identified else 'processors'}, got {state.down}", f"{where}.down"
                )
            for node, _ in () if isinstance(state.down, int) else state.down:
                self._node(node, state.name, f"{where}.down")
            if not _within(state.drained, state.down):
                raise self.error(f"must be part of down, {state.down}, got {state.drained}", f"{where}.drained")
            if state.size is not None and isinstance(state.size, int) == identified:
                found = f"must be {'nodes' if identified else 'processors'}, got {state.size}"
                raise self.error(found, f"{where}.size")
            for node in () if state.size is None or isinstance(state.size, int) else state.size:
                self._node(node, state.name, f"{where}.size")
            self._sleep(state, f"{where}.sleep")
            for j, (_, _, what, _, why) in enumerate(state.windows):
                if isinstance(what, int) == identified:
                    found = f"must be {'nodes' if identified else 'processors'}, got {what}"
                    raise self.error(found, f"{where}.windows[{j}]")
                if why and why not in ("maintenance", "not yet open", "closed"):
                    name = why.removeprefix("reservation ")
                    if name not in {each.name for each in self.snapshot.platform.reservations}:
                        expected = "'maintenance', 'not yet open', 'closed' or 'reservation NAME'"
                        raise self.error(f"must be {expected}, got {shown(why)}", f"{where}.windows[{j}]")
        self._pending()
        names = self.snapshot.platform.amounts
        for i, (name, _) in enumerate(self.snapshot.consumables):
            if name not in names:
                raise self.error(unknown("consumable", name, sorted(names)).message, f"consumables[{i}]")

    def _sleep(self, state: PlaceState, where: str) -> None:
        """Check the nodes that sleep and boot, and that the end of each boot is planned."""
        sleep = SleepState() if state.sleep is None else state.sleep
        for node in [each[0] for part in sleep for each in part]:
            self._node(node, state.name, where)
        planned = {each.at for each in self.snapshot.planned if each.what == "booted" and each.about[0] == state.name}
        for boot in sleep.booting:
            if boot.ready not in planned:
                raise self.error(f"must be the instant of a planned event 'booted', got {boot.ready:g}", where)

    def _pending(self) -> None:
        """Check that a part that has to change hands is away from the place that waits for it."""
        begun = {(state.name, each.why) for state in self.snapshot.places for each in state.windows if each.begun}
        first = self.snapshot.platform.partitions[0].name
        of = {each.name: each.partition or first for each in self.snapshot.platform.reservations}
        for i, state in enumerate(self.snapshot.places):
            opens = state.pending == "open"
            name, why = (state.name, "not yet open") if opens else (of.get(state.name), f"reservation {state.name}")
            if state.pending and (name, why) not in begun:
                accepted = f"must be '' without a window that has begun, {why!r}" + (f" of {name}" if name else "")
                raise self.error(f"{accepted}, got {state.pending!r}", f"places[{i}].pending")

    # ------------------------------------------------------------------ references

    def _references(self) -> None:
        snapshot = self.snapshot
        waiting = {work.number: work for work in snapshot.waiting}
        check_each("new", snapshot.new, waiting, "the number of a waiting job")
        for i, (number, places) in enumerate(snapshot.choices):
            if number not in waiting:
                raise self.error(f"must be the number of a waiting job, got {number}", f"choices[{i}]")
            for name in places:
                if name not in self.capacity:
                    raise self.error(unknown("place", name, self.capacity).message, f"choices[{i}]")
            first = waiting[number].place
            if len(set(places)) < max(2, len(places)) or places[0] != first:
                expected = f"must be two or more places, the first of which is {first}"
                raise self.error(f"{expected}, got {shown(list(places))}", f"choices[{i}]")
            if waiting[number].spec is None:
                raise self.error("must be a job with partitions", f"choices[{i}]")
        blocked = {work.number: work for work in snapshot.blocked}
        for i, (_, _, number, which) in enumerate(snapshot.waits):
            spec = blocked[number].spec if number in blocked else None
            if spec is None:
                raise self.error(f"must be the number of a blocked job, got {number}", f"waits[{i}]")
            if not which < len(spec.dependencies):
                raise self.error(f"must be a dependency below {len(spec.dependencies)}, got {which}", f"waits[{i}]")
        for name, state in snapshot.streams:
            if not isinstance(state, dict) or state.get("bit_generator") != "PCG64":
                raise self.error(f"must be the state of a PCG64 generator, got {shown(state)}", f"streams.{name}")

    def _planned(self) -> None:
        """Check planned events: their references exist, ends match the running jobs, each arrival is planned once."""
        arriving: list[int] = []
        ending: dict[int, float] = {}
        for i, each in enumerate(self.snapshot.planned):
            where = f"planned[{i}]"
            if each.at < self.snapshot.now:
                raise self.error(f"must be an instant >= {self.snapshot.now:g} s, got {each.at:g}", where)
            if each.what not in _KINDS:
                raise self.error(unknown("planned event", each.what, _KINDS).message, where)
            try:
                fine = _KINDS[each.what](self, each)
            except (TypeError, ValueError, IndexError, KeyError):
                fine = False
            if not fine:
                raise self.error(f"must be valid arguments of {shown(each.what)}, got {list(each.about)}", where)
            if each.what == "end":
                ending[each.about[0]] = each.at
            elif each.what == "arrivals":
                arriving += range(each.about[0], each.about[0] + each.about[1])
            elif each.what == "submission":
                arriving += each.about
        for row, run in enumerate(self.snapshot.running):
            if ending.get(row) != run.end:
                expected = "None (no end is planned)" if row not in ending else f"the planned end, {ending[row]:g} s"
                raise self.error(f"must be {expected}, got {run.end}", f"running.end[{row}]")
        if sorted(arriving) != list(range(len(self.snapshot.arrivals))):
            raise self.error(
                f"must plan each of {len(self.snapshot.arrivals)} arrivals once, got {len(arriving)} plans",
                "planned",
            )

    # ------------------------------------------------------------------ kinds of planned events

    def _end(self, each: Planned) -> bool:
        (row,) = each.about
        return type(row) is int and 0 <= row < len(self.snapshot.running)

    def _several(self, each: Planned) -> bool:
        first, count = each.about
        if type(first) is not int or type(count) is not int:
            return False
        there = self.snapshot.arrivals
        if not (0 <= first <= first + count <= len(there) and count > 0):
            return False
        works = there[first : first + count]
        submits = [work.submit for work in works]
        plain = len(self.capacity) == 1 or all(work.spec is not None for work in works)
        return plain and each.at == submits[0] and submits == sorted(submits)

    def _submission(self, each: Planned) -> bool:
        (row,) = each.about
        return type(row) is int and row >= 0 and self._comes(self.snapshot.arrivals[row], each.at)

    def _comes(self, work: WorkState, at: float) -> bool:
        return work.spec is not None and work.submit <= at

    def _cancel(self, each: Planned) -> bool:
        (number,) = each.about
        return number in self.known

    def _eligible(self, each: Planned) -> bool:
        (number,) = each.about
        return number in {work.number for work in self.snapshot.blocked}

    def _alarm(self, each: Planned) -> bool:
        return not each.about and each.at < inf

    def _outage(self, each: Planned) -> bool:
        (number,) = each.about
        return type(number) is int and 0 <= number < len(self.snapshot.platform.outages)

    def _failure(self, each: Planned) -> bool:
        number, unit = each.about
        model = self.snapshot.platform.failures[number]
        if model.of != "nodes":
            return type(number) is int and number >= 0 and unit in self.snapshot.platform.failing(model)
        name = self.snapshot.platform.partition(model.partition).name
        return (
            type(number) is type(unit) is int and number >= 0 and 0 <= unit < self.nodes.get(name, self.capacity[name])
        )

    def _window(self, each: Planned) -> bool:
        name, row = each.about
        (state,) = (state for state in self.snapshot.places if state.name == name)
        return type(row) is int and 0 <= row < len(state.windows)

    def _booted(self, each: Planned) -> bool:
        name, expected = each.about
        return name in self.nodes and expected >= 0

    def _repaired(self, each: Planned) -> bool:
        name, node = each.about
        return type(node) is int and 0 <= node < self.nodes[name]

    def _told(self, each: Planned) -> bool:
        if len(each.about) == 2 and isinstance(each.about[1], int):
            return self._window(each)
        return len(each.about) > 1 and all(name in self.capacity for name in each.about[1:])


_KINDS: dict[str, Callable[[_Check, Planned], bool]] = {
    "end": _Check._end,
    "arrivals": _Check._several,
    "submission": _Check._submission,
    "cancel": _Check._cancel,
    "eligible": _Check._eligible,
    "alarm": _Check._alarm,
    "down": _Check._outage,
    "up": _Check._outage,
    "fail": _Check._failure,
    "repair": _Check._failure,
    "back": _Check._failure,
    "booted": _Check._booted,
    "boot repaired": _Check._repaired,
    "begin": _Check._window,
    "over": _Check._window,
    "told": _Check._told,
}
