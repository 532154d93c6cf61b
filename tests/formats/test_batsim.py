"""Batsim's workloads: each type of profile alone by hand, wall times, jobs.csv, and what is refused."""

import csv
import gzip
import io
import json

import pytest

from simmodel import Job, load_workload, simulate, start
from simmodel.cli import main
from simmodel.formats import read_schedule
from simmodel.formats.batsim import JOBS_CSV, read_batsim, read_batsim_run, write_batsim_jobs
from simmodel.foundation.errors import InputError
from simmodel.snapshots import Snapshot
from simmodel.snapshots.codec import read_state, write_fields
from simmodel.work.traffic import Phase, Phases, Traffic
from tests.helpers.data_files import data_file

# Each host has 2 Gflop/s and its own links up and down of 100 MB/s; messages to itself pass both.
PLATFORM = """<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-3" speed="2Gf"
    bw="100MBps" lat="50us"/></platform>"""
MATRIX = [0, 1e8, 0, 0, 0, 0, 0, 0, 0, 3e8, 0, 0, 0, 0, 0, 0]
PROFILES = {
    "delay": {"type": "delay", "delay": 20.2},
    "cpu": {"type": "msg_par", "cpu": [4e9, 0, 1e9, 0]},
    "com": {"type": "ptask", "com": MATRIX},
    "self": {"type": "parallel", "com": [2e8, *[0] * 15]},
    "both": {"type": "ParallelTaskProfile", "cpu": [2e10, 0, 0, 0], "com": MATRIX},
    "even": {"type": "msg_par_hg", "cpu": 1e9, "com": 1e8},
    "busy": {"type": "ptask_homogeneous", "cpu": 9e9, "com": 1e8},
    "old total": {"type": "msg_par_hg_tot", "cpu": 4e9, "com": 4e8},
    "spread": {
        "type": "ParallelTaskHomogeneousProfile",
        "generation_strategy": "DefinedAmountsSpreadUniformly",
        "cpu": 4e9,
        "com": 4e8,
    },
    "nothing": {"type": "parallel_homogeneous", "cpu": 0, "com": 0},
    "flow": {"type": "composed", "repeat": 4, "seq": ["com", "even", "delay"]},
    "nested": {"type": "SequentialCompositionProfile", "nb": 2, "seq": ["flow", "cpu", "nothing"]},
    "waits": {"type": "sequential_composition", "repeat": 3, "seq": ["delay", "cpu"]},
}
LAG = 1e-4  # s: the latency of two links, after which a step with messages begins
ALONE = {  # s: the most of the link that is used most, and the computation
    "delay": 20.2,
    "cpu": 2.0,
    "com": 4.0 + LAG,
    "self": 2.0 + LAG,
    "both": 10.0 + LAG,
    "even": 3.0 + LAG,
    "busy": 4.5 + LAG,
    "old total": 3.0 + LAG,  # 100 MB from each node to each other one
    "spread": 1.0 + LAG,  # 33.3 MB
    "nothing": 0.0,
    "flow": 4 * (4.0 + 3.0 + 20.2 + 2 * LAG),
    "nested": 2 * (4 * (4.0 + 3.0 + 20.2 + 2 * LAG) + 2.0),
    "waits": 3 * (20.2 + 2.0),
}


@pytest.fixture
def platform(tmp_path):
    path = tmp_path / "cluster.xml"
    path.write_text(PLATFORM)
    return path


def document(*jobs, **profiles):
    return {"nb_res": 4, "jobs": list(jobs), "profiles": {**PROFILES, **profiles}}


def job(profile, id="j", **changes):
    return {"id": id, "subtime": 0, "res": 4, "profile": profile} | changes


def as_file(given):
    return io.StringIO(json.dumps(given))


def replay(given, platform):
    run = read_batsim_run(as_file(given), platform)
    return simulate(run.cluster, run.workload, "fcfs")


@pytest.mark.parametrize("profile", PROFILES)
def test_each_profile_alone_ends_as_by_hand(profile, platform):
    result = replay(document(job(profile)), platform)
    assert result.jobs["status"].tolist() == ["completed"]
    assert result.jobs["end"].tolist() == pytest.approx([ALONE[profile]], rel=1e-12)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_wall_time_kills(profile, platform):
    given = document(job(profile, walltime=1.5), job("delay", "next", walltime=-1))
    result = replay(given, platform)
    killed = ALONE[profile] > 1.5
    assert result.jobs["status"].tolist() == ["timeout" if killed else "completed", "completed"]
    ends = [min(ALONE[profile], 1.5), min(ALONE[profile], 1.5) + 20.2]
    assert result.jobs["end"].tolist() == pytest.approx(ends, rel=1e-12)


