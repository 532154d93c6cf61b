"""Runs of clusters and grids with a custom part, and the checks that they share."""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose
from typing import Any

from simmodel.foundation.errors import SnapshotError, Stalled
from simmodel.runs import simulate, start
from simmodel.snapshots.snapshot import Snapshot
from simmodel.work.job import Job

__all__ = ["check_jobs"]

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
