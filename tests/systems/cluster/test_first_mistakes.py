"""A SimPy user's first mistakes with clusters, pools and networks get sentences, or work."""

import pytest
import simpy

from simmodel import Cluster, Environment, InputError, Job, Network, Workload, load_workload, simulate


def test_submitted_jobs_are_events():
    env = Environment()
    cluster = Cluster(env, 4)
    seen = []

    def user(env):
        yield cluster.submit(Job(run=1))
        yield env.all_of([cluster.submit(Job(run=2)), cluster.submit(Job(run=3))])
        seen.append(env.now)

    env.process(user(env))
    env.run()
    assert seen == [4]


def test_a_list_of_jobs_is_a_workload_and_other_lists_are_not():
    env = Environment()
    cluster = Cluster(env, 4)
    cluster.replay([Job(run=3)])
    env.run()
    assert cluster.result().jobs["end"].tolist() == [3]
    with pytest.raises(InputError, match=r"workload: must be a workload, a data frame, jobs or a workflow, got \[3\]"):
        cluster.replay([3])


def test_an_environment_of_simpy_is_refused():
    for make in (lambda env: Network(env, []), lambda env: Cluster(env, 4)):
        with pytest.raises(InputError, match=r"env: must be a simmodel Environment, got simpy\.core\.Environment"):
            make(simpy.Environment())


def test_a_pool_releases_its_claims():
    env = Environment()
    pool = Cluster(env, 4).places[0]
    claim = pool.claim(3)
    env.run()
    assert pool.free == 1
    pool.release(claim)
    assert pool.free == 4


def test_a_misspelled_option_is_told_the_right_one():
    with pytest.raises(InputError, match="unknown option 'sede'; did you mean 'seed'"):
        simulate(4, [Job(run=1)], sede=3)


def test_a_data_frame_is_a_workload():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"submit": [0, 0], "run": [5, 5], "processors": [4, 4]})
    assert (
        simulate(4, frame, "fcfs").jobs["start"].tolist()
        == simulate(4, Workload(frame), "fcfs").jobs["start"].tolist()
        == [0, 5]
    )
    with pytest.raises(InputError, match=r"must be a name or a path .*, got a DataFrame"):
        load_workload(frame)
