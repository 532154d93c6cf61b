"""Invariants of every run of a machine, checked from outside: executions, transfers, and the location of data.

A :class:`Witness` records the hooks of the machine and the times at which data were in each pool; :func:`check` then
checks the result, phase by phase, against these records and the spec of the machine.
"""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import simpy.core

from simmodel.records.network_recorder import NetworkRecorder
from simmodel.work.workflow import topological_order

INFINITY = math.inf


class Span(NamedTuple):
    """An amount of something from start to end (s; infinity: not ended)."""

    start: float
    end: float
    what: Any
    amount: float = 1.0


class Lying(OrderedDict[Any, None]):
    """The data in a pool, with a record of the times of their presence; the pool's own table is kept up to date."""

    def __init__(self, witness: Witness, pool: str, own: OrderedDict[Any, None]) -> None:
        super().__init__()
        self.witness = witness
        self.pool = pool
        self.own = own

    def __setitem__(self, data: Any, value: None) -> None:
        assert data not in self
        self.witness.present[self.pool, data].append([self.witness.env.now, INFINITY])
        super().__setitem__(data, value)
        self.own[data] = value

    def __delitem__(self, data: Any) -> None:
        self.witness.present[self.pool, data][-1][1] = self.witness.env.now
        super().__delitem__(data)
        del self.own[data]

    def move_to_end(self, data: Any, last: bool = True) -> None:
        super().move_to_end(data, last)
        self.own.move_to_end(data, last)


class Witness:
    """Record the hooks of a machine, and the presence of data in its pools.

    Parameters
    ----------
    machine
        a machine on which nothing has been submitted yet
    """

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        self.env = machine.env
        self.assigned: list[tuple[float, Any, Any]] = []
        self.ended: list[tuple[float, Any, Any, tuple[float, ...]]] = []
        self.stopped: list[tuple[float, Any, Any]] = []
        self.executed: dict[Any, list[Span]] = defaultdict(list)  # by task, on places with preemption
        self.moves: list[tuple[Any, Any]] = []
        self.present: dict[tuple[str, Any], list[list[float]]] = defaultdict(list)
        for name, pool in machine.pools.items():
            assert not pool.held
            pool.held = Lying(self, name, pool.held)
        self.network = NetworkRecorder(machine.network)
        self.env.observe(self.network)
        self.env.observe(self)
        for place in machine.places:
            if place.spec.preemption != "no":
                place.execute = self._watched(place, place.execute)

    def _watched(self, place: Any, execute: Any) -> Any:
        def watched(task: Any, seconds: float) -> Any:
            since = self.env.now
            try:
                yield from execute(task, seconds)
            finally:
                self.executed[task].append(Span(since, self.env.now, place, task.cores))

        return watched

    # ------------------------------------------------------------------ hooks

    def task_assigned(self, task: Any, place: Any) -> None:
        self.assigned.append((self.env.now, task, place))

    def task_ended(self, task: Any, place: Any, phases: tuple[float, ...]) -> None:
        self.ended.append((self.env.now, task, place, phases))

    def task_stopped(self, task: Any, place: Any) -> None:
        self.stopped.append((self.env.now, task, place))

    def data_moved(self, moved: Any) -> None:
        self.moves.append((moved, moved.task))

    # ------------------------------------------------------------------ observation

    def run(self, limit: int = 200_000) -> None:
        """Run until no events are left, and check the machine after each event."""
        env = self.env
        self.look()
        for _ in range(limit):
            try:
                env.step()
            except simpy.core.EmptySchedule:
                return
            self.look()
        raise AssertionError(f"no end after {limit} events, at {env.now}")

    def look(self) -> None:
        for name, pool in self.machine.pools.items():
            assert all(users > 0 and data in pool.held for data, users in pool.uses.items()), (name, pool.uses)
            assert -1e-6 <= pool.used <= pool.size * (1 + 1e-9), (name, pool.used, pool.size)
        for place in self.machine.places:
            assert -1e-9 <= place.free <= place.capacity, (place, place.free)
            assert place.backlog >= 0, (place, place.backlog)

    def lands(self, data: Any) -> float:
        """Return the first instant at which data were in any pool."""
        pools = self.machine.pools
        return min((self.present[pool, data][0][0] for pool in pools if (pool, data) in self.present), default=INFINITY)

    def lay_in(self, pool: str, data: Any, at: float, until: float | None = None) -> bool:
        """Return whether data were in a pool from one instant until another (default: at that instant)."""
        until = at if until is None else until
        return any(start <= at and until <= end for start, end in self.present[pool, data])


