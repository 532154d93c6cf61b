"""The twin runs commands of Slurm that read, and no others: against stand-ins that fail on anything that writes."""

import ast
import subprocess
from pathlib import Path

import pytest

from simmodel.foundation.errors import InputError
from simmodel_site.twin.slurm import commands
from simmodel_site.twin.slurm.commands import READS, SlurmCommands, SlurmError
from simmodel_site.twin.slurm.source import SlurmSettings, SlurmSource
from tests.helpers.package_imports import imports
from tests.helpers.paths import SITE
from tests.site.helpers.slurm_stub import ALL, JOB, READERS, calls, write_stub

TWIN = sorted((SITE / "twin").rglob("*.py"))
STARTS_PROGRAMS = {"programs.py", "embedded.py", "submitting.py", "hooks/pbs_hook.py"}


def test_the_stand_ins_fail_on_what_writes(tmp_path: Path) -> None:
    write_stub(tmp_path)
    for words in (
        ["scontrol", "hold", "7"],
        ["scancel", "7"],
        ["sbatch"],
        ["scontrol", "update", "jobid=7"],
        ["scontrol"],
    ):
        assert subprocess.run([tmp_path / words[0], *words[1:]], capture_output=True).returncode != 0
    assert [reads for reads, _ in calls(tmp_path)] == [False] * 5


def test_every_command_of_the_list_only_reads(tmp_path: Path) -> None:
    write_stub(tmp_path, [JOB])
    slurm = SlurmCommands(folder=str(tmp_path))
    for name in READS:
        slurm.read(name)
    told = calls(tmp_path)
    assert [words[0] for _, words in told] == [words[0] for words in READS.values()]
    assert all(reads for reads, _ in told)


def test_the_source_runs_only_commands_of_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_stub(tmp_path, [JOB], [{"N": "n1", "T": "idle", "c": "4", "P": "batch"}])
    monkeypatch.setenv("PATH", str(tmp_path))  # nothing else could be found
    source = SlurmSource("alps", SlurmSettings(interval=0.01))
    assert source.report() is not None
    assert list(source.events(60.0))
    told = calls(tmp_path)
    assert {words[0] for _, words in told} == {"squeue", "sinfo", "scontrol"}
    assert all(reads for reads, _ in told)


def test_other_commands_are_refused(tmp_path: Path) -> None:
    write_stub(tmp_path)
    for name in ("hold", "scancel", "jobs; scancel 7", "squeue"):
        with pytest.raises(InputError, match="unknown command"):
            SlurmCommands(folder=str(tmp_path)).read(name)
    assert calls(tmp_path) == []


def test_the_list_is_fixed() -> None:
    with pytest.raises(TypeError):
        READS["jobs"] = ("scancel",)  # type: ignore[index]
    verbs = {words[: words.index("show") + 1][-1] for words in READS.values() if "show" in words}
    assert verbs == {"show"}
    assert {words[0] for words in READS.values()} <= {*READERS, "scontrol"} < set(ALL)


@pytest.mark.few(29)
@pytest.mark.parametrize("path", TWIN, ids=lambda path: str(path.relative_to(SITE)))
def test_programs_are_started_in_one_place_and_never_by_a_shell(path: Path) -> None:
    names = {name.partition(".")[0] for name in imports(path)}
    if str(path.relative_to(SITE / "twin")) not in STARTS_PROGRAMS:
        assert names.isdisjoint({"subprocess", "pty", "multiprocessing", "asyncio", "posix"})
    for node in ast.walk(ast.parse(path.read_text())):
        assert not (isinstance(node, ast.keyword) and node.arg == "shell")
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            assert not node.attr.startswith(("system", "popen", "exec", "spawn", "posix_spawn"))


def test_variables_that_would_change_the_answers_are_not_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "squeue").write_text("#!/bin/sh\nenv\n")
    (tmp_path / "squeue").chmod(0o755)
    for name in ("SQUEUE_STATES", "SQUEUE_FORMAT", "SINFO_PARTITION", "SLURM_CLUSTERS", "SLURM_BITSTR_LEN"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm.conf")
    told = SlurmCommands(folder=str(tmp_path)).read("jobs.json")
    assert "SQUEUE_" not in told
    assert "SINFO_" not in told
    assert "SLURM_CONF=/etc/slurm.conf" in told
    assert "SLURM_TIME_FORMAT=%s" in told
    assert "SLURM_CONF=/own.conf" in SlurmCommands(folder=str(tmp_path), conf="/own.conf").read("jobs.json")


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        ("#!/bin/sh\necho 'error:\nno contact' >&2\nexit 1\n", "exit status 1, saying 'error: no contact'"),
        ("#!/bin/sh\nexit 3\n", "exit status 3, saying 'nothing'"),
        ("#!/bin/sh\nexec sleep 20\n", "no answer within 0.2 s"),
        ("#!/nowhere/sh\n", "not found"),
    ],
)  # fmt: skip
def test_a_command_that_fails_is_one_sentence(tmp_path: Path, program: str, sentence: str) -> None:
    (tmp_path / "squeue").write_text(program)
    (tmp_path / "squeue").chmod(0o755)
    with pytest.raises(SlurmError) as error:
        SlurmCommands(folder=str(tmp_path), timeout=0.2).read("jobs.json")
    assert str(error.value).startswith(f"{tmp_path}/squeue: {sentence}")


def test_a_slurm_that_is_away_is_told_until_it_is_back(tmp_path: Path) -> None:
    source = SlurmSource("alps", SlurmSettings(folder=str(tmp_path), interval=0.01))
    assert list(source.events(0.0)) == []
    assert source.trouble == f"{tmp_path}/scontrol: not found; the twin needs Slurm's client commands"
    assert source.refused.total() == 1
    write_stub(tmp_path, [JOB])
    report = source.report()
    assert report is not None
    assert [job.job for job in report.jobs] == [7]
    assert source.trouble is None


def test_marks_differ_at_each_call(tmp_path: Path) -> None:
    write_stub(tmp_path, [JOB])
    slurm = SlurmCommands(folder=str(tmp_path))
    for _ in range(5):
        assert [row["name"] for row in slurm.rows("jobs")] == ["sim"]
    formats = [words[-1] for _, words in calls(tmp_path)]
    assert len(set(formats)) == 5
    assert commands._ROW in formats[0]
