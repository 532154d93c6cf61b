"""Energy against closed forms."""

import pytest
from hypothesis import given, strategies as st

from simmodel import Job, simulate, start
from simmodel.metrics import Energy, energy, node_energy, power
from simmodel.platform import ClusterSpec, NodeSpec, OutageSpec, PartitionSpec
from simmodel.results import Result
from simmodel.work.table import Table
from tests.helpers.powered_nodes import objects, on_nodes


def test_counted_processors_draw_the_power_given():
    jobs = {"submit": [0, 0], "start": [0, 10], "end": [10, 30], "processors": [4, 2]}
    result = Result(jobs=jobs, processors=4)
    assert energy(result, idle_power=50, load_power=150) == Energy(50 * 4 * 30, 100 * (40 + 40))
    assert energy(result).total == 0
    assert power(result, idle_power=50, load_power=150).integral() == 6000 + 8000


def test_a_node_shared_by_two_executions():
    result = on_nodes([(0, 10, 1, (0,)), (5, 15, 1, (0,))])
    assert energy(result, model="linear") == Energy(100 * 4 * 20, 200 * (10 + 10) / 2)
    assert energy(result, model="node") == Energy(100 * 4 * 20, 200 * 15)
    assert node_energy(result, model="node")["busy"].tolist() == [15, 0, 0, 0]
    assert node_energy(result, model="node")["energy"].tolist() == [2000 + 3000, 2000, 2000, 2000]
    assert power(result, model="node").at([0, 12, 17]).tolist() == [600, 600, 400]
    assert power(result).at([0, 7, 12, 17]).tolist() == [500, 600, 500, 400]


def test_nodes_that_are_down_draw_nothing():
    changes = Table(
        {
            "time": [5.0, 15.0],
            "place": ["rack"] * 2,
            "cause": ["failure", "repair"],
            "processors": [6, 8],
            "down": objects([(3,), ()]),
        }
    )
    result = on_nodes([(0, 10, 4, (0, 1))], changes=changes)
    assert energy(result).idle == 100 * (4 * 20 - 10)
    table = node_energy(result)
    assert table["down"].tolist() == [0, 0, 0, 10]
    assert table["energy"].sum() == energy(result).total
    counted = Result(
        jobs=result.jobs, processors=8, started=0.0, ended=20.0, changes=changes.with_columns(place=["machine"] * 2)
    )
    assert energy(counted, idle_power=1).idle == 8 * 20 - 2 * 10


def test_energy_of_unlike_nodes_is_as_by_hand():
    kinds = {"place": ["rack"] * 3, "node": [0, 1, 2], "processors": [2, 2, 4], "idle_power": [10.0, 10.0, 50.0]}
    kinds = Table({**kinds, "load_power": [20.0, 20.0, 90.0]})
    result = on_nodes([(0, 10, 2, (1,)), (0, 5, 2, (2,))], nodes=3, kinds=kinds)
    found = energy(result)
    assert found.idle == 20 * 70
    assert found.load == 10 * 10 + 5 * 40 * 0.5
    assert energy(result, model="node").load == 10 * 10 + 5 * 40
    assert node_energy(result)["energy"].sum() == found.total


@given(
    st.lists(
        st.tuples(st.integers(0, 15), st.integers(0, 10), st.sets(st.integers(0, 3), min_size=1)),
        min_size=1,
        max_size=12,
    )
)
def test_power_integrates_to_energy_and_nodes_add_up(rows):
    result = on_nodes([(s, s + r, len(n), tuple(sorted(n))) for s, r, n in rows], ended=30.0)
    for model in ("node", "linear"):
        total = energy(result, model=model).total
        assert power(result, model=model).integral() == pytest.approx(total)
        assert node_energy(result, model=model)["energy"].sum() == pytest.approx(total)
    seconds = {(node, t) for s, r, nodes in rows for node in nodes for t in range(s, s + r)}
    assert node_energy(result)["busy"].sum() == len(seconds)


def test_wrong_models_and_places():
    result = on_nodes([(0, 10, 1, (0,))])
    with pytest.raises(ValueError, match="model: must be 'node' or 'linear', got 'cubic'"):
        energy(result, model="cubic")
    with pytest.raises(ValueError, match="a place with identified nodes"):
        node_energy(Result(jobs=result.jobs, processors=4))


def test_the_energy_of_nodes_begins_with_the_record():
    nodes = PartitionSpec(name="p", nodes=[NodeSpec(count=2, cores=4, idle_power=1, load_power=5)])
    jobs = [Job(processors=4, run=100), Job(processors=4, run=50, submit=60)]
    cut = start(ClusterSpec(partitions=[nodes]), jobs, "easy").run(until=20).snapshot()
    result = simulate(cut)
    assert (result.started, node_energy(result)["busy"].tolist()) == (20, [80, 50])
    assert node_energy(result)["energy"].sum() == energy(result).total == 90 * 2 + 4 * 130
    away = OutageSpec(at=0, until=40, nodes=[0], kind="maintenance")
    result = simulate(ClusterSpec(partitions=[nodes], outages=[away]), [Job(run=10, submit=30)], "easy")
    assert (result.started, node_energy(result)["down"].tolist()) == (30, [10, 0])
    assert node_energy(result)["energy"].sum() == energy(result).total
