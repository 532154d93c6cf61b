"""The check of models of resources: one entry, and a check for each kind of resource."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isclose
from typing import Any

from simmodel.foundation.entries import Entries
from simmodel.foundation.errors import SnapshotError, Stalled
from simmodel.platform.models import MODELS, PLACEMENTS
from simmodel.resources.models import BASES, kind_of_model
from simmodel.runs import simulate, start
from simmodel.snapshots.snapshot import Snapshot
from simmodel.work.job import Job

__all__ = ["CHECKS", "CLOCK", "check_jobs", "check_resource"]

CLOCK = sorted((i + 0.37) / 97 * period for period in (1, 60, 3600, 86400, 7 * 86400) for i in range(97))
"""Instants (s) in all parts of a second, a minute, an hour, a day and a week, for models that follow the clock."""

CHECKS = Entries[Callable[[Any, Mapping[str, Any]], None]](
    {
        "processor": "simmodel.testing.processors:check_processor",
        "memory pool": "simmodel.testing.machines:check_pool",
        "placement": "simmodel.testing.placements:check_placement",
        "storage": "simmodel.testing.storages:check_storage",
        "link": "simmodel.testing.networks:check_link",
        "sharing rule": "simmodel.testing.networks:check_rule",
    }
)
"""The check of each kind of resource (see :data:`~simmodel.resources.models.BASES`), called with a model, options."""


def check_resource(model: str | Callable[..., Any], **options: Any) -> None:
    """Check a custom model of a resource: small platforms with it run, and the guarantees of every resource hold.

    All work ends and nothing is lost, capacities are respected, records are complete, the same run gives the same
    result, and a run cut by a snapshot ends as one that was not cut (unless the model has ``snapshots = False``).

    Parameters
    ----------
    model
        the class, or its registered name; of a placement also the function
    options
        for the spec's ``options``

    Raises
    ------
    AssertionError
        a check fails; the message describes the fault of the model
    InputError
        an option is invalid

    >>> from simmodel.resources import ManyCores
    >>> check_resource(ManyCores)
    """
    found = MODELS[model] if isinstance(model, str) and model in MODELS else model
    named = isinstance(model, str) and model in PLACEMENTS
    function = callable(model) and not isinstance(model, type)
    kind = "placement" if named or function else kind_of_model(found)
    bases = ", ".join(BASES[each].__name__ for each in BASES)
    assert kind is not None, f"a model must derive from one of {bases}, got {model!r}"
    CHECKS[kind](found, options)


# ---------------------------------------------------------------------- runs of jobs


_CUTS = (0.06, 0.2, 0.35, 0.5, 0.65, 0.8)  # shares of the duration of the run
_HINT = "own_state() and restore_own() keep what a model remembers; snapshots = False says that it cannot be copied"


def check_jobs(spec: Any, jobs: Sequence[Job], policy: str, name: str, *, snapshots: bool = True) -> Any:
    """Run jobs on a system with a custom part and check it; return the result.

    The checks: all jobs are completed; the same run gives the same result; a run cut by a snapshot ends as the whole
    one, or its snapshot is refused.

    Parameters
    ----------
    name
        of the model that is checked, for the messages
    snapshots
        whether the model says that it can be copied

    Raises
    ------
    AssertionError
        a check fails; the message describes the fault of the model
    """
    result = _run(spec, jobs, policy, name)
    whole = _rows(result)
    lost = [job for job, (status, *_) in whole.items() if status != "completed"]
    assert not lost, f"{name}: job {lost[0]} is {whole[lost[0]][0]}, it should be completed"
    again = _rows(_run(spec, jobs, policy, name))
    assert again == whole, f"{name}: the same run gives another result (does it share state between objects?)"
    length = max(end for _, _, end in whole.values())
    for share in _CUTS:
        _check_cut(spec, jobs, policy, name, share * length, whole, snapshots)
    return result


def _run(spec: Any, jobs: Sequence[Job], policy: str, name: str) -> Any:
    try:
        return simulate(spec, jobs, policy, seed=1)
    except Stalled as error:
        raise AssertionError(f"{name}: jobs never end: {error}") from None


def _rows(result: Any) -> dict[Any, tuple[str, float, float]]:
    table = result.jobs
    return {
        job: (status, start_, end)
        for job, status, start_, end in zip(
            *(table[column].tolist() for column in ("job", "status", "start", "end")), strict=True
        )
    }


def _check_cut(
    spec: Any, jobs: Sequence[Job], policy: str, name: str, cut: float, whole: dict[Any, Any], snapshots: bool
) -> None:
    begun = start(spec, jobs, policy, seed=1)
    begun.run(until=cut)
    try:
        document = begun.snapshot().to_json()
    except SnapshotError as error:
        if snapshots:
            raise AssertionError(f"{name} cannot be copied at {cut:g} s: {error} (snapshots = False says so)") from None
        return
    assert snapshots, f"{name} has snapshots = False, but its snapshot is not refused"
    assert begun.snapshot().to_json() == document, f"{name}: a snapshot at {cut:g} s changes the system"
    rest = _rows(simulate(Snapshot.from_json(document, trust=True)))
    for job, (status, begin, end) in rest.items():
        expected = whole[job]
        same = status == expected[0] and all(
            isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) for a, b in zip((begin, end), expected[1:], strict=True)
        )
        assert same, (
            f"{name}, continued from its snapshot at {cut:g} s: job {job} is {status} at {end:g} s, "
            f"it should be {expected[0]} at {expected[2]:g} s ({_HINT})"
        )
