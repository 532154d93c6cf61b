"""What the commands of experiments in files share: their arguments, the run, and what is said when it is interrupted.

A module of such a command has ``EXPERIMENT``, by which ``simmodel resume`` goes on with it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import attrs

from simmodel.commands.arguments import Declared, TakesArguments, argument, arguments
from simmodel.commands.outputs import files, picture, plot, write_and_say
from simmodel.commands.progress import PROGRESS
from simmodel.commands.shared import TRUST, WORKERS, process_pool
from simmodel.commands.values import output, source

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from matplotlib.figure import Figure

    from simmodel.experiments.configuration import Configuration, Shape
    from simmodel.work.table import Table

__all__ = [
    "EXPERIMENTS",
    "FORCE",
    "Experiment",
    "Findings",
    "experiment",
    "kept_runs",
    "kept_study",
    "results",
]

EXPERIMENTS = ("calibrate", "optimise", "sensitivity")
"""The commands whose experiments are described by files, and which ``simmodel resume`` continues."""


@attrs.frozen
class Findings:
    """What an experiment found.

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


class _Perform(Protocol):
    """The function of a command that runs an experiment."""

    def __call__(self, configuration: Configuration, executor: Executor | None, progress: bool) -> Findings:
        """Run the experiment."""
        ...


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
        the keys of its own at the top of a file
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

        from simmodel.catalogue import bundled_file, bundled_names
        from simmodel.errors import unknown
        from simmodel.experiments.configuration import read_configuration

        name = options.config
        path = bundled_file("experiments", name) or Path(name)
        if not re.search(r"[/\\.]", name) and not path.is_file():
            raise unknown("experiment", name, bundled_names("experiments"))
        found = read_configuration(path, self.shape(), trust=options.trust)
        study = found.study if options.study is None else Path(options.study)
        self.carry_out(attrs.evolve(found, study=study), options)

    def carry_out(self, configuration: Configuration, options: argparse.Namespace) -> None:
        """Run the experiment, print what it found, and write the files that options name."""
        configuration = attrs.evolve(configuration, force=options.force)
        goes_on = kept_runs(configuration.study, f"'simmodel resume {configuration.study}' goes on")
        with process_pool(options) as executor, configuration.wrong_here(), goes_on:
            found = self.perform(configuration, executor, options.progress)
        write_and_say(
            options, found.said, "", table=found.table.to_csv, runs=found.runs.to_csv, plot=picture(found.plot)
        )


FORCE = argument("--force", "go on with a study of another model, record or code")


def kept_study(after: str) -> Declared:
    """Declare the file that keeps the runs; ``after`` tells how they go on after an interrupt."""
    text = f"keep the runs in this SQLite file as they end; after an interrupt {after}"
    return arguments(argument("--study FILE", text, source), FORCE)


def results(table: str, picture: str, usual: str | None = None) -> Declared:
    """Declare the options of the run and the files to write."""
    return arguments(
        WORKERS,
        TRUST,
        PROGRESS,
        files(
            argument("--table OUT.csv", table, output),
            argument("--runs OUT.csv", "all runs: values of the parameters and outputs, one line each", output),
            plot(picture, usual),
        ),
    )


def experiment(table: str, picture: str, usual: str) -> Callable[[TakesArguments], None]:
    """Declare the arguments of an experiment: its file, its study and its results."""
    return arguments(
        argument("config CONFIG", "the experiment (TOML), or a name from 'simmodel list experiments'", source),
        kept_study("'simmodel resume FILE' goes on"),
        results(table, picture, usual),
    )


@contextmanager
def kept_runs(path: Path | None, after: str) -> Iterator[None]:
    """Say at an interrupt how many runs a study has, and how they go on."""
    try:
        yield
    except KeyboardInterrupt:
        if path is not None and path.exists():
            from simmodel.experiments.trials import Study

            counts = Study(path).counts
            kept = f"{counts['finished'] + counts['failed']:,} runs are kept"
            print(f"\ninterrupted: {kept}; {after}", file=sys.stderr, end="")
        raise
