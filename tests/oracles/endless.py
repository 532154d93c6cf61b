"""EASY and conservative backfilling on counted processors where some jobs have no time limit, by rescanning lists.

A job is (submit, run, requested, processors), in order of submission; requested is infinite without a limit. All ends
of an instant come first, then its submissions, then one decision. A running job past its expected end is expected to
end just after now.

No known end frees a job if the expected ends that are finite never do, and running work without a limit could. Other
jobs then start only on processors that have been free at all decisions since this job came first: ``mark`` is the least
number of these. Under conservative backfilling it is the first job without a plan, and what was kept for it is
forgotten once no job without a limit runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

__all__ = ["simulate"]

Job = tuple[float, float, float, int]


@dataclass
class _State:
    """The running jobs by row with their expected ends and processors, those that wait, and what is left beside one."""

    now: float
    free: int
    waiting: list[int]
    running: dict[int, tuple[float, int]] = field(default_factory=dict)
    kept_for: int = -1
    mark: int = 0

    def start(self, row: int, job: Job) -> None:
        self.waiting.remove(row)
        self.free -= job[3]
        self.running[row] = self.now + job[2], job[3]

    def keep(self, row: int) -> None:
        """Note that no known end frees a job."""
        self.mark = min(self.mark, self.free) if self.kept_for == row else self.free
        self.kept_for = row


def _easy(state: _State, jobs: Sequence[Job]) -> None:
    while state.waiting and jobs[state.waiting[0]][3] <= state.free:
        state.start(state.waiting[0], jobs[state.waiting[0]])
    if not state.waiting:
        return
    head = state.waiting[0]

    def there(at: float) -> int:
        return state.free + sum(size for end, size in state.running.values() if max(end, state.now) <= at)

    ends = sorted({max(end, state.now) for end, _ in state.running.values()} - {inf})
    promised = next((at for at in ends if there(at) >= jobs[head][3]), inf)
    if promised == inf:
        state.keep(head)
    else:
        state.kept_for = -1
    extra = there(promised) - jobs[head][3]
    for row in state.waiting[1:]:
        _, _, requested, size = jobs[row]
        if size > state.free:
            continue
        if promised == inf:
            if size > state.mark:
                continue
            state.mark -= size
        elif requested > promised - state.now:
            if size > extra:
                continue
            extra -= size
        state.start(row, jobs[row])


def _conservative(state: _State, jobs: Sequence[Job]) -> None:
    while state.waiting and jobs[state.waiting[0]][3] <= state.free:
        state.start(state.waiting[0], jobs[state.waiting[0]])
    if not _plan(state, jobs):
        _plan(state, jobs)


def _plan(state: _State, jobs: Sequence[Job]) -> bool:
    """Plan all jobs; return whether that holds: not if work without a limit starts and none has run before."""
    endless = inf in [end for end, _ in state.running.values()]
    if not endless:
        state.kept_for = -1
    planned: list[tuple[float, float, int]] = []  # (start, end, processors)
    first = -1  # the first job that no known end frees

    def there(at: float) -> int:
        """Return how many processors are free at an instant; running jobs past their ends are there just now."""
        ended = sum(size for end, size in state.running.values() if end <= at and at > state.now)
        return state.free + ended - sum(size for begin, end, size in planned if begin <= at < end)

    def fits(size: int, begin: float, length: float) -> bool:
        instants = {begin, *(at for each in planned for at in each[:2] if begin < at < begin + length)}
        return all(there(at) >= size for at in instants)

    for row in list(state.waiting):
        _, _, requested, size = jobs[row]
        if first >= 0:
            if size <= min(state.free, state.mark) and fits(size, state.now, requested):
                state.mark -= size
                state.start(row, jobs[row])
            continue
        begins = {state.now, *(end for end, _ in state.running.values()), *(end for _, end, _ in planned)}
        at = next((at for at in sorted(begins - {inf}) if at >= state.now and fits(size, at, requested)), inf)
        if at == inf:
            if endless:
                first = row
                state.keep(row)
        elif at == state.now:
            state.start(row, jobs[row])
            if requested == inf and not endless:
                return False
        else:
            planned.append((at, at + requested, size))
    if first < 0:
        state.kept_for = -1
    return True


def simulate(jobs: Sequence[Job], processors: int, policy: str) -> list[float]:
    """Return the start of each job (s); each job ends by its requested time.

    >>> simulate([(0, 1200, inf, 2), (1, 600, 1200, 4), (2, 3600, 3600, 2), (3, 60, 60, 2)], 4, "easy")
    [0, 3602, 2, 1200]
    """
    decide = {"easy": _easy, "conservative": _conservative}[policy]
    state, ends, starts = _State(0, processors, []), dict[int, float](), [inf] * len(jobs)
    coming = list(range(len(jobs)))
    while coming or ends:
        state.now = now = min([jobs[row][0] for row in coming[:1]] + list(ends.values()))
        for row in [row for row, end in ends.items() if end == now]:
            del ends[row]
            state.free += state.running.pop(row)[1]
        while coming and jobs[coming[0]][0] == now:
            state.waiting.append(coming.pop(0))
        before = set(state.waiting)
        decide(state, jobs)
        for row in before - set(state.waiting):
            starts[row], ends[row] = now, now + min(jobs[row][1], jobs[row][2])
    return starts
