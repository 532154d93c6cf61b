"""CGSim's own data: its transfers, its runs, its sites and its jobs."""

import json
import sqlite3
from collections import Counter

import attrs
import pytest

from simmodel import simulate, start
from simmodel.cli import main
from simmodel.environment import Environment
from simmodel.formats.cgsim import read_cgsim, read_cgsim_queues, read_cgsim_sites
from simmodel.formats.cgsim_jobs import read_cgsim_jobs
from simmodel.foundation.loading import read_bytes
from simmodel.platform import FileSpec, GridSpec, LinkSpec, NodeSpec, SiteSpec
from simmodel.records.cgsim_events import CGSIM_EVENTS, CGSimEvents
from simmodel.resources import Network
from simmodel.results.streams import DataSet
from tests.helpers.data_files import data_file


def events(name, folder):
    path = folder / "events.db"
    path.write_bytes(read_bytes(data_file(f"cgsim/{name}"), binary=True)[0])
    with sqlite3.connect(path) as database:
        rows = database.execute("SELECT EVENT, STATE, STATUS, JOB_ID, TIME, METADATA FROM EVENTS").fetchall()
    return [(*row[:5], json.loads(row[5])) for row in rows]


@pytest.mark.parametrize(
    ("name", "event", "count"), [("testing.db.gz", "BackGroundFileTransfer", 31), ("toy_job.db.gz", "FileTransfer", 16)]
)
def test_each_transfer_takes_as_long_as_cgsims(name, event, count, tmp_path):
    found = [row for row in events(name, tmp_path) if row[:2] == (event, "Finished")]
    assert len(found) == count
    for *_, metadata in found:
        env = Environment()
        link = LinkSpec(name="x", bandwidth=metadata["bandwidth"], latency=metadata["latency"], between=("a", "b"))
        network = Network(env, [link], model="simgrid")
        took = env.run(network.transfer(metadata["size"], source="a", destination="b")).end
        assert took == pytest.approx(metadata["duration"], rel=1e-9)


def toy(folder):
    """Return the grid and the jobs of the toy run with the replicas and sizes of its record, and that record."""
    rows = events("toy_job.db.gz", folder)
    where, sizes = {}, {}
    for event, _, _, _, _, metadata in rows:
        if event == "FileTransfer":
            where[metadata["file"]] = metadata["source_site"]
        if event == "FileRead":
            where.setdefault(metadata["file"], metadata["site"])
            sizes[metadata["file"]] = metadata["size"]
    study = read_cgsim(
        data_file("cgsim/toy_config.json.gz"),
        sites=data_file("cgsim/toy_new_site_info.json.gz"),
        connections=data_file("cgsim/toy_new_site_conn_info.json.gz"),
        jobs=data_file("cgsim/toy_job.csv.gz"),
    )
    files = [FileSpec(name=name, size=sizes[name], sites=[where[name]]) for name in where]
    return attrs.evolve(study.grid, files=files), study, rows


def test_the_toy_run_has_the_times_of_cgsim(tmp_path):
    grid, study, rows = toy(tmp_path)
    assert (study.plugin, study.output) == ("simple", "../toy_data/toy_job.db")
    jobs = {str(job["job"]): job for job in simulate(grid, study.workload, "recorded").jobs.rows()}
    assert len(jobs) == 20
    of = {
        ("JobAllocation", "Finished"): "start",
        ("FileRead", "Finished"): "executing",
        ("JobExecution", "Started"): "executing",
        ("JobExecution", "Finished"): "end",
        ("FileWrite", "Started"): "end",
        ("FileWrite", "Finished"): "finished",
    }
    compared = 0
    for event, state, _, job, time, metadata in rows:
        if (event, state) in of:
            assert jobs[job][of[event, state]] == pytest.approx(time, abs=1e-7)
            assert jobs[job]["site"] == metadata["site"]
            compared += 1
    assert compared == 120


def test_the_events_of_the_toy_run_are_cgsims(tmp_path):
    grid, study, rows = toy(tmp_path)
    simulation = start(grid, study.workload, "recorded")
    with DataSet(tmp_path / "own.sqlite", {"EVENTS": CGSIM_EVENTS}) as data:
        simulation.env.observe(CGSimEvents(simulation.system, data))
        simulation.run()
    with sqlite3.connect(tmp_path / "own.sqlite") as database:
        found = database.execute("SELECT EVENT, STATE, STATUS, JOB_ID, TIME, METADATA FROM EVENTS").fetchall()
    assert len(found) == len(rows) == 172
    own = {(event, state, job): (status, time, json.loads(text)) for event, state, status, job, time, text in found}
    assert len(own) == 172
    for event, state, status, job, time, metadata in rows:
        its_status, its_time, its_metadata = own[event, state, job]
        assert its_status == status
        assert its_time == pytest.approx(time, abs=1e-7)
        assert its_metadata.keys() == metadata.keys()
        for key in ("site", "host", "source_site", "destination_site", "cores", "flops", "site_cpu_util"):
            assert its_metadata.get(key) == pytest.approx(metadata.get(key))


