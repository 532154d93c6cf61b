"""Models that are run with other values of their parameters: scenarios and functions, and the numbers that come out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from simmodel.experiments.parameters import Model, Space
from simmodel.experiments.replication import numbers_of
from simmodel.foundation.errors import InputError, shown, unknown
from simmodel.runs.scenario import Scenario

__all__ = ["GivenOutputs", "Outputs", "Varied", "check_whole", "outcome"]

Output: TypeAlias = "str | Callable[..., float]"
GivenOutputs: TypeAlias = "Output | Sequence[Output] | Mapping[str, Output] | None"
"""A metric or a function of a run's result (and of the values of the parameters), several, or by name."""


@attrs.frozen
class Outputs:
    """The outputs taken from a run.

    Parameters
    ----------
    of
        metrics, or functions of the result of the run, by name; empty: all numbers of a function
    """

    of: Mapping[str, Output]

    @classmethod
    def read(cls, given: GivenOutputs, place: str = "outputs") -> Outputs:
        """Return outputs from any form in which users give them.

        Raises
        ------
        InputError
            if one is neither a name nor a function, or a name is duplicate

        >>> list(Outputs.read(["wait_mean", max]).of)
        ['wait_mean', 'max']
        """
        if given is None:
            return cls({})
        if isinstance(given, Mapping):
            found = dict(given)
        else:
            several: list[Any] = list(given) if isinstance(given, list | tuple) else [given]
            names = [each if isinstance(each, str) else getattr(each, "__name__", shown(each)) for each in several]
            for name in names:
                if names.count(name) > 1:
                    raise InputError(f"duplicate name {name!r}", place=place)
            found = dict(zip(names, several, strict=True))
        for each in found.values():
            if not isinstance(each, str) and not callable(each):
                raise InputError(f"must be names of metrics or functions of a result, got {shown(each)}", place=place)
        if not found:
            raise InputError("must be at least one, got none", place=place)
        return cls(found)

    def numbers(self, found: Any, values: Mapping[str, Any]) -> dict[str, float]:
        """Return the outputs of a run from its result, and from the values of the parameters.

        Raises
        ------
        InputError
            if it has no such metric

        >>> Outputs.read({"cost": lambda result, values: 3 * values["nodes"]}).numbers(None, {"nodes": 2})
        {'cost': 6.0}
        """
        measured = numbers_of(found) if not self.of or any(isinstance(each, str) for each in self.of.values()) else {}
        if not self.of:
            return measured
        for each in self.of.values():
            if isinstance(each, str) and each not in measured:
                raise InputError(unknown("metric", each, measured).message, place="outputs")
        return {
            name: float(measured[each] if isinstance(each, str) else _called(each, found, values))
            for name, each in self.of.items()
        }


def _called(function: Callable[..., float], found: Any, values: Mapping[str, Any]) -> float:
    """Call a function of a result, or of a result and the values of the parameters."""
    try:
        kinds = [each.kind for each in inspect.signature(function).parameters.values() if each.default is each.empty]
    except (TypeError, ValueError):  # a function of C
        kinds = []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return function(found, values) if sum(kind in positional for kind in kinds) > 1 else function(found)


@attrs.frozen
class Varied:
    """A model, the parameters that are varied, and the outputs that are taken: the same for all its runs."""

    model: Model
    space: Space
    outputs: Outputs

    def run(self, values: Mapping[str, Any]) -> Any:
        changes = self.space.changes(values)
        return self.model.evolve(changes).run() if isinstance(self.model, Scenario) else self.model(**changes)


def check_whole(place: str, value: object, least: int) -> None:
    """Refuse an argument that is not a whole number from a least one on.

    >>> check_whole("seed", -1, 0)
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: seed: must be a whole number >= 0, got -1
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"must be a whole number >= {least}, got {shown(value)}", place=place)


def outcome(varied: Varied, values: Mapping[str, Any]) -> dict[str, float]:
    """Run a model with these values of its parameters, and return its outputs.

    >>> space = Space.of({"x": (0, 2), "y": (0, 1)})
    >>> outcome(Varied(lambda x, y: x + y, space, Outputs({})), {"x": 1, "y": 0.5})
    {'value': 1.5}
    """
    return varied.outputs.numbers(varied.run(values), values)
