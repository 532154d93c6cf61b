"""The core of a grid: the life of jobs between sites."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from simmodel.foundation.display import counted
from simmodel.foundation.errors import InputError, unknown
from simmodel.platform.grid import DelaySpec, GridSpec
from simmodel.scheduling.problem import Problem
from simmodel.systems.broker.core import Part
from simmodel.systems.broker.system import Broker
from simmodel.systems.cluster.system import Cluster
from simmodel.systems.destination import BrokeredJob
from simmodel.systems.grid.data import FAR, DataManager, Hopeless
from simmodel.systems.grid.data_scheduler import DataScheduler
from simmodel.systems.grid.ledger import GridLedger, Try
from simmodel.systems.grid.outages import Outages
from simmodel.systems.grid.site import Disks, GridJob, Site, grant_on
from simmodel.systems.grid.staging import Stays
from simmodel.work.job import OVER, Job
from simmodel.work.prepare import as_workload

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.records.tables import Change
    from simmodel.resources.pools.allocation import Allocation
    from simmodel.scheduling.protocol import Decides, Estimate, Place, View
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.systems.dependencies import Dependencies
    from simmodel.systems.destination import Destination
    from simmodel.systems.kinds import GivenPolicies
    from simmodel.systems.system import EstimateBasis, Live, System
    from simmodel.work.job import LiveJob, Run
    from simmodel.work.prepare import JobsGiven, Overrun, Prepared
    from simmodel.work.taskset import TaskSet
    from simmodel.work.workflow import Workflow
    from simmodel.work.workload import Workload

__all__ = ["GridCore", "asked_of_sites", "problem_of_sites", "site_policies"]


class Draining(Protocol):
    """The writer of the record of a grid while the run goes on."""

    def came(self) -> None:
        """Count a job that comes by itself."""
        ...

    def drain(self) -> None:
        """Write the rows of the jobs that have ended."""
        ...


class GridCore(Broker):
    """A grid without snapshots and results: see :class:`~simmodel.systems.grid.system.Grid`."""

    kind = "grid"
    asks: ClassVar[tuple[Decides, ...]] = ("places", "plans", "systems")
    own_homes = True
    places: tuple[Site, ...]
    ledger: GridLedger
    stream: Draining | None = None  # type: ignore[assignment]  # of its own record, not those of its sites

    def __init__(
        self,
        env: Environment,
        spec: GridSpec,
        policy: PolicyLike = "least-loaded",
        *,
        policies: GivenPolicies = None,
        by: EstimateBasis = "requested",
        data: PolicyLike = "nearest",
        name: str | None = None,
        rank: int | None = None,
        clusters: Sequence[Cluster] | None = None,
        overrun: Overrun = "stop",
    ) -> None:
        self.spec = spec
        begin = clusters is None
        if clusters is None:
            chosen = site_policies(spec, policies)
            clusters = [
                Cluster(env, site.cluster, chosen[site.name], name=site.name, record=False, overrun=overrun)
                for site in spec.sites
            ]
        super().__init__(env, clusters, policy, by=by, name=name or spec.name, rank=rank)
        self.ledger = GridLedger()
        self.sites: Mapping[str, Site] = {site.name: site for site in self.places}
        self.dispatching = True
        self.data = DataManager(env, spec, self.places, spec.retries, begin)
        for site in self.places:
            site.disks = Disks(env, site.spec, site.storage)
            site.seconds_to = self.data.seconds
        self.data_scheduler = DataScheduler(self, data, begin=begin)
        self.view.estimator, self.view.simulated = self._quick_estimate, self._simulated_estimate
        self.view.files = self.data.catalogue
        self.view.takes = self._takes_jobs
        self.view.problem = self._problem
        self.of_nodes = asked_of_sites(spec)
        self.planned: dict[BrokeredJob, Site] = {}  # where jobs go that a planner has decided on, once they are ready
        self._written: set[str] = set()  # the files that tasks of workflows write
        if spec.cycle is not None:
            self.scheduler.pause = partial(self._draw_pause, spec.cycle)
        self.stays = Stays(self, self.data)
        self.outages = Outages(self)
        self.reasons: dict[BrokeredJob, str] = {}  # why the cluster of a job stops or withdraws it
        self.changes: list[Change] = []  # of the cores in service at the sites
        self.elsewhere: tuple[Part, ...] = ()  # the parts of the record that other processes have
        self._waiters: dict[BrokeredJob, Any] = {}  # the events of jobs whose cluster has finished with them
        if begin:
            self.outages.restore()
            self.outages.failures.begin()
        self._on_assigned: tuple[Callable[..., object], ...] = ()
        self._on_queued: tuple[Callable[..., object], ...] = ()
        self._on_finished: tuple[Callable[..., object], ...] = ()
        env.on_hooks_changed(self._find_hooks)

    def __repr__(self) -> str:
        return f"<Grid {self.name}: {len(self.queue)} waiting, {len(self.places)} sites>"

    def _find_hooks(self) -> None:
        self._on_created = self.env.hooks("job_created")
        self._on_assigned = self.env.hooks("job_assigned")
        self._on_queued = self.env.hooks("job_queued")
        self._on_finished = self.env.hooks("job_finished")

    def place_of(self, system: System[Live]) -> Destination:
        """Return a site."""
        assert isinstance(system, Cluster)
        number = next(i for i, site in enumerate(self.spec.sites) if site.name == system.name)
        return Site(system, self.by, self.spec.sites[number], number)

    def _draw_pause(self, cycle: DelaySpec) -> float:
        return cycle.draw(self.env.rng(f"{self.name}.cycle"))

    def _problem(self, jobs: Iterable[BrokeredJob] | None = None) -> Problem:
        """Return the planning problem of jobs, by default of those without a site or a planned one."""
        if jobs is None:
            blocked = (job for job in self.blocked() if job not in self.planned)
            jobs = sorted([*self.queue, *blocked], key=lambda job: job.row)
        return problem_of_sites(jobs, self.places, self.data, self.planned, float(self.env._now))

    def _takes_jobs(self) -> bool:
        return self.dispatching and any(site.open for site in self.places)

    def _quick_estimate(self, view: View, job: BrokeredJob, site: Destination) -> Estimate:
        return self._noted(job, site, site.quick_estimate(job))

    def _simulated_estimate(self, view: View, job: BrokeredJob, site: Destination) -> Estimate:
        return self._noted(job, site, site.estimate(job)._replace(transfer=site.transfer(job)))

    # ------------------------------------------------------------------ submission

    def check_names(self, job: Job, label: object, home: Destination | None = None) -> None:
        """Check that a job names no queue or partition: sites have none."""
        super().check_names(job, label, home or self.named.get(str(job.site)) or self.places[0])

    def why_not(self, work: Job | TaskSet | Workflow) -> str | None:
        """Return why no site can ever run the work, or ``None``: its own site may be in another grid."""
        site = work.site if isinstance(work, Job) else None
        if site is not None and str(site) not in self.named:
            return f"unknown site {site!r}"
        home = None if site is None else self.named[str(site)]
        return self._why_nowhere(self.live(self._checked(work), self.submitted, home, self.families[0]))

    def accept(self, work: Job | TaskSet | Workflow, home: Any = None, *, at: float | None = None) -> BrokeredJob:
        """Submit a job whose id may occur again; raises as :meth:`submit`."""
        if home is None and isinstance(work, Job) and work.site is not None:
            home = work.site
        self.check_receives()
        self.ledger.grow(self.submitted + 1 - self.ledger.rows)
        if self.stream is not None:
            self.stream.came()
        return super().accept(work, home, at=at)

    def replay(self, workload: JobsGiven, home: Any = None) -> Prepared:
        """Submit the jobs of a workload, each at its instant; return the report of repaired and rejected jobs.

        Jobs that no site can ever run are recorded as rejected. A column ``site`` names the home of each job. The files
        that the tasks of workflows read and none writes are at the home from now on, by default the first site, unless
        some site has them.

        Raises
        ------
        InputError
            if the home is unknown or has no room, a file has two sizes, or tasks write files that others write
        """
        workload = as_workload(workload, of_nodes=self.of_nodes)
        self._begin_with(workload, self.home(home) or self.places[0])
        prepared = super().replay(workload, home)
        self.ledger.grow(self.submitted - self.ledger.rows)
        return prepared

    def _begin_with(self, flow: Workload, home: Destination) -> None:
        """Put the files of a workflow that must exist before its tasks run where they are."""
        if flow.files is None or flow.specs is None:
            return
        written = {file.name: file for job in flow.specs for file in job.outputs}
        begins = {file.name for file in flow.files}
        for name in (*begins, *written):
            if name in self._written or (name not in begins and self.data.replicas(name)):
                message = "must be written by no other job: pass several workflows together, which tells them apart"
                raise InputError(message, flow.name, f"file {name!r}")
        placed = [file for file in flow.files if not self.data.replicas(file.name)]
        for file in placed:
            self.data.place(file.name, file.size, self.sites[home.name])
        for file in (*flow.files, *written.values()):
            if file.name in self.data.catalogue:
                self.data.catalogue.declare(file.name, file.size)  # which has one size
        self._written |= written.keys()
        if placed:
            count = counted(len(placed), "file")
            self.report.note(f"{flow.name}: {count} that must exist before its tasks run begin at {home.name}")

    reads_in_chunks = True

    @property
    def streams(self) -> bool:
        """Whether the rows of its record are written as the run goes on."""
        return self.stream is not None

    def before_block(self) -> None:
        """Write the rows of the jobs that have ended."""
        if self.stream is not None:
            self.stream.drain()

    def live(self, spec: Job | TaskSet, row: int, home: Destination | None, family: Dependencies) -> BrokeredJob:
        """Return the live work of a row; changes nothing."""
        job = super().live(spec, row, home, family)
        if type(job) is GridJob and isinstance(spec, Job):
            job.inputs, job.outputs = spec.inputs, spec.outputs
            job.stay = job.course = None
        return job

    def job_class(self, spec: Job) -> type[BrokeredJob]:
        """Return the class of the live job of a request."""
        return GridJob if spec.inputs or spec.outputs else BrokeredJob

    # ------------------------------------------------------------------ the life of a job

    def start(self, work: BrokeredJob, place: Destination, allocation: Allocation | None = None) -> None:
        """Send a job to a site, and to the host there that the broker names; raises ``PolicyError`` if it cannot be."""
        site: Site = place  # type: ignore[assignment]
        if work.state == "blocked":
            self.planned[work] = site
            self._send_ahead(work, work.inputs, site)
            return
        grant = None if allocation is None else grant_on(site, allocation, work)
        self.assign(work, site)
        if grant is not None:
            work.remember().bind(grant)
        self.hand(work, site)

    def _send_ahead(self, job: BrokeredJob, files: Iterable[str], site: Site) -> None:
        """Send files to the site of a job that waits for others, as its planner expects."""
        for file in files:
            if self.data.replicas(file):
                self.data.transfer(file, None, site, cause=self.scheduler.policy_name, job=job)

    def eligible(self, job: BrokeredJob) -> None:
        """Add a blocked job to the queue; one with a plan goes to its planned site, unless this takes no jobs now."""
        super().eligible(job)
        site = self.planned.pop(job, None)
        if site is not None and site.can_run(job):
            self.start(job, site)

    def assign(self, work: BrokeredJob, place: Destination) -> None:
        """Take a waiting job out of the queue, bound for a site."""
        super().assign(work, place)
        site: Site = place  # type: ignore[assignment]
        site.present += 1
        ledger, row = self.ledger, work.row
        ledger.assigned[row] = self.env._now
        ledger.site[row] = site.number
        ledger.attempts[row] += 1
        for hook in self._on_assigned:
            hook(work, site)

    def earlier(self, job: BrokeredJob) -> tuple[Try, ...]:
        """Return the earlier attempts of a job, each with its site and the reason why it ended there."""
        return self.ledger.past.get(job.row, ())

    def go_on_at(self, job: BrokeredJob, site: Site) -> None:
        """Adopt a job that was at a site, or on its way, before the grid was restored."""
        job.destination = site
        self.handed[job] = None
        self._active += 1
        site.present += 1

    def hand(self, work: BrokeredJob, place: Destination) -> None:
        """Send a job to its site: it joins the queue there at once, or when its overhead and its files are over."""
        site: Site = place  # type: ignore[assignment]
        if site.spec.overhead is None and type(work) is BrokeredJob:
            self.ledger.queued[work.row] = self.env._now
            super().hand(work, site)
        else:
            self.stays.begin(work, site)

    def enter(self, work: BrokeredJob, site: Site) -> None:
        """Put a job that was on its way into the queue of its site."""
        self.ledger.queued[work.row] = self.env._now
        for hook in self._on_queued:
            hook(work, site)
        super().hand(work, site)

    def job_ended(self, run: Run, _status: str) -> None:
        """Note that a job has released its cores: it ends, writes its outputs, or is assigned again."""
        job: Any = run.job
        if isinstance(job, BrokeredJob) and job.family.owner is self:
            state = job.state
            self.ledger.start[job.row] = run.started
            self.ledger.end[job.row] = self.env._now
            if state not in OVER:
                pass
            elif state == "lost":
                self.stays.drop(job)
                self.fail(job, self.reasons.pop(job, "site failed"))
            elif type(job) is GridJob and job.outputs and state == "completed":
                self._hold(job)
                self.stays.write(job)
            else:
                if type(job) is GridJob:
                    self.stays.drop(job)
                if state == "timeout":
                    self.ledger.errors[job.row] = "stopped at its requested time"
                self.finish(job, state)
        if self.queue.count:
            self.scheduler.wake()

    def _hold(self, job: BrokeredJob) -> None:
        """Have the event of a job wait until the grid has finished with it."""
        if job.event is not None:
            self._waiters[job], job.event = job.event, None

    def fail(self, job: BrokeredJob, reason: str) -> None:
        """Assign a job again after a failure at its site, unless it has been as often as the spec allows."""
        site: Any = job.destination
        row, ledger = job.row, self.ledger
        if ledger.attempts[row] > self.spec.retries or isinstance(reason, Hopeless):
            ledger.errors[row] = reason
            job.state = "failed"
            self.finish(job, "failed")
            return
        start = ledger.start[row]
        held = start == start
        end = ledger.end[row] if held else float(self.env._now)
        ledger.add(row, Try(ledger.attempts[row], site.name, reason, start if held else None, end))
        if held:
            for name in ("queued", "start", "executing", "end"):
                getattr(ledger, name)[row] = float("nan")
        self._hold(job)
        job.changed()
        job.history = None  # it starts anew
        job.priority = 0.0 if job._job is None else job._job.priority
        job.submit = job.came
        job.seq = job.index = row
        site.present -= 1
        del self.handed[job]
        job.destination = None
        job.place = None
        job.estimates = None
        job.state = "new"
        for hook in self.env.hooks("job_retried"):
            hook(job, site, reason)
        self.queue.add(job)
        self.scheduler.wake()

    def finish(self, job: BrokeredJob, state: str) -> None:
        """End a job for good."""
        row, ledger, site = job.row, self.ledger, job.destination
        job.state = state
        ledger.finished[row] = self.env._now
        code = ledger.words.get(state)
        ledger.status[row] = ledger.word(state) if code is None else code
        site.present -= 1  # type: ignore[union-attr]
        waiter = self._waiters.pop(job, None) if self._waiters else None
        if waiter is not None:
            job.event = waiter
            waiter.succeed(job)
        for hook in self._on_finished:
            hook(job, site)
        for child, _ in job.family.waiting.get((job.id, "end"), ()) if self.planned else ():
            if (planned := self.planned.get(child)) is not None:
                self._send_ahead(child, [file.name for file in job.outputs if file.name in child.inputs], planned)
        self.over(job)
        if self.queue.count:  # the site may take another one
            self.scheduler.wake()

    def cancel(self, work: BrokeredJob) -> None:
        """Withdraw a waiting job, stop one that is on its way or running; an ended job stays as it is."""
        if work.state not in OVER and self.stays.cancel(work):
            return
        self.planned.pop(work, None)
        super().cancel(work)

    def job_cancelled(self, job: LiveJob) -> None:
        """Note that a job was withdrawn from the queue of its site."""
        if isinstance(job, BrokeredJob) and job.family.owner is self:
            self.stays.drop(job)
            if job.destination is None:
                self.over(job)
            elif job in self.reasons:
                self.fail(job, self.reasons.pop(job))
            else:
                self.finish(job, job.state)

    def place_changed(self, place: Place, cause: str) -> None:
        """Record a change of the cores in service at a site of this grid, and decide again."""
        site = self.sites.get(place.name)
        if site is None or site.system.places[0] is not place:
            return
        self.changes.append((float(self.env.now), place.name, cause, int(site.system.places[0].up), ()))
        super().place_changed(place, cause)

    # ------------------------------------------------------------------ sites in several processes

    def why_coupled(self) -> str | None:
        """Return why its sites cannot be simulated apart from each other, or ``None``."""
        spec = self.spec
        found = {"outages": spec.outages, "failures": spec.failures, "a cycle": spec.cycle}
        found["limits of sites"] = any(site.limit is not None for site in spec.sites)
        found["overheads of sites"] = any(site.overhead is not None for site in spec.sites)
        there = [what for what, given in found.items() if given]
        return f"the grid has {there[0]}" if there else super().why_coupled()

    def join(self, parts: Sequence[Part]) -> None:
        """Take the parts of the record that other processes have."""
        self.elsewhere = tuple(parts)

    # ------------------------------------------------------------------ switches

    def stop_dispatch(self) -> None:
        """Assign no more jobs until :meth:`resume_dispatch`; those at the sites go on."""
        if self.dispatching:
            self.dispatching = False
            for site in self.places:
                site.closed += 1

    def resume_dispatch(self) -> None:
        """Assign jobs again."""
        if not self.dispatching:
            self.dispatching = True
            for site in self.places:
                site.closed -= 1
            self.scheduler.wake()

    def close(self, site: str) -> None:
        """Have a site take no new jobs until :meth:`reopen`; raises ``InputError`` if it is unknown."""
        self.outages.begin(self.site(site), "closed")

    def reopen(self, site: str) -> None:
        """Have a site take jobs again; raises ``InputError`` if it is unknown or not closed."""
        self.outages.end(self.site(site), "closed")

    def take_down(self, site: str) -> None:
        """Have a site fail: its jobs are assigned again or lost; raises ``InputError`` if it is unknown."""
        self.outages.begin(self.site(site), "down")

    def bring_up(self, site: str) -> None:
        """Bring a site up again; raises ``InputError`` if it is unknown or not down."""
        self.outages.end(self.site(site), "down")

    def set_data_policy(self, policy: PolicyLike) -> None:
        """Have another data policy decide from now on; raises ``InputError`` if it is unknown."""
        self.data_scheduler.use(policy)

    def site(self, name: str) -> Site:
        """Return the site with this name; raises ``InputError`` if there is none."""
        found = self.sites.get(name)
        if found is None:
            raise unknown("site", name, self.sites)
        return found

    # ------------------------------------------------------------------ reports

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence for each job that waits for the broker or for its files."""
        yield from super().waiting_report()
        yield from self.stays.waiting_report()

    @property
    def endless(self) -> bool:
        """Whether events may continue after all work has ended: outages, failures, and a data policy's instants."""
        return bool(self.spec.outages or self.spec.failures or self.data_scheduler.alarms) or super().endless


