"""``simmodel slurm read`` and ``replay``."""

from __future__ import annotations

from pathlib import Path

import pytest

from simmodel.cli import main
from tests.site.helpers.slurm_sacct import sacct_line, site_folder


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    lines = [
        sacct_line(i, f"-N 4 {'--contiguous' if i == 3 else ''}", submit=10 * i, start=100 * i, run=30)
        for i in range(1, 6)
    ]
    return site_folder(folder, lines)


def test_read_prints_what_it_made_and_what_it_left_out(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["slurm", "read", str(site), "--timezone", "Europe/Paris"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    lines = said.out.splitlines()
    assert lines[0] == "read: slurm.conf, jobs.txt"
    assert lines[1] == "platform: 4 nodes with 16 CPUs; partitions batch, fast"
    assert lines[2].startswith(
        "policy: slurm(memory=true, partitions=(batch:nodes=n[1-4]:default;fast:nodes=n[1-2]:tier=10))"
    )
    assert lines[3].startswith("workload: 5 jobs submitted from 2024-05-01T10:00:10 to 2024-05-01T10:00:50")
    assert lines[-2:] == ["not expressed; each may change starts:", "  job 3: --contiguous (not modelled)"]


def test_read_writes_platform_and_workload(site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    platform, jobs = tmp_path / "site.toml", tmp_path / "jobs.csv"
    files = [str(site / "slurm.conf"), str(site / "jobs.txt")]
    assert main(["slurm", "read", *files, "-q", "--platform", str(platform), "--workload", str(jobs)]) == 0
    assert capsys.readouterr().out == ""
    assert "# policy: slurm(memory=true, partitions=" in platform.read_text()
    assert "#   job 3: --contiguous (not modelled)" in platform.read_text()
    assert main(["batch", str(jobs), "--platform", str(platform), "--policy", "slurm(bf_interval=10)"]) == 0


def test_replay_compares_with_the_recorded_starts(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "starts.csv"
    assert main(["slurm", "replay", str(site), "--table", str(table)]) == 0
    said = capsys.readouterr().out
    assert "starts that differ by more than a cycle of 30 s: " in said
    assert "the first that differs: job " in said
    assert "  job 3: --contiguous (not modelled)" in said.splitlines()
    assert table.read_text().splitlines()[0] == "job,submit,recorded,simulated"


def test_set_prints_what_a_change_would_do(site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "effects.csv"
    words = ["slurm", "replay", str(site), "--set", "bf_interval=60", "--set", "batch_sched_delay=0", "--phases", "3"]
    assert main([*words, "--table", str(table)]) == 0
    said = capsys.readouterr().out
    assert "changed: slurm(batch_sched_delay=0, bf_interval=60, memory=true, partitions=" in said
    assert "95 % intervals over 3 phases of the loops" in said
    assert [line.split(",")[3] for line in table.read_text().splitlines()] == [
        "metric",
        "wait_mean",
        "wait_median",
        "wait_p95",
        "wait_max",
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["read"], "missing FOLDER"),
        (["read", "{site}/none"], "no such file"),
        (["read", "{site}", "--timezone", "Mars"], "must be a time zone"),
        (["replay", "{site}/slurm.conf"], "no job has started"),
        (["replay", "{site}", "--set", "x"], "--set: must be NAME=VALUE, got 'x'"),
        (
            ["replay", "{site}", "--set", "bf_interval=60", "--phases", "1"],
            "--phases: must be a whole number >= 2, got 1",
        ),
        (["replay", "{site}", "--phases", "3"], "--phases: needs --set"),
        (["reed", "{site}"], "unknown action 'reed'"),
    ],
)
def test_wrong_input_is_one_sentence(
    words: list[str], sentence: str, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["slurm", *(word.format(site=site) for word in words)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert sentence in said.err
    assert len(said.err.splitlines()) == 1
