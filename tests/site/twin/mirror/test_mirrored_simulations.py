"""The mirrors of random simulated clusters: failures, reservations, limits, preemption, bodies."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given, settings, strategies as st

from simmodel import Cluster, Environment, Workload
from simmodel.foundation.errors import ImpossibleWork, Stalled
from simmodel_site.twin import Mirror
from simmodel_site.twin.sources.log import EventsOf
from tests.helpers.cluster_cases import UNTIL, Case, Restless, cases
from tests.helpers.examples import up_to
from tests.site.helpers.told_events import check


def submit_all(env: Environment, cluster: Cluster, case: Case) -> None:
    if case.way != "script":
        cluster.replay(Workload.from_jobs(case.jobs))
        return

    def user() -> None:
        for job in case.jobs:
            with suppress(ImpossibleWork):
                yield env.timeout(max(0.0, job.submit - env.now))
                cluster.submit(job)

    env.process(user())


@given(
    cases(),
    st.sampled_from(["easy", "fcfs", "restless"]),
    st.lists(st.sampled_from([0.5, 2.5, 6.5, 15.5, 40.5]), max_size=4),
)
@settings(max_examples=up_to(60), deadline=None)
def test_the_same_jobs_run_on_the_same_nodes(case: Case, policy: str, cuts: list[float]) -> None:
    env = Environment(seed=case.seed)
    cluster = Cluster(env, case.spec, Restless() if policy == "restless" else policy, **case.options)
    mirror = Mirror(case.spec, cluster.name)
    env.observe(EventsOf(cluster, mirror.apply))
    submit_all(env, cluster, case)
    for cut in [*sorted(set(cuts)), UNTIL]:
        with suppress(Stalled):
            env.run(until=cut)
        mirror.advance(cut)
        check(mirror, but=("places", "planned"))  # past windows of reservations are kept until they are built anew
        own, mine = cluster.snapshot(actual=False), mirror.snapshot()
        assert sorted((run.id, run.started, run.place, run.nodes) for run in mine.running) == sorted(
            (run.id, run.started, run.place, run.nodes) for run in own.running
        )
        assert {work.id for work in mine.works} <= {work.id for work in own.works}
