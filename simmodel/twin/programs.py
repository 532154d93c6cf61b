"""Runs a command of a scheduler, without a shell and with a small environment; all adapters run them by this."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from simmodel.errors import SimmodelError, shown

__all__ = ["ProgramError", "kept", "run_program"]

_KEPT = ("PATH", "HOME", "LD_LIBRARY_PATH")


class ProgramError(SimmodelError):
    """A command of a scheduler is missing, does not answer, or answers with an error."""


def kept(*names: str) -> dict[str, str]:
    """Return the variables of this environment that commands see: a few usual ones, and those of these names."""
    return {name: value for name in (*_KEPT, *names) if (value := os.environ.get(name)) is not None}


def run_program(
    words: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: str | None = None,
    timeout: float = 30.0,
    of: str = "the scheduler",
    error: type[ProgramError] = ProgramError,
) -> str:
    """Run a command and return what it prints; bytes that are no UTF-8 are replaced.

    Parameters
    ----------
    words
        the command and its arguments
    environment
        all variables that it sees
    folder
        the folder of the commands; default: they are on the path
    timeout
        the longest time (s)
    of
        whose command it is, for errors
    error
        the class of errors

    Raises
    ------
    ProgramError
        the command is missing, fails, or takes too long

    >>> run_program(["echo", "$HOME; `id`"], environment=kept())
    '$HOME; `id`\\n'
    """
    program = os.path.join(folder, words[0]) if folder else words[0]
    try:
        done = subprocess.run(
            [program, *words[1:]],
            env={**environment, "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
        )
    except FileNotFoundError:
        raise error(f"{program}: not found; the twin needs {of}'s client commands") from None
    except OSError as found:
        raise error(f"{program}: cannot be run: {found.strerror}") from None
    except subprocess.TimeoutExpired:
        raise error(f"{program}: no answer within {timeout:g} s") from None
    if done.returncode:
        said = " ".join(done.stderr.decode("utf-8", "replace").split()) or "nothing"
        raise error(f"{program}: exit status {done.returncode}, saying {shown(said, 200)}")
    return done.stdout.decode("utf-8", "replace")
