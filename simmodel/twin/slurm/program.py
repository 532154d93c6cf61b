"""Runs a command of Slurm: its times are in seconds since 1970."""

from __future__ import annotations

from collections.abc import Sequence

from simmodel.twin import programs
from simmodel.twin.programs import ProgramError

__all__ = ["SlurmError", "run_program"]

_KEPT = ("TZ", "SLURM_CONF", "SLURM_JWT")
"""Variables that the commands see as well; SQUEUE_STATES and the like would change their answers."""


class SlurmError(ProgramError):
    """A command of Slurm is missing, does not answer, or answers with an error."""


def run_program(
    words: Sequence[str], *, folder: str | None = None, conf: str | None = None, timeout: float = 30.0
) -> str:
    """Run a command of Slurm and return what it prints; bytes that are no UTF-8 are replaced.

    Parameters
    ----------
    words
        the command and its arguments
    folder, conf
        the folder of the commands, and the path of slurm.conf; default: those of the environment
    timeout
        the longest time (s)

    Raises
    ------
    SlurmError
        the command is missing, fails, or takes too long
    """
    environment = {**programs.kept(*_KEPT), "SLURM_TIME_FORMAT": "%s"}
    if conf is not None:
        environment["SLURM_CONF"] = conf
    return programs.run_program(
        words, environment=environment, folder=folder, timeout=timeout, of="Slurm", error=SlurmError
    )
