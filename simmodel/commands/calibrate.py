"""``simmodel calibrate``: fit the parameters of a model to a record."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from simmodel.commands.studies import Experiment, Findings, experiment

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from simmodel.experiments.configuration import Configuration

__all__ = ["EXAMPLES", "EXPERIMENT", "add", "run"]

EXAMPLES = ("simmodel calibrate size-from-starts --table values.csv",)

add = experiment(
    "the values before and after, with their intervals",
    "the errors of each site and class before and after",
    "calibration.png",
)


def run(options: argparse.Namespace) -> None:
    """Search for the values of a model's parameters with which it repeats a record best, and say what it cannot tell.

    The file has the model, the ranges of the parameters ("each" at the end of a range gives each site its own), the
    record (a log with recorded starts, or columns; default: the workload), the loss (a name, or weights by name) and
    the method: "random", "grid", "sobol", "cmaes", "tpe" or "gp", with its budget.
    """
    EXPERIMENT.run(options)


def _perform(configuration: Configuration, executor: Executor | None, progress: bool) -> Findings:
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


_METHOD = ("name", "budget", "population", "seed", "holdout", "separable", "stop_early", "intervals", "level", "start")
EXPERIMENT = Experiment("calibrate", _METHOD, ("record", "loss"), _perform)
