"""HetSim's platforms and configurations: exact both ways, and errors with their line."""

import io
from contextlib import suppress

import attrs
import pytest
from hypothesis import given, strategies as st

from simmodel.catalogue import load_platform
from simmodel.formats.hetsim import read_hetsim, write_hetsim
from simmodel.formats.hetsim_config import SECTION_5, HetSimConfig, read_hetsim_config
from simmodel.foundation.errors import InputError
from simmodel.platform import from_dict, read_toml, to_dict, write_toml
from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.platform.network import LinkSpec
from tests.helpers.machine_specs import machine_specs

LISTING = """\
<MemoryPool id="0" size="64000"/>
<MemoryPool id="1" size="16000.5"/>
<Architecture id="x86" perf_min="1" perf_max="1"/>
<Architecture id="gpu" perf_min="1.1" perf_max="3.6"/>
<Accelerator id="c" archid="x86" memorypool="0" type="CPUCore" setupcost="0" dma="true" modelerror="0.1" poweridle="5" powerload="20"/>
<Accelerator id="g" archid="gpu" memorypool="1" type="GPU" setupcost="120" dma="false" modelerror="0" poweridle="10" powerload="250"/>
<Link src="0" dst="1" speed="25"/>
<Link src="1" dst="0" speed="12.5"/>
"""  # noqa: E501


def read(text: str, **options) -> MachineSpec:
    return read_hetsim(io.StringIO(text), **options)


@pytest.mark.parametrize(
    "text",
    [
        LISTING,
        f"<Platform>\n{LISTING}</Platform>",
        f"<?xml version='1.0'?>\n<!-- sizes in MB -->\n{LISTING}",
        f'<?xml version="1.0" encoding="UTF-8"?><system xmlns="urn:x">{LISTING}</system>',
        "\n".join(reversed(LISTING.splitlines())),
    ],
)
def test_the_listing_with_and_without_a_root(text) -> None:
    spec = read(text)
    pools = {pool.name: pool.size for pool in spec.pools}
    assert pools == {"0": 64e9, "1": 16000.5e6}
    assert {each.name: each.performance for each in spec.architectures} == {"x86": (1, 1), "gpu": (1.1, 3.6)}
    both = {each.name: each for each in spec.processors}
    assert both["c"] == ProcessorSpec(
        name="c", type="CPUCore", architecture="x86", pool="0", model_error=0.1, idle_power=5, load_power=20
    )
    assert both["g"] == ProcessorSpec(
        name="g", type="GPU", architecture="gpu", pool="1", setup=120, dma=False, idle_power=10, load_power=250
    )
    assert {link.between: (link.bandwidth, link.one_way) for link in spec.links} == {
        ("0", "1"): (25e6, True),
        ("1", "0"): (12.5e6, True),
    }
    assert spec.home == "0"


@pytest.mark.parametrize("root", [True, False])
@pytest.mark.parametrize("name", ["x.xml", "x.xml.gz"])
def test_written_and_read_and_written_again(root, name, tmp_path) -> None:
    spec = attrs.evolve(read(LISTING), name="x")
    report = write_hetsim(spec, tmp_path / name, root=root)
    assert report.skipped == ({} if root else {"name of the machine: no place for it without a root": 1})
    back = load_platform(tmp_path / name)
    assert back == spec
    again = tmp_path / f"again-{name}"
    write_hetsim(back, again, root=root)
    assert again.read_bytes() == (tmp_path / name).read_bytes()


@given(machine_specs(plain=True), st.booleans())
def test_what_the_xml_can_say_comes_back_exactly(tmp_path_factory, spec, root) -> None:
    path = tmp_path_factory.mktemp("hetsim") / "spec.xml"
    report = write_hetsim(spec, path, root=root)
    back = read_hetsim(path)
    if root:
        assert not report.repaired
        assert set(report.skipped) <= {"name of a link: no place for it in HetSim's XML"}  # for ids that contain arrows
        assert back == spec
    else:
        for part in ("pools", "architectures", "processors", "links"):
            assert getattr(back, part) == getattr(spec, part)


