"""Records of networks, and their plots."""

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError
from simmodel.platform.network import LinkSpec
from simmodel.records.network_recorder import NetworkRecorder
from simmodel.resources.network.network import Network
from simmodel.view.network_plots import link_load, transfer_times


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def observed(*links, **options):
    network = Network(Environment(seed=3), links, **options)
    record = NetworkRecorder(network)
    network.env.observe(record)
    return network, record


def link(name, bandwidth=100.0, **options):
    return LinkSpec(name=name, bandwidth=bandwidth, **options)


def test_loads_bytes_and_utilisation_by_hand():
    network, record = observed(link("a"), link("b"), link("f", 80, sharing="fatpipe"), link("idle"))
    env = network.env
    network.transfer(400, route=["a", "f"])
    network.transfer(600, route=["a", "b"])
    env.run(until=8)  # 50 and 50
    network.fail("a")
    env.run(until=10)
    network.restore("a")
    env.run(until=20)  # the second has 200 left, at 100 until 12
    rows = {row.pop("link"): row for row in record.links().rows()}
    assert rows == {
        "a": {"bytes": 1000, "utilisation": pytest.approx(1000 / 1800), "busy": 10, "peak": 100},
        "b": {"bytes": 600, "utilisation": pytest.approx(0.3), "busy": 10, "peak": 100},
        "f": {"bytes": 400, "utilisation": pytest.approx(0.25), "busy": 8, "peak": 50},
        "idle": {"bytes": 0, "utilisation": 0, "busy": 0, "peak": 0},
    }
    assert record.load("a").at([0, 8, 9, 11, 13]).tolist() == [100, 0, 0, 100, 0]
    assert record.capacity("a").at([0, 8, 10]).tolist() == [100, 0, 100]
    loads = record.loads()
    assert loads["time"].tolist() == sorted(loads["time"].tolist())
    assert loads.where(loads["link"] == "f")["load"].tolist() == [50, 0]
    assert loads.where(loads["link"] == "f")["utilisation"].tolist() == [0.625, 0]


def test_transfers_beside_their_time_alone():
    network, record = observed(link("a", latency=1, between=("x", "y")))
    env = network.env
    first, second = (network.transfer(size, source="x", destination="y") for size in (100, 300))
    env.run(until=2)
    second.cancel()
    env.run(until=3.5)
    network.transfer(1000, route=["a"])
    env.run(until=4)
    table = record.transfers()
    assert (table["source"].tolist(), table["route"].tolist()) == (["x", "x", ""], ["a", "a", "a"])
    assert table["status"].tolist() == ["done", "cancelled", "waiting"]
    assert table["bytes"].tolist() == [100, 50, 0]
    assert table["alone"].tolist() == [2, 4, 11]
    np.testing.assert_array_equal(table["end"], [2.5, 2, np.nan])
    np.testing.assert_array_equal(table["queueing"], [0.5, np.nan, np.nan])
    assert first.end == 2.5


def test_a_profile_counts_while_the_link_is_idle_too():
    network, record = observed(link("a", profile=[(5, 50), (10, 100)], repeat=20))
    network.env.run(until=40)
    assert record.capacity("a").integral() == 2 * (15 * 100 + 5 * 50)
    transfer = network.transfer(1000, route=["a"])
    network.env.run(until=60)
    assert transfer.end == 52.5
    assert record.capacity("a").integral() == 3 * (15 * 100 + 5 * 50)
    assert record.load("a").integral() == 1000


def test_only_its_own_network_is_recorded():
    network, record = observed(link("a"))
    other = Network(network.env, [link("a")])
    other.transfer(100, route=["a"])
    network.env.run()
    assert len(record.transfers()) == 0
    assert record.links()["bytes"].tolist() == [0]
    with pytest.raises(InputError, match="unknown link 'z'"):
        record.load("z")


def test_recording_may_begin_in_the_middle():
    network = Network(Environment(), [link("a"), link("f", 30, sharing="fatpipe")])
    env = network.env
    network.transfer(600, route=["a", "f"])
    env.run(until=10)
    record = NetworkRecorder(network)
    env.observe(record)
    env.run(until=25)
    assert record.links()["bytes"].tolist() == [300, 300]
    assert record.links()["busy"].tolist() == [10, 10]
    assert len(record.transfers()) == 1


@pytest.mark.parametrize("crosstraffic", [False, True])
def test_bytes_over_links_are_those_of_the_transfers(crosstraffic):
    links = [
        link(name, 1e6, latency=0.01, sharing=sharing)
        for name, sharing in zip("abcd", ["shared"] * 3 + ["fatpipe"], strict=True)
    ]
    network, record = observed(*links, crosstraffic=crosstraffic)
    env = network.env
    rng = env.rng("transfers")

    def source(env):
        for _ in range(300):
            yield env.timeout(rng.exponential(0.5))
            network.transfer(rng.exponential(3e5), route=rng.permutation(list("abcd"))[: rng.integers(1, 4)].tolist())

    env.process(source(env))
    env.run()
    table = record.transfers()
    carried = dict(zip(record.links()["link"], record.links()["bytes"], strict=True))
    for name in "abcd":
        on = np.array([name in route.split() for route in table["route"]])
        over = table["size"][on].sum() * (1.05 if crosstraffic and name != "d" else 1)
        assert carried[name] == pytest.approx(over, rel=1e-9)
    assert (table["queueing"] >= 0).all()
    assert (table["queueing"] > 0).any()
    assert (record.links()["utilisation"] <= 1 + 1e-9)[:3].all()
    # Both kinds of plots, and a long record.
    assert link_load(record).get_ylim()[1] == pytest.approx(1.05)
    assert link_load(record, ["a"]).get_ylabel() == "load of a (MBps)"
    assert transfer_times(record).get_xlabel() == "time alone"


def test_pictures_of_few_or_no_transfers_are_drawn():
    network, record = observed(link("a"), link("b"))
    assert link_load(record).get_ylabel() == "load, part of the capacity"
    transfer_times(record)
    network.transfer(100, route=["a"])
    network.transfer(300, route=["a"])
    network.env.run()
    _, ax = plt.subplots()
    assert link_load(record, ["a", "b"], ax=ax) is ax
    ax = transfer_times(record)
    assert [bar.get_width() for bar in ax.patches] == [1, 3, 1, 1]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["1", "3"] or len(ax.get_yticklabels()) == 2
