"""The phases of a job at a site besides waiting and executing: overhead, files in, reading, and files out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from math import ceil
from typing import TYPE_CHECKING, Any, Literal, Protocol

from simmodel.foundation.errors import InputError, SnapshotError
from simmodel.snapshots.grid import IN_CLUSTER, StayState
from simmodel.systems.grid.data import Hopeless
from simmodel.systems.grid.site import GridJob, grant_on

if TYPE_CHECKING:
    from simmodel.environment import Call, Environment
    from simmodel.platform.grid import DelaySpec
    from simmodel.resources.network.shared_channel import Access, ChannelState, SharedChannel
    from simmodel.snapshots.grid import FetchState
    from simmodel.systems.dependencies import Dependencies
    from simmodel.systems.destination import BrokeredJob
    from simmodel.systems.grid.data import Arrived, DataManager
    from simmodel.systems.grid.ledger import GridLedger
    from simmodel.systems.grid.site import Site
    from simmodel.systems.system import Timing
    from simmodel.work.job import Run

__all__ = ["Stay", "Stays"]


class Keeper(Protocol):
    """The grid whose jobs have stays."""

    env: Environment
    name: str
    ledger: GridLedger
    reasons: dict[BrokeredJob, str]
    families: list[Dependencies]
    timing: Timing
    restored: dict[int, BrokeredJob]

    @property
    def places(self) -> Sequence[Site]:
        """The sites."""
        ...

    def plan(self, at: float, call: Callable[[], object], /) -> Call:
        """Schedule a call at an instant (s)."""
        ...

    def enter(self, job: BrokeredJob, site: Site, /) -> None:
        """Put a job into the queue of its site."""
        ...

    def fail(self, job: BrokeredJob, reason: str, /) -> None:
        """Assign a job again, or end it as failed."""
        ...

    def finish(self, job: BrokeredJob, state: str, /) -> None:
        """End a job for good."""
        ...


Phase = Literal["overhead", "staging in", "queued", "inside", "reading", "executing", "writing", "staging out", "over"]
"""The phase of a job: the site's overhead; the wait for inputs, before or (``inside``) after its start; and so on."""


class Stay:
    """The stay of one attempt of a job at a site.

    Attributes
    ----------
    job, site, phase
        the job, the site, and its phase there
    run
        its execution, from its start on
    host
        the number of its host, if hosts are identified, from its start on or once the broker has named it
    missing
        the inputs that are on their way, with the call that they are announced by
    target
        the site to which the output goes that is staged out
    pinned
        the inputs that it holds at the site, or the output that it overwrites
    index
        the position of the input that it reads, or of the output that it writes
    access
        its present access, to read or to write
    call
        the end of its overhead, or the begin of ``inside``
    limit
        the end of its requested time, once it has started
    since
        the instant (s) at which the phase began
    """

    __slots__ = (
        "access",
        "call",
        "host",
        "index",
        "job",
        "limit",
        "missing",
        "phase",
        "pinned",
        "run",
        "since",
        "site",
        "target",
    )

    def __init__(self, job: BrokeredJob, site: Site) -> None:
        self.job = job
        self.site = site
        self.phase: Phase = "overhead"
        self.run: Run | None = None
        self.host: int | None = None
        self.missing: dict[str, Arrived] = {}
        self.pinned: dict[str, None] = {}
        self.index = 0
        self.target: Site | None = None
        self.access: Access | None = None
        self.call: Call | None = None
        self.limit: Call | None = None
        self.since = 0.0

    @property
    def holds(self) -> bool:
        """Whether it has files that it will release by itself."""
        return self.phase == "reading" or (self.phase in ("queued", "writing") and bool(self.pinned))

    def __repr__(self) -> str:
        return f"<stay of job {self.job.id} at {self.site.name}: {self.phase}>"


