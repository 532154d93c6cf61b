"""Studies: claims, dead processes, several processes on one study, errors."""

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from simmodel import InputError
from simmodel.experiments import Study
from simmodel.experiments.ensembles import run_trials, search

ROOT = Path(__file__).parents[2]
WORKER = """
import sys, time
from simmodel.experiments.trials import Study
from simmodel.experiments.ensembles import search
def square(pause, values):
    print(values["x"], flush=True)
    time.sleep(pause)
    return {"square": values["x"] ** 2}
with Study(sys.argv[1], {"about": "squares"}) as study:
    search(study, lambda trials: [{"x": len(trials) + i} for i in range(4)], 20, square, float(sys.argv[2]))
"""


def worker(path, pause=0.0):
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(path), str(pause)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


def squares(path):
    with Study(path) as study:
        assert study.counts == {"queued": 0, "running": 0, "finished": 20, "failed": 0}
        assert [(trial.values["x"], trial.outcome["square"]) for trial in study.trials()] == [
            (x, x**2) for x in range(20)
        ]


def test_a_killed_process_loses_no_trial(tmp_path):
    path = tmp_path / "study.db"
    first = worker(path, 0.02)
    begun = [first.stdout.readline() for _ in range(7)]
    os.kill(first.pid, signal.SIGKILL)
    begun += first.stdout.readlines()
    first.communicate()
    with Study(path) as study:
        counts = study.counts
        assert counts["finished"] in (len(begun) - 1, len(begun))
        assert counts["finished"] < 20
    second = worker(path)
    again = second.communicate()[0].splitlines()
    assert second.returncode == 0
    assert len(again) == 20 - counts["finished"]  # none that had ended is run again
    squares(path)


@pytest.mark.long  # trials of one that died: the tests below
def test_four_processes_share_the_trials_of_one_study(tmp_path):
    path = tmp_path / "study.db"
    processes = [worker(path, 0.01) for _ in range(4)]
    ran = [line for each in processes for line in each.communicate()[0].splitlines()]
    assert [each.returncode for each in processes] == [0, 0, 0, 0]
    assert sorted(map(int, ran)) == list(range(20))  # each once
    squares(path)


def test_a_claim_that_was_lost_does_not_count(tmp_path):
    path = tmp_path / "study.db"
    with Study(path, {"about": "claims"}) as one, Study(path) as other:
        one.add([{"x": 1}, {"x": 2}])
        [trial] = one.claim()
        assert [each.number for each in other.claim(5)] == [1]
        one.release([trial])
        assert one.finish(trial, {"y": 1.0}) is False
        [again] = other.claim(5)
        assert (again.number, other.finish(again, {"y": 2.0})) == (0, True)
        assert other.finish(again, {"y": 3.0}) is False
        assert one.trials("finished")[0].outcome == {"y": 2.0}


def test_the_trials_of_a_dead_process_are_queued_again(tmp_path):
    path = tmp_path / "study.db"
    with Study(path, {}) as study:
        study.add([{"x": 1}])
        code = "import sys; from simmodel.experiments import Study; Study(sys.argv[1]).claim()"
        for _ in range(5):
            assert study.counts["failed"] == 0
            subprocess.run([sys.executable, "-c", code, str(path)], cwd=ROOT, check=True)
        assert study.claim() == []
        assert study.trials("failed")[0].error == "its process died 5 times"


def test_failures_and_nan_are_counted_and_not_fatal():
    study = Study(document={})
    study.add([{"x": x} for x in (1, 0, 2)])

    def inverse(_, values):
        return {"y": float("nan") if values["x"] == 2 else 1 / values["x"]}

    assert run_trials(study, inverse, None) == 3
    assert [each.state for each in study.trials()] == ["finished", "failed", "failed"]
    errors = [each.error for each in study.trials("failed")]
    assert errors[0].startswith("ZeroDivisionError: division by zero")
    assert errors[1] == "y: is nan"


def test_an_interrupt_keeps_what_is_done_and_queues_the_rest():
    study = Study(document={})
    study.add([{"x": x} for x in range(4)])

    def interrupted(_, values):
        if values["x"] == 2:
            raise KeyboardInterrupt
        return {"y": values["x"]}

    with pytest.raises(KeyboardInterrupt):
        run_trials(study, interrupted, None)
    assert study.counts == {"queued": 2, "running": 0, "finished": 2, "failed": 0}


def test_a_search_stops_when_told():
    study = Study(document={})
    search(
        study,
        lambda trials: [{"x": len(trials)}],
        100,
        lambda _, values: {"y": values["x"]},
        None,
        stop=lambda trials: trials[-1].outcome["y"] >= 3,
    )
    assert len(study) == 4


def test_a_study_of_something_else_is_refused(tmp_path):
    path = tmp_path / "study.db"
    Study(path, {"about": "squares", "seed": 1}).close()
    with pytest.raises(InputError, match="is a study with another seed: 1 instead of 2"):
        Study(path, {"about": "squares", "seed": 2})
    with pytest.raises(InputError, match="no such study"):
        Study(tmp_path / "none.db")
    (tmp_path / "text").write_text("not a database", encoding="utf-8")
    with pytest.raises(InputError, match="must be a study, got a file that is no SQLite database"):
        Study(tmp_path / "text", {})
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE jobs (job)")
    other.close()
    with pytest.raises(InputError, match="must be a study, got another database"):
        Study(tmp_path / "other.db", {})


def test_the_table_has_a_row_per_trial():
    with Study(document={}) as study:
        study.add([{"x": 1, "policy": "easy"}, {"x": 2, "policy": "fcfs"}])
        run_trials(study, lambda _, values: {"x": 5, "wait": values["x"]}, None)
        table = study.table
        assert table.names == ("number", "state", "error", "x", "policy", "x (outcome)", "wait")
        assert study.frame["wait"].tolist() == [1, 2]
        assert "easy" in study._repr_html_()
