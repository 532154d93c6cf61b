"""``simmodel sensitivity``: which parameters of a model move its outputs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from simmodel.commands.studies import Experiment, Findings, experiment

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from simmodel.experiments.configuration import Configuration

__all__ = ["EXAMPLES", "EXPERIMENT", "add", "run"]

EXAMPLES = ("simmodel sensitivity screen-machine --plot",)

add = experiment("the indices, one line per output and parameter", "the indices as bars", "sensitivity.png")


def run(options: argparse.Namespace) -> None:
    """Run a model with other values of its parameters, and print how much each moves the outputs.

    The file names the outputs, the ranges of the parameters, and the method: "morris" (elementary effects) or "sobol"
    (shares of the variance).
    """
    EXPERIMENT.run(options)


def _perform(configuration: Configuration, executor: Executor | None, progress: bool) -> Findings:
    from simmodel.experiments import sensitivity

    outputs = configuration.outputs("outputs") if "outputs" in configuration.document else None
    found = sensitivity(
        configuration.model,
        configuration.space,
        outputs,
        study=configuration.kept,
        executor=executor,
        progress=progress,
        **configuration.method,
    )
    said = [repr(found).strip("<>")]
    for output in found.outputs:
        said += ["", *([] if len(found.outputs) == 1 else [output]), found.summary(output)]
    return Findings(said, found.table, found.runs, found.plot)


EXPERIMENT = Experiment("sensitivity", ("name", "samples", "groups", "pairs", "seed", "level"), ("outputs",), _perform)
