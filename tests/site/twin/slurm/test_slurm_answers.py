"""Answers in JSON, of data parsers v0.0.38 to v0.0.44, read into records and reports of jobs."""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from simmodel import InputError
from simmodel_site.twin.slurm.answers import parser_of, read_answer
from simmodel_site.twin.slurm.jobs import JobRecord, dependencies_of, job_state, jobs_in, reports_of, task_numbers
from simmodel_site.twin.slurm.values import Gres
from tests.helpers.data_files import data_file
from tests.site.helpers.slurm_texts import FLAT_JOB, FLAT_LICENCE, FLAT_NODE, FLAT_PARTITION, FLAT_RESERVATION, answer

RECORDED = ("24.05_0.0.41", "24.11_0.0.42", "25.05_0.0.43", "25.11_0.0.44")


def recorded(release: str, what: str) -> Path:
    return data_file(f"slurm/slurmrestd_{release}_{what}.json.gz")


def document(release: str, what: str) -> Any:
    """The document itself, read without simmodel."""
    return json.loads(gzip.decompress(recorded(release, what).read_bytes()))


def number(value: Any) -> Any:
    """A number of an answer; ``None`` if it is not set or infinite."""
    return value["number"] if value["set"] and not value["infinite"] else None


# ---------------------------------------------------------------------- recorded answers


@pytest.mark.parametrize("release", RECORDED)
def test_recorded_nodes_are_those_of_the_document(release: str) -> None:
    given = document(release, "nodes")["nodes"]
    read = read_answer(gzip.decompress(recorded(release, "nodes").read_bytes()))
    assert read.nodes is not None
    for node, each in zip(read.nodes, given, strict=True):
        assert node.name == each["name"]
        assert node.cpus == each["effective_cpus"] == each["cpus"]
        assert node.memory == each["real_memory"] * 2**20
        assert node.states == set(each["state"])
        assert list(node.partitions) == each["partitions"]
        assert node.reason == each["reason"]
        listed = [
            f"{one.name}:{one.type}:{one.count:g}" if one.type else f"{one.name}:{one.count:g}" for one in node.gres
        ]
        assert ",".join(listed) == each["gres"]


@pytest.mark.parametrize("release", RECORDED)
def test_recorded_partitions_are_those_of_the_document(release: str) -> None:
    given = document(release, "partitions")["partitions"]
    read = read_answer(document(release, "partitions")).partitions
    assert read is not None
    for part, each in zip(read, given, strict=True):
        minutes = number(each["maximums"]["time"])
        assert (part.name, part.nodes) == (each["name"], each["nodes"]["configured"])
        assert part.max_time == (None if minutes is None else minutes * 60)
        assert (part.max_nodes, part.sharing, part.state) == (number(each["maximums"]["nodes"]), "NO", "UP")
        assert (part.tier, part.job_factor) == (each["priority"]["tier"], each["priority"]["job_factor"])
        assert part.resources["node"] == each["nodes"]["total"]
        assert part.others == {"DefMemPerCPU": "512"}


def test_the_recorded_reservation_and_qos_are_those_of_the_document() -> None:
    (given,) = document("24.05_0.0.41", "reservations")["reservations"]
    (read,) = read_answer(document("24.05_0.0.41", "reservations")).reservations or ()
    assert (read.start, read.end) == (number(given["start_time"]), number(given["end_time"]))
    assert (read.name, read.nodes, read.cpus) == (given["name"], given["node_list"], given["core_count"])
    assert (read.users, list(read.flags)) == (("bparks",), given["flags"])
    assert read.others == {"Accounts": "optic", "PartitionName": "batch"}
    normal, study = read_answer(document("25.05_0.0.43", "qos")).qos or ()
    assert (normal.name, normal.max_time, normal.max_running) == ("normal", None, None)
    assert (study.name, study.max_time, study.max_cpus) == ("study", 480 * 60, 128)
    assert (study.max_running, study.max_running_per_user, study.priority) == (60, 10, 100)
    assert study.others["MaxTRESPerUser"] == "cpu=128,mem=65536"


_OVER = {"COMPLETED": "completed", "TIMEOUT": "timeout", "FAILED": "failed", "CANCELLED": "cancelled"}


