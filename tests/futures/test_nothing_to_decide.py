"""A what-if from a snapshot in which no job waits, and the waits of runs that continue from a snapshot."""

import math

from simmodel import Job, simulate, start, what_if


def test_a_what_if_with_nothing_waiting_says_so():
    found = what_if(start(8, [Job(run=10)], "fcfs").run(until=1).snapshot(), ["fcfs", "easy"])
    assert found.best is None
    assert found.decisions == ()
    text = found.summary()
    assert text.splitlines()[-1] == "no job waits or arrives: nothing to decide"
    assert "nan" not in text
    assert "best:" not in text
    figure = found.plot()
    shown = [text.get_text() for ax in figure.axes for text in ax.texts]
    assert set(shown) == {"no value"}
    assert all(len(ax.get_xticks()) <= 3 for ax in figure.axes)


def test_jobs_that_waited_at_a_snapshot_count():
    snapshot = start(4, [Job(processors=4, run=10), Job(processors=4, run=10)], "fcfs").run(until=5).snapshot()
    metrics = simulate(snapshot).metrics()
    assert (metrics["wait_mean"], metrics["counted"], metrics["outside_window"]) == (10, 1, 1)
    assert math.isfinite(metrics["bounded_slowdown_mean"])