# ---------------------------------------------------------------------- the checks


def check(witness: Witness, *, finished: bool = True) -> None:
    """Check the run of a machine by its result and the records of a witness.

    Parameters
    ----------
    finished
        whether all tasks are expected to be done
    """
    machine = witness.machine
    result = machine.result()
    rows = list(result.tasks.rows())
    ended = {task: (place, phases) for _, task, place, phases in witness.ended}
    assert len(ended) == len(witness.ended), "a task ended twice"
    if finished:
        assert all(task in ended for task in machine.tasks), [task for task in machine.tasks if task not in ended]
        assert all(submission.triggered for submission in machine.sets)
    for task, row in zip(machine.tasks, rows, strict=True):
        assert (task in ended) == (row["status"] == "done"), row
    _check_phases(machine, ended, rows)
    executions = _executions(witness, ended)
    _check_times(witness, ended, executions)
    _check_processors(witness, ended, executions)
    _check_cores(machine, executions, result)
    _check_order(witness, ended)
    _check_queues(witness, ended)
    _check_reconfigurations(machine, ended)
    _check_inputs(witness, executions)
    _check_versions(witness, ended)
    _check_moves(witness, result)
    _check_pools(witness, ended, executions, result)
    _check_links(witness)
    if finished:
        _check_load(executions, result)


def _check_load(executions: dict[Any, list[Span]], result: Any) -> None:
    """The result accounts for every execution, including stopped ones."""
    seconds: dict[str, float] = defaultdict(float)
    for spans in executions.values():
        for start, end, place, cores in spans:
            seconds[place.name] += (end - start) * cores / place.capacity
    for row in result.load().rows():
        assert row["execution"] == _about(seconds[row["processor"]]), row
        assert not row["utilisation"] > 1 + 1e-9, row


def _check_phases(machine: Any, ended: dict[Any, Any], rows: list[Any]) -> None:
    for task, row in zip(machine.tasks, rows, strict=True):
        if task not in ended:
            continue
        place, (taken, setup_start, setup_end, reconfigured, transfer_start, transfer_end, start, end) = ended[task]
        moments = [task.submit, task.ready, taken, setup_start, setup_end, reconfigured, transfer_start, transfer_end,
                   start, end]  # fmt: skip
        assert moments == sorted(moments), (task, moments)
        assert (row["processor"], row["pool"]) == (place.name, place.pool.name)
        assert [row[name] for name in ("submit", "ready", "taken", "setup_start", "setup_end", "reconfiguration_end",
                "transfer_start", "transfer_end", "start", "end")] == moments  # fmt: skip
        assert taken >= task.assigned >= task.submit
        assert setup_end - setup_start == _about(place.spec.setup)
        spec = place.spec
        waited = start - transfer_end
        assert waited == 0 or (spec.is_cpu and spec.cores == 1), (task, waited)
        if not task.inputs:
            assert transfer_start == transfer_end
        if not (task.inputs or task.outputs or task.memory):
            assert reconfigured == transfer_end


def _executions(witness: Witness, ended: dict[Any, Any]) -> dict[Any, list[Span]]:
    found = {}
    for task, (place, phases) in ended.items():
        alone = [Span(phases[-2], phases[-1], place, task.cores)]
        found[task] = alone if place.spec.preemption == "no" else witness.executed[task]
        assert found[task][-1] == alone[0]
    for task, spans in witness.executed.items():
        found.setdefault(task, spans)
    stops = defaultdict(int)
    for _, task, _ in witness.stopped:
        stops[task] += 1
    for task in ended:
        # Executions stopped on other places count, too, if the last place has no preemption.
        if task in witness.executed and ended[task][0].spec.preemption == "no":
            found[task] = [*witness.executed[task], *found[task]]
        assert len(found[task]) == stops[task] + 1 == task.attempts, (task, found[task], stops[task])
    return found


