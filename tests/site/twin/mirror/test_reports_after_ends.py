"""Full reports that come after the end of a job was told by itself."""

from typing import Any

import attrs

from simmodel_site.twin import Demand, Ended, JobReport, Mirror, StateReport, Submitted

REQUEST = Demand(processors=2, requested=60.0)
ABOUT: dict[str, Any] = {"cluster": "alps", "job": 1, "submit": 0.0}


def report(**about: Any) -> StateReport:
    job = JobReport(job=1, submit=0.0, **{"request": REQUEST, "state": "completed", **about})
    return StateReport(cluster="alps", time=9.0, jobs=(job,))


def ended_unseen() -> Mirror:
    """Return a mirror that was told of a job's submission and end, but not of its start."""
    mirror = Mirror(4, "alps")
    mirror.apply(Submitted(**ABOUT, time=0.0, request=REQUEST))
    mirror.apply(Ended(**ABOUT, time=7.0))
    return mirror


def test_a_start_that_was_not_told_is_learnt_after_the_end() -> None:
    mirror = ended_unseen()
    assert mirror.apply(report(started=6.0, ended=7.0))
    entry = mirror.entry(1)
    assert entry is not None
    assert (entry.state.phase, entry.state.first_start, entry.state.ended) == ("over", 6.0, 7.0)
    assert not mirror.apply(report(started=6.0, ended=7.0))


def test_a_job_that_never_started_stays_so() -> None:
    mirror = ended_unseen()
    assert not mirror.apply(report(state="cancelled", ended=7.0))


def test_the_request_of_a_job_that_is_over_does_not_change() -> None:
    mirror = ended_unseen()
    assert not mirror.apply(report(request=attrs.evolve(REQUEST, processors=1), ended=7.0))
