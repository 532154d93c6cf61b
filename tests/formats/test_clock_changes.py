"""Local times of hours that the clock shows twice, or never: read with the other instants of the job in mind."""

from __future__ import annotations

import io
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, strategies as st

from simmodel.catalogue import load_workload
from simmodel.cli import main
from simmodel.formats.named_columns import read_columns
from simmodel.formats.pbs import read_pbs
from simmodel.formats.sacct import read_sacct
from simmodel.formats.tables import AMBIGUOUS, in_order, moments
from simmodel.foundation.loading import reading

BERLIN = ZoneInfo("Europe/Berlin")
BACK = "2024-10-27"  # 03:00 is 02:00 again
FORTH = "2024-03-31"  # 02:00 is 03:00
HEAD = "JobID|Submit|Start|End|Elapsed|AllocCPUS|State\n"


def sacct(*cells: str, day: str = BACK) -> str:
    submit, start, end, elapsed = cells
    return HEAD + f"1|{day}T{submit}|{day}T{start}|{day}T{end}|{elapsed}|4|COMPLETED\n"


@pytest.mark.parametrize(
    ("cells", "wait", "run", "ambiguous"),
    [
        (("02:50:00", "02:10:00", "03:10:00", "01:00:00"), 1200, 3600, 0),  # the second 02:10
        (("01:50:00", "02:30:00", "02:40:00", "01:10:00"), 2400, 4200, 0),  # Elapsed tells which 02:40
        (("01:50:00", "02:30:00", "03:10:00", "00:40:00"), 6000, 2400, 0),
        (("02:10:00", "02:30:00", "02:40:00", "00:10:00"), 1200, 600, 1),
        (("01:00:00", "01:30:00", "03:30:00", "03:00:00"), 1800, 10800, 0),  # nothing is read twice
    ],
)
def test_sacct_over_the_end_of_summer_time(cells: tuple[str, ...], wait: float, run: float, ambiguous: int) -> None:
    log = read_sacct(io.StringIO(sacct(*cells)), timezone="Europe/Berlin")
    assert (log["wait"].tolist(), log["run"].tolist()) == ([wait], [run])
    assert log.report.repaired[AMBIGUOUS] == ambiguous


def test_without_a_run_time_it_is_from_start_to_end() -> None:
    text = f"JobID|Submit|Start|End|AllocCPUS|State\n1|{BACK}T01:50:00|{BACK}T02:30:00|{BACK}T02:10:00|4|COMPLETED\n"
    log = read_sacct(io.StringIO(text), timezone="Europe/Berlin")
    assert (log["wait"].tolist(), log["run"].tolist()) == ([2400.0], [2400.0])
    assert not log.report


def test_sacct_over_the_begin_of_summer_time() -> None:
    log = read_sacct(
        io.StringIO(sacct("01:50:00", "03:10:00", "03:40:00", "00:30:00", day=FORTH)), timezone="Europe/Berlin"
    )
    assert log["wait"].tolist() == [1200.0]
    assert not log.report


def test_columns_of_timestamps_and_a_table_of_pandas() -> None:
    rows = ["01:50 02:30 02:10", "02:50 02:10 03:10", "02:10 02:20 02:30", "00:10 00:20 00:30"]
    text = "submit,start,end,processors\n" + "".join(
        ",".join(f"{BACK} {cell}:00" for cell in row.split()) + ",2\n" for row in rows
    )
    log = read_columns(io.StringIO(text), timezone="Europe/Berlin")
    assert log["wait"].tolist() == [2400.0, 1200.0, 600.0, 600.0]
    assert log["run"].tolist() == [2400.0, 3600.0, 600.0, 600.0]
    assert log.report.repaired == {AMBIGUOUS: 1}
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(io.StringIO(text), parse_dates=["submit", "start", "end"])
    again = read_columns(frame, timezone="Europe/Berlin")
    for name in ("submit", "wait", "run"):
        assert again[name].tolist() == log[name].tolist()


