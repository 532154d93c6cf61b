"""Specs of grids: TOML both ways, and refusals."""

import pytest

from simmodel.foundation.errors import InputError
from simmodel.platform import (
    DelaySpec,
    FileSpec,
    GridSpec,
    LinkSpec,
    NetworkSpec,
    NodeSpec,
    SiteOutageSpec,
    SiteSpec,
    StorageSpec,
    from_dict,
    read_toml,
    to_dict,
    write_toml,
)

SPEC = GridSpec(
    name="two",
    sites=[
        SiteSpec(
            name="a",
            hosts=[NodeSpec(count=2, cores=8, memory="64GB")],
            storage=StorageSpec(capacity="3TB", read_bandwidth="2GBps", evict="lfu"),
            disks=[(1e9, 5e8)],
            staging="inside",
            overhead=DelaySpec(distribution="log-normal", mean=300, cv=0.5),
            tier=0,
        ),
        SiteSpec(name="b", cores=4, overhead="5min", limit=10),
    ],
    network=NetworkSpec(links=[LinkSpec(name="wan", bandwidth="1Gbps", between=("a", "b"))], model="simgrid"),
    files=[FileSpec(name="f", size="1GB", sites=["a", "b"])],
    outages=[SiteOutageSpec(site="b", at="1h", until="2h")],
    retries=2,
)


def test_a_spec_goes_through_toml_and_back(tmp_path):
    assert from_dict(to_dict(SPEC)) == SPEC
    write_toml(SPEC, tmp_path / "grid.toml")
    assert read_toml(tmp_path / "grid.toml") == SPEC
    assert SPEC.sites[1].overhead == DelaySpec(mean=300)
    assert SPEC.files[0].size == 1e9


def test_a_delay_is_a_number_a_text_or_a_table():
    for given in (300, "5min", {"mean": "5min"}):
        spec = from_dict({"kind": "grid", "sites": [{"name": "a", "cores": 8, "overhead": given}]})
        assert spec.sites[0].overhead == DelaySpec(mean=300)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sites": []}, "sites: must not be empty"),
        ({"sites": [{"name": "a", "cores": 1}, {"name": "a", "cores": 1}]}, "sites[1].name: duplicate name 'a'"),
        ({"sites": [{"name": "a"}]}, "sites[0].hosts: must have either hosts or cores, got neither"),
        ({"files": [{"name": "f", "size": 1, "sites": ["c"]}]}, "files[0].sites: unknown site 'c'"),
        ({"files": [{"name": "f", "size": float("nan"), "sites": ["a"]}]}, "files[0].size: must be a number"),
        ({"outages": [{"site": "c", "at": 1}]}, "outages[0].site: unknown site 'c'"),
        ({"outages": [{"site": "a", "at": 1, "until": 1}]}, "outages[0].until: must be > at"),
        ({"retries": -1}, "retries: must be a whole number >= 0"),
        ({"network": {"links": [], "model": "lv8"}}, "network.model: unknown model 'lv8'"),
        ({"retry": 1}, "retry: unknown key 'retry'; did you mean 'retries'?"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(change, message):
    document = {"kind": "grid", "sites": [{"name": "a", "cores": 8}], **change}
    with pytest.raises(InputError) as caught:
        from_dict(document)
    assert str(caught.value).startswith(message)
