"""Lines that cannot be read: refused with their number, or passed over and counted; texts of users in accounting."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from simmodel.catalogue import load_workload
from simmodel.catalogue.workloads import workload_in_chunks
from simmodel.cli import main
from simmodel.formats.sacct import read_sacct
from simmodel.foundation.errors import InputError
from simmodel.foundation.loading import reading

SWF = "; MaxProcs: 4\n" + "".join(f"{job} {job} -1 10 1 -1 -1 1 20 -1 1 7 -1 -1 -1 -1 -1 -1\n" for job in (1, 2, 3))
GWF = "".join("\t".join([str(job), "5", "-1", "8", "1", *["-1"] * 5, "1", *["-1"] * 18]) + "\n" for job in (1, 2, 3))
SACCT = "JobID|Submit|Elapsed|AllocCPUS\n" + "".join(f"{job}|2024-05-01T12:00:00|00:01:00|4\n" for job in (1, 2, 3))
PBS = "".join(
    f"05/01/2024 13:00:30;E;{job}.s;ctime=1714564800 start=1714564830 end=1714568430 Resource_List.ncpus=1\n"
    for job in (1, 2, 3)
)
CSV = "submit,run,processors\n1,10,1\n2,10,1\n3,10,1\n"
CGSIM = "pandaid,creationtime,cpuconsumptiontime,computingsite,corecount,inputfilebytes,outputfilebytes\n" + "".join(
    f"{job},10,100,BNL,8,0,50\n" for job in (1, 2, 3)
)
LOGS = {"swf": SWF, "gwf": GWF, "sacct": SACCT, "pbs": PBS, "csv": CSV, "cgsim": CGSIM}


def with_a_bad_line(format: str, bad: str) -> str:
    lines = LOGS[format].splitlines(keepends=True)
    return "".join([*lines[:-1], bad + "\n", lines[-1]])


@pytest.mark.parametrize("format", LOGS)
def test_a_bad_line_is_refused_with_its_number_or_counted(
    format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "bad log"
    log.write_text(with_a_bad_line(format, "@ no job @"))
    number = log.read_text().splitlines().index("@ no job @") + 1
    with pytest.raises(InputError, match=f"line {number}: "):
        load_workload(log, format=format)
    with reading(skip_bad=True):
        found = load_workload(log, format=format)
        chunks = workload_in_chunks(log, format=format)
    assert len(found) == 3
    assert found.report.skipped.total() == 1
    assert sum(len(chunk) for chunk in chunks) == 3  # read after the block, as it said
    assert main(["batch", str(log), "--processors", "8"]) == 2
    assert f"line {number}: " in (said := capsys.readouterr().err)
    assert said.endswith(" (--skip-bad passes over such lines)\n")
    assert main(["batch", str(log), "--processors", "8", "--skip-bad"]) == 0
    assert re.search(r"skipped 1 \(", capsys.readouterr().out)


def test_a_bad_cell_of_a_table_is_its_line(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("Submit,RUN,processors,user\n1,10,1,ann\nsoon,10,1,bob\n3,10,many,bob\n4,10,2,eve\n")
    with pytest.raises(InputError, match="line 3: column 'Submit': must be an instant"):
        load_workload(log)
    found = load_workload(log, strict=False)
    assert (found["submit"].tolist(), found["user"].tolist()) == ([1.0, 4.0], ["ann", "eve"])
    assert found.report.skipped == {"bad lines": 2}


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".swf", ".gwf", ".toml", ".txt", ".sacct", ""])
@pytest.mark.parametrize("format", ["swf", "sacct", "pbs", "csv", "cgsim"])
def test_the_content_decides_where_the_ending_does_not_fit(ending: str, format: str, tmp_path: Path) -> None:
    log = tmp_path / f"log{ending}"
    log.write_text(LOGS[format])
    assert len(load_workload(log)) == 3
    assert sum(len(chunk) for chunk in workload_in_chunks(log)) == 3


HEAD = "JobID|JobName|Submit|Start|End|Elapsed|AllocCPUS|State|User|SubmitLine"


def job(number: int, name: str = "a", line: str = "sbatch job.sh") -> str:
    times = "2024-05-01T12:00:00|2024-05-01T12:01:00|2024-05-01T13:01:00|01:00:00"
    return f"{number}|{name}|{times}|64|COMPLETED|ann|{line}"


TEXTS = st.text(st.sampled_from("ab |\n-="), max_size=12).map(lambda text: f"x{text.strip()}y")


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5), st.booleans())
def test_names_and_submit_lines_may_have_bars_and_line_breaks(texts: list[tuple[str, str]], last: bool) -> None:
    # in one of the two texts, since where both have bars no field between them tells which is whose
    rows = [job(at, line=line) if last else job(at, name=name) for at, (name, line) in enumerate(texts, 1)]
    log = read_sacct(io.StringIO("\n".join([HEAD, *rows]) + "\n"))
    assert log["job"].tolist() == list(range(1, len(texts) + 1))
    assert (log["wait"].tolist(), log["run"].tolist()) == ([60.0] * len(texts), [3600.0] * len(texts))
    assert log["user"].tolist() == ["ann"] * len(texts)
    if last:
        lines = [re.sub(r"\n\s*(?=\n)", "", line) for _, line in texts]  # lines that are empty
        assert log["submit_line"].tolist() == lines


def test_a_line_that_is_no_job_stays_a_bad_line() -> None:
    text = "\n".join([HEAD.removesuffix("|SubmitLine"), job(1).rpartition("|")[0], "slurm_load_jobs error", ""])
    with pytest.raises(InputError, match="line 3: must have 9 fields, got 1"):
        read_sacct(io.StringIO(text))


def test_line_breaks_are_counted_and_do_not_part_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from simmodel.foundation import loading

    log = tmp_path / "log.sacct"
    log.write_text("\n".join([HEAD, *(job(at, line="sbatch --wrap=echo\nsleep 5 | cat") for at in range(1, 40)), ""]))
    whole = load_workload(log)
    assert whole.report.repaired == {"line breaks inside of fields": 39}

    def blocks(file: Any, **options: Any) -> Any:
        return loading.read_blocks(file, size=100, **options)

    monkeypatch.setattr("simmodel.catalogue.formats.read_blocks", blocks)
    chunks = [*workload_in_chunks(log)]
    assert len(chunks) > 10
    assert [each for chunk in chunks for each in chunk["job"].tolist()] == whole["job"].tolist()
    assert {each for chunk in chunks for each in chunk["submit_line"].tolist()} == set(whole["submit_line"].tolist())