def test_one_resource_sends_nothing(platform):
    result = replay(document(job("even", res=1), job("spread", "k", res=1), job("old total", "l", res=1)), platform)
    assert result.jobs["end"].tolist() == pytest.approx([0.5, 2.0, 2.0])


def test_phases_of_two_jobs_slow_each_other(platform):
    """Both send 100 MB from one node to another through links of their own, except for the second phase of each."""
    platform.write_text(PLATFORM.replace('lat="50us"', 'lat="50us" bb_bw="100MBps" bb_lat="0"'))
    step = {"type": "msg_par", "com": [0, 1e8, 0, 0]}
    flow = {"type": "composed", "seq": ["short", "step"]}
    given = document(job("flow", res=2), job("flow", "k", res=2), flow=flow, step=step)
    given["profiles"]["short"] = {"type": "delay", "delay": 1}
    result = replay(given, platform)
    assert result.jobs["end"].tolist() == pytest.approx([3.0 + LAG, 3.0 + LAG])
    assert result.runs["alone"].tolist() == pytest.approx([2.0 + LAG, 2.0 + LAG])
    assert result.runs["stretch"].tolist() == pytest.approx([(3.0 + LAG) / (2.0 + LAG)] * 2)


@pytest.mark.few(4)
@pytest.mark.parametrize("cut", [0.5, 3.0, 4.0, 5.9, 7.0, 20.0, 27.2, 30.0, 100.0])
def test_phases_continue_from_a_snapshot(cut, platform):
    run = read_batsim_run(as_file(document(job("flow"), job("both", "k"))), platform)
    whole = simulate(run.cluster, run.workload, "fcfs")
    simulation = start(run.cluster, run.workload, "fcfs", until=cut)
    simulation.run()
    rest = start(Snapshot.from_json(simulation.snapshot().to_json())).run().result()
    assert rest.jobs["end"].tolist()[-2:] == pytest.approx(whole.jobs["end"].tolist(), rel=1e-12)


def test_phases_survive_json():
    phases = Phases([Phase(Traffic([[1, 2], [0, 0]]), 3.0), Phase(compute=2.0)], repeats=4)
    given = Job(id=1, nodes=2, traffic=phases, requested=60)
    assert read_state(json.loads(json.dumps(write_fields(given))), Job) == given
    with pytest.raises(ValueError, match="compute: must be left out beside phases"):
        Job(nodes=2, traffic=phases, compute=5)


def test_delays_need_no_platform(tmp_path):
    path = tmp_path / "work.json"
    path.write_text(json.dumps(document(job("delay"), job("delay", 7, subtime=3, walltime=10, res=2))))
    log = load_workload(path)
    assert (len(log), log.processors, log["run"].tolist()) == (2, 4, [20.2, 20.2])
    assert simulate(4, log, "fcfs").jobs["end"].tolist() == pytest.approx([20.2, 30.2])
    with pytest.raises(InputError, match=r"jobs\[0\].profile: profile 'cpu' computes or sends: it needs a platform"):
        read_batsim(as_file(document(job("cpu"))))


def test_the_command_writes_jobs_csv(tmp_path, platform, capsys):
    work, out = tmp_path / "work.json", tmp_path / "out.csv"
    given = document(job("delay", res=2), job("flow", 7, subtime=1, walltime=1), job("delay", "wide", res=9))
    work.write_text(json.dumps(given))
    main(["batch", str(work), "--platform", str(platform), "--policy", "fcfs", "--batsim", str(out)])
    assert "3 (1 completed, 1 rejected, 1 timeout)" in capsys.readouterr().out
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert tuple(rows[0]) == JOBS_CSV
    first, second, third = (list(row.values()) for row in rows)
    assert first[:8] == ["j", "work", "delay", "0.0", "2", "-1", "1", "COMPLETED_SUCCESSFULLY"]
    assert first[14:] == ["0-1", "-1", ""]
    assert [float(each) for each in first[8:14]] == pytest.approx([0, 20.2, 20.2, 0, 20.2, 1])
    assert (second[2], second[6], second[7], second[14]) == ("flow", "0", "COMPLETED_WALLTIME_REACHED", "0-3")
    assert [float(each) for each in second[8:14]] == pytest.approx([20.2, 1, 21.2, 19.2, 20.2, 20.2])
    assert third[7:15] == ["REJECTED", *["-1.0"] * 6, ""]
    schedule = read_schedule(out)
    assert schedule["job"].tolist()[:2] == ["j", "7"]


