"""The incremental load of a cluster equals the load computed from all its jobs, exactly."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, strategies as st

from simmodel import Cluster, Environment, Job

UNIT = 2**20
SECONDS = st.integers(1, 64).map(lambda eighths: eighths / 8)
JOBS = st.lists(st.tuples(SECONDS, SECONDS, SECONDS, st.integers(1, 4)), min_size=1, max_size=12)


def exact(cluster: Cluster) -> tuple[int, Fraction, Fraction]:
    """Return the number of waiting jobs and the waiting and running work, computed in fractions."""
    now = Fraction(cluster.env.now)
    waiting = list(cluster.view.waiting)
    queued = sum((Fraction(job.expected) * job.processors for job in waiting), Fraction())
    ends = [(Fraction(run.expected_end), run.job.processors) for run in cluster.view.running]
    return len(waiting), queued, sum(((end - now) * processors for end, processors in ends if end > now), Fraction())


@given(jobs=JOBS, asked=st.lists(SECONDS, min_size=1, max_size=8), overrun=st.sampled_from(["stop", "continue"]))
def test_load_is_the_exact_sum_whenever_it_is_first_asked_for(jobs, asked, overrun):
    env = Environment()
    cluster = Cluster(env, 4, "easy", overrun=overrun)

    def submit(wait, run, requested, processors):
        yield env.timeout(wait)
        cluster.submit(Job(run=run, requested=requested, processors=processors))

    for job in jobs:
        env.process(submit(*job))
    for at in sorted(set(asked)):
        env.run(until=at)
        queued, work, left = exact(cluster)
        load = cluster.load
        assert (load.free, load.queued) == (cluster.free, queued)
        assert (load.queued_work, load.running_work) == (work * UNIT, left * UNIT)
        assert cluster.queueing.queued.processors == sum(job.processors for job in cluster.view.waiting)
    env.run()
    assert cluster.load == (4, 0, 0, 0)
