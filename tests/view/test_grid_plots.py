"""Pictures of grids show what was measured, at any number of sites, and of runs in which nothing happened."""

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from simmodel import Environment, Job, simulate
from simmodel.foundation.errors import InputError
from simmodel.generators import grid_jobs, tiered_grid
from simmodel.platform import FileSpec, GridSpec, LinkSpec, NetworkSpec, SiteSpec
from simmodel.records import NetworkRecorder
from simmodel.systems.grid.system import Grid

ONE = GridSpec(sites=[SiteSpec(name="only", cores=4)])
WAN = NetworkSpec(links=[LinkSpec(name="wan", bandwidth=2, between=("a", "b"))])
TWO = GridSpec(
    sites=[SiteSpec(name=name, cores=4) for name in "ab"],
    network=WAN,
    files=[FileSpec(name="f", size=20, sites=["a"])],
)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def moved_once():
    grid = Grid(Environment(), TWO, "siloed")
    record = NetworkRecorder(grid.data.network)
    grid.env.observe(record)
    grid.submit(Job(processors=2, run=10, inputs=["f"]), home="b")
    grid.env.run()
    return grid.result(), record


def test_the_heat_map_is_the_exact_mean_of_each_interval():
    result, _ = moved_once()
    values = result.plot.sites().images[0].get_array()
    assert values.shape == (2, 240)
    assert not values[0].any()
    # the file comes at 10, the job holds two of four cores until 20
    assert values[1].tolist() == [0] * 120 + [0.5] * 120
    assert result.plot.sites(["b"]).images[0].get_array().shape == (1, 240)


def test_flows_show_the_bytes_of_each_pair():
    result, _ = moved_once()
    ax = result.plot.flows()
    assert [label.get_text() for label in (*ax.get_yticklabels(), *ax.get_xticklabels())] == ["a", "b"]
    assert ax.images[0].get_array().tolist() == [[20]]
    assert ax.get_title(loc="left") == "20B moved\nsiloed: 1 job, 8 processors"
    every = result.plot.flows(every=True).images[0].get_array()
    assert np.ma.filled(every, 0).tolist() == [[0, 20], [0, 0]]


def test_the_map_colours_by_use_and_draws_what_was_moved():
    result, _ = moved_once()
    ax = result.plot.map()
    lines, sites = ax.collections
    assert sites.get_array().tolist() == [0, 0.25]
    assert len(lines.get_segments()) == 1
    assert len(result.plot.map(edges=0).collections) == 1
    with pytest.raises(InputError, match="edges: must be a whole number >= 0, got -1"):
        result.plot.map(edges=-1)


def test_links_show_their_load():
    result, record = moved_once()
    values = result.plot.links(record).images[0].get_array()
    assert values.shape == (1, 240)
    assert values[0].tolist() == [1] * 120 + [0] * 120
    with pytest.raises(InputError, match="unknown link 'lan'"):
        result.plot.links(record, ["lan"])


def test_the_overview_shows_the_load_of_links_that_were_recorded():
    result, record = moved_once()
    before, after = (result.plot.overview(*given).axes for given in ((), (record,)))
    titles = [ax.get_title(loc="left") for ax in after]
    assert "load of the busiest links" in titles
    assert titles.index("load of the busiest links") > 3
    assert "load of the busiest links" not in [ax.get_title(loc="left") for ax in before]
    drawn = next(ax for ax in after if ax.get_title(loc="left") == "load of the busiest links")
    assert drawn.images[0].get_array()[0].tolist() == [1] * 120 + [0] * 120


def test_unknown_sites_are_refused():
    with pytest.raises(InputError, match="unknown site 'c'"):
        moved_once()[0].plot.sites(["c"])


def results():
    yield "one site", simulate(ONE, [Job(run=10, processors=4)], "round-robin")
    yield "no time", simulate(ONE, [Job(run=0)], "round-robin")
    yield "no jobs", Grid(Environment(), ONE).result()
    spec = tiered_grid(200, files=5, seed=1)
    yield "200 sites", simulate(spec, grid_jobs(spec, 30, seed=1), "round-robin")


RESULTS = dict(results())


@pytest.mark.few(1)
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", RESULTS)
def test_every_picture_is_drawn_without_a_warning(name):
    plots = RESULTS[name].plot
    for draw in (plots.sites, plots.flows, plots.map, plots.overview):
        found = draw()
        (getattr(found, "figure", None) or found).canvas.draw()
    assert not [text for text in found.axes[0].texts if "nan" in text.get_text()]


def test_ticks_of_waits_that_are_all_zero_are_plain_numbers():
    ax = simulate(4, [Job(run=10)], "fcfs").plot.wait_by_bin()
    ticks = ax.get_yticks()
    assert max(ticks) <= 1
    assert min(np.diff(ticks)) >= 0.1
