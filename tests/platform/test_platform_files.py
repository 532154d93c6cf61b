"""Platforms as plain values and TOML files: exact round trips, and errors with their place."""

import json
import re
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel.foundation.errors import InputError
from simmodel.platform import from_dict, read_toml, to_dict, write_toml
from simmodel.platform.cluster import (
    ClusterSpec,
    ConsumableSpec,
    FailureModel,
    NodeSpec,
    OutageSpec,
    PartitionSpec,
    QueueSpec,
    ReservationSpec,
)
from simmodel.platform.kinds import KINDS
from tests.helpers.examples import up_to

NAMES = st.text(max_size=6)
COUNTS = st.integers(1, 10**9)
AMOUNTS = st.one_of(st.floats(0, 1e300), st.integers(0, 10**6))
ABOVE = st.one_of(st.floats(0, 1e300, exclude_min=True), st.integers(1, 10**6))
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def maybe(strategy):
    return st.none() | strategy


NODES = st.builds(
    NodeSpec,
    name=NAMES,
    count=st.integers(1, 10**7),
    cores=COUNTS,
    gpus=st.integers(0, 8),
    memory=AMOUNTS,
    idle_power=AMOUNTS,
    load_power=AMOUNTS,
    switch=maybe(NAMES.filter(bool) | st.integers(0, 10**6)),
    nodes_per_switch=maybe(COUNTS),
)


@st.composite
def partitions(draw, name):
    what = draw(
        st.one_of(
            st.fixed_dictionaries({"processors": COUNTS}),
            st.fixed_dictionaries({"nodes": st.lists(NODES, min_size=1, max_size=2)}),
        )
    )
    return PartitionSpec(
        name=name,
        **what,
        placement=draw(st.sampled_from(["first-fit", "best-fit", "packed", "spread"])),
        exclusive=draw(st.booleans()),
        max_processors=draw(maybe(COUNTS)),
        max_requested=draw(maybe(ABOVE)),
        priority=draw(FLOATS),
        idle_power=draw(AMOUNTS),
        load_power=draw(AMOUNTS),
    )


@st.composite
def parts(draw, partitions):
    """Draw the part of a partition that an outage or a reservation takes, by number or by name."""
    name = draw(maybe(st.sampled_from([each.name for each in partitions])))
    chosen = partitions[0] if name is None else next(each for each in partitions if each.name == name)
    if chosen.nodes:
        count = sum(node.count for node in chosen.nodes)
        first = st.just(f"{chosen.nodes[0].name}0")
        return {"partition": name, "nodes": draw(st.lists(st.integers(0, count - 1) | first, min_size=1, max_size=3))}
    return {"partition": name, "processors": draw(st.integers(1, chosen.processors))}