@given(machine_specs())
def test_what_the_xml_cannot_say_is_counted(tmp_path_factory, spec) -> None:
    path = tmp_path_factory.mktemp("hetsim") / "spec.xml"
    ways = [
        way for link in spec.links for way in ((link.between,) if link.one_way else (link.between, link.between[::-1]))
    ]
    if len(set(ways)) < len(ways):
        with pytest.raises(InputError, match="duplicate link from"):
            write_hetsim(spec, path)
        return
    report = write_hetsim(spec, path)
    counts = {reason.partition(" of a ")[0]: count for reason, count in report.skipped.items()}
    single = [each for _, each in spec.each_processor()]
    assert counts.get("cores", 0) == sum(each.cores > 1 for each in single)
    assert counts.get("queue", 0) == sum(each.queue != "fifo" for each in single)
    assert counts.get("reconfiguration", 0) == sum(each.reconfiguration != (0, 0) for each in single)
    assert counts.get("options", 0) == sum(bool(each.options) for each in single)
    assert counts.get("spill", 0) == sum(pool.spill is not None for pool in spec.pools)
    assert counts.get("latency", 0) == sum(link.latency > 0 for link in spec.links)
    assert report.repaired.total() == sum(not link.one_way for link in spec.links)
    back = read_hetsim(path)
    assert [name for name, _ in back.each_processor()] == [name for name, _ in spec.each_processor()]
    assert sorted(link.between for link in back.links) == sorted(ways)
    assert back.home == spec.home


@given(machine_specs())
def test_machines_as_values_and_toml_come_back_exactly(tmp_path_factory, spec) -> None:
    assert from_dict(to_dict(spec)) == spec
    path = tmp_path_factory.mktemp("toml") / "spec.toml"
    write_toml(spec, path)
    assert read_toml(path) == spec


def test_what_cannot_be_written_in_any_way_is_refused(tmp_path) -> None:
    def one(**changes) -> MachineSpec:
        parts = {
            "pools": [MemoryPoolSpec(name="a", size=1), MemoryPoolSpec(name="b", size=1)],
            "architectures": [ArchitectureSpec(name="x")],
            "processors": [ProcessorSpec(name="c", type="CPU", architecture="x", pool="a")],
        }
        return MachineSpec(**parts | changes)

    twice = [LinkSpec(name=name, bandwidth=1, between=("a", "b"), one_way=True) for name in "xy"]
    for spec, said in (
        (one(pools=[MemoryPoolSpec(name="a")]), "size of memory pool a: must be a finite number.*got inf"),
        (one(links=twice), "duplicate link from 'a' to 'b'"),
        (one(links=[LinkSpec(name="x", bandwidth=1, between=("a", "a"))]), "got one from 'a' to itself"),
        (one(description="\x01"), "description of <Platform>: must be text valid in XML, got '.x01'"),
        (
            one(architectures=[ArchitectureSpec(name="x"), ArchitectureSpec(name="")]),
            "id of <Architecture>: must be text",
        ),
    ):
        with pytest.raises(InputError, match=said):
            write_hetsim(spec, tmp_path / "x.xml")
        assert not (tmp_path / "x.xml").exists()


LAUGHS = """<?xml version="1.0"?>
<!DOCTYPE lolz [
 <!ENTITY lol "lol">
 <!ENTITY lol2 "&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;">
]>
<Platform>&lol2;</Platform>"""


