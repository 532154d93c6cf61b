"""What-ifs of random snapshots, compared with clusters that begin with the same jobs."""

from hypothesis import given, settings, strategies as st

from simmodel import Branch, Cluster, Environment, Job, simulate, what_if
from simmodel.snapshots import ClusterSnapshot
from tests.helpers.examples import up_to
from tests.helpers.small_snapshots import starts

SIZES = st.integers(1, 8)
POLICIES = ("fcfs", "easy", "conservative")


@st.composite
def snapshots(draw: st.DrawFn) -> ClusterSnapshot:
    """Draw a cluster of 8 processors at an instant at which some jobs run and some wait."""
    env = Environment()
    cluster = Cluster(env, 8, draw(st.sampled_from(POLICIES)), decide_on=draw(st.sampled_from(("instant", "event"))))
    for _ in range(draw(st.integers(1, 12))):
        requested = draw(st.integers(1, 60))
        cluster.submit(Job(processors=draw(SIZES), run=draw(st.integers(1, requested)), requested=requested))
        if draw(st.booleans()):
            env.run(until=env.now + draw(st.integers(1, 20)))
    env.run(until=env.now + 0.5)  # between events
    return cluster.snapshot()


def begun_anew(snapshot: ClusterSnapshot, policy: str) -> dict[object, float]:
    """Return the starts of the waiting jobs on a new cluster, on which running jobs end as expected."""
    now = snapshot.now
    left = [Job(id=run.id, processors=run.work.processors, run=run.expected_end - now) for run in snapshot.running]
    waiting = [Job(id=work.id, processors=work.processors, run=work.requested) for work in snapshot.waiting]
    jobs = simulate(8, [*left, *waiting], policy).jobs
    found = dict(zip(jobs["job"].tolist(), jobs["start"].tolist(), strict=True))
    return {work.id: now + found[work.id] for work in snapshot.waiting}


@settings(max_examples=up_to(150), deadline=None)
@given(snapshots())
def test_a_future_is_that_of_a_cluster_that_begins_so(snapshot: ClusterSnapshot) -> None:
    found = what_if(snapshot, POLICIES)
    for policy in POLICIES:
        assert starts(found[policy]) == begun_anew(snapshot, policy)
        assert found[policy].unstarted == 0


@settings(max_examples=up_to(60), deadline=None)
@given(snapshots(), st.integers(1, 200), st.sampled_from(POLICIES), st.sampled_from(POLICIES))
def test_a_policy_that_follows_decides_from_its_instant_on(
    snapshot: ClusterSnapshot, after: int, first: str, second: str
) -> None:
    at = snapshot.now + after + 0.25  # jobs that end at the instant of a snapshot are expected to end just after it
    found = what_if(snapshot, {"first": first, "both": Branch(first).switch(at, second)})
    alone, both = starts(found["first"]), starts(found["both"])
    assert {job: start for job, start in both.items() if start < at} == {
        job: start for job, start in alone.items() if start < at
    }
    env = Environment(snapshot.now)
    cluster = Cluster.from_snapshot(env, snapshot.expected(), first)
    env.run(until=at)
    assert both == {**{job: start for job, start in alone.items() if start < at}, **begun_anew_at(cluster, second)}


def begun_anew_at(cluster: Cluster, policy: str) -> dict[object, float]:
    """Return the starts of the jobs that wait now."""
    return starts(what_if(cluster.snapshot(), [policy])[policy])
