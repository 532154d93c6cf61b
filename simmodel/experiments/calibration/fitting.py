"""The constant inputs of all trials of a calibration, and the losses of one trial: in all and by block of parameters.

A block is a set of parameters that act on the same sites. Where no block acts on another's sites, each is searched by
itself, and all searches share their simulations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from simmodel.experiments.calibration.losses import Criterion
from simmodel.experiments.calibration.observations import Observations, Times, simulated_times
from simmodel.experiments.models import Varied
from simmodel.experiments.parameters import Model, Parameter, Space, place_of
from simmodel.foundation.errors import InputError, SimmodelError, shown
from simmodel.runs.scenario import Scenario

__all__ = ["ENDS", "STOP", "STOPPED", "Block", "Fit", "blocks_of", "times_of", "trial_losses"]


@attrs.frozen
class Block:
    """Parameters that are searched together.

    Parameters
    ----------
    name
        that of its site, or of its first sites; empty: it acts on all
    parameters
        their numbers in the space
    sites
        the sites that they act on; empty: all
    """

    name: str
    parameters: tuple[int, ...]
    sites: frozenset[str] = frozenset()

    @property
    def label(self) -> str:
        """The name of its loss in the outcome of a trial."""
        return f"loss of {self.name}"


@attrs.frozen(eq=False)
class Fit:
    """The constant inputs of all trials: model, record and losses.

    Parameters
    ----------
    varied
        the model and its parameters
    criterion, observed
        the losses and the record; ``None`` if the loss is a function
    function
        a function of the model's result and of the record, or ``None``
    record
        the record that is passed to that function
    blocks
        the blocks of parameters, if each has a loss
    """

    varied: Varied
    criterion: Criterion | None
    observed: Observations | None
    function: Callable[[Any, Any], Any] | None
    record: Any
    blocks: tuple[Block, ...]

    @property
    def weights(self) -> list[float]:
        """The weight of each block in the loss of all: that of its sites and classes."""
        if self.criterion is None or self.observed is None:
            return [1.0] * len(self.blocks)
        cells = self.observed.training
        defined = self.criterion.defined(self.observed, cells)
        return [
            sum(
                self.criterion.weights[name]
                for name, known in defined.items()
                for cell, counts in zip(cells, known, strict=True)
                if counts and (not block.sites or cell.site in block.sites)
            )
            for block in self.blocks
        ]

    def losses(self, times: Times, *, testing: bool = False) -> dict[str, float]:
        """Return the loss in all and of each block, for the times of the jobs of the record."""
        assert self.criterion is not None
        assert self.observed is not None
        cells = self.observed.testing if testing else self.observed.training
        errors = self.criterion.errors(times, self.observed, cells)
        defined = self.criterion.defined(self.observed, cells)
        found = {"loss": self.criterion.total(errors, defined)}
        for block in self.blocks if len(self.blocks) > 1 else ():
            here = [i for i, cell in enumerate(cells) if cell.site in block.sites]
            found[block.label] = self.criterion.total(
                {name: [values[i] for i in here] for name, values in errors.items()},
                {name: [values[i] for i in here] for name, values in defined.items()},
            )
        return found


def times_of(fit: Fit, values: Mapping[str, Any]) -> Times:
    """Run the model with these values, and return the times of the jobs of the record."""
    assert fit.observed is not None
    return simulated_times(fit.varied.run(values), fit.observed)


def trial_losses(fit: Fit, values: Mapping[str, Any]) -> dict[str, float]:
    """Run the model with these values, and return the loss in all and of each block.

    Raises
    ------
    SimmodelError
        no loss is a number
    """
    if fit.observed is not None:
        found = _in_parts(fit, values) if STOP in values else fit.losses(times_of(fit, values))
    else:
        result = fit.varied.run(values)
        found = _numbers(result if fit.function is None else fit.function(result, fit.record), fit.blocks)
    if all(value != value for value in found.values()):
        jobs = fit.observed is not None
        raise SimmodelError("loss: is nan, since no site's jobs have all ended" if jobs else "loss: is nan")
    return found


def _in_parts(fit: Fit, values: Mapping[str, Any]) -> dict[str, float]:
    """Return the losses of a simulation that stops when all of them are surely above their bounds.

    The errors of the jobs that have ended bound the losses from below: the others count as if they were right.
    """
    observed, model = fit.observed, fit.varied.model
    assert observed is not None
    assert isinstance(model, Scenario)
    ends = next(observed.jobs[name] for name in ENDS if name in observed.jobs)
    simulation = model.evolve(fit.varied.space.changes(values)).start()
    for instant in np.quantile(ends, _LOOKS).tolist():
        if instant > simulation.env.now and (model.until is None or instant < model.until):
            times = simulated_times(simulation.run(until=instant).result(), observed, partial=True)
            known = {name: np.where(np.isfinite(each), each, observed.jobs[name]) for name, each in times.items()}
            least = fit.losses(known)
            if all(least[name] > bound for name, bound in values[STOP].items()):
                return {**least, STOPPED: 1.0}
    return fit.losses(simulated_times(simulation.run().result(), observed))


STOP, STOPPED = "stop above", "stopped"
"""The key of the bounds among the values of a trial, and that of a trial that was stopped in its outcome."""
ENDS = ("recorded_end", "end")
_LOOKS = (0.25, 0.5, 0.75)  # shares of the jobs of the record that have ended when a simulation is looked at


def _numbers(given: Any, blocks: tuple[Block, ...]) -> dict[str, float]:
    """Return the losses that a function returned: one number, or numbers by block."""
    if not isinstance(given, Mapping):
        try:
            return {"loss": float(given)}
        except (TypeError, ValueError):
            raise InputError(f"must return a number, or numbers by site, got {shown(given)}", place="loss") from None
    numbers = {str(name): float(value) for name, value in given.items()}
    found = {"loss": numbers["loss"] if "loss" in numbers else sum(numbers.values()) / len(numbers)}
    if len(blocks) > 1:
        for block in blocks:
            if block.name not in numbers:
                raise InputError(f"must return a loss of {block.name}, got {shown(sorted(numbers))}", place="loss")
            found[block.label] = numbers[block.name]
    return found


def blocks_of(space: Space, model: Model) -> tuple[Block, ...]:
    """Return the blocks of parameters: those that act on a site in common, also through others, are in one.

    >>> space = Space([Parameter(name=f"{kind} of {site}", group=site) for site in "ab" for kind in ("speed", "cores")])
    >>> [(block.name, block.parameters) for block in blocks_of(space, lambda **values: 0)]
    [('a', (0, 1)), ('b', (2, 3))]
    """
    blocks: list[tuple[set[str], list[int]]] = []
    for number, parameter in enumerate(space.parameters):
        sites = _sites(parameter, model)
        if not sites:
            return (Block("", tuple(range(len(space)))),)
        joined: tuple[set[str], list[int]] = (set(sites), [number])
        for block in [each for each in blocks if each[0] & sites]:
            blocks.remove(block)
            joined = (block[0] | joined[0], [*block[1], *joined[1]])
        blocks.append(joined)
    if len(blocks) == 1:
        return (Block("", tuple(range(len(space))), frozenset(blocks[0][0])),)
    found = []
    for sites, numbers in sorted(blocks, key=lambda block: min(block[1])):
        names = sorted(sites)
        name = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        found.append(Block(name, tuple(sorted(numbers)), frozenset(sites)))
    return tuple(found)


def _sites(parameter: Parameter, model: Model) -> set[str]:
    """Return the sites that a parameter acts on; none: it may act on all."""
    own = set() if parameter.group is None else {parameter.group}
    if not isinstance(model, Scenario):
        return own
    sites = {place_of(path, model) for path in parameter.paths}
    return own if None in sites else {site for site in sites if site is not None}
