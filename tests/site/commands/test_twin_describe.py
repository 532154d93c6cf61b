"""``simmodel twin describe``."""

import re
from datetime import datetime
from pathlib import Path

import pytest

from simmodel.cli import main
from simmodel.platform import read_toml
from tests.helpers.data_files import data_file
from tests.site.helpers.slurm_texts import TEXTS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    told = tmp_path / "told"
    told.mkdir()
    for name, text in TEXTS.items():
        (told / f"{name}.txt").write_text(text)
    return told


def test_the_platform_goes_to_standard_output_and_the_list_to_standard_error(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["twin", "describe", "slurm", "--from", str(folder), "--timezone", "UTC"]) == 0
    said = capsys.readouterr()
    file = tmp_path / "machine.toml"
    file.write_text(said.out)
    spec = read_toml(file)
    assert spec.processors == 156 + 64 + 4
    assert spec.reservations[0].start == 1893484800
    listed = [line.removeprefix("not expressed: ") for line in said.err.splitlines()]
    assert listed == [line.removeprefix("#   ") for line in said.out.splitlines() if line.startswith("#   ")]
    assert main(["batch", "probe-4", "--platform", str(file), "--policy", "easy"]) == 0


def test_the_policy_that_is_described_is_taken_into_a_twin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = [str(data_file(f"slurm/runs/tree/scontrol_{name}.txt")) for name in ("config", "nodes", "partitions")]
    assert main(["twin", "describe", "slurm", "--from", *told]) == 0
    platform = capsys.readouterr().out
    policy = re.search(r"slurm\(.*\)(?=\W*$)", platform, re.MULTILINE)
    assert policy is not None
    assert "partitions=(batch:nodes=" in policy[0]
    (tmp_path / "platform.toml").write_text(platform)
    (tmp_path / "events.jsonl").touch()
    config = tmp_path / "twin.toml"
    config.write_text(
        f'cluster = "tree"\nplatform = "platform.toml"\npolicy = "{policy[0]}"\naudit = "audit.jsonl"\n'
        '[source]\nkind = "lines"\npath = "events.jsonl"\nfollow = false\n[advise]\npolicy = "easy"\n'
    )
    assert main(["twin", "check", str(config)]) == 0
    assert f"policy {policy[0]}; advice by easy, if late by slurm(" in capsys.readouterr().out
    config.write_text(config.read_text("utf-8").replace('policy = "easy"', 'policy = "portfolio(easy, mine:f)"'))
    assert main(["twin", "check", str(config)]) == 2
    assert "advise.policy: must be a known policy" in capsys.readouterr().err


def test_options(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(folder / f"{name}.txt") for name in ("node", "partition", "reservation")]
    words = ["twin", "describe", "slurm", "-q", "--origin", "1893484800", "--timezone", "Etc/GMT+1", "--from", *files]
    assert main(words) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert 'name = "course"\nstart = 3600.0\nend = 18000.0\n' in said.out


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("run", "policy", "within", "least"),
    [
        ("defaults", "slurm(bf_max_time=60, kill_wait=5, ", 30, 0.85),  # fcfs: 92 %
        ("fast", "slurm(batch_sched_delay=1, bf_interval=5, bf_resolution=1, bf_max_time=60, ", 5, 0.8),
        (
            "tree",
            "not known; slurm(bf_interval=5, bf_max_time=60, tree=true, kill_wait=5, partitions=(batch:nodes=n[1-8]:",
            5,
            0.35,  # these logs do not tell the switches that jobs ask for, nor their partitions
        ),
        (
            "preempt",
            "not known; slurm(bf_interval=5, bf_max_time=60, preempt=partition_prio, ",
            5,
            0.45,
        ),  # and the 8 of preempted runs
    ],
)
def test_the_policy_explains_recorded_starts_of_slurm(
    run: str, policy: str, within: int, least: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = [str(data_file(f"slurm/runs/{run}/scontrol_{name}.txt")) for name in ("config", "nodes", "partitions")]
    lines = ["job,submit,wait,run,processors,requested"]
    for line in data_file(f"slurm/runs/{run}/jobcomp.txt").read_text().splitlines():
        cells = dict(re.findall(r"(\w+)=(\S*)", line))
        submit, start, end = (datetime.fromisoformat(cells[f"{name}Time"]) for name in ("Submit", "Start", "End"))
        seconds = (submit.timestamp(), (start - submit).seconds, (end - start).seconds)
        lines.append(
            f"{cells['JobId']},{','.join(map(str, seconds))},{cells['NodeCnt']},{60 * int(cells['TimeLimit'])}"
        )
    log = tmp_path / "starts.csv"
    lines[1:] = sorted(lines[1:], key=lambda line: int(line.split(",")[0]))  # not by their ends
    log.write_text("\n".join(lines) + "\n")
    assert main(["twin", "describe", "slurm", "-q", "--timezone", "UTC", "--log", str(log), "--from", *told]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"# policy: {policy}")
    line = rf"# recorded starts explained within {within} s: .*slurm\(.*?\) (\d+)%.*; by an arbitrary order: [0-9]+%"
    found = re.search(line, said)
    assert found is not None, said[:900]
    assert int(found[1]) >= 100 * least


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["lsf"], "simmodel twin describe: SCHEDULER: unknown scheduler 'lsf'; known schedulers: pbs, slurm"),
        (["slurm", "--from", "none.txt"], "none.txt: no such file"),
        (["slurm", "--from", "{told}/node.txt"], "no partitions: give 'scontrol show partition'"),
        (["slurm", "--from", "{told}", "{told}/node.txt"], "nodes are told twice"),
        (["slurm", "--from", "{told}", "--timezone", "Mars"], "timezone: must be a time zone such as"),
        (["slurm", "--conf", "/nowhere/slurm.conf"], "scontrol: "),
        (["slurm", "--from", "{told}/node.txt", "--limit", "size=100"], "(limit size), got more"),
    ],
)
def test_wrong_input_is_one_sentence(
    words: list[str],
    sentence: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", str(folder))  # no scontrol: a real one looks for its controller for half a minute
    try:
        status = main(["twin", "describe", *(word.format(told=folder) for word in words)])
    except SystemExit as error:
        status = error.code  # type: ignore[assignment]
    assert status == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert sentence in said.err
    assert len(said.err.splitlines()) == 1
