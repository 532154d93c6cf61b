"""How a job's run ends is data: words and numbers of logs, results, dependencies, snapshots, streams."""

import io
from types import SimpleNamespace

import numpy as np
import pytest

from simmodel import Cluster, Environment, InputError, Job, Workload, load_result, simulate, start
from simmodel.formats import read_cgsim_jobs, read_columns, read_gwf, read_pbs, read_sacct, read_swf, write_swf
from simmodel.formats.batsim import read_batsim
from simmodel.platform import GridSpec, SiteSpec
from simmodel.resources import CountPool
from simmodel.systems import JobSystem
from simmodel.work import Dependency, File
from simmodel.work.outcomes import OUTCOMES, outcome_in


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        *((word, word) for word in OUTCOMES),
        *((word.upper().replace("-", "_"), word) for word in OUTCOMES),
        ("CANCELLED by 5", "cancelled"),
        ("cancelled by root", "cancelled"),
        ("Canceled", "cancelled"),
        ("NODE_FAIL", "node-failure"),
        ("BOOT_FAIL", "node-failure"),
        ("lost", "node-failure"),
        ("OUT_OF_ME+", "out-of-memory"),
        ("CANCELLED+", "cancelled"),
        ("DEADLINE", "timeout"),
        ("COMPLETED_SUCCESSFULLY", "completed"),
        ("COMPLETED_WALLTIME_REACHED", "timeout"),
        ("COMPLETED_FAILED", "failed"),
        ("COMPLETED_KILLED", "cancelled"),
        ("1", "completed"),
        ("0", "failed"),
        ("5", "cancelled"),
        ("2", ""),
        ("-1", ""),
        ("RUNNING", ""),
        ("REJECTED", ""),
    ],
)
def test_words_and_numbers_stand_for_outcomes(text, outcome):
    assert outcome_in(text) == outcome


@pytest.mark.parametrize("text", ["BANANA", "complet", "x+", "by 5", "failed badly"])
def test_unknown_words_are_refused(text):
    with pytest.raises(ValueError, match="must be completed, timeout, failed"):
        outcome_in(text)


def test_jobs_take_outcomes_in_any_case():
    assert Job(run=1, outcome="NODE_FAIL").outcome == "node-failure"
    assert Job(run=1, exit_code=0).outcome == "completed"
    assert Job(run=1, exit_code=2).outcome == "failed"
    assert Job(run=1, exit_code=2, outcome="timeout").outcome == "timeout"
    assert Job(cancel=9).outcome == "cancelled"
    with pytest.raises(ValueError, match=r"outcome: must be completed, .* got 'ended'"):
        Job(run=1, outcome="ended")
    with pytest.raises(ValueError, match="exit_code: must be a whole number, got 'one'"):
        Job(run=1, exit_code="one")
    with pytest.raises(ValueError, match="must have a run time, a body"):
        Job(processors=2)


def chain(outcome):
    """Return a job with this outcome, and one each that runs after it in any case, if it failed and if it completed."""
    after = {2: "end", 3: "failure", 4: "success"}
    return [
        Job(id=1, run=10, processors=4, outcome=outcome),
        *(Job(id=i, submit=1, run=5, dependencies=[Dependency(1, after=what)]) for i, what in after.items()),
    ]


PLATFORMS = {"cluster": 4, "broker": {"a": 4, "b": 4}}


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=PLATFORMS)
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_dependencies_heed_the_outcome(platform, outcome):
    policy = "easy" if platform == 4 else "round-robin"
    jobs = simulate(platform, chain(outcome), policy).jobs
    well = outcome == "completed"
    assert jobs["status"].tolist() == [outcome, "completed", *(["completed", "cancelled"][:: -1 if well else 1])]
    assert np.isnan(jobs["start"]).tolist() == [False, False, well, not well]
    assert jobs["start"][np.isfinite(jobs["start"])].tolist() == [0, 10, 10]


@pytest.mark.parametrize("platform", [4, {"a": 4, "b": 4}], ids=PLATFORMS)
def test_jobs_whose_dependencies_fail_say_why_and_are_counted(platform):
    policy = "easy" if platform == 4 else "round-robin"
    result = simulate(platform, chain("failed"), policy)
    assert result.jobs["reason"].tolist() == ["", "", "", "needs the success of job 1, which is failed"]
    assert result.metrics()["never_started"] == {"after a job that ended otherwise": 1}
    assert "jobs never started                   1 after a job that ended otherwise" in result.summary()
    other = simulate(platform, chain("completed"), policy).jobs
    assert other["reason"].tolist() == ["", "", "needs the failure of job 1, which is completed", ""]
    assert "never_started" not in simulate(4, [Job(run=1)], "fcfs").metrics()


