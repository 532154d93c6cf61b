"""``simmodel calibrate``: fit the parameters of a model to a record."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from simmodel.commands.shared import add_workers
from simmodel.commands.studies import Findings, add_config, add_results, carry_out, configured

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from simmodel.experiments.configuration import Configuration, Shape

__all__ = ["EXAMPLES", "add", "perform", "run", "shape"]

EXAMPLES = ("simmodel calibrate size-from-starts --table values.csv",)

_METHOD = ("name", "budget", "population", "seed", "holdout", "separable", "stop_early", "intervals", "level", "start")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_config(parser)
    add_workers(parser)
    text = "the errors of each site and class before and after"
    add_results(parser, "the values before and after, with their intervals", text, "calibration.png")


def run(options: argparse.Namespace) -> None:
    """Search for the values of a model's parameters with which it repeats a record best, and say what it cannot tell.

    The file has the model, the ranges of the parameters ("each" at the end of a range gives each site its own), the
    record (a log with recorded starts, or columns; default: the workload), the loss (a name, or weights by name) and
    the method: "random", "grid", "sobol", "cmaes", "tpe" or "gp", with its budget.
    """
    carry_out(configured(options, shape()), options, perform)


def shape() -> Shape:
    """Return the keys of the file."""
    from simmodel.experiments.configuration import Shape

    return Shape("calibrate", _METHOD, ("record", "loss"))


def perform(configuration: Configuration, executor: Executor | None, progress: bool) -> Findings:
    """Run the experiment."""
    from simmodel.experiments.calibration import calibrate

    loss: Any = configuration.document["loss"].data if "loss" in configuration.document else "walltime"
    found = calibrate(
        configuration.model,
        _record(configuration),
        configuration.space,
        loss,
        study=configuration.kept,
        executor=executor,
        progress=progress,
        **configuration.method,
    )
    draw = found.plot_convergence if found.loss_before != found.loss_before else found.plot_errors
    return Findings([repr(found).strip("<>"), "", found.report()], found.parameters, found.runs, draw)


def _record(configuration: Configuration) -> Any:
    """Return the record: the columns in the document, or the path of a file beside it; ``None``: the workload."""
    given = configuration.document.get("record")
    if given is None or not isinstance(given.data, str):
        return None if given is None else given.table()
    path = configuration.folder / given.text()
    return path if path.exists() else given.text()
