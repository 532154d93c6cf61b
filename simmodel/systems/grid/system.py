"""Grids: a broker over sites, which have a cluster, a storage and a place in a network."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import attrs
import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.platform.grid import GridSpec
from simmodel.platform.options import GridOptions, Options
from simmodel.records.streamed_recorder import EVERY, Extent
from simmodel.scheduling.registry import policy as policy_of
from simmodel.scheduling.scheduler import check_decides
from simmodel.snapshots.grid import GridSnapshot
from simmodel.systems.broker.core import Part
from simmodel.systems.grid.core import GridCore, asked_of_sites
from simmodel.systems.grid.data_scheduler import chosen_data_policy
from simmodel.systems.grid.ledger import StreamedLedger
from simmodel.systems.grid.record import grid_result, job_table, place_table, result_of, run_table
from simmodel.systems.grid.snapshots import capture_grid, restore_grid
from simmodel.systems.kinds import Kind
from simmodel.systems.submissions import read_submissions

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy as np
    from numpy.typing import NDArray

    from simmodel.environment import Environment
    from simmodel.records.streamed_recorder import Write
    from simmodel.results.grid import GridResult
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.snapshots.snapshot import Snapshot
    from simmodel.systems.kinds import GivenPolicies
    from simmodel.systems.submissions import GivenWork, Submissions
    from simmodel.systems.system import System
    from simmodel.work.table import Table

__all__ = ["GRID", "Grid", "GridKind", "GridStream"]


class GridStream:
    """Writes the rows of the jobs of a grid that have ended, and forgets them.

    Parameters
    ----------
    grid
        the grid, before its first job
    write
        the function that writes tables
    every
        after how many jobs that come one by one rows are written

    Attributes
    ----------
    extent
        of the rows written so far
    """

    def __init__(self, grid: GridCore, write: Write, every: int = EVERY) -> None:
        self.extent = Extent()
        self._grid, self._write, self._every = grid, write, every
        self._came = 0
        self.ledger = grid.ledger = StreamedLedger()

    def came(self) -> None:
        """Count a job that comes by itself."""
        self._came += 1
        if self._came >= self._every:
            self.drain()

    def drain(self) -> None:
        """Write the rows of the jobs that have ended."""
        self._came = 0
        rows = self.ledger.ended()
        if len(rows):
            self._put(rows, over=True)

    def _put(self, rows: NDArray[np.int64], *, over: bool) -> None:
        """Write rows, and those of their executions if one had several; the others follow from the jobs."""
        grid, ledger = self._grid, self.ledger
        jobs = job_table(grid, ledger.take(rows), rows, over=over)
        self.extent.add(jobs)
        self._write("jobs", rows, jobs)
        ledger.forget(rows.tolist())
        past = {row: ledger.past.pop(row) for row in sorted(ledger.past.keys() & set(rows.tolist()))}
        if past:
            several = np.array(list(past))
            self._write("runs", *run_table(jobs.where(np.searchsorted(rows, several)), several, past))

    def result(self, name: str) -> GridResult:
        """Write all rows that are left, and return the result without jobs."""
        grid, nothing = self._grid, np.zeros(0, dtype=np.int64)
        if grid.chunks is not None:
            grid.chunks.read_the_rest()
        self.drain()
        rows = self.ledger.open
        for begin in range(0, len(rows), EVERY):
            self._put(rows[begin : begin + EVERY], over=False)
        jobs = job_table(grid, self.ledger.submitted(), nothing)
        return result_of(grid, name, jobs, None, **self.extent.span(float(grid.env.now)))


class Grid(GridCore):
    """Sites under one broker: each job goes to a site, where its files are brought before it runs.

    Parameters
    ----------
    env
        the environment
    spec
        the sites, their network and files
    policy
        the broker: a name, a policy, or a function of a view whose places are the sites
    policies
        the policies of the sites: one for all, or by name; default: ``"fcfs"``
    by
        whether estimates use ``"requested"`` or ``"actual"`` run times
    data
        the data policy: a name, a policy of :mod:`simmodel.policies.data`, or a function of a view
    name, rank
        its name in reports; its turn among schedulers that share an instant
    clusters
        for :meth:`from_snapshot`: the clusters of the sites, if these have been restored
    overrun
        ``"stop"`` ends jobs that have held cores for their requested time, which counts at speed 1; ``"continue"``:
        they run on

    Attributes
    ----------
    sites
        the sites by name
    data, stays, outages
        its parts: files; jobs on their way to and from sites, with their files; sites that are down or closed
    dispatching
        whether it assigns jobs

    Observers may have ``job_assigned(job, site)``, ``job_queued(job, site)``, ``job_retried(job, site, reason)`` and
    ``job_finished(job, site)``, and the hooks of brokers and clusters.

    Raises
    ------
    InputError
        if a policy is unknown

    >>> from simmodel import Environment, Job
    >>> from simmodel.platform import GridSpec, SiteSpec
    >>> env = Environment()
    >>> grid = Grid(env, GridSpec(sites=[SiteSpec(name="a", cores=2), SiteSpec(name="b", cores=2)]), "round-robin")
    >>> jobs = [grid.submit(Job(processors=2, run=10)) for _ in range(3)]; env.run()
    >>> grid.result().jobs["site"].tolist(), grid.result().jobs["end"].tolist()
    (['a', 'b', 'a'], [10.0, 10.0, 20.0])
    """

    stream: GridStream | None = None
    """The writer of the record as the run goes on, or ``None``."""

    # ------------------------------------------------------------------ snapshots

    def snapshot(self) -> GridSnapshot:
        """Return the state of the grid, its sites and their files as a plain value, from which it can continue.

        Best taken between events, after the decisions of the instant.

        Raises
        ------
        SnapshotError
            if a part cannot be copied: a body, the memory of a data policy, an access of a script

        >>> from simmodel import Environment, Job
        >>> from simmodel.platform import GridSpec, SiteSpec
        >>> env = Environment()
        >>> grid = Grid(env, GridSpec(sites=[SiteSpec(name="a", cores=4)]))
        >>> for _ in range(3): _ = grid.submit(Job(processors=4, run=10))
        >>> env.run(until=5)
        >>> grid.snapshot()
        <GridSnapshot of a at 5 s: 1 running, 2 waiting>
        """
        self.check_whole()
        return capture_grid(self)

    @classmethod
    def from_snapshot(  # type: ignore[override]
        cls,
        env: Environment,
        snapshot: GridSnapshot,
        policy: PolicyLike | None = None,
        policies: GivenPolicies = None,
        data: PolicyLike | None = None,
    ) -> Self:
        """Return a grid that continues from a snapshot; its record has the jobs unfinished at that instant.

        Parameters
        ----------
        env
            a new environment, at the instant of the snapshot
        snapshot
            the snapshot
        policy
            the broker; default: that of the snapshot, with its memory
        policies
            the policies of the sites, one for all or by name; default: those of the snapshot
        data
            the data policy; default: that of the snapshot, with its memory

        Raises
        ------
        InputError
            if the instant differs, a policy is unknown, or parts of the snapshot contradict each other

        >>> from simmodel import Environment, Job
        >>> from simmodel.platform import GridSpec, SiteSpec
        >>> env = Environment()
        >>> grid = Grid(env, GridSpec(sites=[SiteSpec(name="a", cores=4)]))
        >>> _ = grid.submit(Job(processors=4, run=10)); env.run(until=5)
        >>> later = Environment(5)
        >>> again = Grid.from_snapshot(later, grid.snapshot())
        >>> later.run(); again.result().jobs["end"].tolist()
        [10.0]
        """
        return restore_grid(cls, env, snapshot, policy, policies, data)

    # ------------------------------------------------------------------ results

    def place_table(self) -> Table:
        """Return the places of the record: the sites."""
        return place_table(self)

    def stream_record(self, write: Write, *, every: int = EVERY) -> None:
        """Write the rows of jobs that have ended by a function instead of keeping them, from the first job on.

        Raises
        ------
        InputError
            if jobs have been submitted
        """
        if self.submitted:
            raise InputError(f"must be None for {self!r}, which has jobs", place="stream")
        for site in self.places:
            site.system.dependencies.forgets = True
        self.stream = GridStream(self, write, every)

    def part(self, places: Collection[str], rows: NDArray[np.int64]) -> Part:
        """Return the part of the record about the jobs in some rows, which ran at these sites."""
        return Part({}, rows, self.result().jobs.where(rows), bool(self.unfinished))

    def result(self, name: str | None = None) -> GridResult:  # type: ignore[override]
        """Return the result so far; ``name`` is its name in tables."""
        name = name or self.scheduler.policy_name
        return grid_result(self, name) if self.stream is None else self.stream.result(name)


@attrs.frozen(kw_only=True, repr=False)
class GridKind(Kind):
    """The kind of grids: the homes of work are sites, each of which has a policy."""

    asks = GridCore.asks
    homes = True

    def of_nodes(self, spec: Any) -> frozenset[str]:
        """Return ``"files"``, ``"cores"`` if all sites have hosts, and ``"memory"`` if any of these has some."""
        return asked_of_sites(spec)

    def read_work(
        self, given: GivenWork, spec: Any, seed: int, inputs: Mapping[str, Any] = MappingProxyType({})
    ) -> tuple[Submissions, Any]:
        """Return the submissions, whose homes are sites, and the spec."""
        homes = [site.name for site in spec.sites]
        return read_submissions("jobs", given, homes=homes, of_nodes=self.of_nodes(spec), seed=seed), spec

    def build(
        self,
        env: Environment,
        spec: GridSpec,
        policy: PolicyLike,
        options: Options,
        *,
        policies: GivenPolicies = None,
        name: str | None = None,
    ) -> System[Any]:
        return Grid(env, spec, policy, policies=policies, name=name, **options.values())

    def check_data(self, snapshot: Snapshot, given: PolicyLike | None) -> None:
        """Raise ``InputError`` if the data policy is unknown, or none is given and that of the snapshot has no name."""
        assert isinstance(snapshot, GridSnapshot)
        check_decides(policy_of(chosen_data_policy(snapshot.data, given)), ("data",), "the data manager of a grid")

    def restore(
        self,
        env: Environment,
        snapshot: Snapshot,
        policy: PolicyLike | None = None,
        *,
        policies: GivenPolicies = None,
        data: PolicyLike | None = None,
    ) -> System[Any]:
        assert isinstance(snapshot, GridSnapshot)
        return Grid.from_snapshot(env, snapshot, policy, policies, data)


GRID = GridKind(
    name="grid",
    spec=GridSpec,
    system=Grid,
    snapshot="simmodel.snapshots.grid:GridSnapshot",
    options=GridOptions,
    policy="least-loaded",
)
