"""``simmodel twin status``."""

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from simmodel.cli import main
from simmodel_site.twin import LastDecision, Status, StatusServer

STATUS = Status(
    cluster="alps",
    time=900.0,
    waiting=3,
    refused={"two\nlines \x1b[2J": 2},
    last=LastDecision(number=7, time=900.0, policy="easy", seconds=0.0412),
    troubles=("redis://x: not reachable",),
)


@pytest.fixture
def served() -> Iterator[StatusServer]:
    with StatusServer(STATUS) as server:
        yield server


def test_the_status_is_printed_as_a_table(
    served: StatusServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "twin.toml"
    config.write_text(
        f'cluster = "alps"\nplatform = "theta"\n[source]\nkind = "lines"\npath = "e"\n[serve]\nport = {served.port}\n'
    )
    assert main(["twin", "status", str(config)]) == 0
    said = capsys.readouterr().out
    rows = dict(re.split(r" {2,}", line, maxsplit=1) for line in said.splitlines()[1:])
    assert (
        rows.items()
        >= {
            "health": "degraded",
            "cluster": "alps",
            "waiting": "3",
            "last policy": "easy",
            "last seconds": "0.0412",
            "trouble": "redis://x: not reachable",
            r"refused two\nlines \x1b[2J": "2",
        }.items()
    )
    assert "\x1b" not in said


def test_the_status_is_printed_as_json(served: StatusServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["twin", "status", "--port", str(served.port), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["health"] == "degraded"
    assert found["refused"] == {"two\nlines \x1b[2J": 2}


def test_no_twin_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        assert main(["twin", "status", "--port", str(port)]) == 2
    assert f"http://127.0.0.1:{port}/status: no twin answers" in capsys.readouterr().err
    config = tmp_path / "twin.toml"
    config.write_text('cluster = "alps"\nplatform = "theta"\n[source]\nkind = "lines"\npath = "e"\n')
    assert main(["twin", "status", str(config)]) == 2
    assert "serve.port: must name a port to be asked by" in capsys.readouterr().err
    assert main(["twin", "status"]) == 2
    assert "CONFIG: give CONFIG or --port" in capsys.readouterr().err
