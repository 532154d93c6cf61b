"""The state shared by the parts of a cluster: places, options and observers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from simmodel.environment import END, SUBMIT, Environment, heard
from simmodel.foundation.errors import InputError, SnapshotError
from simmodel.platform.options import ESTIMATES
from simmodel.resources.pools.counts import CountPool
from simmodel.resources.pools.pool import Consumables, Limits, Pool
from simmodel.systems.system import Offers
from simmodel.work.job import Refusal

if TYPE_CHECKING:
    from simmodel.platform.cluster import ClusterSpec, PartitionSpec
    from simmodel.platform.options import ClusterOptions
    from simmodel.records.recorder import JobRecorder
    from simmodel.resources.data.storage import Storage
    from simmodel.resources.network.flow import Flow
    from simmodel.resources.network.network import Network
    from simmodel.scheduling.scheduler import Scheduler
    from simmodel.scheduling.usage import Usage
    from simmodel.systems.dependencies import Dependencies
    from simmodel.work.checkpoint import Checkpoint
    from simmodel.work.job import Job, LiveJob, Run
    from simmodel.work.prepare import Estimates

__all__ = ["ClusterCore", "Hooks", "SharedIO"]

UsageState: TypeAlias = "tuple[float, tuple[tuple[int | str | None, float, float, float], ...]]"


class SharedIO:
    """The storages and links of a cluster, and the amounts of them and of its consumables that jobs hold.

    Parameters
    ----------
    env, spec
        the environment; the spec of the cluster

    Attributes
    ----------
    storages, network
        the live storages by name; the network of the links, or ``None`` if the cluster has none
    amounts
        the free amounts of all consumables, storages and links: a share that a job takes is withheld from others

    >>> from simmodel.environment import Environment
    >>> from simmodel.platform import ClusterSpec, PartitionSpec, StorageSpec
    >>> scratch = StorageSpec(name="scratch", read_bandwidth=100.0, write_bandwidth=80.0)
    >>> io = SharedIO(Environment(), ClusterSpec(partitions=[PartitionSpec(processors=4)], storages=[scratch]))
    >>> io.amounts.take({"scratch": 30}); io.amounts.free, io.storages["scratch"].writing.withheld
    ({'scratch': 50.0}, 30.0)
    """

    def __init__(self, env: Environment, spec: ClusterSpec) -> None:
        amounts = {each.name: each.amount for each in spec.consumables}
        self._alone: dict[str, tuple[float, float, float]] = {}  # latency (s); bytes/s of writing and reading alone
        told: dict[str, Callable[[float], object]] = {}
        self.storages: dict[str, Storage] = {}
        self.network: Network | None = None
        if spec.storages:
            from simmodel.resources.data.storage import make_storage

            self.storages = {each.name: make_storage(env, each) for each in spec.storages}
        for name, storage in self.storages.items():
            read, write = storage.reading.bandwidth, storage.writing.bandwidth
            self._alone[name] = 0.0, write, read
            amounts[name] = min(read, write)
            told[name] = storage.withhold
        if spec.links:
            from simmodel.resources.network.network import Network

            self.network = Network(env, spec.links)
            amounts |= {name: link.capacity for name, link in self.network.links.items()}
            told |= {name: partial(self.network.withhold, name) for name in self.network.links}
            self._alone |= {each.name: (each.latency, each.bandwidth, each.bandwidth) for each in spec.links}
        self.amounts = Consumables(amounts, told)

    # ------------------------------------------------------------------ checkpoints

    def timed(self, checkpoint: Checkpoint) -> Checkpoint:
        """Return a checkpoint with the seconds that its bytes take alone; unchanged if there is no such place here."""
        if checkpoint.to not in self._alone:
            return checkpoint
        latency, write, read = self._alone[checkpoint.to]
        size = checkpoint.size
        return attrs.evolve(checkpoint, write_time=latency + size / write, read_time=latency + size / read)

    def timed_job(self, job: Job) -> Job:
        """Return a job whose checkpoints, if they are written somewhere, have the times that they take alone."""
        checkpoint = job.checkpoint
        if checkpoint is None or not checkpoint.to:
            return job
        return attrs.evolve(job, checkpoint=self.timed(checkpoint))

    def why_not(self, job: Job) -> str | None:
        """Return why the checkpoints of a job can never be written here, or ``None``."""
        checkpoint = job.checkpoint
        if checkpoint is None or not checkpoint.to or checkpoint.to in self._alone:
            return None
        known = ", ".join(self._alone) or "none"
        return Refusal.of(f"checkpoints to storage or link {checkpoint.to!r}", f"there are {known}")

    def move(self, to: str, size: float, job: int | str, call: Callable[[Any], None], *, read: bool) -> Flow:
        """Begin to write or read bytes of a checkpoint of a job; ``call(flow)`` is called at the end.

        A transfer waits while its link is down.
        """
        storage = self.storages.get(to)
        if storage is not None:
            return (storage.read if read else storage.write)(size, call, f"checkpoint of job {job}")
        assert self.network is not None
        source, destination = (None, job) if read else (job, None)
        transfer = self.network.transfer(size, route=(to,), source=source, destination=destination, when_down="wait")
        transfer.callbacks.append(call)
        return transfer

    # ------------------------------------------------------------------ snapshots

    def check_copy(self) -> None:
        """Raise a :class:`SnapshotError` if a copy would lose files, accesses or transfers."""
        for storage in self.storages.values():
            if storage.files or storage.waiting or len(storage.reading) or len(storage.writing):
                raise SnapshotError(f"storage {storage.name} cannot be copied: scripts have files or accesses there")
        for link in self.network.links.values() if self.network is not None else ():
            spec = link.spec
            if link.users or (link.bandwidth, link.latency, link.stopped) != (spec.bandwidth, spec.latency, False):
                raise SnapshotError(f"link {link.name} cannot be copied: a script uses it or has changed it")


Hooks = tuple[Callable[..., object], ...]

_HOOKS = (
    "job_submitted",
    "job_eligible",
    "job_rejected",
    "job_started",
    "job_ended",
    "job_suspended",
    "job_resumed",
    "job_resized",
    "job_cancelled",
    "job_checkpointed",
    "job_slowed",
    "workflow_started",
    "claim_granted",
    "claim_resized",
    "claim_ended",
    "place_changed",
)


class ClusterCore:
    """The state shared by the parts of a cluster.

    Attributes
    ----------
    env, spec, name, options
        those of the cluster
    estimates, overrun
        from the options; with predictions, ``estimates`` is ``"requested"``, from which they depart
    predictions
        the planner of jobs with predictions, which hears of them after the recorder, if the options say so
    io
        its storages, links and consumables
    pools, places, only_pool
        the places by name; in order; the single one, or ``None``
    places_named
        the places of jobs with these ``partitions``, of those that came so far
    by_event, submits_first
        whether each event brings a decision; whether submissions then precede ends
    end_priority, submit_priority, calendar_priority
        event priorities of ends, submissions and capacity changes within an instant
    known, dependencies
        the submitted jobs that others can depend on, by id; their dependencies, ``None`` before the first one
    usages
        records of the consumption of users
    recorder
        the recorder of the cluster's jobs, or ``None`` if it keeps no record
    on_submitted, on_started, on_ended
        hooks that are called for every job
    wake, wake_anyway, wake_last, decide
        request a decision at the end of the instant or, if ``by_event``, of the event; the same even if nothing waits;
        the same as the last act of an event; decide at once. They do nothing until a scheduler is asked
    settle
        releases the grants of jobs that have ended by now, for submissions that precede ends
    tries_every_submission
        whether the policy also decides when a new job does not fit
    """

    wake: Callable[[], object]
    wake_anyway: Callable[[], object]
    wake_last: Callable[[], object]
    decide: Callable[[], object]
    settle: Callable[[], object]

    def __init__(self, env: Environment, spec: ClusterSpec, name: str, options: ClusterOptions) -> None:
        self.env = env
        self.spec = spec
        self.name = name
        self.options = options
        predicts = options.estimates not in ESTIMATES
        self.estimates: Estimates = "requested" if predicts else options.estimates
        self.predictions: object = None
        self.overrun = options.overrun
        self.io = SharedIO(env, spec)
        self.pools: dict[str, Pool] = _pools(env, spec, self.io.amounts)
        self.places = tuple(self.pools.values())
        for pool in self.places:
            pool.system = name
        self.only_pool = self.places[0] if len(self.places) == 1 else None
        self.places_named: dict[tuple[int | str, ...], list[Pool]] = {}
        self.by_event = options.decide_on == "event"
        self.submits_first = self.by_event and options.event_order == "submits-first"
        self.end_priority = SUBMIT if self.submits_first else END
        self.calendar_priority = self.end_priority + 0.5
        self.submit_priority = END if self.submits_first else SUBMIT
        self.wake = self.wake_anyway = self.wake_last = self.decide = _nothing
        self.tries_every_submission = False
        self.known: dict[Any, LiveJob] = {}
        self.dependencies: Dependencies | None = None
        self.usages: list[Usage] = []
        self.recorder: JobRecorder | None = None
        self._followers: list[object] = []
        self._hooks: dict[str, Hooks] = {}
        self.on_submitted: Hooks = ()
        self.on_started: Hooks = ()
        self.on_ended: Hooks = ()
        env.on_hooks_changed(self.find_hooks)

    @property
    def offers(self) -> Offers:
        """The requests that it supports in addition to processors and time."""
        nodes = any(partition.nodes for partition in self.spec.partitions)
        queues = tuple(queue.name for queue in self.spec.queues)
        shares = (*self.io.storages, *(self.io.network.links if self.io.network is not None else ()))
        types = any(kind.gpu_types for partition in self.spec.partitions for kind in partition.nodes)
        return Offers(nodes, queues, tuple(self.pools) if self.only_pool is None else (), shares, types)

    @property
    def largest(self) -> int:
        """The most processors that one job can have."""
        return max(pool.largest for pool in self.places)

    @property
    def too_large(self) -> str:
        """The reason to reject a job of a log with more processors than that."""
        on_hosts = self.largest < max(pool.capacity for pool in self.places)
        return "larger than any host" if on_hosts else "larger than the machine"

    @property
    def lost(self) -> str:
        """The status of runs that a failure stops."""
        return "requeued" if self.spec.on_failure == "resubmit" else "lost"

    def unblock(self, job: LiveJob) -> None:
        if self.dependencies is not None:
            self.dependencies.unblock(job)

    def check_copy(self) -> None:
        """Raise a :class:`SnapshotError` if a copy would lose files, accesses, transfers or claims."""
        self.io.check_copy()
        for pool in self.places:
            for claim in (*pool.claims.waiting, *pool.claims.held):
                who = f"process {claim.process.name}" if claim.process is not None else "an unknown process"
                raise SnapshotError(f"{who}, which has {claim.describe()}, cannot be copied: it is a generator")

    def restore_usages(self, usage: Iterable[UsageState], runs: Iterable[Run], now: float) -> None:
        """Restore the consumption of users (s) by its half-life; one that is not among the saved ones begins now."""
        saved = list(usage)
        for each in self.usages:
            same = [state for state in saved if state[0] == each.half_life]
            if same:
                saved.remove(same[0])
                each.restore(same[0][1])
            else:
                for run in runs:
                    each.change(run.job.user, run.job.processors, now)

    def ask(self, scheduler: Scheduler) -> None:
        """Ask a scheduler for decisions from now on, after each event or at the end of an instant."""
        self.tries_every_submission = scheduler.policy.tries_every_submission
        self.decide = scheduler.decide
        if not self.by_event:
            self.wake, self.wake_anyway = scheduler.wake, scheduler.wake_for_running
            self.wake_last = scheduler.wake_last
            return

        def decide() -> None:
            if self.submits_first:
                self.settle()
            scheduler.decide()

        def decide_anyway() -> None:
            scheduler.asked_for = True
            decide()

        self.wake = self.wake_last = decide
        self.wake_anyway = decide_anyway

    def hear(self, recorder: JobRecorder | None) -> None:
        """Keep the record by a recorder, if any, whose hooks are called after those of observers."""
        self.recorder = recorder
        self.find_hooks()

    def record_submissions(self) -> None:
        """Record jobs at their submission from now on: the recorder does not expect all of them."""
        recorder = self.recorder
        if recorder is not None and not recorder.hears_submissions:
            recorder.hear_submissions()
            self.find_hooks()

    def follow(self, follower: object) -> None:
        """Call the hooks of what follows this cluster alone, after all others."""
        self._followers.append(follower)
        self.find_hooks()

    def find_hooks(self) -> None:
        """Collect the hooks of observers, of the cluster's recorder, its predictions and its followers, in order."""
        for name in _HOOKS:
            called = (heard(each, name) for each in (self.recorder, self.predictions, *self._followers))
            self._hooks[name] = self.env.hooks(name) + tuple(call for call in called if call is not None)
        self._bind()

    def tell_only(self, **hooks: Callable[..., object]) -> None:
        """Call no hooks but those of observers, such as its policy, then these, and those of its predictions."""
        for name in _HOOKS:
            called = (hooks.get(name), heard(self.predictions, name))
            self._hooks[name] = self.env.hooks(name) + tuple(call for call in called if call is not None)
        self._bind()

    def _bind(self) -> None:
        self.on_submitted = self._hooks["job_submitted"]
        self.on_started = self._hooks["job_started"]
        self.on_ended = self._hooks["job_ended"]
        self.on_resized = self._hooks["job_resized"]

    def tell(self, hook: str, *what: Any) -> None:
        for call in self._hooks[hook]:
            call(*what)