def changed(old: str, new: str) -> str:
    assert LISTING.count(old) == 1, old
    return LISTING.replace(old, new)


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("", "line 1", "invalid XML: no element found"),
        ("<Platform>\n<MemoryPool id='0'>\n</Platform>", "line 3", "invalid XML: mismatched tag"),
        (LISTING + "</Platform>", "line 9", "invalid XML: not well-formed"),
        (LAUGHS, "line 3", "entity declarations are not accepted, got 'lol'"),
        ("<!DOCTYPE a [<!ENTITY p SYSTEM 'file:///x'>]><a>&p;</a>", "line 1", "not accepted, got 'p'"),
        (changed('memorypool="1"', 'memorypool="2"'), "line 6", "unknown memory pool '2'; known memory pools: 0, 1"),
        (changed('archid="gpu"', 'archid="gpv"'), "line 6", "unknown architecture 'gpv'; did you mean 'gpu'?"),
        (changed('<Link src="0" dst="1"', '<Link src="0" dst="7"'), "line 7", "unknown memory pool '7'"),
        (changed('<Link src="1" dst="0" speed="12.5"/>\n', ""), "line 7", "missing links from pool '1' to pool '0'"),
        (changed('<Link src="1" dst="0"', '<Link src="0" dst="1"'), "line 8", "duplicate link from '0' to '1'"),
        (changed('<Link src="1" dst="0"', '<Link src="1" dst="1"'), "line 8", "got one from '1' to itself"),
        (changed('<MemoryPool id="1"', '<MemoryPool id="0"'), "line 2", "duplicate <MemoryPool> id '0'"),
        (changed('<Architecture id="gpu"', '<Architecture id="x86"'), "line 4", "duplicate <Architecture> id 'x86'"),
        (changed('id="g"', 'id="c"'), "line 6", "duplicate <Accelerator> id 'c'"),
        (changed('size="64000"', 'size="-5"'), "line 1", "size of <MemoryPool> '0': must be a number > 0, got '-5'"),
        (changed('size="64000"', 'size="0"'), "line 1", "size of <MemoryPool> '0': must be a number > 0, got '0'"),
        (changed('size="64000"', 'size="64GB"'), "line 1", "got '64GB'"),
        (changed('size="64000"', 'size="nan"'), "line 1", "got 'nan'"),
        (changed('size="64000"', 'size="1e9999"'), "line 1", "got '1e9999'"),
        (changed('size="64000"', 'size="1e999999999"'), "line 1", "got '1e999999999'"),
        (
            changed('perf_min="1.1"', 'perf_min="4"'),
            "line 4",
            "perf_min of <Architecture> 'gpu': must be <= perf_max, got 4 and",
        ),
        (changed('perf_min="1.1"', 'perf_min="0"'), "line 4", "perf_min of <Architecture> 'gpu': must be a number > 0"),
        (
            changed('setupcost="120"', 'setupcost="-1"'),
            "line 6",
            "setupcost of <Accelerator> 'g': must be a number >= 0, got '-1'",
        ),
        (
            changed('modelerror="0.1"', 'modelerror="5"'),
            "line 5",
            "modelerror of <Accelerator> 'c': must be a number >= 0 and <= 1",
        ),
        (changed('dma="false"', 'dma="maybe"'), "line 6", "dma of <Accelerator> 'g': must be true or false"),
        (
            changed('speed="25"', 'speed="0"'),
            "line 7",
            "speed of <Link> '0->1': must be a number > 0, got '0'",
        ),
        (changed('type="GPU"', ""), "line 6", "<Accelerator>: missing 'type'"),
        (changed('type="GPU"', 'type="GPU" colour="red"'), "line 6", "<Accelerator>: unknown key 'colour'"),
        (changed('type="CPUCore"', 'type="DSP"'), "line 6", "missing CPU core .* for the setup of g"),
        (
            LISTING + "<host id='x'/>",
            "line 9",
            "must be one of <MemoryPool>, <Architecture>, <Accelerator>, <Link>, got",
        ),
        ("<adag>\n<job id='x'/></adag>", "line 2", "must be one of <MemoryPool>, .*, got <job>"),
        ("<Platform/>", "line 1", "must have at least one <MemoryPool>, got none"),
        ("<Platform colour='x'/>", "line 1", "<Platform>: unknown key 'colour'"),
        (f"<Platform home='z'>{LISTING}</Platform>", "line 1", "unknown memory pool 'z'"),
        (f"<Platform>{LISTING}text</Platform>", "line 8", "must have elements only, got the text 'text'"),
        (changed('size="64000"/>', 'size="64000"><a/></MemoryPool>'), "line 1", "<MemoryPool>: must be empty, got <a>"),
        ("<MemoryPool id='a' size='1'/>", "line 1", "must have at least one <Architecture>"),
    ],
)
def test_wrong_platforms_get_one_sentence(text, place, said) -> None:
    with pytest.raises(InputError, match=said) as found:
        read(text)
    assert (found.value.source, found.value.place) == ("an open file", place)


@given(
    st.text(max_size=60)
    | st.text("<>/=\"' MemoryPolidsz01", max_size=60)
    | st.lists(st.sampled_from(LISTING.splitlines()), max_size=10).map("\n".join)
)
def test_readers_read_or_refuse_whatever_comes(text) -> None:
    with suppress(InputError):
        assert read(text).processors
    with suppress(InputError):
        assert read_hetsim_config(io.StringIO(text)) is not None


# ---------------------------------------------------------------------- configuration

VALUES = {
    "max_fpga_reconf_time": 200,
    "min_fpga_reconf_time": 100,
    "min_task_runtime": 10,
    "max_task_runtime": 500,
    "partial_task_families": True,
    "min_data_objects": 1,
    "max_data_objects": 5,
    "strict_exceptions": False,
    "min_data_size": 4,
    "max_data_size": 300.5,
    "max_task_delay": 0.25,
    "seed_uniform": 0,
    "seed_task_runtime": 1,
    "seed_data_size": 2,
}
ASSIGNED = "\n".join(f"{key} = {str(value).lower()}" for key, value in VALUES.items())
JSON = "{" + ", ".join(f'"{key}": {str(value).lower()}' for key, value in VALUES.items()) + "}"
ELEMENTS = "".join(f"<{key}>{value}</{key}>" for key, value in VALUES.items())
WITH_VALUES = "".join(f'<{key} value="{value}"/>' for key, value in VALUES.items())
ATTRIBUTES = " ".join(f'{key}="{value}"' for key, value in VALUES.items())


