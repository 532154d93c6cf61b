"""``simmodel optimise``: search platforms and policies that no others beat in all objectives."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from simmodel.commands.studies import Experiment, Findings, experiment

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from simmodel.experiments.configuration import Configuration
    from simmodel.experiments.parameters import Space

__all__ = ["EXAMPLES", "EXPERIMENT", "add", "run"]

EXAMPLES = ("simmodel optimise size-cluster --plot",)

add = experiment("the front, one line per point", "all runs and the front", "front.png")


def run(options: argparse.Namespace) -> None:
    """Search for the values of a model's parameters that no others beat in all objectives: the Pareto front.

    The file names the objectives, the choices of the parameters, and the method: "nsga-ii", "random" or "all".
    """
    EXPERIMENT.run(options)


def _perform(configuration: Configuration, executor: Executor | None, progress: bool) -> Findings:
    from simmodel.experiments import optimise

    found = optimise(
        configuration.model,
        configuration.space,
        configuration.outputs("objectives"),
        study=configuration.kept,
        executor=executor,
        progress=progress,
        **configuration.method,
    )
    said = [repr(found).strip("<>"), "", found.summary()]
    if len(found.failed):
        said += ["", f"{len(found.failed):,} runs failed, the first one by: {found.failed['error'][0]}"]
    return Findings(said, found.front, found.runs, partial(found.plot, colour=_colour(found.space)))


def _colour(space: Space) -> str | None:
    """Return the first parameter with a few choices, which gives the points of the front their colours."""
    return next((each.name for each in space.parameters if 2 <= len(each.choices) <= 6), None)


EXPERIMENT = Experiment("optimise", ("name", "budget", "population", "maximise", "seed"), ("objectives",), _perform)
