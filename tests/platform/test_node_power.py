"""What nodes draw: the two numbers and the states, their documents, and wrong ones."""

import json
from typing import Any

import numpy as np
import pytest

from simmodel.foundation.errors import InputError
from simmodel.generators import choice, exponential, gamma, hyper_exponential
from simmodel.generators.distributions import DISTRIBUTIONS, distribution, log_normal, uniform, weibull
from simmodel.platform import ClusterSpec, NodePower, NodeSpec, PartitionSpec, from_dict, to_dict
from simmodel.platform.toml import read_toml, write_toml

TAURUS: dict[str, Any] = {"idle": 95, "load": 190.7, "off": 9.75, "boot": ("150s", 125), "stop": ("6s", 101)}


def test_power_says_the_two_numbers() -> None:
    node = NodeSpec(power=NodePower(**TAURUS))
    assert (node.idle_power, node.load_power, node.watts) == (95, 190.7, node.power)
    short = NodeSpec(idle_power="95W", load_power=190.7)
    assert short.power is None
    assert short.watts == NodePower(idle=95, load=190.7)
    with pytest.raises(InputError, match="idle_power: must be 95, as power says, got 50"):
        NodeSpec(power=NodePower(**TAURUS), idle_power=50)
    with pytest.raises(InputError, match="power: must be a NodePower, got 95"):
        NodeSpec(power=95)  # type: ignore[arg-type]


@pytest.mark.parametrize("boot", [("150s", "125W"), (exponential(150.0), 125), (gamma(150.0, 0.5), 125)])
def test_documents_keep_power(boot: Any, tmp_path: Any) -> None:
    levels = [(1.0, 190.7), (0.8, 142.9)]
    power = NodePower(**{**TAURUS, "boot": boot}, levels=levels, boot_failures=0.01, boot_repair="1h", model="node")
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=4, power=power), NodeSpec(name="thin")])])
    assert from_dict(json.loads(json.dumps(to_dict(spec)))) == spec
    write_toml(spec, tmp_path / "mine.toml")
    assert read_toml(tmp_path / "mine.toml") == spec


def test_documents_take_units() -> None:
    given = {"idle": "95W", "load": "190.7W", "off": 9.75, "boot": ["150s", "125W"], "stop": ["6s", 101]}
    document: Any = {"kind": "cluster", "partitions": [{"nodes": [{"power": given}]}]}
    assert from_dict(document).partitions[0].nodes[0].power == NodePower(**TAURUS)
    given["boot"] = ["soon", 125]
    with pytest.raises(InputError, match=r"partitions\[0\]\.nodes\[0\]\.power\.boot\[0\]: must be a quantity in s"):
        from_dict(document)


def test_times_are_drawn_from_distributions() -> None:
    power = NodePower(boot=({"distribution": "exponential", "mean": 150}, 125), stop=(6, 101))
    drawn = [power.draw_boot(np.random.default_rng(seed)) for seed in range(2000)]
    assert power.expected_boot == 150
    assert np.mean(drawn) == pytest.approx(150, rel=0.1)
    assert power.draw_stop(np.random.default_rng(1)) == power.expected_stop == 6
    with pytest.raises(InputError, match=r"boot\[0\]: must be finite and >= 0, got a draw of -1"):
        NodePower(boot=(choice([-1.0]), 125)).draw_boot(np.random.default_rng(1))


def test_each_distribution_is_made_again_from_its_document() -> None:
    given = [exponential(2.0), uniform(1, 2), gamma(2.0, 0.5), weibull(2.0, 0.7), log_normal(2.0, 1.5)]
    given += [hyper_exponential(2.0, 2.0), choice([1, 2], [0.25, 0.75]), DISTRIBUTIONS["deterministic"](3)]
    assert {each.name for each in given} == set(DISTRIBUTIONS)
    for each in given:
        again = distribution(json.loads(json.dumps(each.document)))
        assert again == each
        first, second = np.random.default_rng(1), np.random.default_rng(1)
        assert (again.draw(first, 5) == each.draw(second, 5)).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"idle": -1}, "idle: must be a finite number of watts >= 0, got -1"),
        ({"load": True}, "load: must be a finite number of watts >= 0, got True"),
        ({"asleep": True}, "boot: must be given with asleep: only a node that boots can be off"),
        ({"boot": (9, 1), "boot_limit": -1}, "boot_limit: must be a finite time >= 0, got -1"),
        ({"boot": 150}, r"boot: must be a time and watts, such as \('150s', 125\), got 150"),
        ({"boot": ("-1s", 125)}, r"boot\[0\]: must be .*, got '-1s'"),
        ({"boot": (150, -125)}, r"boot\[1\]: must be a finite number of watts >= 0, got -125"),
        ({"boot": ({"distribution": "gama"}, 1)}, r"boot\[0\]: unknown distribution 'gama'"),
        ({"stop": (6, 101)}, "boot: must be given with stop: only a node that boots can be off"),
        ({"off": 9.75}, "boot: must be given with off: only a node that boots can be off"),
        ({"boot": (1, 1), "boot_failures": 2}, "boot_failures: must be a probability from 0 to 1, got 2"),
        ({"boot": (1, 1), "boot_repair": "soon"}, "boot_repair: must be a finite time >= 0, got 'soon'"),
        ({"model": "cubic"}, "model: must be 'linear' or 'node', got 'cubic'"),
        ({"levels": [(0.8, 1), (1.0, 2)]}, r"levels\[1\]\[0\]: must be lower than the frequency before it, 0.8, got 1"),
        ({"levels": [(0, 1)]}, r"levels\[0\]\[0\]: must be a finite relative frequency > 0, got 0"),
        ({"levels": [(1, -1)]}, r"levels\[0\]\[1\]: must be a finite number of watts >= 0, got -1"),
        ({"levels": [1, 0.8]}, "levels: must be relative frequencies and watts, such as"),
        ({"load": 5, "levels": [(1, 4)]}, "load: must be 4, that of the first of the levels, got 5"),
    ],
)
def test_wrong_powers(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        NodePower(**given)
