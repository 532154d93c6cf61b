"""Predictors of the run times that a scheduler may expect, learned from the jobs that have ended."""

from __future__ import annotations

import inspect
import re
from abc import abstractmethod
from collections.abc import Callable
from itertools import accumulate
from typing import Any, Protocol, Self, TypeAlias

from simmodel.foundation.entries import call_with, split_call
from simmodel.foundation.errors import InputError, unknown
from simmodel.platform.models import PREDICTORS
from simmodel.scheduling.protocol import parameters_of

__all__ = ["INCREMENTS", "AskingJob", "Predictor", "PredictorLike", "predictor", "register_predictor"]

INCREMENTS = (60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000)
"""Seconds added one after the other to a prediction that a job outlives: 1 minute to 100 hours."""

_HALVINGS = 20  # of the search for the share of jobs that are shorter than the elapsed time


class AskingJob(Protocol):
    """The fields of a job that a predictor may read: a live job, or a :class:`~simmodel.work.job.Job`.

    Attributes
    ----------
    user, group
        its submitter
    processors
        processors requested
    asked
        requested time in s, at which it is stopped; infinite if it has none
    """

    @property
    @abstractmethod
    def user(self) -> int | str | None:
        """Its user."""

    @property
    @abstractmethod
    def group(self) -> int | str | None:
        """Its group."""

    @property
    @abstractmethod
    def processors(self) -> int:
        """The processors that it requests."""

    @property
    @abstractmethod
    def asked(self) -> float:
        """Its requested time in seconds."""


class Predictor:
    """Predicts the run times of jobs from those of the jobs that have ended; subclasses implement ``predict``.

    A parameter of ``__init__`` must be kept as an attribute of the same name. A question never changes anything: a
    predictor learns by :meth:`learn` alone. A simulation with predictions (``estimates="predicted"``, or a predictor)
    asks when a job is submitted, never plans a job for longer than it requests, and reports the run time at its end. A
    job without a request is planned with its run time where the prediction is infinite: nothing else is known.

    Attributes
    ----------
    name
        its name in errors; default: the name of the class

    >>> class Half(Predictor):
    ...     def predict(self, job):
    ...         return job.asked / 2
    >>> from simmodel import Job, simulate
    >>> jobs = [Job(processors=3, run=10, requested=20), Job(processors=2, run=5), Job(run=8, requested=20)]
    >>> simulate(4, jobs, "easy", estimates=Half()).jobs["start"].tolist()
    [0.0, 10.0, 0.0]
    """

    name: str = ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" not in vars(cls):
            cls.name = cls.__name__

    def __repr__(self) -> str:
        return f"<predictor {self.name}>"

    @property
    def known_as(self) -> str | None:
        """The name that makes an equal predictor, with parameters; ``None`` if there is none.

        >>> predictor("own-past(0.8)").known_as
        'own-past(q=0.8)'
        """
        name = PREDICTORS.name_of(type(self))
        usual = inspect.signature(type(self)).parameters
        given = {key: value for key, value in parameters_of(self).items() if value != usual[key].default}
        if name is None or not all(type(value) in (int, float, str) for value in given.values()):
            return None
        return f"{name}({', '.join(f'{key}={value}' for key, value in given.items())})" if given else name

    def predict(self, job: AskingJob) -> float:
        """Return the seconds that a job is expected to run."""
        raise NotImplementedError

    def quantile(self, job: AskingJob, q: float) -> float:
        """Return the seconds within which a job ends with probability ``q``; default: those of :meth:`predict`."""
        return self.predict(job)

    def learn(self, job: AskingJob, seconds: float) -> None:
        """Learn from a job that has ended how long it ran."""

    def correct(self, job: AskingJob, predicted: float, elapsed: float) -> float:
        """Return a new prediction (s) for a job that has run for longer than predicted.

        Default: the first of the predefined :data:`INCREMENTS` that is not used up is added, as by Tsafrir, Etsion and
        Feitelson (see :mod:`simmodel.predictors.similar`).
        """
        for more in accumulate(INCREMENTS):
            if predicted + more > elapsed:
                return predicted + more
        return elapsed + INCREMENTS[-1]

    def draw(self, job: AskingJob, share: float, elapsed: float = 0.0) -> float:
        """Return a run time (s), given that the job has run for ``elapsed`` seconds: at most the request.

        A share of such jobs runs for less. A random share from 0 to 1 draws a random run time.
        """
        asked = job.asked
        low = 0.0
        if elapsed > 0 and self.quantile(job, 0.0) <= elapsed:
            if self.quantile(job, 1.0) <= elapsed:
                return min(asked, self.correct(job, elapsed, elapsed))
            high = 1.0
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                low, high = (middle, high) if self.quantile(job, middle) <= elapsed else (low, middle)
            low = high
        return min(asked, self.quantile(job, low + (1 - low) * share))

    def state(self) -> Any:
        """Return the learned state as JSON values, for a snapshot; ``None``: nothing."""
        return None

    def restore(self, values: Any) -> None:
        """Restore the values of :meth:`state` in a predictor with the same parameters."""

    def fresh(self) -> Self:
        """Return a predictor with the same parameters that has learned nothing.

        Raises
        ------
        TypeError
            a parameter is not kept as an attribute of its name
        """
        return type(self)(**parameters_of(self))


PredictorLike: TypeAlias = "str | Predictor"
"""A predictor as users pass it: a name, also with parameters, such as ``own-past(0.8)``, or an object."""


def predictor(given: PredictorLike) -> Predictor:
    """Return the predictor of a name, or a fresh one with the parameters of the given one.

    Raises
    ------
    InputError
        an unknown name, invalid parameters, or an object of another type

    >>> predictor("own-past(0.8)").q
    0.8
    """
    if isinstance(given, Predictor):
        return given.fresh()
    if not isinstance(given, str):
        raise InputError(f"must be the name of a predictor or a Predictor, got {given!r}", place="predictor")
    name, values, options = split_call(given, f"predictor {given!r}")
    if name not in PREDICTORS:
        raise unknown("predictor", name, PREDICTORS)
    made = call_with(PREDICTORS[name], values, options, f"predictor {given!r}")
    if not isinstance(made, Predictor):
        raise InputError(f"must make a Predictor, got {made!r}", place=f"predictor {given!r}")
    return made


def register_predictor(name: str, make: Callable[..., Predictor]) -> None:
    """Register a predictor under a name; parameters in parentheses after it are passed to ``make``, such as its class.

    Packages offer predictors as entry points of the group ``simmodel.predictors``.

    Raises
    ------
    InputError
        the name has other characters than letters, digits, ``_``, ``.`` and ``-``
    """
    if not re.fullmatch(r"[\w.-]+", name):
        raise InputError(f"must consist of letters, digits, '_', '.' and '-', got {name!r}", place="name")
    PREDICTORS[name] = make
