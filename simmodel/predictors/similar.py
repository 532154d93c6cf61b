"""Predictions from the request, from the user's last two jobs, and from the most specific class of similar jobs.

The idea of classes of similar jobs is that of Gibbons, "A historical application profiler for use by parallel
schedulers", JSSPP 1997. Bounds are kept honest as by Gibbs and Candes, "Adaptive conformal inference under distribution
shift", NeurIPS 2021: a level whose bounds were exceeded too often is raised.

The last two jobs of the user: Tsafrir, Etsion, Feitelson, "Backfilling using system-generated predictions rather than
user runtime estimates", IEEE TPDS 18(6), 2007.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from math import ceil, inf
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from simmodel.foundation.errors import InputError
from simmodel.scheduling.prediction import Predictor

if TYPE_CHECKING:
    from simmodel.scheduling.prediction import AskingJob

__all__ = ["CLASSES", "LEVELS", "OwnPast", "RecentTwo", "Request", "SimilarJobs"]


class Request(Predictor):
    """Every job is expected to run for its requested time.

    >>> from simmodel import Job
    >>> Request().predict(Job(run=10, requested=60))
    60
    """

    name = "request"

    def predict(self, job: AskingJob) -> float:
        """Return the requested time (s), infinite if the job has none."""
        return job.asked


class RecentTwo(Predictor):
    """A job is expected to run as long as the last two ended jobs of its user on average, and at most as requested.

    Before two jobs of the user have ended, the request is the prediction.

    >>> from simmodel import Job
    >>> last = RecentTwo()
    >>> for seconds in (90, 10, 20):
    ...     last.learn(Job(run=seconds, user="ann"), seconds)
    >>> last.predict(Job(run=1, requested=60, user="ann")), last.predict(Job(run=1, requested=60, user="bob"))
    (15.0, 60)
    """

    name = "recent-two"

    def __init__(self) -> None:
        self._last: dict[int | str | None, tuple[float, ...]] = {}

    def predict(self, job: AskingJob) -> float:
        """Return the mean of the last two run times (s)."""
        last = self._last.get(job.user, ())
        return min(job.asked, (last[0] + last[1]) / 2) if len(last) == 2 else job.asked

    def learn(self, job: AskingJob, seconds: float) -> None:
        """Remember the run time."""
        self._last[job.user] = (*self._last.get(job.user, ())[-1:], seconds)

    def state(self) -> Any:
        return [[user, *last] for user, last in self._last.items()]

    def restore(self, values: Any) -> None:
        self._last = {user: tuple(map(float, last)) for user, *last in values}


CLASSES = (("user", "processors", "asked"), ("user", "asked"), ("user",), ("asked",))
"""The fields in which the jobs of a class agree, from the most specific classes to the most general ones."""

LEVELS = (0.025, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 0.975)
"""The probabilities whose bounds are compared with the observed run times."""

_STEP = 0.01  # of a level, for each job beyond its bound
_ALL = (0.0, *LEVELS, 1.0)


class SimilarJobs(Predictor):
    """A job is expected to run as long as the median of similar jobs that ended lately: the default predictor.

    Similar jobs are those of the first of several classes in which enough jobs have ended. Without any, the request is
    the prediction, which is also its upper limit.

    Parameters
    ----------
    memory
        the number of latest run times that a class remembers
    enough
        the number of run times from which on a class predicts
    classes
        the fields in which the jobs of a class agree, class by class: ``user``, ``group``, ``processors``, ``asked``

    Raises
    ------
    InputError
        a number is not whole and positive, or a class has nothing in common that a predictor may know

    >>> from simmodel import Job
    >>> past = SimilarJobs()
    >>> for seconds in (90, 10, 30, 20):
    ...     past.learn(Job(run=seconds, requested=600, user="ann"), seconds)
    >>> past.predict(Job(run=1, requested=600, user="ann")), past.predict(Job(run=1, requested=60, user="ann"))
    (25.0, 25.0)
    >>> past.quantile(Job(run=1, requested=600, user="ann"), 0.8)
    90.0
    """

    name = "predicted"

    def __init__(self, memory: int = 20, enough: int = 2, classes: Iterable[Sequence[str]] = CLASSES) -> None:
        for name, value in (("memory", memory), ("enough", enough)):
            if not isinstance(value, int) or value < 1:
                raise InputError(f"must be a whole number >= 1, got {value!r}", place=name)
        self.memory = memory
        self.enough = enough
        self.classes = tuple(tuple(each) for each in classes)
        known = ("user", "group", "processors", "asked")
        for each in self.classes:
            if not each or not set(each) <= set(known):
                raise InputError(f"must be of {', '.join(known)}, got {each!r}", place="classes")
        self._keys = [attrgetter(*each) for each in self.classes]
        self._runs: list[dict[Any, tuple[float, ...]]] = [{} for _ in self.classes]
        self._levels = list(LEVELS)  # the shares of run times that are taken as bounds for LEVELS

    def predict(self, job: AskingJob) -> float:
        """Return the median of the run times of similar jobs (s)."""
        for key, runs in zip(self._keys, self._runs, strict=True):
            found = runs.get(key(job), ())
            if len(found) >= self.enough:
                found = sorted(found)  # type: ignore[assignment]
                half = len(found) // 2
                return min(job.asked, found[half] if len(found) % 2 else (found[half - 1] + found[half]) / 2)
        return job.asked

    def quantile(self, job: AskingJob, q: float) -> float:
        """Return the seconds within which a job ends with probability ``q``.

        Raises
        ------
        InputError
            ``q`` is not a number from 0 to 1
        """
        if not 0 <= q <= 1:
            raise InputError(f"must be a number from 0 to 1, got {q!r}", place="q")
        return self._bound(self._similar(job), self._level(q), job.asked)

    def learn(self, job: AskingJob, seconds: float) -> None:
        """Compare a run time with its bounds, and remember it in the classes of the job."""
        similar, levels = self._similar(job), self._levels
        for i, q in enumerate(LEVELS):
            beyond = seconds > self._bound(similar, levels[i], job.asked)
            levels[i] = min(1.0, max(0.0, levels[i] + _STEP * (q - (not beyond))))
        for key, runs in zip(self._keys, self._runs, strict=True):
            of = key(job)
            runs[of] = (*runs.get(of, ())[1 - self.memory if self.memory > 1 else self.memory :], float(seconds))

    def _similar(self, job: AskingJob) -> list[list[float]]:
        """Return the sorted run times of each class of a job that has enough, from the most specific one on."""
        found = [runs.get(key(job), ()) for key, runs in zip(self._keys, self._runs, strict=True)]
        return [sorted(runs) for runs in found if len(runs) >= self.enough]

    def _level(self, q: float) -> float:
        """Return the share of run times that is taken as the bound for a probability."""
        shares = [0.0, *self._levels, 1.0]
        for i in range(1, len(shares)):
            shares[i] = max(shares[i - 1], shares[i])
        i = min(bisect_right(_ALL, q), len(_ALL) - 1)
        part = (q - _ALL[i - 1]) / (_ALL[i] - _ALL[i - 1])
        return shares[i - 1] + part * (shares[i] - shares[i - 1])

    def _bound(self, similar: list[list[float]], level: float, asked: float) -> float:
        """Return the bound of a share of the run times: of the first class that has enough for it, else the request."""
        least = 0.0  # a bound of more jobs in general classes is no lower than that of fewer similar ones
        for runs in similar:
            place = (len(runs) + 1) * level
            if place < 1:  # below the shortest one
                return min(asked, runs[0] * place)
            if place <= len(runs):
                return min(asked, max(least, runs[ceil(place) - 1]))
            least = max(least, runs[-1])
        return asked

    def state(self) -> Any:
        """Return the run times of each class, and the levels of the bounds."""
        runs = [
            [[_written(each, key), list(seconds)] for key, seconds in found.items()]
            for each, found in zip(self.classes, self._runs, strict=True)
        ]
        return {"runs": runs, "levels": list(self._levels)}

    def restore(self, values: Any) -> None:
        """Restore the run times of each class, and the levels of the bounds."""
        self._runs = [
            {_read(each, key): tuple(map(float, seconds)) for key, seconds in found}
            for each, found in zip(self.classes, values["runs"], strict=True)
        ]
        self._levels = list(map(float, values["levels"]))


def _written(names: tuple[str, ...], key: Any) -> list[Any]:
    """Return the key of a class as JSON values, in which infinity is a text."""
    return ["inf" if value == inf else value for value in (key if len(names) > 1 else (key,))]


def _read(names: tuple[str, ...], values: list[Any]) -> Any:
    found = [inf if name == "asked" and value == "inf" else value for name, value in zip(names, values, strict=True)]
    return tuple(found) if len(names) > 1 else found[0]


class OwnPast(SimilarJobs):
    """A job is expected to run as long as a share of the latest jobs of its user at most.

    Parameters
    ----------
    q
        the share: 0.5 is the median
    memory
        the number of latest run times of a user that count

    >>> from simmodel import Job
    >>> past = OwnPast(0.8)
    >>> for seconds in range(1, 10):
    ...     past.learn(Job(run=seconds, user="ann"), seconds)
    >>> past.predict(Job(run=1, requested=600, user="ann"))
    9.0
    """

    name = "own-past"

    def __init__(self, q: float = 0.5, memory: int = 20) -> None:
        super().__init__(memory, classes=(("user",),))
        if not isinstance(q, int | float) or not 0 <= q <= 1:
            raise InputError(f"must be a number from 0 to 1, got {q!r}", place="q")
        self.q = q

    def predict(self, job: AskingJob) -> float:
        """Return the share of the run times of the user (s)."""
        return self.quantile(job, self.q)
