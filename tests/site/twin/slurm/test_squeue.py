"""Rows of squeue and sinfo as jobs and nodes: states, limits, arrays, dependencies, and names of every character."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from simmodel.foundation.errors import InputError
from simmodel_site.twin.events import Demand, JobReport
from simmodel_site.twin.mirror.node_states import nodes_out
from simmodel_site.twin.slurm import values
from simmodel_site.twin.slurm.commands import TABLES, SlurmCommands
from simmodel_site.twin.slurm.jobs import LimitFrom, queue_of
from simmodel_site.twin.slurm.records import NodeRecord
from simmodel_site.twin.slurm.source import SlurmSettings, SlurmSource
from simmodel_site.twin.slurm.squeue import node_services, node_sizes, records_in
from simmodel_site.twin.sources import Refused
from tests.helpers.examples import up_to
from tests.site.helpers.slurm_stub import JOB, write_stub

FIELDS = {letters[1:]: field for field, letters in TABLES["jobs"].items()}
RUNNING = {"T": "RUNNING", "S": "1700000060", "e": "1700000660", "N": "n[1-2]"}
HOSTILE = [
    "a\nb",
    "a\x1eb\x1fc",
    "'; rm -rf / #",
    '$(reboot)`x`"',
    "\x1b[31m\x07",
    "%j%A|",
    "\u2028 ß\u0000"[:3],
    "N/A",
    "x" * 1_000_000,
]


def row(**changes: str) -> dict[str, str]:
    return {FIELDS[letters]: value for letters, value in {**JOB, **changes}.items()}


def reports_in(
    rows: Iterable[Mapping[str, str]],
    nodes: Iterable[Mapping[str, str]] = (),
    *,
    refused: Refused | None = None,
    **options: Any,
) -> tuple[JobReport, ...]:
    return queue_of(records_in(rows, refused=refused), node_sizes(nodes), refused=refused, **options)


def read(limit_from: LimitFrom = "limit", **changes: Any) -> JobReport:
    (found,) = reports_in([row(**changes)], limit_from=limit_from, memory=True, priorities=True)
    return found


def test_a_waiting_job() -> None:
    assert read() == JobReport(
        job=7,
        submit=1.7e9,
        state="waiting",
        request=Demand(
            processors=8, nodes=2, cores_per_node=4, requested=600.0, user="ada", queue="normal", partition="batch",
            priority=5.0, name="sim",
        ),
        reason="Priority",
    )  # fmt: skip


def test_a_waiting_job_has_the_start_that_slurm_expects() -> None:
    job = read(S="2026-01-02T03:04:05")
    assert (job.state, job.started) == ("waiting", None)
    assert job.foretold == values.instant("2026-01-02T03:04:05")
    assert read(S="N/A").foretold is None
    assert read(S="2026-01-02T03:04:05", r="JobHeldUser").foretold is None  # held: it will not start then


def test_a_running_job_has_nodes_and_a_start_but_no_end_yet() -> None:
    job = read(**RUNNING)
    assert (job.state, job.started, job.ended, job.partition) == ("running", 1700000060.0, None, "batch")
    assert job.nodes == (("n1", 4), ("n2", 4))


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("COMPLETED", "completed"), ("COMPLETING", "completed"), ("FAILED", "failed"), ("NODE_FAIL", "lost"),
        ("OUT_OF_MEMORY", "failed"), ("TIMEOUT", "timeout"), ("CANCELLED", "cancelled"), ("PREEMPTED", "cancelled"),
    ],
)  # fmt: skip
def test_a_job_that_has_ended(state: str, expected: str) -> None:
    job = read(**{**RUNNING, "T": state})
    assert (job.state, job.started, job.ended) == (expected, 1700000060.0, 1700000660.0)


def test_a_job_cancelled_before_its_start_never_started() -> None:
    job = read(T="CANCELLED", S="1700000660", e="1700000660")
    assert (job.state, job.started, job.ended, job.nodes) == ("cancelled", None, 1700000660.0, ())


@pytest.mark.parametrize(
    "changes",
    [
        {"r": "JobHeldUser"}, {"r": "JobHeldAdmin"}, {"Q": "0"}, {"r": "JobArrayTaskLimit"}, {"r": "BeginTime"},
        {"T": "REQUEUE_HOLD"}, {"T": "SPECIAL_EXIT"}, {"r": "QOSMaxJobsPerUserLimit"}, {"r": "AssocGrpCpuLimit"},
        {"r": "PartitionDown"}, {"E": "afterany:4_*(unfulfilled)"}, {"E": "singleton(unfulfilled)", "r": "Dependency"},
        {"E": "afterok:5(failed)", "r": "DependencyNeverSatisfied"},
        {"E": "afterany:5(unfulfilled)?afterany:6(unfulfilled)"},
    ],
)  # fmt: skip
def test_a_job_that_cannot_start_for_reasons_of_its_own_is_held(changes: dict[str, str]) -> None:
    assert read(**changes).state == "held"


@pytest.mark.parametrize("reason", ["Priority", "Resources", "None", "Licenses", "Dependency"])
def test_a_job_that_waits_for_others_is_not_held(reason: str) -> None:
    assert read(r=reason).state == "waiting"


def test_tasks_of_arrays_are_jobs_of_their_own() -> None:
    waiting = [row(A="4", F="4", K=str(task)) for task in (2, 10)]
    running = row(A="6", F="4", K="1", **RUNNING)
    jobs = reports_in([*waiting, running])
    assert [job.job for job in jobs] == ["4_1", "4_2", "4_10"]
    assert {job.request.array for job in jobs} == {4}


def test_dependencies() -> None:
    job = read(E="afterok:5(unfulfilled),after:4_2+5(unfulfilled)")
    assert (job.state, job.request.dependencies) == ("waiting", ((5, "success"), ("4_2", "start")))


def test_an_exclusive_job_takes_whole_nodes() -> None:
    nodes = [{"name": "n1", "state": "idle", "cpus": "16", "partition": "batch*"}]
    (job,) = reports_in([row(h="NO", D="2", C="2")], nodes)
    assert (job.request.nodes, job.request.processors) == (2, 32)


@pytest.mark.parametrize(
    ("changes", "nodes", "cores"),
    [({"D": "1", "C": "8", "c": "8"}, 1, 8), ({"D": "1", "C": "8", "c": "1"}, None, 1), ({"D": "3", "C": "12"}, 3, 4)],
)
def test_nodes_of_a_request(changes: dict[str, str], nodes: int | None, cores: int) -> None:
    request = read(**changes).request
    assert (request.nodes, request.cores_per_node) == (nodes, cores)


def test_memory_gpus_and_licences() -> None:
    request = read(m="4000M", b="gres:gpu:a100:2", W="matlab:2,fluent:1").request
    assert (request.memory_per_node, request.gpus_per_node) == (4000 * 2**20, 2)
    assert dict(request.consumables) == {"matlab": 2.0, "fluent": 1.0}


@pytest.mark.parametrize(
    ("comment", "limit_from", "expected"),
    [
        ("1.83", "limit", 600.0), ("1.83", "comment", 1.83), ("(null)", "comment", 600.0), ("nan", "comment", 600.0),
        ("1e999", "comment", 600.0), ("-5", "comment", 600.0), ("a\n5", "comment", 600.0),
    ],
)  # fmt: skip
def test_requested_times_finer_than_minutes_may_stand_in_the_comment(
    comment: str, limit_from: LimitFrom, expected: float
) -> None:
    assert read(limit_from, k=comment).request.requested == expected


def test_no_limit() -> None:
    assert read(l="UNLIMITED").request.requested is None


def test_the_order_is_that_of_the_queue() -> None:
    rows = [
        row(A="10", F="10", Q="3"),
        row(A="9", F="9", Q="3"),
        row(A="8", F="8", Q="3", V="1699999999"),
        row(A="11", F="11", Q="7"),
    ]
    assert [job.job for job in reports_in(rows)] == [11, 8, 9, 10]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"A": "x"}, "squeue, job 'x'.id: must be a whole number, got 'x'"),
        ({"V": "N/A"}, "squeue, job '7'.submit: must be known"),
        ({"T": "FLYING"}, "job '7'.state: must be a state of jobs such as PENDING, got FLYING"),
        ({"C": "0"}, "squeue, job '7'.cpus: must be a whole number >= 1, got '0'"),
        ({"W": "matlab:INFINITE"}, "job '7'.consumables.matlab: must be a finite number, got inf"),
    ],
)
def test_rows_that_make_no_sense_are_counted_and_the_others_read(changes: dict[str, str], sentence: str) -> None:
    refused = Refused()
    assert [job.job for job in reports_in([row(**changes), row(A="8", F="8")], refused=refused)] == [8]
    assert list(refused) == [sentence]
    with pytest.raises(InputError):
        reports_in([row(**changes)])


@pytest.mark.few(4)
@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: repr(name[:12]))
def test_names_cannot_break_rows(tmp_path: Path, name: str) -> None:
    write_stub(tmp_path, [{**JOB, "j": name, "k": name}, {**JOB, "A": "8", "F": "8"}])
    source = SlurmSource("alps", SlurmSettings(folder=str(tmp_path), requested="comment"))
    report = source.report()
    assert report is not None
    assert [job.job for job in report.jobs] == [7, 8]
    assert report.jobs[0].request.name == name.strip()[:256]
    assert not source.refused


@settings(max_examples=up_to(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1, max_size=40)
)
def test_any_names(tmp_path: Path, names: list[str]) -> None:
    write_stub(tmp_path, [{**JOB, "A": str(job), "F": str(job), "j": name} for job, name in enumerate(names, 1)])
    told = list(SlurmCommands(folder=str(tmp_path)).rows("jobs"))
    assert [each["name"] for each in told] == [name.strip() for name in names]


def test_states_of_nodes() -> None:
    states = {"a": "idle", "b": "down*", "c": "drained", "d": "draining", "e": "mixed", "f": "idle*", "g": "fail"}
    states |= {"h": "maint", "i": "idle~", "j": "allocated+", "k": "planned", "l": "down$"}
    down, draining = nodes_out(node_services({"name": name, "state": state} for name, state in states.items()))
    assert (down, draining) == (("b", "g", "l"), ("c", "d", "f", "h"))


@pytest.mark.parametrize(
    ("of_sinfo", "of_json"),
    [
        ("idle", ["IDLE"]), ("down*", ["DOWN", "NOT_RESPONDING"]), ("mixed", ["MIXED"]), ("drained", ["IDLE", "DRAIN"]),
        ("idle*", ["IDLE", "NOT_RESPONDING"]), ("maint", ["IDLE", "MAINTENANCE"]), ("mixed", ["MIXED", "MAINTENANCE"]),
        ("reboot^", ["IDLE", "REBOOT_ISSUED"]), ("blocked", ["IDLE", "BLOCKED"]), ("unknown", ["UNKNOWN"]),
        ("powering_down", ["IDLE", "POWERING_DOWN"]), ("inval", ["IDLE", "INVALID_REG"]),
        ("planned", ["IDLE", "PLANNED"]),
    ],
)  # fmt: skip
def test_a_node_is_out_of_service_whether_sinfo_or_json_tells_it(of_sinfo: str, of_json: list[str]) -> None:
    service = NodeRecord(name="n", cpus=1, states=frozenset(of_json)).service
    expected = ({"down": ("n",)}.get(service, ()), {"draining": ("n",)}.get(service, ()))
    assert nodes_out(node_services([{"name": "n", "state": of_sinfo}])) == expected
