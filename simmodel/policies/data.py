"""Data policies of grids: which replica is read, where outputs go, and which files are moved or dropped beforehand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

from simmodel.foundation.errors import InputError, unknown
from simmodel.scheduling.protocol import DataView, Decides, Decision, Policy, Transfer, View, WakeAt

if TYPE_CHECKING:
    from simmodel.scheduling.protocol import GridSite
    from simmodel.work.job import Brokered

__all__ = [
    "DataPolicy",
    "LeastUsedLink",
    "Prefetch",
    "Replicate",
    "Subscribe",
    "Timed",
    "Transfers",
    "described",
    "made_of",
]


class DataPolicy(Policy):
    """The base class of data policies, and the policy that moves nothing by itself and reads the nearest replica.

    A subclass overrides any of ``source``, ``target`` and ``decide``, which is asked at the start, when jobs are
    assigned, when files come, when sites come back, and at each :class:`~simmodel.scheduling.protocol.WakeAt` that it
    yields.

    >>> DataPolicy().name
    'nearest'
    """

    name = "nearest"
    decides: Decides = "data"
    draws = False
    grid: Any = None

    def attach(self, system: Any) -> None:
        """Receive the grid before the first question."""
        self.grid = system
        super().attach(system)

    def source(self, file: str, size: float, sources: Sequence[GridSite], site: GridSite, /) -> Any:
        """Return the one of the sites with a replica from which a file is brought to a site; default: the nearest."""
        return self.grid.data.nearest(file, size, sources, site)

    def target(self, file: str, site: GridSite, /) -> Any:
        """Return the site to which an output goes that was written at a site; ``None``: it stays there."""
        return None

    def decide(self, view: View | DataView, /) -> Iterable[Decision]:
        """Return or yield transfers and evictions."""
        return ()


class LeastUsedLink(DataPolicy):
    """Bring files from the replica whose route has the fewest transfers on its busiest link; ties: the nearest.

    >>> LeastUsedLink().name
    'least-used-link'
    """

    name = "least-used-link"

    def source(self, file: str, size: float, sources: Sequence[GridSite], site: GridSite, /) -> Any:
        """Return the source with the least used route."""
        data = self.grid.data
        used: Counter[str] = Counter()
        for fetch in data.fetches.values():
            if fetch.transfer is not None:
                used.update(data.links(fetch.source, fetch.site))
        busiest = [max((used[link] for link in data.links(each, site)), default=0) for each in sources]
        least = min(busiest)
        return data.nearest(file, size, [each for each, n in zip(sources, busiest, strict=True) if n == least], site)


class Prefetch(DataPolicy):
    """Send the inputs of a job to its site when it is assigned, and to its home while it waits for the broker.

    >>> Prefetch().name
    'prefetch'
    """

    name = "prefetch"

    def decide(self, view: View | DataView, /) -> Iterator[Decision]:
        """Yield the transfers of inputs that are not where they will be needed."""
        assert isinstance(view, DataView)
        for job, site in view.assigned:
            yield from self._bring(view, job, site)
        for job in view.waiting.new:
            if job.home is not None and job.needs_files:
                yield from self._bring(view, job, job.home)

    def _bring(self, view: DataView, job: Brokered, site: GridSite) -> Iterator[Decision]:
        if site.down or not job.needs_files:
            return
        for file in job.inputs:
            if file in view.files and view.files.sites_of(file) and file not in site.storage.files:
                yield Transfer(file, None, site)


class Replicate(DataPolicy):
    """Copy a file in the background when jobs have asked for it often, to the site without it where it was wanted most.

    Parameters
    ----------
    threshold
        the number of requests by jobs after which it gets one more replica, each time
    copies
        the most replicas that it gets

    Raises
    ------
    InputError
        a number is below 1

    >>> Replicate(10, 2).name
    'replicate(10,2)'
    """

    def __init__(self, threshold: int = 10, copies: int = 3) -> None:
        for name, value in (("threshold", threshold), ("copies", copies)):
            if not (isinstance(value, int) and value >= 1):
                raise InputError(f"must be a whole number >= 1, got {value!r}", place=name)
        self.threshold = threshold
        self.copies = copies
        self.name = f"replicate({threshold},{copies})"
        self._asked: dict[str, Counter[str]] = {}

    def state(self) -> dict[str, dict[str, int]]:
        """Return how often each file was asked for at each site since its last replica was made."""
        return {file: dict(sites) for file, sites in self._asked.items()}

    def restore(self, values: Mapping[str, Mapping[str, int]]) -> None:
        self._asked = {file: Counter(sites) for file, sites in values.items()}

    def decide(self, view: View | DataView, /) -> Iterator[Decision]:
        """Yield one transfer for each file that has become popular."""
        assert isinstance(view, DataView)
        popular: dict[str, None] = {}
        for job, site in view.assigned:
            for file in job.inputs if job.needs_files else ():
                asked = self._asked.setdefault(file, Counter())
                asked[site.name] += 1
                if asked.total() >= self.threshold:
                    popular[file] = None
        for file in popular:
            asked = self._asked.pop(file)
            held = view.files.sites_of(file) if file in view.files else ()
            able = [site for site in view.sites if site.name not in held and not site.down]
            if held and len(held) < self.copies and able:
                yield Transfer(file, None, max(able, key=lambda site: asked[site.name]))


class Subscribe(DataPolicy):
    """Copy files to the sites that have subscribed to them, from the start and when they are written.

    A site that is down gets them once it is back. A copy that is dropped later is not made again.

    Parameters
    ----------
    subscriptions
        for each pattern of file names (``*`` and ``?`` as in file systems) the names of sites

    >>> Subscribe({"raw.*": ["BNL"]}).name
    'subscribe'
    """

    name = "subscribe"

    def __init__(self, subscriptions: Mapping[str, Sequence[str]]) -> None:
        self.subscriptions = subscriptions
        self._known: dict[str, None] = {}  # the files with subscribers that have come
        self._missed: dict[tuple[str, str], None] = {}  # files and the sites that were down when these came

    def state(self) -> list[Any]:
        """Return the known files, and those that sites could not get yet, each with its site."""
        return [list(self._known), [list(each) for each in self._missed]]

    def restore(self, values: Sequence[Any]) -> None:
        self._known = dict.fromkeys(values[0])
        self._missed = dict.fromkeys((file, site) for file, site in values[1])

    def decide(self, view: View | DataView, /) -> Iterator[Decision]:
        """Yield the transfers of new files to their subscribers."""
        assert isinstance(view, DataView)
        wanted = dict(self._missed)
        for file in view.added:
            if file not in self._known:
                subscribers = [sites for pattern, sites in self.subscriptions.items() if fnmatchcase(file, pattern)]
                if subscribers:
                    self._known[file] = None
                    wanted |= dict.fromkeys((file, name) for sites in subscribers for name in sites)
        self._missed = {}
        for file, name in wanted:
            site = view.site(name)
            if file not in view.files or not view.files.sites_of(file) or view.files.holds(file, name):
                continue
            if site.down:
                self._missed[file, name] = None
            else:
                yield Transfer(file, None, site)


class Transfers(DataPolicy):
    """Carry out the next transfer of a list at each decision; under :class:`Timed`, one at each of its instants.

    A transfer to a site that is down waits for a later decision.

    Parameters
    ----------
    transfers
        file, name of the source (``None``: any) and of the destination of each, and optionally ``"copy"`` or ``"move"``

    >>> Transfers([("raw", "CERN", "BNL")]).name
    'transfers'
    """

    name = "transfers"

    def __init__(self, transfers: Sequence[Sequence[Any]]) -> None:
        self.transfers = transfers
        self._next = 0

    def state(self) -> int:
        """Return the number of transfers begun."""
        return self._next

    def restore(self, values: int) -> None:
        """Continue after a number of transfers."""
        self._next = int(values)

    def decide(self, view: View | DataView, /) -> Iterator[Decision]:
        """Yield the next transfer."""
        assert isinstance(view, DataView)
        if self._next < len(self.transfers):
            file, source, name, *mode = self.transfers[self._next]
            destination = view.site(name)
            if not destination.down:
                self._next += 1
                yield Transfer(file, None if source is None else view.site(source), destination, *mode)


class Timed(DataPolicy):
    """Ask another data policy for decisions at fixed instants only.

    Parameters
    ----------
    policy
        a data policy
    start, end, interval
        the first instant, the last possible one, and the time between two (s)

    Raises
    ------
    InputError
        the interval is not > 0, or the start not a finite number >= 0

    >>> Timed(Replicate(5), 0, 1e6, 10_000).name
    'timed replicate(5,3)'
    """

    def __init__(self, policy: DataPolicy, start: float = 0.0, end: float = inf, interval: float = 3600.0) -> None:
        if not interval > 0:
            raise InputError(f"must be > 0 s, got {interval!r}", place="interval")
        if not (isfinite(start) and start >= 0):
            raise InputError(f"must be a finite instant >= 0 s, got {start!r}", place="start")
        self.policy = policy
        self.start = start
        self.end = end
        self.interval = interval
        self.name = f"timed {policy.name}"
        self._asked = 0  # instants at which the policy was asked

    def state(self) -> list[Any]:
        """Return the number of instants so far, and the state of the policy."""
        return [self._asked, self.policy.state()]

    def restore(self, values: Sequence[Any]) -> None:
        """Continue with the number of instants so far, and the state of the policy."""
        self._asked = int(values[0])
        self.policy.restore(values[1])

    def source(self, file: str, size: float, sources: Sequence[GridSite], site: GridSite, /) -> Any:
        return self.policy.source(file, size, sources, site)

    def target(self, file: str, site: GridSite, /) -> Any:
        return self.policy.target(file, site)

    def decide(self, view: View | DataView, /) -> Iterator[Decision]:
        """Yield the decisions of the policy if it is time, and the next instant."""
        assert isinstance(view, DataView)
        due = self.start + self._asked * self.interval
        while due < view.now:
            self._asked += 1
            due = self.start + self._asked * self.interval
        if due == view.now <= self.end:
            self._asked += 1
            yield from self.policy.decide(view)
            due = self.start + self._asked * self.interval
        else:
            view.keep()
        if due <= self.end:
            yield WakeAt(due)


# ---------------------------------------------------------------------- as plain values, for snapshots

_READY: dict[str, type[DataPolicy]] = {
    kind.__name__: kind for kind in (DataPolicy, LeastUsedLink, Prefetch, Replicate, Subscribe, Timed, Transfers)
}


def described(policy: Policy) -> list[Any] | None:
    """Return a data policy of this module as plain values: its class and parameters; ``None``: it is another one.

    >>> described(Timed(Replicate(5), 0, 100, 10))[1]["policy"]
    ['Replicate', {'threshold': 5, 'copies': 3}]
    """
    kind = type(policy).__name__
    if _READY.get(kind) is not type(policy):
        return None
    found: dict[str, Any] = {}
    for name, value in policy.parameters().items():
        plain = described(value) if isinstance(value, Policy) else _plain(value)
        if isinstance(value, Policy) and plain is None:
            return None
        found[name] = plain
    return [kind, found]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(each) for each in value]
    return "inf" if value == inf else value


def made_of(document: Any) -> DataPolicy:
    """Return the data policy of a description; raises ``InputError`` if it is none.

    >>> made_of(["Replicate", {"threshold": 5}]).name
    'replicate(5,3)'
    """
    if not (isinstance(document, list) and len(document) == 2 and isinstance(document[1], dict)):
        raise InputError(f"must be the class and the parameters of a data policy, got {document!r}")
    kind, parameters = document
    if kind not in _READY:
        raise unknown("data policy", str(kind), _READY)
    values = {name: inf if value == "inf" else value for name, value in parameters.items()}
    if "policy" in values:
        values["policy"] = made_of(values["policy"])
    try:
        return _READY[kind](**values)
    except TypeError as error:
        raise InputError(f"{kind}: {error}") from None
