"""``simmodel twin explain``: why jobs of a Slurm wait, from what its commands print."""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from simmodel.cli import main
from simmodel.referee.explanation import instant_text
from simmodel_site.twin.slurm.describe import describe_slurm
from tests.site.helpers.slurm_stub import JOB, write_stub
from tests.site.helpers.slurm_texts import LICENCES, RESERVATIONS, TEXTS

NODES = [
    {"N": name, "T": state, "c": cpus, "P": part}
    for name, state, cpus, part in (
        *((f"cn0{i}", "mixed", "32", part) for i in (1, 2, 3) for part in ("batch", "debug")[: 3 - i or 1]),
        ("cn04", "down*", "32", "batch"),
        ("cn09", "mixed", "32", "batch"),
        ("gpu1", "mixed", "32", "gpu"),
        ("gpu2", "down*", "32", "gpu"),
    )
]
HOUR = 3600


def running(job: int, nodes: str, cpus: int, ago: float, limit: str = "1:00:00", **more: str) -> Mapping[str, str]:
    """Return a row of squeue on a running job that started some seconds ago."""
    start = int(time.time() - ago)
    given = {"A": job, "F": job, "T": "RUNNING", "V": start - 5, "S": start, "e": start + HOUR, "l": limit, "N": nodes}
    return {
        **JOB,
        **{k: str(v) for k, v in given.items()},
        "C": str(cpus),
        "c": str(cpus),
        "D": "1",
        "r": "None",
        **more,
    }


def pending(job: int, cpus: int, reason: str = "Resources", **more: str) -> Mapping[str, str]:
    """Return a row of squeue on a waiting job; later ids came later."""
    came = int(time.time()) - HOUR + job
    given = {"A": str(job), "F": str(job), "V": str(came), "C": str(cpus), "c": str(cpus), "D": "1", "r": reason}
    return {**JOB, **given, "l": "10:00", **more}


FULL = (("cn01", 32), ("cn02", 32), ("cn03", 32), ("cn09", 28))


