"""Wrong files of CGSim get one sentence with the place; bad rows are counted if asked."""

import io
import json

import pytest

from simmodel.formats.cgsim import read_cgsim, read_cgsim_connections, read_cgsim_queues, read_cgsim_sites
from simmodel.formats.cgsim_jobs import read_cgsim_jobs
from simmodel.foundation.errors import InputError
from simmodel.platform import read_toml, write_toml

GROUP = {
    "units": 2,
    "cores": 4,
    "speed": 2e7,
    "BW_CPU": "1GBps",
    "LAT_CPU": "1ns",
    "properties": [{"ram": "64GB"}],
    "disks": [{"name": "D", "read_bw": "100MBps", "write_bw": "50MBps"}],
}
SITE = {
    "SITE_PROPERTIES": {"GFLOPS": "1000", "storage_capacity_bytes": "1e9"},
    "CPUInfo": [GROUP],
    "files": [["f", 10]],
}
HEAD = "pandaid,creationtime,cpuconsumptiontime,computingsite,corecount,inputfilebytes,outputfilebytes\n"


def text(document):
    return io.StringIO(json.dumps(document))


def changed(**changes):
    return {"A": {**SITE, "CPUInfo": [{**GROUP, **changes}]}}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (changed(cores=0), "A.CPUInfo[0].cores: must be a number >= 1, got 0"),
        (changed(speed=0), "A.CPUInfo[0].speed: must be > 0, got 0"),
        (changed(units=0), "A.CPUInfo: must have at least one host"),
        (changed(properties=[{"ram": "64 parsecs"}]), "A.CPUInfo[0].properties[0].ram: "),
        (changed(disks=[{"name": "D", "read_bw": "1GBps"}]), "A.CPUInfo[0].disks[0]: missing key 'write_bw'"),
        ({"A": {**SITE, "SITE_PROPERTIES": {}}}, "A.SITE_PROPERTIES: missing key 'storage_capacity_bytes'"),
        (
            {"A": SITE, "B": {**SITE, "files": [["f", 11]]}},
            "B.files[0]: file 'f': must have one size, got 10 and 11 bytes",
        ),
        ({"A": {**SITE, "files": [["f", 10], ["f", 10]]}}, "A.files[1]: duplicate file 'f' at A"),
        ({"A": {**SITE, "files": [["f"]]}}, "A.files[0]: must be a name and a number of bytes"),
    ],
)
def test_wrong_sites_are_refused(document, message):
    with pytest.raises(InputError) as caught:
        read_cgsim_sites(text(document))
    assert str(caught.value).startswith(f"an open file, {message}")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('{"A": 1, "A": 2}', "an open file: duplicate key 'A'"),
        ('{"A": NaN}', "an open file"),
        ("{", "an open file"),
    ],
)
def test_documents_that_are_no_json(source, message):
    with pytest.raises(InputError, match=message.split(":", maxsplit=1)[0]):
        read_cgsim_sites(io.StringIO(source))


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"A:C": {"bandwidth": "1Gbps", "latency": "1ms"}}, "A:C: unknown site 'C'"),
        ({"A:A": {"bandwidth": "1Gbps", "latency": "1ms"}}, "A:A: must join two different sites, got 'A' twice"),
        ({"A": {"bandwidth": "1Gbps", "latency": "1ms"}}, "A: must be the connection of two sites, 'A:B'"),
        ({"A:B": {"latency": "1ms"}}, "A:B: missing key 'bandwidth'"),
        ({"A:B": {"bandwidth": "1Gbps", "latency": "1 mile"}}, "A:B.latency: "),
        ({"A:B": {"bandwidth": "0Gbps", "latency": "1ms"}}, "A:B.bandwidth: must be > 0, got 0"),
        (
            {"A:B": {"bandwidth": "1Gbps", "latency": "1ms"}, "B:A": {"bandwidth": "1Gbps", "latency": "1ms"}},
            "B:A: duplicate connection of B and A",
        ),
    ],
)
def test_wrong_connections(document, message):
    with pytest.raises(InputError) as caught:
        read_cgsim_connections(text(document), ["A", "B"])
    assert str(caught.value).startswith(f"an open file, {message}")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("7,ten,100,A,8,0,0\n", "line 2: creationtime: must be an instant, got 'ten'"),
        ("7,10,-1,A,8,0,0\n", "line 2: cpuconsumptiontime: must be a finite number >= 0, got '-1'"),
        ("7,10,nan,A,8,0,0\n", "line 2: cpuconsumptiontime: must be a finite number >= 0, got 'nan'"),
        ("7,10,1,A,0,0,0\n", "line 2: corecount: must be a finite number >= 1, got '0'"),
        ("7,10,1,A,1.5,0,0\n", "line 2: corecount: must be a whole number >= 1, got '1.5'"),
        ("7,10,1,,1,0,0\n", "line 2: computingsite: must not be empty"),
        (",10,1,A,1,0,0\n", "line 2: pandaid: must not be empty"),
        ("7,10,1,A,1,0\n", "line 2: cells: must have 7 cells, got 6"),
        ("7,10,1,9,1,0,0\n", "line 2: computingsite: must be the number of one of 1 sites, from 0 on, got '9'"),
        (f"7,10,1,{'9' * 5000},1,0,0\n", f"{'9' * 28}'"),  # longer than Python reads as a number
        ("", "no jobs"),
    ],
)
def test_bad_rows_are_refused_or_counted(rows, message):
    with pytest.raises(InputError) as caught:
        read_cgsim_jobs(io.StringIO(HEAD + rows), gflops={"A": 1.0})
    assert str(caught.value).startswith("an open file")
    assert str(caught.value).endswith(message)
    good = "8,20,100,A,8,0,50\n"
    jobs = read_cgsim_jobs(io.StringIO(HEAD + rows + good), gflops={"A": 1.0}, skip_bad_rows=True)
    assert jobs["job"].tolist() == [8]
    assert sum(jobs.report.skipped.values()) == (1 if rows else 0)