def test_grids_end_jobs_as_they_say():
    sites = [SiteSpec(name=name, cores=4) for name in "ab"]
    jobs = [
        Job(id=1, run=50, processors=4, outcome="failed", outputs=[File("lost", 10)]),
        Job(id=2, run=50, processors=4, outcome="NODE_FAIL"),
        Job(id=3, submit=1, cancel=30, processors=4, requested=9),
        Job(id=4, submit=2, cancel=90, processors=4, requested=9),
        Job(id=5, submit=2, run=5, dependencies=[Dependency(1, after="success")]),
    ]
    result = simulate(GridSpec(sites=sites), jobs, "round-robin")
    assert result.jobs["status"].tolist() == ["failed", "node-failure", "cancelled", "withdrawn", "cancelled"]
    assert result.jobs["state"].tolist()[:2] == ["failed", "failed"]
    assert result.jobs["bytes_out"].tolist()[0] == 0  # a job that fails writes no outputs
    assert result.jobs["attempts"].tolist()[1] == 1  # its end is its own: it is not tried again
    assert result.metrics()["never_started"] == {
        "after a job that ended otherwise": 1,
        "cancelled while waiting": 1,
        "would have started": 1,
    }


def test_small_kinds_of_systems_heed_outcomes():
    env = Environment()
    system = JobSystem(env, SimpleNamespace(name="slots"), places=[CountPool(env, "slots", 2)])
    jobs = [
        Job(id=1, run=9, processors=2, outcome="out-of-memory"),
        Job(id=2, cancel=5, processors=2, requested=9),
        Job(id=3, cancel=50, processors=2, requested=9),
        Job(id=4, run=2, processors=2),
    ]
    live = [system.submit(job) for job in jobs]
    env.run()
    assert [job.state for job in live] == ["out-of-memory", "cancelled", "withdrawn", "completed"]
    assert system.result().jobs["end"].tolist() == [9, 5, 9, 11]


LOGS = {
    "status": {"status": [1, 0, 5, -1]},
    "words": {"outcome": ["COMPLETED", "FAILED", "CANCELLED by 7", ""]},
    "codes": {"exit_code": [0, 3, -1, -1], "outcome": ["", "", "cancelled", ""]},
}


@pytest.mark.parametrize("columns", LOGS.values(), ids=LOGS)
@pytest.mark.parametrize("shape", [{}, {"priority": [0, 0, 0, 1]}], ids=["plain", "as jobs"])
def test_logs_end_as_they_say(tmp_path, columns, shape):
    log = Workload(
        {"submit": [0, 1, 2, 3], "run": [5, 5, 5, 5], "processors": [4] * 4, **columns, **shape}, processors=4
    )
    result = simulate(None, log, "fcfs")
    assert result.jobs["status"].tolist() == ["completed", "failed", "cancelled", "completed"]
    assert result.metrics()["counted"] == 4  # all came to their own end
    assert result.jobs["outcome"].tolist() == ["completed", "failed", "cancelled", "completed"]
    result.to_sqlite(tmp_path / "run.db")
    again = load_result(tmp_path / "run.db")
    assert again.jobs["outcome"].tolist() == result.jobs["outcome"].tolist()
    assert again.summary() == result.summary()


def test_jobs_cut_off_at_their_limit_time_out():
    log = Workload({"submit": [0, 0], "run": [9, 9], "requested": [5, 20], "processors": [1, 1], "status": [0, 0]})
    assert simulate(2, log, "fcfs").jobs["status"].tolist() == ["timeout", "failed"]
    assert simulate(2, log, "fcfs", overrun="continue").jobs["status"].tolist() == ["failed", "failed"]


def test_policies_do_not_see_outcomes():
    seen = []

    def look(view):
        for job in list(view.waiting):
            seen.append({name for name in ("outcome", "exit_code") if hasattr(job, name) or hasattr(job.spec, name)})
            yield from ()

    simulate(4, [Job(run=5, outcome="failed", priority=1)], look, until=1)
    assert seen == [set()]


