"""Bodies of jobs: their processes, the interrupt that stops them, and their end by force after a grace time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from simpy.events import URGENT, Event, Process
from simpy.exceptions import Interrupt

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError, JobFailed
from simmodel.platform.machine import MachineSpec
from simmodel.resources.pools.allocation import probe
from simmodel.resources.pools.claims import Grant, Growth, Holder, LiveGrant, Lost, Preempted
from simmodel.resources.pools.nodes import NodePool
from simmodel.resources.processors.processor import kill
from simmodel.systems.machine.system import Machine
from simmodel.work.job import told_end
from simmodel.work.workflow import Workflow

if TYPE_CHECKING:
    from simmodel.environment import Call
    from simmodel.resources.pools.pool import Pool
    from simmodel.systems.cluster.core import ClusterCore
    from simmodel.work.job import Job, Run

__all__ = ["Bodies", "run_inside", "why_not_inside"]


class Bodies:
    """Runs the bodies of jobs, each as a process, and stops them.

    A body that must stop is interrupted and may clean up. If it has not ended when the grace time of its job is over,
    it is killed: its generator is closed, and the event that it waits for does not resume it. A body that the interrupt
    of one of its claims ends has lost its job to the failure or the preemption.

    Parameters
    ----------
    core
        that of the cluster
    finish
        called with a run and its final status once its body has ended
    changed
        functions of systems above, called when a body has grown or shrunk
    """

    def __init__(
        self, core: ClusterCore, finish: Callable[[Run, str], object], changed: Sequence[Callable[[], object]]
    ) -> None:
        self._env: Environment = core.env
        self._core = core
        self._finish = finish
        self._changed = changed
        self._holders: dict[Run, BodyHolder] = {}
        self._limits: dict[Run, Call] = {}
        self._kills: dict[Run, Call] = {}
        self._nodes: Nodes = {}

    def begin(self, run: Run, spec: Job) -> None:
        """Start the body of a run; under ``overrun="stop"`` it is stopped at its requested time."""
        job, env, core = run.job, self._env, self._core
        holder = self._holders[run] = BodyHolder(run, core, self._changed)
        try:
            body = run_inside(run, spec, self._nodes) if spec.body is None else spec.body(env, job, holder.live)
            run.process = process = Process(env, body)
        except Exception as error:
            run.process = process = Process(env, _raising(error))
        if core.overrun == "stop" and spec.requested is not None:
            at = env.now + spec.requested
            self._limits[run] = env.call_at(at, lambda: self.stop(run, "timeout"), core.end_priority)
        process.callbacks.append(lambda event: self._over(run, event))

    def stop(self, run: Run, status: str) -> None:
        """Interrupt a body with the final state of its job as the cause, and kill it after the grace time.

        A body that stops its own job is interrupted at its next ``yield``.
        """
        process = run.process
        if process is None or not process.is_alive or run.stopping is not None:
            return  # it ended at this instant, or cleans up already
        env = self._env
        run.stopping = status
        if env.active_process is process:
            env.call_at(env.now, lambda: self._interrupt(run), URGENT)
        else:
            process.interrupt(status)
        job = run.job._job
        grace = 0.0 if job is None else job.grace
        if grace < float("inf"):
            self._kills[run] = env.call_at(env.now + grace, lambda: self._kill(run), self._core.end_priority)

    def kill_at(self, run: Run) -> float:
        """Return the instant (s) at which a body that was interrupted is killed; infinite if never."""
        call = self._kills.get(run)
        return float("inf") if call is None else call.at

    def _interrupt(self, run: Run) -> None:
        assert run.process is not None
        if run.process.is_alive:
            run.process.interrupt(run.stopping)

    def _kill(self, run: Run) -> None:
        assert run.process is not None
        kill(run.process)

    def _over(self, run: Run, event: Event) -> None:
        holder = self._holders.pop(run)
        if holder.growths:
            holder.drop_growths()
        for calls in (self._limits, self._kills):
            call = calls.pop(run, None)
            if call is not None and call.pending:
                self._env.withdraw(call)
        error = None if event._ok else event._value
        if isinstance(error, BaseException) and not isinstance(error, Exception):
            return  # such as KeyboardInterrupt: the environment raises it
        event._defused = True
        cause = error.cause if isinstance(error, Interrupt) else None
        if error is None:
            status = run.stopping or told_end(run.job)[0]
        elif run.stopping is not None and isinstance(error, (Interrupt, JobFailed)):
            status = run.stopping
        elif isinstance(cause, (Lost, Preempted)):  # it does not go on without one of its claims
            status = "preempted" if isinstance(cause, Preempted) else self._core.lost
        else:
            status = "failed"
            if not isinstance(error, JobFailed):
                error.add_note(f"in the body of job {run.job.id} at {self._env.now:.12g} s")
        run.job.answer(event._value if event._ok else None, error if status == "failed" else None)
        self._finish(run, status)


class BodyHolder(Holder):
    """The holder for the body of a job: it holds the capacity of the job's execution.

    Parameters
    ----------
    run
        the execution
    core
        that of the cluster
    changed
        functions of systems above, called when it has grown or shrunk
    """

    __slots__ = ("_changed", "_core", "_run", "growths", "job", "live", "pool")
    priority, preempt = 0.0, False

    def __init__(self, run: Run, core: ClusterCore, changed: Sequence[Callable[[], object]]) -> None:
        self.pool, self.job, self._run = run.place, run.job, run
        self._core = core
        self._changed = changed
        self.growths: list[Growth] = []
        self.live = LiveGrant(self)

    @property
    def title(self) -> str:
        return f"job {self.job.id}"

    @property
    def held(self) -> Run:
        return self._run

    @property
    def holds(self) -> bool:
        process = self._run.process
        return process is not None and process.is_alive and self._run.entry is not None

    def told(self, processors: int, grant: Grant) -> None:
        """Report another size to observers, the usage of its user, and the systems above."""
        job = self.job
        for usage in self._core.usages:
            usage.change(job.user, job.processors - processors, self._core.env._now)
        self._core.tell("job_resized", self._run, processors, grant)
        for call in self._changed:
            call()

    def why_never(self, processors: int) -> str | None:
        """Return why it can never have a number of processors, or ``None``."""
        wanted = probe(self.job, processors, 0.0)
        place: Pool = self._run.place
        return place.why_not(wanted) or place.limits.why_not(wanted, place.name)


def _raising(error: Exception) -> Generator[Event, Any, None]:
    """Raise an error: for a body that is none."""
    raise error
    yield  # type: ignore[unreachable]  # which makes it a generator


# ---------------------------------------------------------------------- workflows


def run_inside(run: Run, spec: Job, nodes: Nodes) -> Generator[Event, Any, None]:
    """Run the workflow of a job on a machine in its nodes: the body of the job.

    The machine ends with the job. On GPUs of one node it has those that the job holds, and shares the CPU cores and the
    links of the node with the other jobs there. Observers hear ``workflow_started(job, machine)``.
    """
    job, env = run.job, run.place.env
    inside, flow = _checked(spec)
    name, part, node = f"{inside.name} of job {job.id}", inside, None
    users: list[Run] = []
    if _on_gpus(spec, inside):
        (number, *_, devices), *_ = run.grant.allocation.rows
        gpu_of = run.place.table.apart.gpu_of
        part = inside.with_gpus({int(gpu_of[device, number]) for device, _ in devices})
        if (run.place.name, number) not in nodes:
            nodes[run.place.name, number] = Machine(env, inside, name=name, record=False, begin=False), users
        node, users = nodes[run.place.name, number]
        if node.spec != inside:
            raise InputError(f"must be that of job {users[0].job.id} on the same node", place="machine")
        users.append(run)
    try:
        with Machine(env, part, spec.workflow_policy, name=name, node=node) as machine:
            job.place.tell("workflow_started", job, machine)
            yield machine.submit(flow)
    finally:
        if node is not None:
            users.remove(run)
            if not users:
                node.close()
                del nodes[run.place.name, number]


Nodes: TypeAlias = dict[tuple[str, int], tuple[Machine, list["Run"]]]
"""By place and number, the machine of a node, of which jobs have parts, and these jobs."""


def _on_gpus(spec: Job, inside: MachineSpec) -> bool:
    """Whether the workflow of a job runs on the GPUs that it holds of one node."""
    return bool(spec.gpus_per_node and spec.nodes in (None, 1) and inside.gpus)


def _why_not_on(spec: Job, inside: MachineSpec, pool: NodePool) -> str | None:
    """Return why the GPUs of a node cannot be those of the machine of a job, or ``None``."""
    if spec.gpus_per_node < 1 or ":" in spec.gpu:
        return "a workflow runs on whole GPUs"
    kinds = pool.spec.nodes
    allowed = spec.gpu.split("|") if spec.gpu else [name for kind in kinds for name in (*kind.gpu_types, "")]
    for kind in kinds:
        types = [name for name, count in (kind.gpu_types or {"": kind.gpus}).items() for _ in range(count)]
        mine = [name if kind.gpu_types else "" for name in inside.gpus]
        if types != mine and sum(name in allowed for name in types) >= spec.gpus_per_node:
            return f"machine has GPUs {', '.join(inside.gpus)}, a node of {pool.name} {', '.join(types)}"
    pool.tell_devices()
    return None


def why_not_inside(spec: Job, pool: Pool) -> str | None:
    """Return why the workflow of a job can never run inside its nodes, or ``None``.

    Raises
    ------
    InputError
        the job names no spec of a machine, or no workflow
    """
    inside, flow = _checked(spec)
    if _on_gpus(spec, inside) and isinstance(pool, NodePool):
        reason = _why_not_on(spec, inside, pool)
        if reason is not None:
            return reason
        inside = inside.with_gpus(range(int(spec.gpus_per_node)))
    return Machine(Environment(), inside, spec.workflow_policy, record=False, begin=False).why_not(flow)


def _checked(spec: Job) -> tuple[MachineSpec, Workflow]:
    if not isinstance(spec.machine, MachineSpec):
        message = f"must be a MachineSpec (load_platform reads names and files), got {spec.machine!r}"
        raise InputError(message, place="machine")
    if not isinstance(spec.workflow, Workflow):
        raise InputError(f"must be a Workflow, got {spec.workflow!r}", place="workflow")
    return spec.machine, spec.workflow
