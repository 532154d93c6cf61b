"""Changes of a platform as texts: what each form does, and the sentence of a wrong one."""

import json
from argparse import Namespace

import pytest

from simmodel import InputError, load_platform
from simmodel.cli import main
from simmodel.commands.shared import changed_platform
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec, QueueSpec
from simmodel.runs.changes import case_of, changed, changes_of
from simmodel.runs.scenario import Scenario

KINDS = [NodeSpec(name="thin", count=4, cores=8, memory="64GB"), NodeSpec(name="fat", count=2, cores=64)]
QUEUES = [QueueSpec(name="long", max_requested="2d", max_running=4), QueueSpec(name="short")]
TWO = ClusterSpec(partitions=[PartitionSpec(nodes=KINDS, max_requested="1d")], queues=QUEUES)
ONE = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(names="cn[08-10]", cores=16)])])


@pytest.mark.parametrize(
    ("platform", "path", "value", "get", "expected"),
    [
        (128, "processors", "+20", "processors", 148),
        (128, "nodes", "+20", "processors", 148),  # where processors are counted, a node is one
        (128, "nodes", "-28", "processors", 100),
        (128, "processors", "x1.2", "processors", 154),
        (128, "processors", "*2", "processors", 256),
        (128, "processors", "96", "processors", 96),
        (ONE, "nodes", "5", "partitions.batch.nodes[0].names", "cn[08-12]"),
        (ONE, "nodes", "-1", "partitions.batch.nodes[0].names", "cn[08-09]"),
        (ONE, "partitions.batch.nodes", "+2", "processors", 80),
        (TWO, "partitions.batch.nodes.fat", "+1", "processors", 224),
        (TWO, "partitions.batch.nodes.fat.cores", "32", "processors", 96),
        (TWO, "partitions.batch.nodes.thin.memory", "+64GB", "partitions.batch.nodes.thin.memory", 128e9),
        (TWO, "partitions.batch.max_time", "12h", "partitions.batch.max_requested", 43200),
        (TWO, "partitions.batch.max_time", "+12h", "partitions.batch.max_time", 129600),
        (TWO, "partitions.batch.max_time", "none", "partitions.batch.max_time", None),
        (TWO, "partitions.batch.exclusive", "yes", "partitions.batch.exclusive", True),
        (TWO, "partitions.batch.placement", "packed", "partitions.batch.placement", "packed"),
        (TWO, "partitions.batch.priority", "0.5", "partitions.batch.priority", 0.5),
        (TWO, "queues.long", "none", "queues", (QUEUES[1],)),
        (TWO, "queues.long.max_running", "none", "queues.long.max_running", None),
        (TWO, "queues", "none", "queues", ()),
        ({"a": 4, "b": 8}, "places.b.nodes", "+4", "places.b.processors", 12),
        ("tiers-30", "sites.T1-1.speed", "x1.2", "sites.T1-1.speed", load_platform("tiers-30").sites[1].speed * 1.2),
    ],
)
def test_each_form_of_a_change(platform, path, value, get, expected):
    assert Scenario(platform=changed(platform, {path: value})).get(get) == expected


def test_changes_are_made_together_and_leave_the_platform_as_it_is():
    found = changed(
        TWO, {"queues.long": "none", "partitions.batch.nodes.fat": "none", "partitions.batch.max_time": "6h"}
    )
    assert (found.processors, found.queues, found.partitions[0].max_requested) == (32, (QUEUES[1],), 21600)
    assert TWO.processors == 160


