"""``simmodel sensitivity``: which parameters of a model move its outputs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from simmodel.commands.shared import add_workers
from simmodel.commands.studies import Findings, add_config, add_results, carry_out, configured

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from simmodel.experiments.configuration import Configuration, Shape

__all__ = ["EXAMPLES", "add", "perform", "run", "shape"]

EXAMPLES = ("simmodel sensitivity screen-machine --plot",)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_config(parser)
    add_workers(parser)
    add_results(parser, "the indices, one line per output and parameter", "the indices as bars", "sensitivity.png")


def run(options: argparse.Namespace) -> None:
    """Run a model with other values of its parameters, and print how much each moves the outputs.

    The file names the outputs, the ranges of the parameters, and the method: "morris" (elementary effects) or "sobol"
    (shares of the variance).
    """
    carry_out(configured(options, shape()), options, perform)


def shape() -> Shape:
    """Return the keys of the file."""
    from simmodel.experiments.configuration import Shape

    return Shape("sensitivity", ("name", "samples", "groups", "pairs", "seed", "level"), ("outputs",))


def perform(configuration: Configuration, executor: Executor | None, progress: bool) -> Findings:
    """Run the experiment."""
    from simmodel.experiments import sensitivity

    found = sensitivity(
        configuration.model,
        configuration.space,
        configuration.outputs("outputs") if "outputs" in configuration.document else None,
        study=configuration.kept,
        executor=executor,
        progress=progress,
        **configuration.method,
    )
    said = [repr(found).strip("<>")]
    for output in found.outputs:
        said += ["", *([] if len(found.outputs) == 1 else [output]), found.summary(output)]
    return Findings(said, found.table, found.runs, found.plot)