@pytest.fixture
def explained(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Return a function that explains a job of a Slurm with some rows of jobs, as a document with the ``text``."""
    texts = {**TEXTS, "license": LICENCES.replace("Reserved=5", "Reserved=0")}
    texts["reservation"] = RESERVATIONS[: RESERVATIONS.index("ReservationName=lic")]
    saved = tmp_path / "told"
    saved.mkdir()
    for name, text in texts.items():
        (saved / f"{name}.txt").write_text(text)
    (tmp_path / "machine.toml").write_text(describe_slurm([saved]).toml())
    (tmp_path / "bin").mkdir()
    config = tmp_path / "twin.toml"
    config.write_text(
        'cluster = "alps"\nplatform = "machine.toml"\npolicy = "easy"\n'
        f'[source]\nkind = "slurm"\nmemory = false\nfolder = "{tmp_path / "bin"}"\n'
    )

    def explain(job: int, *rows: Mapping[str, str]) -> dict[str, Any]:
        write_stub(tmp_path / "bin", rows, NODES)
        out, picture = tmp_path / "why.json", tmp_path / "why.png"
        assert main(["twin", "explain", str(config), str(job), "--json", str(out), "--plot", str(picture)]) == 0
        assert picture.stat().st_size > 1000
        found: dict[str, Any] = json.loads(out.read_text("utf-8"))
        return found

    return explain


def test_processors_are_held_and_slurm_says_so_too(
    explained: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [running(number, node, size, 60 * number) for number, (node, size) in enumerate(FULL, 1)]
    expects = int(time.time()) + 5000
    found = explained(9, *rows, pending(9, 28, S=str(expects)))
    assert (found["reason"], found["needs"], found["free"]) == ("processors", 28, 0)
    assert [each["job"] for each in found["holders"]] == [4]  # it ends first, and the job fits on its 28 cores
    assert found["expected"] == found["holders"][0]["until"] == int(rows[3]["S"]) + HOUR
    assert [row["by"] for row in found["promises"]] == ["promise"]
    text = capsys.readouterr().out
    assert text.startswith("alps, easy: job 9 at 20")
    assert f"expected to start at {instant_text(found['expected'], dated=True)}" in text
    assert f"the scheduler says: Resources, it expects to start it at {instant_text(expects, dated=True)}" in text


def test_a_job_that_fits_waits_for_order_and_a_shorter_limit_starts_it(
    explained: Callable[..., dict[str, Any]],
) -> None:
    """28 cores of cn09 are free; job 8 is promised them, and 28 of cn03, for the end of job 3."""
    rows = [running(number, node, size, 60 * number) for number, (node, size) in enumerate(FULL[:3], 1)]
    head = pending(8, 56, D="2", c="1")
    found = explained(9, *rows, head, pending(9, 28, "Priority", l="2:00:00"))
    assert (found["reason"], found["ahead"], found["said"]) == ("order", [8], "Priority")
    left = int(rows[2]["S"]) + HOUR - found["at"]
    (limit,) = [each["value"] for each in found["changes"] if each["what"] == "requested"]
    assert limit == int(left)


def test_gpus_of_a_node_are_missing_though_cores_are_free(explained: Callable[..., dict[str, Any]]) -> None:
    one = running(1, "gpu1", 8, 60, P="gpu", b="gres:gpu:3", h="OK")
    found = explained(9, one, pending(9, 8, P="gpu", b="gres:gpu:2"))
    assert found["reason"] in ("nodes", "processors")
    assert found["holders"][0]["job"] == 1


def test_licences_are_missing(explained: Callable[..., dict[str, Any]]) -> None:
    one = running(1, "cn01", 4, 60, W="matlab:8")
    found = explained(9, one, pending(9, 4, "Licenses", W="matlab:3"))
    assert (found["reason"], found["said"]) == ("licences", "Licenses")
    assert found["detail"] == "needs 3 of matlab, 2 are free"
    assert [each["job"] for each in found["holders"]] == [1]
    assert ["matlab", 2.0] in [[each["what"], each["value"]] for each in found["changes"]]


def test_a_reservation_has_not_begun(explained: Callable[..., dict[str, Any]]) -> None:
    found = explained(9, pending(9, 4, "Reservation", v="course", u="ada"))
    assert (found["reason"], found["detail"]) == ("reservation", "its reservation course has not begun")


def test_a_held_job_would_start_if_it_were_released(
    explained: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    found = explained(9, pending(9, 4, "QOSMaxJobsPerUserLimit"))
    assert (found["reason"], found["said"]) == ("held", "QOSMaxJobsPerUserLimit")
    assert [each["value"] for each in found["changes"]] == ["released"]
    assert "it would start now if it were released" in capsys.readouterr().out
    rows = [running(number, node, size, 60) for number, (node, size) in enumerate(FULL, 1)]
    full = explained(9, *rows, pending(9, 4, "JobHeldUser", Q="0"))
    assert full["detail"] == "is held by the scheduler; once released, it needs 4 processors of batch, 0 are free"
    assert (full["changes"], full["expected"], full["said"]) == ([], None, "JobHeldUser")


def test_a_dependency(explained: Callable[..., dict[str, Any]]) -> None:
    one = running(1, "cn01", 4, 60)
    found = explained(9, one, pending(9, 4, "Dependency", E="afterok:1(unfulfilled)"))
    assert (found["reason"], [each["job"] for each in found["holders"]]) == ("dependencies", [1])


def test_jobs_that_do_not_wait_are_told(
    explained: Callable[..., dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [running(1, "cn01", 4, 60), pending(9, 4)]
    explained(9, *rows)
    config = str(tmp_path / "twin.toml")
    for job, sentence in (
        ("1", f"job: job 1 does not wait: it runs since {instant_text(float(rows[0]['S']), dated=True)}"),
        ("7", "job: must be one of the 1 jobs that wait, got '7'"),
    ):
        assert main(["twin", "explain", config, job]) == 2
        assert sentence in capsys.readouterr().err
