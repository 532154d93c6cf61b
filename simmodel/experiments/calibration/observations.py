"""The times of jobs in a record, and those of the same jobs in a simulation: the two sides of a calibration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import numpy as np

from simmodel.catalogue import load_workload
from simmodel.foundation.display import counted
from simmodel.foundation.errors import InputError, shown, unknown
from simmodel.results.stored import Stored
from simmodel.work.prepare import Frame
from simmodel.work.table import Table, rows_of
from simmodel.work.workload import Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Cell", "GivenRecord", "Observations", "Times", "as_table", "simulated_times"]

GivenRecord: TypeAlias = "Stored | Workload | Table | Frame | Mapping[str, Any] | str | Path"
"""A result, a workload with recorded times, a table or a data frame of jobs, columns, or a file."""
Times: TypeAlias = "dict[str, NDArray[np.float64]]"
"""Quantities, such as walltimes, with a number for each job of a record."""

_NUMBERS = ("job", "task", "id")
_SITES = ("site", "destination")
_EARLIER = {"walltime": ("recorded_end", "recorded_start"), "queue_time": ("recorded_start", "submit")}
_PLAIN = {"walltime": ("end", "start"), "queue_time": ("start", "submit")}
_KEPT = ("submit", "processors", "requested", "recorded_start", "recorded_end", "start", "end")
_KINDS = ("user", "group", "executable", "queue", "partition", "family")
_INSTANTS = {"start": ("recorded_start", "start"), "end": ("recorded_end", "end")}


@attrs.frozen
class Cell:
    """The jobs of one class at one site, whose error counts once.

    Parameters
    ----------
    site, kind
        the site and the class: ``single`` or ``multi`` core, or empty
    rows
        the numbers of its jobs in the record
    """

    site: str
    kind: str
    rows: NDArray[np.intp] = attrs.field(eq=False)

    def __str__(self) -> str:
        return " ".join(part for part in (self.site, self.kind) if part) or "all jobs"


@attrs.frozen(eq=False, slots=False)
class Observations:
    """The jobs of a record whose quantities are known.

    Parameters
    ----------
    jobs
        one row per job: ``job, site, class``, ``submit`` if it is known, and the quantities
    quantities
        the names of the quantities, such as ``walltime``
    held_out
        which jobs are held out: no parameter is fitted to them
    left_out
        the jobs of the record without these quantities
    numbered
        whether the record numbers its jobs; otherwise a simulation has the same jobs in the same order
    """

    jobs: Table
    quantities: tuple[str, ...]
    held_out: NDArray[np.bool_]
    left_out: int = 0
    numbered: bool = True

    @classmethod
    def of(cls, given: GivenRecord, quantities: Iterable[str], holdout: float = 0) -> Observations:
        """Return the observations of a record.

        Parameters
        ----------
        quantities
            ``walltime``, ``queue_time``, ``start``, ``end``, or names of columns
        holdout
            the share of the jobs of each site to hold out, or their number in all: the last ones

        Raises
        ------
        InputError
            the record has no such quantity, or for no job

        >>> jobs = {"site": ["a", "a", "b"], "submit": [0, 1, 2], "start": [1, 5, 2], "end": [9, 9, 7]}
        >>> Observations.of(jobs, ["walltime"]).jobs["walltime"]
        array([8., 4., 5.])
        """
        table = as_table(given, "record")
        names = tuple(dict.fromkeys(quantities))
        columns = {name: _quantity(table, name, recorded=True) for name in names}
        known = np.logical_and.reduce([np.isfinite(column) for column in columns.values()])
        if not known.any():
            raise InputError(f"must have jobs with a known {' and '.join(names)}, got none", place="record")
        number = next((name for name in _NUMBERS if name in table), None)
        about: dict[str, Any] = {
            "job": np.arange(1, len(table) + 1) if number is None else table[number],
            "site": _sites(table),
            "class": _classes(table),
        }
        kept = [name for name in (*_KEPT, *_KINDS) if name in table]
        jobs = Table({**about, **{name: table[name] for name in kept}, **columns}).where(known)
        if len(np.unique(jobs["job"])) < len(jobs):
            raise InputError("must have each job once, got a duplicate number", place="record")
        found = cls(jobs, names, np.zeros(len(jobs), bool), int((~known).sum()), number is not None)
        return attrs.evolve(found, held_out=found._last(holdout)) if holdout else found

    def _last(self, holdout: float) -> NDArray[np.bool_]:
        """Return the mask of the jobs that are held out: the last ones of each site, or of all, by submission."""
        whole = not isinstance(holdout, bool) and isinstance(holdout, int) and 0 < holdout < len(self.jobs)
        if not whole and (isinstance(holdout, bool) or not 0 < holdout < 1):
            wanted = f"must be a share between 0 and 1, or a number of jobs below {len(self.jobs)}"
            raise InputError(f"{wanted}, got {shown(holdout)}", place="holdout")
        order = np.argsort(self.jobs["submit"], kind="stable") if "submit" in self.jobs else np.arange(len(self.jobs))
        found = np.zeros(len(self.jobs), dtype=bool)
        if whole:
            found[order[len(order) - int(holdout) :]] = True
            return found
        for site in self.sites:
            here = order[self.jobs["site"][order] == site]
            found[here[len(here) - round(holdout * len(here)) :]] = True
        return found

    @cached_property
    def sites(self) -> list[str]:
        """The sites of its jobs, in the order of the record; one without a name if it has none."""
        return [str(site) for site in dict.fromkeys(self.jobs["site"].tolist())]

    @cached_property
    def training(self) -> list[Cell]:
        """The cells of the jobs that parameters are fitted to."""
        return self._cells(~self.held_out)

    @cached_property
    def testing(self) -> list[Cell]:
        """The cells of the jobs that are held out."""
        return self._cells(self.held_out)

    def _cells(self, mask: NDArray[np.bool_]) -> list[Cell]:
        found = []
        for site in self.sites:
            for kind in dict.fromkeys(self.jobs["class"].tolist()):
                rows = np.flatnonzero(mask & (self.jobs["site"] == site) & (self.jobs["class"] == kind))
                if len(rows):
                    found.append(Cell(site, kind, rows))
        return found


def as_table(given: Any, place: str) -> Table:
    """Return the jobs of a record, or those that a model returned, as a table.

    Raises
    ------
    InputError
        if there are none
    """
    if isinstance(given, str | Path):
        given = load_workload(given)
    if isinstance(given, Stored):
        jobs = getattr(given, "jobs", None)
        given = jobs if jobs is not None else getattr(given, "tasks", None)
    if isinstance(given, Workload):
        table, start = given.table, given.recorded_starts()
        end = table["recorded_end"] if "recorded_end" in table else start + np.where(given["run"] >= 0, given["run"], 0)
        return table.with_columns(recorded_start=start, recorded_end=end)
    if isinstance(given, Table):
        return given
    if isinstance(given, Mapping | Frame):
        try:
            return Table({str(name): np.asarray(column) for name, column in given.items()})
        except (ValueError, TypeError) as error:
            raise InputError(f"must have columns of one length: {error}", place=place) from None
    raise InputError(f"must be a table of jobs, a workload or a result, got {shown(given)}", place=place)


def _quantity(table: Table, name: str, *, recorded: bool) -> NDArray[np.float64]:
    """Return a quantity of a table of jobs."""
    if name in _INSTANTS:
        for column in _INSTANTS[name] if recorded else _INSTANTS[name][1:]:
            if column in table:
                return table[column].astype(np.float64)
    for pair in (_EARLIER, _PLAIN) if recorded else (_PLAIN,):
        if name in pair and all(column in table for column in pair[name]):
            later, earlier = pair[name]
            return np.asarray(table[later] - table[earlier], dtype=np.float64)
    if name in table and table[name].dtype.kind in "iuf":
        return table[name].astype(np.float64)
    where = "record" if recorded else "model"
    known = [each for each in (*_PLAIN, *_INSTANTS) if each in table] or table.names
    raise InputError(unknown("quantity", name, known).message, place=where)


def _sites(table: Table) -> NDArray[np.str_]:
    for name in _SITES:
        if name in table:
            return np.array([str(each) for each in table[name].tolist()], dtype=str)
    return np.full(len(table), "", dtype=str)


def _classes(table: Table) -> NDArray[np.str_]:
    if "class" in table:
        return np.array([str(each) for each in table["class"].tolist()], dtype=str)
    if "processors" not in table:
        return np.full(len(table), "", dtype=str)
    return np.where(table["processors"] > 1, "multi", "single")


def simulated_times(found: Any, observed: Observations, *, partial: bool = False) -> Times:
    """Return the quantities of a simulation for each job of a record; nan for those that have not ended.

    With ``partial`` the simulation goes on, and jobs that it does not have yet are nan, too.

    Raises
    ------
    InputError
        the simulation does not have the jobs, or a quantity

    >>> observed = Observations.of({"job": [7, 8], "walltime": [10, 20]}, ["walltime"])
    >>> simulated_times({"job": [8, 7], "walltime": [21, 11]}, observed)
    {'walltime': array([11., 21.])}
    """
    table = as_table(found, "model")
    number = next((name for name in _NUMBERS if name in table), None)
    if number is None or not observed.numbered:
        whole = len(observed.jobs) + observed.left_out
        if len(table) != whole:
            message = f"must return as many jobs as the record has ({whole:,}), got {len(table):,}"
            raise InputError(message, place="model")
        rows = np.asarray(observed.jobs["job"] - 1 if not observed.numbered else np.arange(whole), dtype=np.intp)
    else:
        known, wanted = set(table[number].tolist()), observed.jobs["job"]
        missing = [job for job in wanted.tolist() if job not in known]
        if missing and partial:
            here = np.array([job in known for job in wanted.tolist()])
            rows = np.where(here, 0, -1)
            rows[here] = rows_of(table[number], wanted[here])
            columns = {name: _quantity(table, name, recorded=False) for name in observed.quantities}
            return {name: np.where(here, column[rows], np.nan) for name, column in columns.items()}
        if missing:
            count = f"{len(missing):,} of its {counted(len(wanted), 'job')} are not in the simulation"
            raise InputError(f"{count}, such as {shown(missing[0])}", place="record")
        rows = rows_of(table[number], wanted)
    return {name: _quantity(table, name, recorded=False)[rows] for name in observed.quantities}