class Stays:
    """The stays of all jobs of a grid that have overhead or files.

    Parameters
    ----------
    grid
        the grid
    data
        the manager that brings the files
    """

    def __init__(self, grid: Keeper, data: DataManager) -> None:
        self.grid = grid
        self.env = grid.env
        self.data = data
        self.present: dict[BrokeredJob, Stay] = {}
        self._holding: dict[Site, int] = {}  # stays that will release their inputs by themselves
        self._key = b""  # of the draws of overheads
        self._on_phase: tuple[Callable[..., object], ...] = ()
        self.env.on_hooks_changed(self._find_hooks)
        data.jobs = self

    def _find_hooks(self) -> None:
        self._on_phase = self.env.hooks("job_phase")

    def _go(self, stay: Stay, phase: Phase) -> None:
        stay.phase = phase
        stay.since = float(self.env._now)
        for hook in self._on_phase:
            hook(stay.job, stay.site, phase)

    # ------------------------------------------------------------------ to the queue of the site

    def begin(self, job: BrokeredJob, site: Site) -> None:
        """Send a job to a site: overhead, then its inputs, then the queue."""
        stay = self.present[job] = Stay(job, site)
        if job.history is not None and job.history.bound is not None:
            stay.host = job.history.bound.nodes[0]
        job.state = "staging in"
        site.sent(job)
        overhead = site.spec.overhead
        seconds = 0.0 if overhead is None else self._overhead(job, overhead)
        self._go(stay, "overhead")
        if seconds > 0:
            stay.call = self.grid.plan(self.env._now + seconds, partial(self._ready, stay))
        else:
            self._ready(stay)

    def _overhead(self, job: BrokeredJob, delay: DelaySpec) -> float:
        """Return the overhead of an attempt of a job (s): its draw depends neither on the site nor on other jobs."""
        if delay.distribution == "constant":
            return delay.mean
        if not self._key:  # the state of a stream from which nothing else is drawn, so that snapshots have it
            state: Any = self.env.rng(f"{self.grid.name}.overhead").bit_generator.state
            self._key = state["state"]["state"].to_bytes(16, "little")
        about = f"{job.id} {self.grid.families.index(job.family)} {self.grid.ledger.attempts[job.row]}"
        drawn = blake2b(about.encode(), digest_size=8, key=self._key).digest()
        return delay.quantile(((int.from_bytes(drawn, "little") >> 12) + 0.5) / 2**52)

    def _ready(self, stay: Stay) -> None:
        stay.call = None
        if type(stay.job) is GridJob and stay.job.inputs and stay.site.spec.staging == "before":
            self._go(stay, "staging in")
            self._bring(stay)
        else:
            self._enter(stay)

    def _bring(self, stay: Stay) -> None:
        """Ask for all inputs at once."""
        job: Any = stay.job
        stay.missing = {file: partial(self._arrived, stay, file) for file in job.inputs}
        for file, call in list(stay.missing.items()):
            self.data.fetch(file, stay.site, call, job=job)
            if stay.phase not in ("staging in", "inside"):
                return  # it has failed, or all have come

    def _arrived(self, stay: Stay, file: str, reason: str | None) -> None:
        if stay.phase == "over":  # it was one of several that waited, and what another did has ended it
            if reason is None:
                stay.site.storage.unpin(file)
            return
        del stay.missing[file]
        if reason is not None:
            self._fail(stay, reason)
            return
        stay.pinned[file] = None
        if not stay.missing:
            if stay.phase == "inside":
                self._hold(stay.site, 1)
                self._read(stay)
            else:
                self._enter(stay)

    def _enter(self, stay: Stay) -> None:
        job, site = stay.job, stay.site
        site.arrived(job)
        if type(job) is GridJob:
            job.course = self._started if job.inputs else None
            job.stay = stay
        if type(job) is GridJob and (job.inputs or job.outputs):
            self._go(stay, "queued")
            if stay.pinned:
                self._hold(site, 1)
        else:
            del self.present[job]
            self._go(stay, "over")
        self.grid.enter(job, site)

    def charge(self, job: BrokeredJob, size: float) -> None:
        """Count bytes that were moved for a job."""
        self.grid.ledger.bytes_in[job.row] += size

    def busy(self, site: Site) -> bool:
        """Whether jobs at a site will release their files by themselves."""
        return self._holding.get(site, 0) > 0

    def give_way(self, site: Site, files: Sequence[str]) -> bool:
        """Fail the last job at a site that holds files while it waits for room for others, if this brings the first in.

        Parameters
        ----------
        files
            those that wait for room there, in order
        """
        waiting = [stay for stay in self.present.values() if stay.site is site and stay.pinned and stay.missing]
        waiting = [stay for stay in waiting if not stay.missing.keys().isdisjoint(files)]
        held = Counter(file for stay in waiting for file in stay.pinned)
        storage, catalogue = site.storage, self.data.catalogue
        loose = [file for file in storage.files if storage.pins(file) <= held[file] and catalogue.may_drop(file)]
        room = storage.free + sum(ceil(storage.files[file]) for file in loose)
        if not waiting or room < ceil(catalogue.size(files[0])):
            return False
        alone = [stay for stay in waiting if any(held[file] == 1 and file in loose for file in stay.pinned)]
        stay = (alone or waiting)[-1]
        wanted = next(file for file in files if file in stay.missing)
        self._fail(stay, f"no room for file {wanted} in storage {site.name}")
        return True

    def _hold(self, site: Site, change: int) -> None:
        self._holding[site] = self._holding.get(site, 0) + change
        if change < 0:
            self.data.check_room(site)

    # ------------------------------------------------------------------ while the job holds its cores

    def _started(self, run: Run) -> None:
        """Have a job that has started bring its inputs, if it has not yet, and read them."""
        job: Any = run.job
        stay: Stay = job.stay
        stay.run = run
        nodes = run.grant.nodes
        stay.host = None if not nodes else nodes[0]
        self._limit(stay, run)
        if stay.pinned:
            self._read(stay)
        else:  # in an event of its own: it may end jobs at once, which the site's policy is deciding on
            stay.call = self.grid.plan(self.env._now, partial(self.bring_inside, stay))

    def _limit(self, stay: Stay, run: Run) -> None:
        """Plan the end of the requested time of a job that has started: after all ends of that instant."""
        execution, job = stay.site.system.execution, stay.job
        if stay.site.system.core.overrun == "stop" and not job.unrequested:
            at = run.started + job.limit / run.place.speed_of(job, run.grant.nodes)
            stay.limit = self.env.call_at(at, partial(execution.stop, run, "timeout"), self.grid.timing.ends + 0.25)

    def bring_inside(self, stay: Stay) -> None:
        """Have a job that has started bring its inputs."""
        stay.call = None
        self._go(stay, "inside")
        self._bring(stay)

    def _read(self, stay: Stay) -> None:
        """Read the inputs of a job that holds them."""
        self._go(stay, "reading")
        stay.index = 0
        self._read_next(stay)

    def _read_next(self, stay: Stay) -> None:
        job: Any = stay.job
        file = job.inputs[stay.index]
        call = partial(self._has_read, stay)
        size = stay.site.storage.files[file]
        stay.access = stay.site.disks.read(stay.host, size, call, (stay, file), file)

    def _has_read(self, stay: Stay, access: Access) -> None:
        if access is not stay.access:  # the stay ended at the same instant
            return
        job: Any = stay.job
        stay.access = None
        stay.index += 1
        if stay.index < len(job.inputs):
            self._read_next(stay)
            return
        self._unpin(stay)
        self._hold(stay.site, -1)
        self._go(stay, "executing")
        self.grid.ledger.executing[job.row] = self.env._now
        assert stay.run is not None
        stay.site.system.execution.go_on(stay.run)

    def _unpin(self, stay: Stay) -> None:
        for file in stay.pinned:
            stay.site.storage.unpin(file)
        stay.pinned.clear()

    # ------------------------------------------------------------------ after the job has released its cores

    def write(self, job: GridJob) -> None:
        """Write the outputs of a job one after another; it ends when the last one is where it belongs."""
        stay = self.present.get(job)
        assert stay is not None
        if stay.run is None and job.run is not None:
            stay.run = job.run
        if stay.limit is not None:
            self.env.withdraw(stay.limit)
            stay.limit = None
        job.state = "staging out"
        stay.index = 0
        self._go(stay, "writing")
        self._write_next(stay)

    def _write_next(self, stay: Stay) -> None:
        job: Any = stay.job
        if stay.index == len(job.outputs):
            del self.present[job]
            job.stay = None  # as the other, so that both leave memory at once
            self._go(stay, "over")
            self.grid.finish(job, job._outcome)
            return
        file = job.outputs[stay.index]
        if stay.phase != "writing":
            self._go(stay, "writing")
        try:
            self.data.catalogue.declare(file.name, file.size)
        except InputError as error:  # others have written it, or the grid began with it
            self._fail(stay, Hopeless(str(error)))
            return
        if file.name in stay.site.storage.files or (file.name, stay.site.name) in self.data.fetches:
            stay.missing = {file.name: partial(self._overwrites, stay)}
            self.data.fetch(file.name, stay.site, stay.missing[file.name], "stage in", job)
        else:
            self.data.room(file.name, file.size, stay.site, partial(self._has_room, stay))

    def _overwrites(self, stay: Stay, reason: str | None) -> None:
        """Write an output that was at the site already, or on its way there, once it has come."""
        job: Any = stay.job
        file = job.outputs[stay.index].name
        if stay.phase == "over":
            if reason is None:
                stay.site.storage.unpin(file)
            return
        stay.missing.clear()
        if reason is not None:  # it does not come
            self._write_next(stay)
            return
        stay.pinned[file] = None
        self._hold(stay.site, 1)
        self._has_room(stay, None)

    def _has_room(self, stay: Stay, reason: str | None) -> None:
        if reason is not None:
            self._fail(stay, reason)
            return
        job: Any = stay.job
        file = job.outputs[stay.index]
        call = partial(self._written, stay)
        stay.access = stay.site.disks.write(stay.host, file.size, call, (stay, file.name), file.name)

    def _written(self, stay: Stay, access: Access) -> None:
        if access is not stay.access:
            return
        job: Any = stay.job
        file = job.outputs[stay.index]
        stay.access = None
        if stay.pinned:  # it was there
            self._unpin(stay)
            self._hold(stay.site, -1)
        else:
            self._put(stay)
            self.data.check_room(stay.site)
        target = self.data.send_outputs(file.name, stay.site)
        if target is None or target is stay.site:
            stay.index += 1
            self._write_next(stay)
            return
        stay.target = target
        self._go(stay, "staging out")
        stay.missing = {file.name: partial(self._delivered, stay, target)}
        self.data.fetch(file.name, target, stay.missing[file.name], "stage out", job)

    def _put(self, stay: Stay) -> None:
        """Add the file that a job has written to the storage."""
        job: Any = stay.job
        file = job.outputs[stay.index]
        stay.site.storage.add(file.name, file.size, "output")
        self.grid.ledger.bytes_out[job.row] += file.size

    def _delivered(self, stay: Stay, target: Site, reason: str | None) -> None:
        job: Any = stay.job
        name = job.outputs[stay.index].name
        if stay.phase == "over":
            if reason is None:
                target.storage.unpin(name)
            return
        stay.missing.clear()
        if reason is not None:
            self._fail(stay, reason)
            return
        target.storage.unpin(name)
        stay.index += 1
        self._write_next(stay)

    # ------------------------------------------------------------------ early ends

    def _fail(self, stay: Stay, reason: str) -> None:
        """End a stay for lack of a file or of room: the job is assigned again, or has failed."""
        job, site = stay.job, stay.site
        inside = stay.phase == "inside"
        self.drop(job, room=False)
        if inside:
            self.grid.reasons[job] = reason
            assert stay.run is not None
            site.system.execution.stop(stay.run, "lost")
        else:
            self.grid.fail(job, reason)

    def drop(self, job: BrokeredJob, *, room: bool = True) -> None:
        """Forget the stay of a job, and release its files; ``room``: also the room for the output that it writes."""
        stay = self.present.pop(job, None)
        if stay is None:
            return
        if type(job) is GridJob:
            job.stay = None
        site, phase, held, access = stay.site, stay.phase, stay.holds, stay.access
        if access is not None:
            stay.access = None
            access.defused = True
            if access.end is None:
                access.cancel()
            elif phase == "writing" and room and not stay.pinned:  # the last byte was written at this instant
                self._put(stay)
                room = False
        self._go(stay, "over")
        if phase in ("overhead", "staging in"):
            site.arrived(job)
        for planned in (stay.call, stay.limit):
            if planned is not None and planned.pending:
                self.env.withdraw(planned)
        where = stay.target if phase == "staging out" and stay.target is not None else site
        room = room and not stay.missing  # that of another's fetch
        for file, call in list(stay.missing.items()):
            self.data.forget(file, where, call)
        stay.missing.clear()
        if phase == "writing" and room and not stay.pinned:
            work: Any = job
            self.data.no_room_needed(work.outputs[stay.index].name, site)
        self._unpin(stay)
        if held:
            self._hold(site, -1)
        self.data.check_room(site)

    def cancel(self, job: BrokeredJob) -> bool:
        """Stop a job that is on its way to a queue or writes its outputs; return whether it was."""
        stay = self.present.get(job)
        if stay is None or stay.phase not in ("overhead", "staging in", "writing", "staging out"):
            return False
        self.drop(job)
        self.grid.finish(job, "cancelled")
        return True

    def lose(self, site: Site) -> None:
        """Fail the jobs that are on their way to a site, or write their outputs there."""
        for stay in list(self.present.values()):
            if stay.site is site and stay.phase in ("overhead", "staging in", "writing", "staging out"):
                self.drop(stay.job)
                self.grid.fail(stay.job, "site failed")
        self.data.site_fails(site)

    def site_is_back(self, site: Site) -> None:
        """Send the files that waited for a site."""
        self.data.site_is_back(site)

    # ------------------------------------------------------------------ snapshots

    def state(self) -> tuple[StayState, ...]:
        """Return the stays as plain values.

        Raises
        ------
        SnapshotError
            if a job has a body, or its reading or writing ends at this instant
        """
        for job, stay in self.present.items():
            spec = job._job
            if spec is not None and spec.has_body:
                raise SnapshotError(f"job {job.id} cannot be copied: {spec.program}")
            if stay.access is not None and stay.access.end is not None:
                message = "its access ends at this instant; take the snapshot between events"
                raise SnapshotError(f"job {job.id} cannot be copied: {message}")
        return tuple(_state_of(stay) for stay in self.present.values())

    def rows(self) -> dict[Arrived, int]:
        """Return the rows of the jobs that wait for files, by the calls that notify them."""
        return {call: stay.job.row for stay in self.present.values() for call in stay.missing.values()}

    def accessing(self, channel: SharedChannel) -> tuple[int, ...]:
        """Return the rows of the jobs that access a channel; raises ``SnapshotError`` if others do."""
        found: list[int] = []
        for access in channel.under_way():
            about: Any = access.about
            if not (isinstance(about, tuple) and about and isinstance(about[0], Stay)):
                raise SnapshotError(f"{access.describe()} cannot be copied: it is none of a job")
            found.append(about[0].job.row)
        return tuple(found)

    def restore(self, states: Iterable[StayState], fetches: Iterable[FetchState]) -> None:
        """Restore the stays of a snapshot without their accesses and their calls: see :meth:`plan`."""
        targets: dict[tuple[int, str], int] = {}  # where the file goes that a job waits for
        for fetch in fetches:
            for row in fetch.callers:
                targets.setdefault((row, fetch.file), fetch.site)
        for state in states:
            stay = self._stay_again(state)
            for file in state.missing:
                if state.phase == "staging out":
                    stay.target = self.grid.places[targets[state.row, file]]
                    stay.missing[file] = partial(self._delivered, stay, stay.target)
                elif state.phase == "writing":
                    stay.missing[file] = partial(self._overwrites, stay)
                else:
                    stay.missing[file] = partial(self._arrived, stay, file)

    def _stay_again(self, state: StayState) -> Stay:
        job, site = self.grid.restored[state.row], self.grid.places[state.site]
        stay = self.present[job] = Stay(job, site)
        stay.phase = state.phase  # type: ignore[assignment]
        stay.host, stay.index, stay.since = state.host, state.position, state.since
        stay.pinned = dict.fromkeys(state.pinned)
        job._outcome = state.outcome
        if state.phase in ("overhead", "staging in"):
            job.state = "staging in"
            site.sent(job)
            if state.host is not None:
                job.remember().bind(grant_on(site, state.host, job))
        elif state.phase in IN_CLUSTER:
            stay.run = job.run
        else:
            job.state = "staging out"
        if isinstance(job, GridJob):
            job.stay = stay
            job.course = self._started if job.inputs else None
        if stay.holds:
            self._holding[site] = self._holding.get(site, 0) + 1
        return stay

    def _restored(self, row: int) -> Stay:
        """Return the stay of the job of a row of the snapshot."""
        return self.present[self.grid.restored[row]]

    def arrival(self, row: int, file: str) -> Arrived:
        """Return the call by which the job of a row of the snapshot learns that a file has arrived."""
        return self._restored(row).missing[file]

    def writer(self, file: str, site: Site) -> Arrived | None:
        """Return the call by which the job that writes a file at a site learns of room for it; ``None``: none does."""
        for job, stay in self.present.items():
            writes = isinstance(job, GridJob) and stay.phase == "writing" and stay.site is site
            if writes and job.outputs[stay.index].name == file:
                return partial(self._has_room, stay)
        return None

    def resume(self, channel: SharedChannel, state: ChannelState, rows: tuple[int, ...], writes: bool) -> None:
        """Restore the accesses of a channel, given the rows of their jobs in the snapshot."""
        stays = [self._restored(row) for row in rows]
        then = self._written if writes else self._has_read
        calls = [partial(then, stay) for stay in stays]
        for stay, access in zip(stays, channel.restore(state, calls), strict=True):
            job: Any = stay.job
            stay.access = access
            access.about = (stay, job.outputs[stay.index].name if writes else job.inputs[stay.index])

    def plan(self, states: Iterable[StayState]) -> None:
        """Plan the ends of overheads and the begins of ``inside`` of restored stays."""
        for state in states:
            stay = self._restored(state.row)
            if stay.run is not None and stay.job.state == "running" and stay.job.course is not None:
                self._limit(stay, stay.run)
            if state.ends is not None:
                then = self._ready if state.phase == "overhead" else self.bring_inside
                stay.call = self.grid.plan(state.ends, partial(then, stay))

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence for each job that waits for files or for room."""
        for stay in self.present.values():
            if stay.missing:
                some = ", ".join(list(stay.missing)[:3]) + (" ..." if len(stay.missing) > 3 else "")
                yield f"job {stay.job.id} waits at {stay.site.name} since {stay.since:g} for {some}"
        yield from self.data.waiting_report()


def _state_of(stay: Stay) -> StayState:
    job = stay.job
    away = stay.phase not in IN_CLUSTER
    return StayState(
        job.row,
        stay.site.number,
        stay.phase,
        stay.since,
        ends=None if stay.call is None else float(stay.call.at),
        host=stay.host,
        position=stay.index,
        pinned=tuple(stay.pinned),
        missing=tuple(stay.missing),
        spec=job._job if away else None,
        length=float(job._length) if away else None,
        outcome=job._outcome,
    )
