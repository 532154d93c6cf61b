"""A machine: processors, memory pools, links and a scheduler, and the life of tasks on them."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self

import attrs

from simmodel.environment import Environment
from simmodel.formats.hetsim_config import read_hetsim_config
from simmodel.foundation.errors import InputError, PolicyError
from simmodel.platform.machine import MachineSpec
from simmodel.platform.network import NetworkSpec
from simmodel.platform.options import MachineOptions
from simmodel.resources.data.memory import MemoryPool
from simmodel.resources.network.network import Network
from simmodel.resources.processors.processor import Processor
from simmodel.resources.processors.services import STAMPS, Core, Shares
from simmodel.resources.processors.taskplace import TaskShares
from simmodel.scheduling.checks import not_here
from simmodel.scheduling.protocol import Estimate, Load, Preempt, View
from simmodel.scheduling.ready_tasks import ReadyTasks
from simmodel.scheduling.registry import PolicyLike
from simmodel.scheduling.scheduler import Handler, Scheduler, handle_preempt
from simmodel.systems.kinds import Kind
from simmodel.systems.machine.arrivals import bring_to_life, estimate_set, why_not
from simmodel.systems.machine.mover import DataMover
from simmodel.systems.machine.state import (
    CoreUse,
    CutExecution,
    LiveSet,
    MachineState,
    build_pools,
    build_processors,
    problem_of,
)
from simmodel.systems.submissions import read_submissions
from simmodel.systems.system import EstimateBasis
from simmodel.work.task import shares_of
from simmodel.work.taskset import LiveData, LiveTask, TaskSet
from simmodel.work.workflow import Workflow

if TYPE_CHECKING:
    from simmodel.resources.pools.allocation import Allocation
    from simmodel.results.machine import MachineResult
    from simmodel.snapshots.machine import MachineSnapshot
    from simmodel.systems.submissions import GivenWork, Submissions

__all__ = ["MACHINE", "Machine", "MachineKind"]

_NOT_OPEN = ("to come", "done", "cancelled")
_HOOKS = ("task_ready", "task_assigned", "task_ended", "task_stopped")


class Machine(MachineState):
    """Processors that run tasks under one scheduler.

    Parameters
    ----------
    env
        the environment
    spec
        a :class:`~simmodel.platform.machine.MachineSpec`
    policy
        a name, a policy, or a function of a view
    decide
        ``"ready"``: the policy decides about tasks whose parents are done; ``"submit"``: about all tasks that have
        arrived. Default: as the policy wants (planners decide when tasks are submitted)
    overlap
        whether data are fetched while the processor is busy with earlier tasks: each data object as soon as it is
        written and its reader is assigned, if the processor has DMA and there is room
    transfers
        ``"sequential"``: the data that a task lacks when its turn comes move one after another, in the order of its
        inputs; ``"parallel"``: all at once
    core_held
        ``"run"``: a CPU core sets up others while the data of its own task move, and is held by the task only while
        that runs; ``"transfer"``: from the beginning of its transfers on (HetSim's paper does not say which). Setups
        that ask for a core at one instant get it in the order of their requests: on idle processors that in which the
        tasks were assigned, otherwise that in which the tasks before them began to run; the paper is silent there
    contention
        whether transfers share the bandwidth of links (max-min fair); otherwise each has its links to itself
    name, rank
        its name in reports; its turn among schedulers that share an instant
    record
        whether to keep a record for :meth:`result`
    begin
        whether its processors start to work at once; ``False`` while a snapshot is being restored
    node
        a machine that has its links, and CPU cores of the names of its own: it shares these with all parts of that one

    Observers may have ``task_ready(task)``, ``task_assigned(task, place)``, ``task_ended(task, place, stamps)``,
    ``task_stopped(task, place)``, ``data_moved(moved)`` and ``decided(scheduler, seconds, decisions)``.

    >>> from simmodel.platform import ArchitectureSpec, MemoryPoolSpec, ProcessorSpec
    >>> from simmodel import Task
    >>> spec = MachineSpec(
    ...     pools=[MemoryPoolSpec(name="ram")], architectures=[ArchitectureSpec(name="x86")],
    ...     processors=[ProcessorSpec(name="core", count=2, type="CPUCore", architecture="x86", pool="ram")])
    >>> env = Environment(seed=1)
    >>> machine = Machine(env, spec, policy="hrr")
    >>> tasks = [Task(id="a", run=3), Task(id="b", run=4), Task(id="c", run=5)]
    >>> _ = env.run(machine.submit(Workflow(tasks, [("a", "c"), ("b", "c")]))); env.now
    9.0
    """

    def __init__(
        self,
        env: Environment,
        spec: MachineSpec,
        policy: PolicyLike = "hrr",
        *,
        decide: Literal["ready", "submit"] | None = None,
        overlap: bool = False,
        transfers: Literal["sequential", "parallel"] = "sequential",
        core_held: Literal["run", "transfer"] = "run",
        contention: bool = True,
        name: str | None = None,
        rank: int = 2,
        record: bool = True,
        begin: bool = True,
        node: Machine | None = None,
    ) -> None:
        options = MachineOptions(
            decide=decide, overlap=overlap, transfers=transfers, core_held=core_held, contention=contention
        )
        if not isinstance(env, Environment):
            raise InputError(f"env: must be a simmodel Environment, got {type(env).__module__}.{type(env).__name__}")
        if not isinstance(spec, MachineSpec):
            raise InputError(f"spec: must be a MachineSpec (load_platform reads names and files), got {spec!r}")
        self.env = env
        self.spec = spec
        self.name = name or spec.name
        self.stream = name or "machine"  # unnamed machines draw alike, whatever their specs are called
        self._node = node
        self.network = Network(env, spec.network or NetworkSpec(links=spec.links)) if node is None else node.network
        self.shares: Shares | None = None
        self.pools = build_pools(env, spec)
        self.home = home = self.pools[str(spec.home)]
        self.mover = DataMover(
            env,
            self.network,
            self.pools,
            home,
            parallel=transfers == "parallel",
            contention=contention,
            record=record,
        )
        of_node = {} if node is None else node.processors
        self.processors, self.kinds = build_processors(self, spec, self.pools, options, of_node)
        self.places: tuple[Processor, ...] = tuple(self.processors.values())
        self.waiting = ReadyTasks()
        self.view = View(env, self.waiting, self.places, f"{self.name}.policy")
        self.view.estimator = _estimate
        self.view.problem = lambda tasks=None: problem_of(self, tasks)
        self.options = options
        self.scheduler = Scheduler(env, policy, self.view, self, self.name, rank)
        self.decides_when_ready = (decide or ("submit" if self.scheduler.policy.plans else "ready")) == "ready"
        self.tasks: list[LiveTask] = []
        self.sets: list[LiveSet] = []
        self.cut: list[CutExecution] = []
        self.core_use: list[CoreUse] = []
        self._record = record
        self.done: list[LiveTask] = []
        self.phases = array("d")  # of the done tasks, one after the other
        self.loads: dict[Any, float] = {}  # position of the reconfiguration time in its interval
        self.notes: dict[str, dict[LiveTask, float]] = {}
        self._hooks: dict[str, tuple[Callable[..., object], ...]] = {}
        self.changed: list[Callable[[], object]] = []
        self.submitted = 0
        self.closed = False
        self._active = 0
        self._open = 0  # tasks that have arrived and not ended, and their expected work in units of 2^-20
        self._open_work = 0  # core seconds; both are kept from the first use of `load`
        self._keeps_load = False
        self._wake = self.scheduler.wake
        if begin:
            for place in self.places:
                place.begin()
        env.on_hooks_changed(self._find_hooks)
        env.register_waits(self)

    @property
    def handlers(self) -> Mapping[type, Handler]:
        """The decisions that it carries out in addition to starts: ``Preempt``."""
        return {Preempt: partial(handle_preempt, self)}

    def __repr__(self) -> str:
        over = sum(len(each.set) - each.left for each in self.sets)
        return f"<Machine {self.name}: {len(self.places)} processors, {over} of {len(self.tasks)} tasks done>"

    def _find_hooks(self) -> None:
        self._hooks = {name: self.env.hooks(name) for name in _HOOKS}
        self._on_ready = self._hooks["task_ready"]
        self._on_assigned = self._hooks["task_assigned"]
        self._on_ended = self._hooks["task_ended"]

    # ------------------------------------------------------------------ submission

    def submit(self, work: Workflow | TaskSet, at: float | None = None) -> LiveSet:
        """Submit tasks now or at an instant; return an event that happens when all of them have ended.

        Parameters
        ----------
        at
            seconds; default: now

        Raises
        ------
        ImpossibleWork
            if no processor can ever run one of the tasks, or data fit in no pool that could hold them
        InputError
            if a run time is unknown, or a task names an unknown type of processor
        """
        now = self.env._now
        if self.closed:
            raise InputError(f"{self.name}: cannot take work: it is closed")
        if at is not None and not now <= at < float("inf"):
            raise InputError(f"must be an instant >= {now:g} s, got {at!r}", place="at")
        submission = bring_to_life(self, TaskSet.of(work), now if at is None else at)
        self.take(submission)
        submission.begin()
        return submission

    def take(self, submission: LiveSet) -> None:
        """Register a submission whose tasks are still to arrive, or arrived before a snapshot."""
        self.sets.append(submission)
        if self.shares is None and any(map(shares_of, filter(None, submission.set.amounts or ()))):
            self.shares = TaskShares(self.env, self.network, self.places)
        self.submitted += len(submission.tasks)
        if submission.left:
            self._active += 1

    def arrive(self, tasks: Sequence[LiveTask]) -> None:
        """Accept submitted tasks that arrive now."""
        now = self.env._now
        if self._keeps_load:
            self._count(tasks)
        coming = []
        for task in tasks:
            task.submit = now
            if task.missing:
                task.state = "blocked"
                continue
            task.state = "waiting"
            task.ready = now
            for call in self._on_ready:
                call(task)
            coming.append(task)
        if not self.decides_when_ready and tasks:
            coming = tasks[0].submission.queueable(tasks)
        if coming:
            self.waiting.extend(coming)
            self._wake()

    # ------------------------------------------------------------------ decisions

    def start(self, task: LiveTask, place: Processor, allocation: Allocation | None = None) -> None:
        """Put a task into the queue of the processor that the policy chose."""
        reason = task.altered() if task.submission.machine is self else not_here(task)
        if reason is not None:
            raise PolicyError(reason, work=f"task {task.id}", place=place.name)
        task.place = place
        task.assigned = self.env._now
        self.waiting.placed()
        if task.state == "waiting":
            task.state = "assigned"
        place.put(task)
        if place.overlap and task.inputs:
            self.mover.fetch_ahead(task)
        for call in self._on_assigned:
            call(task, place)

    def why_not_preempt(self, task: LiveTask, mode: str) -> str | None:
        """Return why a running task cannot be preempted in a mode, or ``None``."""
        if mode not in ("requeue", "suspend"):
            return f"mode: must be 'requeue' or 'suspend', got {mode!r}"
        reason: str | None = task.place.why_not_stop(task)
        return reason

    def preempt(self, task: LiveTask, mode: str = "requeue") -> None:
        """Stop a running task; it waits for a decision again, to restart or (``suspend``) to continue."""
        task.place.stop(task, mode, goes_back=True)

    # ------------------------------------------------------------------ notifications from processors

    def finished(self, task: LiveTask, processor: Processor, stamps: list[float]) -> None:
        """Record that a task is done: its outputs are written, and its children may become ready."""
        task.state = "done"
        if self._record:
            self.done.append(task)
            self.phases.extend(stamps)
        for data in task.inputs:
            data.readers -= 1
        for data in task.outputs:
            if data.written:
                self._rewritten(data, processor.pool)
            data.written = True
            if not data.readers:
                data.kept = True
        if task.children:
            self.release(task)
        submission = task.submission
        submission.left -= 1
        if self._keeps_load:
            self._open -= 1
            self._open_work -= submission.units[task.row]
        if not submission.left:
            self._end(submission)
        for call in self._on_ended:
            call(task, processor, stamps)
        for change in self.changed:
            change()
        if self.waiting.count and self.decides_when_ready:  # its processor and its shares are free for others
            self._wake()

    def _end(self, submission: LiveSet) -> None:
        """End a submission whose tasks have all ended, and trigger its event."""
        self._one_over()
        if submission.event is not None:
            submission.event.succeed(submission)

    def _rewritten(self, data: LiveData, pool: MemoryPool) -> None:
        """Note that the copies in other pools are stale."""
        data.copies = (pool,)
        for other in self.pools.values():
            if other is not pool:
                other.written_elsewhere(data)

    def release(self, task: LiveTask) -> None:
        """Release the children of a done task that have no other parent left."""
        now = self.env._now
        for child in task.children:
            child.missing -= 1
            if child.place is not None and child.place.overlap:
                self.mover.fetch_ahead(child)
            if child.missing:
                continue
            child.ready = now
            if child.state in ("to come", "cancelled"):
                continue
            for call in self._on_ready:
                call(child)
            if child.place is not None:
                child.state = "assigned"
                child.place.task_ready(child)
            else:
                child.state = "waiting"
                if self.decides_when_ready:
                    self.waiting.add(child)
                self._wake()

    def stopped(self, task: LiveTask, processor: Processor, goes_back: bool) -> None:
        """Record that a task was stopped before its end."""
        if self._record and task.stamps is not None:
            now = self.env._now
            unmet = len(STAMPS) - 1 - len(task.stamps)  # of phases that did not begin: they take no time
            self.cut.append(CutExecution(task, processor, (*task.stamps, *[now] * unmet, now)))
        for call in self._hooks["task_stopped"]:
            call(task, processor)
        if goes_back:
            task.place = None
            task.state = "waiting"
            self.waiting.again(task)
            self._wake()

    def held_core(self, core: Core, task: LiveTask, what: str, since: float) -> None:
        """Record which task held a CPU core without running on it."""
        if self._record:
            self.core_use.append(CoreUse(core.name, task, what, since, self.env._now))

    # ------------------------------------------------------------------ withdrawal

    def cancel(self, work: LiveSet | LiveTask) -> None:
        """Cancel the unstarted tasks of a submission, or of a task and its descendants; running tasks continue."""
        for task in self._not_begun(work):
            self._take_back(task)

    def withdraw(self, work: LiveSet | LiveTask) -> None:
        """Withdraw a submission, or a task and its descendants, none of which has started.

        Raises
        ------
        InputError
            if any of these tasks has started

        >>> from simmodel import load_platform
        >>> env = Environment(); machine = Machine(env, load_platform("hetsim-slow"))
        >>> first, later = machine.submit(TaskSet([3.0])), machine.submit(TaskSet([4.0]), at=2)
        >>> env.run(until=1); machine.withdraw(later); later.tasks[0].state
        'cancelled'
        """
        tasks = self._not_begun(work)
        begun = len(tasks) < len(work.tasks) if isinstance(work, LiveSet) else work not in tasks
        if begun or not tasks:
            raise InputError(f"{self.name}: cannot withdraw {work!r}: it has started or ended")
        self.cancel(work)

    def _not_begun(self, work: LiveSet | LiveTask) -> list[LiveTask]:
        """Return those tasks of a set, or of a task and its descendants, that have not started."""
        found = dict.fromkeys(work.tasks if isinstance(work, LiveSet) else [work])
        left = list(found)
        while left:
            for child in left.pop().children:
                if child not in found:
                    found[child] = None
                    left.append(child)
        return [task for task in found if task.state in ("to come", "blocked", "waiting", "assigned")]

    def _take_back(self, task: LiveTask) -> None:
        if task.place is not None:
            task.place.remove(task)
            task.place = None
        elif task in dict.fromkeys(self.waiting):
            self.waiting.remove(task)
        submission = task.submission
        if task.state != "to come" and self._keeps_load:
            self._open -= 1
            self._open_work -= submission.units[task.row]
        task.state = "cancelled"
        submission.withdrawn = True
        for data in task.inputs:
            data.readers -= 1
        self.over(task)

    def over(self, task: LiveTask) -> None:
        """Count a task that has ended without being done."""
        submission = task.submission
        submission.left -= 1
        if not submission.left:
            self._end(submission)
        for change in self.changed:
            change()

    def close(self) -> None:
        """End the machine, as when its nodes are taken away: running tasks break off, data in flight are called off.

        Its record remains, and it takes no more work. A machine closes itself at the end of a ``with`` block, also if
        the process is interrupted there.

        >>> from simmodel import load_platform
        >>> env = Environment()
        >>> def pilot(env):
        ...     with Machine(env, load_platform("hetsim-slow")) as machine:
        ...         yield machine.submit(TaskSet([3.0, 40.0])) | env.timeout(10)
        ...     print(env.now, machine.result().tasks["status"])
        >>> _ = env.process(pilot(env)); env.run(); env.now
        10 ['done' 'cancelled']
        10
        """
        if self.closed:
            return
        self.closed = True
        for place in self.places:
            place.end()
        for submission in self.sets:
            if submission.left:
                for task in submission.tasks:
                    if task.state not in ("done", "cancelled"):
                        self._break_off(task)
        self.waiting.clear()
        self.mover.abandon()
        self.scheduler.stop()
        self.env.forget(self, self.scheduler, self.mover)
        if self._node is None:
            self.network.abandon()
            self.env.forget(self.network)

    def _break_off(self, task: LiveTask) -> None:
        if task.stamps is not None:
            self.stopped(task, task.place, goes_back=False)
            core = task.place.core if len(task.stamps) == 7 else task.core
            if core is not None:
                core.release()
        task.state = "cancelled"
        task.submission.withdrawn = True
        self.over(task)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ------------------------------------------------------------------ as a place

    def why_not(self, work: Workflow | TaskSet) -> str | None:
        """Return why the machine can never run all tasks of some work, or ``None``; changes nothing."""
        return why_not(self, TaskSet.of(work))

    def estimate(self, work: Workflow | TaskSet, by: EstimateBasis = "requested") -> Estimate:
        """Return when work submitted now would start and how long it would take (s); changes nothing.

        Tasks have only expected run times, so ``by`` has no effect.

        Raises
        ------
        ImpossibleWork
            if the machine can never run all of it

        >>> from simmodel import load_platform
        >>> machine = Machine(Environment(), load_platform("hetsim-slow"))
        >>> chain = TaskSet([3.0, 4.0], parents=[(), (0,)], implementations=[("CPUCore",), ("CPUCore",)])
        >>> machine.estimate(chain).finish
        7.0
        """
        return estimate_set(self, TaskSet.of(work))

    @property
    def load(self) -> Load:
        """The load: running work is asked of the processors, queued work is counted from the first use on."""
        if not self._keeps_load:
            self._keeps_load = True
            for submission in self.sets:
                if submission.left:
                    self._count([task for task in submission.tasks if task.state not in _NOT_OPEN])
        now = self.env.now
        running = expected = started = 0
        for place in self.places:
            for end, _, cores, run in place.running.entries():
                running += 1
                started += run.work.submission.units[run.work.row]
                expected += round(max(0.0, end - now) * cores * 2.0**20)
        return Load(int(self.free), self._open - running, self._open_work - started, expected)

    def _count(self, tasks: Sequence[LiveTask]) -> None:
        """Count tasks of one submission that have arrived and have not ended."""
        if tasks:
            units = tasks[0].submission.units
            self._open += len(tasks)
            self._open_work += sum([units[task.row] for task in tasks])

    def row_of(self, work: LiveSet) -> int:  # type: ignore[override]
        """Return the position of a submission among all submissions."""
        return self.sets.index(work)

    def number_of(self, work: LiveSet) -> int:  # type: ignore[override]
        """Return the number of a submission in snapshots: its position among those that have not ended."""
        return [each for each in self.sets if each.left].index(work)

    def numbered(self) -> Mapping[int, LiveSet]:  # type: ignore[override]
        """Return the submissions by their numbers in the snapshot that the machine was restored from."""
        return dict(enumerate(self.sets))

    def present(self) -> Iterator[LiveTask]:
        """Yield the tasks that have not ended, in the order of submission."""
        for submission in self.sets:
            if submission.left:
                yield from (task for task in submission.tasks if task.state not in ("done", "cancelled"))

    @property
    def unfinished(self) -> int:
        """The number of submitted tasks, including those still to arrive, that have not ended."""
        return sum(each.left for each in self.sets)

    # ------------------------------------------------------------------ results

    def result(self, name: str | None = None) -> MachineResult:
        """Return the result so far; ``name`` is its name in tables and plots.

        Raises
        ------
        InputError
            if the machine keeps no record
        """
        from simmodel.systems.machine.record import machine_result

        if not self._record:
            raise InputError(f"{self.name}: cannot return a result: built with record=False")
        return machine_result(self, name or self.scheduler.policy_name)

    # ------------------------------------------------------------------ snapshots

    def snapshot(self) -> MachineSnapshot:
        """Return the state of the machine as a plain value, from which a simulation can continue.

        Take it between events; a decision due at this instant is still due afterwards.

        Raises
        ------
        SnapshotError
            if a custom processor is inside one of its own phases, or the policy cannot be copied
        """
        from simmodel.systems.machine.snapshots import capture_machine

        return capture_machine(self)

    @classmethod
    def from_snapshot(
        cls,
        env: Environment,
        snapshot: MachineSnapshot,
        policy: PolicyLike | None = None,
        *,
        record: bool = True,
        rank: int = 2,
    ) -> Machine:
        """Return a machine that continues from a snapshot; its record holds the tasks that were not done then.

        Parameters
        ----------
        env
            an environment at the instant of the snapshot
        policy
            default: that of the snapshot; a policy of the same name gets its stored state

        Raises
        ------
        InputError
            if the environment is at another instant, or the policy of the snapshot was given as an object

        >>> from simmodel import load_platform
        >>> machine = Machine(Environment(), load_platform("hetsim-slow"))
        >>> _ = machine.submit(TaskSet([3.0, 4.0])); machine.env.run(until=2)
        >>> again = Machine.from_snapshot(Environment(2), machine.snapshot()); again.env.run()
        >>> again.result().tasks["end"]
        array([3., 4.])
        """
        from simmodel.systems.machine.snapshots import restore_machine

        return restore_machine(Machine, env, snapshot, policy, record=record, rank=rank)

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence for each task that has not ended, and for data that wait for room."""
        from simmodel.systems.machine.state import waiting_report

        return waiting_report(self)


def _estimate(view: View, task: LiveTask, place: Processor) -> Estimate:
    """Estimate from the queue of a processor; transfers are assumed to have their links to themselves."""
    transfer = place.expected_transfer(task, behind=True)
    return Estimate(place.available, place.expected_setup(task), transfer, place.expected_run(task))


@attrs.frozen(kw_only=True, repr=False)
class MachineKind(Kind):
    """The kind of machines; a HetSim configuration may define the distribution of the work and complete the spec."""

    asks = ("places", "plans", "tasks")

    def read_work(
        self, given: GivenWork, spec: Any, seed: int, inputs: Mapping[str, Any] = MappingProxyType({})
    ) -> tuple[Submissions, Any]:
        """Return the work, and the machine spec with the reconfiguration times of the configuration."""
        config = inputs.get("config")
        if isinstance(config, (str, Path)):
            config = read_hetsim_config(config)
        if config is not None:
            spec = config.on_machine(spec)
        return read_submissions("tasks", given, seed=seed, machine=spec, config=config), spec


MACHINE = MachineKind(
    name="machine",
    spec=MachineSpec,
    system=Machine,
    snapshot="simmodel.snapshots.machine:MachineSnapshot",
    options=MachineOptions,
    inputs=("config",),
    policy="hrr",
    work="tasks",
)
