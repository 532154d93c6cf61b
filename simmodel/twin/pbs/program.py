"""Runs a command of PBS, in UTC: its commands write and read times in the zone of their environment."""

from __future__ import annotations

from collections.abc import Sequence

from simmodel.twin import programs
from simmodel.twin.programs import ProgramError

__all__ = ["PbsError", "run_program"]


class PbsError(ProgramError):
    """A command of PBS is missing, does not answer, or answers with an error."""


def run_program(
    words: Sequence[str], *, folder: str | None = None, conf: str | None = None, timeout: float = 30.0
) -> str:
    """Run a command of PBS and return what it prints; bytes that are no UTF-8 are replaced.

    Parameters
    ----------
    words
        the command and its arguments
    folder, conf
        the folder of the commands, and the path of pbs.conf; default: those of the environment
    timeout
        the longest time (s)

    Raises
    ------
    PbsError
        the command is missing, fails, or takes too long
    """
    environment = {**programs.kept("PBS_CONF_FILE"), "TZ": "UTC"}
    if conf is not None:
        environment["PBS_CONF_FILE"] = conf
    return programs.run_program(
        words, environment=environment, folder=folder, timeout=timeout, of="PBS", error=PbsError
    )