@pytest.mark.parametrize("shape", [{}, {"priority": [1] * 40}], ids=["plain", "as jobs"])
@pytest.mark.parametrize("cut", [0.5, 7.5, 31.0])
def test_continued_snapshots_end_as_the_whole(shape, cut):
    words = [OUTCOMES[i % len(OUTCOMES)] for i in range(40)]
    columns = {"submit": np.arange(40) * 2.0, "run": [5.0 + i % 7 for i in range(40)]}
    columns["processors"] = [1 + i % 4 for i in range(40)]
    log = Workload({**columns, "outcome": words, **shape}, processors=4)
    whole = simulate(None, log, "easy").jobs
    sim = start(None, log, "easy")
    sim.run(until=cut)
    snapshot = sim.snapshot()
    later = type(snapshot).from_json(snapshot.to_json())
    env = Environment(later.now)
    cluster = Cluster.from_snapshot(env, later)
    env.run()
    rest = cluster.result().jobs
    rows = [whole["job"].tolist().index(job) for job in rest["job"].tolist()]
    assert rest["status"].tolist() == np.asarray(whole["status"])[rows].tolist()
    assert rest["end"].tolist() == whole["end"][rows].tolist()
    assert rest["outcome"].tolist() == np.asarray(whole["outcome"])[rows].tolist()


def test_what_ifs_know_nothing_of_outcomes():
    sim = start(
        4,
        [Job(id=1, run=50, requested=60, processors=4), *chain("failed")[:0], Job(id=2, run=5, outcome="failed")],
        "fcfs",
    )
    sim.run(until=1)
    seen = sim.snapshot().expected()
    assert {work.outcome for work in seen.works} == {"completed"}
    assert all(work.spec is None or work.spec.outcome == "completed" for work in seen.works)


# ---------------------------------------------------------------------- files


def test_states_of_slurm_and_exit_codes():
    states = {
        "COMPLETED": ("0:0", "completed", 0, 1),
        "FAILED": ("3:0", "failed", 3, 0),
        "TIMEOUT": ("0:15", "timeout", 143, 0),
        "CANCELLED by 1000": ("0:15", "cancelled", 143, 5),
        "NODE_FAIL": ("1:0", "node-failure", 1, 0),
        "OUT_OF_MEMORY": ("0:125", "out-of-memory", 253, 0),
    }
    rows = [
        f"{i}|2024-05-01T12:00:00|2024-05-01T12:01:00|2024-05-01T12:11:00|00:10:00|4|{state}|{code}"
        for i, (state, (code, *_)) in enumerate(states.items(), 1)
    ]
    log = read_sacct(io.StringIO("JobID|Submit|Start|End|Elapsed|AllocCPUS|State|ExitCode\n" + "\n".join(rows)))
    assert log["outcome"].tolist() == [outcome for _, outcome, _, _ in states.values()]
    assert log["exit_code"].tolist() == [code for _, _, code, _ in states.values()]
    assert log["status"].tolist() == [number for *_, number in states.values()]
    assert simulate(32, log, "fcfs").jobs["status"].tolist() == log["outcome"].tolist()


def test_exit_statuses_of_pbs():
    told = {
        "0": "completed",
        "1": "failed",
        "271": "cancelled",
        "-29": "timeout",
        "-27": "out-of-memory",
        "-1": "node-failure",
    }
    lines = [
        f"05/01/2024 13:00:30;E;{i}.s;user=a ctime=1714564800 start=1714564830 end=1714564930 exec_host=n/0 "
        f"Resource_List.ncpus=2 Resource_List.walltime=00:10:00 Exit_status={status}"
        for i, status in enumerate(told, 1)
    ]
    log = read_pbs(io.StringIO("\n".join(lines)))
    assert log["outcome"].tolist() == list(told.values())
    over = read_pbs(io.StringIO(lines[2].replace("00:10:00", "00:01:40")))
    assert over["outcome"].tolist() == ["timeout"]


