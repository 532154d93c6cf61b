"""A source that asks a scheduler for its whole state, at intervals and when its scripts wake the twin."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic, perf_counter, sleep, time
from typing import Any, NamedTuple, TypeVar

import attrs

from simmodel import InputError
from simmodel.extending import Fields, counted
from simmodel_site.twin.events import Event, JobReport, JobState, Noticed, StateReport
from simmodel_site.twin.programs import Commands, ProgramError
from simmodel_site.twin.sources import Refused, RemoteSource, Source, source_settings

__all__ = ["ALIVE", "PolledSettings", "PolledSource", "State", "checked_answers"]

_C = TypeVar("_C", bound=Commands)

ALIVE = frozenset(("waiting", "held", "running"))
"""The states of jobs that are not over."""

_RANK: Mapping[str, int] = {"waiting": 0, "held": 0, "running": 1}  # the others: over, 2
_OVER = 2
_ASKED = 20  # jobs that are asked for one by one before a state is believed that takes back what was told of them
_LONG_OVER = 5.0  # seconds after its end; until then a job is told in each report, as its end may be too new for one
_AFTER = 2.0  # seconds from a report that was asked for to the next: schedulers tell whole seconds
_SETTLE = 0.05  # seconds from the first of several wake-ups to the report that answers them all
_LONGEST_PAUSE = 10.0  # seconds until a command that failed is tried again
_IDLE = 4.0  # reports take at most a fifth of the time: so many times its cost must pass until the next


class State(NamedTuple):
    """The state of a scheduler: its jobs in the order of its queue, and the nodes that are down or take no new jobs."""

    jobs: Sequence[JobReport]
    down: tuple[str, ...]
    draining: tuple[str, ...]


@attrs.frozen(kw_only=True, repr=False)
class PolledSettings(Fields):
    """The settings of any source that asks a scheduler.

    Parameters
    ----------
    interval
        the longest time between two reports (s)
    wake
        the settings of a source (``kind`` and so on) whose events wake this one
    conf, folder, timeout
        of :class:`~simmodel_site.twin.programs.Commands`
    """

    interval: float = 30.0
    wake: Mapping[str, Any] | None = None
    conf: str | None = None
    folder: str | None = None
    timeout: float = 30.0

    def commands_of(self, scheduler: type[_C]) -> _C:
        return scheduler(conf=self.conf, folder=self.folder, timeout=self.timeout)

    def wakening(self, cluster: str, folder: Path) -> Source | None:
        """Return the source whose events wake this one."""
        return None if self.wake is None else source_settings(self.wake).open(cluster, folder)


class PolledSource(ABC):
    """Gives the state of a scheduler as full reports; jobs that have ended stay in them for some seconds more.

    A class for a scheduler has :meth:`state`, :meth:`states_of`, :meth:`release` and :meth:`count`; errors in the
    answers are :class:`~simmodel.foundation.errors.InputError`. A state that lacks jobs that ran or waited, or in
    which jobs went back, is believed if :meth:`states_of` says the same of such jobs.

    Parameters
    ----------
    cluster
        the name of the cluster
    settings
        those of a source of this kind
    commands
        the commands of the scheduler; ``jobs`` and ``nodes`` are among those that read
    wake
        a source whose events wake this one; they are passed on, but for those that are only ``noticed``
    clock
        returns the time (s since 1970), as the clock of the scheduler does

    Attributes
    ----------
    refused
        malformed answers and commands that failed, counted by sentence

    While the scheduler does not answer, nothing is reported; the first answer afterwards is a full report as any other.
    """

    def __init__(
        self,
        cluster: str,
        settings: PolledSettings,
        commands: Commands,
        *,
        wake: Source | None = None,
        clock: Callable[[], float] = time,
    ) -> None:
        if not settings.interval > 0:
            raise InputError(f"must be a number > 0 (s), got {settings.interval!r}", place="interval")
        self.cluster = cluster
        self.settings = settings
        self.commands = commands
        self.wake = wake
        self.refused = Refused()
        self._clock = clock
        self._told: set[tuple[int | str, float]] = set()
        self._last: dict[int | str, tuple[float, int]] = {}  # of the jobs last told: submission, rank
        self._due = self._earliest = self._answered = monotonic()
        self._answer_every = settings.interval
        self._trouble: str | None = None
        self._awake = False  # whether something has woken it since the last report

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.cluster}>"

    @abstractmethod
    def state(self) -> State:
        """Return the state of the scheduler; raises ``ProgramError``, or ``InputError`` for a wrong answer."""

    def known(self) -> Iterable[int | str]:
        """Return the jobs that another command of the scheduler lists: the state must have them."""
        return ()

    @abstractmethod
    def states_of(self, job: int | str) -> Iterable[JobState]:
        """Return the states in which a job may be, asked for alone; none: it is unknown. Raises as :meth:`state`."""

    @abstractmethod
    def release(self) -> str:
        """Return a sentence on the release of the scheduler that answers; raises ``SimmodelError``."""

    @abstractmethod
    def count(self, name: str) -> int:
        """Return how many ``jobs`` or ``nodes`` there are; raises ``SimmodelError``."""

    def advice(self) -> Iterable[str]:
        """Return sentences on data that the twin may not see, and on settings of the source that do not fit."""
        return ()

    def check_scheduler(self) -> Iterator[str]:
        """Yield sentences on the scheduler's answers and on data the twin may not see; raises ``SimmodelError``."""
        reads = self.commands.reads
        yield self.release()
        yield from checked_answers({name: reads[name][0] for name in ("jobs", "nodes")}, self.count)
        yield from self.advice()
        yield f"it runs {', '.join(sorted({words[0] for words in reads.values()}))}, with arguments that only read"

    def report(self) -> StateReport | None:
        """Return the full state; ``None`` if the scheduler does not answer, which is counted."""
        began, before = monotonic(), self.refused.total()
        try:
            found = self._report()
        except (ProgramError, InputError) as error:
            self.refused.count(error)
            self._trouble, found = str(error), None
        else:
            self._trouble = self.refused.last if self.refused.total() > before else None
        ended = monotonic()
        if found is None:
            self._earliest = self._due = ended + min(max(ended - began, 1.0), _LONGEST_PAUSE)
        else:
            self._earliest, self._due = ended + _IDLE * (ended - began), ended + self.settings.interval
            self._answered, self._answer_every = ended, max(self._earliest, self._due) - began
        return found

    def _report(self) -> StateReport:
        time = self._clock()
        known = dict.fromkeys(self.known(), (0.0, 0))
        jobs, down, draining = self.state()
        self._confirm(jobs, known | self._last)
        fresh = tuple(job for job in jobs if (job.job, job.submit) not in self._told or job.state in ALIVE)
        self._told = {(job.job, job.submit) for job in jobs if job.ended is not None and job.ended < time - _LONG_OVER}
        return StateReport(
            cluster=self.cluster, time=max([time, *_instants(fresh)]), jobs=fresh, down=down, draining=draining
        )

    def _confirm(self, jobs: Iterable[JobReport], before: Mapping[int | str, tuple[float, int]]) -> None:
        """Refuse a state that contradicts earlier reports, unless answers on single such jobs confirm it."""
        now: dict[int | str, tuple[float, int]] = {}
        for each in jobs:
            now[each.job] = max(now.get(each.job, (0.0, 0)), (each.submit, _RANK.get(each.state, _OVER)))
        doubtful = [job for job, was in before.items() if (now[job] < was if job in now else was[1] < _OVER)]
        for job in doubtful[:: -(-len(doubtful) // _ASKED) or 1]:
            told = {_RANK.get(state, _OVER) for state in self.states_of(job)} or {_OVER}
            if (now[job][1] if job in now else _OVER) not in told:
                raise ProgramError("the answer contradicts that for single jobs: it is old, or not whole")
        self._last = now

    def events(self, timeout: float) -> Iterable[Event]:
        """Return the events of the wakening source, or a full report once one is due."""
        until = monotonic() + timeout
        while True:
            now = monotonic()
            if now >= self._due and now >= self._earliest:
                woken, self._awake = self._awake, False
                report = self.report()
                if woken:
                    self._due = min(self._due, now + _AFTER)
                return [] if report is None else [report]
            left = min(max(self._due, self._earliest), until) - now
            if left <= 0:
                return []
            told = self._woken(left)
            if told:
                return told

    def _woken(self, timeout: float) -> list[Event]:
        """Wait for the wakening source; its events make a report due."""
        if self.wake is None:
            sleep(timeout)
            return []
        told = list(self.wake.events(timeout))
        if told:
            self._due, self._awake = min(self._due, monotonic() + _SETTLE), True
        elif self.wake.over:
            self.wake = None
        return [event for event in told if not isinstance(event, Noticed)]

    def position(self) -> str | None:
        """Return the position of the wakening source; reports need none."""
        return None if self.wake is None else self.wake.position()

    def resume(self, position: str | None) -> None:
        """Let the wakening source continue; jobs that have ended are reported anew."""
        self._told.clear()
        self._due = self._earliest = monotonic()
        if self.wake is not None:
            self.wake.resume(position)

    def check(self) -> list[str]:
        """Return sentences on the scheduler's answers, data that the twin may not see, and the wakening source.

        Raises
        ------
        InputError
            the output of a command is not understood
        ProgramError
            a command is missing, fails, or does not answer
        """
        woken = self.wake.check() if isinstance(self.wake, RemoteSource) else ()
        return [*self.check_scheduler(), *(f"wakened by {each}" for each in woken)]

    @property
    def trouble(self) -> str | None:
        """Why the scheduler, or the wakening source, cannot be read now; without the latter, reports still come."""
        return self._trouble or (self.wake.trouble if isinstance(self.wake, RemoteSource) else None)

    @property
    def gaps(self) -> int:
        """How often the wakening source has missed events; a report follows in any case."""
        return self.wake.gaps if isinstance(self.wake, RemoteSource) else 0

    def last_answer(self) -> tuple[float, float]:
        """Return when the scheduler last reported (s, monotonic), and within how many seconds it must again."""
        return self._answered, self._answer_every

    @property
    def over(self) -> bool:
        """Always false: a scheduler goes on."""
        return False

    def close(self) -> None:
        """Close the wakening source."""
        if self.wake is not None:
            self.wake.close()


def _instants(jobs: Iterable[JobReport]) -> Iterable[float]:
    for job in jobs:
        yield job.submit
        for instant in (job.started, job.ended):
            if instant is not None:
                yield instant


def checked_answers(asked: Mapping[str, str], count: Callable[[str], int]) -> Iterator[str]:
    """Yield the numbers of ``jobs`` and ``nodes`` and the time of the answer (ms); ``asked``: who is asked for each."""
    for name, by in asked.items():
        began = perf_counter()
        told = counted(count(name), name.removesuffix("s"))
        yield f"{by}: {told} in {1000 * (perf_counter() - began):.0f} ms"
