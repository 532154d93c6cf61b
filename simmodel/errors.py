"""The exceptions of simmodel: each says in one sentence what was found and what was expected.

All of them are attrs exceptions whose fields are the arguments of their constructor, in order. SimPy builds a failed
event's exception anew with ``type(exc)(*exc.args)``; an exception made this way survives that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TypeAlias, TypeVar, dataclass_transform

import attrs

Plain: TypeAlias = "bool | int | float | str | Sequence[Plain] | Mapping[str, Plain] | None"
"""A plain value, as documents (JSON, TOML) hold it."""

_E = TypeVar("_E", bound=Exception)


@dataclass_transform()
def _error(cls: type[_E]) -> type[_E]:
    """Make an attrs exception that keeps its fields in ``args`` and prints as its sentence."""
    return attrs.define(cls, auto_exc=True, auto_attribs=True, slots=False, str=False)


@_error
class SimmodelError(Exception):
    """The base of all errors that simmodel raises on purpose.

    >>> raise SimmodelError("the sentence")
    Traceback (most recent call last):
    ...
    simmodel.errors.SimmodelError: the sentence
    """

    message: str

    def __str__(self) -> str:
        return self.message


@_error
class InputError(SimmodelError, ValueError):
    """A file, a document or an argument is not what it must be.

    Parameters
    ----------
    message
        what was found and what was expected
    source
        the file or document, where there is one
    place
        the line (``line 7``) or the path inside the document (``partitions[2].nodes``)

    >>> str(InputError("18 columns expected, found 3", source="log.swf", place="line 7"))
    'log.swf, line 7: 18 columns expected, found 3'
    """

    source: str | None = None
    place: str | None = None

    def __str__(self) -> str:
        where = ", ".join(part for part in (self.source, self.place) if part)
        return f"{where}: {self.message}" if where else self.message


def unknown(kind: str, name: str, known: Iterable[str]) -> InputError:
    """Return the error for a name that is not known, with what there is and what comes close.

    >>> print(unknown("policy", "esay", ["easy", "fcfs"]))
    policy 'esay' is not known; did you mean 'easy'? There are: easy, fcfs
    """
    names = list(known)
    close = get_close_matches(name, names, 1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    return InputError(f"{kind} {name!r} is not known{hint} There are: {', '.join(names)}")


@_error
class PolicyError(SimmodelError):
    """A policy decided what cannot be done; names the policy, the work, the place and the instant (s).

    >>> print(PolicyError("more than is free", policy="mine", work="job 3", place="cluster", instant=7.0))
    policy mine at 7.0, job 3 on cluster: more than is free
    """

    policy: str = ""
    work: str = ""
    place: str = ""
    instant: float = 0.0

    def __str__(self) -> str:
        where = f", {self.work}" if self.work else ""
        where += f" on {self.place}" if self.place else ""
        return f"policy {self.policy} at {self.instant}{where}: {self.message}"


@_error
class ImpossibleWork(SimmodelError, ValueError):
    """Work that no place can ever run was submitted: larger than the machine, or of a kind it has not."""


@_error
class JobFailed(SimmodelError):
    """Raised by a job's body to say that the job failed: recorded as ``failed``, and the simulation goes on."""


@_error
class Stalled(SimmodelError, RuntimeError):
    """Events ran out while somebody still waits: who, for what, since when, and who holds it.

    ``waiters`` is the list of sentences, one for each that waits.
    """

    waiters: tuple[str, ...] = ()

    def __str__(self) -> str:
        shown = [f"  - {line}" for line in self.waiters[:20]]
        if len(self.waiters) > 20:
            shown.append(f"  ... and {len(self.waiters) - 20} more")
        return "\n".join([self.message, *shown])


@_error
class SnapshotError(SimmodelError):
    """A state cannot be copied, such as the inside of a user's generator."""