def _check_times(witness: Witness, ended: dict[Any, Any], executions: dict[Any, list[Span]]) -> None:
    for task, (place, _) in ended.items():
        spans = executions[task]
        least = place.expected_run(task) * (1 - place.spec.model_error)
        most = place.expected_run(task) * (1 + place.spec.model_error)
        last = spans[-1].end - spans[-1].start
        assert last <= most + _EPSILON * max(1.0, spans[-1].end)
        if len(spans) == 1:
            assert last >= least - _EPSILON * max(1.0, spans[-1].end), (task, spans)
        # The last execution does at most the whole task.
        elif all(span.what.spec.preemption != "requeue" and not span.what.spec.model_error for span in spans):
            shares = [(s.end - s.start) / (s.what.expected_run(task) or 1.0) for s in spans]
            assert place.expected_run(task) == 0 or shares[-1] <= 1 + 1e-9


def _check_processors(witness: Witness, ended: dict[Any, Any], executions: dict[Any, list[Span]]) -> None:
    held: dict[Any, list[Span]] = defaultdict(list)
    for task, (place, phases) in ended.items():
        held[place].append(Span(phases[0], phases[-1], task, task.cores if place.capacity > 1 else 1))
        for span in executions[task][:-1]:
            held[span.what].append(Span(span.start, span.end, task, task.cores if span.what.capacity > 1 else 1))
    for place, spans in held.items():
        assert _most(spans) <= place.capacity + 1e-9, (place, sorted(spans))


def _check_cores(machine: Any, executions: dict[Any, list[Span]], result: Any) -> None:
    """A CPU core does one thing at a time."""
    held: dict[str, list[Span]] = defaultdict(list)
    for task, spans in executions.items():
        for span in spans:
            if span.what.core is not None:
                held[span.what.name].append(Span(span.start, span.end, task))
    for row in result.cpu_phases.rows():
        held[row["core"]].append(Span(row["start"], row["end"], row["what"]))
    for core, spans in held.items():
        assert _most(spans) <= 1, (core, sorted(spans, key=lambda span: span[:2]))
    # A task waits for a CPU core only while all cores that could serve it are busy.
    for task, row in zip(machine.tasks, result.tasks.rows(), strict=True):
        if row["status"] == "done" and row["setup_start"] > row["taken"]:
            for core in task.place.setup_cores:
                assert _covered(held[core.name], row["taken"], row["setup_start"]), (task, core.name)
        if row["status"] == "done" and row["start"] > row["transfer_end"]:
            assert _covered(held[task.place.name], row["transfer_end"], row["start"]), task


def _check_order(witness: Witness, ended: dict[Any, Any]) -> None:
    """No task runs before its parents are done; it is ready when it has arrived and its last parent is done."""
    base = 0
    for submission in witness.machine.sets:
        parents = submission.set.parents
        for i, task in enumerate(submission.tasks):
            above = [submission.tasks[parent] for parent in (parents[i] if parents is not None else ())]
            if task in ended:
                assert all(parent in ended for parent in above), task
                instants = [task.submit, *(ended[parent][1][-1] for parent in above)]
                # Initial data of the set may have to wait for room.
                instants += [witness.lands(data) for data in task.inputs if data in submission.given]
                assert task.ready == max(instants), (task, task.ready, instants)
                assert ended[task][1][0] >= task.ready
            after = submission.set.submit[i] if submission.set.submit is not None else 0.0
            if task.state != "to come":
                assert task.submit == _about(submission.at + after)
        base += len(submission.tasks)


def _check_queues(witness: Witness, ended: dict[Any, Any]) -> None:
    """A processor takes tasks in the order of decisions, each as soon as it can."""
    queues: dict[Any, list[Any]] = defaultdict(list)
    for _, task, place in witness.assigned:
        queues[place].append(task)
    for place, tasks in queues.items():
        if place.spec.queue != "fifo" or place.spec.preemption != "no":
            continue
        done = [task for task in tasks if task in ended and ended[task][0] is place]
        assert done == tasks[: len(done)] or place.capacity > 1, (place, tasks)
        taken = [ended[task][1][0] for task in done]
        assert taken == sorted(taken), (place, list(zip(tasks, taken, strict=False)))
        if place.capacity > 1:
            continue
        free = 0.0
        for task in done:
            phases = ended[task][1]
            assert phases[0] == max(free, task.ready, task.assigned), (place, task, phases[0], free)
            free = phases[-1]