@pytest.mark.parametrize("release", RECORDED)
def test_recorded_jobs_are_those_of_the_document(release: str) -> None:
    given = document(release, "jobs")
    reports = [report for job in jobs_in(given) for report in reports_of(job)]
    assert len(reports) == len(given["jobs"])
    for report, each in zip(reports, given["jobs"], strict=True):
        (word,) = each["job_state"]
        where = {
            node["name"]: node["cpus"]["count"]
            for node in (each["job_resources"] or {}).get("nodes", {}).get("allocation", ())
        }
        assert (report.job, report.submit) == (each["job_id"], number(each["submit_time"]))
        assert report.request.processors == number(each["cpus"])
        assert report.request.requested == number(each["time_limit"]) * 60
        assert (report.request.user, report.request.group) == (each["user_name"], each["account"])
        assert (report.request.partition, report.request.queue) == (each["partition"], each["qos"])
        assert dict(report.nodes) == where
        if word == "PENDING":
            assert report.state == ("held" if each["state_reason"] == "BeginTime" else "waiting")
        else:
            assert report.state == ("running" if word == "RUNNING" else _OVER[word])
        if where:
            assert sum(where.values()) == report.request.processors
            assert (report.started, report.partition) == (number(each["start_time"]), each["partition"])
        assert report.ended == (number(each["end_time"]) if word in _OVER else None)


def test_recorded_requests_for_gpus() -> None:
    requests = {
        job.job: report.request
        for release in RECORDED
        for job in jobs_in(document(release, "jobs"))
        for report in reports_of(job)
    }
    found = {job: request.gpus_per_node for job, request in requests.items() if request.gpus_per_node}
    assert found == {6355: 1, 6356: 2, 4728: 4, 4729: 1, 5736: 4}
    assert all(requests[job].nodes == 1 for job in found)


# ---------------------------------------------------------------------- flat answers, and shapes in general


def test_flat_answers() -> None:
    site = read_answer(
        answer(
            "v0.0.38",
            nodes=[FLAT_NODE],
            partitions=[FLAT_PARTITION],
            reservations=[FLAT_RESERVATION],
            licenses=[FLAT_LICENCE],
        )
    )
    (node,), (part,) = site.nodes or (), site.partitions or ()
    (reservation,), (licence,) = site.reservations or (), site.licences or ()
    assert (node.name, node.cpus, node.memory, node.service) == ("viz", 4, 16000 * 2**20, "draining")
    assert node.gres == (Gres("gpu", 1, "k80"), Gres("gpu", 1, "a100"))
    assert (part.name, part.nodes, part.default, part.state, part.tier) == ("viz", "viz", True, "DOWN", 2)
    assert (part.max_time, part.max_nodes, part.least_loaded) == (240 * 60, None, True)
    assert part.others == {"DefaultTime": "00:30:00", "MaxMemPerCPU": "4000"}
    assert (reservation.start, reservation.end, reservation.users) == (1896134400, 1896138000, ("root",))
    assert (licence.name, licence.total) == ("matlab", 10)


def test_a_flat_job() -> None:
    (record,) = jobs_in(answer("v0.0.38", jobs=[FLAT_JOB]))
    (report,) = reports_of(record)
    request = report.request
    assert (report.job, report.state, report.started, report.nodes) == (2, "held", None, ())
    assert (request.nodes, request.cores_per_node, request.gpus_per_node) == (1, 4, 2)
    assert (request.memory_per_node, request.requested) == (2048 * 2**20, 1200)
    assert (request.consumables, request.partition, request.queue) == ({"matlab": 2}, "gpu", None)
    (without,) = reports_of(record, memory=False)
    assert without.request.memory_per_node == 0


def test_tasks_of_an_array_that_wait_together_are_jobs_of_their_own() -> None:
    waiting = {
        **FLAT_JOB,
        "job_id": 7,
        "array_job_id": 7,
        "array_task_string": "2-3,9%1",
        "priority": 5,
        "state_reason": "",
    }
    running = {**waiting, "job_id": 8, "array_task_id": 1, "array_task_string": "", "job_state": "RUNNING"}
    running |= {"nodes": "n[1-2]", "cpus": 5, "start_time": 1795350700}
    reports = [report for job in jobs_in(answer("v0.0.38", jobs=[waiting, running])) for report in reports_of(job)]
    assert [(each.job, each.state, each.request.array) for each in reports] == [
        ("7_2", "waiting", 7),
        ("7_3", "waiting", 7),
        ("7_9", "waiting", 7),
        ("7_1", "running", 7),
    ]
    assert reports[-1].nodes == (("n1", 3), ("n2", 2))
    assert reports[-1].started == 1795350700


