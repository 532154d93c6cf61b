"""What Slurm heeds of a job and the mirror does not is told wherever its start is: no bare "starts now"."""

import csv
import re
from pathlib import Path
from threading import Thread

import attrs
import pytest

from simmodel.cli import main
from simmodel.futures.start_times import predict_starts
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.platform.toml import write_toml
from simmodel_site.twin.advisor import Advisor
from simmodel_site.twin.events import Submitted
from simmodel_site.twin.mirror.mirror import Mirror
from simmodel_site.twin.serving import StatusServer
from simmodel_site.twin.slurm.jobs import JobRecord, Rules, reports_of
from simmodel_site.twin.slurm.source import SlurmSettings, SlurmSource
from simmodel_site.twin.twin import Twin
from tests.site.helpers.slurm_cluster import wait_until
from tests.site.helpers.slurm_stub import JOB, NODE, write_stub

SPEC = ClusterSpec(
    name="alps",
    partitions=[PartitionSpec(name="batch", nodes=[NodeSpec(names="n[1-4]", count=4, cores=4, memory=2000 * 2**20)])],
)
NODES = [{**NODE, "N": f"n{each}"} for each in range(1, 5)]
MEMORY = "SelectTypeParameters    = CR_CORE_MEMORY"


def source_of(folder: Path, job: dict[str, str], config: str = "", *, memory: bool | None = None) -> SlurmSource:
    shared = [{**node, "P": "high"} for node in NODES[:2]]
    write_stub(folder, [{**JOB, "D": "1", "C": "1", **job}], [*NODES, *shared], config)
    return SlurmSource("alps", SlurmSettings(folder=str(folder), memory=memory))


def config_of(folder: Path, commands: Path) -> Path:
    """Write the configuration of a twin of the Slurm in a folder, and return its path."""
    write_toml(SPEC, folder / "platform.toml")
    config = folder / "twin.toml"
    source = f'[source]\nkind = "slurm"\nfolder = "{commands}"\n'
    config.write_text(f'cluster = "alps"\nplatform = "platform.toml"\npolicy = "fcfs"\n{source}')
    return config


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("job", "config", "memory", "marks"),
    [
        ({}, "", True, ()),
        ({"n": "n1"}, "", True, ("nodes n1 (-w)",)),
        ({"x": "n[1-2]"}, "", True, ("without nodes n[1-2] (-x)",)),
        ({"f": "ib&ssd"}, "", True, ("constraint ib&ssd (-C)",)),
        ({"F": "4", "K": "5", "limit": "5-9%2"}, "", True, ("array limit %2",)),
        ({"W": "matlab:2,fluent@server"}, "", True, ("licences fluent@server, matlab",)),
        ({"h": "USER"}, "", True, ("sharing of nodes: user",)),
        ({"P": "high"}, "", True, ("the nodes of partition high",)),
        ({}, "PreemptType = preempt/partition_prio\nPreemptMode = REQUEUE", True, ("preemption (REQUEUE)",)),
        ({}, MEMORY, False, ("memory",)),
        ({}, MEMORY, True, ()),
        ({}, MEMORY, None, ()),
    ],
)
def test_what_is_not_modelled_of_a_job(
    tmp_path: Path, job: dict[str, str], config: str, memory: bool | None, marks: tuple[str, ...]
) -> None:
    source = source_of(tmp_path, job, config, memory=memory)
    report = source.report()
    assert report is not None
    assert source.trouble is None
    assert report.jobs[0].request.unmodelled == marks


def test_a_job_without_memory_takes_that_of_its_nodes(tmp_path: Path) -> None:
    report = source_of(tmp_path, {"D": "4", "C": "4"}, MEMORY).report()
    assert report is not None
    assert report.jobs[0].request.memory_per_node == 2000 * 2**20
    report = source_of(tmp_path, {"D": "4", "C": "4", "m": "100M"}, MEMORY).report()
    assert report is not None
    assert report.jobs[0].request.memory_per_node == 100 * 2**20


