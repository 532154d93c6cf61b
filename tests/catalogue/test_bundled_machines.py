"""The bundled machines: their figures, and round trips through TOML and HetSim's XML."""

from itertools import permutations

import pytest

from simmodel.catalogue import load_platform
from simmodel.catalogue.platforms import platform_names
from simmodel.formats.hetsim import read_hetsim, write_hetsim
from simmodel.platform.machine import MachineSpec
from simmodel.platform.toml import read_toml, write_toml

# name: processors by type, pools, bytes of all pools
MACHINES = {
    "a100x4": ({"CPUCore": 64, "GPU": 4}, 5, 832e9),
    "fpga-server": ({"CPUCore": 64, "FPGA": 1}, 3, 552e9),
    "hetsim-fast": ({"CPUCore": 8, "GPU": 2, "FPGA": 1}, 4, 160 * 2**30),
    "hetsim-fast-setup": ({"CPUCore": 8, "GPU": 2, "FPGA": 1}, 4, 160 * 2**30),
    "hetsim-sample": ({"CPUCore": 2, "GPU": 1, "FPGA": 1}, 2, 40000.5e6),
    "hetsim-slow": ({"CPUCore": 8, "GPU": 2, "FPGA": 1}, 4, 160 * 2**30),
    "hetsim-slow-setup": ({"CPUCore": 8, "GPU": 2, "FPGA": 1}, 4, 160 * 2**30),
    "multicore-2x10": ({"CPU": 2}, 2, 16 * 2**30),
    "upmem-4": ({"CPUCore": 16, "UPMEM": 4}, 5, 256e9 + 256 * 64e6),
    "xeon-2s": ({"CPUCore": 80}, 2, 512e9),
}
MACHINE_NAMES = [name for name in platform_names() if isinstance(load_platform(name), MachineSpec)]


def test_every_ready_machine_is_tested() -> None:
    assert sorted(MACHINES) == MACHINE_NAMES


@pytest.mark.parametrize("name", MACHINES)
def test_ready_machines_have_their_processors(name) -> None:
    spec = load_platform(name)
    kinds = [each.type for _, each in spec.each_processor()]
    assert ({kind: kinds.count(kind) for kind in spec.types}, len(spec.pools)) == MACHINES[name][:2]
    assert sum(pool.size for pool in spec.pools) == MACHINES[name][2]
    assert "eference processor is" in spec.description or spec.time_unit != "s" or name == "multicore-2x10"
    powers = [(each.idle_power, each.load_power) for each in spec.processors]
    assert all(idle < load for idle, load in powers) or not any(load for _, load in powers)


@pytest.mark.parametrize("name", MACHINES)
def test_ready_machines_are_written_and_read(name, tmp_path) -> None:
    spec = load_platform(name)
    write_toml(spec, tmp_path / "x.toml")
    assert read_toml(tmp_path / "x.toml") == spec
    write_hetsim(spec, tmp_path / "x.xml")
    back = read_hetsim(tmp_path / "x.xml")
    assert [each for each, _ in back.each_processor()] == [each for each, _ in spec.each_processor()]
    assert (back.name, back.description, back.source, back.time_unit) == (
        spec.name,
        spec.description,
        spec.source,
        spec.time_unit,
    )
    assert {pool.name: pool.size for pool in back.pools} == {pool.name: pool.size for pool in spec.pools}


@pytest.mark.parametrize("speed", ["slow", "fast"])
@pytest.mark.parametrize("setup", [False, True])
def test_the_machine_of_hetsims_experiment(speed, setup) -> None:
    spec = load_platform(f"hetsim-{speed}{'-setup' if setup else ''}")
    doubled = 1 if speed == "slow" else 2
    assert {each.name: each.performance for each in spec.architectures} == {
        "core": (1, 1),
        "igpu": (0.8, 2.2 * doubled),
        "gpu": (1.1, 3.6 * doubled),
        "fpga": (1.2, 4.0 * doubled),
    }
    placed = [(each.architecture, each.pool, each.count, each.setup, each.reconfiguration) for each in spec.processors]
    assert placed == [
        ("core", "node0", 4, 0, (0, 0)),
        ("core", "node1", 4, 0, (0, 0)),
        ("igpu", "node0", 1, 100 * setup, (0, 0)),
        ("gpu", "gpu-memory", 1, 120 * setup, (0, 0)),
        ("fpga", "fpga-memory", 1, 90 * setup, (100 * setup, 200 * setup)),
    ]
    pools = {pool.name: pool.size / 2**30 for pool in spec.pools}
    assert pools == {"node0": 64, "node1": 64, "gpu-memory": 16, "fpga-memory": 16}
    links = {link.between: link.bandwidth for link in spec.links}
    assert links == {ends: 100e6 if {*ends} == {"node0", "node1"} else 25e6 for ends in permutations(pools, 2)}
    assert all(link.one_way and link.sharing == "shared" and not link.latency for link in spec.links)
    assert all(each.dma and not each.model_error for each in spec.processors)
    assert (spec.home, spec.time_unit) == ("node0", "a unit of time")


def test_bundled_machines_have_figures_of_real_ones() -> None:
    gpus = load_platform("a100x4")
    assert gpus.architectures[1].performance[0] == pytest.approx(9.7e12 / 36e9, rel=0.01)
    assert gpus.architectures[1].performance[1] == pytest.approx(2039 / (204.8 / 64), rel=0.01)
    assert len([link for link in gpus.links if link.name.startswith("nvlink")]) == 12
    memory = load_platform("upmem-4")
    assert {each.dma for each in memory.processors if each.type == "UPMEM"} == {False}
    assert [pool.spill for pool in load_platform("fpga-server").pools] == [None, "ddr", "host"]
    many = load_platform("multicore-2x10")
    assert [(each.cores, each.queue, each.preemption) for each in many.processors] == [(10, "priority", "suspend")] * 2
