"""Values as Slurm writes them."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from simmodel import InputError
from simmodel_site.twin.slurm.values import (
    Gres,
    amount,
    amounts,
    gres,
    instant,
    memory,
    nodes_of,
    seconds,
    split_list,
    whole,
)


@given(st.integers(0, 400), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_durations_are_read_as_slurm_writes_them(days: int, hours: int, minutes: int, rest: int) -> None:
    expected = float(timedelta(days=days, hours=hours, minutes=minutes, seconds=rest).total_seconds())
    assert seconds(f"{days}-{hours:02d}:{minutes:02d}:{rest:02d}") == expected
    if not days:
        assert seconds(f"{hours:02d}:{minutes:02d}:{rest:02d}") == expected
        if not hours:
            assert seconds(f"{minutes}:{rest:02d}") == expected


@pytest.mark.parametrize("text", ["UNLIMITED", "INFINITE", "NONE", "N/A", "(null)", "", "NOT_SET", "Partition_Limit"])
def test_no_limit_is_none(text: str) -> None:
    assert seconds(text) is None
    assert amount(text) is None
    assert memory(text) is None


def test_instants_have_the_zone_given_or_count_seconds() -> None:
    assert instant("1970-01-02T01:00:00", timezone(timedelta(hours=1))) == 86400.0
    assert instant("86400", timezone(timedelta(hours=1))) == 86400.0
    assert instant("Unknown") is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gpu:4", [Gres("gpu", 4)]),
        ("gpu:h100:2,gpu:h200:4", [Gres("gpu", 2, "h100"), Gres("gpu", 4, "h200")]),
        ("gpu:h100:4(S:0-1)", [Gres("gpu", 4, "h100")]),
        ("gpu:h100:2(IDX:0,2),shard:8", [Gres("gpu", 2, "h100"), Gres("shard", 8)]),
        ("gpu:2080ti", [Gres("gpu", 1, "2080ti")]),
        ("gpu:3090:2", [Gres("gpu", 2, "3090")]),
        ("gres/gpu=2", [Gres("gpu", 2)]),
        ("gres:gpu:a100:3", [Gres("gpu", 3, "a100")]),
        ("craynetwork", [Gres("craynetwork", 1)]),
        ("bandwidth:lustre:no_consume:4G", [Gres("bandwidth", 4 * 2**30, "lustre:no_consume")]),
        ("(null)", []),
        ("", []),
    ],
)
def test_generic_resources(text: str, found: list[Gres]) -> None:
    assert list(gres(text)) == found


def test_amounts_of_resources() -> None:
    assert amounts("cpu=25856,mem=37T,node=512,billing=25856") == {
        "cpu": 25856,
        "mem": 37 * 2**40,
        "node": 512,
        "billing": 25856,
    }
    assert amounts("mem=512M,gres/gpu:h100=2,gres/gpu=2") == {"mem": 2**29, "gres/gpu:h100": 2, "gres/gpu": 2}
    assert amounts("matlab:3,fluent@server:2,ansys") == {"matlab": 3, "fluent@server": 2, "ansys": 1}
    assert amounts("mem=2000") == {"mem": 2000 * 2**20}
    assert not amounts("(null)")


def test_memory_and_counts() -> None:
    assert memory("512Mc") == memory("512n") == 2**29
    assert memory("0") == 0
    assert whole("1-4") == 1
    assert whole("2K") == 2048
    assert nodes_of("n[1-2]") == ("n1", "n2")
    assert nodes_of("None assigned") == ()
    assert list(split_list("a[1,2],b(c,d),e")) == ["a[1,2]", "b(c,d)", "e"]


HOSTILE = st.text(max_size=60) | st.sampled_from(
    ["9" * 5000, "1" + ":1" * 1000, "inf", "nan", "1e999", "-1", "\x1b[31m"]
)


@pytest.mark.parametrize("read", [seconds, instant, amount, whole, memory, nodes_of, gres, amounts])
@given(text=HOSTILE)
def test_wrong_values_are_refused_in_one_sentence(read: Callable[[str], object], text: str) -> None:
    with suppress(InputError):
        read(text)
