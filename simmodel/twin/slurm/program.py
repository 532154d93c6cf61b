"""Runs a command of Slurm, without a shell and with a small environment: nothing else of the twin runs programs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from simmodel.errors import SimmodelError, shown

__all__ = ["SlurmError", "run_program"]

_KEPT = ("PATH", "HOME", "TZ", "SLURM_CONF", "SLURM_JWT", "LD_LIBRARY_PATH")
"""Variables that the commands see; SQUEUE_STATES and the like would change their answers."""


class SlurmError(SimmodelError):
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
    program = os.path.join(folder, words[0]) if folder else words[0]
    try:
        done = subprocess.run(
            [program, *words[1:]],
            env=_environment(conf),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
        )
    except FileNotFoundError:
        raise SlurmError(f"{program}: not found; the twin needs Slurm's client commands") from None
    except OSError as error:
        raise SlurmError(f"{program}: cannot be run: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise SlurmError(f"{program}: no answer within {timeout:g} s") from None
    if done.returncode:
        said = " ".join(done.stderr.decode("utf-8", "replace").split()) or "nothing"
        raise SlurmError(f"{program}: exit status {done.returncode}, saying {shown(said, 200)}")
    return done.stdout.decode("utf-8", "replace")


def _environment(conf: str | None) -> Mapping[str, str]:
    kept = {name: value for name in _KEPT if (value := os.environ.get(name)) is not None}
    return {**kept, **({} if conf is None else {"SLURM_CONF": conf}), "LC_ALL": "C.UTF-8", "SLURM_TIME_FORMAT": "%s"}
