"""``simmodel resume``: continue an experiment that was stopped."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

import attrs

from simmodel.commands.shared import add_workers
from simmodel.commands.studies import EXPERIMENTS, add_force, add_results, carry_out
from simmodel.commands.values import source

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = (
    "simmodel sensitivity screen-machine --study runs.sqlite",
    "simmodel resume runs.sqlite --table indices.csv",
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "study", type=source, metavar="STUDY", help="the SQLite file of an experiment that a command began"
    )
    add_force(parser)
    add_workers(parser)
    add_results(parser, "what the experiment found", "the picture of the experiment", None)


def run(options: argparse.Namespace) -> None:
    """Continue an experiment from the file that keeps its runs: only those that have not ended are run.

    Several processes can do so at once. With all runs ended, it prints what was found.
    """
    from simmodel.errors import InputError
    from simmodel.experiments.configuration import configuration_of_study
    from simmodel.experiments.trials import Study

    with Study(Path(options.study)) as study:
        name = study.settings.get("experiment")
        if name not in EXPERIMENTS:
            commands = " or ".join(f"'simmodel {each}'" for each in EXPERIMENTS)
            message = f"must be a study of {commands}; one that was begun in Python goes on by the same call"
            raise InputError(message, source=options.study)
        command = import_module(f"simmodel.commands.{name}")
        configuration = configuration_of_study(study, command.shape(), trust=options.trust)
    carry_out(attrs.evolve(configuration, force=options.force), options, command.perform)