@st.composite
def clusters(draw):
    def unlike(minimum=0):
        return draw(st.lists(NAMES, unique=True, min_size=minimum, max_size=3))

    parts_of = [draw(partitions(name)) for name in unlike(1)]
    partition = maybe(st.sampled_from([each.name for each in parts_of]))
    queue_names = unlike()
    some_queues = st.lists(st.sampled_from(queue_names), max_size=2) if queue_names else st.just([])
    starts = st.floats(0, 1e9)
    preemptible = {name: draw(st.sampled_from([None, "requeue", "suspend"])) for name in queue_names}
    queues = [
        QueueSpec(
            name=name,
            partition=draw(partition),
            priority=draw(FLOATS),
            max_running=draw(maybe(COUNTS)),
            max_requested=draw(maybe(ABOVE)),
            preemptible=preemptible[name],
            preempts=[other for other in queue_names[:i] if preemptible[other] and draw(st.booleans())],
        )
        for i, name in enumerate(queue_names)
    ]
    outages = [
        OutageSpec(
            at=draw(starts),
            until=draw(st.just(inf) | st.floats(2e9, 1e12)),
            kind=draw(st.sampled_from(["failure", "maintenance", "drain"])),
            reason=draw(NAMES),
            **draw(parts(parts_of)),
        )
        for _ in range(draw(st.integers(0, 2)))
    ]
    reservations = [
        ReservationSpec(
            name=f"reserved {name}",
            start=1e10 * i + draw(starts),  # one after the other: they must not overlap
            end=1e10 * i + draw(st.floats(2e9, 1e10)),
            users=draw(st.lists(st.integers(-(2**63) + 1, 2**63 - 1) | NAMES, max_size=2)),
            queues=draw(some_queues),
            **draw(parts(parts_of)),
        )
        for i, name in enumerate(unlike())
    ]
    failures = st.builds(
        FailureModel,
        partition=partition,
        mean_time_between_failures=ABOVE,
        mean_time_to_repair=ABOVE,
        distribution=st.sampled_from(["exponential", "weibull"]),
        shape=ABOVE,
    )
    return ClusterSpec(
        name=draw(NAMES),
        partitions=parts_of,
        queues=queues,
        consumables=[ConsumableSpec(name=name, amount=draw(ABOVE)) for name in unlike()],
        outages=outages,
        failures=draw(st.lists(failures, max_size=2)),
        reservations=reservations,
        on_failure=draw(st.sampled_from(["resubmit", "lose"])),
        default_partition=draw(partition),
        description=draw(st.text()),
        source=draw(st.text()),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("platforms")


@settings(max_examples=up_to(60))
@given(spec=clusters())
def test_what_is_written_reads_back_as_the_same(folder, spec):
    described = to_dict(spec)
    assert from_dict(described) == spec
    assert from_dict(json.loads(json.dumps(described, allow_nan=False))) == spec
    write_toml(spec, folder / "spec.toml")
    assert read_toml(folder / "spec.toml") == spec
    assert to_dict(read_toml(folder / "spec.toml")) == described


def test_what_equals_the_default_is_left_out():
    spec = ClusterSpec(
        partitions=[PartitionSpec(nodes=[NodeSpec(count=2), NodeSpec()])], outages=[OutageSpec(at=0, nodes=[0])]
    )
    assert to_dict(spec) == {
        "kind": "cluster",
        "partitions": [{"nodes": [{"count": 2}, {}]}],
        "outages": [{"nodes": [0], "at": 0.0}],
    }
    assert from_dict(to_dict(spec)) == spec
    assert from_dict(to_dict(spec)).outages[0].until == inf


def test_numbers_of_numpy_become_plain():
    spec = ClusterSpec(partitions=[PartitionSpec(processors=np.int64(4), idle_power=np.float64(2.5))])
    described = to_dict(spec)["partitions"][0]
    assert described == {"processors": 4, "idle_power": 2.5}
    assert [type(value) for value in described.values()] == [int, float]


def test_the_file_reads_well(tmp_path):
    spec = ClusterSpec(
        name="mine",
        partitions=[PartitionSpec(name="gpu", nodes=[NodeSpec(cores=32, gpus=4)], exclusive=True)],
        queues=[QueueSpec(name="low", preemptible="requeue"), QueueSpec(name="high", preempts=["low"])],
        description='said: "two\nlines" \\ \x7f µ',
    )
    write_toml(spec, tmp_path / "mine.toml")
    assert (tmp_path / "mine.toml").read_text(encoding="utf-8") == (
        'kind = "cluster"\nname = "mine"\ndescription = "said: \\"two\\nlines\\" \\\\ \\u007f µ"\n'
        '\n[[partitions]]\nname = "gpu"\nexclusive = true\n\n[[partitions.nodes]]\ncores = 32\ngpus = 4\n'
        '\n[[queues]]\nname = "low"\npreemptible = "requeue"\n\n[[queues]]\nname = "high"\npreempts = ["low"]\n'
    )


@pytest.mark.parametrize(
    ("key", "given", "value"),
    [
        ("memory", "256GB", 256e9),
        ("memory", "1GiB", 2**30),
        ("memory", 5, 5),
        ("idle_power", "450W", 450),
        ("load_power", "2kW", 2000),
    ],
)
def test_quantities_of_nodes_with_units(key, given, value):
    spec = from_dict({"kind": "cluster", "partitions": [{"nodes": [{key: given}]}]})
    assert getattr(spec.partitions[0].nodes[0], key) == value


def test_other_quantities_with_units():
    spec = from_dict(
        {
            "kind": "cluster",
            "partitions": [{"processors": 4, "max_requested": "7d", "load_power": "95W"}],
            "queues": [{"name": "short", "max_requested": "30min"}],
            "consumables": [
                {"name": "licences", "amount": 20},
                {"name": "buffer", "amount": "1.8PB"},
                {"name": "bandwidth", "amount": "8Gbps"},
            ],
            "outages": [{"at": "1h", "until": "24h", "processors": 1}],
            "reservations": [{"name": "course", "start": "1d", "end": "1w", "processors": 1}],
            "failures": [{"mean_time_between_failures": "365d", "mean_time_to_repair": "500ms"}],
        }
    )
    assert (spec.partitions[0].max_requested, spec.partitions[0].load_power) == (604800, 95)
    assert spec.queues[0].max_requested == 1800
    assert [each.amount for each in spec.consumables] == [20, 1.8e15, 1e9]
    assert (spec.outages[0].at, spec.outages[0].until) == (3600, 86400)
    assert (spec.reservations[0].start, spec.reservations[0].end) == (86400, 604800)
    assert (spec.failures[0].mean_time_between_failures, spec.failures[0].mean_time_to_repair) == (31536000, 0.5)


ONE = {"processors": 4}
MISTAKES = [
    ({"partitions": [ONE]}, "kind", "missing key; known kinds: cluster, machine, broker"),
    ({"kind": "clustre"}, "kind", "unknown kind 'clustre'; did you mean 'cluster'?"),
    ({"kind": 3}, "kind", "unknown kind '3'"),
    ({"kind": "cluster"}, "partitions", "missing key"),
    ({"kind": "cluster", "partitions": []}, "partitions", "must not be empty"),
    ({"kind": "cluster", "partitions": 4}, "partitions", "must be a list, got 4"),
    ({"kind": "cluster", "partitions": ONE}, "partitions", "must be a list, got {'processors': 4}"),
    ({"kind": "cluster", "partitions": [4]}, "partitions[0]", "must be a mapping, got 4"),
    ({"kind": "cluster", "partition": [ONE]}, "partition", "unknown key 'partition'; did you mean 'partitions'?"),
    ({"kind": "cluster", "partitions": [ONE], "name": 7}, "name", "must be a text, got 7"),
    ({"kind": "cluster", "partitions": [ONE], "on_failure": "retry"}, "on_failure", "must be one of resubmit, lose"),
    ({"kind": "cluster", "partitions": [ONE], "on_failure": 1}, "on_failure", "must be a text, got 1"),
    ({"kind": "cluster", "partitions": [ONE], "queues": [{"name": "q"}, {}]}, "queues[1].name", "missing key"),
    (
        {"kind": "cluster", "partitions": [ONE], "queues": [{"nmae": "q"}]},
        "queues[0].nmae",
        "unknown key 'nmae'; did you mean 'name'? Known keys: name, partition,",
    ),
    (
        {"kind": "cluster", "partitions": [ONE], "queues": [{"name": "q", "preempts": "low"}]},
        "queues[0].preempts",
        "must be a list, got 'low'",
    ),
    (
        {"kind": "cluster", "partitions": [ONE], "queues": [{"name": "q", "preempts": ["low"]}]},
        "queues[0].preempts",
        "unknown queue 'low'; known queues: q",
    ),
    (
        {
            "kind": "cluster",
            "partitions": [ONE],
            "reservations": [{"name": "r", "start": 0, "end": 1, "users": [True]}],
        },
        "reservations[0].users[0]",
        "must be a name or a number, got True",
    ),
    (
        {"kind": "cluster", "partitions": [ONE], "outages": [{"at": 5, "until": 5, "processors": 1}]},
        "outages[0].until",
        "must be > at (5 s), got",
    ),
    (
        {"kind": "cluster", "partitions": [ONE], "outages": [{"at": 5, "processors": 5}]},
        "outages[0].processors",
        "must be <= 4, the processors of batch, got",
    ),
    (
        {"kind": "cluster", "partitions": [ONE], "consumables": [{"name": "buffer", "amount": "5W"}]},
        "consumables[0].amount",
        "a quantity in",
    ),
    ({"kind": "cluster", "partitions": [ONE, ONE]}, "partitions[1].name", "duplicate name"),
    ({"kind": "cluster", "partitions": [{**ONE, "exclusive": 1}]}, "partitions[0].exclusive", "must be true or false"),
    (
        {"kind": "cluster", "partitions": [{}]},
        "partitions[0].processors",
        "must have either processors or nodes, got neither",
    ),
    (
        {"kind": "cluster", "partitions": [ONE, {"name": "n", "nodes": [{}], "placement": "exclusive-by-switch"}]},
        "partitions[1].placement",
        "must be another one if no node has a switch, got 'exclusive-by-switch'",
    ),
    ({"kind": "cluster", "partitions": [{"processors": 1.5}]}, "partitions[0].processors", "must be a whole number"),
    ({"kind": "cluster", "partitions": [{"processors": True}]}, "partitions[0].processors", "must be a whole number"),
    ({"kind": "cluster", "partitions": [{**ONE, "priority": "high"}]}, "partitions[0].priority", "must be a number"),
    ({"kind": "cluster", "partitions": [{**ONE, "priority": nan}]}, "partitions[0].priority", "must be a number"),
    ({"kind": "cluster", "partitions": [{**ONE, "priority": 10**400}]}, "partitions[0].priority", "fits in 64 bits"),
]
NODE_MISTAKES = [
    ({"core": 16}, "core", "unknown key 'core'; did you mean 'cores'? Known keys: name, names, count, cores,"),
    ({"zzz": 16}, "zzz", "unknown key 'zzz'; known keys: name, names, count, cores,"),
    ({"cores": 0}, "cores", "must be a whole number >= 1, got 0"),
    ({"cores": "16"}, "cores", "must be a whole number, got '16'"),
    ({"memory": "64GBps"}, "memory", "must be a quantity in B such as '64GB', got '64GBps'"),
    ({"memory": -1}, "memory", "must be >= 0, got -1"),
    ({"load_power": [1]}, "load_power", "must be a number, got [1]"),
    ({"switch": ""}, "switch", "must be a name or a number >= 0, got ''"),
    ({"switch": -1}, "switch", "must be a name or a number >= 0, got -1"),
    ({"switch": True}, "switch", "must be"),
    ({"switch": 1.5}, "switch", "must be"),
    ({"nodes_per_switch": 0}, "nodes_per_switch", "must be a whole number >= 1, got 0"),
]
MISTAKES += [
    (
        {"kind": "cluster", "partitions": [ONE, {"name": "n", "nodes": [{}, node]}]},
        f"partitions[1].nodes[1].{key}",
        text,
    )
    for node, key, text in NODE_MISTAKES
]


@pytest.mark.parametrize(("mapping", "place", "sentence"), MISTAKES)
def test_mistakes_are_named_with_their_place(mapping, place, sentence):
    with pytest.raises(InputError) as caught:
        from_dict(mapping, source="mine.toml")
    assert caught.value.source == "mine.toml"
    assert caught.value.place == place
    assert sentence in caught.value.message


def test_only_mappings_and_specs_are_taken():
    with pytest.raises(InputError, match="must be a mapping, got 7"):
        from_dict(7)
    with pytest.raises(InputError, match=r"must be a spec of a cluster or machine or broker.*, got NodeSpec"):
        to_dict(NodeSpec())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"", "mine.toml, kind: missing key; known kinds: cluster, machine, broker"),
        (b'kind = "cluster"\nname = \n', "mine.toml, line 2: invalid TOML: Invalid value"),
        (b'kind = "cluster"\nname = "x', "mine.toml, end: invalid TOML: "),
        (b'kind = "cluster"\nname = "\xff"', "mine.toml: must be UTF-8 text, got byte 0xff"),
        (b'\xef\xbb\xbfkind = "clusters"', "mine.toml, kind: unknown kind 'clusters'; did you mean 'cluster'?"),
        (b"; Version: 2.2\n1 0 0 1 1\n", "mine.toml, line 1: invalid TOML: "),
    ],
    ids=["empty", "no value", "open quote", "latin-1", "byte order mark", "a log"],
)
def test_files_that_are_no_platforms(tmp_path, monkeypatch, text, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_bytes(text)
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}"):
        read_toml("mine.toml")


