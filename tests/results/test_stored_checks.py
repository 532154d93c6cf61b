"""Stored results that contradict themselves are refused by one sentence; folders hold the tables of one result."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simmodel import Job, simulate
from simmodel.foundation.errors import InputError
from simmodel.results import load_result
from simmodel.results.stores import plain

NODES = {"kind": "cluster", "partitions": [{"name": "batch", "nodes": [{"count": 4, "cores": 2}]}]}


def document(kind: str) -> dict[str, Any]:
    """Return a stored result as JSON with all tables."""
    if kind == "tasks":
        result = simulate("hetsim-fast", "random:tasks=6,objects=1-2", "hrr")
    else:
        from simmodel.platform import from_dict

        jobs = [Job(id=f"j{i}", submit=i, processors=1 + i % 3, run=10) for i in range(6)]
        result = simulate(from_dict(NODES), jobs, "easy")
    tables = {name: {key: column.tolist() for key, column in t.items()} for name, t in result.stored_tables().items()}
    return {**result.meta(), "tables": plain(tables)}


def put(table: str, key: str, value: object, row: int = 0) -> Callable[[dict[str, Any]], object]:
    """Return a change of one cell."""
    return lambda found: found["tables"][table][key].__setitem__(row, value)


def without(table: str, key: str) -> Callable[[dict[str, Any]], object]:
    """Return a change that removes a column."""
    return lambda found: found["tables"][table].pop(key)


def shortened(table: str, key: str) -> Callable[[dict[str, Any]], object]:
    """Return a change that removes a cell."""
    return lambda found: found["tables"][table][key].pop()


JOBS = {
    "jobs.submit: must have 6 rows as other columns, got 5": shortened("jobs", "submit"),
    "jobs: missing column end": without("jobs", "end"),
    "jobs: missing column job": without("jobs", "job"),
    "runs: missing column place": without("runs", "place"),
    "places: missing column load_power": without("places", "load_power"),
    "jobs.end, row 1: must be >= start, 0.0, got -5.0": put("jobs", "end", -5),
    "jobs.start, row 1: must be >= submit, 3.0, got 0.0": put("jobs", "submit", 3),
    "runs.end, row 1: must be >= start, 0.0, got -1.0": put("runs", "end", -1),
    "jobs.start, row 1: must be known where the status is completed or timeout, got nan": put("jobs", "start", None),
    "jobs.submit, row 1: must be known where the status is completed or timeout, got nan": put("jobs", "submit", None),
    "jobs.wait, row 1: must be >= 0 where the status is completed or timeout, got -1.0": put("jobs", "wait", -1),
    "jobs.processors, row 1: must be >= 0 and <= 8, the capacity, got 99.0": put("jobs", "processors", 99),
    "jobs.processors, row 1: must be >= 0 and <= 8, the capacity, got -2.0": put("jobs", "processors", -2),
    "runs.processors, row 1: must be >= 0 and <= 8, the capacity, got 1e+18": put("runs", "processors", 10**18),
    "runs.place, row 1: must be a known place, got 'elsewhere'": put("runs", "place", "elsewhere"),
    "runs.job, row 1: must be a known job, got 'ghost'": put("runs", "job", "ghost"),
    "runs.nodes, row 1: must be a list of numbers >= 0, got (-1,)": put("runs", "nodes", [-1]),
    "runs.cores, row 1: must be one number for each of the nodes, got (1, 2, 3)": put("runs", "cores", [1, 2, 3]),
    "jobs.end: must be numbers, got 'x'": put("jobs", "end", "x"),
    "processors: must be a whole number >= 0, got 'many'": lambda found: found.update(processors="many"),
    "ended: must be >= started, 0.0, got -7": lambda found: found.update(ended=-7),
}
TASKS = {
    "edges: missing table of edges": lambda found: found["tables"].pop("edges"),
    "tasks: missing column processor": without("tasks", "processor"),
    "memory: missing column bytes": without("memory", "bytes"),
    "tasks.start, row 1: must be >= submit": put("tasks", "submit", 1e9),
    "tasks.processor, row 1: must be a known processor, got 'abacus'": put("tasks", "processor", "abacus"),
    "transfers.count, row 1: must be a number from 0 to 2^63, got inf": put("transfers", "count", 1e999),
    "tasks.cores": put("tasks", "cores", "x"),
    "tasks.end, row 1: must be a finite number, got inf": put("tasks", "end", 1e999),
    "edges.parent, row 1: must be a row from 0 to 5, got 99": lambda found: found["tables"]["edges"].update(
        parent=[99], child=[0]
    ),
    "tasks.set, row 1: must be a row from 0 to 0, got 5": put("tasks", "set", 5),
    "sets.tasks: must be 6 in all, got 3": put("sets", "tasks", 3),
    "runs: must have 6 rows and": lambda found: found["tables"]["runs"].pop(min(found["tables"]["runs"])),
    "peaks.": lambda found: found["peaks"].update(dict.fromkeys(found["peaks"], "x")),
}


@pytest.mark.few(12)
@pytest.mark.parametrize(("kind", "said"), [*(("jobs", each) for each in JOBS), *(("tasks", each) for each in TASKS)])
def test_a_stored_result_that_contradicts_itself_is_refused(kind: str, said: str, tmp_path: Path) -> None:
    found = document(kind)
    path = tmp_path / "r.json"
    path.write_text(json.dumps(found))
    assert load_result(path).metrics()
    (JOBS if kind == "jobs" else TASKS)[said](found)
    path.write_text(json.dumps(found).replace("Infinity", "1e999"))
    with pytest.raises(InputError) as caught:
        load_result(path)
    assert str(caught.value).startswith(f"{path}, {said}")


def test_a_job_may_be_as_wide_as_the_place_became(tmp_path: Path) -> None:
    from simmodel import Cluster, Environment

    env = Environment()
    cluster = Cluster(env, 4)
    cluster.submit(Job(id="a", processors=4, run=5))
    env.run(until=10)
    cluster.places[0].resize(16)
    cluster.submit(Job(id="b", processors=16, run=5))
    env.run()
    cluster.result().to_csv(tmp_path / "r")
    assert load_result(tmp_path / "r").jobs["processors"].tolist() == [4, 16]


def test_ids_of_both_types_come_back_from_csv(tmp_path: Path) -> None:
    jobs = [Job(id=1, processors=1, run=5), Job(id="x", submit=9, processors=1, run=5)]
    simulate({"7": 4}, jobs, "random", until=7).to_csv(tmp_path / "r")
    found = load_result(tmp_path / "r")
    assert found.jobs["job"].tolist() == ["1", "x"]
    assert found.metrics()["counted"] == 1


# ---------------------------------------------------------------------- folders


def test_a_folder_holds_the_tables_of_one_result(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    folder = tmp_path / "r"
    first = simulate(4, [Job(id=i, processors=4, run=5) for i in range(3)], "fcfs", events=True)
    second = simulate(4, [Job(id="x", processors=1, run=7)], "fcfs")
    first.to_parquet(folder)
    (folder / "mine.csv").write_text("kept")
    second.to_csv(folder)
    found = load_result(folder)
    assert found.jobs["job"].tolist() == ["x"]
    assert found.events is None
    assert sorted(each.name for each in folder.iterdir()) == sorted(
        ["meta.json", "mine.csv", *(f"{name}.csv" for name in second.stored_tables())]
    )


def test_tables_that_the_folder_does_not_list_are_not_read(tmp_path: Path) -> None:
    simulate(4, [Job(id="x", processors=1, run=7)], "fcfs").to_csv(tmp_path)
    (tmp_path / "events.csv").write_text("time,event,job\n0,submitted,other\n")
    assert load_result(tmp_path).events is None
    meta = json.loads((tmp_path / "meta.json").read_text())
    del meta["files"]  # as older versions wrote it
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    assert len(load_result(tmp_path).events) == 1


def test_only_tables_in_the_folder_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    simulate(4, [Job(processors=1, run=7)], "fcfs").to_csv(folder)
    (tmp_path / "other.csv").write_text("kept")
    meta = json.loads((folder / "meta.json").read_text())
    meta["files"] = ["../other.csv", str(tmp_path / "other.csv"), 7]
    (folder / "meta.json").write_text(json.dumps(meta))
    simulate(4, [Job(processors=1, run=7)], "fcfs").to_csv(folder)
    assert (tmp_path / "other.csv").read_text() == "kept"