@pytest.mark.parametrize(
    ("change", "nodes", "cores", "memory"),
    [
        ({"least_nodes": 2, "most_nodes": 2}, 2, 4, 0),
        ({}, None, 1, 0),
        ({"one_node": True, "memory_per_cpu": 10.0}, 1, 8, 80),
        ({"memory_per_node": 10.0}, 1, 8, 10),
        ({"gpus_per_node": 1}, 1, 8, 0),
        ({"least_nodes": 3, "most_nodes": 3}, 3, 3, 0),
    ],
)
def test_requests_for_nodes(change: Mapping[str, Any], nodes: int | None, cores: int, memory: float) -> None:
    (report,) = reports_of(JobRecord(job=1, submit=0.0, states=("PENDING",), cpus=8, **change))
    request = report.request
    assert (request.nodes, request.cores_per_node, request.memory_per_node) == (nodes, cores, memory)


def test_priorities_are_told_on_request_and_a_reservation_is_a_place() -> None:
    record = JobRecord(job=1, submit=0.0, states=("PENDING",), priority=7.0, partition="batch", reservation="course")
    (usual,), (told,) = reports_of(record), reports_of(record, priorities=True)
    assert (usual.request.priority, told.request.priority) == (0.0, 7.0)
    assert usual.request.partition == "course"


@pytest.mark.parametrize(
    ("text", "jobs", "told"),
    [
        ("", (), True),
        ("afterok:1(unfulfilled),afterany:2_3", ((1, "success"), ("2_3", "end")), True),
        ("after:5+10", ((5, "start"),), True),
        ("afterok:1?afterok:2", (), False),
        ("afternotok:1", ((1, "failure"),), True),
        ("singleton", (), False),
        ("afterok:1_*", (), False),
    ],
)
def test_dependencies(text: str, jobs: tuple[tuple[int | str, str], ...], told: bool) -> None:
    assert dependencies_of(text) == (jobs, told)
    (report,) = reports_of(JobRecord(job=9, submit=0.0, states=("PENDING",), dependency=text))
    assert report.state == ("waiting" if told else "held")


@pytest.mark.parametrize(
    ("states", "found"),
    [
        (("COMPLETED", "COMPLETING"), "completed"),
        (("RUNNING", "CONFIGURING"), "running"),
        (("REQUEUE_HOLD", "PENDING"), "held"),
        (("SUSPENDED",), "running"),
        (("OUT_OF_MEMORY",), "failed"),
        (("NODE_FAIL",), "lost"),
        (("COMPLETING",), "completed"),
    ],
)
def test_states_of_jobs(states: tuple[str, ...], found: str) -> None:
    assert job_state(states) == found


def test_wrong_states_and_tasks_are_refused() -> None:
    with pytest.raises(InputError, match="must be a state of jobs such as PENDING, got FLYING"):
        job_state(("FLYING",))
    with pytest.raises(InputError, match="must be numbers of tasks"):
        task_numbers("1-x")
    with pytest.raises(InputError, match="limit count"):
        task_numbers("0-999999999")


@pytest.mark.parametrize(
    ("given", "parser"), [("data_parser/v0.0.41", 41), ("v0.0.39", 39), ("data_parser/v0.0.42+complex", 42)]
)
def test_data_parsers(given: str, parser: int) -> None:
    assert parser_of({"meta": {"plugin": {"data_parser": given}}}) == parser


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({}, "x, meta.plugin.data_parser: must be v0.0.38 to v0.0.44, got None"),
        (answer("v0.0.45"), "x, meta.plugin.data_parser: must be v0.0.38 to v0.0.44, got 'data_parser/v0.0.45'"),
        (answer("v0.0.44", nodes=[{"name": "n1"}]), "x, nodes[0].cpus: must be a number, got None"),
        (answer("v0.0.44", nodes=[{"name": 7, "cpus": 1}]), "x, nodes[0].name: must be a text, got 7"),
        (answer("v0.0.44", nodes=[7]), "x, nodes[0]: must be an object, got 7"),
        (answer("v0.0.44", nodes=7), "nodes: must be a list, got 7"),
        (answer("v0.0.44", nodes=[{"name": "n", "cpus": 1, "gres": "gpu:x:"}]), ""),
        (answer("v0.0.44", partitions=[{}]), "x, partitions[0].name: must be a text that is not empty, got None"),
        (answer("v0.0.44", licenses=[{"LicenseName": "m"}]), "x, licenses[0].Total: must be a number, got None"),
    ],
)
def test_wrong_answers_are_refused_with_their_place(document: Mapping[str, Any], sentence: str) -> None:
    if not sentence:
        read_answer(document, "x")
        return
    with pytest.raises(InputError) as error:
        read_answer(document, "x")
    assert sentence in str(error.value)


def test_text_that_is_no_json_is_refused() -> None:
    with pytest.raises(InputError, match="x"):
        read_answer("{", "x")