@pytest.mark.parametrize(
    ("platform", "path", "value", "sentence"),
    [
        (TWO, "nodes", "+20", r"nodes: must name what changes: one of partitions\.batch\.nodes\.thin, .*\.fat"),
        (TWO, "partitions.batch.nodes", "+20", r"must name one of partitions\.batch\.nodes\.thin, .*\.nodes\.fat"),
        (TWO, "processors", "+20", r"several partitions or nodes; there are partitions\.batch\.nodes\.thin"),
        (TWO, "nodez", "3", r"nodez=3: unknown field 'nodez'; did you mean 'nodes'\? Known fields: name, partitions, "),
        (TWO, "partitions.batch.max_tim", "3h", r"did you mean 'max_time'\?"),
        (TWO, "queues.lang", "none", r"unknown name 'lang'; did you mean 'long'\? Known names: long, short"),
        (TWO, "queues", "long", "must be the path of a part, such as one of long, short"),
        (TWO, "queues.short.max_running", "+1", "must be a value, since there is none that could be changed: None"),
        (TWO, "partitions.batch.max_time", "soon", "max_requested: must be a number > 0 or a quantity"),
        (TWO, "partitions.batch.max_time", "+soon", "must be a number with a sign, got '.soon'"),
        (128, "processors", "-200", "processors: must be a whole number >= 1, got -72"),
        (128, "processors", "1.5", "processors: must be a whole number >= 1, got 1.5"),
        (None, "processors", "1", "must be a platform that can be changed, got None"),
    ],
)
def test_a_wrong_change_gets_one_sentence(platform, path, value, sentence):
    with pytest.raises(InputError, match=sentence):
        changed(platform, {path: value})


def test_the_platform_of_the_header_of_a_log_can_be_changed():
    assert changed(None, {"nodes": "+20"}, log="lublin-128-week").processors == 148
    with pytest.raises(InputError, match="does not specify the processors"):
        changed(None, {"nodes": "+20"}, log=[])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("more", r"--case: must be NAME: PATH=VALUE, PATH=VALUE, such as '20 more: nodes=\+20', got 'more'"),
        ("nodes=+20", r"--case: must be NAME: PATH=VALUE"),
        ("a: b", r"--case a: must be PATH=VALUE, such as nodes=\+20, got 'b'"),
        ("a: b=1, b=2", "--case a: b is set twice, to 1 and to 2"),
    ],
)
def test_a_wrong_case_gets_one_sentence(text, sentence):
    with pytest.raises(InputError, match=sentence):
        case_of(text)


def test_a_case_may_have_values_with_commas():
    assert case_of("a: queues.a.preempts=b,c, nodes=+20") == ("a", {"queues.a.preempts": "b,c", "nodes": "+20"})
    assert changes_of([]) == {}


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("batch lublin-128-week --set nodes=+20 --set partitions.batch.max_time=12h", "on 148 processors"),
        ("batch lublin-128-week --processors 64 --set nodes=+20", "on 84 processors"),
        ("batch lublin-128-week --platform kth-sp2 --processors 64 --set nodes=+20", "on 84 processors"),
        ("meta lublin-128-week --clusters 128,64 --set places.c2.nodes=+20", "under sgs-t, places.c2.nodes=+20"),
        ("grid tiers-30 --until 1h --set sites.T1-1.speed=x2", "tiers-30 under least-loaded, sites.T1-1.speed=x2"),
        ("machine hetsim-slow layered:n=9 --set processors.gpu=none", "layered:n=9 under hrr, processors.gpu=none"),
    ],
)
def test_commands_change_their_platform_and_say_so_in_the_title(words, title, capsys):
    assert main(words.split()) == 0
    head = capsys.readouterr().out.splitlines()[0]
    assert title in head
    assert words.rpartition("--set ")[2] in head


def test_several_logs_need_a_platform_to_be_changed():
    options = Namespace(changes=["nodes=+20"], log=["lublin-128-week", "lublin-256"])
    assert changed_platform(options, 100).processors == 120
    with pytest.raises(InputError, match="--set, --case: needs --platform or --processors, since the logs"):
        changed_platform(options, None)


def test_a_stored_run_says_what_was_changed(tmp_path):
    assert main(["batch", "probe-4", "--set", "nodes=+1", "--json", str(tmp_path / "run.json"), "-q"]) == 0
    found = json.loads((tmp_path / "run.json").read_text())
    assert found["name"] == "probe-4 under easy, nodes=+1"
    assert found["scenario"]["platform"]["partitions"] == [{"processors": 13}]
