"""The free capacity of each node over time: a step function from now on, into which jobs are planned."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from math import nextafter
from typing import TYPE_CHECKING, Any

from simmodel.resources.pools.allocation import Allocation, Need, NodeTable
from simmodel.resources.pools.profile import CountProfile

if TYPE_CHECKING:
    from simmodel.work.job import LiveJob

__all__ = ["NodeProfile"]

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

    __slots__ = ("_exact", "_just_after", "_need_of", "_now", "_parts", "_steps", "_taken")

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

    def fits(self, job: LiveJob, duration: float) -> Allocation | None:
        """Return an allocation to start the job with now, or ``None`` if it does not fit for ``duration`` seconds."""
        return self._from(job, self._now, duration)

    def make_room(self, job: LiveJob, duration: float, planned: LiveJob) -> Allocation | None:
        """Return an allocation to start the job with now, moving planned work to other nodes at its planned instant.

        Return ``None``, with nothing changed, if the planned work would have to start later.
        """
        at, span, allocation = self._taken[planned]
        past = self._now + duration > at
        if past and self._steps[self._index(at)].cores < self._need_of(job).processors:
            return None  # too few cores beside the planned work, on any nodes
        self.give_back(planned, at, span)
        found = self._from(job, self._now, duration)
        if found is not None:
            self.take(job, self._now, duration, found)
            other = self._from(planned, at, span)
            self.give_back(job, self._now, duration)
            found, allocation = (None, allocation) if other is None else (found, other)
        self.take(planned, at, span, allocation)
        return found

    def _from(self, job: LiveJob, at: float, duration: float) -> Allocation | None:
        """Return an allocation for the job from an instant on for ``duration`` seconds, or ``None``."""
        if any(part.earliest(amount, duration, at) != at for part, amount in self._amounts(job)):
            return None
        return self._on(self._need_of(job), at, duration)

    def _on(self, need: Need, at: float, duration: float) -> Allocation | None:
        """Return parts of nodes that are free from an instant on for ``duration`` seconds, or ``None``."""
        found = self._through(need, self._index(at), self.instant(at) + duration)
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
            allocation = self._on(self._need_of(job), at, duration)
        self._taken[job] = at, duration, allocation
        if allocation is not None:
            self._change(allocation, at, self._end(at, duration), -1)

    def renew(self, job: LiveJob, at: float, duration: float, allocation: Allocation) -> None:
        """Repeat an earlier plan, on other nodes if its own are no longer free then, on no nodes if none fit."""
        need = allocation if isinstance(allocation, Allocation) else self._need_of(job)  # planned by counting nodes
        self.take(job, at, duration, self._on(need, at, duration))

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

    def _through(self, need: Need, i: int, end: float) -> Allocation | int:
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
        if falls:
            table = table.minimum([self._table(j) for j in falls])
        return table.allocate(need) or i + 1


def _instant_of(step: _Step) -> float:
    return step.at
