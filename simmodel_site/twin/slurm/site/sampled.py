"""The jobs with which a changed Slurm is compared with the unchanged one: a log, parts of it, or logs drawn from it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

import attrs
import numpy as np

from simmodel import InputError
from simmodel.extending import Source, counted, parse_quantity, resampling_doubts
from simmodel.work import Job, Workload
from simmodel_site.policy.accounts import Accounts
from simmodel_site.policy.wishes import Wishes
from simmodel_site.twin.slurm.site.folder import SlurmFolder
from simmodel_site.twin.slurm.site.recorded import RecordedJob

__all__ = ["LogPart", "LogSample"]

_WEEK = 604_800.0


_SETTLED = 90.0
"""Seconds before the begin of a part by which the jobs that run then are submitted: the loops start them by then."""


@attrs.frozen(kw_only=True)
class LogPart:
    """The jobs of a pair of runs.

    Parameters
    ----------
    jobs
        those that are submitted, and those that run or wait at the begin
    measured
        the number in the accounting of each job whose wait counts, by its id
    running, begin
        how many run at the begin, and when that is (s); -inf: that of the log
    accounts
        the accounts, if they differ from those of the site
    """

    jobs: list[Job]
    measured: Mapping[int | str, int]
    running: int = 0
    begin: float = -inf
    accounts: Accounts | None = None


@attrs.frozen(kw_only=True)
class LogSample:
    """The pairs of runs of a comparison.

    Parameters
    ----------
    folder
        the site
    kind
        ``"phases"``, ``"weeks"`` or ``"users"``
    source
        where the sample comes from
    spans
        the parts of the log, each from when until when (s)
    told
        what is left out, and what else the sample is
    seed
        of resampled logs
    """

    folder: SlurmFolder
    kind: str
    source: Source
    spans: tuple[tuple[float, float], ...] = ((-inf, inf),)
    told: tuple[str, ...] = ()
    seed: int = 0

    @classmethod
    def of(
        cls,
        folder: SlurmFolder,
        *,
        phases: int = 10,
        window: str | None = None,
        weeks: int | None = None,
        resample: str | None = None,
        runs: int = 20,
        seed: int = 0,
    ) -> LogSample:
        """Return the sample that options name, as of :func:`~simmodel_site.twin.slurm.site.replayed.change`.

        Raises
        ------
        InputError
            two exclude each other, or the log is too short
        """
        for name, value, least in (("phases", phases, 2), ("runs", runs, 2), ("seed", seed, 0)):
            if value < least:
                raise InputError(f"must be a whole number >= {least}, got {value}", place=f"--{name}")
        given = [name for name, value in (("window", window), ("sample", weeks), ("resample", resample)) if value]
        if len(given) > 1:
            raise InputError("exclude each other", place=" and ".join(f"--{name}" for name in given))
        if resample is not None:
            return cls._of_users(folder, resample, runs, seed)
        submits = [each.job.submit for each in _measured(folder)]
        first, last = submits[0], submits[-1]
        spans: list[tuple[float, float]] = [(-inf, inf)]
        if window is not None:
            at_first, _, length = window.rpartition(":")
            long = parse_quantity(length, "s", place="--window")
            if at_first not in ("", "first", "last") or not long:
                raise InputError(f"must be a time such as 2w, or first:2w, got {window!r}", place="--window")
            spans = [(first, first + long) if at_first == "first" else (last - long, inf)]
        if weeks is not None:
            whole = int((last - first) // _WEEK)
            if not 2 <= weeks <= whole:
                message = f"must be from 2 to the number of whole weeks in the log, {whole}, got {weeks}"
                raise InputError(message, place="--sample")
            drawn = np.sort(np.random.default_rng(seed).choice(whole, weeks, replace=False)).tolist()
            spans = [(first + week * _WEEK, first + (week + 1) * _WEEK) for week in drawn]
        source = Source("seeds", phases if weeks is None else weeks)
        kind = "phases" if weeks is None else "weeks"
        found = cls(folder=folder, kind=kind, source=source, spans=tuple(spans))
        return attrs.evolve(found, told=tuple(found._lines(phases, weeks)))

    @classmethod
    def _of_users(cls, folder: SlurmFolder, resample: str, runs: int, seed: int) -> LogSample:
        if resample != "users":
            raise InputError(f"must be 'users', got {resample!r}", place="--resample")
        log = Workload.from_jobs(folder.jobs)
        source = Source("users", runs, tuple(resampling_doubts(log)))
        alike = "users, accounts, limits and the times of outages are those of the log"
        return cls(folder=folder, kind="users", source=source, told=(f"{source}; {alike}",), seed=seed)

    def _lines(self, phases: int, weeks: int | None) -> Iterator[str]:
        """Yield what the sample is, and how many jobs are left out."""
        if weeks is None:
            yield (
                f"95 % intervals over {phases} phases of the loops, the same for both: for these jobs, not for others"
            )
        else:
            begins = ", ".join(self.folder.instant(begin)[:10] for begin, _ in self.spans)
            yield f"{weeks} weeks drawn at random, from {begins}; 95 % intervals of their mean, paired by week"
        if self.spans == ((-inf, inf),):
            return
        parts = [self.part(number) for number in range(len(self.spans))]
        inside, everyone = sum(len(part.measured) for part in parts), len(_measured(self.folder))
        running = sum(part.running for part in parts)
        waiting = sum(len(part.jobs) - len(part.measured) - part.running for part in parts)
        where = "this part" if weeks is None else "these weeks"
        yield (
            f"{inside:,} of {counted(everyone, 'job')} in {where} of the log, {everyone - inside:,} left out; "
            f"recorded state at the begin: {running:,} running, {waiting:,} waiting"
        )

    @property
    def pairs(self) -> int:
        """The number of pairs of runs; of resamples, one is that of the log itself."""
        return self.source.count + (self.kind == "users")

    def part(self, number: int) -> LogPart:
        """Return the jobs of a pair of runs."""
        folder = self.folder
        if self.kind == "users" and number:
            return self._drawn(number)
        begin, end = self.spans[number % len(self.spans)]
        there = {each.job.id: each for each in folder.recorded if each.job.submit < end and _over(each) > begin}
        jobs: list[Job] = []
        measured: dict[int | str, int] = {}
        running = 0
        for row, each in enumerate(folder.recorded):
            job = each.job
            if job.id not in there:
                continue
            if len(there) < len(folder.recorded):
                job = attrs.evolve(job, dependencies=[other for other in job.dependencies if other.job in there])
            if job.submit < begin:
                running += each.start < begin
                job = _runs(each, begin) if each.start < begin else _waits(job, begin)
            elif not job.never_ran:
                measured[job.id or 0] = row
            jobs.append(job)
        jobs.sort(key=lambda job: job.submit)
        return LogPart(jobs=jobs, measured=measured, running=running, begin=begin)

    def _drawn(self, number: int) -> LogPart:
        """Return a resampled log; a copy of a user has the associations of the user."""
        folder = self.folder
        log = Workload.from_jobs(folder.jobs).replace(row=np.arange(len(folder.recorded)))
        found = log.resampled(seed=int(np.random.SeedSequence([self.seed, number]).generate_state(1)[0]))
        jobs, rows = list(found.specs or ()), found["row"].tolist()
        accounts = folder.accounts
        if accounts is not None:
            names = {(folder.recorded[row].job.user, job.user) for job, row in zip(jobs, rows, strict=True)}
            copies = [
                attrs.evolve(each, user=str(copy))
                for each in accounts.associations
                for user, copy in sorted(names, key=str)
                if each.user is not None and each.user == str(user) and user != copy
            ]
            asked = {
                job.id: accounts.asked[old]
                for job, row in zip(jobs, rows, strict=True)
                if job.id is not None and (old := folder.recorded[row].job.id) in accounts.asked
            }
            accounts = Accounts(associations=(*accounts.associations, *copies), qos=accounts.qos, asked=asked)
        measured: dict[Any, int] = {
            job.id: row for job, row in zip(jobs, rows, strict=True) if not folder.recorded[row].job.never_ran
        }
        return LogPart(jobs=jobs, measured=measured, accounts=accounts)


def _measured(folder: SlurmFolder) -> list[RecordedJob]:
    return [each for each in folder.recorded if not each.job.never_ran]


def _over(each: RecordedJob) -> float:
    """Return when a job is over in the record (s); ``inf``: never."""
    job = each.job
    if each.start < inf:
        return each.start + (inf if job.run is None else job.run)
    return inf if job.cancel is None else job.cancel


def _runs(each: RecordedJob, begin: float) -> Job:
    """Return a job that runs at an instant (s) as one that comes before it, starts at once and ends when it did."""
    earlier = max(each.start - (begin - _SETTLED), 0.0)
    job, submit = each.job, each.start - earlier
    return attrs.evolve(
        job,
        submit=submit,
        run=_over(each) - submit,
        requested=None if job.requested is None else job.requested + earlier,
        dependencies=(),
        options=_without_holds(job),
    )


def _waits(job: Job, begin: float) -> Job:
    """Return a job that no loop starts before an instant (s).

    It is held from 1 s after its submission on, as its age counts then; a task of an array, which has its hold from
    the first one, begins then.
    """
    wishes = Wishes.of(job.options)
    if job.submit + max(wishes.begin, wishes.hold[1] if wishes.hold else 0.0) >= begin:
        return job
    wait = f"now+{begin - job.submit:.3f}"
    own = f"--begin={wait}" if wishes.array else f"--begin=now+2 --hold=now+1,{wait}"
    return attrs.evolve(job, options=f"{_without_holds(job)} {own}".lstrip())


def _without_holds(job: Job) -> str:
    words = shlex.split(job.options)
    return shlex.join([word for word in words if not word.startswith(("--begin", "--hold"))])