def _check_reconfigurations(machine: Any, ended: dict[Any, Any]) -> None:
    by_place: dict[Any, list[tuple[tuple[float, ...], Any]]] = defaultdict(list)
    for task, (place, phases) in ended.items():
        by_place[place].append((phases, task))
    for place, found in by_place.items():
        if place.capacity > 1 or place.spec.preemption != "no":
            continue
        loaded: Any = None
        for phases, task in sorted(found, key=lambda each: (each[0][0], each[0][-1])):
            seconds = phases[3] - phases[2]
            least, most = place.spec.reconfiguration
            family = task.family
            fixed = task.set.reconfiguration.get(family)
            if not most or family == loaded:
                assert seconds == 0, (place, task)
            elif fixed is not None:
                assert seconds == _about(fixed)
            else:
                assert least - 1e-6 <= seconds <= most + 1e-6, (place, task, seconds)
            if most:
                loaded = family


def _check_inputs(witness: Witness, executions: dict[Any, list[Span]]) -> None:
    """All inputs of a task are in its pool during its execution."""
    for task, spans in executions.items():
        for span in spans:
            pool = span.what.pool.name
            for data in task.inputs:
                assert witness.lay_in(pool, data, span.start, span.end), (task, data, span, witness.present[pool, data])


def _check_versions(witness: Witness, ended: dict[Any, Any]) -> None:
    """A task reads the version that its ancestors wrote last: in the same pool, or moved there afterwards."""
    machine = witness.machine
    moves: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for moved, _ in witness.moves:
        moves[moved.destination, moved.object].append(moved)
    for submission in machine.sets:
        parents = submission.set.parents
        if parents is None:
            continue
        above: dict[Any, dict[Any, None]] = {}
        for i in topological_order(dict(enumerate(parents)), dict(enumerate(submission.set.children))):
            above[submission.tasks[i]] = before = {}
            for parent in parents[i]:
                before[submission.tasks[parent]] = None
                before.update(above[submission.tasks[parent]])
        for data in submission.data:
            writers = [task for task in submission.tasks if data in task.outputs]
            users = [task for task in submission.tasks if data in task.outputs or data in task.inputs]
            if not all(a in above[b] or b in above[a] for a in writers for b in users if a is not b):
                continue  # the version that a reader gets is undefined
            for task in users:
                wrote = [each for each in writers if each in above[task]]
                if task not in ended or not wrote or data not in task.inputs:
                    continue
                place, phases = ended[task]
                last = max(wrote, key=lambda each: (ended[each][1][-1], len(above[each])))
                if ended[last][0].pool is not place.pool:
                    here = [span for span in witness.present[place.pool.name, data] if span[0] <= phases[-2] <= span[1]]
                    found = [moved for moved in moves[place.pool.name, data.name] if moved.start >= ended[last][1][-1]]
                    assert any(moved.end == span[0] for moved in found for span in here), (task, data, last, here)


def _check_moves(witness: Witness, result: Any) -> None:
    """Data move from a pool that holds them to one that does not; every copy was moved, written or given."""
    machine = witness.machine
    moves = list(result.transfers.rows())
    assert len(moves) == len(witness.moves)
    data_of: dict[str, list[Any]] = defaultdict(list)
    written: dict[tuple[str, Any], list[float]] = defaultdict(list)
    given: dict[Any, None] = {}
    for submission in machine.sets:
        for data in submission.data:
            data_of[data.name].append(data)
        given |= dict.fromkeys(submission.given)
    for _, task, place, phases in witness.ended:
        for data in task.outputs:
            written[place.pool.name, data].append(phases[-1])
    arrivals: dict[tuple[str, str], list[Span]] = defaultdict(list)
    unique = all(len(found) == 1 for found in data_of.values())
    for row, (moved, _) in zip(moves, witness.moves, strict=True):
        candidates = data_of[row["object"]]
        assert any(row["bytes"] == data.size for data in candidates), row
        assert row["source"] != row["destination"]
        fastest = machine.mover.latency[machine.pools[row["source"]].index][machine.pools[row["destination"]].index]
        fastest += row["bytes"] * machine.mover.per_byte[machine.pools[row["source"]].index][
            machine.pools[row["destination"]].index]  # fmt: skip
        took = row["end"] - row["start"]
        assert took >= fastest - _EPSILON * max(1.0, row["end"]), row
        if not machine.mover.contention:
            assert took == _about(fastest), row
        arrivals[row["destination"], row["object"]].append(Span(row["start"], row["end"], moved))
        if unique:
            data = candidates[0]
            assert witness.lay_in(row["source"], data, row["start"], row["end"]), row
            if took > 0:  # not present already
                assert not any(
                    start < row["start"] < end  # a copy may be written there before this one arrives
                    for start, end in witness.present[row["destination"], data]
                ), row
    if not unique:
        return
    for spans in arrivals.values():
        assert _most(spans) <= 1, spans
    for (pool, data), spans in witness.present.items():
        for start, _ in spans:
            brought = [span.end for span in arrivals[pool, data.name]] + written[pool, data]
            if data in given:
                brought.append(witness.lands(data))
            assert start in brought, (pool, data, start, brought)


