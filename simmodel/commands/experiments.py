"""``simmodel calibrate``, ``optimise``, ``sensitivity`` and ``resume``: experiments in files, whose runs are kept."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from simmodel.commands.outputs import PROGRESS, answer, document, files, picture, plot, table, write_and_say
from simmodel.commands.shared import FORCE, TRUST, WORKERS, kept_runs, kept_study, process_pool, seed_of
from simmodel.commands.values import Declared, argument, arguments, command, output, source

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from matplotlib.figure import Figure

    from simmodel.experiments.configuration import Configuration, Shape
    from simmodel.experiments.parameters import Space
    from simmodel.work.table import Table

__all__ = ["EXPERIMENTS", "Experiment", "Findings"]


@attrs.frozen
class Findings:
    """The findings of an experiment.

    Parameters
    ----------
    said
        the lines to print
    table
        the table that they show
    runs
        all runs, one row each
    plot
        draws the picture
    """

    said: Sequence[str]
    table: Table
    runs: Table
    plot: Callable[[], Figure]


_Perform = Callable[["Configuration", "Executor | None", bool], Findings]
"""Runs an experiment on an executor, with a progress bar or without one."""


@attrs.frozen
class Experiment:
    """An experiment that files describe.

    Parameters
    ----------
    name
        that of the command
    method
        the keys of the table ``method`` of a file
    own
        keys of its own at the top of a file
    perform
        runs the experiment
    """

    name: str
    method: tuple[str, ...]
    own: tuple[str, ...]
    perform: _Perform

    def shape(self) -> Shape:
        """Return the keys of a file."""
        from simmodel.experiments.configuration import Shape

        return Shape(self.name, self.method, self.own)

    def run(self, options: argparse.Namespace) -> None:
        """Run the experiment of ``CONFIG``, with the study of ``--study``.

        Raises
        ------
        InputError
            if the file or the name is unknown, or the file is wrong
        """
        import re

        from simmodel.catalogue import bundled_names
        from simmodel.catalogue.bundled import bundled_file
        from simmodel.experiments.configuration import read_configuration
        from simmodel.foundation.errors import unknown

        name = options.config
        path = bundled_file("experiments", name) or Path(name)
        if not re.search(r"[/\\.]", name) and not path.is_file():
            raise unknown("experiment", name, bundled_names("experiments"))
        found = read_configuration(path, self.shape(), trust=options.trust, seed=options.seed)
        study = found.study if options.study is None else Path(options.study)
        self.carry_out(attrs.evolve(found, study=study), options)

    def carry_out(self, configuration: Configuration, options: argparse.Namespace) -> None:
        """Run the experiment, print its findings, and write the files that options name."""
        configuration = attrs.evolve(configuration, force=options.force)
        goes_on = kept_runs(configuration.study, f"'simmodel resume {configuration.study}' goes on")
        with process_pool(options) as executor, configuration.wrong_here(), goes_on:
            found = self.perform(configuration, executor, options.progress)
        write_and_say(
            options,
            found.said,
            indent="",
            table=found.table.to_csv,
            runs=found.runs.to_csv,
            json=answer(found.said[0], found=found.table.rows(), runs=found.runs.rows()),
            plot=picture(found.plot),
        )


EXPERIMENTS: dict[str, Experiment] = {}
"""The experiments that files describe, and which ``simmodel resume`` continues."""


def _results(main: str, picture: str, usual: str = "experiment.png") -> Declared:
    """Declare the options of the run and the files to write."""
    return arguments(
        WORKERS,
        TRUST,
        PROGRESS,
        files(
            table(main),
            document("the findings, and all runs"),
            argument("--runs OUT.csv", "all runs: values of the parameters and outputs, one line each", output),
            plot(picture, usual),
        ),
    )


def _experiment(
    name: str, results: Declared, example: str, *, method: tuple[str, ...], own: tuple[str, ...]
) -> Callable[[_Perform], _Perform]:
    """Declare the function below as the experiment of a command, whose description in the help is its docstring."""

    def declare(perform: _Perform) -> _Perform:
        found = EXPERIMENTS[name] = Experiment(name, method, own, perform)
        config = argument("config CONFIG", "the experiment (TOML), or a name from 'simmodel list experiments'", source)
        study = kept_study("'simmodel resume FILE' goes on")
        command(
            name,
            config,
            study,
            seed_of("seed of the method", "that of CONFIG"),
            results,
            examples=(example,),
            description=perform.__doc__,
        )(found.run)
        return perform

    return declare


_SEARCH = ("name", "budget", "population", "seed", "holdout", "separable", "stop_early", "intervals", "level", "start")


@_experiment(
    "calibrate",
    _results(
        "the values before and after, with their intervals",
        "the errors of each site and class before and after",
        "calibration.png",
    ),
    "simmodel calibrate size-from-starts --table values.csv",
    method=_SEARCH,
    own=("record", "loss"),
)
def _calibrate(configuration: Configuration, executor: Executor | None, progress: bool) -> Findings:
    """Search for the values of a model's parameters that best repeat a record, and report those that it does not fix.

    The file has the model, the ranges of the parameters ("each" at the end of a range gives each site its own), the
    record (a log with recorded starts, or columns; default: the workload), the loss (a name, or weights by name) and
    the method: "random", "grid", "sobol", "cmaes", "tpe" or "gp", with its budget.
    """
    from simmodel.experiments.calibration.calibrating import calibrate

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


@_experiment(
    "optimise",
    _results("the front, one line per point", "all runs and the front", "front.png"),
    "simmodel optimise size-cluster --plot",
    method=("name", "budget", "population", "maximise", "seed"),
    own=("objectives",),
)
def _optimise(configuration: Configuration, executor: Executor | None, progress: bool) -> Findings:
    """Search for the values of a model's parameters that no others beat in all objectives: the Pareto front.

    The file names the objectives, the choices of the parameters, and the method: "nsga-ii", "random" or "all".
    """
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


@_experiment(
    "sensitivity",
    _results("the indices, one line per output and parameter", "the indices as bars", "sensitivity.png"),
    "simmodel sensitivity screen-machine --plot",
    method=("name", "samples", "groups", "pairs", "seed", "level"),
    own=("outputs",),
)
def _sensitivity(configuration: Configuration, executor: Executor | None, progress: bool) -> Findings:
    """Run a model with other values of its parameters, and print how much each moves the outputs.

    The file names the outputs, the ranges of the parameters, and the method: "morris" (elementary effects) or "sobol"
    (shares of the variance).
    """
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
    for each in found.outputs:
        said += ["", *([] if len(found.outputs) == 1 else [each]), found.summary(each)]
    return Findings(said, found.table, found.runs, found.plot)


@command(
    "resume",
    argument("study STUDY", "the SQLite file of an experiment that a command began", source),
    FORCE,
    _results("what the experiment found", "the picture of the experiment"),
    examples=(
        "simmodel sensitivity screen-machine --study runs.sqlite",
        "simmodel resume runs.sqlite --table indices.csv",
    ),
)
def resume(options: argparse.Namespace) -> None:
    """Continue an experiment from the file that keeps its runs: only those that have not ended are run.

    Several processes can do so at once. With all runs ended, it prints the findings.
    """
    from simmodel.experiments.configuration import configuration_of_study
    from simmodel.experiments.trials import Study
    from simmodel.foundation.errors import InputError

    with Study(Path(options.study)) as study:
        name = study.settings.get("experiment")
        if name not in EXPERIMENTS:
            commands = " or ".join(f"'simmodel {each}'" for each in EXPERIMENTS)
            message = f"must be a study of {commands}; one that was begun in Python goes on by the same call"
            raise InputError(message, source=options.study)
        experiment = EXPERIMENTS[name]
        configuration = configuration_of_study(study, experiment.shape(), trust=options.trust)
    experiment.carry_out(configuration, options)
