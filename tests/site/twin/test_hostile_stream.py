"""A stream in which anybody may write anything: the twin counts what it refuses, and goes on advising."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from simmodel_site.twin import (
    Advisor,
    AuditLog,
    Demand,
    Mirror,
    StatusServer,
    StreamWriter,
    Submitted,
    Twin,
    read_audit,
    replay_audit,
)
from simmodel_site.twin.events import Passed
from simmodel_site.twin.serving import metrics_of
from simmodel_site.twin.sources.stream import StreamSource
from tests.site.helpers.redis_server import RedisServer
from tests.site.helpers.twin_records import recorded

NAMES = [
    "'; rm -rf / #",
    '"; DROP TABLE jobs; --',
    "$(reboot)`reboot`",
    "two\nlines\r\n\x00",
    "\x1b[2J\x1b]0;title\x07",
    "../../etc/passwd",
    "%n%n%s{0}",
    "\u202e\ufeff\U0001f4a5",
    "n" * 1_000_000,
]


def rubbish(name: str) -> list[dict[str, str]]:
    """Return entries that are no events of the cluster."""
    about = {"kind": "submitted", "cluster": "alps", "time": "1", "job": "5", "submit": "1"}
    return [
        {"kind": name},
        {name: name},
        {**about, "cluster": name, "request": "{}"},
        {**about, "request": name},
        {**about, "time": name, "request": "{}"},
        {**about, "request": json.dumps({"processors": name})},
        {**about, "request": json.dumps({"processors": -4})},
        {**about, "request": json.dumps({"processors": 10**30})},
        {**about, "request": json.dumps({"requested": float("inf")}), "job": "inf"},
        {**about, "request": json.dumps({"requested": -1.0}), "job": "negative"},
        {**about, "request": json.dumps({"queue": name, "partition": name}), "job": "names"},
        {"kind": "started", "cluster": "alps", "time": "1e308", "job": name, "submit": "-1e308"},
        {"kind": "nodes", "cluster": "alps", "time": "1", "state": "down", "nodes": json.dumps([name])},
        {"kind": "state", "cluster": "alps", "time": "1", "jobs": json.dumps([{"job": name}])},
    ]


def follow(server_of_stream: RedisServer, tmp_path: Path, name: str) -> None:
    """Let a twin read rubbish with a name and true events between it, and decide."""
    key = f"hostile:{NAMES.index(name)}"
    client: Any = server_of_stream.settings.client()
    now = 1_000.0
    mirror = Mirror(4, "alps", clock=lambda: now)
    audit = AuditLog(tmp_path / "audit.jsonl")
    twin = Twin(StreamSource("alps", server_of_stream.settings, key), mirror, Advisor("easy"), audit, clock=lambda: now)
    twin.when = "passed"
    writer = StreamWriter(key, server_of_stream.settings)
    for number, entry in enumerate(rubbish(name)):
        client.xadd(key, entry)
        job = Submitted(
            cluster="alps", time=2.0 + number, job=100 + number, submit=2.0 + number, request=Demand(name=name)
        )
        writer.write(job)
    writer.write(Passed(cluster="alps", time=100.0))
    for _ in range(10):
        twin.step(0.0)
    assert sum(twin.status.refused.values()) >= 8
    assert twin.last is not None
    assert {start.job for start in twin.last.starts} >= {100, 101, 102}
    with StatusServer(twin.status) as server:
        assert len(json.dumps(server.document())) < 200_000
        assert list(text_string_to_metric_families(metrics_of(*server.seen())[0]))
    twin.close()
    writer.close()
    client.close()


@pytest.mark.few(6)
@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_twin_outlives_whatever_a_stream_holds(
    shared_redis: RedisServer, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def refused(*_words: object, **_options: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", refused)
    with recorded(tmp_path / "twin.log"):
        follow(shared_redis, tmp_path, name)
    for line in (tmp_path / "twin.log").read_text("utf-8").splitlines():
        assert json.loads(line)["part"]
        assert line.isprintable()
    assert list(read_audit(tmp_path / "audit.jsonl"))
    found = replay_audit(tmp_path / "audit.jsonl")
    assert found.decisions == found.reproduced > 0
    said = capsys.readouterr()
    assert said.out + said.err == ""
