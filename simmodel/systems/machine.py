"""A machine: processors, memory pools and links, a scheduler, and the life of tasks between them."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from math import inf
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from simpy.events import Event, Timeout

from simmodel.environment import Environment
from simmodel.errors import InputError
from simmodel.platform.machine import MachineSpec, ProcessorSpec
from simmodel.platform.network import NetworkSpec
from simmodel.resources.cores import Core
from simmodel.resources.manycore import ManyCores
from simmodel.resources.memory import MemoryPool, nearest
from simmodel.resources.network import Network
from simmodel.resources.processor import Phases, Processor
from simmodel.scheduling.problem import Problem
from simmodel.scheduling.protocol import Estimate, View
from simmodel.scheduling.ready import ReadyTasks
from simmodel.scheduling.registry import policy as policy_named
from simmodel.scheduling.scheduler import Scheduler
from simmodel.systems.tasks import Kind, LiveSet, bring_to_life
from simmodel.work.livetask import LiveData, LiveTask
from simmodel.work.taskset import TaskSet
from simmodel.work.workflow import Workflow

if TYPE_CHECKING:
    from simmodel.records.tasks import MachineResult

__all__ = ["Machine", "Moved"]

_HOOKS = ("task_ready", "task_assigned", "task_started", "task_ended", "task_stopped", "data_moved")


class Moved(NamedTuple):
    """Data that went from one pool to another: bytes, and from when until when (s)."""

    object: str
    bytes: float
    source: str
    destination: str
    start: float
    end: float
    task: Any
    cause: str
    objects: int = 1


class Machine:
    """Processors under one scheduler, which run tasks.

    Parameters
    ----------
    env
        the environment
    spec
        a :class:`~simmodel.platform.machine.MachineSpec`
    policy
        a name, a policy, or a function of a view
    decide
        ``"ready"``: the policy decides about tasks whose parents are done; ``"submit"``: about all that are there.
        Default: as the policy wants (planners decide when tasks are submitted)
    overlap
        whether a processor's data are fetched while it is still busy with earlier tasks: each as soon as it is written
        and its reader has a place, where the processor has DMA and there is room
    transfers
        ``"sequential"``: the data that a task still lacks when its turn comes move one after another, in the order
        in which it names them; ``"parallel"``: all at once
    contention
        whether transfers share the bandwidth of links (max-min fair); else each has every link to itself
    name, rank
        what reports call it; its turn among schedulers that share an instant
    record
        whether to keep what happens, for :meth:`result`

    Observers may have ``task_ready(task)``, ``task_assigned(task, place)``, ``task_ended(task, place, phases)``,
    ``task_stopped(task, place)``, ``data_moved(moved)`` and ``decided(scheduler, seconds, decisions)``.

    >>> from simmodel.platform.machine import ArchitectureSpec, MemoryPoolSpec, ProcessorSpec
    >>> from simmodel.work.task import Task
    >>> spec = MachineSpec(
    ...     pools=[MemoryPoolSpec(name="ram")], architectures=[ArchitectureSpec(name="x86")],
    ...     processors=[ProcessorSpec(name="core", count=2, type="CPUCore", architecture="x86", pool="ram")])
    >>> env = Environment(seed=1)
    >>> machine = Machine(env, spec, policy="hrr")
    >>> tasks = [Task(id="a", run=3), Task(id="b", run=4), Task(id="c", run=5)]
    >>> env.run(machine.submit(Workflow(tasks, [("a", "c"), ("b", "c")])).done); env.now
    9.0
    """

    def __init__(
        self,
        env: Environment,
        spec: MachineSpec,
        policy: Any = "hrr",
        *,
        decide: Literal["ready", "submit"] | None = None,
        overlap: bool = False,
        transfers: Literal["sequential", "parallel"] = "sequential",
        contention: bool = True,
        name: str | None = None,
        rank: int = 2,
        record: bool = True,
    ) -> None:
        for option, value, allowed in (
            ("decide", decide, ("ready", "submit", None)),
            ("transfers", transfers, ("sequential", "parallel")),
        ):
            if value not in allowed:
                raise InputError(f"{option} {' or '.join(map(repr, allowed))} expected, found {value!r}")
        self.env = env
        self.spec = spec
        self.name = name or spec.name
        self.stream = name or "machine"  # so that machines of one kind draw alike, whatever they are called
        self.parallel = transfers == "parallel"
        self.contention = contention
        self.overlap = overlap
        self.network = Network(env, NetworkSpec(links=spec.links))
        self.pools = {pool.name: MemoryPool(env, pool, i) for i, pool in enumerate(spec.pools)}
        home = self.pools[str(spec.home)]
        for pool in self.pools.values():
            pool.spill = self.pools[pool.spec.spill] if pool.spec.spill is not None else home
        self.home = home
        self._latency, self._per_byte = self._ways()
        self.kinds: list[Kind] = []
        self.processors = self._build_processors()
        self.places: tuple[Processor, ...] = tuple(self.processors.values())
        self.waiting = ReadyTasks()
        self.view = View(env, self.waiting, self.places, f"{self.name}.policy")
        self.view.estimator = _estimate
        self.view.problem = self._problem
        policy = policy_named(policy)
        self._when_ready = (decide or ("submit" if getattr(policy, "plans", False) else "ready")) == "ready"
        self.scheduler = Scheduler(env, policy, self.view, self, self.name, rank)
        self.tasks: list[LiveTask] = []
        self.sets: list[LiveSet] = []
        self.moved: list[Moved] = []
        self.core_use: list[tuple[str, LiveTask, str, float, float]] = []
        self._record = record
        # Of each task that is done: its index, its processor, ready, assigned, and its phases.
        self._phases = array("d")
        self._loads: dict[Any, float] = {}  # of each family: where in the interval of a processor its load time lies
        self._hooks: dict[str, tuple[Callable[..., object], ...]] = {}
        self._changed = self.scheduler.wake
        env.on_hooks_changed(self._find_hooks)
        env.register_waits(self)

    def __repr__(self) -> str:
        over = sum(1 for task in self.tasks if task.state == "done")
        return f"<Machine {self.name}: {len(self.places)} processors, {over} of {len(self.tasks)} tasks done>"

    def _find_hooks(self) -> None:
        self._hooks = {name: self.env.hooks(name) for name in _HOOKS}
        self._on_ready = self._hooks["task_ready"]
        self._on_assigned = self._hooks["task_assigned"]
        self._on_ended = self._hooks["task_ended"]
        self._on_moved = self._hooks["data_moved"]

    # ------------------------------------------------------------------ how it is built

    def _ways(self) -> tuple[list[list[float]], list[list[float]]]:
        """Return seconds, and seconds a byte, from each pool to each other one; ``inf`` where no links lead there."""
        names = list(self.pools)
        latency = [[0.0] * len(names) for _ in names]
        per_byte = [[0.0] * len(names) for _ in names]
        for i, source in enumerate(names):
            for j, destination in enumerate(names):
                if i == j:
                    continue
                try:
                    links = [self.network.links[name] for name in self.network.route(source, destination)]
                except InputError:  # a pool that no processor works on
                    latency[i][j] = per_byte[i][j] = inf
                    continue
                latency[i][j] = sum(link.spec.latency for link in links)
                per_byte[i][j] = 1.0 / min(link.bandwidth for link in links)
        return latency, per_byte

    def _build_processors(self) -> dict[str, Processor]:
        found: dict[str, Processor] = {}
        numbers: dict[Kind, int] = {}
        for name, spec in self.spec.each_processor():
            kind = Kind(spec.architecture, spec.type, spec.cores, spec.pool)
            number = numbers.setdefault(kind, len(numbers))
            model = _model(spec)
            found[name] = model(self, name, spec, self.pools[spec.pool], index=len(found), kind=number)
        self.kinds = list(numbers)
        cores = {each.name: each.core for each in found.values() if each.core is not None}
        first = next(iter(cores.values()), None)
        for each in found.values():
            each.overlap = self.overlap if each.spec.overlap is None else each.spec.overlap
            each.overlap = each.overlap and each.spec.dma
            named = [cores[name] for name in each.spec.setup_on] or ([first] if first is not None else [])
            each.setup_cores = [each.core] if each.core in named and each.core is not None else named
        return found

    # ------------------------------------------------------------------ submission

    def submit(self, work: Workflow | TaskSet, at: float | None = None) -> LiveSet:
        """Submit tasks, now or at an instant; ``submission.done`` is an event that happens when all of them are done.

        Parameters
        ----------
        at
            seconds; default: now

        Raises
        ------
        ImpossibleWork
            where no processor can ever run one of the tasks, or data do not fit in any pool that they could be in
        InputError
            where a run time is not known, or a task names a type of processor that is not there
        """
        now = self.env._now
        if at is not None and at < now:
            raise InputError(f"an instant from {now:g} s on expected, found {at!r}", place="at")
        submission = bring_to_life(self, TaskSet.of(work), now if at is None else at)
        self.sets.append(submission)
        submission.begin()
        return submission

    def arrive(self, tasks: Sequence[LiveTask]) -> None:
        """Take in tasks that have been submitted and arrive now."""
        now = self.env._now
        coming = []
        for task in tasks:
            task.submit = now
            if task._missing:
                task.state = "blocked"
                if self._when_ready:
                    continue
            else:
                task.state = "waiting"
                task.ready = now
                for call in self._on_ready:
                    call(task)
            coming.append(task)
        if coming:
            self.waiting.extend(coming)
            self._changed()

    # ------------------------------------------------------------------ decisions

    def start(self, task: LiveTask, place: Processor, allocation: Any = None) -> None:
        """Put a task into the queue of a processor, as the policy decided."""
        task.place = place
        task.assigned = self.env._now
        self.waiting.placed()
        if task.state == "waiting":
            task.state = "assigned"
        place.put(task)
        if place.overlap and task.inputs:
            self._fetch_ahead(task)
        for call in self._on_assigned:
            call(task, place)

    def why_not_preempt(self, task: LiveTask, mode: str) -> str | None:
        """Say why a running task cannot be stopped so, or ``None``."""
        if mode not in ("requeue", "suspend"):
            return f"mode requeue or suspend expected, found {mode!r}"
        reason: str | None = task.place.why_not_stop(task)
        return reason

    def preempt(self, task: LiveTask, mode: str = "requeue") -> None:
        """Stop a task that executes: it waits for a decision again, to start anew or (``suspend``) to go on."""
        task.place.stop(task, mode, goes_back=True)

    # ------------------------------------------------------------------ what processors tell

    def finished(self, task: LiveTask, processor: Processor, phases: Phases) -> None:
        """A task is done: what waits for it may be ready, and its data are there."""
        task.state = "done"
        if self._record:
            self._phases.extend((task.index, processor.index, task.ready, task.assigned, *phases))
        for data in task.inputs:
            data.readers -= 1
        for data in task.outputs:
            self._written(data, processor.pool)
        if task._children:
            self._release(task)
        submission = task.submission
        submission.left -= 1
        if not submission.left:
            submission.done.succeed(submission)
        for call in self._on_ended:
            call(task, processor, phases)

    def _written(self, data: LiveData, pool: MemoryPool) -> None:
        data.written = True
        if len(data.copies) > 1:  # written anew: other copies are of old
            for other in data.copies:
                if other is not pool and not other.held[data] and data not in other.leaving:
                    other.forget(data)

    def _release(self, task: LiveTask) -> None:
        """Let the children of a task go whose last parent it was."""
        now = self.env._now
        for child in task._children:
            child._missing -= 1
            if child.place is not None and child.place.overlap:
                self._fetch_ahead(child)
            if child._missing:
                continue
            child.ready = now
            if child.state == "to come":
                continue
            for call in self._on_ready:
                call(child)
            if child.place is not None:
                child.state = "assigned"
                child.place.task_ready(child)
            else:
                child.state = "waiting"
                if self._when_ready:
                    self.waiting.add(child)
                self._changed()

    def stopped(self, task: LiveTask, processor: Processor, goes_back: bool) -> None:
        """A task was stopped before its end."""
        for call in self._hooks["task_stopped"]:
            call(task, processor)
        if goes_back:
            task.place = None
            task.state = "waiting"
            self.waiting.add(task)
            self._changed()

    def held_core(self, core: Core, task: LiveTask, what: str, since: float) -> None:
        """Take down who held a CPU core without running on it."""
        if self._record:
            self.core_use.append((core.name, task, what, since, self.env._now))

    def reconfiguration_time(self, spec: ProcessorSpec, task: LiveTask) -> float:
        """Return the seconds to load the family of a task: one draw per family and interval."""
        fixed = task.set.reconfiguration.get(task.family) if task.set.reconfiguration else None
        if fixed is not None:
            return fixed
        least, most = spec.reconfiguration
        return least if least == most else least + (most - least) * self._loads[task.family]

    def draw_loads(self, tasks: Sequence[LiveTask]) -> None:
        """Draw, for each family that is new, where in the interval of a processor its reconfiguration lies."""
        if all(spec.reconfiguration[0] == spec.reconfiguration[1] for spec in self.spec.processors):
            return
        new = [family for family in dict.fromkeys(task.family for task in tasks) if family not in self._loads]
        draws = self.env.rng(f"{self.stream}.reconfiguration").random(len(new))
        self._loads.update(zip(new, draws.tolist(), strict=True))

    # ------------------------------------------------------------------ data

    def transfer_time(self, data: LiveData, pool: MemoryPool) -> float:
        """Return the seconds to move data to a pool, with the links to themselves; 0 where they are there."""
        best = inf
        to = pool.index
        for source in data.copies:
            if source is pool:
                return 0.0
            seconds = self._latency[source.index][to] + data.size * self._per_byte[source.index][to]
            best = min(best, seconds)
        return best if data.copies else 0.0

    def bring(self, data: LiveData, pool: MemoryPool, task: LiveTask | None, cause: str) -> Event:
        """Start to move data to a pool that keeps room for them; return the event of their arrival."""
        arrival = pool.arriving[data]
        if arrival.under_way:
            return arrival
        arrival.under_way = True
        to = pool.index
        copies = data.copies
        source: MemoryPool = copies[0]
        if len(copies) > 1:
            ways = zip(self._latency, self._per_byte, strict=True)
            source = nearest(copies, [latency[to] + data.size * slow[to] for latency, slow in ways])
        source.use(data)
        since = self.env._now

        def arrived(_: Event) -> None:
            source.unuse(data)
            self._note(data, source, pool, since, task, cause)
            pool.arrived(data)

        self._move(data, source, pool).callbacks.append(arrived)
        return arrival

    def _move(self, data: LiveData, source: MemoryPool, pool: MemoryPool) -> Any:
        if self.contention:
            return self.network.transfer(data.size, source=source.name, destination=pool.name)
        seconds = self._latency[source.index][pool.index] + data.size * self._per_byte[source.index][pool.index]
        return Timeout(self.env, seconds)

    def _note(
        self, data: LiveData, source: MemoryPool, pool: MemoryPool, since: float, task: LiveTask | None, cause: str
    ) -> None:
        if self._record or self._on_moved:
            moved = Moved(data.name, data.size, source.name, pool.name, since, self.env._now, task, cause)
            if self._record:
                self.moved.append(moved)
            for call in self._on_moved:
                call(moved)

    def _fetch_ahead(self, task: LiveTask) -> None:
        """Begin to move what the task reads to its processor's pool, as far as it is written and there is room."""
        pool = task.place.pool
        for data in task.inputs:
            if data.written and data not in pool.held and data not in pool.arriving:
                if pool.crowded or not pool.room_for(data.size):
                    return
                pool.expect(data)
                self.bring(data, pool, task, "overlap")

    def make_way(self, pool: MemoryPool, amount: float) -> None:
        """Start to move data out of a pool, the least recently used first, until so many bytes are on their way out."""
        spill = pool.spill
        if spill is pool:
            return
        lacking = pool.used + amount - pool.size - sum(data.size for data in pool.leaving)
        while lacking > 0:
            data = pool.oldest()
            if data is None or data in spill.arriving:
                return
            spill.forget_unneeded(data.size)
            if not spill.room_for(data.size):
                return
            lacking -= data.size
            self._move_out(data, pool, spill)

    def _move_out(self, data: LiveData, pool: MemoryPool, spill: MemoryPool) -> None:
        pool.leaving[data] = None
        spill.expect(data)

        def gone(_: Event) -> None:
            del pool.leaving[data]
            if not pool.held[data]:  # else somebody uses it again
                pool.forget(data)

        # The data are read where they leave; what brings them takes them out of use before they are forgotten.
        arrival = self.bring(data, spill, None, "write-back" if spill is self.home else "spill")
        assert arrival.callbacks is not None
        arrival.callbacks.append(gone)

    # ------------------------------------------------------------------ what planners see

    def _problem(self, tasks: Sequence[LiveTask] | None = None) -> Problem:
        """Return tasks (default: all that wait) and all places as what a planner plans."""
        planned = list(self.waiting) if tasks is None else list(tasks)
        places = self.places
        kinds = [place.kind for place in places]
        pools = [place.pool.index for place in places]
        position = {task: i for i, task in enumerate(planned)}
        writer = {data: i for i, task in enumerate(planned) for data in task.outputs}
        parents: list[dict[int, float]] = [{} for _ in planned]
        for i, task in enumerate(planned):
            for child in task._children:
                j = position.get(child)
                if j is not None:
                    parents[j][i] = 0.0
        now = self.env._now
        arrival: list[list[float]] | None = None
        for i, task in enumerate(planned):
            for data in task.inputs:
                parent = writer.get(data)
                if parent is not None and parent in parents[i]:
                    parents[i][parent] += data.size
                elif data.copies or parent is None:
                    if arrival is None:
                        arrival = [[now] * len(places) for _ in planned]
                    row = arrival[i]
                    for p, place in enumerate(places):
                        row[p] = max(row[p], now + self.transfer_time(data, place.pool))
        first = {id(place.core): place.index for place in places if place.core is not None}
        return Problem(
            [[task.speeds[kind] for kind in kinds] for task in planned],
            [tuple(found.items()) for found in parents],
            [[self._latency[a][b] for b in pools] for a in pools],
            [[self._per_byte[a][b] for b in pools] for a in pools],
            now=now,
            available=[place.available for place in places],
            arrival=arrival,
            setup=[place.spec.setup for place in places],
            setup_core=[first[id(place.setup_cores[0])] if place.setup_cores else None for place in places],
            reconfiguration=[self._longest_load(task) for task in planned],
            family=[task.family for task in planned],
            loaded=[place._last_family for place in places],
            reconfigures=[place.reconfigures for place in places],
            tasks=planned,
            places=places,
        )

    def _longest_load(self, task: LiveTask) -> float:
        return max(
            (self.reconfiguration_time(place.spec, task) for place in self.places if place.reconfigures), default=0.0
        )

    # ------------------------------------------------------------------ results

    def result(self, name: str | None = None) -> MachineResult:
        """Return what has happened so far; ``name`` is what tables and plots call it.

        Raises
        ------
        InputError
            where the machine was told to keep no record
        """
        from simmodel.systems.machine_record import machine_result

        if not self._record:
            raise InputError(f"{self.name} keeps no record: Machine(record=True) expected")
        return machine_result(self, name or self.scheduler.policy_name)

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence for each task that is not done."""
        for task in self.tasks:
            if task.state == "done":
                continue
            where = f" on {task.place.name}" if task.place is not None else ""
            if task.state == "running":
                yield f"task {task.id} waits for room in pool {task.place.pool.name}{where}"
            elif task._missing:
                yield f"task {task.id} waits for {task._missing} tasks{where}"
            else:
                yield f"task {task.id} waits{where or ' for a decision'} since {task.ready:g}"


def _estimate(view: View, task: LiveTask, place: Processor) -> Estimate:
    """Estimate from what a processor is known to have to do; the transfers are taken to have their links alone."""
    return Estimate(
        place.available, place.expected_setup(task), place.expected_transfer(task), place.expected_run(task)
    )


def _model(spec: ProcessorSpec) -> type[Processor]:
    """Return the class that runs a processor."""
    if spec.model is None:
        return ManyCores if spec.cores > 1 else Processor
    where = f"model of processor {spec.name}"
    module, _, attribute = spec.model.partition(":")
    if attribute:
        try:
            found = getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise InputError(f"a class as module:Class expected, found {spec.model!r}: {error}", place=where) from None
    else:
        from importlib.metadata import entry_points

        from simmodel.errors import unknown

        there = {point.name: point for point in entry_points(group="simmodel.resources")}
        if spec.model not in there:
            raise InputError(unknown("model", spec.model, there).message, place=where)
        found = there[spec.model].load()
    if not (isinstance(found, type) and issubclass(found, Processor)):
        raise InputError(f"a subclass of Processor expected, found {found!r}", place=where)
    return found