def test_files_that_cannot_be_read_or_written(tmp_path):
    with pytest.raises(InputError, match=r"missing\.toml: no such file"):
        read_toml(tmp_path / "missing.toml")
    with pytest.raises(InputError, match="must be a file, got a folder"):
        read_toml(tmp_path)
    with pytest.raises(InputError, match="cannot be written: no folder"):
        write_toml(ClusterSpec.simple(4), tmp_path / "missing" / "mine.toml")
    with pytest.raises(InputError, match="must be text that UTF-8 can encode"):
        write_toml(ClusterSpec.simple(4, name="\ud800"), tmp_path / "mine.toml")


def test_kinds_are_a_table():
    assert KINDS["cluster"] is ClusterSpec


@pytest.mark.parametrize(
    ("parts", "place", "sentence"),
    [
        (
            {"outages": [OutageSpec(at=0, nodes=[2])]},
            "outages[0].nodes",
            "must be nodes of batch (0 to 1, or names such as node0)",
        ),
        ({"outages": [OutageSpec(at=0, nodes=["node7"])]}, "outages[0].nodes", "got 'node7'"),
        ({"outages": [OutageSpec(at=0, nodes=[-1])]}, "outages[0].nodes", "got -1"),
        (
            {"reservations": [ReservationSpec(name="batch", start=0, end=1, nodes=[0])]},
            "reservations[0].name",
            "must differ from the names of the partitions, got 'batch'",
        ),
        (
            {"reservations": [ReservationSpec(name="r", start=0, end=1, nodes=[0], queues=["q"])]},
            "reservations[0].queues",
            "unknown queue 'q'; known queues: none",
        ),
        (
            {"queues": [QueueSpec(name="a", preempts=["b"]), QueueSpec(name="b")]},
            "queues[0].preempts",
            "must be a preemptible queue, got 'b'",
        ),
        (
            {"queues": [QueueSpec(name="a", preemptible="requeue", preempts=["a"])]},
            "queues[0].preempts",
            "must be a queue that does not preempt a, got 'a'",
        ),
        (
            {
                "queues": [
                    QueueSpec(name="a", preemptible="requeue", preempts=["b"]),
                    QueueSpec(name="b", preemptible="requeue", preempts=["a"]),
                ]
            },
            "queues[0].preempts",
            "must be a queue that does not preempt a, got 'b'",
        ),
    ],
)
def test_parts_that_do_not_belong_together(parts, place, sentence):
    with pytest.raises(InputError) as error:
        ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=2)])], **parts)
    assert error.value.place == place
    assert sentence in str(error.value)