def test_clock_times_of_pbs_follow_each_other() -> None:
    lines = [
        "10/27/2024 01:59:00;Q;1.s;queue=work",
        "10/27/2024 02:40:00;Q;2.s;queue=work",
        "10/27/2024 02:10:00;Q;3.s;queue=work",  # the second one
        *(
            f"10/27/2024 03:{minute}:00;S;{job}.s;user=ann Resource_List.ncpus=1"
            for job, minute in ((1, "01"), (2, "02"), (3, "03"))
        ),
        *(
            f"10/27/2024 04:{minute}:00;E;{job}.s;user=ann Resource_List.ncpus=1 resources_used.walltime=00:59:00"
            for job, minute in ((1, "01"), (2, "02"), (3, "03"))
        ),
    ]
    log = read_pbs(io.StringIO("\n".join(lines)), timezone="Europe/Berlin")
    assert log["wait"].tolist() == [7320.0, 4920.0, 3180.0]
    assert log["run"].tolist() == [3600.0] * 3


def test_a_zone_that_pbs_does_not_tell_follows_the_nearest_record_with_unix_seconds() -> None:
    def record(when: datetime, kind: str, job: int, more: str = "") -> str:
        return f"{when.astimezone(BERLIN):%m/%d/%Y %H:%M:%S};{kind};{job}.s;user=ann Resource_List.ncpus=1{more}"

    begin = datetime(2024, 10, 26, 20, tzinfo=BERLIN)
    lines, waits = [], []
    for job in range(20):
        queued = begin + timedelta(hours=job)
        started, ended = queued + timedelta(minutes=7), queued + timedelta(minutes=20)
        lines.append(record(queued, "Q", job))
        lines.append(record(started, "S", job, f" start={started.timestamp():.0f}"))
        lines.append(record(ended, "E", job, f" start={started.timestamp():.0f} end={ended.timestamp():.0f}"))
        waits.append((started - queued).total_seconds())
    log = read_pbs(io.StringIO("\n".join(lines)))
    assert log["wait"].tolist() == waits


@given(st.lists(st.integers(0, 5 * 3600), min_size=3, max_size=3), st.booleans())
def test_the_true_instants_are_among_those_that_fit(offsets: list[int], told: bool) -> None:
    begin = datetime(2024, 10, 27, 0, 0, tzinfo=BERLIN).timestamp()
    true = sorted(begin + each for each in offsets)
    texts = [datetime.fromtimestamp(at, BERLIN).replace(tzinfo=None).isoformat() for at in true]
    lasted = true[2] - true[1] if told else float("nan")
    cells = [moments(text, BERLIN) for text in texts]
    found, ambiguous = in_order(cells, lasted)
    assert all(at in cell for at, cell in zip(true, cells, strict=True))
    assert found == sorted(found)
    if told:
        assert abs((found[2] - found[1]) - lasted) <= 1
    assert found == true or ambiguous


def test_commands_take_the_zone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "night jobs.sacct"
    log.write_text(sacct("01:50:00", "02:30:00", "03:10:00", "00:40:00"))
    with reading(timezone="Europe/Berlin"):
        assert load_workload(log)["wait"].tolist() == [6000.0]
    assert np.isclose(load_workload(log)["wait"], 2400).all()
    schedule = tmp_path / "schedule.csv"
    schedule.write_text(f"job,start\n1,{datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=BERLIN).timestamp():.0f}\n")
    words = ["verify", str(log), str(schedule), "--processors", "4"]
    assert main([*words, "--timezone", "Europe/Berlin", "--policy", "fcfs"]) == 1
    assert "at 1729986600 s the policy starts" in capsys.readouterr().out  # 01:50 of summer time
    assert main(["batch", str(log), "--processors", "4", "--timezone", "Europe/Berlni"]) == 2
    assert "timezone: must be a time zone such as 'Europe/Paris'" in capsys.readouterr().err