def test_cgsims_own_configuration_needs_a_broker_whose_name_the_refusal_says(tmp_path, capsys):
    names = {
        "toy_data": ("toy_new_site_info.json", "toy_new_site_conn_info.json", "toy_job.csv"),
        "c": ("toy_config.json",),
    }
    for folder, files in names.items():
        (tmp_path / folder).mkdir()
        for name in files:
            content = read_bytes(data_file(f"cgsim/{name}.gz"))[0].replace(b"homogenous_", b"")
            (tmp_path / folder / name).write_bytes(content)
    config = str(tmp_path / "c" / "toy_config.json")
    assert main(["grid", config]) == 2
    assert "the plug-in 'simple' is no known broker" in (said := capsys.readouterr().err)
    assert "'recorded' repeats the sites in its jobs" in said
    assert main(["grid", config, "--broker", "recorded"]) == 0
    assert "20 completed" in capsys.readouterr().out


@pytest.mark.long  # smaller: the other tests of the file
def test_the_mimicked_jobs_all_end(tmp_path):
    for name in ("mimic_new_site_info.json", "mimic_new_site_conn_info.json", "mimic_job.csv"):
        (tmp_path / name).write_bytes(read_bytes(data_file(f"cgsim/{name}.gz"))[0])
    names = {"Sites_Information": "mimic_new_site_info.json", "jobs_file": "mimic_job.csv"}
    config = {
        "Sites_Information": names["Sites_Information"],
        "Sites_Connection_Information": "mimic_new_site_conn_info.json",
        "Plugin": "libsimple.so",
        "Custom_Parameters": {"jobs_file": names["jobs_file"], "Num_of_Jobs": "-1"},
    }
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    study = read_cgsim(tmp_path / "config.json")
    assert study.workload is not None
    assert study.workload.specs is not None
    assert (len(study.grid.sites), len(study.workload), len(set(study.workload["site"].tolist()))) == (32, 966, 30)
    assert sum(len(job.inputs) for job in study.workload.specs) == 11_456
    result = simulate(study.grid, study.workload, "recorded")
    assert result.jobs["state"].tolist() == ["finished"] * 966
    assert result.jobs["site"].tolist() == study.workload["site"].tolist()


@pytest.mark.long  # smaller ones: the other tests of the file
def test_the_real_queues_and_their_jobs():
    grid, found = read_cgsim_queues(data_file("cgsim/site_info_cpu.json.gz"), data_file("cgsim/site_conn_info.json.gz"))
    assert len(grid.sites) == 149
    assert sum(site.capacity for site in grid.sites) == 16 * 98_277
    assert found.report.skipped == Counter(
        {"connections of unknown queues": 9696, "connections of a queue with itself": 75, "queues without CPUs": 1}
    )
    assert len(grid.network.links) == 2805
    assert found.report.repaired["rates not measured: median of the same closeness"] == 1491
    assert any(note.startswith("73 of 149 queues have no connection") for note in found.report.notes)
    jobs = read_cgsim_jobs(
        data_file("cgsim/panda_jobs_2024_29512.csv.gz"), gflops=found.gflops, reference=found.reference
    )
    assert len(jobs) == 29_512
    result = simulate(grid, jobs, "recorded")
    states = Counter(result.jobs["state"].tolist())
    assert states == {"finished": 20_595, "rejected": 8_917}
    assert len(result.report.rejected) == 20
    assert result.report.rejected["unknown site TOKYO"] == 479
    assert len(set(result.jobs["site"][result.jobs["state"] == "finished"].tolist())) == 44


def test_the_jobs_at_bnl_run_where_they_ran():
    jobs = read_cgsim_jobs(data_file("cgsim/panda_BNL_jan2025_67.csv.gz"))
    grid = GridSpec(sites=[SiteSpec(name="BNL", hosts=[NodeSpec(count=1, cores=64)]), SiteSpec(name="other", cores=64)])
    result = simulate(grid, jobs, "recorded")
    assert result.jobs["site"].tolist() == ["BNL"] * 67
    recorded = jobs["recorded_end"] - jobs["recorded_start"]
    single = jobs["processors"] == 1
    assert single.sum() == 65
    error = abs(jobs["run"] - recorded)[single]
    assert error.sum() / recorded[single].sum() == pytest.approx(0.038, abs=5e-4)
    assert (error / recorded[single]).mean() == pytest.approx(0.081, abs=5e-4)
    assert (result.jobs["wait"] >= 0).all()


def test_the_sites_of_the_testing_example():
    found = read_cgsim_sites(data_file("cgsim/testing_site_topology.json.gz"))
    assert len(found.sites) == 30
    assert len(found.files) == len({file.name for file in found.files})
