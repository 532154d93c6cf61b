"""What scontrol prints, read into records."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from simmodel import InputError
from simmodel_site.twin.slurm.scontrol import read_scontrol
from tests.site.helpers.slurm_texts import CONFIG, LICENCES, NODES, PARTITIONS, RESERVATIONS, TEXTS, TOPOLOGY, one_line


@pytest.mark.parametrize("what", [name for name in TEXTS if name != "config"])
def test_records_on_one_line_are_those_on_several(what: str) -> None:
    read = read_scontrol(TEXTS[what], "x", UTC)
    assert read_scontrol(one_line(TEXTS[what]), "x", UTC) == read
    assert read_scontrol(TEXTS[what].replace("\n", "\r\n"), "x", UTC) == read


def test_all_reports_may_stand_in_one_text() -> None:
    together = read_scontrol("\n".join(TEXTS.values()), "x", UTC)
    for what, field in (("node", "nodes"), ("partition", "partitions"), ("reservation", "reservations")):
        assert getattr(together, field) == getattr(read_scontrol(TEXTS[what], "x", UTC), field)
    assert together.cluster == "alps"


def test_nodes() -> None:
    nodes = read_scontrol(NODES).nodes
    assert nodes is not None
    by_name = {node.name: node for node in nodes}
    assert list(by_name) == ["cn01", "cn02", "cn03", "cn04", "gpu1", "gpu2", "cn09", "viz"]
    assert (by_name["cn01"].cpus, by_name["cn01"].threads, by_name["cn01"].memory) == (32, 2, 64000 * 2**20)
    assert (by_name["cn09"].cpus, by_name["cn09"].kept_cpus, by_name["cn09"].kept_memory) == (28, 4, 1000 * 2**20)
    assert (by_name["cn09"].features, by_name["cn09"].weight) == (("big",), 5)
    assert by_name["cn02"].partitions == ("batch", "debug")
    assert [(each.name, each.type, each.count) for each in by_name["gpu1"].gres] == [
        ("gpu", "a100", 4),
        ("shard", "", 16),
    ]
    assert [node.service for node in nodes] == ["up", "up", "draining", "down", "up", "up", "up", "up"]


def test_the_reason_of_a_node_is_free_text_and_forges_nothing() -> None:
    nodes = {node.name: node for node in read_scontrol(NODES).nodes or ()}
    assert nodes["cn03"].reason == "a fan [x] State=IDLE"
    assert nodes["cn03"].states == {"IDLE", "DRAIN"}
    assert nodes["cn04"].reason == "two"


@given(st.text(max_size=80))
def test_any_reason_leaves_the_node_as_it_is(reason: str) -> None:
    indented = reason.replace("\n", "\n          ").replace("\r", " ")
    text = NODES.replace("   Reason=a fan [x] State=IDLE", f"   Reason={indented}")
    without = [node.__class__(**{**_fields(node), "reason": ""}) for node in read_scontrol(text).nodes or ()]
    assert without == [node.__class__(**{**_fields(node), "reason": ""}) for node in read_scontrol(NODES).nodes or ()]


def _fields(node: object) -> dict[str, object]:
    return {name: getattr(node, name) for name in node.__class__.__slots__ if not name.startswith("_")}  # type: ignore[attr-defined]


def test_partitions() -> None:
    batch, debug, gpu, viz = read_scontrol(PARTITIONS).partitions or ()
    assert (batch.name, batch.nodes, batch.max_time, batch.max_nodes) == ("batch", "cn[01-04,09]", 86400, 4)
    assert (batch.default, debug.default, debug.tier, debug.job_factor) == (True, False, 3, 10)
    assert batch.resources["cpu"] == 156
    assert batch.others == {"DefaultTime": "01:00:00"}
    assert debug.others == {"AllowAccounts": "staff,ops"}
    assert (gpu.max_time, gpu.max_nodes, gpu.sharing, gpu.others) == (None, 1, "EXCLUSIVE", {"DenyQos": "low"})
    assert (viz.state, viz.least_loaded, viz.others) == ("DOWN", True, {"MaxMemPerCPU": "4000"})


def test_reservations_licences_and_switches() -> None:
    course, lic, service, partly = read_scontrol(RESERVATIONS, "x", UTC).reservations or ()
    assert course.start == datetime(2030, 1, 1, 8, tzinfo=UTC).timestamp()
    assert (course.end - course.start, course.users, course.cpus) == (4 * 3600, ("ada", "bob"), 64)
    assert (lic.nodes, lic.others) == ("", {"Licenses": "matlab:5"})
    assert service.flags == ("MAINT", "SPEC_NODES")
    assert (partly.cpus, partly.users, partly.others) == (4, (), {"Accounts": "-staff", "PartitionName": "gpu"})
    licences = read_scontrol(LICENCES).licences or ()
    assert [(each.name, each.total, each.reserved) for each in licences] == [("fluent@server", 4, 0), ("matlab", 10, 5)]
    switches = read_scontrol(TOPOLOGY).switches or ()
    assert [(each.name, each.level) for each in switches] == [("leaf0", 0), ("leaf1", 0), ("top", 1)]


def test_settings() -> None:
    settings = read_scontrol(CONFIG).settings or {}
    assert settings["SchedulerParameters"] == "bf_interval=20,bf_max_job_test=200"
    assert settings["SlurmctldHost[0]"] == "head(127.0.0.1)"
    assert settings["PriorityFlags"] == ""


def test_times_count_seconds_where_slurm_was_asked_to() -> None:
    text = RESERVATIONS.replace("2030-01-01T08:00:00", "1893484800").replace("2030-01-01T12:00:00", "1893499200")
    assert (read_scontrol(text).reservations or ())[0].start == 1893484800


@pytest.mark.parametrize("text", ["No reservations in the system\n", "No licenses configured in Slurm.\n", ""])
def test_nothing_is_told(text: str) -> None:
    site = read_scontrol(text)
    assert site.nodes is site.partitions is site.reservations is site.licences is site.settings is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("hello\n", "file: must be what 'scontrol show ...' prints, got 'hello"),
        (NODES.replace("CPUTot=4 ", ""), "file, NodeName=viz, CPUTot: missing value"),
        (NODES.replace("RealMemory=16000", "RealMemory=x"), "file, NodeName=viz, RealMemory: must be a number"),
        (PARTITIONS.replace("1-00:00:00", "soon"), "file, PartitionName=batch, MaxTime: must be a duration"),
        (RESERVATIONS.replace("2030-03-01T01:00:00", "Unknown"), "file, ReservationName=lic, EndTime: must be an inst"),
    ],
)
def test_wrong_texts_are_refused_with_their_place(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        read_scontrol(text, "file", UTC)
    assert str(error.value).startswith(sentence)