def test_delays_ignore_speeds(platform):
    hosts = '<host id="a" speed="1Gf"/><host id="b" speed="3Gf"/>'
    platform.write_text(f'<platform version="4.1"><zone id="z" routing="Full">{hosts}</zone></platform>')
    assert replay(document(job("delay", res=2)), platform).jobs["end"].tolist() == [20.2]
    even = {"type": "msg_par_hg", "cpu": 6e9, "com": 0}
    assert replay(document(job("even", res=2), even=even), platform).jobs["end"].tolist() == [6.0]
    for jobs in (("delay", "even"), ("even", "delay")):
        with pytest.raises(InputError, match="hosts have different speeds: delays and computation in one workload"):
            replay(document(*(job(name, name) for name in jobs)), platform)
    with pytest.raises(InputError, match=r"profiles.cpu.cpu: must be equal on all nodes"):
        replay(document(job("cpu")), platform)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"profiles": {"p": {"type": "smpi", "trace": "t.txt"}}},
            "profiles.p.type: 'smpi' is not read: the replay of an",
        ),
        (
            {"profiles": {"p": {"type": "TraceReplayProfile"}}},
            "'TraceReplayProfile' is not read: the replay of a trace",
        ),
        ({"profiles": {"p": {"type": "data_staging"}}}, "'data_staging' is not read: a transfer between storages"),
        ({"profiles": {"p": {"type": "msg_par_hg_pfs"}}}, "'msg_par_hg_pfs' is not read: a transfer between the nodes"),
        ({"profiles": {"p": {"type": "send"}}}, "'send' is not read: a message"),
        (
            {"profiles": {"p": {"type": "dealy"}}},
            "profiles.p.type: unknown type of profile 'dealy'; did you mean 'delay'",
        ),
        ({"profiles": {"p": {"delay": 5}}}, "profiles.p: missing key 'type'"),
        ({"profiles": {"p": {"type": "delay"}}}, "profiles.p: missing key 'delay'"),
        ({"profiles": {"p": {"type": "delay", "delay": -1}}}, "profiles.p.delay: must be a number >= 0, got -1"),
        ({"profiles": {"p": {"type": "delay", "delay": 1, "cpu": 2}}}, "profiles.p.cpu: unknown key 'cpu'"),
        ({"profiles": {"p": {"type": "delay", "delay": 1, "ret": "1"}}}, "profiles.p.ret: must be a number"),
        ({"profiles": {"p": {"type": "msg_par", "cpu": [1, 2]}}}, "profiles.p.cpu: must have 4 values for 4 resources"),
        (
            {"profiles": {"p": {"type": "msg_par", "com": [1] * 4}}},
            "profiles.p.com: must have 16 values for 4 resources",
        ),
        ({"profiles": {"p": {"type": "msg_par_hg", "generation_strategy": "x"}}}, "unknown strategy 'x'"),
        ({"profiles": {"p": {"type": "composed", "seq": ["q"]}}}, r"profiles.p.seq\[0\]: unknown profile 'q'"),
        ({"profiles": {"p": {"type": "composed", "seq": ["p"]}}}, "profile 'p' must not contain itself"),
        ({"profiles": {"p": {"type": "composed", "seq": [], "repeat": 0}}}, "profiles.p.repeat: must be a number >= 1"),
        ({"jobs": []}, "jobs: must not be empty"),
        ({"jobs": [job("p"), job("p")]}, r"jobs\[1\].id: duplicate job id 'j'"),
        ({"jobs": [job("q")]}, r"jobs\[0\].profile: unknown profile 'q'; known profiles: p"),
        ({"jobs": [job("p", res=0)]}, r"jobs\[0\].res: must be a number >= 1, got 0"),
        ({"jobs": [job("p", res=1.5)]}, r"jobs\[0\].res: must be a whole number >= 1, got 1.5"),
        ({"jobs": [job("p", walltime=0)]}, r"jobs\[0\].walltime: must be a number > 0, or -1 for none, got 0"),
        ({"jobs": [job("p", dependencies=["a"])]}, r"jobs\[0\].dependencies: is not read, and it would change when"),
        ({"jobs": [{"id": 1, "res": 1, "profile": "p"}]}, r"jobs\[0\]: missing key 'subtime'"),
        ({"nb_res": "four"}, "nb_res: must be a number >= 1"),
    ],
)
def test_wrong_workloads_are_refused(change, text):
    given = {"nb_res": 4, "jobs": [job("p")], "profiles": {"p": {"type": "delay", "delay": 5}}} | change
    with pytest.raises(InputError, match=text):
        read_batsim(as_file(given), flops=1e9)


