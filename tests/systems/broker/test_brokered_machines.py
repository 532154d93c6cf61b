"""Brokers over machines: sets of tasks, also cut by a snapshot and continued."""

import numpy as np
import pytest

from simmodel import Environment, Job
from simmodel.catalogue import load_platform
from simmodel.foundation.errors import ImpossibleWork, InputError
from simmodel.snapshots.snapshot import Snapshot
from simmodel.systems.broker.system import Broker
from simmodel.systems.cluster.system import Cluster
from simmodel.systems.machine.system import Machine
from simmodel.work.taskset import TaskSet
from simmodel.work.workflow import Task, Workflow


def machines(env: Environment, *names: str) -> list[Machine]:
    return [Machine(env, load_platform("hetsim-slow"), "hrr", name=name) for name in names]


def chain(name: str, *seconds: float) -> Workflow:
    tasks = [Task(id=f"{name}{i}", run=run) for i, run in enumerate(seconds)]
    edges = [(tasks[i].id, tasks[i + 1].id, 1e6) for i in range(len(tasks) - 1)]
    return Workflow(tasks, edges, name=name)


def house(policy: str) -> Broker:
    """A broker over a machine and a broker over two, with seven submissions."""
    env = Environment(seed=2)
    inner = Broker(env, machines(env, "b", "c"), policy, name="inner")
    outer = Broker(env, [*machines(env, "a"), inner], policy, name="outer")
    for i in range(7):
        outer.submit(chain(f"w{i}", 3.0 + i, 8.0, 2.5 * i + 1), "a" if i % 2 else None, at=2.0 * i)
    return outer


def test_sets_of_tasks_go_to_machines_as_a_whole() -> None:
    env = Environment()
    broker = Broker(env, machines(env, "a", "b"), "round-robin")
    seen = []

    def user(env):
        first, second = broker.submit(chain("x", 5, 5)), broker.submit(TaskSet([4.0, 4.0, 4.0], name="y"))
        yield second
        seen.append((env.now, second.state, second.destination.name, first.state))
        yield first
        seen.append((env.now, first.state, first.destination.name))

    env.process(user(env))
    env.run()
    assert seen == [(4, "completed", "b", "running"), (seen[1][0], "completed", "a")]
    assert seen[1][0] >= 10
    result = broker.result()
    assert result.submissions["submission"].tolist() == ["x", "y"]
    assert result.submissions["end"].tolist() == [seen[1][0], 4.0]
    assert result.tasks["place"].tolist() == ["a", "a", "b", "b", "b"]
    assert len(result.places["b"].tasks) == 3
    assert broker.unfinished == 0
    assert not broker.view.running


@pytest.mark.few(5)
@pytest.mark.parametrize("policy", ["sgs-t", "round-robin", "random"])
@pytest.mark.parametrize("cut", [0.5, 3, 6.25, 12, 17, 24])
def test_a_broker_over_machines_is_cut_and_continued(policy: str, cut: float) -> None:
    whole = house(policy)
    whole.env.run()
    done = whole.result().submissions
    assert set(done["status"].tolist()) == {"completed"}
    assert set(done["destination"].tolist()) == {"a", "inner"}
    part = house(policy)
    part.env.run(until=cut)
    snapshot = part.snapshot()
    read = Snapshot.from_json(snapshot.to_json())
    assert read == snapshot
    again = Broker.from_snapshot(Environment(cut, seed=2), read)
    again.env.run()
    rest = again.result().submissions
    left = np.isin(done["submission"], rest["submission"])
    assert left.sum() == len(rest) == sum(not end <= cut for end in done["end"].tolist())
    for column in ("submission", "submit", "end", "destination", "origin", "status"):
        assert done[column][left].tolist() == rest[column].tolist(), column
    part.env.run()
    assert part.result().submissions["end"].tolist() == done["end"].tolist()


def test_the_estimate_is_when_the_tasks_would_be_done() -> None:
    env = Environment()
    a, b = machines(env, "a", "b")
    broker = Broker(env, [a, b], "sgs-t")
    a.submit(TaskSet([50.0] * 40))
    env.run(until=1)
    work = chain("x", 5, 5)
    assert broker.estimate(work).finish == b.estimate(work).finish < a.estimate(work).finish
    b_says = b.estimate(work).finish
    job = broker.submit(work)
    env.run()
    assert job.destination.name == "b"
    assert broker.result().submissions["expected_end"][0] == b_says


def test_what_does_not_go_together_is_refused() -> None:
    env = Environment()
    (machine,) = machines(env, "a")
    with pytest.raises(InputError, match="systems: must all run jobs or all run tasks; a runs tasks, c runs jobs"):
        Broker(env, [machine, Cluster(env, 4, name="c")])
    with pytest.raises(InputError, match="slowdowns: a runs tasks; slowdowns apply to jobs only"):
        Broker(env, [machine], slowdowns=[2])
    broker = Broker(env, [machine])
    with pytest.raises(InputError, match="work: must be a Workflow or a TaskSet, got Job"):
        broker.submit(Job(run=1))
    with pytest.raises(InputError, match="work: must be a Job, got"):
        Broker(env, [Cluster(env, 4)]).submit(TaskSet([1.0]))
    impossible = TaskSet([1.0], implementations=[("Quantum",)], name="q")
    assert "Quantum" in broker.why_not(impossible)
    with pytest.raises(ImpossibleWork, match=r"set q: .*Quantum"):
        broker.submit(impossible)
