"""Works drawn from one log: users resampled by whole weeks, and submissions shaken a little.

Sources: Zakay, Feitelson, "Workload resampling for performance evaluation of parallel job schedulers", Concurrency and
Computation: Practice and Experience 26(12), 2014; Tsafrir, Ouaknine, Feitelson, "Reducing performance evaluation
sensitivity and variability by input shaking", MASCOTS 2007.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.foundation.loading import check_count
from simmodel.foundation.units import parse_quantity
from simmodel.work.table import distinct
from simmodel.work.transformations import counted_work, moved_to, offered_load, scale_load
from simmodel.work.workload import Report, Workload, has_value

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Resampling", "differences", "resampled", "resampling_doubts", "shaken", "week_of"]

_WEEK = 604_800.0
_LONG_TERM = 12  # weeks from the first to the last job, or half of the log, from which a user counts as long-term
_LOAD, _OTHERS = 0.02, 0.05  # how far the load, and mean run time and arrivals by hour and weekday, may be off
_DRAWS, _EXCHANGES, _TRIES, _MOVES = 64, 400, 4, 400
_SPANS = (1, 2, 4)  # weeks, whose work varies as in the log
_FEW_WEEKS, _FEW_USERS, _MUCH = 8, 20, 0.25


def week_of(submit: ArrayLike, begin: float | None = None) -> NDArray[np.int64]:
    """Return the week of each instant (s): 0 for the first seven days from ``begin`` (default: the first instant) on.

    >>> week_of([86400.0, 86400.0 + 604799, 86400.0 + 604800])
    array([0, 0, 1])
    """
    instants = np.asarray(submit, dtype=np.float64)
    first = begin if begin is not None else float(instants.min()) if len(instants) else 0.0
    weeks: NDArray[np.int64] = np.floor((instants - first) / _WEEK).astype(np.int64)
    return weeks


def _users_of(workload: Workload, by_user: bool) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the users of a log, and the number of the user of each job; -1: unknown."""
    if not by_user or "user" not in workload:
        return np.zeros(0, dtype=np.int64), np.full(len(workload), -1)
    names, which = distinct(workload["user"])
    known = np.array([has_value(name) for name in names.tolist()], dtype=bool)
    return names[known], np.where(known, np.cumsum(known) - 1, -1)[which]


