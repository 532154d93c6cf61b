"""The state of Slurm from answers in JSON: of squeue --json and of slurmrestd, recorded and live."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from typing import Any, ClassVar

import attrs
import pytest

from simmodel.foundation.errors import InputError
from simmodel_site.twin import StateReport
from simmodel_site.twin.slurm.commands import SlurmError
from simmodel_site.twin.slurm.rest import SlurmRest
from simmodel_site.twin.slurm.source import SlurmSettings, SlurmSource
from tests.helpers.data_files import data_file
from tests.site.helpers.slurm_cluster import SlurmCluster, require, wait_until
from tests.site.helpers.slurm_stub import write_stub

RELEASES = ["24.05_0.0.41", "24.11_0.0.42", "25.05_0.0.43", "25.11_0.0.44"]


def recorded(release: str, what: str) -> bytes:
    return gzip.decompress(data_file(f"slurm/slurmrestd_{release}_{what}.json.gz").read_bytes())


class Server(ThreadingUnixStreamServer):
    """A slurmrestd of one version that has answers, refuses what does not read, and remembers what it was asked."""

    def __init__(self, path: Path, version: str, answers: dict[str, bytes]) -> None:
        self.version, self.answers = version, answers
        self.asked: list[tuple[str, str]] = []
        super().__init__(str(path), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Server  # type: ignore[assignment]
    silent: ClassVar[bool] = True

    def address_string(self) -> str:
        return ""

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.server.asked.append((self.command, self.path))
        data = self.server.answers.get(self.path.removeprefix(f"/slurm/{self.server.version}/"))
        self.send_response(404 if data is None else 200)
        self.end_headers()
        self.wfile.write(data or b"{}")

    def other(self) -> None:
        self.server.asked.append((self.command, self.path))
        self.send_error(500, "this would change something")

    do_POST = do_DELETE = do_PUT = other


@pytest.fixture
def rest(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    release = request.param
    answers = {what: recorded(release, what) for what in ("jobs", "nodes")}
    with Server(tmp_path / "rest", f"v{release.partition('_')[2]}", answers) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def expected(release: str) -> dict[int, str]:
    """Return the first word of the state of each job, read without the twin."""
    return {job["job_id"]: job["job_state"][0] for job in json.loads(recorded(release, "jobs"))["jobs"]}


def check_recorded(report: StateReport | None, release: str) -> None:
    assert report is not None
    states = expected(release)
    found = {job.job: job.state for job in report.jobs if isinstance(job.job, int)}
    assert found.keys() <= states.keys()
    assert len(report.jobs) >= len(states)
    for job, state in found.items():
        assert (state == "running") == (states[job] == "RUNNING")
        assert (state == "completed") == (states[job] == "COMPLETED")
    nodes = json.loads(recorded(release, "nodes"))["nodes"]
    assert set(report.down or ()) == {node["name"] for node in nodes if "DOWN" in node["state"]}
    assert set(report.draining or ()) >= {
        node["name"] for node in nodes if "DRAIN" in node["state"] and "DOWN" not in node["state"]
    }


@pytest.mark.parametrize("rest", RELEASES, indirect=True)
def test_recorded_answers_of_slurmrestd(rest: Server, request: pytest.FixtureRequest) -> None:
    release = request.node.callspec.params["rest"]
    source = SlurmSource("hpc", SlurmSettings(ask="rest"), rest=SlurmRest(str(rest.server_address)))
    check_recorded(source.report(), release)
    assert not source.refused
    source.report()
    assert {method for method, _ in rest.asked} == {"GET"}
    assert [path.rpartition("/")[2] for _, path in rest.asked[-3:]] == ["nodes", "jobs", "nodes"]  # found at once


@pytest.mark.parametrize("release", RELEASES)
def test_recorded_answers_of_commands(release: str, tmp_path: Path) -> None:
    write_stub(tmp_path)
    for name, what in (("squeue", "jobs"), ("sinfo", "nodes")):
        (tmp_path / f"{name}.json").write_bytes(recorded(release, what))
        (tmp_path / name).write_text('#!/bin/sh\n[ "$1 $2" != "--all --json" ] || exec cat "$0.json"\nexit 1\n')
    source = SlurmSource("hpc", SlurmSettings(folder=str(tmp_path), ask="json"))
    (tmp_path / "squeue").write_text('#!/bin/sh\nexec cat "$0.json"\n')
    check_recorded(source.report(), release)


def test_answers_that_are_none_are_counted(tmp_path: Path) -> None:
    write_stub(tmp_path)
    for text in ("", "[]", '{"jobs": []}', "[" * 10_000):
        (tmp_path / "squeue").write_text(f"#!/bin/sh\nprintf %s '{text}'\n")
        source = SlurmSource("hpc", SlurmSettings(folder=str(tmp_path), ask="json"))
        assert source.report() is None
        assert source.refused.last.startswith("answer in JSON: ")


def test_a_server_that_says_no_is_one_sentence(tmp_path: Path) -> None:
    with Server(tmp_path / "rest", "v0.0.30", {}) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        with pytest.raises(SlurmError, match=r"slurmrestd at .*/rest: status 404, saying '\{\}'"):
            SlurmRest(str(tmp_path / "rest")).read("jobs")
        server.shutdown()
        thread.join()
    with pytest.raises(InputError, match="unknown path"):
        SlurmRest(str(tmp_path / "rest")).read("job/7/cancel")


def test_settings(tmp_path: Path) -> None:
    source = SlurmSettings(ask="rest", socket="rest").open("hpc", tmp_path)
    assert source.report() is None
    assert source.refused.last == f"slurmrestd at {tmp_path}/rest: No such file or directory"
    with pytest.raises(InputError, match="socket: must be given where Slurm is asked by 'rest', and nowhere else"):
        SlurmSettings(ask="rest").open("hpc", tmp_path)


@pytest.mark.live
def test_all_ways_to_ask_tell_the_same(slurm: SlurmCluster) -> None:
    require("slurmrestd")
    slurm.submit("-N2", "--exclusive", "-t5", "--comment=7.5", "--job-name=a\nb\"'\x1b", seconds=600)
    array = slurm.submit("--array=1-4%2", "-N1", "--exclusive", "-t1", seconds=600)
    slurm.submit("--hold", "-N3", "--exclusive", "-L", "matlab:2", "-t9", seconds=600)
    wait_until(lambda: slurm.run("squeue", "-h", "-t", "running", "-o", "%i").count("\n") == 3)
    slurm.run("scontrol", "update", "nodename=n30", "state=drain", "reason=test")
    path = slurm.folder / "rest.sock"
    command = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--pdeathsig=KILL", "slurmrestd"]
    if os.geteuid():
        command = ["setpriv", "--pdeathsig=KILL", "slurmrestd"]
    slurm.folder.chmod(0o777)
    with subprocess.Popen(
        [*command, "-a", "rest_auth/local", "-s", "openapi/v0.0.38", f"unix:{path}"],
        env=slurm.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as server:  # fmt: skip
        try:
            wait_until(
                lambda: SlurmSource("virtual", SlurmSettings(ask="rest"), rest=SlurmRest(str(path))).report(), 20
            )
            reports = [
                SlurmSource("virtual", SlurmSettings(requested="comment")).report(),
                SlurmSource("virtual", SlurmSettings(requested="comment", ask="json")).report(),
                SlurmSource(
                    "virtual", SlurmSettings(requested="comment", ask="rest"), rest=SlurmRest(str(path))
                ).report(),
            ]
        finally:
            server.kill()
            slurm.folder.chmod(0o755)
            slurm.run("scontrol", "update", "nodename=n30", "state=resume")
    first, *others = [attrs.evolve(report, time=0.0, jobs=()) for report in reports if report is not None]
    assert others == [first, first]
    assert first.draining == ("n30",)
    of_rows, *of_json = [
        {job.job: attrs.asdict(job) for job in report.jobs if job.state in ("waiting", "held", "running")}
        for report in reports
        if report is not None
    ]
    assert {f"{array}_{task}" for task in (1, 2, 3, 4)} <= of_rows.keys()
    for told in of_json:
        for job, each in of_rows.items():
            assert sorted(told[job]["request"].items(), key=str) == sorted(each["request"].items(), key=str)
            assert told[job] == each
        assert told.keys() == of_rows.keys()
