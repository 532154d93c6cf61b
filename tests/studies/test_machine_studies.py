"""The two studies of machines: the effect of setup costs, and of the shape of graphs, on policies."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import networkx as nx
import numpy as np
import pytest

from simmodel import simulate
from simmodel.formats.dax import read_dax
from simmodel.foundation.errors import InputError
from simmodel.generators.layers import sipht
from simmodel.studies.fat import Layers, fat_curve, two_processors
from simmodel.studies.hetsim import CLAIMS, PATSERS, Drawn, setup_study
from tests.helpers.data_files import data_file


def test_the_shape_of_sipht_is_that_of_its_file() -> None:
    read = read_dax(data_file("dax/Sipht_30.xml.gz"))
    made = sipht()
    graphs = []
    for flow in (read, made):
        graph: nx.DiGraph[str] = nx.DiGraph()
        for task in flow:
            graph.add_node(task.id, family=task.family)
        graph.add_edges_from((edge.parent, edge.child) for edge in flow.edges)
        graphs.append(graph)
    assert nx.is_isomorphic(*graphs, node_match=lambda a, b: a["family"] == b["family"])
    with pytest.raises(InputError, match="patsers: must be >= 1"):
        sipht(0)


def test_the_setup_study_draws_the_33_tasks_of_the_paper() -> None:
    assert len(sipht(PATSERS)) == 33
    drawn = Drawn(sipht(PATSERS))(seed=0)
    study = setup_study(["hrr"], seeds=[0], configurations={"slow": "hetsim-slow"})
    assert study.exploration.samples["makespan"][0] == simulate("hetsim-slow", drawn, "hrr").metrics()["makespan"]


@pytest.mark.parametrize(("seeds", "unsure"), [(8, 6), pytest.param(20, 4, marks=pytest.mark.long)])
def test_setup_turns_the_order_of_the_policies_round(seeds: int, unsure: int) -> None:
    study = setup_study(seeds=seeds)
    claims = study.claims
    assert len(claims) == len(CLAIMS)
    assert claims["holds"].tolist() == [True] * len(claims), list(claims.rows())
    # All but those about policies that are nearly equal with slow accelerators are beyond doubt.
    assert sum(claims["sure"]) >= len(claims) - unsure
    table = study.table
    assert len(table) == 16
    assert np.isfinite(table["low"]).all()
    assert study.summary().splitlines()[0].split() == ["SLR", "slow", "fast", "slow,", "setup", "fast,", "setup"]
    # All tasks of every run are done, so each has a makespan.
    assert np.isfinite(study.exploration.samples["makespan"]).all()


def test_an_executor_runs_the_same() -> None:
    alone = setup_study(["hrr", "heft"], seeds=2)
    with ThreadPoolExecutor(2) as executor:
        both = setup_study(["hrr", "heft"], seeds=2, executor=executor)
    assert alone.summary() == both.summary()
    for work in (Drawn(sipht()), Layers(fat=0.5, ccr=1.0)):
        assert type(pickle.loads(pickle.dumps(work))) is type(work)


def test_layers_differ_between_ccrs_in_their_bytes_alone() -> None:
    low, high = (Layers(fat=0.5, ccr=ccr)(seed=3) for ccr in (1.0, 10.0))
    assert low.parents == high.parents
    assert low.run_on == high.run_on
    assert np.allclose(10 * np.array(low.sizes), high.sizes)
    mean_transfer = np.mean([np.mean(Layers(fat=0.5, ccr=1.0)(seed=seed).sizes) for seed in range(30)]) / 1e6
    mean_run = np.mean(
        [list(each.values()) for seed in range(30) for each in Layers(fat=0.5, ccr=1.0)(seed=seed).run_on or []]
    )
    assert mean_transfer == pytest.approx(mean_run, rel=0.05)


def test_fat_graphs_take_two_processors_longer_for_their_critical_path() -> None:
    curve = fat_curve(fats=[0.1, 0.5, 0.9], ccrs=[1.0], seeds=5, shape={"n": 60})
    for policy in curve.policies:
        slr = [curve.slr(fat, 1.0, policy).mean for fat in (0.1, 0.5, 0.9)]
        assert 1 <= slr[0] < slr[1] < slr[2]
    assert curve.difference(0.1, 1.0, "peft", "heft").mean < 0.2
    assert two_processors().home == "memory 0"


@pytest.mark.long  # each picture of machines: tests/view
def test_pictures_of_machine_studies_have_their_panels() -> None:
    pytest.importorskip("matplotlib").use("agg")
    study = setup_study(["hrr", "heft"], seeds=2)
    (panel,) = study.plot().axes
    assert len(panel.patches) == 8
    panels = fat_curve(fats=[0.2, 0.8], ccrs=[0.1, 1.0], seeds=2, shape={"n": 20}).plot().axes
    assert [len(ax.lines) for ax in panels[:2]] == [2, 2]
    assert panels[2].get_ylabel() == "peft less heft"
    assert len(fat_curve(["heft"], fats=[0.2, 0.8], ccrs=[1.0], seeds=1, shape={"n": 20}).plot().axes) == 1