class Resampling:
    """A log taken apart into users, from which logs like it are drawn; parameters as of :meth:`Workload.resampled`.

    A part is what moves as a whole: the jobs of a user, or those without a user of one week.
    """

    def __init__(self, workload: Workload, *, users: bool | float = True, weeks: int | None = None) -> None:
        if not isinstance(users, bool | int | float) or not 0 <= users < np.inf:
            raise InputError(f"must be true, false or a number of weeks, got {users!r}", place="users")
        if weeks is not None and (not isinstance(weeks, int) or weeks < 1):
            raise InputError(f"must be a whole number >= 1, got {weeks!r}", place="weeks")
        check_count("weeks", weeks or 1)
        if workload.files is not None:
            raise InputError(f"{workload.name}: the tasks of a workflow have no users to be resampled")
        submit = workload["submit"]
        rows = np.flatnonzero(np.isfinite(submit))
        self.span = float(np.ptp(submit[rows])) / _WEEK if len(rows) else 0.0  # in weeks
        if self.span < 1:
            message = f"{workload.name}: must span a week or more, since users move by whole weeks"
            raise InputError(f"{message}, got {self.span * 7:.1f} days")
        self.workload = workload
        self.circle = round(self.span)
        self.weeks = self.circle if weeks is None else weeks
        self.users, user = _users_of(workload, users is not False)
        week = week_of(submit[rows])
        part = np.where(user[rows] < 0, len(self.users) + week, user[rows])
        order = np.lexsort((submit[rows], part))
        self.rows, part, week = rows[order], part[order], week[order]
        starts = np.flatnonzero(np.diff(part, prepend=-1))
        self.begin = np.append(starts, len(part))
        first, last = np.minimum.reduceat(week, starts), np.maximum.reduceat(week, starts)
        least = min(_LONG_TERM, self.circle / 2) if isinstance(users, bool) else users
        self.names = part[starts]  # numbers of users, then weeks of jobs without one
        self.blocks = self.names >= len(self.users)
        self.long = (last - first >= least) & ~self.blocks
        self.cycle = np.where(self.long, self.circle, self.weeks)
        self.part = np.repeat(np.arange(len(starts)), np.diff(self.begin))
        self.week = np.where(self.long[self.part], week % self.circle, week - first[self.part])
        self.places = np.where(self.long & (self.weeks % self.circle > 0), self.circle, 1)
        self.at = np.cumsum(self.places) - self.places
        count, self.run = counted_work(workload)
        self.work = count * self.run
        self.figures = _figures(submit[rows], self.run[rows], self.work[rows])[0]
        self.of_parts = self._of_parts()
        self.weekly = self._weekly()

    def _of_parts(self) -> NDArray[np.float64]:
        """Return the figures of a copy of each part: at ``at``, and further on where the week it begins in matters."""
        inside = self.long[self.part] | (self.week < self.weeks)
        part = self.part[inside]
        slot = self.at[part] + np.where(self.places[part] > 1, self.week[inside], 0)
        rows = self.rows[inside]
        submit = self.workload["submit"][rows]
        figures = _figures(submit, self.run[rows], self.work[rows], slot, int(self.places.sum()))
        full, rest = divmod(self.weeks, self.circle)
        if not rest:
            figures[self.at[self.long]] *= full
            return figures
        begin = -np.arange(self.circle) % self.circle
        for first in self.at[self.long].tolist():
            own = figures[first : first + self.circle]
            until = np.cumsum(np.vstack([np.zeros((1, own.shape[1])), own, own]), axis=0)
            figures[first : first + self.circle] = until[begin + rest] - until[begin] + full * own.sum(axis=0)
        return figures

    def draw(self, *, load: float | None = None, seed: int = 0) -> Workload:
        """Return one log of these users."""
        own = self.figures[0] / self.span  # processor-seconds a week
        if load is not None and not (isinstance(load, int | float) and 0 < load < np.inf and own > 0):
            raise InputError(f"must be a finite number > 0, of a log with run times, got {load!r}", place="load")
        factor = 1.0 if load is None else load / offered_load(self.workload)
        rng = np.random.default_rng(seed)
        push, reached = 1.0, 1.0
        for _ in range(_TRIES):  # a log of few jobs may end well before its last week does
            wanted = self.figures * (factor * self.weeks / self.span)
            wanted[0] *= push
            luck = _Luck.of(rng, self.cycle, self.circle, self.weeks)
            counts = self._exchanged(rng, luck, wanted, *self._nearest(rng, luck, wanted, factor))
            found = self._joined(rng, luck, counts, f"{self.workload.name} resample {seed}")
            count, run = counted_work(found)
            figures = _figures(found["submit"], run, count * run)[0]
            length = float(np.ptp(found["submit"])) / _WEEK if len(found) > 1 else self.weeks
            reached = figures[0] / length / (factor * own) if own and length else 1.0
            if abs(reached - 1) <= _LOAD:
                break
            push /= reached or 1.0
        found.report.note(self._told(figures, factor))
        if abs(reached - 1) > _LOAD and 0 < reached < np.inf:
            found.report.note(f"gaps between submissions multiplied by {reached:.3f}: the users alone miss the load")
            scaled = scale_load(found, 1 / reached)
            scaled.report = found.report
            return scaled
        return found

    def _begin(self, luck: _Luck, parts: NDArray[np.intp], copy: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the week in which each copy of a part begins: another one for each copy, while there are any."""
        later = np.where(self.long[parts], luck.of_circle[copy % self.circle], luck.of_weeks[copy % self.weeks])
        begin: NDArray[np.int64] = (luck.shift[parts] + later) % self.cycle[parts]
        return begin

    def _of_copies(self, luck: _Luck, parts: NDArray[np.intp], copy: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the figures of each copy of a part."""
        begin = np.where(self.places[parts] > 1, self._begin(luck, parts, copy), 0)
        figures: NDArray[np.float64] = self.of_parts[self.at[parts] + begin]
        return figures

    def _nearest(
        self, rng: np.random.Generator, luck: _Luck, wanted: NDArray[np.float64], factor: float
    ) -> tuple[NDArray[np.int64], float]:
        """Draw parts with replacement until their figures are near those wanted; return the nearest and how near."""
        kinds = [np.flatnonzero(kind) for kind in (self.long, ~self.long & ~self.blocks, self.blocks)]
        best, least = np.zeros(len(self.names), dtype=np.int64), np.inf
        for _ in range(_DRAWS):
            counts = np.zeros(len(self.names), dtype=np.int64)
            for kind, cycle in zip(kinds, (self.circle, self.weeks, self.weeks), strict=True):
                number = int(factor * len(kind) * cycle / self.span + rng.random())
                if len(kind):
                    counts += np.bincount(rng.choice(kind, number), minlength=len(counts))
            off = _off(self._of_copies(luck, *_copies(counts)).sum(axis=0), wanted)
            if off < least:
                best, least = counts, float(off)
            if least <= 1:
                break
        return best, least

    def _exchanged(
        self,
        rng: np.random.Generator,
        luck: _Luck,
        wanted: NDArray[np.float64],
        counts: NDArray[np.int64],
        off: float,
    ) -> NDArray[np.int64]:
        """Exchange single copies for others, drawn from those that bring figures nearer, until they are near enough."""
        every = np.arange(len(counts))
        total = self._of_copies(luck, *_copies(counts)).sum(axis=0)
        for _ in range(_EXCHANGES):
            if off <= 1 or not counts.any():
                break
            out = rng.choice(every, 1, p=counts / counts.sum())
            changed = total - self._of_copies(luck, out, counts[out] - 1) + self._of_copies(luck, every, counts)
            reached = _off(changed, wanted)
            better = np.flatnonzero((reached < off) & (every != out))
            if len(better):
                into = rng.choice(better)
                counts[out] -= 1
                counts[into] += 1
                total, off = changed[into], float(reached[into])
        return counts

    def _joined(self, rng: np.random.Generator, luck: _Luck, counts: NDArray[np.int64], name: str) -> Workload:
        """Return the log of these copies of its parts."""
        log = self.workload
        parts, copy = _copies(counts)
        start = self._begin(luck, parts, copy)
        blocks = rng.permutation(np.flatnonzero(self.blocks[parts]))
        start[blocks] = np.arange(len(blocks)) % self.weeks
        start = self._evened(rng, parts, start)
        rounds = np.where(self.long[parts], -(-self.weeks // self.circle), 1)
        whose, again = _copies(rounds)
        begin, size = self.begin[parts[whose]], np.diff(self.begin)[parts[whose]]
        piece, nth = _copies(size)
        at = begin[piece] + nth
        of = whose[piece]
        cycle = self.cycle[parts[of]]
        week = (self.week[at] + start[of]) % cycle + again[piece] * self.circle
        kept = np.flatnonzero((self.week[at] < cycle) & (week < self.weeks))
        rows, piece, of, week = self.rows[at[kept]], piece[kept], of[kept], week[kept]
        submit = log["submit"][rows]
        later = (week - week_of(submit, float(np.nanmin(log["submit"])))) * _WEEK
        order = np.lexsort((rows, piece, submit + later))
        rows, piece, of, later = rows[order], piece[order], of[order], later[order]
        found = log.where(rows, name=name)
        found = moved_to(found, found["submit"] + later)
        columns: dict[str, Any] = {"job": np.arange(1, len(rows) + 1)}
        report = Report() + log.report
        if "preceding" in log:
            columns["preceding"], lost = self._preceding(rows, piece, found["submit"])
            if lost:
                report.repaired["preceding job not before it in the resample: dependency ignored"] += lost
        if len(self.users):
            columns["user"] = self._user(log["user"][rows], of, np.where(self.blocks[parts], 0, copy)[of])
        found = found.replace(**columns)
        found.report = report
        if found.specs is not None:
            found.specs = _renumbered(found.specs, piece.tolist())
        return found

    def _evened(self, rng: np.random.Generator, parts: NDArray[np.intp], start: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return other starts of copies, such that the work of 1, 2 and 4 weeks varies as in the log, but for chance.

        Users of one machine make room for each other: where they begin at any week, backlogs grow that no log has. By
        chance, the variation of so few weeks differs from log to log (as a standard deviation of normal values does).
        """
        share = np.where(self.blocks, 0.0, self.weekly.sum(axis=1))[parts]
        if not share.any() or min(self.weeks, self.circle) < _FEW_WEEKS:
            return start
        chance = np.exp(rng.normal() * np.sqrt(np.array(_SPANS) / (2 * self.weeks)))
        aim = np.maximum(_variations(self._of_weeks()), _LOAD) * chance
        placed: NDArray[np.float64] = self.weekly[
            parts[:, None], (np.arange(self.weeks) - start[:, None]) % self.cycle[parts, None]
        ]
        total = placed.sum(axis=0)
        whole, off = float(total.sum()), _unlike(total, aim)
        for copy in rng.choice(len(parts), _MOVES, p=share / share.sum()).tolist():
            if off <= _OTHERS:
                break
            cycle = self.cycle[parts[copy]]
            at = (np.arange(self.weeks) - np.arange(cycle)[:, None]) % cycle
            moved = total - placed[copy] + self.weekly[parts[copy]][at]
            reached = _unlike(moved, aim)
            better = np.flatnonzero((reached < off) & (np.abs(moved.sum(axis=-1) / whole - 1) < _LOAD / 2))
            if len(better):
                begin = rng.choice(better)
                start[copy], total, off = begin, moved[begin], reached[begin]
                placed[copy] = self.weekly[parts[copy]][at[begin]]
        return start

    def _of_weeks(self) -> NDArray[np.float64]:
        """Return the work of each whole week of the log."""
        weeks = week_of(self.workload["submit"][self.rows])
        return np.bincount(weeks, self.work[self.rows], self.circle)[: int(self.span + 0.1)].astype(np.float64)

    def _weekly(self) -> NDArray[np.float64]:
        """Return the work of each part by its own weeks."""
        wide = int(self.cycle.max())
        inside = self.week < self.cycle[self.part]
        slot = self.part[inside] * wide + self.week[inside]
        work = np.bincount(slot, self.work[self.rows[inside]], len(self.names) * wide)
        return work.reshape(-1, wide).astype(np.float64)

    def _preceding(
        self, rows: NDArray[np.intp], piece: NDArray[np.intp], submit: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], int]:
        """Return the new number of the job that precedes each, of the same copy of a user, and how many lost theirs."""
        column = self.workload["preceding"]
        if column.dtype.kind in "iu" and not (column != -1).any():
            return np.full(len(rows), -1), 0  # as in most logs
        ids = column.tolist()
        row_of = {job: row for row, job in enumerate(self.workload["job"].tolist())}
        before = np.array([row_of.get(each, -1) if has_value(each) else -1 for each in ids], dtype=np.int64)[rows]
        key = piece * len(ids) + rows
        order = np.argsort(key)
        at = order[np.minimum(np.searchsorted(key, piece * len(ids) + before, sorter=order), len(key) - 1)]
        there = (before >= 0) & (rows[at] == before) & (piece[at] == piece) & (submit[at] <= submit)
        return np.where(there, at + 1, -1), int((~there & (before >= 0)).sum())

    def _user(self, user: NDArray[Any], copies: NDArray[np.intp], copy: NDArray[np.int64]) -> NDArray[Any]:
        """Return the user of each job: each copy but the first is a user of its own."""
        again = np.flatnonzero(copy)
        if user.dtype.kind in "iu":
            named = user.astype(np.int64)
            named[again] = int(self.users.max()) + 1 + copies[again]
            return named
        named = user.astype(object)
        named[again] = [
            f"{user[row]}#{number + 1}" for row, number in zip(again.tolist(), copy[again].tolist(), strict=True)
        ]
        return named if user.dtype.kind == "O" else named.astype(str)

    def _told(self, figures: NDArray[np.float64], factor: float) -> str:
        """Return what was drawn, and how far it is from the log, or from what was wanted of it."""
        load, run, hour, day = differences(figures, self.figures * (factor * self.weeks / self.span))
        users = f"{len(self.names) - self.blocks.sum():,} users, {self.long.sum():,} of them long-term"
        if self.blocks.any():
            alone = int(np.diff(self.begin)[self.blocks].sum())
            users += f", and {alone:,} jobs without a user, which stay with those of their week"
        times = "" if factor == 1 else f" at {factor:.3g} times its load"
        told = (
            f"resampled from {self.workload.name} by whole weeks{times}: {users}; load off by {load:.1%}, mean run "
            f"time by {run:.1%}, arrivals by hour by {hour:.1%} and by weekday by {day:.1%}"
        )
        return told.replace("%", " %")


@attrs.frozen(eq=False)
class _Luck:
    """Where parts begin: the week of the first copy of each, and how much later the others."""

    shift: NDArray[np.int64]
    of_circle: NDArray[np.int64]
    of_weeks: NDArray[np.int64]

    @classmethod
    def of(cls, rng: np.random.Generator, cycle: NDArray[np.int64], circle: int, weeks: int) -> _Luck:
        return cls(rng.integers(cycle), rng.permutation(circle), rng.permutation(weeks))


def _copies(counts: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return each number as often as it is counted, and the number of each copy.

    >>> _copies(np.array([2, 0, 1]))
    (array([0, 0, 2]), array([0, 1, 0]))
    """
    parts = np.repeat(np.arange(len(counts)), counts)
    return parts, np.arange(len(parts)) - np.repeat(np.cumsum(counts) - counts, counts)


def _figures(
    submit: NDArray[np.float64],
    run: NDArray[np.float64],
    work: NDArray[np.float64],
    slot: NDArray[np.int64] | int = 0,
    size: int = 1,
) -> NDArray[np.float64]:
    """Return work, run time, and arrivals by hour and by weekday, of the jobs in each slot."""
    slots = np.broadcast_to(slot, submit.shape)

    def arrivals(seconds: float, number: int) -> NDArray[np.int64]:
        of_cycle = (submit // seconds).astype(np.int64) % number
        return np.bincount(slots * number + of_cycle, minlength=size * number).reshape(size, number)

    sums = [np.bincount(slots, each, size)[:, None] for each in (work, run)]
    figures: NDArray[np.float64] = np.hstack([*sums, arrivals(3600, 24), arrivals(86400, 7)])
    return figures


def _variations(work: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how much the work of 1, 2 and 4 successive weeks varies, as a share of a week's mean, of rows of works."""
    until = np.cumsum(np.concatenate([np.zeros_like(work[..., :1]), work], axis=-1), axis=-1)
    sums = [until[..., weeks:] - until[..., :-weeks] for weeks in _SPANS]
    mean = np.maximum(work.mean(axis=-1), 1e-300)
    return np.stack([each.std(axis=-1) / mean for each in sums], axis=-1)


def _unlike(work: NDArray[np.float64], aim: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far the variations of work by week are from those wanted, as a share of these."""
    off: NDArray[np.float64] = np.abs(_variations(work) / aim - 1).max(axis=-1)
    return off


def _off(figures: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far rows of figures are from those wanted, as multiples of what is allowed."""
    off: NDArray[np.float64] = np.max(differences(figures, wanted) / [_LOAD / 2, _OTHERS, _OTHERS, _OTHERS], axis=-1)
    return off


def differences(figures: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far rows of figures are from those wanted: load, mean run time, arrivals by hour and by weekday.

    The last two are the mean deviation of the share of an hour or a weekday, weighted with this share.
    """
    with np.errstate(all="ignore"):
        load = np.abs(figures[..., 0] / wanted[0] - 1)
        jobs, all_jobs = figures[..., 2:26].sum(axis=-1), wanted[2:26].sum()
        run = np.abs(figures[..., 1] / jobs / (wanted[1] / all_jobs) - 1)
        apart = np.abs(figures[..., 2:] - wanted[2:]) / all_jobs
    found = np.stack([load, run, apart[..., :24].sum(axis=-1), apart[..., 24:].sum(axis=-1)], axis=-1)
    return np.where(np.isnan(found), np.where(jobs > 0, 0.0, np.inf)[..., None], found)


def _renumbered(specs: Any, piece: list[int]) -> list[Any]:
    """Return jobs numbered anew, each of which depends on earlier ones of its copy of a user."""
    numbers = {(part, job.id): number for number, (part, job) in enumerate(zip(piece, specs, strict=True), 1)}
    found = []
    for number, (part, job) in enumerate(zip(piece, specs, strict=True), 1):
        earlier = [(each, numbers.get((part, each.job), number)) for each in job.dependencies]
        kept = [attrs.evolve(each, job=new) for each, new in earlier if new < number]
        found.append(attrs.evolve(job, id=number, dependencies=kept))
    return found


def resampled(workload: Workload, *, users: bool | float, weeks: int | None, load: float | None, seed: int) -> Workload:
    """Return a log like this one: see :meth:`Workload.resampled`."""
    return Resampling(workload, users=users, weeks=weeks).draw(load=load, seed=seed)


def resampling_doubts(workload: Workload, *, users: bool | float = True) -> list[str]:
    """Return why logs resampled from a log are too much alike, or too unlike it, to say how sure a difference is.

    >>> log = Workload({"submit": [0, 1814400], "run": [9, 1], "processors": [1, 1], "user": ["ann", "bob"]})
    >>> resampling_doubts(log)
    ['it spans 3.0 weeks, fewer than 8', 'it has 2 users, fewer than 20', 'user ann has 90 % of the load']
    """
    submit = workload["submit"][np.isfinite(workload["submit"])]
    span = float(np.ptp(submit)) / _WEEK if len(submit) else 0.0
    names, user = _users_of(workload, users is not False)
    count, run = counted_work(workload)
    work = np.bincount(user + 1, count * run, len(names) + 1) / max(float(count @ run), 1e-300)
    doubts = [f"it spans {span:.1f} weeks, fewer than {_FEW_WEEKS}"] if round(span) < _FEW_WEEKS else []
    if not len(names):
        return [*doubts, "it has no users: the jobs of a week stay together"]
    if len(names) < _FEW_USERS:
        doubts.append(f"it has {len(names)} users, fewer than {_FEW_USERS}")
    if work[0] > _MUCH:
        doubts.append(f"jobs without a user have {work[0]:.0%} of the load")
    most = int(work[1:].argmax())
    if work[1 + most] > _MUCH:
        doubts.append(f"user {names[most]} has {work[1 + most]:.0%} of the load")
    return [each.replace("%", " %") for each in doubts]


def shaken(workload: Workload, *, noise: float | str = 60.0, seed: int = 0) -> Workload:
    """Return a log whose submissions are shifted a little: see :meth:`Workload.shaken`."""
    most = parse_quantity(noise, "s", place="noise")
    if not 0 < most < np.inf:
        raise InputError(f"must be a time > 0, got {noise!r}", place="noise")
    submit = workload["submit"]
    names, user = _users_of(workload, True)
    row = np.arange(len(user))
    user = np.where(user < 0, len(names) + row, user)
    order = np.lexsort((submit, user))
    together = np.cumsum((np.diff(user[order], prepend=-1) != 0) | (np.diff(submit[order], prepend=-1) != 0))
    shift = np.random.default_rng(seed).uniform(-most, most, len(user) + 1)
    moved = np.maximum(submit[order] + shift[together], min(0.0, float(np.nanmin(submit, initial=0.0))))
    later = np.empty_like(moved)
    later[order] = moved[np.lexsort((moved, user[order]))]
    found = moved_to(workload, later)
    found.name = f"{workload.name} shaken {seed}"
    found.report = Report() + workload.report
    found.report.note(f"submissions of {workload.name} shifted by up to {most:g} s")
    return found