def test_advice_and_status_tell_it(tmp_path: Path) -> None:
    source = source_of(tmp_path, {"n": "n1"})
    twin = Twin(source, Mirror(SPEC, "alps"), Advisor("fcfs", fallback="fcfs"))
    twin.step()
    twin.decide()
    assert twin.last is not None
    assert dict(twin.last.unmodelled) == {"7": ("nodes n1 (-w)",)}
    assert twin.last.of(twin.last.document()) == twin.last
    assert twin.status.unmodelled == 1


def test_predictions_and_explanations_tell_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "Läufe of Slurm"
    folder.mkdir()
    source_of(folder, {"n": "n1", "S": "99999999999"})
    config = config_of(tmp_path, folder)
    table = tmp_path / "starts.csv"
    assert main(["twin", "predict", str(config), "--draws", "5", "--table", str(table)]) == 0
    said = capsys.readouterr().out
    assert "not modelled" in said
    assert "and as the scheduler says" in said
    assert next(csv.DictReader(table.read_text("utf-8").splitlines()))["scheduler"] == "99999999999"
    assert "e-0" not in said  # all draws are now, and so is their mean
    assert next(csv.DictReader(table.read_text("utf-8").splitlines()))["unmodelled"] == "nodes n1 (-w)"
    assert main(["twin", "explain", str(config), "7"]) == 0
    said = capsys.readouterr().out
    assert "caution: not modelled: nodes n1 (-w)" in said
    assert "caution: the scheduler expects a later start" in said


def test_the_shadow_tells_it_of_each_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    running = {"T": "RUNNING", "S": "1700000000", "N": "n1", "D": "1", "C": "1"}
    rows = [{**JOB, **running, "n": "n1", "W": "matlab"}, {**JOB, **running, "A": "8", "F": "8", "n": "n1"}]
    write_stub(tmp_path, [*rows, {**JOB, **running, "A": "9", "F": "9"}], NODES)
    table = tmp_path / "starts.csv"
    assert main(["twin", "shadow", str(config_of(tmp_path, tmp_path)), "--for", "0.01", "--table", str(table)]) == 0
    said = capsys.readouterr().out
    assert re.search("starts not modelled in full +2 of 3\n", said)
    assert re.search("not modelled: nodes n1 .-w.: 2 starts\nnot modelled: licences matlab: 1 start\n", said)
    marks = {row["job"]: row["unmodelled"] for row in csv.DictReader(table.read_text("utf-8").splitlines())}
    both = "nodes n1 (-w); licences matlab; matlab, which the platform lacks"
    assert marks == {"7": both, "8": "nodes n1 (-w)", "9": ""}


def test_a_scheduler_that_hangs_is_told_before_its_command_gives_up(tmp_path: Path) -> None:
    source_of(tmp_path, {})
    source = SlurmSource("alps", SlurmSettings(folder=str(tmp_path), interval=0.4, timeout=60))
    twin = Twin(source, Mirror(SPEC, "alps"))
    with StatusServer(twin.status, late=twin.late) as server:
        twin.step(0.01)
        server.show(twin.status)
        assert server.seen()[:2] == (twin.status, "ok")
        go_on = tmp_path / "go on"
        (tmp_path / "squeue").write_text(f"#!/bin/sh\nwhile ! [ -e '{go_on}' ]; do sleep 0.1; done; exit 1\n")
        waiting = Thread(target=source.report)
        waiting.start()
        wait_until(lambda: server.seen()[1] == "degraded", 30, "a twin that is not well")
        assert waiting.is_alive()
        assert server.seen()[0].troubles[0].startswith("no answer from the source for ")
        go_on.touch()
        waiting.join()
        assert twin.status.health == "degraded"
        assert "squeue" in twin.status.troubles[0]


