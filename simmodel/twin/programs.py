"""Runs a command of a scheduler, without a shell and with a small environment; all adapters run them by this."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Container, Mapping, Sequence
from selectors import EVENT_READ, DefaultSelector
from time import monotonic

from simmodel.errors import SimmodelError, shown

__all__ = ["ProgramError", "is_garbled", "kept", "run_program"]

_KEPT = ("PATH", "HOME", "LD_LIBRARY_PATH")
_LARGEST = 256 * 2**20  # bytes of an answer: that of 100,000 jobs has a tenth


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
        the command is missing, fails, takes too long, or prints more than 256 MiB

    >>> run_program(["echo", "$HOME; `id`"], environment=kept())
    '$HOME; `id`\\n'
    """
    program = os.path.join(folder, words[0]) if folder else words[0]
    try:
        with subprocess.Popen(
            [program, *words[1:]],
            env={**environment, "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            try:
                printed, said = _outputs(process, timeout)
            except BaseException:
                process.kill()
                raise
    except FileNotFoundError:
        raise error(f"{program}: not found; the twin needs {of}'s client commands") from None
    except OverflowError:
        raise error(f"{program}: printed more than {_LARGEST // 2**20} MiB") from None
    except (TimeoutError, subprocess.TimeoutExpired):
        raise error(f"{program}: no answer within {timeout:g} s") from None
    except OSError as found:
        raise error(f"{program}: cannot be run: {found.strerror}") from None
    if process.returncode:
        raise error(
            f"{program}: exit status {process.returncode}, saying {shown(' '.join(said.split()) or 'nothing', 200)}"
        )
    return printed


def _outputs(process: subprocess.Popen[bytes], timeout: float) -> tuple[str, str]:
    """Return what a command prints and what it says of errors, once it has ended."""
    until = monotonic() + timeout
    parts: dict[int, list[bytes]] = {}
    size = 0
    with DefaultSelector() as selector:
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            selector.register(pipe, EVENT_READ)
            parts[pipe.fileno()] = []
        while selector.get_map():
            ready = selector.select(max(until - monotonic(), 0.0))
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                part = os.read(key.fd, 2**20)
                parts[key.fd].append(part)
                size += len(part)
                if size > _LARGEST:
                    raise OverflowError
                if not part:
                    selector.unregister(key.fileobj)
    process.wait(max(until - monotonic(), 0.0))
    printed, said = (b"".join(each).decode("utf-8", "replace") for each in parts.values())
    return printed, said


def is_garbled(value: object, free: Container[str]) -> bool:
    """Whether a record has bytes that were replaced, anywhere but in the fields in which users write what they like.

    >>> is_garbled({"name": "caf\ufffd", "states": ["RUNNING"]}, {"name"}), is_garbled({"st\ufffdtes": []}, {"name"})
    (False, True)
    """
    if isinstance(value, dict):
        return any("\ufffd" in key or (key not in free and is_garbled(each, free)) for key, each in value.items())
    if isinstance(value, list):
        return any(is_garbled(each, free) for each in value)
    return isinstance(value, str) and "\ufffd" in value