def _check_pools(witness: Witness, ended: dict[Any, Any], executions: dict[Any, list[Span]], result: Any) -> None:
    """No pool exceeds its size, with present data, arriving data, and the memory of tasks."""
    machine = witness.machine
    spans: dict[str, list[Span]] = defaultdict(list)
    for (pool, data), found in witness.present.items():
        spans[pool] += [Span(start, end, data, data.size) for start, end in found]
    for moved, _ in witness.moves:
        spans[moved.destination].append(Span(moved.start, moved.end, moved.object, moved.bytes))
    for task, (place, phases) in ended.items():
        taken = [Span(phases[4], phases[-1], place), *executions[task][:-1]]
        for start, end, where, _ in taken:
            if task.memory:
                spans[where.pool.name].append(Span(start, end, task, task.memory))
    for name, pool in machine.pools.items():
        assert _most(spans[name]) <= pool.size * (1 + 1e-9) + 1e-6, (name, sorted(spans[name], key=lambda s: s[:2]))
        steps = result.memory[name]
        assert steps.values.max(initial=0.0) <= pool.size * (1 + 1e-9)
        assert result.peaks[name] >= steps.values.max(initial=0.0)
        held = sum(data.size for data in pool.held)
        if not any(task.state == "running" for task in machine.tasks):
            assert pool.used == _about(held), (name, pool.used, held)
            assert not pool.arriving, name
            assert not pool.leaving, name
        for data in pool.held:
            assert data.copies.count(pool) == 1, (pool, data)
    for submission in machine.sets:
        for data in submission.data:
            for pool in data.copies:
                assert data in pool.held, (pool, data)
            if not submission.left and data.written and data.kept:
                assert data.copies, f"{data} was lost"


def _check_links(witness: Witness) -> None:
    for link in witness.machine.network.links.values():
        load = witness.network.load(link.name)
        assert load.max() <= link.spec.bandwidth * (1 + 1e-6), (link, load.max())


# ---------------------------------------------------------------------- deadlocks


def could_go_on(machine: Any) -> list[str]:
    """Return the steps still possible on a machine without events; empty if it is rightly stuck."""
    found = []
    for place in machine.places:
        head = place._head()
        if head is not None and place.current is None and getattr(place, "_free", 1) >= head.cores:
            found.append(f"{place.name} could take {head}")
    for task in machine.tasks:
        if task.state == "waiting" and task.place is None:
            found.append(f"{task} waits for a decision")
        if task.state == "running" and _room(task):
            found.append(f"{task} could have room in {task.place.pool}")
    return found


def _room(task: Any) -> bool:
    pool = task.place.pool
    own = dict.fromkeys((*task.inputs, *task.outputs))
    # No task runs, so no data are in use. The last copy of needed data requires room in the spill pool.
    need = task.memory + sum(data.size for data in own)
    others = [data for data in pool.held if data not in own]
    room = pool.size - sum(data.size for data in others)
    there = pool.spill.size - sum(data.size for data in pool.spill.held if pool.spill.must_move(data))
    for data in sorted(others, key=lambda data: data.size):
        if not pool.must_move(data):
            room += data.size
        elif pool.spill is not pool and data.size <= there:
            there -= data.size
            room += data.size
    return bool(room >= need)


# ---------------------------------------------------------------------- arithmetic

_EPSILON = 1e-9


class _about:
    def __init__(self, value: float) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return math.isclose(self.value, other, rel_tol=1e-9, abs_tol=1e-6)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"about {self.value}"


def _most(spans: Iterable[Span]) -> float:
    """Return the greatest sum of amounts at one instant; spans that only touch do not overlap."""
    changes: list[tuple[float, int, float]] = []
    for start, end, _, amount in spans:
        if end > start:
            changes += [(start, 1, amount), (end, 0, -amount)]
    most = level = 0.0
    for _, _, change in sorted(changes):
        level += change
        most = max(most, level)
    return most


def _covered(spans: Iterable[Span], start: float, end: float) -> bool:
    at = start
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        if span.start > at:
            break
        at = max(at, span.end)
    return at >= end
