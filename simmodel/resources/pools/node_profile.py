"""The free capacity of each node over time: a step function from now on, into which jobs are planned."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Mapping
from math import nextafter
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.resources.pools.allocation import Allocation, Need, NodeTable, Request
from simmodel.resources.pools.profile import CountProfile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.resources.pools.running import Entry, RunningIndex
    from simmodel.work.job import LiveJob

    Times = NDArray[np.float64]
    Numbers = NDArray[np.intp]
    Span = tuple[float, float]
    Part = tuple[float, int, float, float, float]

__all__ = ["NodeGaps", "NodeProfile", "NodeTimes", "Shape", "shape_of"]

INFINITY = float("inf")


class _Step:
    """One step: the changes at an instant, and the free capacity from then on."""

    __slots__ = ("answers", "at", "changes", "cores", "falls", "table")

    def __init__(self, at: float, cores: int) -> None:
        self.at = at
        self.cores = cores  # an upper bound of the free cores; exact if no node is ever away
        self.answers: dict[Need, bool] = {}  # cached answers of fits()
        self.changes: list[tuple[Allocation, int]] = []  # 1: comes free, -1: is taken
        self.falls = False  # whether anything is taken
        self.table: NodeTable | None = None  # built on demand


class NodeProfile:
    """The free capacity of each node and of each consumable over time.

    A planned job stays on its nodes for its whole duration. A search looks at few steps: while nodes only come free, a
    request that fits continues to fit, so the first step at which it does is found by bisection.

    Parameters
    ----------
    now
        the instant at which the profile begins, in seconds
    table
        the free capacity now
    ends
        (instant in s, allocation) of running work, ordered by time; work past its expected end is expected to end just
        after now
    windows
        (start, end, allocation) of absences, in seconds; start ``None``: already away
    need_of
        returns the need of a job
    consumables
        the profiles of the consumables, by name

    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> from simmodel.resources.pools.allocation import Request
    >>> class Some(SimpleNamespace): __hash__ = object.__hash__
    >>> table = NodeTable(np.array([[4.0, 1.0], [0, 0], [0, 0]]))
    >>> profile = NodeProfile(0, table, [(10, Allocation.of([(1, 3, 0, 0)]))], need_of=lambda job: job.request)
    >>> job = Some(request=Request(4, nodes=2, cores_per_node=2))
    >>> at, allocation = profile.earliest(job, 60); at, allocation.rows
    (10, ((0, 2, 0, 0), (1, 2, 0, 0)))
    >>> profile.take(job, at, 60, allocation)
    >>> profile.earliest(Some(request=Request(4, nodes=1, cores_per_node=4)), 20)[0]
    70
    """

    __slots__ = ("_exact", "_just_after", "_need_of", "_now", "_parts", "_plain", "_steps", "_taken")

    def __init__(
        self,
        now: float,
        table: NodeTable,
        ends: Iterable[tuple[float, Allocation]] = (),
        windows: Iterable[tuple[float | None, float, Allocation]] = (),
        *,
        need_of: Callable[[LiveJob], Need],
        consumables: Mapping[str, CountProfile] | None = None,
    ) -> None:
        self._now = now
        self._need_of = need_of
        self._parts = consumables or {}
        self._taken: dict[LiveJob, tuple[float, float, Allocation | None]] = {}
        self._just_after: dict[float, float] = {}
        soon = self._after(now, now)
        windows = list(windows)
        self._exact = not windows and table.counted
        self._plain = not (windows or self._parts or table.strict)
        step = _Step(now, table.cores)
        step.table = table.copy()
        self._steps = [step]
        for end, part in ends:
            if end == INFINITY:
                break
            end = max(end, soon)
            if end > step.at:
                step = _Step(end, step.cores)
                self._steps.append(step)
            step.changes.append((part, 1))
            step.cores += part.processors
        for start, end, part in windows:
            # A window past its end that is still away is expected to end just after now.
            self._away(start, max(end, soon), part, int(table.capacity[0, part.nodes].sum()))

    # ------------------------------------------------------------------ questions of planners

    def fits(self, job: LiveJob, duration: float, within: NodeTable | None = None) -> Allocation | None:
        """Return an allocation to start the job with now, or ``None`` if it does not fit for ``duration`` seconds.

        ``within``: the parts of nodes that it may have.
        """
        return self._from(job, self._now, duration, within)

    def make_room(
        self, job: LiveJob, duration: float, planned: LiveJob, booted: tuple[float, Allocation] | None = None
    ) -> Allocation | None:
        """Return an allocation to start the job with now, or ``None`` if planned work would have to start later.

        Planned work may move to other nodes at its planned instant. Where nodes alone matter, a job that runs past that
        instant first gets those that the planned work can do without. ``booted``: when certain nodes are up (s),
        which the job holds from now on, and these.
        """
        up, own = (self._now, None) if booted is None else booted
        if planned not in self._taken:
            return self.fits(job, duration) if own is None else self.fits_at(own, up, duration)
        at, span, allocation = self._taken[planned]
        need, other = self._need_of(job), self._need_of(planned)
        past = duration > self.instant(at) - self._now
        asked = need, other
        by_nodes = self._plain and all(isinstance(each, Request) and each.by_nodes for each in asked)
        if not by_nodes and own is None:
            if past and self._steps[self._index(at)].cores < need.processors:
                return None  # too few cores beside the planned work, on any nodes
            if (found := self.fits(job, duration)) is not None:
                return found
        self.give_back(planned, at, span)
        if own is not None:
            found = self.fits_at(own, up, duration)
        elif by_nodes and past:
            found = self._least(0, self._now + duration).allocate(need, self._spared(need, other, at, span))
        else:
            found = self._from(job, self._now, duration)
        if found is not None:
            self.take(job, self._now, up - self._now + duration, found)
            moved = self._from(planned, at, span)
            self.give_back(job, self._now, up - self._now + duration)
            found, allocation = (None, allocation) if moved is None else (found, moved)
        self.take(planned, at, span, allocation)
        return found

    def _spared(self, need: Any, other: Any, at: float, span: float) -> Numbers:
        """Return the nodes that meet a request now, and another one then no less beside it than without it."""
        then = self._least(self._index(at), self.instant(at) + span)
        met = then.beside(need, self._table(0)).suitable(other) | ~then.suitable(other)
        return (self._table(0).suitable(need) & met).nonzero()[0]

    def _least(self, i: int, end: float) -> NodeTable:
        """Return what is free from a step until an instant."""
        steps = self._steps
        falls = [j for j in range(i + 1, len(steps)) if steps[j].falls and steps[j].at < end]
        return self._table(i).minimum([self._table(j) for j in falls])

    def _from(self, job: LiveJob, at: float, duration: float, within: NodeTable | None = None) -> Allocation | None:
        """Return an allocation for the job from an instant on for ``duration`` seconds, or ``None``."""
        if any(part.earliest(amount, duration, at) != at for part, amount in self._amounts(job)):
            return None
        return self.fits_at(self._need_of(job), at, duration, within)

    def fits_at(self, need: Need, at: float, duration: float, within: NodeTable | None = None) -> Allocation | None:
        """Return parts of nodes that are free from an instant on for ``duration`` seconds, or ``None``."""
        found = self._through(need, self._index(at), self.instant(at) + duration, within)
        return found if isinstance(found, Allocation) else None

    def earliest(self, job: LiveJob, duration: float, not_before: float = -INFINITY) -> tuple[float, Allocation | None]:
        """Return the earliest instant (s) at which the job fits for ``duration`` seconds, and its allocation then."""
        return self._search(job, self._need_of(job), duration, not_before)

    def _search(
        self, job: LiveJob, need: Need, duration: float, not_before: float = -INFINITY
    ) -> tuple[float, Allocation | None]:
        amounts = list(self._amounts(job))
        at = max(self._now, not_before)
        while True:
            at, allocation = self._earliest(need, duration, at)
            later = max((part.earliest(amount, duration, at) for part, amount in amounts), default=at)
            if later == at or at == INFINITY:
                return at, allocation
            if later == INFINITY:
                return later, None
            at = later

    def take(self, job: LiveJob, at: float, duration: float, allocation: Allocation | None = None) -> None:
        """Plan the job from an instant on for ``duration`` seconds; without an allocation, on nodes free then."""
        for part, amount in self._amounts(job):
            part.take(amount, at, duration)
        if allocation is None:
            allocation = self.fits_at(self._need_of(job), at, duration)
        self._taken[job] = at, duration, allocation
        if allocation is not None:
            self._change(allocation, at, self._end(at, duration), -1)

    def renew(self, job: LiveJob, at: float, duration: float, allocation: Allocation) -> None:
        """Repeat an earlier plan, on other nodes if its own are no longer free then, on no nodes if none fit."""
        need = allocation if isinstance(allocation, Allocation) else self._need_of(job)  # planned by counting nodes
        self.take(job, at, duration, self.fits_at(need, at, duration))

    def hold(self, job: LiveJob, duration: float, allocation: Allocation) -> float | None:
        """Repeat an earlier plan that is due; return its instant (s), or ``None`` if its own nodes are not free.

        Nodes of work that has reached its expected end are free just after now.
        """
        at, own = self._search(job, allocation, duration)
        if own is None or self.instant(at) > self._now:
            return None
        self.take(job, at, duration, own)
        return at

    def give_back(self, job: LiveJob, at: float, duration: float, _allocation: Allocation | None = None) -> None:
        """Undo :meth:`take`."""
        for part, amount in self._amounts(job):
            part.give_back(amount, at, duration)
        _, _, allocation = self._taken.pop(job)
        if allocation is not None:
            self._change(allocation, at, self._end(at, duration), 1)

    def instant(self, at: float) -> float:
        """Return the instant of a planned start; a step just after an instant counts as that instant."""
        return self._just_after.get(at, at)

    def cores(self, at: float) -> int:
        """Return the free cores at an instant (s)."""
        return self._table(self._index(at)).cores

    # ------------------------------------------------------------------ steps

    def _amounts(self, job: LiveJob) -> Iterable[tuple[CountProfile, Any]]:
        if self._parts and job.request is not None:
            for name, amount in job.request.consumables.items():
                yield self._parts[name], amount

    def _after(self, at: float, end: float) -> float:
        """Return the step just after one, which counts as an end that does not come after it."""
        step = nextafter(at, INFINITY)
        self._just_after[step] = end
        return step

    def _end(self, at: float, duration: float) -> float:
        """Return the step at which a plan ends: just after its own if the duration does not move the clock."""
        end = self.instant(at) + duration
        return end if end > at else self._after(at, end)

    def _index(self, at: float) -> int:
        return max(bisect_right(self._steps, at, key=_instant_of) - 1, 0)

    def _step(self, at: float) -> int:
        """Return the index of the step at an instant, inserted if necessary."""
        i = bisect_left(self._steps, at, key=_instant_of)
        if i == len(self._steps) or self._steps[i].at != at:
            self._steps.insert(i, _Step(at, self._steps[i - 1].cores))
        return i

    def _change(self, part: Allocation, start: float, end: float, sign: int) -> None:
        if end <= start:
            return
        i = self._step(start)
        j = self._step(end) if end < INFINITY else len(self._steps)
        self._note(self._steps[i], part, sign)
        for step in self._steps[i:j]:
            step.cores += sign * part.processors
            step.answers.clear()
            if step.table is not None:
                step.table.add([(part, sign)])
        if j < len(self._steps):
            self._note(self._steps[j], part, -sign)

    def _note(self, step: _Step, part: Allocation, sign: int) -> None:
        opposite = [i for i, (other, way) in enumerate(step.changes) if other is part and way == -sign]
        if opposite:
            del step.changes[opposite[0]]
        else:
            step.changes.append((part, sign))
        step.falls = any(way < 0 for _, way in step.changes)

    def _away(self, start: float | None, end: float, part: Allocation, cores: int) -> None:
        if start is not None:
            self._change(part, start, end, -1)
        elif end < INFINITY:
            i = self._step(end)
            self._steps[i].changes.append((part, 1))
            for step in self._steps[i:]:
                step.cores += cores
                if step.table is not None:
                    step.table.add([(part, 1)])

    def _table(self, i: int) -> NodeTable:
        """Return the free capacity from a step on."""
        steps = self._steps
        table = steps[i].table
        if table is None:
            j = i - 1
            while (before := steps[j].table) is None:
                j -= 1
            table = before.copy()
            table.add([change for step in steps[j + 1 : i + 1] for change in step.changes])
            steps[i].table = table
        return table

    # ------------------------------------------------------------------ the search

    def _fits_at(self, need: Need, i: int) -> bool:
        step = self._steps[i]
        if step.cores < need.processors:
            return False
        if self._exact and need.anywhere:
            return True
        answer = step.answers.get(need)
        if answer is None:
            answer = step.answers[need] = self._table(i).fits(need)
        return answer

    def _earliest(self, need: Need, duration: float, not_before: float) -> tuple[float, Allocation | None]:
        steps = self._steps
        i = self._index(not_before)
        while i < len(steps):
            stop = i + 1
            while stop < len(steps) and not steps[stop].falls:
                stop += 1
            i = self._first(need, i, stop)
            while i < stop:
                at = max(steps[i].at, not_before)
                found = self._through(need, i, self.instant(at) + duration)
                if isinstance(found, Allocation):
                    return at, found
                i = found
        return INFINITY, None

    def _first(self, need: Need, low: int, stop: int) -> int:
        """Return the first step in ``low`` to ``stop`` at which it fits; nodes only come free between them."""
        if self._fits_at(need, low):
            return low
        if low + 1 == stop or not self._fits_at(need, stop - 1):
            return stop
        high = stop - 1
        while high - low > 1:
            middle = (low + high) // 2
            if self._fits_at(need, middle):
                high = middle
            else:
                low = middle
        return high

    def _through(self, need: Need, i: int, end: float, within: NodeTable | None = None) -> Allocation | int:
        """Return an allocation free from a step until an instant, or the next step at which to search."""
        steps = self._steps
        if not self._fits_at(need, i):
            return i + 1
        falls = []
        for j in range(i + 1, len(steps)):
            if steps[j].at >= end:
                break
            if steps[j].falls:
                if not self._fits_at(need, j):
                    return j  # any earlier start runs into it
                falls.append(j)
        table = self._table(i)
        if falls or within is not None:
            table = table.minimum([*(self._table(j) for j in falls), *([] if within is None else [within])])
        return table.allocate(need) or i + 1


def _instant_of(step: _Step) -> float:
    return step.at


INFINITY = float("inf")
_LOG = 20_000  # changes of nodes kept

Shape = tuple[float, float, float, bool]
"""The amounts requested of one node: cores, GPUs, bytes, and whether nobody else may be there."""


def shape_of(request: Request) -> Shape:
    """Return the shape that a request for nodes requires of each of them."""
    return request.cores_per_node, request.gpus_per_node, request.memory_per_node, request.exclusive


class NodeTimes:
    """The running parts of each node, and the instants at which nodes have room for a shape.

    It watches the index of running work. An answer for a shape is kept, and computed again only for the nodes that
    changed since.

    Parameters
    ----------
    capacity
        shape (3, nodes): cores, GPUs and bytes of each node
    running
        the executions; those with an end at infinity hold their nodes for ever

    Attributes
    ----------
    capacity, cores, gpus
        (cores, GPUs, bytes) of each node; the first two as arrays
    held
        the running parts of each node: (expected end in s, number, cores, GPUs, bytes), by end

    >>> from simmodel.resources.pools.running import RunningIndex
    >>> times = NodeTimes(np.array([[4.0, 8], [0, 1], [9, 9]]), RunningIndex())
    >>> times.free_from((4, 1, 0, False)).tolist()
    [inf, -inf]
    """

    __slots__ = ("_found", "_log", "_running", "capacity", "cores", "gpus", "held")

    def __init__(self, capacity: NDArray[np.float64], running: RunningIndex) -> None:
        self.capacity: list[tuple[float, float, float]] = list(zip(*capacity.tolist(), strict=True))
        self.cores, self.gpus = capacity[0], capacity[1]
        self.held: list[list[Part]] = [[] for _ in self.capacity]
        self._log: list[int] = []
        self._found: dict[Shape, tuple[NDArray[np.float64], int]] = {}  # the answer, and the length of the log then
        self._running = running
        for entry in running.entries():
            self.started(entry)
        running.watch(self)

    @property
    def first_end(self) -> float:
        """The earliest expected end of the running work, in seconds."""
        return self._running.first_end

    def started(self, entry: Entry) -> None:
        """Note an execution that was added."""
        end, number, _, run = entry
        allocation = run.grant.allocation
        nodes = allocation.nodes.tolist()
        for node, *amounts in zip(nodes, *allocation.amounts.tolist(), strict=True):
            insort(self.held[node], (end, number, *amounts))
        self._note(nodes)

    def ended(self, entry: Entry) -> None:
        """Note an execution that was removed."""
        end, number, _, run = entry
        nodes = run.grant.allocation.nodes.tolist()
        for node in nodes:
            held = self.held[node]
            del held[bisect_left(held, (end, number))]
        self._note(nodes)

    def _note(self, nodes: list[int]) -> None:
        self._log += nodes
        if len(self._log) > _LOG:
            self._log.clear()
            self._found.clear()

    def free_from(self, shape: Shape) -> NDArray[np.float64]:
        """Return the instant (s) from which each node has room; -inf: it has now, inf: never. Read-only."""
        found = self._found.get(shape)
        if found is None:
            since = np.array([self._since(node, shape) for node in range(len(self.held))], dtype=np.float64)
        else:
            since, position = found
            for node in set(self._log[position:]):
                since[node] = self._since(node, shape)
        self._found[shape] = since, len(self._log)
        return since

    def _since(self, node: int, shape: Shape) -> float:
        """Return the end at which a shape begins to fit: the latest parts are taken away first."""
        cores, gpus, memory, exclusive = shape
        has_cores, has_gpus, has_memory = self.capacity[node]
        has_cores -= cores
        has_gpus -= gpus
        has_memory -= memory
        if has_cores < 0 or has_gpus < 0 or has_memory < 0:
            return INFINITY
        held = self.held[node]
        if exclusive:
            return held[-1][0] if held else -INFINITY
        for end, _, with_cores, with_gpus, with_memory in reversed(held):
            has_cores -= with_cores
            has_gpus -= with_gpus
            has_memory -= with_memory
            if has_cores < 0 or has_gpus < 0 or has_memory < 0:
                return end
        return -INFINITY


class NodeGaps:
    """The times at which each node has room beside the planned jobs, as columns of gaps.

    It answers as :class:`~simmodel.resources.pools.node_profile.NodeProfile` does for requests of nodes under the
    placement ``first-fit``, with the same nodes, if no node is down or will be away. A gap is a time between planned
    jobs in which nobody planned is on a node; the running work shortens it for each shape of request
    (:class:`~simmodel.resources.pools.node_profile.NodeTimes`). Nodes with planned parts have their gaps computed for
    each shape.

    Parameters
    ----------
    now
        the instant at which planning begins, in seconds
    times
        when nodes have room beside running work; work past its expected end is expected to end just after now

    Attributes
    ----------
    ready
        from when on nodes are up (s), of nodes some of which sleep or boot; else ``None``

    >>> from simmodel.resources.pools.allocation import Request
    >>> from simmodel.resources.pools.node_profile import NodeTimes
    >>> from simmodel.resources.pools.running import RunningIndex
    >>> gaps = NodeGaps(0, NodeTimes(np.array([[4.0, 4], [0, 1], [9, 9]]), RunningIndex()))
    >>> request = Request(4, nodes=1, cores_per_node=4)
    >>> for _ in range(3):
    ...     at, allocation = gaps.earliest(request, 60); gaps.take(request, at, 60, allocation); at, allocation.rows
    (0, ((0, 4, 0, 0),))
    (0, ((1, 4, 0, 0),))
    (60.0, ((0, 4, 0, 0),))
    """

    __slots__ = (
        "_found",
        "_from",
        "_gaps",
        "_just_after",
        "_late",
        "_node",
        "_now",
        "_of",
        "_parts",
        "_soon",
        "_spans",
        "_times",
        "_until",
        "ready",
    )

    def __init__(self, now: float, times: NodeTimes) -> None:
        count = len(times.capacity)
        self.ready: Times | None = None
        self._now = now
        self._soon = nextafter(now, INFINITY)
        self._just_after = {self._soon: now}  # steps that stand for the instant before them
        self._late = times.first_end <= self._soon
        self._times = times
        self._gaps = count
        self._found: tuple[Allocation | None, Numbers] = None, np.arange(0)  # the last answer, and its gaps
        self._node = np.arange(2 * count + 64)
        self._from = np.full(len(self._node), now, dtype=np.float64)
        self._until = np.full(len(self._node), INFINITY)
        # Nodes with planned parts: their gaps between whole-node jobs; (start, end, cores, GPUs, bytes); by shape, when
        # it fits.
        self._of: dict[int, list[Span]] = {}
        self._parts: dict[int, list[tuple[float, float, float, float, float]]] = {}
        self._spans: dict[int, dict[Shape, list[Span]]] = {}

    def advance(self, now: float) -> None:
        """Let planning begin later; no running work may be past its expected end, and each plan moves the clock."""
        self._now, self._soon = now, nextafter(now, INFINITY)
        self._just_after = {self._soon: now}
        self._late = self._times.first_end <= self._soon
        np.maximum(self._from, now, out=self._from)

    def instant(self, at: float) -> float:
        """Return the instant of a planned start; a step just after an instant counts as that instant."""
        return self._just_after.get(at, at)

    def end(self, at: float, duration: float) -> float:
        """Return the step at which a plan ends: just after its own if the duration does not move the clock."""
        return max(self.instant(at) + duration, nextafter(at, INFINITY))

    # ------------------------------------------------------------------ questions

    def open_nodes(self, request: Request, duration: float) -> NDArray[np.bool_]:
        """Return the mask of nodes that have room from now on for ``duration`` seconds."""
        node, start, until = self._room(request)
        if self.ready is not None:  # they could boot now
            start = np.where(start <= self.ready[node], self._now, start)
        mask = np.zeros(len(self._times.capacity), dtype=bool)
        mask[node[(start <= self._now) & (until >= self.end(self._now, duration))]] = True
        return mask

    def earliest(self, request: Request, duration: float) -> tuple[float, Allocation | None]:
        """Return the earliest instant (s) at which enough nodes have room for ``duration`` seconds, and an allocation.

        At each instant tried, at least as many nodes must have come to have room as are missing at the one before.
        """
        count = request.nodes or 0
        node, start, until = self._room(request)
        instant = start
        if self._late or len(self._just_after) > 1:
            for step, counts_as in self._just_after.items():
                instant = np.where(start == step, counts_as, instant)
        later = start[instant + duration <= until]
        at, missing = -INFINITY, count
        while True:
            if len(later) < missing:
                return INFINITY, None
            at = float(np.partition(later, missing - 1)[missing - 1])
            if at == INFINITY:
                return INFINITY, None
            open_ = (start <= at) & (until >= self.end(at, duration))
            missing = count - int(np.count_nonzero(open_))
            if missing <= 0:
                break
            later = later[later > at]
        rows = np.flatnonzero(open_)
        nodes = node[rows]
        order = nodes.argsort() if self.ready is None else np.lexsort((nodes, self.ready[nodes]))
        first = order[:count]
        first = first[nodes[first].argsort()]
        allocation = self._allocation(request, nodes[first])
        self._found = allocation, rows[first]
        return (self._now if at == self._now else at), allocation

    def _room(self, request: Request) -> tuple[Numbers, Times, Times]:
        """Return (node, from, until) of the gaps beside the running work; those that begin at infinity are none."""
        shape = shape_of(request)
        since = self._times.free_from(shape)
        if self._late:
            since = np.where((since <= self._now) & (since > -INFINITY), self._soon, since)
        if self.ready is not None:
            since = np.maximum(since, self.ready)
        gaps = self._gaps
        node = self._node[:gaps]
        start = np.maximum(self._from[:gaps], since[node])
        until = self._until[:gaps]
        if self._parts:
            nodes, starts, ends = list[int](), list[float](), list[float]()
            for each, known in self._spans.items():
                spans = known.get(shape)
                if spans is None:
                    spans = known[shape] = self._fitting(each, shape) if since[each] < INFINITY else []
                for first, last in spans:
                    nodes.append(each)
                    starts.append(first)
                    ends.append(last)
            if nodes:
                node = np.concatenate([node, nodes])
                start = np.concatenate([start, np.maximum(starts, self._now)])
                until = np.concatenate([until, ends])
        return node, start, until

    def _fitting(self, node: int, shape: Shape) -> list[Span]:
        """Return the times at which a node with planned parts has room for a shape."""
        cores, gpus, memory, exclusive = shape
        left_cores, left_gpus, left_memory = self._times.capacity[node]
        there = 0
        changes = []
        for end, _, c, g, m in self._times.held[node]:
            left_cores -= c
            left_gpus -= g
            left_memory -= m
            there += 1
            changes.append((max(end, self._soon), -1, c, g, m))
        for first, last, c, g, m in self._parts[node]:
            changes += [(first, 1, -c, -g, -m), (last, -1, c, g, m)]
        changes.sort()
        free: list[Span] = []
        start = -INFINITY  # of the time in which it fits; infinite if it does not
        if left_cores < cores or left_gpus < gpus or left_memory < memory or (exclusive and there):
            start = INFINITY
        for i, (at, more, c, g, m) in enumerate(changes):
            left_cores += c
            left_gpus += g
            left_memory += m
            there += more
            if i + 1 < len(changes) and changes[i + 1][0] == at:
                continue
            fits = left_cores >= cores and left_gpus >= gpus and left_memory >= memory and not (exclusive and there)
            if fits and start == INFINITY:
                start = at
            elif not fits and start < INFINITY:
                free.append((start, at))
                start = INFINITY
        if start < INFINITY:
            free.append((start, INFINITY))
        own = self._of[node]
        if len(own) == 1 and own[0] == (self._now, INFINITY):
            return free
        spans = [(max(a, first), min(b, last)) for first, last in own for a, b in free]
        return [(first, last) for first, last in spans if first < last]

    def _allocation(self, request: Request, nodes: Numbers) -> Allocation:
        amounts = np.empty((3, len(nodes)))
        amounts[0] = request.cores_per_node
        amounts[1] = request.gpus_per_node
        amounts[2] = request.memory_per_node
        if request.exclusive:
            amounts[0] = self._times.cores[nodes]
            amounts[1] = self._times.gpus[nodes]
        return Allocation(nodes, amounts)

    # ------------------------------------------------------------------ changes

    def take(self, request: Request, at: float, duration: float, allocation: Allocation) -> None:
        """Plan a request from an instant (s) on for ``duration`` seconds, on nodes that have room."""
        end = self.end(at, duration)
        if self.instant(at) + duration <= at:
            self._just_after[end] = self.instant(at) + duration
        cores = self._times.cores
        found, rows = self._found
        if found is not allocation:
            rows = self._rows(allocation.nodes, at, end)
        shared = allocation.amounts[0] < cores[allocation.nodes]
        if self._parts:
            shared |= rows >= self._gaps
        if not shared.any():
            self._divide(rows, at, end)
            return
        self._divide(rows[~shared], at, end)
        part = zip(allocation.nodes[shared].tolist(), *allocation.amounts[:, shared].tolist(), strict=True)
        for node, c, g, m in part:
            if node not in self._parts:
                self._share(node)
            self._parts[node].append((at, end, c, g, m))
            self._spans[node].clear()

    def _rows(self, nodes: Numbers, at: float, end: float) -> Numbers:
        """Return the gap of each node around a time (s); for a node with planned parts, a number beyond them all."""
        gaps = self._gaps
        rows = np.full(len(self._times.capacity), gaps)
        around = np.flatnonzero((self._from[:gaps] <= at) & (self._until[:gaps] >= end))
        rows[self._node[around]] = around
        return rows[nodes]

    def give_back(self, at: float, end: float, allocation: Allocation) -> None:
        """Leave a job that has started on its nodes to the running work; its plan, if any, is undone."""
        self._late = self._late or end <= self._soon
        end = max(end, nextafter(at, INFINITY))
        for node, *amounts in zip(allocation.nodes.tolist(), *allocation.amounts.tolist(), strict=True):
            if node in self._parts:
                if (at, end, *amounts) in self._parts[node]:
                    self._parts[node].remove((at, end, *amounts))
                self._spans[node].clear()

    def _share(self, node: int) -> None:
        """Give a node gaps of its own, since they will depend on the shape."""
        gaps = self._gaps
        own = np.flatnonzero(self._node[:gaps] == node)
        spans = sorted(zip(self._from[own].tolist(), self._until[own].tolist(), strict=True))
        self._of[node] = [(first, last) for first, last in spans if first < last]
        self._parts[node] = []
        self._spans[node] = {}
        self._from[own] = INFINITY

    def _divide(self, rows: Numbers, at: float, end: float) -> None:
        """Divide gaps around a planned job that gets whole nodes."""
        gaps = self._gaps
        more = gaps + len(rows)
        if more > len(self._node):
            self._node = np.concatenate([self._node, self._node])
            self._from = np.concatenate([self._from, self._from])
            self._until = np.concatenate([self._until, self._until])
        self._node[gaps:more] = self._node[rows]
        self._from[gaps:more] = end
        self._until[gaps:more] = self._until[rows]
        self._until[rows] = at
        self._gaps = more
