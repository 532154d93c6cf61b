"""Each writer refuses a file whose ending says that it holds something else, in one sentence, and writes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simmodel import InputError, compare, load_workload, simulate, start, what_if
from simmodel.cli import main
from simmodel.formats import write_swf
from simmodel.platform import ClusterSpec, write_toml

RUN = simulate(16, "probe-4", "easy")
TASKS = simulate("fpga-server", "fork-join", "heft")
BOTH = compare(16, "probe-4", ["fcfs", "easy"])
SNAPSHOT = start(16, "probe-4", "fcfs").run(until=950).snapshot()

WRITERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "page": (RUN.to_html, ".html"),
    "page of tasks": (TASKS.to_html, ".html"),
    "page of a comparison": (BOTH.to_html, ".html"),
    "json": (RUN.to_json, ".json"),
    "json of tasks": (TASKS.to_json, ".json"),
    "json of a comparison": (BOTH.to_json, ".json"),
    "csv of a comparison": (BOTH.to_csv, ".csv"),
    "csv of a table": (RUN.jobs.to_csv, ".csv"),
    "sqlite": (RUN.to_sqlite, ".sqlite"),
    "trace": (RUN.to_perfetto, ".json"),
    "latex": (RUN.to_latex, ".tex"),
    "markdown": (RUN.to_markdown, ".md"),
    "snapshot": (SNAPSHOT.to_json, ".json"),
    "what-if": (what_if(SNAPSHOT, ["fcfs"]).to_json, ".json"),
    "log": (lambda path: write_swf(load_workload("probe-4"), path), ".swf"),
    "platform": (lambda path: write_toml(ClusterSpec.simple(4), path), ".toml"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_of_another_ending_is_refused(name: str, tmp_path: Path) -> None:
    write, ending = WRITERS[name]
    with pytest.raises(InputError, match=rf"must end in \{ending}, got '.pdf'"):
        write(tmp_path / "out.pdf")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", WRITERS)
def test_its_own_ending_and_none_are_accepted(name: str, tmp_path: Path) -> None:
    write, ending = WRITERS[name]
    for path in (tmp_path / f"out{ending}", tmp_path / f"out{ending.upper()}", tmp_path / "out", tmp_path / "a.b"):
        write(path)
        assert path.exists()


def test_folders_are_not_named_like_pictures(tmp_path: Path) -> None:
    for write in (RUN.to_csv, RUN.to_parquet):
        with pytest.raises(InputError, match=r"must end in \.csv or \.parquet, got '\.png'"):
            write(tmp_path / "run.png")


@pytest.mark.parametrize(
    ("option", "ending"),
    [("--html", ".html"), ("--json", ".json"), ("--csv", ".csv"), ("--db", ".sqlite"), ("--trace", ".json")],
)
def test_a_command_refuses_it_before_the_run(
    option: str, ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["batch", "probe-4", "--processors", "16", option, str(tmp_path / "out.pdf")]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"simmodel: {tmp_path / 'out.pdf'}: must end in {ending}, got '.pdf'\n")