def test_tables_of_other_columns_are_refused():
    for head, message in (
        ("id,x\n", "must have a column pandaid or job_id"),
        ("pandaid,x\n", "missing column creationtime"),
    ):
        with pytest.raises(InputError, match=message):
            read_cgsim_jobs(io.StringIO(head + "1,2\n"))


def test_a_configuration_with_its_files(tmp_path):
    (tmp_path / "sites.json").write_text(json.dumps({"A": SITE, "B": SITE}), encoding="utf-8")
    connections = {"A:B": {"bandwidth": "1Gbps", "latency": "1ms"}}
    (tmp_path / "conn.json").write_text(json.dumps(connections), encoding="utf-8")
    (tmp_path / "jobs.csv").write_text(HEAD + "7,10,100,A,4,0,50\n8,30,100,B,4,0,50\n", encoding="utf-8")
    config = {
        "Grid_Name": "two",
        "Sites_Information": "sites.json",
        "Sites_Connection_Information": "conn.json",
        "Plugin": "libx.so",
        "Custom_Parameters": {"jobs_file": "jobs.csv", "Num_of_Jobs": "1", "output_file": "out.db"},
    }
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    study = read_cgsim(tmp_path / "config.json")
    assert (study.grid.name, study.plugin, study.output) == ("two", "libx.so", "out.db")
    site = study.grid.sites[0]
    assert (site.capacity, site.storage.capacity, site.disks, site.staging) == (8, 1e9, ((1e8, 5e7),), "inside")
    assert study.grid.files[0].sites == ("A", "B")
    assert study.workload is not None
    assert study.workload["job"].tolist() == [7]
    assert study.workload["run"].tolist() == [100 * 1000 / 2e7]  # work over the speed of a core
    write_toml(study.grid, tmp_path / "grid.toml")
    assert read_toml(tmp_path / "grid.toml") == study.grid


def test_queues_are_filled_by_a_stated_rule():
    queue = {"RSE": {"D": "1.5"}, "CPUCount": 2, "CPUSpeed": [1e9, 3e9]}
    sites = dict.fromkeys("ABC", queue) | {"none": {"RSE": {}, "CPUCount": 0, "CPUSpeed": []}}
    connections = {
        "A:A": {"closeness": {"latest": 0}},
        "A:B": {"closeness": {"latest": 1}, "mbps": {"x": {"1h": 80, "timestamp": "now"}}},
        "B:A": {"closeness": {"latest": 1}, "mbps": {"x": {"1h": 40}}},
        "B:C": {"closeness": {"latest": 9}},
        "A:Z": {"closeness": {"latest": 1}},
    }
    grid, found = read_cgsim_queues(text(sites), text(connections), latency="10ms", cores=4)
    assert [(site.capacity, site.storage.capacity) for site in grid.sites] == [(8, 1.5e12)] * 3
    links = {link.name: link for link in grid.network.links}
    assert {name: link.bandwidth for name, link in links.items()} == {"A:B": 1e7, "B:C": 1e7}
    assert links["A:B"].latency == 0.01
    assert dict(found.report.skipped) == {
        "queues without CPUs": 1,
        "connections of a queue with itself": 1,
        "connections of unknown queues": 1,
    }
    assert found.report.repaired["rates not measured: median of the same closeness"] == 1


@pytest.mark.parametrize("missing", ["Sites_Information", "Sites_Connection_Information", "jobs_file"])
def test_a_file_that_is_missing_is_told_where_it_is_named(tmp_path, missing):
    names = {"Sites_Information": "sites.json", "Sites_Connection_Information": "links.json", "jobs_file": "jobs.csv"}
    contents = {"Sites_Information": json.dumps({"A": SITE}), "Sites_Connection_Information": "{}", "jobs_file": HEAD}
    for key, name in names.items():
        if key != missing:
            (tmp_path / name).write_text(contents[key])
    path = tmp_path / "config.json"
    jobs = {"jobs_file": names.pop("jobs_file")}
    path.write_text(json.dumps({**names, "Custom_Parameters": jobs}))
    name = {**names, **jobs}[missing]
    with pytest.raises(InputError, match=rf"config\.json, .*{missing}: must be a file, got .*{name}, which does not"):
        read_cgsim(path)
