"""Runs of which only the metrics came back: what experiments on other processes return unless results are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from simmodel.display import Cells, Shown, texts
from simmodel.errors import SimmodelError
from simmodel.results.stored import Stored

__all__ = ["MeasuredRun", "brought_home", "repeatable"]

_ABOUT = ("processors", "started", "ended", "report", "decisions")


class MeasuredRun(Shown):
    """A run whose metrics came back from another process, and not its result.

    It has the metrics with their texts, ``report``, ``decisions``, ``started``, ``ended`` and ``processors``. Anything
    else is read from :attr:`result`, for which the run is simulated again, in this process and once.

    Parameters
    ----------
    result
        the result of the run
    more
        other values measured on it, by name

    Attributes
    ----------
    name, more
        the name of the run; the other values
    METRICS, COUNTS
        as of the result

    >>> from simmodel import Job, simulate
    >>> run = MeasuredRun(simulate(4, [Job(processors=3, run=10), Job(processors=2, run=5)]))
    >>> run.metrics()["wait_mean"], run.metric_text("wait_mean", 90.0)
    (5.0, '1 min 30 s')
    """

    def __init__(self, result: Stored, more: Mapping[str, Any] | None = None) -> None:
        self.name = result.name
        self.METRICS, self.COUNTS = result.METRICS, result.COUNTS
        self.more = dict(more or {})
        self._metrics = result.metrics()
        self._text = result.metric_texts()
        self._about = {name: getattr(result, name) for name in _ABOUT if hasattr(result, name)}
        self._seed = result.scenario.get("seed")
        self._again: Callable[[int | None], Stored] | None = None

    def repeated_by(self, again: Callable[[int | None], Stored]) -> None:
        """Set the function that simulates the run again, given its seed, and returns its result."""
        self._again = again

    def metrics(self, **cuts: Any) -> dict[str, Any]:
        """Return the metrics of the run by name; with cuts (as of the result's method), those of :attr:`result`."""
        return self.result.metrics(**cuts) if cuts else dict(self._metrics)

    def numbers(self) -> dict[str, float]:
        """Return the metrics that are numbers; nan if undefined."""
        return {name: float(self._metrics[name]) for name in self.METRICS}

    def metric_text(self, name: str, value: float) -> str:
        """Return one of the ``METRICS`` with its unit as text."""
        return self._text(name, value)

    @cached_property
    def result(self) -> Any:
        """The whole result of the run, which is simulated again.

        Raises
        ------
        SimmodelError
            if the run cannot be repeated: its policy or its workload differ from call to call
        """
        if self._again is None:
            raise SimmodelError(f"the run {self.name!r} kept its metrics only: ask for results=True")
        found = self._again(self._seed)
        if _simulated(found.metrics()) != _simulated(self._metrics):
            message = "has other metrics when it is simulated again: ask for results=True"
            raise SimmodelError(f"the run {self.name!r} {message}")
        return found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        about = self._about
        return about[name] if name in about else getattr(self.result, name)

    def _cells(self) -> Cells:
        return [["", self.name], *([name, *texts([value])] for name, value in self._metrics.items())]

    def __repr__(self) -> str:
        return f"<MeasuredRun {self.name}: {len(self.METRICS)} metrics>"


def _simulated(metrics: Mapping[str, Any]) -> str:
    """Return metrics as text, nan included, without the times that decisions took."""
    return repr({name: value for name, value in metrics.items() if not name.startswith("decision_")})


def brought_home(result: Any, whole: bool, measure: Callable[[Any], Mapping[str, Any]] | None = None) -> Any:
    """Return what comes back of a run: its result, or its metrics and what ``measure`` returns of the result."""
    if whole or not isinstance(result, Stored):
        return result
    return MeasuredRun(result, None if measure is None else measure(result))


def repeatable(options: Mapping[str, Any], seed: int | None) -> dict[str, Any]:
    """Return the options of a run for simulating it again, with its seed and nobody watching."""
    own = {name: value for name, value in options.items() if name not in ("observers", "progress")}
    return own if seed is None else {**own, "seed": seed}
