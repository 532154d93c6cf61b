"""A cluster described by slurmrestd, and jobs of its answers that make no sense."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from simmodel.cli import main
from simmodel.foundation.errors import InputError
from simmodel_site.twin.slurm.describe import describe_slurm
from simmodel_site.twin.slurm.jobs import jobs_in
from simmodel_site.twin.slurm.rest import SlurmRest
from simmodel_site.twin.slurm.source import SlurmSettings, SlurmSource
from simmodel_site.twin.sources import Refused
from tests.site.helpers.slurm_texts import FLAT_JOB, FLAT_LICENCE, FLAT_NODE, FLAT_PARTITION, FLAT_RESERVATION, answer

TOLD: dict[str, Any] = {
    "jobs": answer("v0.0.38", jobs=[FLAT_JOB, {**FLAT_JOB, "job_id": 3, "submit_time": "soon"}]),
    "nodes": answer("v0.0.38", nodes=[FLAT_NODE]),
    "partitions": answer("v0.0.38", partitions=[FLAT_PARTITION]),
    "reservations": answer("v0.0.38", reservations=[FLAT_RESERVATION]),
    "licenses": answer("v0.0.38", licenses=[FLAT_LICENCE]),
}


class Handler(BaseHTTPRequestHandler):
    """Answers of the stand-in."""

    def address_string(self) -> str:
        return ""

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        found = TOLD.get(self.path.removeprefix("/slurm/v0.0.38/"))
        self.send_response(404 if found is None else 200)
        self.end_headers()
        self.wfile.write(json.dumps(found or {}).encode())


@contextmanager
def answering(path: Path) -> Iterator[None]:
    """Answer on a socket with what is told, to GET alone."""
    with ThreadingUnixStreamServer(str(path), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def test_slurmrestd_describes_its_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    with TemporaryDirectory(prefix="rest") as folder:
        path = Path(folder, "s")
        with answering(path):
            found = describe_slurm(rest=SlurmRest(str(path)))
            assert main(["twin", "describe", "slurm", "--rest", str(path), "-q"]) == 0
            source = SlurmSource("alps", SlurmSettings(ask="rest"), rest=SlurmRest(str(path)))
            jobs, nodes, gets = source.check()
            report = source.report()
    assert capsys.readouterr().out == found.toml()
    assert [(part.name, part.node_names, part.max_requested) for part in found.spec.partitions] == [
        ("viz", ("viz",), 14400)
    ]
    assert [each.name for each in found.spec.reservations] == ["service"]
    assert [each.name for each in found.spec.consumables] == ["matlab"]
    assert jobs.startswith(f"slurmrestd at {path}: 2 jobs in ")
    assert nodes.startswith(f"slurmrestd at {path}: 1 node in ")
    assert gets == "it asks slurmrestd with GET alone"
    assert report is not None
    assert [job.job for job in report.jobs] == [2]
    assert list(source.refused) == ["jobs[1].submit_time: must be a number, got 'soon'"]


def test_a_job_that_makes_no_sense_leaves_the_others() -> None:
    jobs = answer("v0.0.38", jobs=[FLAT_JOB, 7, {**FLAT_JOB, "submit_time": "soon"}])
    refused = Refused()
    assert [job.job for job in jobs_in(jobs, "x", refused=refused)] == [2]
    assert sorted(refused) == [
        "x, jobs[1]: must be an object, got 7",
        "x, jobs[2].submit_time: must be a number, got 'soon'",
    ]
    with pytest.raises(InputError):
        jobs_in(jobs)
