"""Requests of jobs: what is asked of a batch system, what policies see of it, and why it is refused."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeVar

import attrs

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError
from simmodel.foundation.units import in_bytes, in_rates, in_seconds
from simmodel.work.checkpoint import Checkpoint
from simmodel.work.elastic import Elastic
from simmodel.work.measured import power_cell
from simmodel.work.node_chunks import Chunk, chunks_of
from simmodel.work.outcomes import outcome_in
from simmodel.work.task import File
from simmodel.work.traffic import Messages, Phases

if TYPE_CHECKING:
    from simpy.events import Event

__all__ = ["ANY", "PROGRAM", "Dependency", "Job", "JobRequest", "Named", "Refusal", "partitions_in", "rule_of"]

INFINITY = float("inf")

PROGRAM = {"body": None, "workflow": None, "machine": None, "workflow_policy": "hrr"}
"""The fields of a job that make it a program, with their defaults: no snapshot has them."""

ANY = "any"
"""The name that stands for all partitions of a cluster."""

_Number = TypeVar("_Number", bound=float | None)


class Tasks(Protocol):
    """The tasks of a workflow, by id."""

    @property
    def tasks(self) -> Mapping[Any, Any]:
        """Its tasks."""
        ...


class Named(Protocol):
    """The spec of a machine, or a place."""

    @property
    def name(self) -> str:
        """Its name."""
        ...


Body = Callable[[Any, Any, Any], Generator["Event", Any, Any]]


def _positive(_instance: Job | Dependency, attribute: attrs.Attribute[_Number], value: _Number) -> None:
    if isinstance(value, str):
        raise InputError(f"{attribute.name}: must be a number > 0 or a quantity such as '2h' or '16GB', got {value!r}")
    if value is not None and not value > 0:
        raise InputError(f"{attribute.name}: must be > 0, got {value!r}")


def _not_negative(_instance: Job | Dependency, attribute: attrs.Attribute[_Number], value: _Number) -> None:
    if isinstance(value, str):
        raise InputError(f"{attribute.name}: must be a number >= 0 or a quantity such as '2h' or '16GB', got {value!r}")
    if value is not None and not value >= 0:
        raise InputError(f"{attribute.name}: must be >= 0, got {value!r}")


def _share(_instance: Job, attribute: attrs.Attribute[float], value: float) -> None:
    if isinstance(value, bool | str) or not 0 <= value <= 1:
        raise InputError(f"{attribute.name}: must be a number from 0 to 1, got {value!r}")


def _one_of(*accepted: str) -> Callable[[Job | Dependency, attrs.Attribute[str], str], None]:
    def check(_instance: Job | Dependency, attribute: attrs.Attribute[str], value: str) -> None:
        if value not in accepted:
            raise InputError(f"{attribute.name}: must be {', '.join(accepted[:-1])} or {accepted[-1]}, got {value!r}")

    return check


@attrs.frozen(repr=False)
class Dependency(Fields):
    """The wait of a job for another one, followed by a think time.

    Parameters
    ----------
    job
        the id of the job waited for
    after
        the event waited for: ``"start"``, ``"end"`` in any final state, ``"success"`` (the job completed; if it
        did not, the waiting job is cancelled), or ``"failure"`` (it ended otherwise; if it completed, the waiting job
        is cancelled)
    think_time
        seconds from that event until the waiting job may start

    >>> Dependency("prepare", after="success", think_time=5)
    Dependency(job='prepare', after='success', think_time=5)
    """

    job: int | str
    after: Literal["end", "start", "success", "failure"] = attrs.field(
        default="end", validator=_one_of("end", "start", "success", "failure")
    )
    think_time: float = attrs.field(default=0.0, converter=in_seconds, validator=_not_negative)

    def met_by(self, completed: bool) -> bool:
        """Whether the end of the job meets it, given whether the job completed.

        >>> Dependency(1, after="failure").met_by(True), Dependency(1).met_by(True)
        (False, True)
        """
        return self.after in ("end", "start") or (self.after == "success") == completed


def _whole(_instance: Job, attribute: attrs.Attribute[_Number], value: _Number) -> None:
    if isinstance(value, str) or value is None or value != value // 1 or value < 1:
        raise InputError(f"{attribute.name}: must be a whole number >= 1, got {value!r}")


def _count(_instance: Job, attribute: attrs.Attribute[_Number], value: _Number) -> None:
    if isinstance(value, str) or value is None or not value >= 0 or value != value // 1:
        raise InputError(f"{attribute.name}: must be a whole number >= 0, got {value!r}")


def _in_thousandths(value: float) -> Any:
    """Return a share of a device as whole thousandths of it, at least one; whole numbers as they are."""
    shared = isinstance(value, float) and 0 < value < 1
    return max(round(value, 3), 0.001) if shared else value


def _gpus(_instance: Job, attribute: attrs.Attribute[_Number], value: _Number) -> None:
    """Refuse a value that is neither a count of whole devices nor a share of one."""
    if isinstance(value, str) or value is None or not value >= 0 or (value > 1 and value != value // 1):
        raise InputError(f"{attribute.name}: must be a share of one device or a whole number >= 0, got {value!r}")


def _number(_instance: Job, attribute: attrs.Attribute[_Number], value: _Number) -> None:
    if isinstance(value, str) or (value is not None and value != value):
        raise InputError(f"{attribute.name}: must be a number, got {value!r}")


def _dependencies(value: Iterable[Dependency | int | str]) -> tuple[Dependency, ...]:
    if type(value) is tuple and not value:
        return value
    if isinstance(value, str):
        raise InputError(f"dependencies: must be a list of jobs, got {value!r}")
    return tuple(each if isinstance(each, Dependency) else Dependency(each) for each in value)


def _partitions(value: Iterable[int | str] | int | str) -> tuple[int | str, ...]:
    if type(value) is tuple and not value:
        return value
    names: tuple[int | str, ...]
    if isinstance(value, str):
        names = tuple(map(str.strip, value.split(",")))
        wrong = "" in names
    else:
        names = (value,) if isinstance(value, int) else tuple(value)
        wrong = any(isinstance(name, bool) or not isinstance(name, int | str) or name == "" for name in names)
    if wrong:
        raise InputError(f"partitions: must be names of partitions or {ANY!r}, got {value!r}")
    return tuple(dict.fromkeys(names))


def _one_partition(_instance: Job, _attribute: attrs.Attribute[Any], value: object) -> None:
    if isinstance(value, (list, tuple, set, frozenset)) or (isinstance(value, str) and "," in value):
        raise InputError(f"partition: must be one name (partitions=... takes several), got {value!r}")


def _elastic(_instance: Job, _attribute: attrs.Attribute[Elastic], value: Elastic) -> None:
    if not isinstance(value, Elastic):
        raise InputError(f"elastic: must be an Elastic, got {value!r}")


def _messages(_instance: Job, _attribute: attrs.Attribute[Messages], value: Messages) -> None:
    if not isinstance(value, Messages):
        raise InputError(f"traffic: must be a Traffic or Phases, got {value!r}")


def _files(value: Iterable[str]) -> tuple[str, ...]:
    if type(value) is tuple and not value:
        return value
    names = tuple(value)
    if isinstance(value, str) or any(not isinstance(name, str) for name in names):
        raise InputError(f"inputs: must be a list of names of files, got {value!r}")
    return tuple(dict.fromkeys(names))


def _outputs(value: Iterable[File]) -> tuple[File, ...]:
    if type(value) is tuple and not value:
        return value
    files = tuple(value)
    if any(not isinstance(file, File) for file in files):
        raise InputError(f"outputs: must be a list of File(name, size), got {value!r}")
    return files


@attrs.frozen(kw_only=True, repr=False)
class Job(Fields):
    """A request to a batch system, immutable: one job can run in many simulations.

    Times and sizes may be texts with units, such as ``requested="2h"`` and ``memory_per_node="16GB"``.

    Parameters
    ----------
    run
        run time in seconds; optional for a job with a body
    processors
        processors requested; if nodes are requested, ``nodes * max(1, cores_per_node)``
    requested
        requested time in seconds (wall-time limit); default: the run time
    submit
        instant of submission in seconds, for a job in a workload; ``cluster.submit`` submits at once
    nodes, cores_per_node, gpus_per_node, memory_per_node
        nodes requested, and the cores, GPUs and bytes of memory on each. GPUs are whole devices, or a share of one:
        0.46, in whole thousandths
    gpu
        the types of GPUs that it may have, ``"A100|V100"``, or the slice of one that it gets, ``"A100:3g.20gb"``;
        default: any. Alone it requests one on each node
    gpu_memory
        instead of a share: the bytes of memory that it gets of one device of each node
    chunks
        instead of these, if the nodes are not to have the same: a list of :class:`~simmodel.work.node_chunks.Chunk`, or
        of numbers of cores, each of one node, or a text such as ``"8:gpus=1+2*4"``; counted processors are their sum
    consumables
        named amounts: licences, bytes of burst buffer
    exclusive
        whether it gets whole nodes; counted processors are given as they are
    options
        what else it asks of the scheduler of its cluster, in the scheduler's own words, such as
        ``"--switches=1@60 --constraint=big"`` of Slurm; only the policy of that scheduler reads them
    bandwidth
        bytes/s of the storages and links of its cluster, by name, which it holds while it runs, such as
        ``{"scratch": "2GB/s"}``; policies see them as consumables, and others share the rest
    user, group, queue, partition, priority
        submitter, target queue and partition, and priority (higher first)
    partitions
        instead of ``partition``: several, in order of preference, or ``"any"``; the job runs in one of them
    dependencies
        jobs to wait for: ids or :class:`Dependency` values
    cancel
        instant in seconds at which the job is withdrawn or stopped. A job that was cancelled while it waited has no
        ``run``: if its turn comes earlier, it is ``withdrawn`` then, without having started
    on_preempt
        ``"requeue"`` starts it again after a preemption or a failure, ``"suspend"`` resumes it from the point of
        preemption, ``"no"`` forbids preemption
    keeps_work
        whether a requeued job keeps the work done so far, at no cost
    checkpoint
        how it saves its progress: a :class:`~simmodel.work.checkpoint.Checkpoint`; a requeued job continues from there
    body
        a generator function ``body(env, job, grant)`` that executes the job: the job ends when the body ends;
        ``grant.grow(n)`` and ``grant.shrink(n)`` change its number of processors. What it returns is the value of the
        job; an error that it raises fails the job (a :class:`~simmodel.work.JobFailed` does nothing else)
    workflow, machine, workflow_policy
        instead of a body: a :class:`~simmodel.work.workflow.Workflow` that runs inside the nodes of the job, the
        :class:`~simmodel.platform.machine.MachineSpec` of these nodes, and the policy there; the job ends with its last
        task, and ``result.workflow_of(job)`` has its tasks
    outcome, exit_code
        how its run ends when it comes to its own end: ``"completed"``, ``"failed"``, ``"timeout"``, ``"cancelled"``,
        ``"node-failure"`` or ``"out-of-memory"`` (in any case, also as Slurm spells them), and the exit code, if known:
        above 0 the job has failed. Policies do not see them; dependencies heed them
    slack
        seconds that its start may be put off after its submission, for policies that wait for a better time; ``None``:
        it is not to wait
    power
        measured W of each of its nodes while it runs (of each processor where nodes are not identified): a number, or
        steps, as ``[(0, 200), (60, 350)]``, from a second of its run on; or by ``cpu`` and ``gpu`` the shares of its
        cores and GPUs that are busy, as ``{"cpu": 0.5, "gpu": [(0, 1), (60, 0)]}``. Figures of energy use it instead
        of the watts of its nodes under load; policies do not see it
    frequency_sensitivity
        how much longer it runs on nodes at a lower frequency, from 0 (as long) to 1 (in proportion to the clock): at a
        relative frequency f its times are multiplied by ``frequency_sensitivity * (1 / f - 1) + 1``
    grace
        seconds that a body has to clean up after the interrupt that stops it (Slurm's ``KillWait``); then it is killed
    inputs, outputs
        in a grid: the names of the files that it reads, and the files that it writes
    site
        in a grid: the site that it was submitted to, or at which its record says that it ran
    elastic
        an :class:`~simmodel.work.elastic.Elastic`: the sizes between which it may run; ``processors`` is the preferred
        one. Only for jobs that request processors in one partition, and have no body
    traffic, compute
        instead of a run time: a :class:`~simmodel.work.traffic.Traffic`, the messages among its nodes, and the seconds
        that it computes meanwhile on nodes of speed 1. It ends when both are over, later where others use the same
        links of the network of its partition. :class:`~simmodel.work.traffic.Phases` follow each other, and have a
        ``compute`` of their own. An elastic job sends among the nodes that it has, and computes as fast as its size
        allows; what is done of it stays done when its size changes

    Raises
    ------
    InputError
        a number is negative, none of ``run``, ``body``, ``workflow``, ``traffic`` and ``cancel`` is given or two of the
        first four are, both ``partition`` and ``partitions``, ``elastic`` beside a request that has one size,
        ``chunks`` beside ``nodes``, or an unknown outcome

    >>> Job(processors=4, run=100, requested=120).processors
    4
    >>> Job(nodes=2, cores_per_node=8, run=10).processors
    16
    >>> Job(chunks=[8, 2], run=10).processors
    10
    >>> Job(run="90min", requested="2h").requested
    7200.0
    >>> Job(run=1, gpus_per_node=0.46).gpus_per_node, Job(run=1, gpu="A100|V100").gpus_per_node
    (0.46, 1)
    >>> Job(run=10, outcome="OUT_OF_MEMORY").outcome, Job(run=10, exit_code=1).outcome
    ('out-of-memory', 'failed')
    """

    id: int | str | None = None
    submit: float = attrs.field(default=0.0, converter=in_seconds, validator=_not_negative)
    processors: int = attrs.field(validator=_whole)
    run: float | None = attrs.field(default=None, converter=in_seconds, validator=_not_negative)
    requested: float | None = attrs.field(default=None, converter=in_seconds, validator=_positive)
    nodes: int | None = attrs.field(default=None, validator=attrs.validators.optional(_whole))
    cores_per_node: int = attrs.field(default=1, validator=_count)
    gpus_per_node: float = attrs.field(default=0, converter=_in_thousandths, validator=_gpus)
    memory_per_node: float = attrs.field(default=0.0, converter=in_bytes, validator=_not_negative)
    consumables: Mapping[str, float] = attrs.field(factory=dict)
    user: int | str | None = None
    group: int | str | None = None
    queue: int | str | None = None
    partition: int | str | None = attrs.field(default=None, validator=_one_partition)
    priority: float = attrs.field(default=0.0, validator=_number)
    dependencies: tuple[Dependency, ...] = attrs.field(default=(), converter=_dependencies)
    cancel: float | None = attrs.field(default=None, converter=in_seconds, validator=_number)
    on_preempt: Literal["requeue", "suspend", "no"] = attrs.field(
        default="requeue", validator=_one_of("requeue", "suspend", "no")
    )
    keeps_work: bool = False
    checkpoint: Checkpoint | None = None
    body: Body | None = None
    grace: float = attrs.field(default=30.0, validator=_not_negative)
    name: str | None = None
    partitions: tuple[int | str, ...] = attrs.field(default=(), converter=_partitions)
    inputs: tuple[str, ...] = attrs.field(default=(), converter=_files)
    outputs: tuple[File, ...] = attrs.field(default=(), converter=_outputs)
    site: str | None = None
    elastic: Elastic | None = attrs.field(default=None, validator=attrs.validators.optional(_elastic))
    workflow: Tasks | None = None
    machine: Named | None = None
    workflow_policy: Any = PROGRAM["workflow_policy"]
    bandwidth: Mapping[str, float] = attrs.field(factory=dict, converter=in_rates)
    traffic: Messages | None = attrs.field(default=None, validator=attrs.validators.optional(_messages))
    compute: float = attrs.field(default=0.0, converter=in_seconds, validator=_not_negative)
    exclusive: bool = False
    options: str = ""
    outcome: str = "completed"
    exit_code: int | None = None
    chunks: tuple[Chunk, ...] | None = attrs.field(default=None, converter=attrs.converters.optional(chunks_of))
    gpu: str = ""
    gpu_memory: float = attrs.field(default=0.0, converter=in_bytes)
    slack: float | None = attrs.field(default=None, converter=in_seconds, validator=_not_negative)
    power: Any = attrs.field(default=None, converter=attrs.converters.optional(power_cell))
    frequency_sensitivity: float = attrs.field(default=1.0, validator=_share)

    @processors.default
    def _default_processors(self) -> int:
        return 1

    def __attrs_post_init__(self) -> None:
        if self.traffic is not None or self.compute:
            self._check_traffic()
        elif self.run is None and not self.has_body:
            if self.cancel is None:
                name = self.id if self.id is not None else self.name
                raise InputError(f"job {name}: must have a run time, a body, a workflow or traffic")
            object.__setattr__(self, "outcome", "cancelled")
        if self.outcome != "completed" or self.exit_code is not None:
            self._check_outcome()
        if self.body is not None and not callable(self.body):
            raise InputError(f"body: must be a generator function body(env, job, grant), got {self.body!r}")
        if self.workflow is not None:
            self._check_workflow()
        if self.checkpoint is not None:
            self._check_checkpoint()
        if self.partitions and self.partition is not None:
            raise InputError(f"partitions: must be left out beside partition={self.partition!r}, got {self.partitions}")
        for name, amount in self.consumables.items():
            if not amount >= 0:
                raise InputError(f"consumables[{name!r}]: must be >= 0, got {amount!r}")
        for name in self.bandwidth:
            if name in self.consumables:
                raise InputError(f"bandwidth[{name!r}]: must not be in consumables, too")
        if self.gpu or self.gpu_memory:
            self._check_gpu()
        if self.chunks:
            self._set_chunks(self.chunks)
        elif self.nodes is not None:
            object.__setattr__(self, "processors", self.nodes * max(1, self.cores_per_node))
        if self.elastic is not None:
            self._check_elastic(self.elastic)
        if type(self.processors) is not int:
            object.__setattr__(self, "processors", int(self.processors))

    def _check_outcome(self) -> None:
        code = self.exit_code
        if code is not None and (isinstance(code, bool) or not isinstance(code, int)):
            raise InputError(f"exit_code: must be a whole number, got {code!r}")
        try:
            found = outcome_in(str(self.outcome)) or "completed"
        except ValueError as error:
            raise InputError(f"outcome: {error}") from None
        object.__setattr__(self, "outcome", "failed" if code and code > 0 and found == "completed" else found)

    def _set_chunks(self, chunks: tuple[Chunk, ...]) -> None:
        """Set the number of nodes, and the most that is requested of one; chunks that are alike are nodes."""
        most = {
            "nodes": len(chunks),
            "cores_per_node": max([each.cores for each in chunks]),
            "gpus_per_node": max([each.gpus for each in chunks]),
            "memory_per_node": max([each.memory for each in chunks]),
        }
        fields = attrs.fields_dict(Job)
        for name, value in most.items():
            if getattr(self, name) not in (fields[name].default, value):
                raise InputError(f"{name}: must be left out beside chunks, got {getattr(self, name)!r}")
            object.__setattr__(self, name, value)
        object.__setattr__(self, "processors", sum([each.cores for each in chunks]))
        if len(set(chunks)) == 1:
            object.__setattr__(self, "chunks", None)

    def _check_gpu(self) -> None:
        """Set the number of GPUs of each node to one if only their type, slice or memory is given."""
        if not isinstance(self.gpu_memory, int | float) or not self.gpu_memory >= 0:
            raise InputError(f"gpu_memory: must be a number >= 0 or a quantity such as '20GB', got {self.gpu_memory!r}")
        kinds = self.gpu.partition(":")[0].split("|") if isinstance(self.gpu, str) else [""]
        if self.gpu != "" and not all(kind.strip() == kind != "" for kind in kinds):
            examples = "types such as 'A100|V100' or a slice such as 'A100:3g.20gb'"
            raise InputError(f"gpu: must be {examples}, got {self.gpu!r}")
        if self.chunks:
            raise InputError(f"chunks: must be left out beside gpu and gpu_memory, got {self.chunks!r}")
        if self.gpu_memory and (self.gpus_per_node not in (0, 1) or ":" in self.gpu):
            raise InputError("gpu_memory: must be left out beside a number of GPUs, a share or a slice")
        if ":" in self.gpu and self.gpus_per_node != self.gpus_per_node // 1:
            raise InputError(f"gpus_per_node: must be a whole number of slices, got {self.gpus_per_node!r}")
        object.__setattr__(self, "gpus_per_node", self.gpus_per_node or 1)

    def _check_elastic(self, elastic: Elastic) -> None:
        shaped = ("chunks", "nodes", "gpus_per_node", "memory_per_node", "consumables", "bandwidth")
        for name in (*shaped, "partitions", "body", "workflow"):
            if getattr(self, name):
                raise InputError(f"elastic: must be left out beside {name}, got {elastic}")
        if self.processors not in (1, elastic.preferred):
            raise InputError(f"processors: must be {elastic.preferred}, the preferred size, got {self.processors}")
        object.__setattr__(self, "processors", elastic.preferred)

    def _check_traffic(self) -> None:
        if self.traffic is None:
            raise InputError(f"compute: must be left out without traffic (run is the run time), got {self.compute}")
        if self.compute and isinstance(self.traffic, Phases):
            raise InputError(f"compute: must be left out beside phases, which have their own, got {self.compute}")
        for name in ("run", "body", "workflow", "checkpoint"):
            if getattr(self, name) is not None:
                hint = "; compute is the time of its processors" if name == "run" else ""
                raise InputError(f"{name}: must be left out beside traffic{hint}, got {getattr(self, name)!r}")
        if self.elastic is not None and not self.traffic.scales:
            raise InputError("elastic: must be left out beside traffic by a matrix, which is of one number of nodes")

    def _check_workflow(self) -> None:
        if self.machine is None:
            raise InputError("machine: must be the MachineSpec of the nodes in which the workflow runs, got None")
        if self.body is not None:
            raise InputError(f"body: must be left out beside a workflow, got {self.body!r}")
        if self.keeps_work:
            raise InputError("keeps_work: must be False for a job with a workflow, whose tasks start again")

    def _check_checkpoint(self) -> None:
        if not isinstance(self.checkpoint, Checkpoint):
            raise InputError(f"checkpoint: must be a Checkpoint(interval, cost, restart), got {self.checkpoint!r}")
        if self.has_body:
            raise InputError("checkpoint: must be left out for a job with a body or a workflow, which saves for itself")
        if self.elastic is not None:
            raise InputError("checkpoint: must be left out for an elastic job")
        if self.keeps_work:
            raise InputError("checkpoint: must be left out beside keeps_work, which keeps all work")

    @property
    def coupled(self) -> bool:
        """Whether it waits for other jobs, has files, or a body, which may look at anything."""
        return bool(self.dependencies or self.inputs or self.outputs) or self.has_body

    @property
    def has_body(self) -> bool:
        """Whether a generator executes it: its body, or the one that runs its workflow."""
        return self.body is not None or self.workflow is not None

    @property
    def own_end(self) -> bool:
        """Whether its end is not its run time after its start: a generator executes it, or it has traffic."""
        return self.body is not None or self.workflow is not None or self.traffic is not None

    @property
    def saves_somewhere(self) -> bool:
        """Whether it writes its checkpoints to a storage or over a link: its end depends on who else does."""
        return self.checkpoint is not None and self.checkpoint.to != ""

    @property
    def program(self) -> str:
        """The words for the generator that executes it, for errors about copies."""
        return "it has a body, which is a generator" if self.body is not None else "it runs a workflow inside its nodes"

    @property
    def amounts(self) -> Mapping[str, float]:
        """The named amounts that it holds while it runs: its consumables and its bandwidths."""
        return {**self.consumables, **self.bandwidth} if self.bandwidth else self.consumables

    @property
    def plain(self) -> bool:
        """Whether it requests only processors and time, besides files, dependencies and a priority."""
        named = self.queue is not None or self.partition is not None or self.partitions
        shaped = self.nodes is not None or self.gpus_per_node or self.memory_per_node or self.amounts or self.exclusive
        extra = self.own_end or self.cancel is not None or self.elastic is not None or self.checkpoint is not None
        paced = self.slack or self.frequency_sensitivity != 1
        return not (named or shaped or extra or self.options or paced)

    @property
    def never_ran(self) -> bool:
        """Whether it was cancelled while it waited: how long it would have run is unknown."""
        return self.run is None and not self.own_end

    def seconds(self, saved: float = 0.0) -> float:
        """Return the seconds that it executes if it is not interrupted and so much of its work (s) is saved.

        >>> Job(run=60).seconds(), Job(run=60, checkpoint=Checkpoint(20, cost=2)).seconds()
        (60, 64.0)
        """
        if self.run is None:
            return INFINITY
        return self.run if self.checkpoint is None else self.checkpoint.seconds(self.run, saved)

    def _work_in(self, seconds: float, saved: float) -> float:
        return seconds if self.checkpoint is None else self.checkpoint.work_in(seconds, saved)

    def is_seen(self, seconds: float, saved: float = 0.0) -> bool:
        """Whether :meth:`as_seen` changes nothing."""
        special = self.own_end or self.cancel is not None or self.saves_somewhere or self.outcome != "completed"
        return self.run == self._work_in(seconds, saved) and not special

    def as_seen(self, seconds: float, saved: float = 0.0) -> Job:
        """Return the job as a what-if knows it: it executes for ``seconds``, without body, traffic and cancellation.

        Its checkpoints take as long as they do alone.

        >>> Job(run=5, requested=60, cancel=9).as_seen(60.0) == Job(run=60, requested=60)
        True
        """
        seen = object.__new__(Job)
        put = object.__setattr__  # nothing is checked again: a tenth of the cost of attrs.evolve
        for name in _FIELDS:
            put(seen, name, getattr(self, name))
        put(seen, "run", self._work_in(seconds, saved))
        for name, default in PROGRAM.items():
            put(seen, name, default)
        if self.checkpoint is not None:
            put(seen, "checkpoint", self.checkpoint.alone)
        put(seen, "cancel", None)
        put(seen, "outcome", "completed")
        put(seen, "exit_code", None)
        put(seen, "traffic", None)
        put(seen, "compute", 0.0)
        return seen

    @property
    def asked(self) -> float:
        """Its requested time in seconds; infinite without one.

        >>> Job(run=5, requested=60).asked, Job(run=5).asked
        (60, inf)
        """
        return INFINITY if self.requested is None else self.requested

    @property
    def partition_text(self) -> int | str | None:
        """Its partition as in a log: several are ``"a,b"``.

        >>> Job(run=1, partitions=["a", "b"]).partition_text
        'a,b'
        """
        return ",".join(map(str, self.partitions)) if self.partitions else self.partition


_FIELDS = tuple(attrs.fields_dict(Job))


def partitions_in(text: int | str | None) -> dict[str, Any]:
    """Return the ``partition`` or ``partitions`` of a :class:`Job` for the cell of a log.

    >>> partitions_in("a,b"), partitions_in("any"), partitions_in("a")
    ({'partitions': 'a,b'}, {'partitions': 'any'}, {'partition': 'a'})
    """
    several = isinstance(text, str) and ("," in text or text == ANY)
    return {"partitions": text} if several else {"partition": text}


class Refusal(str):
    """Why a job can never run: a text about the job, counted in reports by the rule that it breaks.

    >>> reason = Refusal.of("8 processors", "batch has 4")
    >>> reason, reason.rule
    ('8 processors requested, batch has 4', 'batch has 4')
    """

    rule: str

    def __new__(cls, text: str, rule: str) -> Self:
        made = super().__new__(cls, text)
        made.rule = rule
        return made

    @classmethod
    def of(cls, asked: str, rule: str) -> Self:
        """Return the refusal of a request that a rule excludes."""
        return cls(f"{asked} requested, {rule}", rule)

    def __reduce__(self) -> tuple[Any, ...]:
        return Refusal, (str(self), self.rule)


def rule_of(reason: str) -> str:
    """Return the rule that a reason is counted by: its own, or its whole text."""
    return reason.rule if isinstance(reason, Refusal) else reason


class JobRequest:
    """The request of a job, as policies see it: a :class:`Job` without its run time, outcome, body and cancellation.

    Attributes
    ----------
    consumables
        the named amounts that the job holds while it runs: its consumables and its bandwidths (bytes/s)
    has_body
        whether the job runs a body or a workflow; such a job cannot be suspended
    partition
        as in a log: several are ``"a,b"``
    """

    __slots__ = (
        "bandwidth",
        "checkpoint",
        "chunks",
        "consumables",
        "cores_per_node",
        "dependencies",
        "exclusive",
        "frequency_sensitivity",
        "gpu",
        "gpu_memory",
        "gpus_per_node",
        "grace",
        "group",
        "has_body",
        "id",
        "keeps_work",
        "memory_per_node",
        "name",
        "nodes",
        "on_preempt",
        "options",
        "partition",
        "priority",
        "processors",
        "queue",
        "requested",
        "slack",
        "submit",
        "traffic",
        "user",
    )

    def __init__(self, job: Job) -> None:
        self.id = job.id
        self.name = job.name
        self.submit = job.submit
        self.processors = job.processors
        self.requested = job.requested
        self.nodes = job.nodes
        self.cores_per_node = job.cores_per_node
        self.gpus_per_node = job.gpus_per_node
        self.gpu = job.gpu
        self.gpu_memory = job.gpu_memory
        self.memory_per_node = job.memory_per_node
        self.consumables = job.amounts
        self.bandwidth = job.bandwidth
        self.user = job.user
        self.group = job.group
        self.queue = job.queue
        self.partition = job.partition_text
        self.priority = job.priority
        self.dependencies = job.dependencies
        self.on_preempt = job.on_preempt
        self.keeps_work = job.keeps_work
        self.checkpoint = job.checkpoint
        self.grace = job.grace
        self.has_body = job.has_body
        self.traffic = job.traffic
        self.exclusive = job.exclusive
        self.options = job.options
        self.chunks = job.chunks
        self.slack = job.slack
        self.frequency_sensitivity = job.frequency_sensitivity

    def __repr__(self) -> str:
        return f"<request of job {self.id if self.id is not None else self.name}: {self.processors} processors>"
