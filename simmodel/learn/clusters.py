"""What an agent sees and decides that schedules a cluster: the first waiting jobs, one of which is an action."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from functools import cache
from math import inf, log1p
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from gymnasium import spaces

from simmodel.environment import GIVE_UP, WAKE_UP
from simmodel.foundation.errors import InputError, unknown
from simmodel.learn.environment import Act, Action, Choice, Columns, Mask, Observe, SchedulingEnv
from simmodel.learn.episodes import Episodes
from simmodel.learn.rewards import Reward, When
from simmodel.policies.backfilling import Easy
from simmodel.policies.ordering import FCFS
from simmodel.scheduling.protocol import Decision, Start

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.foundation.errors import Plain
    from simmodel.policies.ordering import GivenOrder
    from simmodel.resources.pools.pool import Pool
    from simmodel.resources.pools.running import Entry
    from simmodel.runs.scenario import GivenPlatform
    from simmodel.scheduling.objectives import ObjectiveLike
    from simmodel.scheduling.protocol import View
    from simmodel.systems.submissions import GivenWork
    from simmodel.work.job import LiveJob

__all__ = ["JOB_COLUMNS", "ChooseNext", "JobWindow", "ReserveAndFill", "backfill_env", "batch_env"]

_PLATFORM, _WORK = 128, "lublin:jobs=256,processors=128"
JOB_COLUMNS = ("waits", "processors", "requested", "work", "waited", "fits")
"""Of each row: 1 (0: no job); share of the processors; requested time and processor seconds, -1 without a request;
time waited; whether it fits in the free processors. Times are on a logarithmic scale from 0 to 1, which stands for 30
days and more, work on half of it."""
_LOWEST = (0.0, 0.0, -1.0, -1.0, 0.0, 0.0)
_LONGEST = 30 * 86400.0
_ONE = np.float32(1.0)
_TIME, _CROWD = 1 / log1p(_LONGEST), 1 / log1p(100_000)
_SPANS = 16
_FIGURES = ("free", "waiting", *(f"ends {i}" for i in range(_SPANS)))
_RESERVATION = ("reserved", "reserved processors", "reserved for", "left beside")
_EDGES = np.geomspace(60.0, _LONGEST, _SPANS)[:-1]


class JobWindow(Observe):
    """Shows the first waiting jobs of a cluster with one place, its free processors and the ends of running jobs.

    The arrays are ``jobs``, of shape (window, 6) with :data:`JOB_COLUMNS`, and ``cluster``: the free share of the
    processors, the number of waiting jobs, and the shares that running jobs are expected to free within each of 16
    spans of time, from a minute to 30 days; the last one has no end and includes jobs without a request. An index
    that follows the queue keeps the rows, so that an observation costs the same for any number of jobs.

    Parameters
    ----------
    window
        rows
    reserves
        whether ``cluster`` has the reservation of :class:`ReserveAndFill` too: whether there is one, its share of the
        processors, the time until it can start as expected, and the share left free then

    Attributes
    ----------
    reserved
        the job that is next and does not fit, if any

    >>> from simmodel import Job, start
    >>> view = start(4, [Job(processors=3, run=5, requested=60), Job(processors=1, run=9)], "fcfs").next_decision()
    >>> JobWindow(3)(view)["jobs"].astype(float).round(2).tolist()[:2]
    [[1.0, 0.75, 0.28, 0.18, 0.0, 1.0], [1.0, 0.25, -1.0, -1.0, 0.0, 1.0]]
    """

    def __init__(self, window: int = 128, *, reserves: bool = False) -> None:
        if not (type(window) is int and window > 0):
            raise InputError(f"must be a whole number >= 1, got {window!r}", place="window")
        self.window, self.reserves = window, reserves
        self._cluster = np.zeros(len(_FIGURES) + len(_RESERVATION) * reserves, dtype=np.float32)
        self._view: View | None = None
        self.reserved: LiveJob | None = None

    def space(self) -> spaces.Dict:
        figures = Columns((*_FIGURES, *_RESERVATION) if self.reserves else _FIGURES)
        return spaces.Dict({"cluster": figures, "jobs": Columns(JOB_COLUMNS, self.window, _LOWEST)})

    def _follow(self, view: View) -> None:
        """Fill the rows from a view, and keep them up to date from now on."""
        if len(view.places) != 1 or view.places[0].queues:
            raise InputError("must have one place: a cluster without partitions", place="system")
        self._view = view
        self._place: Pool = view.places[0]
        self._capacity = max(1, self._place.capacity)
        self._rows = _Rows(self.window, self._capacity)
        self._ends = _Ends(self._place, self._capacity)
        view.waiting.keep(self._rows)

    def jobs(self, view: View) -> list[LiveJob]:
        """Return the jobs of the rows, in order of arrival."""
        if view is not self._view:
            self._follow(view)
        return self._rows.jobs

    def __call__(self, view: View) -> dict[str, NDArray[np.float32]]:
        """Return the arrays."""
        if view is not self._view:
            self._follow(view)
        now, place, cluster = view.now, self._place, self._cluster
        cluster[0] = max(0, place.free) / self._capacity
        cluster[1] = log1p(view.waiting.count) * _CROWD
        cluster[2 : 2 + _SPANS] = self._ends.histogram(now)
        if self.reserves:
            cluster[-4:] = self._reservation(now)
        return {"cluster": np.minimum(cluster, _ONE), "jobs": self._rows.at(now, place.free)}

    def _reservation(self, now: float) -> tuple[float, float, float, float]:
        job = self.reserved
        if job is None:
            return 0.0, 0.0, 0.0, 0.0
        at, extra = self.earliest(job)
        width = min(1.0, job.width / self._capacity)
        return 1.0, width, min(1.0, log1p(max(0.0, at - now)) * _TIME), min(1.0, extra / self._capacity)

    def earliest(self, job: LiveJob) -> tuple[float, int]:
        """Return when a job that does not fit now will (s), by the requests of running jobs, and the processors left.

        Running jobs without a request may not end: the instant is infinite if too few others do.
        """
        place = self._place
        return self._ends.when_free(job.width - place.free, place.env.now)

    def backfillable(self, view: View) -> NDArray[np.bool_]:
        """Return which rows have a job that fits now and does not delay the reserved one, by their requests."""
        job, found = self.reserved, np.zeros(self.window, dtype=np.bool_)
        if job is not None and self.jobs(view):
            at, extra = self.earliest(job)
            n = self._rows.fill(view.now)
            widths = self._rows.widths[:n]
            beside = (self._rows.requests[:n] <= at - view.now) | (widths <= extra)
            found[:n] = beside & (widths <= self._place.free)
        return found


class _Rows:
    """The first waiting jobs in order of arrival; their columns are filled when they are asked for."""

    def __init__(self, size: int, capacity: int) -> None:
        self._size, self._capacity = size, capacity
        self.jobs: list[LiveJob] = []
        self._filled = 0  # of these jobs, how many have their columns
        self._columns = np.zeros((size, len(JOB_COLUMNS) + 3), dtype=np.float64)
        self.submits, self.requests, self.widths = self._columns[:, -3:].T
        self._at = -inf

    def fill(self, now: float) -> int:
        """Fill the columns of new rows at an instant (s); return the number of rows."""
        jobs = self.jobs
        for row in range(self._filled, len(jobs)):
            job = jobs[row]
            requested, width = job.requested, job.width
            known = requested < inf
            self._columns[row] = (
                1.0,
                min(1.0, width / self._capacity),
                min(1.0, log1p(requested) * _TIME) if known else -1.0,
                min(1.0, log1p(requested * width) * 0.5 * _TIME) if known else -1.0,
                min(1.0, log1p(now - job.submit) * _TIME),
                0.0,
                job.submit,
                requested,
                width,
            )
        self._filled = n = len(jobs)
        return n

    def at(self, now: float, free: int) -> NDArray[np.float32]:
        """Return the table at an instant (s), with so many free processors."""
        n, columns = self.fill(now), self._columns
        if now != self._at:
            self._at = now
            columns[:n, 4] = np.minimum(np.log1p(now - self.submits[:n]) * _TIME, 1.0)
        columns[:n, 5] = self.widths[:n] <= free
        found = np.zeros((self._size, len(JOB_COLUMNS)), dtype=np.float32)
        found[:n] = columns[:n, :-3]
        return found

    def add(self, job: LiveJob) -> None:
        """Add a job of the queue."""
        jobs, key = self.jobs, (job.submit, job.seq)
        if not jobs or (jobs[-1].submit, jobs[-1].seq) < key:
            if len(jobs) < self._size:
                jobs.append(job)
            return
        row = bisect_left(jobs, key, key=lambda each: (each.submit, each.seq))
        jobs.insert(row, job)
        del jobs[self._size :]
        self._filled = min(self._filled, row)

    def remove(self, job: LiveJob) -> None:
        """Remove a job of the queue, which has left it."""
        jobs = self.jobs
        last, full = jobs[-1], len(jobs) == self._size
        if full and (last.submit, last.seq) < (job.submit, job.seq):
            return
        row = jobs.index(job)
        del jobs[row]
        if row < self._filled:
            self._columns[row : self._filled - 1] = self._columns[row + 1 : self._filled]
            self._filled -= 1
        if full and last.later is not None:
            jobs.append(last.later)


class _Ends:
    """The expected ends of running jobs and their processors, as columns in no order."""

    def __init__(self, place: Pool, capacity: int) -> None:
        self._share = np.array(1.0 / capacity)
        self._rows: dict[int, int] = {}
        self._numbers: list[int] = []
        self._columns = np.zeros((64, 2))
        for entry in place.running.entries():
            self.started(entry)
        place.running.watch(self)

    def started(self, entry: Entry) -> None:
        """Add an execution."""
        end, number, processors, run = entry
        row = self._rows[number] = len(self._numbers)
        if row == len(self._columns):
            self._columns = np.concatenate([self._columns, self._columns])
        self._numbers.append(number)
        # Without a request the end is that of the run, the future.
        self._columns[row] = end if run.job.requested < inf else inf, processors

    def ended(self, entry: Entry) -> None:
        """Remove an execution."""
        row, last = self._rows.pop(entry[1]), self._numbers.pop()
        if last != entry[1]:
            self._numbers[row], self._rows[last] = last, row
            self._columns[row] = self._columns[len(self._numbers)]

    def histogram(self, now: float) -> NDArray[np.float64]:
        """Return the share of the processors that comes free within each span of time (s) from now on."""
        ends, processors = self._columns[: len(self._numbers)].T
        found: NDArray[np.float64] = np.bincount(_EDGES.searchsorted(ends - now), processors, _SPANS) * self._share
        return found

    def when_free(self, missing: int, now: float) -> tuple[float, int]:
        """Return the instant (s) at which so many more processors are free, and the surplus then."""
        ends, processors = self._columns[: len(self._numbers)].T
        order = ends.argsort()
        at, gathered = np.maximum(ends[order], now), processors[order].cumsum()
        i = int(gathered.searchsorted(missing))
        if i == len(at) or at[i] == inf:
            return inf, 0
        last = int(at.searchsorted(at[i], "right")) - 1
        return float(at[i]), int(gathered[last]) - missing


class ChooseNext(Act[JobWindow]):
    """An action is the row of the job that is next, as in RLScheduler (Zhang et al., SC 2020).

    The job starts as soon as it fits; until then no other does, except by backfilling. The agent is asked again once it
    has started.

    Parameters
    ----------
    shown
        the rows
    backfill
        ``"easy"``: jobs that do not delay a job that does not fit start beside it
    candidates
        the order in which these are tried
    hold
        whether a job that does not fit stays next until it starts; else the agent is asked again at each event, as
        the policies of :func:`~simmodel.runs.scenario.simulate` are
    wait
        whether there is one more action, the last one: to choose nothing until the next event, if one is to come

    Raises
    ------
    InputError
        an unknown kind of backfilling
    """

    decides = "jobs"

    def __init__(
        self,
        shown: JobWindow,
        backfill: Literal["none", "easy"] = "none",
        *,
        candidates: GivenOrder = FCFS,
        hold: bool = True,
        wait: bool = False,
    ) -> None:
        if backfill not in ("none", "easy"):
            raise unknown("backfill", backfill, ("none", "easy"))
        for name, value in (("hold", hold), ("wait", wait)):
            if not isinstance(value, bool):
                raise InputError(f"must be True or False, got {value!r}", place=name)
        self.shown, self.backfill, self.candidates, self.hold, self.wait = shown, backfill, candidates, hold, wait
        self.space = Choice(shown.window + wait)
        self._masks = _masks(shown.window, wait)
        self._easy = None if backfill == "none" else Easy(candidates=candidates)
        self._closed = False

    def asks(self, view: View) -> bool:
        """Whether no job is next, and one waits that may be chosen at this decision."""
        return self.shown.reserved is None and not self._closed and bool(view.waiting)

    def mask(self, view: View) -> Mask:
        """Return which rows have a job; once nothing is to come, jobs that do not fit are excluded, and waiting."""
        jobs = self.shown.jobs(view)
        found: Mask = self._masks[len(jobs)]
        if len(view.places[0].running) or not view.env.only(WAKE_UP, GIVE_UP):
            return found
        found = found.copy()
        found[self.shown.window :] = False
        fits = [job.place.fits(job) for job in jobs]
        found[: len(jobs)] &= fits if any(fits) else True
        return found

    def __call__(self, view: View, action: Action) -> Iterable[Decision]:
        """Start a job, or note that it is next."""
        jobs = self.shown.jobs(view)
        row = int(action)
        if row >= len(jobs):  # to wait
            self._closed = True
            return ()
        return self._try(view, jobs[row])

    def resume(self, view: View) -> Iterable[Decision]:
        """Start the job that is next, if it fits by now."""
        shown, self._closed = self.shown, False
        job, shown.reserved = shown.reserved, None
        return () if job is None or job.state != "waiting" else self._try(view, job)

    def _try(self, view: View, job: LiveJob) -> Iterable[Decision]:
        if job.place.fits(job):
            return (Start(job, job.place),)
        if self.hold:
            self.shown.reserved = job
        else:
            self._closed = True
        return () if self._easy is None else self._easy.beside(view, job.place, job)

    def state(self) -> Plain:
        """Return the id of the job that is next, whether nothing more is chosen now, and what backfilling keeps."""
        kept = None if self._easy is None else self._easy.state()
        name = None if self.shown.reserved is None else self.shown.reserved.id
        return {"next": name, "closed": self._closed, **({"backfilling": kept} if kept else {})}

    def restore(self, values: Plain, view: View) -> None:
        """Take over the job that is next."""
        if isinstance(values, dict):
            name, self._closed = values["next"], bool(values["closed"])
            kept = values.get("backfilling")
            if self._easy is not None and isinstance(kept, dict):
                self._easy.restore(kept)
            self.shown.reserved = None if name is None else next((job for job in view.waiting if job.id == name), None)


@cache
def _masks(window: int, wait: bool) -> Mask:
    """Return the mask for each number of jobs in the rows."""
    masks = np.tri(window + 1, window + wait, -1, dtype=np.bool_)
    masks[:, window:] = True
    masks.flags.writeable = False
    return masks


class ReserveAndFill(ChooseNext):
    """An action is a row, on two levels, as in DRAS (Fan et al., IEEE TPDS 33(12), 2022).

    First the job that is next: it starts if it fits, otherwise it gets a reservation, at the instant at which it fits
    if all running jobs end as requested. Then, while it waits, each job to backfill that does not delay it; the last
    action ends the filling until the next event.

    >>> ReserveAndFill(JobWindow(4, reserves=True)).space.n
    np.int64(5)
    """

    def __init__(self, shown: JobWindow) -> None:
        super().__init__(shown, wait=True)

    def asks(self, view: View) -> bool:
        """Whether a job may be reserved or backfilled."""
        if self.shown.reserved is None:
            return bool(view.waiting)
        some: bool = self.shown.backfillable(view).any().item()
        return some and not self._closed

    def mask(self, view: View) -> Mask:
        """Return which rows have a job, or one that may be backfilled."""
        found = super().mask(view).copy()
        if self.shown.reserved is None:
            found[-1] = False
        else:
            found[:-1] = self.shown.backfillable(view)
        return found

    def __call__(self, view: View, action: Action) -> Iterable[Decision]:
        """Start a job, reserve for it, or end the filling."""
        if self.shown.reserved is None or action == self.shown.window:
            return super().__call__(view, action)
        job = self.shown.jobs(view)[int(action)]
        return (Start(job, job.place),)


def batch_env(
    platform: GivenPlatform | Episodes = _PLATFORM,
    workload: GivenWork | None = _WORK,
    *,
    window: int = 128,
    backfill: Literal["none", "easy"] = "none",
    candidates: GivenOrder = "fcfs",
    hold: bool = True,
    wait: bool = False,
    reward: ObjectiveLike = "bounded_slowdown_mean",
    when: When = "end",
    render_mode: None = None,
    **episodes: Any,
) -> SchedulingEnv:
    """Return the environment ``simmodel/Batch-v0``: which of the first waiting jobs is next.

    Parameters
    ----------
    platform, workload, episodes
        as for :class:`~simmodel.learn.episodes.Episodes`, or these
    window
        as for :class:`JobWindow`
    backfill, candidates, hold, wait
        as for :class:`ChooseNext`
    reward, when
        as for :class:`~simmodel.learn.rewards.Reward`
    render_mode
        ``None``, as gymnasium passes it: there is nothing to draw

    Raises
    ------
    InputError
        an argument is invalid; an unknown one, and another ``render_mode``, are a ``TypeError``, too

    >>> env = batch_env(window=8)
    >>> _, info = env.reset(seed=1)
    >>> info["action_mask"].tolist()
    [True, False, False, False, False, False, False, False]
    """
    shown = JobWindow(window)
    act = ChooseNext(shown, backfill, candidates=candidates, hold=hold, wait=wait)
    drawn = Episodes.of(platform, workload, episodes, render_mode)
    return SchedulingEnv(drawn if backfill == "none" else drawn.blind(), shown, act, Reward(reward, when))


def backfill_env(
    platform: GivenPlatform | Episodes = _PLATFORM,
    workload: GivenWork | None = _WORK,
    *,
    window: int = 128,
    reward: ObjectiveLike = "bounded_slowdown_mean",
    when: When = "end",
    render_mode: None = None,
    **episodes: Any,
) -> SchedulingEnv:
    """Return the environment ``simmodel/Backfill-v0``: which job gets a reservation, then which ones fill the gaps.

    Parameters are those of :func:`batch_env`; see :class:`ReserveAndFill`.
    """
    shown = JobWindow(window, reserves=True)
    drawn = Episodes.of(platform, workload, episodes, render_mode)
    return SchedulingEnv(drawn, shown, ReserveAndFill(shown), Reward(reward, when))