def test_words_of_a_csv_in_any_case():
    states = ["COMPLETED", "failed", "NODE_FAIL", "OUT_OF_MEMORY", "Timeout", "CANCELLED by 5", "1", "0", "", "RUNNING"]
    expected = [
        "completed",
        "failed",
        "node-failure",
        "out-of-memory",
        "timeout",
        "cancelled",
        "completed",
        "failed",
        "",
        "",
    ]
    for column in ("status", "outcome"):
        text = f"submit,run,{column}\n" + "\n".join(f"{i},5,{state}" for i, state in enumerate(states))
        log = read_columns(io.StringIO(text))
        assert log["outcome"].tolist() == expected
    with pytest.raises(InputError, match=r"line 3: column 'status': must be completed, .* got 'BANANA'"):
        read_columns(io.StringIO("submit,run,status\n0,5,COMPLETED\n1,5,BANANA\n"))
    numbers = read_columns(io.StringIO("submit,run,status\n0,5,1\n1,5,0\n2,5,\n"))
    assert numbers["status"].tolist() == [1, 0, -1]
    assert "outcome" not in numbers


def test_return_codes_of_batsim():
    text = """{"nb_res": 4, "profiles": {"well": {"type": "delay", "delay": 10}, "bad": {"type": "delay", "delay": 3,
        "ret": 7}, "both": {"type": "composed", "seq": ["well", "bad", "well"], "repeat": 2}},
        "jobs": [{"id": 1, "subtime": 0, "res": 1, "profile": "well"}, {"id": 2, "subtime": 0, "res": 1,
        "profile": "bad"}, {"id": 3, "subtime": 0, "res": 1, "profile": "both"}]}"""
    jobs = simulate(None, read_batsim(io.StringIO(text)), "fcfs").jobs
    assert jobs["status"].tolist() == ["completed", "failed", "failed"]
    assert jobs["exit_code"].tolist() == [-1, 7, 7]
    assert jobs["end"].tolist() == [10, 3, 13]  # a sequence ends with the profile that fails


def test_swf_keeps_outcomes_and_waits_of_cancelled_jobs(tmp_path):
    text = """; MaxProcs: 4
1 0 0 10 4 -1 -1 4 20 -1 1 7 -1 -1 -1 -1 -1 -1
2 1 9 0 4 -1 -1 4 20 -1 5 7 -1 -1 -1 -1 -1 -1
3 2 9 -1 4 -1 -1 4 20 -1 5 7 -1 -1 -1 -1 -1 -1
4 3 -1 -1 4 -1 -1 4 20 -1 5 7 -1 -1 -1 -1 -1 -1
5 4 9 0 4 -1 -1 4 20 -1 0 7 -1 -1 -1 -1 -1 -1
6 5 9 5 4 -1 -1 4 20 -1 5 7 -1 -1 -1 -1 -1 -1
"""
    log = read_swf(io.StringIO(text))
    assert log["cancel"][1:3].tolist() == [10, 11]
    assert np.isnan(log["cancel"][[0, 3, 4, 5]]).all()
    assert np.isnan(log["run"][1:4]).all()
    assert np.isnan(log.recorded_starts()).tolist() == [False, True, True, True, False, False]
    jobs = simulate(None, log, "fcfs").jobs
    assert jobs["status"].tolist() == ["completed", "cancelled", "withdrawn", "rejected", "failed", "cancelled"]
    assert jobs["end"].tolist()[1:3] == [10, 10]
    write_swf(log, tmp_path / "again.swf")
    again = read_swf(tmp_path / "again.swf")
    for name in log.table.names:
        np.testing.assert_array_equal(again[name], log[name])
    sacct = Workload(
        {
            "submit": [0, 0],
            "run": [5, np.nan],
            "processors": [1, 1],
            "outcome": ["node-failure", "cancelled"],
            "cancel": [np.nan, 30],
        }
    )
    write_swf(sacct, tmp_path / "other.swf")
    other = read_swf(tmp_path / "other.swf")
    assert other["status"].tolist() == [0, 5]
    assert other["cancel"].tolist()[1] == 30


def test_jobs_of_panda_fail():
    head = "pandaid,creationtime,cpuconsumptiontime,computingsite,corecount,jobstatus"
    text = f"{head}\n1,0,9,BNL,1,finished\n2,0,9,BNL,1,failed\n3,0,9,BNL,1,closed\n4,0,9,BNL,1,running\n"
    log = read_cgsim_jobs(io.StringIO(text))
    assert simulate(8, log, "fcfs").jobs["status"].tolist() == ["completed", "failed", "cancelled", "completed"]


def test_gwf_tells_cancelled_jobs():
    fields = ["7", "100", "40", "-1", "1"] + ["-1"] * 5 + ["5", "U1", "G1"] + ["-1"] * 16
    log = read_gwf(io.StringIO("\t".join(fields)))
    assert log["cancel"].tolist() == [140]
