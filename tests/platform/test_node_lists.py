"""Lists of nodes in short, and nodes whose names are listed."""

import pytest
from hypothesis import given, strategies as st

from simmodel import InputError, Job, simulate
from simmodel.foundation.loading import limits
from simmodel.platform import ClusterSpec, NodeSpec, OutageSpec, PartitionSpec, ReservationSpec, from_dict, to_dict
from simmodel.platform.node_lists import NodeList, node_list, node_names

PREFIXES = st.sampled_from(["n", "cn", "gpu-", "r1-n", "login", "node.a", "0x", ""])
NAMES = st.builds(
    lambda prefix, number, digits: f"{prefix}{number:0{digits}d}",
    PREFIXES,
    st.integers(0, 1200),
    st.integers(1, 4),
)
WORDS = st.text(st.characters(exclude_characters="[],"), min_size=1, max_size=12)


@given(st.lists(NAMES | WORDS, max_size=40))
def test_names_that_are_folded_come_back_in_their_order(names: list[str]) -> None:
    assert list(node_names(node_list(names))) == names


@given(st.lists(NAMES | WORDS, max_size=40, unique=True), WORDS | NAMES)
def test_the_place_of_a_name_is_found_without_spelling_out_the_list(names: list[str], other: str) -> None:
    listed = NodeList.of(node_list(names))
    assert len(listed) == len(names)
    assert [listed.index(name) for name in names] == list(range(len(names)))
    assert listed.index(other) == (names.index(other) if other in names else None)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("n1", ["n1"]),
        ("n[1-3,7],login", ["n1", "n2", "n3", "n7", "login"]),
        ("cn[098-101]", ["cn098", "cn099", "cn100", "cn101"]),
        ("n[8-11]", ["n8", "n9", "n10", "n11"]),
        ("n[1-2,01-02]", ["n1", "n2", "n01", "n02"]),
        ("r[0-1]n[1-2]", ["r0n1", "r0n2", "r1n1", "r1n2"]),
        ("r[1-2]-ib", ["r1-ib", "r2-ib"]),
    ],
)
def test_lists_by_hand(text: str, names: list[str]) -> None:
    assert list(node_names(text)) == names
    assert [NodeList.of(text).index(name) for name in names] == list(range(len(names)))


@pytest.mark.parametrize(
    "wrong",
    ["n[1-3", "n1-3]", "n[3-1]", "n[a-b]", "n[]", "n[1,]", "n1,", ",n1", "n1,,n2", "n[1][2]", "n[-1]", "n[[1]]"],
)
def test_wrong_lists_are_refused(wrong: str) -> None:
    with pytest.raises(InputError, match="must be a list of nodes such as"):
        node_names(wrong)


def test_lists_are_not_spelled_out_beyond_the_limit() -> None:
    with pytest.raises(InputError, match="limit count"):
        node_names("n[0-99999999999]")
    with limits(count=4), pytest.raises(InputError, match="limit count"):
        node_names("r[1-2]n[1-3]")
    assert len(node_names("r[1-2]n[1-3]")) == 6


@pytest.mark.parametrize("name", ["", "a,b", "n[1]"])
def test_names_that_no_list_can_hold_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="without commas and brackets"):
        node_list(["n1", name])


LISTED = PartitionSpec(
    nodes=[NodeSpec(names="n[1-2],login", cores=4), NodeSpec(count=2), NodeSpec(names="g07", gpus=1), NodeSpec()]
)


def test_nodes_have_the_names_of_their_list() -> None:
    assert LISTED.node_names == ("n1", "n2", "login", "node0", "node1", "g07", "node2")
    assert [LISTED.node_number(name) for name in LISTED.node_names] == list(range(7))
    assert [LISTED.has_node(name) for name in ("n0", "n3", "n01", "node3", "g7", f"node{'9' * 5000}")] == [False] * 6
    assert LISTED.capacity == 12 + 4


def test_listed_nodes_go_through_plain_values() -> None:
    spec = ClusterSpec(partitions=[LISTED], outages=[OutageSpec(at=0, nodes=["login"])])
    assert to_dict(spec)["partitions"][0]["nodes"][0] == {"names": "n[1-2],login", "count": 3, "cores": 4}
    assert from_dict(to_dict(spec)) == spec


def test_jobs_run_on_listed_nodes() -> None:
    spec = ClusterSpec(partitions=[LISTED], outages=[OutageSpec(at=0, until=7, nodes=["n1"])])
    found = simulate(spec, [Job(id=1, submit=1, nodes=3, cores_per_node=4, run=5)], "fcfs")
    assert found.jobs["start"].tolist() == [7.0]


def test_reservations_have_listed_nodes() -> None:
    held = ReservationSpec(name="course", start=0, end=50, nodes=["n2", "login"], partition="batch")
    spec = ClusterSpec(partitions=[LISTED], reservations=[held])
    jobs = [
        Job(id=1, submit=1, nodes=2, cores_per_node=4, run=5, partition="course"),
        Job(id=2, submit=1, nodes=3, cores_per_node=4, run=5),
    ]
    found = simulate(spec, jobs, "fcfs")
    assert found.jobs["start"].tolist() == [1.0, 50.0]


@pytest.mark.parametrize(
    ("nodes", "sentence"),
    [
        ({"names": "n[1-3]", "count": 2}, "partitions[0].nodes[0].count: must be 3, as many as there are names, got 2"),
        ({"names": "n[1-"}, "partitions[0].nodes[0].names: must be a list of nodes such as"),
        ({"names": ""}, "partitions[0].nodes[0].names: must not be empty"),
        ({"names": "n[1-2],n2"}, "partitions[0].nodes: duplicate node name 'n2'"),
    ],
)
def test_wrong_names_of_nodes_are_refused(nodes: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        from_dict({"kind": "cluster", "partitions": [{"nodes": [nodes]}]})
    assert sentence in str(error.value)
