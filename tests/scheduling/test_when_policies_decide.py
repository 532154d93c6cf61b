"""When the scheduler asks a policy, how it counts the time of the answers, and what is left when all work has ended."""

from itertools import count

import pytest

from simmodel import Job, Policy, Start, start
from simmodel.scheduling import scheduler
from simmodel.scheduling.protocol import WakeAt


class Fitting(Policy):
    """Start what fits, and keep the instants of all decisions."""

    name = "fitting"
    decides = "jobs"

    def __init__(self):
        self.asked = []

    def decide(self, view):
        self.asked.append(view.now)
        for job in view.waiting:
            if view.places[0].fits(job):
                yield Start(job, view.places[0])


class EverySubmission(Fitting):
    name = "every submission"
    tries_every_submission = True


JOBS = [Job(run=10), Job(submit=5, run=1)]


@pytest.mark.parametrize(("policy", "asked"), [(Fitting(), [0, 10]), (EverySubmission(), [0, 5, 10])])
def test_job_by_job_only_policies_that_ask_for_it_decide_on_jobs_that_do_not_fit(policy, asked):
    sim = start(1, JOBS, policy, decide_on="event").run()
    assert sim.result().jobs["start"].tolist() == [0, 10]
    assert sim.system.scheduler.policy.asked == asked


def test_the_time_of_decisions_is_that_inside_the_policy(monkeypatch):
    """On a clock that moves by 1 s at each look, each decision takes 1 s, and so does the end of each answer."""
    ticks = count(1000.0)
    monkeypatch.setattr(scheduler, "perf_counter", lambda: next(ticks))
    sim = start(2, [Job(run=10), Job(run=10), Job(submit=20, run=10)], Fitting()).run()
    timing = sim.system.scheduler.timing()
    assert timing == {"count": 2, "seconds": 3 + 2, "mean": 2.5, "min": 2, "max": 3}


def test_a_wake_up_at_the_last_end_is_not_left_over():
    """The policy asks to be woken every 10 s; the only job ends at 20, and so does the run."""

    def every_ten_seconds(view):
        for job in view.waiting:
            yield Start(job, view.places[0])
        yield WakeAt(view.now + 10)

    sim = start(1, [Job(run=20)], every_ten_seconds).run()
    assert sim.env.now == 20
    assert not sim.snapshot().policy.asked
