"""Predictions of starts beside those of the scheduler, kept so that later ones can be judged by what happened."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf, isfinite
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import attrs

from simmodel.extending import Fields, counted, duration

if TYPE_CHECKING:
    from simmodel.extending import Plain

__all__ = ["Foretold", "PredictionLog", "share_held"]

_AHEAD = (600.0, 3600.0, 86400.0, inf)  # s; predictions are compared with those that looked as far ahead


@attrs.frozen(kw_only=True, repr=False)
class Foretold(Fields):
    """A prediction of a start, and how it turned out.

    Parameters
    ----------
    at
        the instant (s) at which it was made
    job, submit
        the id of the job and its submission (s)
    predicted, low, high
        the predicted start (s), and the instants between which it was expected; infinite: never
    scheduler
        the start (s) that the scheduler foretold; ``None``: none
    started
        the start (s) as it happened; ``None``: not known

    >>> Foretold(at=0, job=7, submit=0, predicted=60, low=50, high=90, started=80).held
    True
    """

    at: float
    job: int | str
    submit: float
    predicted: float = inf
    low: float = inf
    high: float = inf
    scheduler: float | None = None
    started: float | None = None

    @property
    def held(self) -> bool:
        """Whether the job started between the two instants."""
        return self.started is not None and self.low <= self.started <= self.high

    @property
    def ahead(self) -> float:
        """The least of 10 minutes, an hour, a day and all time within which it looked ahead (s)."""
        return next(most for most in _AHEAD if self.predicted - self.at <= most)


class PredictionLog:
    """Predictions in a file of JSON lines that is only appended to: a line a prediction, and one for its job's start.

    Parameters
    ----------
    path
        the file; it need not exist

    Attributes
    ----------
    unreadable
        how many lines of the file were neither

    Raises
    ------
    OSError
        the file cannot be read

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     book = PredictionLog(Path(folder, "alps.jsonl"))
    ...     book.add([Foretold(at=0, job=7, submit=0, predicted=60, low=50, high=90, scheduler=120)])
    ...     book.settle(lambda job, submit: 80.0)
    ...     print(PredictionLog(book.path).verdict())
    of 1 earlier prediction whose job has started since, 100 % held; off by 20 s in the median, the scheduler by 40 s
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unreadable = 0
        self._made: list[Foretold] = []
        self._started: dict[tuple[int | str, float], float] = {}
        for line in path.read_text("utf-8", "replace").splitlines() if path.exists() else ():
            try:
                found = json.loads(line)
                if "started" in found:
                    self._started[found["job"], found["submit"]] = float(found["started"])
                else:
                    self._made.append(Foretold(**found))
            except (ValueError, TypeError, KeyError):
                self.unreadable += 1

    def __repr__(self) -> str:
        return f"<PredictionLog {self.path}: {len(self._made):,} predictions>"

    def settle(self, start_of: Callable[[int | str, float], float | None]) -> None:
        """Note the starts of jobs that have started since.

        Parameters
        ----------
        start_of
            asked for the start (s) of a job, by its id and submission; ``None``: it has none

        Raises
        ------
        OSError
            the file cannot be written
        """
        open_jobs = dict.fromkeys((each.job, each.submit) for each in self._made)
        found = {key: start_of(*key) for key in open_jobs if key not in self._started}
        new = {key: start for key, start in found.items() if start is not None}
        self._append({"job": job, "submit": submit, "started": start} for (job, submit), start in new.items())
        self._started |= new

    def add(self, predictions: Iterable[Foretold]) -> None:
        """Keep predictions that were made now.

        Raises
        ------
        OSError
            the file cannot be written
        """
        new = list(predictions)
        known = [{key: value for key, value in attrs.asdict(each).items() if value not in (None, inf)} for each in new]
        self._append(known)
        self._made += new

    def _append(self, documents: Iterable[Mapping[str, Plain]]) -> None:
        lines = "".join(json.dumps(each) + "\n" for each in documents)
        if lines:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(lines)

    def settled(self) -> list[Foretold]:
        """Return the predictions whose jobs have started after they were made, with the starts."""
        made = ((each, self._started.get((each.job, each.submit))) for each in self._made)
        return [attrs.evolve(each, started=start) for each, start in made if start is not None and start >= each.at]

    def verdict(self) -> str:
        """Return in one sentence how earlier predictions turned out, and those of the scheduler."""
        settled = self.settled()
        if not settled:
            return "no job of an earlier prediction has started yet: nothing says how far to believe these"
        count = counted(len(settled), "earlier prediction")
        head = f"of {count} whose job has started since, {share_held(settled)} held"
        told = [each for each in settled if each.scheduler is not None]
        theirs = f", the scheduler by {_median_error(told, 'scheduler')}" if told else ""
        among = f" (the {len(told):,} for which both told a start)" if 0 < len(told) < len(settled) else ""
        return f"{head}; off by {_median_error(told or settled, 'predicted')} in the median{theirs}{among}"


def share_held(settled: Sequence[Foretold]) -> str:
    """Return which share of predictions held, as text; of none: ""."""
    return f"{round(100 * sum(each.held for each in settled) / len(settled))} %" if settled else ""


def _median_error(settled: Iterable[Foretold], which: str) -> str:
    """Return the median distance between the starts and those foretold, as text."""
    errors = [abs(getattr(each, which) - each.started) for each in settled if each.started is not None]
    found = median(errors)
    return duration(found) if isfinite(found) else "no finite time"