def asked_of_sites(spec: GridSpec) -> frozenset[str]:
    """Return what the tasks of workflows request at all sites: ``"files"``, and ``"cores"`` and ``"memory"`` of hosts.

    >>> from simmodel.platform import SiteSpec
    >>> asked_of_sites(GridSpec(sites=[SiteSpec(name="a", cores=8)]))
    frozenset({'files'})
    """
    if not all(site.hosts for site in spec.sites):
        return frozenset({"files"})
    memory = any(host.memory for site in spec.sites for host in site.hosts)
    return frozenset({"files", "cores", "memory"} if memory else {"files", "cores"})


def site_policies(spec: GridSpec, given: GivenPolicies) -> dict[str, PolicyLike]:
    """Return the policy of each site; raises ``InputError`` if a name is unknown."""
    from simmodel.scheduling.registry import unused

    names = [site.name for site in spec.sites]
    if not isinstance(given, Mapping):
        return {name: "fcfs" if given is None else unused(given) for name in names}
    for name in given:
        spec.site(str(name))
    return {name: unused(given.get(name, "fcfs")) for name in names}


# ---------------------------------------------------------------------- for planners


def problem_of_sites(
    jobs: Iterable[BrokeredJob],
    sites: Sequence[Site],
    data: DataManager,
    planned: Mapping[BrokeredJob, Site],
    now: float,
) -> Problem:
    """Return the planning problem of jobs on the sites that take jobs now; those that none takes are left out.

    A site is a processor with all its cores, of their mean speed. An edge carries the bytes of the files that the
    parent writes and the child reads, at the rate of idle links; other inputs come from the nearest replica. A site is
    busy for its backlog, and for the jobs that are planned there, per core.
    """
    runs = {job: [_run(job, site) if site.can_run(job) else inf for site in sites] for job in jobs}
    tasks = [job for job in runs if min(runs[job]) < inf]
    busy = dict.fromkeys(sites, 0.0)
    for job, site in planned.items():
        busy[site] += job.processors * _run(job, site)
    ways = [[data.way(source, site) for site in sites] for source in sites]
    return Problem(
        [runs[job] for job in tasks],
        _parents(tasks),
        [[latency for latency, _ in row] for row in ways],
        [[per_byte for _, per_byte in row] for row in ways],
        pools=range(len(sites)),
        now=now,
        available=[now + min(site.expected_wait(1) + busy[site] / site.capacity, FAR) for site in sites],
        arrival=[[now + _seconds_of_inputs(data, job, site) for site in sites] for job in tasks],
        cores=[job.processors for job in tasks],
        capacity=[site.capacity for site in sites],
        tasks=tasks,
        places=sites,
    )


def _run(job: BrokeredJob, site: Site) -> float:
    return site.nominal_run(job) / site.speed


def _parents(tasks: list[BrokeredJob]) -> list[tuple[tuple[int, float], ...]]:
    """Return the parents of each task among these, with the bytes of the files that move between them."""
    position = {job: i for i, job in enumerate(tasks)}
    found: list[tuple[tuple[int, float], ...]] = []
    for job in tasks:
        edges: dict[int, float] = {}
        for each in () if job.spec is None else job.spec.dependencies:
            parent = job.family.known.get(each.job)
            if parent in position:
                moved = [file.size for file in parent.outputs if file.name in job.inputs]
                edges[position[parent]] = float(sum(moved))
        found.append(tuple(edges.items()))
    return found


def _seconds_of_inputs(data: DataManager, job: BrokeredJob, site: Site) -> float:
    """Return how long the inputs that exist take to a site on idle links (s), one after another."""
    return min(sum([data.seconds(file, site) for file in job.inputs if data.replicas(file)]), FAR)
