"""The power of processors by phase: setup, reconfiguration, transfer, execution."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given, settings, strategies as st

from simmodel import load_platform, metrics, simulate
from simmodel.foundation.errors import InputError
from simmodel.metrics import energy_by, footprint, power, power_by_state
from simmodel.metrics._examples import two_kinds
from simmodel.metrics.processors import energy, load
from simmodel.platform import PowerSupply, Signal
from simmodel.platform.kinds import to_dict
from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.platform.network import LinkSpec
from simmodel.platform.toml import from_dict
from simmodel.work.taskset import TaskSet


def server(cpu: dict[str, Any], fpga: dict[str, Any]) -> MachineSpec:
    """A core, and an FPGA with setup 2 s and reconfiguration 3 s; 10 bytes move between them in 1 s."""
    common = {"architecture": "any", "idle_power": 1, "load_power": 10}
    return MachineSpec(
        pools=[MemoryPoolSpec(name="ram"), MemoryPoolSpec(name="own")],
        architectures=[ArchitectureSpec(name="any")],
        processors=[
            ProcessorSpec(name="cpu", type="CPUCore", pool="ram", **common, **cpu),
            ProcessorSpec(name="fpga", type="FPGA", pool="own", setup=2, reconfiguration=3, **common, **fpga),
        ],
        links=[LinkSpec(name="bus", bandwidth=10.0, between=("ram", "own"))],
    )


def one() -> TaskSet:
    """A task of 4 s on the FPGA that reads 50 bytes: setup 0-2, reconfiguration 2-5, transfer 5-10, run 10-14."""
    return TaskSet([4.0], implementations=[("FPGA",)], inputs=[(0,)], sizes=[50.0], families=["f"])


@pytest.mark.parametrize(
    ("fpga", "joules"),
    [
        ({}, 14 * 10),
        ({"setup_power": 2}, 2 * 2 + 12 * 10),
        ({"transfer_power": "4W"}, 9 * 10 + 5 * 4),
        ({"setup_power": 2, "reconfiguration_power": 20, "transfer_power": 4}, 2 * 2 + 3 * 20 + 5 * 4 + 4 * 10),
    ],
)
def test_phases_draw_their_own_power_or_else_the_load_power(fpga: dict[str, Any], joules: float) -> None:
    result = simulate(server({}, fpga), one(), "hrr")
    core = 2 * 10 + 12 * 1  # for the setup, and idle
    assert load(result)["energy"].tolist() == [core, joules]
    assert energy(result).total == core + joules
    assert from_dict(to_dict(result.spec)) == result.spec


def test_a_core_that_works_for_others_draws_its_load_power() -> None:
    # The core's own task brings 50 bytes 0-5 and runs 5-6; from 0 to 2 the core sets the FPGA up.
    tasks = TaskSet(
        [1.0, 4.0],
        implementations=[("CPUCore",), ("FPGA",)],
        inputs=[(0,), ()],
        outputs=[(), ()],
        sizes=[50.0],
        families=["f", "f"],
    )
    spec = attrs.evolve(server({"transfer_power": 3}, {}), home="own")
    result = simulate(spec, tasks, "hrr")
    assert result.tasks["end"].tolist() == [6.0, 9.0]
    assert load(result)["energy"][0] == 2 * 10 + 3 * 3 + 1 * 10 + 3 * 1


def test_a_power_is_not_negative() -> None:
    with pytest.raises(InputError, match="setup_power"):
        server({}, {"setup_power": -1})
    assert energy(two_kinds()).total == 141.0


SLOW = load_platform("hetsim-slow-setup")


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_whose_the_energy_of_a_machine_is_adds_up_to_that_of_its_processors(data: st.DataObject) -> None:
    watts = {name: data.draw(st.sampled_from([None, 3.0, 40.5])) for name in ("setup_power", "transfer_power")}
    kinds = [
        attrs.evolve(each, idle_power=3 + i, load_power=20.5 * (i + 1), **watts)
        for i, each in enumerate(SLOW.processors)
    ]
    spec = attrs.evolve(SLOW, processors=kinds, time_unit="s")
    policy = data.draw(st.sampled_from(["hrr", "heft", "earliest-finish"]))
    until = data.draw(st.sampled_from([None, 50.0, 300.0]))
    result = simulate(
        spec, f"layered:n={data.draw(st.integers(1, 30))}", policy, seed=data.draw(st.integers(0, 9)), until=until
    )
    whole = load(result)["energy"]
    assert energy_by(result, "place")["energy"].tolist() == pytest.approx(whole.tolist(), rel=1e-12)
    price = Signal([0, 70, 110], [2.0, 0.5, 1.0], end=1e6)
    for by in ("task", "state", "processor"):
        table = energy_by(result, by, {"price": price})
        assert table["energy"].sum() == pytest.approx(whole.sum(), rel=1e-12)
        assert table["price"].sum() == pytest.approx(footprint(result, price), rel=1e-12)
    assert power(result).integral() == pytest.approx(whole.sum(), rel=1e-12)
    both, before = metrics.energy(result), energy(result)
    assert (both.idle, both.load) == pytest.approx((before.idle, before.load), rel=1e-12)
    parts = power_by_state(result)
    assert sum(each.integral() for each in parts.values()) == pytest.approx(whole.sum(), rel=1e-12)


def test_whose_the_energy_of_a_small_machine_is() -> None:
    """The core: 3 s of a at 11 W, 1 s for b at 11 W, 3 s idle at 1 W. The GPU: 3 s idle at 2 W, 4 s of b at 22 W."""
    result = two_kinds()
    assert energy_by(result)["energy"].tolist() == [33, 11 + 88, 3 + 6]
    assert energy_by(result, "place")["energy"].tolist() == [47, 94]
    assert energy_by(result, "state")["state"].tolist() == ["idle", "load", "setup", "transfer"]
    doubled = PowerSupply(fixed=10, pue=2)
    assert energy_by(result, "place", supply=doubled)["energy"].tolist() == [94, 188, 140]
    with pytest.raises(InputError, match="unknown column of tasks 'user'"):
        energy_by(result, "user")
    result.spec = attrs.evolve(result.spec, time_unit="ms")
    with pytest.raises(InputError, match="signals: must be none: the time of the machine is in ms, not in s"):
        footprint(result, Signal([0], [1], end=9))