@pytest.mark.parametrize(
    "text",
    [
        ASSIGNED,
        "# HetSim\n[seeds]\n\n" + ASSIGNED.replace(" = ", ":") + " ; the last\n",
        JSON,
        f"<config>{ELEMENTS}</config>",
        f"<?xml version='1.0'?>{ELEMENTS}",
        f"<config>{WITH_VALUES}</config>",
        f"<config {ATTRIBUTES}/>",
    ],
)
def test_every_key_in_every_form(text) -> None:
    config = read_hetsim_config(io.StringIO(text))
    assert attrs.asdict(config) == VALUES
    assert list(VALUES) != list(attrs.asdict(config))
    assert config == HetSimConfig(**VALUES)


def test_a_configuration_becomes_options_of_generators() -> None:
    assert HetSimConfig().options() == {}
    assert HetSimConfig(**VALUES).options() == {
        "run": (10, 500),
        "objects": (1, 5),
        "size": (4e6, 300.5e6),
        "reconfiguration": (100, 200),
        "partial": 0.5,
        "max_delay": 0.25,
    }
    assert HetSimConfig(max_task_runtime=20).options() == {"run": (10, 20)}
    assert HetSimConfig(partial_task_families=0.2).options() == {"partial": 0.2}
    assert HetSimConfig(partial_task_families=False).options() == {"partial": 0}
    assert HetSimConfig(**SECTION_5).reconfiguration == (100, 200)


def test_reconfiguration_comes_from_the_configuration() -> None:
    config = HetSimConfig(min_fpga_reconf_time=3, max_fpga_reconf_time=4)
    text = LISTING.replace('type="GPU"', 'type="FPGA"')
    spec = read(text, config=config)
    assert [each.reconfiguration for each in spec.processors] == [(0, 0), (3, 4)]
    assert config.on_machine(read(text)) == spec
    assert HetSimConfig().on_machine(spec) == spec
    without = load_platform("hetsim-slow")
    assert [each.reconfiguration for each in config.on_machine(without).processors] == [(0, 0)] * 4 + [(3, 4)]


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("max_task_runtim = 5", "line 1", "unknown key 'max_task_runtim'; did you mean 'max_task_runtime'?"),
        ("seed_uniform = 1\nseed_uniform = 2", "line 2", "duplicate key 'seed_uniform'"),
        ("\nmax_task_delay", "line 2", "must be key = value, got 'max_task_delay'"),
        ("max_task_delay =", "line 1", "must be key = value"),
        ("max_task_delay = soon", "line 1", "max_task_delay: must be a finite number >= 0, got 'soon'"),
        ("max_task_delay = -1", "line 1", "got '-1'"),
        ("max_task_delay = 1e999", "line 1", "got '1e999'"),
        ("seed_uniform = 1.5", "line 1", "seed_uniform: must be a whole number >= 0, got '1.5'"),
        ("strict_exceptions = perhaps", "line 1", "strict_exceptions: must be true or false, got 'perhaps'"),
        ("partial_task_families = 2", "line 1", "must be true, false or a share from 0 to 1"),
        (
            "min_task_runtime = 600",
            "min_task_runtime",
            "min_task_runtime: must be <= max_task_runtime, got 600 and 500",
        ),
        ('{"max_task_delay": [1]}', "max_task_delay", r"must be a finite number >= 0, got \[1\]"),
        ('{"max_task_delay": true}', "max_task_delay", "got True"),
        ('{"max_task_delay": 1, "max_task_delay": 2}', None, "duplicate key 'max_task_delay'"),
        ('{"max_task_delay" 1}', "line 1, column 19", "invalid JSON"),
        ("<config>\n<x>1</x></config>", "line 2", "unknown key 'x'"),
        ("<config>\n<max_task_delay/></config>", "line 2", "got ''"),
        (LAUGHS, "line 3", "entity declarations are not accepted"),
    ],
)
def test_wrong_configurations_get_one_sentence(text, place, said) -> None:
    with pytest.raises(InputError, match=said) as found:
        read_hetsim_config(io.StringIO(text))
    assert (found.value.source, found.value.place) == ("an open file", place)


def test_a_wrong_value_in_python() -> None:
    with pytest.raises(InputError, match="max_data_size: must be a finite number >= 0, got 'x'"):
        HetSimConfig(max_data_size="x")
    with pytest.raises(InputError, match="min_data_size: must be <= max_data_size, got 9 and 8"):
        HetSimConfig(min_data_size=9, max_data_size=8)
