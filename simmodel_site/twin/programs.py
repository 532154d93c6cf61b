"""The commands of a scheduler, run in the same way by all adapters."""

from __future__ import annotations

import os
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Mapping, Sequence
from selectors import EVENT_READ, DefaultSelector
from time import monotonic
from types import MappingProxyType
from typing import ClassVar

import attrs

from simmodel import InputError, SimmodelError
from simmodel.extending import Fields, shown, unknown

__all__ = ["Commands", "ProgramError", "is_garbled"]

_KEPT = ("PATH", "HOME", "LD_LIBRARY_PATH")
_LARGEST = 256 * 2**20  # bytes of an answer: that of 100,000 jobs has a tenth


class ProgramError(SimmodelError):
    """A command of a scheduler is missing, does not answer, or answers with an error."""


@attrs.frozen(kw_only=True, repr=False)
class Commands(Fields, ABC):
    """A scheduler's commands on this computer, run without a shell and with a small environment.

    A class for a scheduler has its words, and :meth:`word_of`.

    Parameters
    ----------
    conf
        path of the scheduler's configuration; default: that of the environment
    folder
        the folder of the commands; default: they are on the path
    timeout
        the longest time of a command (s)

    Attributes
    ----------
    scheduler, error
        its name, and the class of its errors
    conf_variable, kept, fixed
        the variable for ``conf``, further variables of this environment that commands see, and those with fixed values
    reads
        the words of all commands that read, by name
    of_jobs
        the names of those that take ids of jobs
    """

    conf: str | None = None
    folder: str | None = None
    timeout: float = 30.0

    scheduler: ClassVar[str]
    error: ClassVar[type[ProgramError]] = ProgramError
    conf_variable: ClassVar[str]
    kept: ClassVar[tuple[str, ...]] = ()
    fixed: ClassVar[Mapping[str, str]] = MappingProxyType({})
    reads: ClassVar[Mapping[str, tuple[str, ...]]]
    of_jobs: ClassVar[frozenset[str]] = frozenset()

    def __attrs_post_init__(self) -> None:
        if not self.timeout > 0:
            raise InputError(f"must be a number > 0 (s), got {self.timeout!r}", place="timeout")

    @staticmethod
    @abstractmethod
    def word_of(job: int | str) -> str:
        """Return the id of a job as a word of a command; raises :class:`~simmodel.foundation.errors.InputError`."""

    def read(self, name: str, jobs: Iterable[int | str] = ()) -> str:
        """Run a command of ``reads``, for some jobs by their ids, and return its output.

        Raises
        ------
        InputError
            there is no such command, or it takes no ids, or an id is wrong
        ProgramError
            as of :meth:`run`
        """
        if name not in self.reads:
            raise unknown("command", name, self.reads)
        given = [self.word_of(job) for job in jobs]
        if given and name not in self.of_jobs:
            raise InputError(f"must be none for {name!r}, got {len(given)}", place="jobs")
        return self.run([*self.reads[name], *given])

    def run(self, words: Sequence[str]) -> str:
        """Run a command with its arguments and return its output; bytes that are not UTF-8 are replaced.

        Raises
        ------
        ProgramError
            of the class ``error``: the command is missing, fails, takes too long, or prints more than 256 MiB
        """
        program = os.path.join(self.folder, words[0]) if self.folder else words[0]
        try:
            with subprocess.Popen(
                [program, *words[1:]],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            ) as process:
                try:
                    printed, said = _outputs(process, self.timeout)
                except BaseException:
                    process.kill()
                    raise
        except FileNotFoundError:
            raise self.error(f"{program}: not found; the twin needs {self.scheduler}'s client commands") from None
        except OverflowError:
            raise self.error(f"{program}: printed more than {_LARGEST // 2**20} MiB") from None
        except (TimeoutError, subprocess.TimeoutExpired):
            raise self.error(f"{program}: no answer within {self.timeout:g} s") from None
        except OSError as found:
            raise self.error(f"{program}: cannot be run: {found.strerror}") from None
        if process.returncode:
            text = shown(" ".join(said.split()) or "nothing", 200)
            raise self.error(f"{program}: exit status {process.returncode}, saying {text}")
        return printed

    def _environment(self) -> dict[str, str]:
        names = (*_KEPT, self.conf_variable, *self.kept)
        told = {name: value for name in names if (value := os.environ.get(name)) is not None}
        conf = {} if self.conf is None else {self.conf_variable: self.conf}
        return {**told, **self.fixed, **conf, "LC_ALL": "C.UTF-8"}


def _outputs(process: subprocess.Popen[bytes], timeout: float) -> tuple[str, str]:
    """Return the standard output and the standard error of a command, once it has ended."""
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
    """Whether a record has bytes that were replaced, anywhere but in the fields of free text by users.

    >>> is_garbled({"name": "caf\ufffd", "states": ["RUNNING"]}, {"name"}), is_garbled({"st\ufffdtes": []}, {"name"})
    (False, True)
    """
    if isinstance(value, dict):
        return any("\ufffd" in key or (key not in free and is_garbled(each, free)) for key, each in value.items())
    if isinstance(value, list):
        return any(is_garbled(each, free) for each in value)
    return isinstance(value, str) and "\ufffd" in value
