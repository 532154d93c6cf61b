"""Parameters and their space: values, ties, paths of scenarios, keywords of functions, errors."""

import re

import numpy as np
import pytest
from hypothesis import given, strategies as st

from simmodel import InputError, Scenario
from simmodel.experiments import Parameter
from simmodel.experiments.parameters import Space
from simmodel.platform import DelaySpec, GridSpec, NodeSpec, SiteSpec

GRID = GridSpec(
    sites=[
        SiteSpec(name="BNL", cores=8, tier=1),
        SiteSpec(name="a.b", hosts=[NodeSpec(count=2, cores=4, speed=2), NodeSpec(cores=8, speed=1)], tier=1),
        SiteSpec(name="small", cores=4, tier=2, overhead=60),
    ]
)
MODEL = Scenario(platform=GRID, workload="probe-4")


@given(st.sampled_from(["linear", "log", "integer", "log-integer"]), st.integers(1, 50), st.integers(1, 500))
def test_values_stay_in_the_range_and_come_back(scale, low, width):
    parameter = Parameter(name="x", low=low, high=low + width, scale=scale)
    assert (parameter.value(0), parameter.value(1)) == (low, low + width)
    for position in np.linspace(0, 1, 7):
        value = parameter.value(position)
        assert parameter.holds(value)
        assert parameter.value(parameter.unit(value)) == pytest.approx(value, rel=1e-12)


def test_whole_numbers_and_choices_have_equal_shares():
    numbers = Parameter(name="n", low=1, high=4, scale="integer")
    positions = (np.arange(4000) + 0.5) / 4000
    assert np.bincount([numbers.value(at) for at in positions]).tolist() == [0, 1000, 1000, 1000, 1000]
    words = Parameter.of("policy", ["fcfs", "easy", "sjf"])
    assert [words.value(words.unit(each)) for each in words.choices] == ["fcfs", "easy", "sjf"]
    assert (words.value(0), words.value(1), words.holds("easy"), words.holds("lifo")) == ("fcfs", "sjf", True, False)


def test_the_middle_of_a_logarithmic_range_is_the_geometric_mean():
    assert Parameter.of("x", (0.5, 4, "log")).value(0.5) == pytest.approx(2**0.5)
    assert Parameter.of("x", [0.5, 4, "log"]).scale == "log"  # as TOML has it
    assert Parameter.of("x", [0.5, 4]).choices == (0.5, 4)
    assert Parameter.of("x", {"low": 1, "high": 9, "scale": "integer"}).value(1) == 9


def test_each_item_has_a_parameter_of_its_own_or_all_share_one():
    tied = Space.of({"sites.*.speed": (0.5, 2)}, MODEL)
    assert [site.speed for site in tied.apply(MODEL, [1]).platform.sites] == [2, 2, 2]
    each = Space.of({"sites.*.speed": (0.5, 2, "each")}, MODEL)
    assert each.names == ["sites.BNL.speed", "sites['a.b'].speed", "sites.small.speed"]
    assert each.groups == {"BNL": [0], "a.b": [1], "small": [2]}
    assert [site.speed for site in each.apply(MODEL, [0, 0.5, 1]).platform.sites] == [0.5, 1.25, 2]
    assert tied.groups == {"": [0]}
    assert each.current(MODEL) == {"sites.BNL.speed": 1, "sites['a.b'].speed": 1.5, "sites.small.speed": 1}
    assert tied.current(MODEL) == {"sites.*.speed": None}


def test_a_tier_has_one_value():
    space = Space.of({"sites[tier=1].overhead": (0, 100), "sites.small.overhead": (10, 20)}, MODEL)
    sites = space.apply(MODEL, [0.5, 1]).platform.sites
    assert [site.overhead for site in sites] == [DelaySpec(mean=50), DelaySpec(mean=50), DelaySpec(mean=20)]
    assert space.current(MODEL) == {"sites[tier=1].overhead": None, "sites.small.overhead": 60}


def test_a_mean_speed_keeps_the_proportions_of_hosts():
    fast = MODEL.evolve({"sites['a.b'].speed": 3}).platform.sites[1]
    assert [host.speed for host in fast.hosts] == [4, 2]
    assert fast.capacity == 16
    both = MODEL.evolve({"sites.BNL.speed": 3, "sites.BNL.cores": 6}).platform.sites[0]
    assert (both.speed, both.capacity) == (3, 6)


def test_keywords_of_a_function_are_parameters():
    def model(speed, overhead=60):
        return speed, overhead

    space = Space.of({"speed": (1, 2), "overhead": (0, 100)}, model)
    assert model(**space.changes(space.values([0.5, 0.5]))) == (1.5, 50)
    assert space.current(model) == {"speed": None, "overhead": 60}
    assert Space.from_document(space.document()) == space


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"sites.BLN.speed": (0.5, 2)}, "platform.sites.BLN.speed: unknown name 'BLN'; did you mean 'BNL'?"),
        ({"sites.BNL.sped": (0.5, 2)}, "unknown field 'sped'; did you mean 'speed'?"),
        ({"sites.BNL.speed": (2, 0.5)}, "sites.BNL.speed: must have low < high, got 2 and 0.5"),
        ({"sites.BNL.speed": (float("nan"), 2)}, "sites.BNL.speed: low: must be a finite number, got nan"),
        ({"sites.BNL.speed": (0, 2, "log")}, "sites.BNL.speed: low: must be > 0 on a logarithmic scale, got 0"),
        ({"sites.BNL.speed": (1, 2, "lg")}, "sites.BNL.speed: unknown scale 'lg'; did you mean 'log'?"),
        ({"sites.BNL.cores": (1.5, 2, "integer")}, "sites.BNL.cores: must have whole bounds, got 1.5 and 2"),
        ({"sites.BNL.speed": (-1, 2)}, "speed: must be a finite number > 0, got -1.0"),
        ({"sites[tier=7].speed": (1, 2)}, "sites[tier=7].speed: no item of sites has tier=7"),
        ({"retries.*.speed": (1, 2)}, "retries.*.speed: retries must have items for '.*', got 0"),
        ({"sites.BNL.speed": "fast"}, "must be (low, high), (low, high, scale) or a list of choices, got 'fast'"),
        ({"sites.BNL.speed": {"low": 1}}, "must have low and high, or choices, got {'low': 1}"),
        ({"sites.BNL.speed": {"lo": 1}}, "unknown key 'lo'; did you mean 'low'?"),
        ({"policy": ["easy", "easy"]}, "policy: choices: must be different values"),
        ({}, "parameters: must be at least one, got none"),
    ],
)
def test_wrong_parameters_are_refused_in_one_sentence(parameters, message):
    with pytest.raises(InputError, match=re.escape(message)):
        Space.of(parameters, MODEL)


def test_an_unknown_keyword_is_refused():
    with pytest.raises(InputError, match=re.escape("parameters: unknown keyword 'sped'; did you mean 'speed'?")):
        Space.of({"sped": (1, 2)}, lambda speed: speed)


def test_two_parameters_of_one_path_are_refused():
    with pytest.raises(InputError, match=re.escape("parameters: duplicate path 'sites.BNL.speed'")):
        Space.of({"sites.*.speed": (1, 2), "sites.BNL.speed": (1, 2)}, MODEL)
