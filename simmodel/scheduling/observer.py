"""Observers of simulations: one method per hook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from simmodel.environment import hook, is_hook
from simmodel.foundation.errors import WrongType

if TYPE_CHECKING:
    from simmodel.resources.data.storage import Storage
    from simmodel.resources.network.flow import Channel, Flow
    from simmodel.resources.network.links import Link
    from simmodel.resources.network.shared_channel import Access
    from simmodel.resources.network.transfer import Transfer
    from simmodel.resources.pools.claims import Claim, Grant
    from simmodel.resources.processors.host import Execution
    from simmodel.resources.processors.services import Moved
    from simmodel.resources.processors.taskplace import TaskPlace
    from simmodel.scheduling.protocol import GridSite, MovedFile, Place
    from simmodel.scheduling.scheduler import Scheduler
    from simmodel.work.checkpoint import Kept
    from simmodel.work.job import Brokered, LiveJob, Run
    from simmodel.work.taskset import LiveTask
    from simmodel.work.traffic import Slowed

__all__ = ["Observer"]

_OTHERWISE = frozenset({"decide"})  # close to ``decided``, but a method of every policy


class Observer:
    """The base class of observers: override the hooks of interest and pass an instance to ``env.observe``.

    Hooks that are not overridden are never called and cost nothing. A hook is called right after the change, at
    ``env.now`` (s), and must not change the system. Other methods are allowed, but a name close to that of a hook
    counts as a typo. To add hooks, for instance for a custom kind of system, declare empty methods with
    :func:`~simmodel.environment.hook` in a subclass.

    Raises
    ------
    TypeError
        a subclass has a public method that is not a hook, but has a similar name

    >>> from simmodel import Cluster, Environment, Job
    >>> class Starts(Observer):
    ...     def job_started(self, run): print(run.job.id, "starts on", run.place.name, "at", run.started)
    >>> env = Environment(); env.observe(Starts())
    >>> cluster = Cluster(env, 4)
    >>> for _ in range(2): _ = cluster.submit(Job(processors=3, run=10))
    >>> env.run()
    1 starts on batch at 0
    2 starts on batch at 10.0
    """

    __slots__ = ()
    HOOKS: ClassVar[set[str]] = set()
    """The names of all hooks."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = {name: each for name, each in vars(cls).items() if callable(each) and not name.startswith("_")}
        Observer.HOOKS.update(name for name, each in own.items() if is_hook(each))
        if not cls.__module__.startswith("simmodel."):  # the package's own are checked by its tests
            cls.check_names()

    @classmethod
    def check_names(cls) -> None:
        """Raise ``WrongType`` if a public method of the class is not a hook but has a similar name."""
        from difflib import get_close_matches

        for name, each in vars(cls).items():
            if name.startswith("_") or not callable(each) or name in Observer.HOOKS or name in _OTHERWISE:
                continue
            if close := get_close_matches(name, sorted(Observer.HOOKS), n=1, cutoff=0.8):
                raise WrongType(
                    f"{cls.__name__}.{name} is not a hook; did you mean {close[0]}? "
                    "Names of other methods may begin with '_'"
                )

    # ------------------------------------------------------------------ schedulers

    @hook
    def decided(self, scheduler: Scheduler, seconds: float, decisions: int, /) -> None:
        """The policy was asked: its wall-clock seconds and its number of decisions."""

    # ------------------------------------------------------------------ jobs: clusters and other systems that run them

    @hook
    def job_submitted(self, job: LiveJob, /) -> None:
        """A job was submitted."""

    @hook
    def job_eligible(self, job: LiveJob, /) -> None:
        """A job's dependencies are fulfilled."""

    @hook
    def job_rejected(self, job: LiveJob, reason: str, /) -> None:
        """A job was rejected: it can never run anywhere."""

    @hook
    def job_promised(self, job: LiveJob, place: Place, at: float, /) -> None:
        """The policy promised a job a start on a place at an instant (s)."""

    @hook
    def job_started(self, run: Run, /) -> None:
        """A job was started."""

    @hook
    def job_ended(self, run: Run, status: str, /) -> None:
        """An execution ended: completed, timeout, failed, cancelled, lost, or preempted or requeued to run again."""

    @hook
    def job_suspended(self, run: Run, /) -> None:
        """A job was suspended."""

    @hook
    def job_resumed(self, run: Run, /) -> None:
        """A suspended job resumed."""

    @hook
    def job_resized(self, run: Run, processors: int, grant: Grant, /) -> None:
        """A job has another size, ``run.job.processors``; before, it had ``processors`` and held ``grant``.

        It also follows ``job_started``, with the size of the start, if that is not the preferred one.
        """

    @hook
    def job_cancelled(self, job: LiveJob, /) -> None:
        """A job was withdrawn while it waited."""

    @hook
    def job_checkpointed(self, run: Run, kept: Kept, lost: float, /) -> None:
        """A job with checkpoints ends or goes back to the queue, which loses ``lost`` seconds of this execution."""

    @hook
    def job_slowed(self, run: Run, slowed: Slowed, /) -> None:
        """An execution of a job with traffic ends or is stopped; ``slowed``: by whom, and its seconds alone."""

    @hook
    def workflow_started(self, job: LiveJob, machine: Any, /) -> None:
        """The workflow of a job started inside its nodes, on a :class:`~simmodel.systems.machine.system.Machine`."""

    @hook
    def claim_granted(self, claim: Claim, /) -> None:
        """A process got the capacity that it claimed."""

    @hook
    def claim_resized(self, claim: Claim, processors: int, grant: Grant, /) -> None:
        """A claim grew or shrank to ``claim.job.processors``; before, it had ``processors`` and held ``grant``."""

    @hook
    def claim_ended(self, claim: Claim, status: str, /) -> None:
        """A claim gave its capacity back: ``released``, ``lost`` in a failure, or ``preempted`` by another claim."""

    @hook
    def place_changed(self, place: Place, cause: str, /) -> None:
        """The capacity of a place changed: an outage or a reservation began or ended, or it was resized."""

    @hook
    def job_handed(self, job: LiveJob, place: Place, /) -> None:
        """A broker handed a job to one of its places."""

    # ------------------------------------------------------------------ tasks: machines

    @hook
    def task_ready(self, task: LiveTask, /) -> None:
        """All parents of a task are done."""

    @hook
    def task_assigned(self, task: LiveTask, place: TaskPlace, /) -> None:
        """The policy assigned a task to a processor."""

    @hook
    def task_ended(self, task: LiveTask, place: TaskPlace, stamps: Sequence[float], /) -> None:
        """A task is done; ``stamps`` are its :data:`~simmodel.resources.processors.services.STAMPS` (s)."""

    @hook
    def task_stopped(self, task: LiveTask, place: TaskPlace, /) -> None:
        """A task was stopped before its end."""

    @hook
    def data_moved(self, moved: Moved, /) -> None:
        """A data object was moved between memory pools."""

    # ------------------------------------------------------------------ networks, hosts and other fluid resources

    @hook
    def transfer_started(self, transfer: Transfer, /) -> None:
        """A transfer started, with its latency."""

    @hook
    def transfer_ended(self, transfer: Transfer, /) -> None:
        """A transfer ended, with ``transfer.status``."""

    @hook
    def link_load_changed(self, link: Link, /) -> None:
        """The load of a link changed (``link.load``, bytes/s)."""

    @hook
    def link_changed(self, link: Link, /) -> None:
        """The bandwidth of a link changed, or it went down or came up."""

    @hook
    def execution_started(self, execution: Execution, /) -> None:
        """A computation started on a host."""

    @hook
    def execution_ended(self, execution: Execution, /) -> None:
        """A computation on a host ended."""

    @hook
    def host_load_changed(self, channel: Channel, /) -> None:
        """The load of a host changed (``channel.load``, flop/s)."""

    # ------------------------------------------------------------------ grids

    @hook
    def job_created(self, job: Brokered, /) -> None:
        """A job was submitted to a grid."""

    @hook
    def job_assigned(self, job: Brokered, site: GridSite, /) -> None:
        """A grid chose a site for a job: its overhead and its files come next, then the queue there."""

    @hook
    def job_queued(self, job: LiveJob, site: GridSite, /) -> None:
        """A job that had overhead or files joins the queue of its site."""

    @hook
    def job_phase(self, job: Brokered, site: GridSite, phase: str, /) -> None:
        """A job with overhead or files goes on to another phase of its stay at a site: ``reading``, ``writing``, ..."""

    @hook
    def job_retried(self, job: Brokered, site: GridSite, reason: str, /) -> None:
        """A job failed at a site, and waits for the grid to choose again."""

    @hook
    def job_finished(self, job: Brokered, site: GridSite, /) -> None:
        """A job of a grid has ended for good, its outputs in place; ``job.state`` is its final state."""

    @hook
    def file_transfer_started(self, fetch: MovedFile, /) -> None:
        """A file is on its way: ``fetch.file`` of ``fetch.size`` bytes from ``fetch.source`` to ``fetch.site``."""

    @hook
    def file_transfer_ended(self, fetch: MovedFile, transfer: Transfer, /) -> None:
        """The transfer of a file ended, with ``transfer.status``."""

    @hook
    def file_transfer_failed(self, fetch: MovedFile, reason: str, /) -> None:
        """A file does not come: nobody needs it any more, or for this reason."""

    @hook
    def site_down(self, site: GridSite, /) -> None:
        """A site went down."""

    @hook
    def site_up(self, site: GridSite, /) -> None:
        """A site is up again."""

    @hook
    def site_closed(self, site: GridSite, /) -> None:
        """A site takes no new jobs."""

    @hook
    def site_reopened(self, site: GridSite, /) -> None:
        """A site takes jobs again."""

    # ------------------------------------------------------------------ storages

    @hook
    def file_added(self, storage: Storage, file: str, size: float, cause: str, /) -> None:
        """A file came into a storage, with its bytes and the reason: ``given``, or as whoever adds it calls it."""

    @hook
    def file_dropped(self, storage: Storage, file: str, size: float, cause: str, /) -> None:
        """A file left a storage: ``evicted``, ``last replica evicted``, or as whoever drops it calls it."""

    @hook
    def read_started(self, access: Access, /) -> None:
        """Someone began to read from a storage (``access.channel.name``), for ``access.about``."""

    @hook
    def read_ended(self, access: Access, /) -> None:
        """A reading ended, with ``access.status``."""

    @hook
    def write_started(self, access: Access, /) -> None:
        """Someone began to write to a storage."""

    @hook
    def write_ended(self, access: Access, /) -> None:
        """A writing ended, with ``access.status``."""

    # ------------------------------------------------------------------ plain flows

    @hook
    def flow_started(self, flow: Flow, /) -> None:
        """A flow of a plain :class:`~simmodel.resources.network.fluid.Fluid` started."""

    @hook
    def flow_ended(self, flow: Flow, /) -> None:
        """A flow of a plain :class:`~simmodel.resources.network.fluid.Fluid` ended."""

    @hook
    def channel_load_changed(self, channel: Channel, /) -> None:
        """The load of a channel of a plain :class:`~simmodel.resources.network.fluid.Fluid` changed."""


Observer.HOOKS.update(name for name, each in vars(Observer).items() if is_hook(each))
