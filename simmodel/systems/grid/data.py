"""The files of a grid: replicas, transfers between sites, and room for files that come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Literal, Protocol

import attrs

from simmodel.foundation.errors import InputError, SnapshotError
from simmodel.foundation.units import show_quantity
from simmodel.resources.data.catalogue import Catalogue
from simmodel.resources.data.storage import make_storage
from simmodel.resources.network.network import Network
from simmodel.snapshots.grid import FetchState, FilesState, TransferState
from simmodel.work.job import OVER

if TYPE_CHECKING:
    from simpy.events import Event

    from simmodel.environment import Environment
    from simmodel.platform.grid import GridSpec
    from simmodel.platform.storage import StorageSpec
    from simmodel.resources.network.shared_channel import ChannelState, SharedChannel
    from simmodel.resources.network.transfer import Transfer
    from simmodel.snapshots.grid import GridSnapshot
    from simmodel.systems.destination import BrokeredJob
    from simmodel.systems.grid.site import Site

__all__ = ["FAR", "Arrived", "DataManager", "Fetch", "Hopeless", "Ways", "no_replica"]


FAR = 1e12
"""The seconds that planners count for a way that does not exist: they take any other."""


class Ways:
    """The ways between the sites of a grid.

    Parameters
    ----------
    network
        the network
    sites
        the sites, in the order of the catalogue, which is that of their numbers
    """

    def __init__(self, network: Network, sites: Sequence[Site]) -> None:
        self._network = network
        self._sites = sites
        self._number = {site: number for number, site in enumerate(sites)}
        # To each site, by source; None: not looked up yet.
        self._joined: dict[Site, list[bool | None]] = {}  # whether there is a route
        self._idle: dict[Site, list[tuple[float, float] | None]] = {}  # wait (s) and rate (bytes/s)
        self._asked = -inf  # the instant of the last question about idle links
        network.on_link_change(lambda _link: self._idle.clear())

    def sources(self, numbers: Sequence[int], site: Site) -> list[Site]:
        """Return the sites with these numbers that can send files to a site now: up, and joined by a route."""
        sites, joined = self._sites, self._joined.get(site)
        if joined is None:
            joined = self._joined[site] = [None] * len(sites)
            joined[self._number[site]] = False
        for number in numbers:
            if joined[number] is None:
                joined[number] = self.joined(sites[number], site)
        return [sites[number] for number in numbers if joined[number] and not sites[number].down]

    def joined(self, source: Site, site: Site) -> bool:
        """Return whether there is a route from a site to another."""
        try:
            self._network.route(source.name, site.name)
        except InputError:
            return False
        return True

    def seconds(self, size: float, sources: Sequence[Site], site: Site) -> list[float]:
        """Return how long bytes take from each source to a site on idle links, infinity if one is down."""
        if self._network.restless and self._asked != self._network.env._now:
            self._asked = self._network.env._now
            self._idle.clear()
        row = self._idle.get(site)
        if row is None:
            row = self._idle[site] = [None] * len(self._sites)
        numbers = [source.number for source in sources]
        try:
            return [wait + size / rate for wait, rate in [row[number] for number in numbers]]  # type: ignore[misc]
        except (TypeError, ZeroDivisionError):  # some are unknown, or have a link that is down
            return [self._between(row, number, size, site) for number in numbers]

    def way(self, source: Site, site: Site) -> tuple[float, float]:
        """Return the seconds before the first byte, and those per byte, on idle links; ``FAR``: there is no way."""
        if source is site:
            return 0.0, 0.0
        if not self.joined(source, site):
            return FAR, 0.0
        wait, rate = self._network.idle(source.name, site.name)
        return (wait, 1 / rate) if rate > 0 else (FAR, 0.0)

    def _between(self, row: list[tuple[float, float] | None], number: int, size: float, site: Site) -> float:
        idle = row[number]
        if idle is None:
            idle = row[number] = self._network.idle(self._sites[number].name, site.name)
        wait, rate = idle
        return wait + size / rate if rate > 0 else inf if size else wait


Arrived = Callable[[str | None], object]
"""Called when a file has arrived, or with the reason why it never will."""


class Hopeless(str):
    """A reason for which it makes no sense to try again at another site."""

    __slots__ = ()


def no_replica(file: str) -> Hopeless:
    """Return the reason why a file cannot be brought anywhere."""
    return Hopeless(f"file {file} exists nowhere")


class Fetch:
    """A file on its way to a site.

    Attributes
    ----------
    file, size, site
        its name and bytes; where it goes
    callers
        those who wait for it, each of whom gets a pin, with their jobs
    source, transfer
        the site that it comes from, and its transfer, once it has started
    room
        whether it has room
    job
        the job that its bytes are charged to: the first that asked for it, or for which a planner sends it; or ``None``
    mode
        ``"copy"``, or ``"move"``: the replica at the source goes when it has arrived
    cause
        why it is moved, for the record: ``"stage in"``, ``"stage out"`` or the name of a data policy
    """

    __slots__ = ("callers", "cause", "file", "job", "mode", "room", "site", "size", "source", "transfer", "tries")

    def __init__(self, file: str, size: float, site: Site, cause: str) -> None:
        self.file = file
        self.size = size
        self.site = site
        self.cause = cause
        self.job: BrokeredJob | None = None
        self.callers: dict[Arrived, BrokeredJob | None] = {}
        self.source: Site | None = None
        self.transfer: Transfer | None = None
        self.room = False
        self.mode: Literal["copy", "move"] = "copy"
        self.tries = 0

    def __repr__(self) -> str:
        return f"<fetch of {self.file} to {self.site.name}>"


class Callers(Protocol):
    """Those who wait for files, and read and write them: the stays of jobs, which snapshots refer to by rows."""

    def rows(self) -> Mapping[Arrived, int]:
        """Return the rows of the jobs that wait for files, by the calls that notify them."""

    def arrival(self, row: int, file: str, /) -> Arrived:
        """Return the call by which the job of a row of a snapshot learns that a file has arrived."""

    def writer(self, file: str, site: Site, /) -> Arrived | None:
        """Return the call by which the job that writes a file at a site learns of room for it."""

    def resume(self, channel: SharedChannel, state: ChannelState, rows: tuple[int, ...], writes: bool, /) -> None:
        """Restore the accesses of a channel, given the rows of their jobs in the snapshot."""

    def busy(self, site: Site, /) -> bool:
        """Whether jobs at a site will release files by themselves."""

    def give_way(self, site: Site, files: Sequence[str], /) -> bool:
        """Fail one of the jobs at a site that hold files while they wait for these; return whether this helps."""

    def charge(self, job: BrokeredJob, size: float, /) -> None:
        """Count bytes that were moved for a job."""


class DataManager:
    """Brings files to sites: each file once, however many ask for it.

    Parameters
    ----------
    env
        the environment
    spec
        the spec of the grid
    sites
        its sites
    retries
        how often a transfer is begun again after a failure
    files
        whether the files of the spec are put in their places

    Attributes
    ----------
    catalogue, network, way
        the files with their replicas; the network between the sites; see :meth:`Ways.way`
    fetches
        the files on their way, by name and site
    flows
        by source and destination: files that arrived, their bytes, transfers that failed or were broken off
    unclaimed
        the bytes that policies moved and no job has asked for, by file and site
    choose
        the data policy's choice of a source: ``choose(file, size, sources, site)`` returns one of the sources
    send_outputs
        the data policy's choice of the site to which a file goes that was written at a site; ``None``: it stays
    jobs
        the stays of the jobs, once there are any
    """

    jobs: Callers

    def __init__(
        self, env: Environment, spec: GridSpec, sites: tuple[Site, ...], retries: int, files: bool = True
    ) -> None:
        self.env = env
        self.retries = retries
        self.by_name = {site.name: site for site in sites}
        self.catalogue = Catalogue(self.by_name)
        self.network = Network(env, spec.network)
        self._ways = Ways(self.network, sites)
        self.way = self._ways.way
        self.fetches: dict[tuple[str, str], Fetch] = {}
        self.flows: dict[tuple[str, str], list[float]] = {}
        self.unclaimed: dict[tuple[str, str], float] = defaultdict(float)
        self.choose: Callable[[str, float, list[Site], Site], Site] = self.nearest
        self.send_outputs: Callable[[str, Site], Site | None] = _stay_there
        self._rooms: dict[tuple[str, str], Arrived] = {}  # the waits for room, by file and site, in order
        self._stranded: dict[Fetch, None] = {}  # whose replicas are all at sites that are down
        self._moving: dict[Site, int] = dict.fromkeys(sites, 0)  # transfers to and from each site
        self._checking: set[Site] = set()  # where files that wait for room are being given up
        for site, given in zip(sites, spec.sites, strict=True):
            site.storage = make_storage(env, _named(given.storage, site.name), self.catalogue)
        for file in spec.files if files else ():
            self.catalogue.declare(file.name, file.size)
            for name in file.sites:
                self.place(file.name, file.size, self.by_name[name])

    def use_defaults(self) -> None:
        """Bring files from the nearest source, and leave outputs where they were written."""
        self.choose, self.send_outputs = self.nearest, _stay_there

    def place(self, file: str, size: float, site: Site) -> None:
        """Put a replica at a site at the beginning; raises ``InputError`` if there is no room."""
        site.storage.add(file, size, "given")

    def replicas(self, file: str) -> list[Site]:
        """Return the sites that hold a file, in the order of the sites; those that are down too."""
        if file not in self.catalogue:
            return []
        return [self.by_name[name] for name in self.catalogue.sites_of(file)]

    # ------------------------------------------------------------------ moving files

    def fetch(
        self, file: str, site: Site, call: Arrived, cause: str = "stage in", job: BrokeredJob | None = None
    ) -> None:
        """Bring a file to a site, where it has one pin more; ``call`` is called at once if it is there already.

        Its bytes are charged to the job that asks for it first, whoever began to send it: so are those that a policy
        has moved there before.

        Parameters
        ----------
        file, site
            its name, and where it is needed
        call
            called with ``None`` once it is there, or with the reason why it cannot come
        cause, job
            for the record
        """
        if job is not None and (moved := self.unclaimed.pop((file, site.name), 0.0)):
            self.jobs.charge(job, moved)
        if file in site.storage.files:
            site.storage.pin(file)
            call(None)
            return
        fetch = self.fetches.get((file, site.name))
        if fetch is not None:
            fetch.callers[call] = job
        elif file not in self.catalogue or not self.catalogue.sites_of(file):
            call(no_replica(file))
        else:
            fetch = Fetch(file, self.catalogue.size(file), site, cause)
            fetch.job = fetch.callers[call] = job
            self._begin(fetch)

    def _begin(self, fetch: Fetch) -> None:
        site = fetch.site
        self.fetches[fetch.file, site.name] = fetch
        self.room(fetch.file, fetch.size, site, partial(self._has_room, fetch))

    def room(self, file: str, size: float, site: Site, call: Arrived) -> None:
        """Reserve room for a file; ``call`` is called with ``None`` once there is, or with why there never will be."""
        why = site.storage.why_not(file, size)
        if why is None and site.storage.expects(file):
            why = f"file {file} is on its way to {site.name} already"
        if why is not None:
            call(why)
            return
        key = file, site.name
        self._rooms[key] = call
        site.storage.reserve(file, size, partial(self._reserved, key))
        if key in self._rooms:
            self.check_room(site)

    def _reserved(self, key: tuple[str, str]) -> None:
        self._rooms.pop(key)(None)

    def no_room_needed(self, file: str, site: Site) -> None:
        """Give up the room for a file, or the wait for it."""
        self._rooms.pop((file, site.name), None)
        site.storage.release(file)

    def transfer(
        self,
        file: str,
        source: Site | None,
        site: Site,
        mode: Literal["copy", "move"] = "copy",
        cause: str = "policy",
        job: BrokeredJob | None = None,
    ) -> str | None:
        """Copy or move a file to a site for a policy, for a job if one is given; return why it cannot be, or ``None``.

        A file that is there already, or on its way, is not sent again.
        """
        if file in site.storage.files or (file, site.name) in self.fetches:
            return None
        replicas = self.replicas(file)
        if not replicas:
            return no_replica(file)
        if source is not None and source not in replicas:
            return f"file {file} is not at {source.name}"
        if site.down:
            return f"{site.name} is down"
        if source is not None and not self._ways.joined(source, site):
            return f"no route from {source.name} to {site.name}"
        fetch = Fetch(file, self.catalogue.size(file), site, cause)
        fetch.source, fetch.mode, fetch.job = source, mode, job
        self._begin(fetch)
        return None

    def evict(self, file: str, site: Site, *, last: bool = False) -> str | None:
        """Drop a replica for a data policy; return why it cannot be, or ``None``; ``last``: it may be the last one."""
        why = site.storage.why_keep(file)
        if why is None:
            site.storage.drop(file, "policy")
        elif last and file in site.storage.files and not site.storage.pins(file):
            site.storage.drop(file, "last replica dropped by policy", last=True)
            return None
        return why

    def links(self, source: Site, site: Site) -> tuple[str, ...]:
        return self.network.route(source.name, site.name)

    def nearest(self, _file: str, size: float, sources: list[Site], site: Site) -> Site:
        """Return the source from which the bytes take least on idle links; ties go to the first."""
        if len(sources) == 1:
            return sources[0]
        seconds = self._ways.seconds(size, sources, site)
        return sources[seconds.index(min(seconds))]

    def seconds(self, file: str, site: Site) -> float:
        """Return how long a file takes to a site on idle links; 0 if it is there, infinity if it cannot come."""
        if file in site.storage.files:
            return 0.0
        sources = self._sources(file, site)
        size = self.catalogue.size(file) if sources else 0.0
        return min(self._ways.seconds(size, sources, site), default=float("inf"))

    def _sources(self, file: str, site: Site) -> list[Site]:
        return self._ways.sources(self.catalogue.numbers_of(file), site) if file in self.catalogue else []

    def _has_room(self, fetch: Fetch, reason: str | None) -> None:
        if reason is not None:
            self._give_up(fetch, reason, room=False)
            return
        fetch.room = True
        self._send(fetch)

    def _send(self, fetch: Fetch) -> None:
        """Start the transfer of a file that has room, from one of the sites that have it, once its site is up."""
        site = fetch.site
        source = fetch.source
        if site.down:
            self._stranded[fetch] = None
            return
        if source is None or source.down or fetch.file not in source.storage.files:
            sources = self._sources(fetch.file, site)
            if not sources:
                self._without_source(fetch)
                return
            source = self.choose(fetch.file, fetch.size, sources, site)
        fetch.source = source
        source.storage.pin(fetch.file)
        self._moving[source] += 1
        self._moving[site] += 1
        transfer = self.network.transfer(fetch.size, source=source.name, destination=site.name)
        fetch.transfer = transfer
        for hook in self.env.hooks("file_transfer_started"):
            hook(fetch)
        if transfer.processed:
            self._sent(fetch, transfer)
        else:
            transfer.callbacks.append(partial(self._sent, fetch))

    def _carry_on(self, fetch: Fetch, left: float, start: float, lag: float) -> None:
        """Go on with the transfer of a fetch of a snapshot: see :meth:`Network.carry_on`."""
        source, site = fetch.source, fetch.site
        assert source is not None
        self._moving[source] += 1
        self._moving[site] += 1
        fetch.transfer = transfer = self.network.carry_on(fetch.size, left, source.name, site.name, lag)
        transfer.start = start
        if transfer.processed:  # nothing was left
            self.env.call_at(self.env._now, partial(self._sent, fetch, transfer))
        else:
            transfer.callbacks.append(partial(self._sent, fetch))

    def _without_source(self, fetch: Fetch) -> None:
        replicas = self.replicas(fetch.file)
        if any(each.down for each in replicas):
            self._stranded[fetch] = None
        elif replicas:
            self._give_up(fetch, f"no route to {fetch.site.name} from {', '.join(each.name for each in replicas)}")
        else:
            self._give_up(fetch, no_replica(fetch.file))

    def _sent(self, fetch: Fetch, transfer: Event) -> None:
        if transfer is not fetch.transfer:  # it was broken off
            transfer.defused = True
            return
        source, site = fetch.source, fetch.site
        assert source is not None
        self._left(fetch, transfer)
        if not transfer.ok:
            transfer.defused = True
            fetch.tries += 1
            fetch.source = None
            if fetch.tries > self.retries:
                self._give_up(fetch, f"transfer of file {fetch.file} from {source.name} failed")
            else:
                self._send(fetch)
            return
        del self.fetches[fetch.file, site.name]
        callers = fetch.callers
        site.storage.add(fetch.file, fetch.size, fetch.cause, pins=len(callers))
        if fetch.mode == "move" and source.storage.why_keep(fetch.file) is None:
            source.storage.drop(fetch.file, "moved")
        for call in callers:
            call(None)
        self.check_room(source)
        self.check_room(site)

    def _left(self, fetch: Fetch, transfer: Event) -> None:
        """Count the transfer of a file, which is over, charge its bytes, and notify observers."""
        assert fetch.source is not None
        flow = self.flows.setdefault((fetch.source.name, fetch.site.name), [0, 0.0, 0])
        askers = [job for job in (fetch.job, *fetch.callers.values()) if job is not None and job.state not in OVER]
        fetch.job = askers[0] if askers else None
        if transfer.ok:
            flow[0] += 1
            flow[1] += fetch.size
            if fetch.job is not None:
                self.jobs.charge(fetch.job, fetch.size)
            else:
                self.unclaimed[fetch.file, fetch.site.name] += fetch.size
        else:
            flow[2] += 1
        fetch.transfer = None
        for hook in self.env.hooks("file_transfer_ended"):
            hook(fetch, transfer)
        self._moving[fetch.source] -= 1
        self._moving[fetch.site] -= 1
        fetch.source.storage.unpin(fetch.file)  # which may bring the next event

    def _give_up(self, fetch: Fetch, reason: str, *, room: bool = True) -> None:
        del self.fetches[fetch.file, fetch.site.name]
        if room:  # its own, or its wait for it
            self.no_room_needed(fetch.file, fetch.site)
        self._stranded.pop(fetch, None)
        for call in fetch.callers:
            call(reason)
        for hook in self.env.hooks("file_transfer_failed"):
            hook(fetch, reason)

    def forget(self, file: str, site: Site, call: Arrived) -> None:
        """Take back a request whose caller no longer needs the file; the last one stops the transfer."""
        fetch = self.fetches.get((file, site.name))
        if fetch is None or call not in fetch.callers:
            return
        del fetch.callers[call]
        if not fetch.callers and fetch.cause in ("stage in", "stage out"):
            self._stop(fetch)
            self._give_up(fetch, "no longer needed")

    def _stop(self, fetch: Fetch) -> None:
        transfer = fetch.transfer
        if transfer is not None:
            transfer.defused = True
            transfer.cancel()
            self._left(fetch, transfer)

    # ------------------------------------------------------------------ room that never comes

    def check_room(self, site: Site) -> None:
        """Have a job give way, or give up the first file that waits, at a site where nothing else will make room."""
        if not site.storage.waiting or site in self._checking:  # those who are told of a file give up others
            return
        self._checking.add(site)
        while site.storage.waiting and not self._moving[site] and not self.jobs.busy(site):
            files = [file for file, name in self._rooms if name == site.name]
            if not files:
                break
            key = files[0], site.name
            if (key not in self.fetches or self.fetches[key].callers) and self.jobs.give_way(site, files):
                continue
            call = self._rooms.pop(key)
            site.storage.release(key[0])
            call(f"no room for file {key[0]} in storage {site.name}")
        self._checking.discard(site)

    # ------------------------------------------------------------------ sites that fail

    def site_fails(self, site: Site) -> None:
        """Break off the transfers to and from a site; those from it begin again, outputs to it once it is back."""
        for fetch in list(self.fetches.values()):
            if not self._wanted(fetch):
                continue
            if fetch.site is site and fetch.cause == "stage out":
                if fetch.transfer is not None:
                    self._stop(fetch)
                    self._stranded[fetch] = None
            elif fetch.site is site:
                self._stop(fetch)
                self._give_up(fetch, "site failed")
            elif fetch.source is site and fetch.transfer is not None:
                self._stop(fetch)
                fetch.source = None
                self._send(fetch)

    def site_is_back(self, _site: Site) -> None:
        """Send the files whose site, or whose replicas, were out of reach."""
        stranded = list(self._stranded)
        self._stranded.clear()
        for fetch in stranded:
            if self._wanted(fetch):
                self._send(fetch)

    def _wanted(self, fetch: Fetch) -> bool:
        """Whether a file is still to come: the handling of another one may have ended its job."""
        return self.fetches.get((fetch.file, fetch.site.name)) is fetch

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence for each file that waits for sites that are down: its own, or all that have it."""
        for fetch in self._stranded:
            down = fetch.site.name if fetch.site.down else ", ".join(site.name for site in self.replicas(fetch.file))
            yield f"file {fetch.file} cannot be brought to {fetch.site.name}: down: {down}"

    def notes(self, name: str) -> Iterator[str]:
        """Yield a sentence about the bytes that are charged to no job of a grid of this name, if there are any."""
        if moved := sum(self.unclaimed.values()):
            shown = show_quantity(float(f"{moved:.3g}"), "B")
            yield f"{name}: {shown} were moved by policies to sites where no job asked for them: charged to no job"

    # ------------------------------------------------------------------ snapshots

    def state(self, callers: Callers, known: Container[BrokeredJob]) -> FilesState:
        """Return the files with their replicas, and those on their way; ``known``: the jobs that have not ended.

        Raises
        ------
        SnapshotError
            if a script has changed the network or waits for a file, a transfer ends at this instant, or the model of
            a link, or of how links are shared, has no snapshots
        """
        self.network.settle()
        self._check_copy()
        fetches = list(self.fetches.values())
        number = {fetch.transfer: i for i, fetch in enumerate(fetches) if fetch.transfer is not None}
        rows = callers.rows()
        return FilesState(
            self.catalogue.state(),
            tuple(_fetch_state(fetch, rows, known) for fetch in fetches),
            tuple(
                TransferState(number[each], float(each.left), float(each.start), float(each.lag))
                for each in self.network.under_way()
            ),
            tuple((file, self.by_name[name].number) for file, name in self._rooms),
            tuple((fetch.file, fetch.site.number) for fetch in self._stranded),
            self.network.own_states(),
            tuple((file, self.by_name[name].number, size) for (file, name), size in self.unclaimed.items()),
        )

    def _check_copy(self) -> None:
        network = self.network
        ours = {fetch.transfer for fetch in self.fetches.values()}
        under_way = set(network.under_way())
        for transfer in network.under_way():
            if transfer not in ours:
                raise SnapshotError(f"{transfer.describe()} cannot be copied: no fetch of the grid has begun it")
            if transfer.status not in ("waiting", "moving"):
                raise SnapshotError(f"{transfer.describe()} cannot be copied: it is {transfer.status}")
        for fetch in self.fetches.values():
            if fetch.transfer is not None and fetch.transfer not in under_way:
                raise SnapshotError(
                    f"{fetch!r} cannot be copied: it ends at this instant; take the snapshot between events"
                )
        for link in network.links.values():
            if link.altered:
                raise SnapshotError(f"link {link.name} cannot be copied: a script has changed it")
            if not link.snapshots:
                raise SnapshotError(f"link {link.name} cannot be copied: {type(link).__name__} has snapshots = False")
        rule = network.rule
        if rule is not None and not rule.snapshots:
            raise SnapshotError(f"the network cannot be copied: {type(rule).__name__} has snapshots = False")

    def restore(self, snapshot: GridSnapshot, callers: Callers, jobs: Mapping[int, BrokeredJob]) -> None:
        """Restore the files of a snapshot, those on their way, and the storages of the sites.

        ``jobs``: the unfinished jobs by their rows in the snapshot.

        Raises
        ------
        InputError
            if nothing waits for room that the snapshot says is waited for
        """
        sites = list(self.by_name.values())
        fetches = [self._fetch_again(each, sites, callers, jobs) for each in snapshot.fetches]
        for file, number in snapshot.rooms:
            site = sites[number]
            fetch = self.fetches.get((file, site.name))
            call = callers.writer(file, site) if fetch is None else partial(self._has_room, fetch)
            if call is None:
                raise InputError(f"rooms: nothing waits for room for file {file} at {site.name}")
            self._rooms[file, site.name] = call
        for site, state in zip(sites, snapshot.sites, strict=True):
            calls = {file: partial(self._reserved, (file, name)) for file, name in self._rooms if name == site.name}
            site.restore_files(state, calls, callers.resume)
        self.catalogue.restore(snapshot.catalogue)
        self.network.restore_own(snapshot.links)
        for each in snapshot.transfers:
            self._carry_on(fetches[each.fetch], each.left, each.start, each.lag)
        self.network.settle()
        for file, number in snapshot.stranded:
            self._stranded[self.fetches[file, sites[number].name]] = None
        for file, number, size in snapshot.unclaimed:
            self.unclaimed[file, sites[number].name] = size

    def _fetch_again(
        self, state: FetchState, sites: Sequence[Site], callers: Callers, jobs: Mapping[int, BrokeredJob]
    ) -> Fetch:
        fetch = Fetch(state.file, state.size, sites[state.site], state.cause)
        fetch.callers = {callers.arrival(row, state.file): jobs[row] for row in state.callers}
        fetch.job = None if state.job is None else jobs[state.job]
        fetch.source = None if state.source is None else sites[state.source]
        fetch.tries, fetch.room, fetch.mode = state.tries, state.room, state.mode
        self.fetches[state.file, fetch.site.name] = fetch
        return fetch


def _fetch_state(fetch: Fetch, rows: Mapping[Arrived, int], known: Container[BrokeredJob]) -> FetchState:
    for call in fetch.callers:
        if call not in rows:
            raise SnapshotError(f"{fetch!r} cannot be copied: a function waits for it")
    return FetchState(
        fetch.file,
        fetch.site.number,
        fetch.size,
        fetch.cause,
        tuple(rows[call] for call in fetch.callers),
        fetch.job.row if fetch.job is not None and fetch.job in known else None,
        None if fetch.source is None else fetch.source.number,
        fetch.tries,
        fetch.room,
        fetch.mode,
    )


def _stay_there(_file: str, _site: Site) -> Site | None:
    return None


def _named(spec: StorageSpec, site: str) -> StorageSpec:
    return spec if spec.name == site else attrs.evolve(spec, name=site)
