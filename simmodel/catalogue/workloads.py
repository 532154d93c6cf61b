"""Workloads by name or by file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simmodel.catalogue.bundled import bundled_file, bundled_names
from simmodel.catalogue.formats import FORMATS, check_format, read_file
from simmodel.foundation.errors import InputError, shown, unknown
from simmodel.foundation.loading import held

if TYPE_CHECKING:
    from simmodel.work.chunks import ChunkedWorkload
    from simmodel.work.workload import Workload

__all__ = ["is_generator", "load_workload", "workload_in_chunks"]


def load_workload(name_or_path: str | Path, *, format: str | None = None, **options: Any) -> Workload:
    """Return a bundled workload by name, draw one by a generator of jobs, or read a workload from a file.

    Parameters
    ----------
    name_or_path
        a name of ``bundled_names("workloads")``, a generator with its parameters, or a path; the format is detected
        from its ending (``.swf``, ``.swf.gz`` and so on), else its content. ``resample:LOG,weeks=26,load=0.8`` and
        ``shaken:LOG,noise=30`` draw from one of these (:meth:`~simmodel.work.workload.Workload.resampled`,
        :meth:`~simmodel.work.workload.Workload.shaken`); settings stand at the end
    format
        a name of :data:`FORMATS`, if it cannot be detected
    options
        passed to the reader: ``strict=False``, ``timezone=...``, ``names=...``, ``seed=...``; of a generator
        ``seed=`` alone (default: 0)

    Raises
    ------
    InputError
        the name, file or format is unknown, or the reader rejects the file or an option

    >>> load_workload("probe-4")["run"]
    array([1000.,  500.,  100.,  400.])
    >>> load_workload("lublin:jobs=50,processors=16", seed=1)
    <Workload lublin-16: 50 jobs, 16 processors>
    """
    workload: Workload = _loaded(name_or_path, format, options, in_chunks=False)
    return workload


def is_generator(given: str | Path) -> bool:
    """Return whether a text names a generator and its parameters, or how to draw from a log.

    >>> is_generator("lublin:jobs=50"), is_generator("layered:n=40"), is_generator("lublin-256"), is_generator("C:log")
    (True, True, False, False)
    >>> is_generator("resample:log.swf,weeks=26")
    True
    """
    kind, colon, _ = given.partition(":") if isinstance(given, str) else ("", "", "")
    if not colon:
        return False
    from simmodel.generators.settings import GENERATORS  # imports all generators, so only when needed
    from simmodel.generators.task_kinds import TASK_KINDS

    return kind in GENERATORS or kind in TASK_KINDS or kind in _OF_LOGS


def _drawn(text: str, format: str | None, options: dict[str, Any], in_chunks: bool) -> Any:
    """Return the workload of a generator and its parameters, or one drawn from a log."""
    from simmodel.catalogue.tasks import parameters_in
    from simmodel.generators.settings import generate
    from simmodel.work.chunks import ChunkedWorkload

    if text.partition(":")[0] in _OF_LOGS:
        from_log = _from_log(text, format, **options)
        return ChunkedWorkload.of(from_log) if in_chunks else from_log
    for name in ("format", *options) if format is not None else options:
        if name != "seed":
            raise InputError("is not an option of generators", text, name)
    kind, _, rest = text.partition(":")
    found = generate({"generator": kind, "parameters": parameters_in(rest, text)}, source=text, **options)
    return ChunkedWorkload.of(found) if in_chunks else found


_OF_LOGS = {"resample": ("users", "weeks", "load", "seed"), "shaken": ("noise", "seed")}


def _from_log(text: str, format: str | None, *, seed: int = 0, **options: Any) -> Workload:
    """Return what a text such as ``resample:log.swf,weeks=26,load=0.8`` draws from a log; a seed in it comes first."""
    from simmodel.catalogue.tasks import parameters_in

    kind, _, rest = text.partition(":")
    ends = [len(rest), *(at for at, letter in enumerate(rest) if letter == ",")]
    there = [rest[:end] for end in ends if bundled_file("workloads", rest[:end]) or Path(rest[:end]).is_file()]
    if len(there) > 1:
        raise InputError(f"may mean {shown(there[0])} or {shown(there[1])}: rename one of them", text)
    log = there[0] if there else rest
    while not there and log.rpartition(",")[2].partition("=")[0].strip() in _OF_LOGS[kind]:
        log = log.rpartition(",")[0]
    settings = {"seed": seed, **parameters_in(rest[len(log) + 1 :], text)}
    for key in settings:
        if key not in _OF_LOGS[kind]:
            raise InputError(unknown("setting", key, _OF_LOGS[kind]).message, text)
    given = load_workload(log, format=format, **options)
    try:
        return given.resampled(**settings) if kind == "resample" else given.shaken(**settings)
    except InputError as error:
        raise InputError(error.message, text, error.place) from None


def workload_in_chunks(name_or_path: str | Path, *, format: str | None = None, **options: Any) -> ChunkedWorkload:
    """Return a workload that is read in chunks; parameters and errors as of :func:`load_workload`.

    A log in SWF, GWF, CSV or the output of sacct is read from its file as a simulation goes on, any other workload at
    once.

    >>> [len(chunk) for chunk in workload_in_chunks("probe-4")]
    [4]
    """
    workload: ChunkedWorkload = _loaded(name_or_path, format, options, in_chunks=True)
    workload.source = str(name_or_path)
    return workload


def _loaded(name_or_path: str | Path, format: str | None, options: dict[str, Any], *, in_chunks: bool) -> Any:
    check_format(format, FORMATS)
    given: Any = name_or_path
    if not isinstance(given, (str, Path)):
        kind = type(given).__name__
        raise InputError(f"must be a name or a path (Workload(...) takes columns), got a {kind}", place="name_or_path")
    name = str(name_or_path)
    if name_or_path == "":
        raise InputError("must be the name of a workload or a path, got ''", place="name_or_path")
    bundled = bundled_file("workloads", name) if isinstance(name_or_path, str) else None
    path = bundled or Path(name_or_path)
    if is_generator(name_or_path):
        return _drawn(name, format, options, in_chunks)
    if isinstance(name_or_path, str) and not path.exists() and not re.search(r"[/\\.]|^-$", name):
        from simmodel.catalogue.tasks import task_names

        tasks = task_names()  # workloads of machines
        raise unknown("workload", name, [each for each in bundled_names("workloads") if each not in tasks])
    workload = read_file(held(path), "workload", FORMATS, format, options, in_chunks=in_chunks)
    if bundled:
        workload.name = name
    return workload
