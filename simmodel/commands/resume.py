"""``simmodel resume``: continue an experiment that was stopped."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from simmodel.commands.arguments import argument, arguments
from simmodel.commands.studies import EXPERIMENTS, FORCE, Experiment, results
from simmodel.commands.values import source

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = (
    "simmodel sensitivity screen-machine --study runs.sqlite",
    "simmodel resume runs.sqlite --table indices.csv",
)


add = arguments(
    argument("study STUDY", "the SQLite file of an experiment that a command began", source),
    FORCE,
    results("what the experiment found", "the picture of the experiment"),
)


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
        experiment: Experiment = import_module(f"simmodel.commands.{name}").EXPERIMENT
        configuration = configuration_of_study(study, experiment.shape(), trust=options.trust)
    experiment.carry_out(configuration, options)
