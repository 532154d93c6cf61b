"""Snapshots of grids: those of a broker and its sites, with the files, and the jobs on their way to and from sites."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import attrs

from simmodel.environment import END
from simmodel.foundation.errors import InputError, unknown
from simmodel.platform.grid import GridSpec, SiteOutageSpec
from simmodel.resources.data.catalogue import CatalogueState
from simmodel.resources.data.storage import StorageState
from simmodel.resources.network.shared_channel import ChannelState
from simmodel.snapshots.broker import BrokerSnapshot
from simmodel.snapshots.cluster import ClusterSnapshot
from simmodel.snapshots.jobs import Planned, expected_end
from simmodel.snapshots.snapshot import PolicyState, Snapshot
from simmodel.snapshots.types import Columns, Count, Instant, Seconds, check_each, one_of
from simmodel.work.job import Job
from simmodel.work.outcomes import OUTCOMES

__all__ = [
    "AssignedState",
    "DataPolicyState",
    "DiskState",
    "FailingState",
    "FetchState",
    "FilesState",
    "GridSnapshot",
    "SiteState",
    "StayState",
    "TraceState",
    "TransferState",
    "TryState",
]

NEAREST = PolicyState(name="nearest", known_as="nearest", due=False)

PHASES = ("overhead", "staging in", "queued", "inside", "reading", "executing", "writing", "staging out")
IN_CLUSTER = ("queued", "inside", "reading", "executing")
"""The phases of a stay in which its job is in the cluster of its site."""


class TraceState(NamedTuple):
    """The record of an unfinished job that has been assigned, or sent files: its latest site, instants (s), bytes.

    ``started``, ``starts``: its latest start (s), at any site, and the number of its starts.
    """

    row: Count
    site: Count
    attempts: Count
    assigned: Instant | None = None
    queued: Instant | None = None
    start: Instant | None = None
    executing: Instant | None = None
    end: Instant | None = None
    bytes_in: float = 0.0
    bytes_out: float = 0.0
    started: Instant | None = None
    starts: Count = 0


class TryState(NamedTuple):
    """An attempt of an unfinished job that was not its last: its start (``None``: none) and end (s), site, reason."""

    row: Count
    attempt: Count
    start: Instant | None
    end: Instant
    site: Count
    status: str
    reason: str = ""


class StayState(NamedTuple):
    """A job at a site: its phase, and since when (s).

    ``ends``: the end of its overhead, or the begin of ``inside`` (s); ``host``: the number of its host; ``position``:
    of the input that it reads, or of the output that it writes; ``pinned``, ``missing``: the inputs that it holds, and
    waits for; ``moved``: only in snapshots of earlier versions; ``spec``, ``length``: its request and its run time (s),
    if it is not in the cluster.
    """

    row: Count
    site: Count
    phase: Annotated[str, one_of(*PHASES)]
    since: Instant
    ends: Instant | None = None
    host: Count | None = None
    position: Count = 0
    pinned: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    spec: Job | None = None
    length: Seconds | None = None
    outcome: Annotated[str, one_of(*OUTCOMES, "withdrawn")] = "completed"


class FetchState(NamedTuple):
    """A file on its way to a site; ``callers``, ``job``: the rows of the jobs that wait for it, and that pays for it.

    ``tries``: the transfers that failed; ``room``: whether it has room; ``source``: where it comes from.
    """

    file: str
    site: Count
    size: float
    cause: str
    callers: tuple[Count, ...] = ()
    job: Count | None = None
    source: Count | None = None
    tries: Count = 0
    room: bool = False
    mode: Literal["copy", "move"] = "copy"


class TransferState(NamedTuple):
    """The transfer of a fetch (its position): the bytes left, its start (s), and the seconds left of its latency."""

    fetch: Count
    left: Seconds
    start: Instant
    lag: Seconds = 0.0


class FilesState(NamedTuple):
    """The files of a grid: the fields of a :class:`GridSnapshot` of these names."""

    catalogue: CatalogueState
    fetches: tuple[FetchState, ...]
    transfers: tuple[TransferState, ...]
    rooms: tuple[tuple[str, Count], ...]
    stranded: tuple[tuple[str, Count], ...]
    links: tuple[tuple[str, Any], ...]
    unclaimed: tuple[tuple[str, Count, float], ...]


class AssignedState(NamedTuple):
    """A job that got a site, on which the data policy has not decided yet; ``row``: ``None`` if it has ended."""

    row: Count | None
    site: Count
    id: int | str
    inputs: tuple[str, ...] = ()


class DataPolicyState(NamedTuple):
    """The data policy, with its memory and the jobs and files that it has not decided on.

    ``made``: its class and parameters, if it is a policy of :mod:`simmodel.policies.data` that has no name; ``alarms``:
    the instants (s) at which it wants to be asked; ``added``: the files that came.
    """

    policy: PolicyState = NEAREST
    made: Any = None
    alarms: tuple[Instant, ...] = ()
    assigned: tuple[AssignedState, ...] = ()
    added: tuple[str, ...] = ()


NOTHING_MOVES = DataPolicyState()


class DiskState(NamedTuple):
    """The disk of a host, read or written; ``rows``: the jobs of its accesses, in their order."""

    host: Count
    writes: bool
    channel: ChannelState
    rows: tuple[Count, ...] = ()


class FailingState(NamedTuple):
    """The next event of a part that fails by chance: the instant (s), its kind, the failure model's position, the part.

    ``back``: a repair after which a what-if plans no further failure.
    """

    at: Instant
    what: Annotated[str, one_of("fail", "repair", "back")]
    model: Count
    part: str


class SiteState(NamedTuple):
    """A site: for how many reasons it is down and closed, its storage, and the rows of the jobs that access it."""

    down: Count = 0
    closed: Count = 0
    storage: StorageState = StorageState()
    readers: tuple[Count, ...] = ()
    writers: tuple[Count, ...] = ()
    disks: tuple[DiskState, ...] = ()


@attrs.frozen(kw_only=True, eq=False, slots=False, repr=False)
class GridSnapshot(BrokerSnapshot):
    """A grid at one instant, with the fields of a :class:`~simmodel.snapshots.broker.BrokerSnapshot` and:

    Sites are referred to by their positions, jobs by their rows.

    Parameters
    ----------
    platform
        the spec of the grid, whose outages still to come are in it
    dispatching
        whether it assigns jobs
    rests_until
        the instant (s) until which the broker rests after its latest decisions, or ``None``
    data
        the data policy
    new
        the waiting jobs on which the broker has not decided yet, in order
    sites
        the sites, in order
    catalogue
        the files and their replicas
    traces, tries
        the record of unfinished jobs
    stays
        the jobs on their way to and from sites, and those with files
    fetches, transfers
        the files on their way; their transfers, in the order of their starts
    rooms, stranded
        the files (with their sites) that wait for room, and whose replicas are all at sites that are down
    past
        the outages (by position) that have begun, or ended, at this very instant
    failing
        the failures and repairs by chance that are planned
    order
        the planned events that may share an instant, in order
    assumed
        further outages to come: see :meth:`assuming`
    links
        the state of the models of links, by link
    plan
        the jobs that wait for other jobs, each with the site that a planner has decided on
    unclaimed
        the files (with their sites and bytes) that policies moved and no job has asked for there

    ``simulate(snapshot)`` and :meth:`Grid.from_snapshot <simmodel.systems.grid.system.Grid.from_snapshot>` continue
    from it.
    """

    system: ClassVar[str] = "grid"
    schema: ClassVar[int] = 1

    name: str = "grid"
    platform: GridSpec
    dispatching: bool = True
    rests_until: Instant | None = None
    data: DataPolicyState = NOTHING_MOVES
    new: tuple[Count, ...] = ()
    sites: tuple[SiteState, ...]
    catalogue: CatalogueState
    traces: Columns[TraceState] = ()
    tries: tuple[TryState, ...] = ()
    stays: tuple[StayState, ...] = ()
    fetches: tuple[FetchState, ...] = ()
    transfers: tuple[TransferState, ...] = ()
    rooms: tuple[tuple[str, Count], ...] = ()
    stranded: tuple[tuple[str, Count], ...] = ()
    past: tuple[tuple[Count, str], ...] = ()
    failing: tuple[FailingState, ...] = ()
    order: tuple[tuple[int | str, ...], ...] = ()
    assumed: tuple[SiteOutageSpec, ...] = ()
    links: tuple[tuple[str, Any], ...] = ()
    plan: tuple[tuple[Count, Count], ...] = ()
    unclaimed: tuple[tuple[str, Count, float], ...] = ()

    @property
    def tally(self) -> tuple[int, int]:
        """The numbers of running and of waiting jobs; those on their way to a site wait, those on their way out run."""
        running, waiting = super().tally
        out = sum(stay.phase in ("writing", "staging out") for stay in self.stays)
        return running + out, waiting + sum(stay.phase in ("overhead", "staging in") for stay in self.stays)

    def policy_names(self) -> Iterator[tuple[str, str | None]]:
        yield from super().policy_names()
        yield "data.policy.known_as", self.data.policy.known_as

    @property
    def _away(self) -> list[Any]:
        """The jobs that have been assigned and are in no cluster."""
        return [each for each in self.handed if each.number < 0]

    @property
    def ids(self) -> list[int | str]:
        return [*super().ids, *(each.id for each in self._away)]

    @property
    def begun(self) -> set[tuple[int | str, float]]:
        """The ids of the jobs that have started, each with its start (s)."""
        start = {each.row: each.start for each in self.traces if each.start is not None}
        return super().begun | {(each.id, start[each.row]) for each in self._away if each.row in start}

    @property
    def unfinished(self) -> int:
        """The number of unfinished jobs, including those still to arrive."""
        return super().unfinished + len(self._away)

    # ------------------------------------------------------------------ consistency

    def check(self) -> None:
        """Raise ``InputError``, with its place, if parts of the snapshot do not fit together."""
        super().check()
        names = [site.name for site in self.platform.sites]
        if [each.name for each in self.places] != names:
            raise InputError(f"must be the sites {', '.join(names)}", place="places")
        if len(self.sites) != len(names):
            raise InputError(f"must have {len(names)} values, one per site, got {len(self.sites)}", place="sites")
        rows, waiting, blocked = ({each.row for each in jobs} for jobs in (self.handed, self.waiting, self.blocked))
        here = {each.row for each in self.stays}
        for i, each in enumerate(self.handed):
            if each.place not in names:
                raise InputError(unknown("site", each.place, names).message, place=f"handed.place[{i}]")
            if each.number < 0 and each.row not in here:
                raise InputError(f"must have a stay, as job {each.id} is in no cluster", place=f"handed.number[{i}]")
        check_each("new", self.new, waiting, "the row of a waiting job")
        check_each("plan", (job for job, _ in self.plan), blocked, "the row of a job that waits for others")
        unfinished = rows | waiting | blocked
        check_each("fetches", (each.job for each in self.fetches), unfinished, "the row of an unfinished job")
        at_sites: dict[str, Iterable[int]] = {
            **{name: (each.site for each in getattr(self, name)) for name in ("stays", "fetches", "tries", "traces")},
            **{name: (each[1] for each in getattr(self, name)) for name in ("rooms", "unclaimed", "stranded", "plan")},
            "data.assigned": (each.site for each in self.data.assigned),
        }
        for part, sites in at_sites.items():
            check_each(part, sites, range(len(names)), f"a site below {len(names)}")
        of_jobs: dict[str, Iterable[tuple[int, ...]]] = {
            "stays": ((each.row,) for each in self.stays),
            "fetches": (each.callers for each in self.fetches),
            "sites": ((*each.readers, *each.writers) for each in self.sites),
            "data.assigned": ((each.row,) for each in self.data.assigned if each.row is not None),
        }
        for part, found in of_jobs.items():
            for i, jobs in enumerate(found):
                for row in jobs:
                    if row not in rows:
                        raise InputError(f"must be the row of a job at a site, got {row}", place=f"{part}[{i}]")
        models = self.platform.failures
        parts_of = [self.platform.failing(model) for model in models]
        for i, failing in enumerate(self.failing):
            if failing.model >= len(models) or failing.part not in parts_of[failing.model]:
                message = f"must be of a failure model and a part of it, got {failing.model} and {failing.part!r}"
                raise InputError(message, place=f"failing[{i}]")
        fetches = len(self.fetches)
        check_each("transfers", (each.fetch for each in self.transfers), range(fetches), f"a fetch below {fetches}")

    # ------------------------------------------------------------------ what-ifs

    def assuming(self, outages: Iterable[SiteOutageSpec]) -> GridSnapshot:
        """Return the snapshot of a grid that will also have these outages; what-ifs know of them.

        >>> from simmodel import Environment, Grid
        >>> from simmodel.platform import SiteSpec
        >>> snapshot = Grid(Environment(), GridSpec(sites=[SiteSpec(name="a", cores=2)])).snapshot()
        >>> snapshot.assuming([SiteOutageSpec(site="a", at="1min", until=90)]).assumed[0].at
        60.0
        """
        return attrs.evolve(self, assumed=(*self.assumed, *outages))

    def expected(self, *, actual: bool = False) -> GridSnapshot:
        """Return the part that a what-if may see; see ``BrokerSnapshot.expected``.

        Outages that have not begun are unknown, except those assumed; parts that failed by chance return after the mean
        time to repair and do not fail again. Jobs end when they have executed for their planned run time, of which
        nobody knows how much they will read before: none is stopped.
        """
        seen: GridSnapshot = super().expected(actual=actual)  # type: ignore[assignment]
        begun = [i for i, each in enumerate(self.platform.outages) if each.at < self.now or (i, "begin") in self.past]
        number = {i: k for k, i in enumerate(begun)}
        known = tuple(self.platform.outages[i] for i in begun)
        row_of = {(each.place, each.number): each.row for each in self.handed if each.number >= 0}
        executing = {each.row: each.executing for each in self.traces if each.executing is not None}
        phase = {each.row: each.phase for each in self.stays}
        since = {key: executing[row] for key, row in row_of.items() if phase.get(row) == "executing"}
        return attrs.evolve(
            seen,
            platform=attrs.evolve(self.platform, outages=known),
            places=tuple(_with_ends(place, since, actual) for place in seen.places),
            stays=seen.stays if actual else tuple(map(_seen_stay, seen.stays, self._limits)),
            failing=tuple(
                each._replace(at=self.now + self.platform.failures[each.model].mean_time_to_repair, what="back")
                for each in self.failing
                if each.what != "fail"
            ),
            past=tuple((number[i], what) for i, what in self.past if i in number),
            order=tuple(
                ("outage", number[key[1]], *key[2:]) if key[0] == "outage" else key  # type: ignore[index]
                for key in self.order
                if key[0] != "outage" or key[1] in number
            ),
        )

    @property
    def _limits(self) -> list[float]:
        """The requested time of the job of each stay."""
        asked = {each.row: each.asked for each in self.handed}
        return [asked[each.row] for each in self.stays]


def _seen_stay(stay: StayState, limit: float) -> StayState:
    """Return a stay without the run time of its job."""
    spec = stay.spec
    if spec is not None:
        spec = attrs.evolve(spec, run=limit, body=None, cancel=None)
    return stay._replace(spec=spec, length=None if stay.length is None else limit)


def _with_ends(place: Snapshot, since: Mapping[tuple[str, int], float], actual: bool) -> ClusterSnapshot:
    """Return the snapshot of a site in which jobs end that have begun to execute after they had read their inputs."""
    assert isinstance(place, ClusterSnapshot)
    running, planned = list(place.running), list(place.planned)
    for i, run in enumerate(running):
        began = since.get((place.name, run.work.number))
        if began is not None and run.end is None:
            end = expected_end(place.now, began + (run.expected_end - run.started))
            running[i] = run._replace(end=end)
            planned.append(Planned(end, float(END), "end", (i,)))
    planned.sort(key=attrgetter("at", "priority"))
    options = place.options if actual else attrs.evolve(place.options, overrun="continue")
    return attrs.evolve(place, running=tuple(running), planned=tuple(planned), options=options)