def _nothing() -> None:
    """Do nothing."""


def _pools(env: Environment, spec: ClusterSpec, consumables: Consumables) -> dict[str, Pool]:
    """Return the pools of a cluster by name: one per partition, then one per reservation; all share the consumables.

    Raises
    ------
    InputError
        if a reservation names nodes that its partition does not have
    """
    pools: dict[str, Pool] = {}
    for partition in spec.partitions:
        pools[partition.name] = _pool(env, partition, consumables)
    for reservation in spec.reservations:
        from simmodel.systems.cluster.reservations import reserve

        pools[reservation.name] = reserve(env, reservation, pools[spec.partition(reservation.partition).name])
    return pools


def _pool(env: Environment, partition: PartitionSpec, consumables: Consumables) -> Pool:
    pool: Pool
    if partition.nodes:
        _check_placement(partition)
    if partition.one_host:
        from simmodel.resources.pools.hosts import HostPool

        pool = HostPool(env, partition.name, partition, consumables)
    elif partition.nodes:
        from simmodel.resources.pools.nodes import NodePool

        pool = NodePool(env, partition.name, partition, consumables)
    else:
        assert partition.processors is not None
        pool = CountPool(env, partition.name, partition.processors, consumables)
        pool.spec = partition
    pool.priority = float(partition.priority)
    pool.limits = Limits(partition.max_processors, partition.max_requested)
    return pool


def _check_placement(partition: PartitionSpec) -> None:
    from simmodel.resources.pools.placements import placement_named

    placement, name = placement_named(partition.placed_by), partition.placed_by
    place = f"partition {partition.name}, placement"
    reason = None if placement.refuses is None else placement.refuses(partition)
    if reason is not None:
        raise InputError(f"{name!r} {reason}", place=place)
    if partition.one_host and placement.enough is not None:
        raise InputError(f"must be another one with one_host, got {name!r}", place=place)