def test_keys_that_tell_about_jobs_are_counted():
    profiles = {"p": {"type": "delay", "delay": 5, "origin": "a trace"}}
    jobs = [job("p", expected_execution_time=5), job("p", id="k", expected_execution_time=5, comments="none")]
    log = read_batsim(as_file({"nb_res": 4, "jobs": jobs, "profiles": profiles, "generated_by": "hand"}))
    assert log.report.skipped == {
        "key expected_execution_time of jobs": 2,
        "key origin of profiles": 1,
        "key generated_by of the workload": 1,
    }
    assert "key expected_execution_time of jobs 2" in str(simulate(4, log, "easy").report)


FILES = {
    "batsim_workload_test_batsim_paper_workload_seed1": (800, 32),
    "batsim_workload_example_workload_hpc_seed1_jobs250": (250, 128),
    "batsim_workload_test_same_submit_time": (18, 1),
    "batsim_workload_test_various_profile_types": (11, 4),
}


@pytest.mark.parametrize("name", FILES)
def test_workloads_of_batsim_run_for_their_delays_or_limits(name):
    work = data_file(f"platform/{name}.json.gz")
    run = read_batsim_run(work, data_file("platform/batsim_cluster512.xml.gz"))
    assert (len(run.workload), run.workload.processors) == FILES[name]
    result = simulate(run.cluster, run.workload, "easy")
    given = json.loads(gzip.decompress(work.read_bytes()))
    for row in result.jobs.rows():
        assert row["status"] in ("completed", "timeout")
    delays = {each["id"]: given["profiles"][each["profile"]].get("delay") for each in given["jobs"]}
    limits = {each["id"]: each.get("walltime", float("inf")) for each in given["jobs"]}
    for row in result.jobs.rows():
        if delays[row["job"]] is not None:
            assert row["run"] == pytest.approx(min(delays[row["job"]], limits[row["job"]]), rel=1e-9)


def test_the_types_of_profiles_of_batsim():
    """The ends in SimGrid 3.32, of each job alone by its ``parallel_execute`` under ptask_L07.

    By hand: link 9 (7.20975 MB/s) carries what Mercury gets; hosts have 100 Mflop/s; the longest route has 3.4 ms.
    """
    work = data_file("platform/batsim_workload_test_various_profile_types.json.gz")
    run = read_batsim_run(work, data_file("platform/batsim_energy_platform_homogeneous.xml.gz"))
    rows = {row["job"]: row for row in simulate(run.cluster, run.workload, "fcfs").jobs.rows()}
    expected = {
        "delay": 20.2,
        "simple": 2.083953509960054,
        "simple_no_com": 0.05,
        "simple_no_cpu": 2.083953509960054,
        "reach_walltime": 1.0,  # killed
        "homo": 0.8356439291840232,
        "homo_no_cpu": 0.8356439291840232,
        "homo_no_com": 0.002,
        "seq": 20.014203796416528,
        "2_resources": 0.142138606530672,
        "4_resources": 0.07278807426533263,
    }
    assert expected["simple"] == pytest.approx(15e6 / 7.20975e6 + 0.003437542)
    assert {name: rows[name]["run"] for name in expected} == pytest.approx(expected, rel=1e-12)
    assert [name for name, row in rows.items() if row["status"] == "timeout"] == ["reach_walltime"]


def test_a_result_without_its_workload_has_no_profiles(tmp_path):
    out = tmp_path / "out.csv"
    write_batsim_jobs(simulate(4, [Job(id=1, run=5, processors=2)], "fcfs"), out)
    assert (
        out.read_text().splitlines()[1].startswith("1,w0,,0.0,2,-1,1,COMPLETED_SUCCESSFULLY,0.0,5.0,5.0,0.0,5.0,1.0,")
    )
