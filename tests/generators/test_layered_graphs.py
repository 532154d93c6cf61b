"""Random layered graphs: shapes by parameters, and work of the three complexities."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel.formats.daggen import read_daggen, write_daggen
from simmodel.generators.layers import layered
from tests.helpers.examples import up_to


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_same_seed_same_graph() -> None:
    one, two = layered(60, rng=rng(3)), layered(60, rng=rng(3))
    assert one.tasks == two.tasks
    assert one.edges == two.edges
    assert layered(60, rng=rng(4)).edges != one.edges


@pytest.mark.parametrize(("fat", "levels"), [(0, 100), (0.5, 10), (1, 1)])
def test_fat_from_chain_to_one_layer(fat, levels) -> None:
    flow = layered(100, fat=fat, regular=1, rng=rng())
    assert len(flow.levels) == levels
    assert {len(level) for level in flow.levels} == {100 // levels}


def test_density_zero_gives_one_parent() -> None:
    flow = layered(100, density=0, rng=rng())
    assert {len(flow.parents(task)) for level in flow.levels[1:] for task in level} == {1}


def test_density_has_the_mean_number_of_parents() -> None:
    flow = layered(2500, density=0.4, regular=1, rng=rng())  # 50 layers of 50: 1 + the whole part of U(0, 20)
    counts = [len(flow.parents(task)) for level in flow.levels[1:] for task in level]
    assert (min(counts), max(counts)) == (1, 20)
    assert abs(np.mean(counts) - 10.5) < 4 * np.sqrt((20**2 - 1) / 12 / len(counts))


@pytest.mark.parametrize("jump", [0, 1, 4])
def test_jump_limits_how_far_edges_reach(jump) -> None:
    flow = layered(400, fat=0.5, regular=1, density=0.5, jump=jump, rng=rng())
    layer = {task.id: (task.id - 1) // 20 for task in flow}
    spans = {layer[edge.child] - layer[edge.parent] for edge in flow.edges}
    assert spans == set(range(1, max(jump, 1) + 1))


@pytest.mark.parametrize("ccr", [1, 2, 3])
def test_work_and_data_belong_together(ccr) -> None:
    flow = layered(300, ccr=ccr, mindata=2048, maxdata=11264, rng=rng())
    for edge in flow.edges:
        rows = np.sqrt(edge.size / 8)
        assert rows % 1024 == 0
        assert 2048 <= rows <= 11264
        flop = flow[edge.parent].flop
        if ccr == 3:
            assert flop == rows**3
        else:
            factor = flop / rows**2 / (1 if ccr == 1 else 2 * np.log2(rows))
            assert 64 <= factor <= 512
    assert all(0 <= task.serial <= 0.2 for task in flow)


def test_each_edge_has_data_of_its_own() -> None:
    flow = layered(80, rng=rng())
    assert len(flow.files) == len(flow.edges)
    assert all(len(edge.data) == 1 for edge in flow.edges)


@settings(max_examples=up_to(40))
@given(
    n=st.integers(1, 60),
    fat=st.floats(0, 1),
    regular=st.floats(0, 1),
    density=st.floats(0, 1),
    jump=st.integers(0, 5),
    ccr=st.integers(0, 3),
    mindata=st.floats(1, 5000),
    seed=st.integers(0, 1000),
)
def test_any_parameters_give_a_graph_that_daggen_could_have_written(tmp_path_factory, seed, **parameters) -> None:
    flow = layered(**parameters, maxdata=9000, rng=rng(seed))
    assert list(flow.tasks) == list(range(1, parameters["n"] + 1))
    assert flow.order == tuple(flow.tasks)
    folder = tmp_path_factory.mktemp("graphs")
    for form in ("text", "dot"):
        write_daggen(flow, folder / form, form=form)
        back = read_daggen(folder / form)
        assert back.tasks == flow.tasks
        assert back.edges == flow.edges


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"n": 0}, "n: must be a whole number >= 1, got 0"),
        ({"fat": 1.1}, "fat: must be a number from 0 to 1, got 1.1"),
        ({"density": -1}, "density"),
        ({"regular": float("nan")}, "regular"),
        ({"jump": 0.5}, "jump: must be a whole number >= 0"),
        ({"ccr": 4}, "ccr: must be 0, 1, 2 or 3, got 4"),
        ({"mindata": 5, "maxdata": 4}, "mindata: must be > 0 and <= maxdata, got 5 and 4"),
        ({"maxalpha": 2}, "minalpha: must be >= 0 and <= maxalpha <= 1"),
    ],
)
def test_wrong_parameters_are_refused(wrong, said) -> None:
    with pytest.raises(ValueError, match=said):
        layered(**wrong, rng=rng())
