"""What the commands of experiments in files share: their arguments, the run, and what is said when it is interrupted.

A module of such a command has ``SHAPE``, the keys of its files, and ``perform(configuration, executor, progress)``,
which returns :class:`Findings`; ``simmodel resume`` finds both by the name of the command.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import attrs

from simmodel.commands.outputs import add_output, add_picture, picture, write_and_say
from simmodel.commands.progress import add_progress
from simmodel.commands.shared import add_trust, process_pool

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from matplotlib.figure import Figure

    from simmodel.experiments.configuration import Configuration, Shape
    from simmodel.work.table import Table

from simmodel.commands.values import source

__all__ = [
    "EXPERIMENTS",
    "Findings",
    "Perform",
    "add_config",
    "add_force",
    "add_results",
    "add_study",
    "carry_out",
    "configured",
    "kept_runs",
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


class Perform(Protocol):
    """The function of a command that runs an experiment."""

    def __call__(self, configuration: Configuration, executor: Executor | None, progress: bool) -> Findings:
        """Run the experiment."""
        ...


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add the file of the experiment."""
    parser.add_argument(
        "config",
        type=source,
        metavar="CONFIG",
        help="the experiment (TOML), or a name from 'simmodel list experiments'",
    )
    add_study(parser, "'simmodel resume FILE' goes on")


def add_study(parser: argparse.ArgumentParser, after: str) -> None:
    """Add the file that keeps the runs; ``after`` tells how they go on after an interrupt."""
    parser.add_argument(
        "--study",
        type=source,
        metavar="FILE",
        help=f"keep the runs in this SQLite file as they end; after an interrupt {after}",
    )
    add_force(parser)


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add the option to go on with a study of something else."""
    parser.add_argument("--force", action="store_true", help="go on with a study of another model, record or code")


def add_results(parser: argparse.ArgumentParser, table: str, plot: str, usual: str | None) -> None:
    """Add the options of the run and the files to write."""
    add_trust(parser)
    add_progress(parser)
    files = parser.add_argument_group("output files")
    add_output(files, "table", "OUT.csv", table)
    add_output(files, "runs", "OUT.csv", "all runs: values of the parameters and outputs, one line each")
    add_picture(files, plot, usual=usual)


def configured(options: argparse.Namespace, shape: Shape) -> Configuration:
    """Return the experiment of ``CONFIG``, with the study of ``--study``.

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
    found = read_configuration(path, shape, trust=options.trust)
    return attrs.evolve(found, study=found.study if options.study is None else Path(options.study), force=options.force)


def carry_out(configuration: Configuration, options: argparse.Namespace, perform: Perform) -> None:
    """Run an experiment, print what it found, and write the files that options name."""
    study = configuration.study
    goes_on = kept_runs(study, f"'simmodel resume {study}' goes on")
    with process_pool(options) as executor, configuration.wrong_here(), goes_on:
        findings = perform(configuration, executor, options.progress)
    files: Mapping[str, Callable[[Path], object]] = {
        "table": findings.table.to_csv,
        "runs": findings.runs.to_csv,
        "plot": picture(findings.plot),
    }
    write_and_say(findings.said, options, files, indent="")


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