@pytest.mark.parametrize(("intervals", "late"), [(1.5, False), (2.5, True)])
def test_two_intervals_without_a_report_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, intervals: float, late: bool
) -> None:
    source = source_of(tmp_path, {})
    twin = Twin(source, Mirror(SPEC, "alps"))
    answered, within = source.last_answer()
    monkeypatch.setattr(source, "last_answer", lambda: (answered - intervals * within, within))
    assert (twin.late() is not None) == late
    assert twin.status.health == ("degraded" if late else "starting")


def test_without_a_good_answer_nothing_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source_of(tmp_path, {})
    (tmp_path / "squeue").write_text("#!/bin/sh\n")
    config = config_of(tmp_path, tmp_path)
    assert main(["twin", "predict", str(config)]) == 2
    assert "squeue: its answer must begin with a header" in capsys.readouterr().err


def test_policy_slurm_models_what_jobs_ask_of_slurm() -> None:
    """Under it only preemption is left of the conditions; under another policy all are told."""
    record = JobRecord(
        job=7,
        submit=5.0,
        states=("PENDING",),
        cpus=2,
        least_nodes=2,
        most_nodes=2,
        required="n2",
        features="big",
        array=7,
        tasks="1-2",
        array_limit=1,
        partition="batch",
        limit=60.0,
    )
    rules = Rules(preemption="REQUEUE", parts=frozenset({"batch"}))
    first, _ = reports_of(record, rules)
    assert first.request.options == "--nodelist=n2 --constraint=big --array=%1"
    spec = ClusterSpec(name="c", partitions=[PartitionSpec(name="batch", nodes=[NodeSpec(names="n[1-4]", count=4)])])
    told = {}
    for policy in ("fcfs", "slurm(nodes=(n[1-2]:features=big))"):
        mirror = Mirror(spec, "c", policy)
        mirror.apply(Submitted(cluster="c", time=5.0, job="7_1", submit=5.0, request=first.request))
        told[policy.partition("(")[0]] = mirror.unmodelled("7_1")
    assert told["slurm"] == ("preemption (REQUEUE)",)
    assert len(told["fcfs"]) == 5
    found = predict_starts(mirror.snapshot(), predictor="request", draws=2)
    assert found["job"].tolist() == ["7_1"]


def test_tasks_that_wait_for_the_limit_of_their_array_wait_under_policy_slurm(tmp_path: Path) -> None:
    """4_2 starts when 4_1 ends, 4_3 after it; 4_4 is held by its user. Other policies cannot tell, and hold all."""
    of_array = {**JOB, "F": "4", "D": "1", "C": "1", "V": "1700000000"}
    limited = {**of_array, "r": "JobArrayTaskLimit", "limit": "2-4%1"}
    rows = [
        {**of_array, "K": "1", "A": "5", "T": "RUNNING", "S": "1700000000", "N": "n1"},
        {**limited, "K": "2", "A": "6"},
        {**limited, "K": "3", "A": "7"},
        {**limited, "K": "4", "A": "8", "Q": "0"},
    ]
    write_stub(tmp_path, rows, NODES)
    report = SlurmSource("alps", SlurmSettings(folder=str(tmp_path))).report()
    assert report is not None
    assert [(each.state, each.optional) for each in report.jobs] == [
        ("running", False), ("held", True), ("held", True), ("held", False),
    ]  # fmt: skip
    found = {}
    for policy in ("slurm", "easy"):
        mirror = Mirror(SPEC, "alps", policy)
        mirror.apply(attrs.evolve(report, time=1700000001.0))
        found[policy] = mirror.jobs
        starts = predict_starts(mirror.snapshot(), predictor="request", draws=0)
        if policy == "slurm":
            assert starts["job"].tolist() == ["4_2", "4_3"]
            later = starts["predicted"] - 1.7e9  # the jobs run for ten minutes, and the loops look at intervals
            assert 600 <= later[0] <= 610
            assert 600 <= later[1] - later[0] <= 610
    assert found["slurm"] == {"running": 1, "waiting": 2, "held": 1, "told": 4}
    assert found["easy"] == {"running": 1, "waiting": 0, "held": 3, "told": 4}
