"""Run times predicted by gradient boosting on features known at the submission of a job.

Sources: Friedman, "Greedy function approximation: a gradient boosting machine", Annals of Statistics 29(5), 2001; for
run times of jobs, with features of this kind: Gaussier, Glesser, Reis, Trystram, "Improving backfilling by using
machine learning to predict running times", SC 2015.
"""

from __future__ import annotations

from math import inf, log1p
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.foundation.errors import InputError, optional_imports
from simmodel.predictors.similar import RecentTwo
from simmodel.scheduling.prediction import Predictor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from simmodel.scheduling.prediction import AskingJob

__all__ = ["Boosted", "BoostedTimes"]


class Boosted(Predictor):
    """A job is expected to run as long as gradient boosting says, which is fitted again and again to the ended jobs.

    Features are the request, the processors and the recent past of the user. Until the first fit, the mean of the
    user's last two run times is the prediction. Needs scikit-learn, of the extra ``calibrate``.

    Parameters
    ----------
    every
        jobs that end between two fits
    memory
        the number of latest ended jobs that it is fitted to

    Raises
    ------
    InputError
        a number is not whole and positive

    >>> Boosted(every=0)
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: every: must be a whole number >= 1, got 0
    """

    name = "boosted"

    def __init__(self, every: int = 500, memory: int = 5000) -> None:
        for name, value in (("every", every), ("memory", memory)):
            if not isinstance(value, int) or value < 1:
                raise InputError(f"must be a whole number >= 1, got {value!r}", place=name)
        self.every = every
        self.memory = memory
        self._recent = RecentTwo()
        self._past: dict[int | str | None, tuple[int, float, float]] = {}  # jobs, last run time, mean share of requests
        self._rows: list[list[float]] = []  # features and run time
        self._fitted = 0  # rows of the last fit
        self._model: BoostedTimes | None = None

    def predict(self, job: AskingJob) -> float:
        """Return the predicted run time (s), at most the request."""
        if not self._fitted:
            return self._recent.predict(job)
        if self._model is None:
            rows = np.array(self._rows[: self._fitted])
            self._model = BoostedTimes(rows[:, :-1], rows[:, -1])
        return min(job.asked, max(1.0, float(self._model.predict([self._features(job)])[0])))

    def learn(self, job: AskingJob, seconds: float) -> None:
        """Remember a run time, and fit the model again if it is time to."""
        self._rows.append([*self._features(job), float(seconds)])
        self._recent.learn(job, seconds)
        count, _, share = self._past.get(job.user, (0, 0.0, -1.0))
        if job.asked < inf:
            used = seconds / job.asked if job.asked > 0 else 1.0
            share = used if share < 0 else 0.8 * share + 0.2 * used
        self._past[job.user] = count + 1, float(seconds), share
        if len(self._rows) - self._fitted >= self.every:
            self._rows = self._rows[-self.memory :]
            self._fitted, self._model = len(self._rows), None

    def _features(self, job: AskingJob) -> list[float]:
        count, last, share = self._past.get(job.user, (0, -1.0, -1.0))
        asked = log1p(job.asked) if job.asked < inf else -1.0
        recent = self._recent.predict(job)
        return [
            asked,
            float(job.processors),
            float(count),
            log1p(last) if last >= 0 else -1.0,
            share,
            log1p(recent) if recent < inf else -1.0,
        ]

    def state(self) -> Any:
        """Return the observations learned so far; the model is fitted again from them."""
        past = [[user, *values] for user, values in self._past.items()]
        return {"recent": self._recent.state(), "past": past, "rows": self._rows, "fitted": self._fitted}

    def restore(self, values: Any) -> None:
        """Restore the observations learned; the model is fitted at the next question."""
        self._recent.restore(values["recent"])
        self._past = {user: (int(count), float(last), float(share)) for user, count, last, share in values["past"]}
        self._rows = [list(map(float, row)) for row in values["rows"]]
        self._fitted, self._model = int(values["fitted"]), None


class BoostedTimes:
    """Gradient boosting for the median of times (s), on their logarithms; nan among the features is allowed.

    It computes in one thread: the same result on every machine, beside other work.

    Parameters
    ----------
    rows
        the features, of shape (jobs, features)
    seconds
        the times, of shape (jobs,)
    seed
        of the model

    Raises
    ------
    MissingExtra
        scikit-learn is not installed

    >>> times = BoostedTimes([[float(i % 2)] for i in range(100)], [10.0, 100.0] * 50)
    >>> times.predict([[0.0], [1.0]]).round().tolist()
    [10.0, 100.0]
    """

    def __init__(self, rows: ArrayLike, seconds: ArrayLike, *, seed: int = 0) -> None:
        with optional_imports():
            from sklearn.ensemble import HistGradientBoostingRegressor
            from threadpoolctl import ThreadpoolController
        model = HistGradientBoostingRegressor(
            loss="absolute_error", max_iter=150, learning_rate=0.08, min_samples_leaf=20, random_state=seed
        )
        self._threads = ThreadpoolController()
        with self._threads.limit(limits=1):
            self._model = model.fit(np.asarray(rows), np.log1p(np.maximum(np.asarray(seconds), 0.0)))

    def predict(self, rows: ArrayLike) -> NDArray[np.float64]:
        """Return the predicted times (s) of rows of features."""
        with self._threads.limit(limits=1):
            found: NDArray[np.float64] = np.expm1(self._model.predict(np.asarray(rows)))
        return np.maximum(found, 0.0)
