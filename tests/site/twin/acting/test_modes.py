"""Each mode against commands of Slurm that note what they are asked for and fail on anything outside its list."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from simmodel.foundation.errors import InputError
from simmodel_site.twin.acting.actions import HELD, MODES, Action, Command, HandsError, Mode
from simmodel_site.twin.acting.performing import perform, restore
from simmodel_site.twin.slurm.source import WRITES
from tests.site.helpers.refusing_slurm import Stub


@pytest.mark.parametrize("mode", get_args(Mode))
def test_no_mode_asks_for_anything_outside_its_list(tmp_path: Path, mode: Mode) -> None:
    stub = Stub(tmp_path, mode)
    for command in WRITES:
        try:
            stub.hands.send(command, 7, 5)
        except HandsError:
            assert command not in MODES[mode]
        else:
            assert command in MODES[mode]
        perform(stub.hands, Action(number=1, advice=1, command=command, job=7, submit=60.0, time=61.0, value=5))
    restore(stub.hands)
    assert not stub.told("forbidden")
    asked = [line for line in stub.told("asked") if line.startswith("scontrol")]
    assert bool(asked) == bool(MODES[mode])


@pytest.mark.parametrize(
    ("command", "sent"),
    [
        ("release", "scontrol update JobId=7 StartTime=now AdminComment=simmodel-released@5"),
        ("prefer", "scontrol update JobId=7 Nice=-5 AdminComment=simmodel-preferred@5"),
        ("unprefer", "scontrol update JobId=7 Nice=0 AdminComment="),
    ],
)
def test_the_whole_list_of_commands_that_change_something(tmp_path: Path, command: Command, sent: str) -> None:
    mode: Mode = "hold-and-release" if command == "release" else "priority"
    stub = Stub(tmp_path, mode)
    stub.hands.send(command, 7, 5)
    assert stub.told("asked") == [sent]
    assert set(WRITES) == {"release", "prefer", "unprefer"}


@pytest.mark.parametrize("job", ["7; rm -rf /", "7 Nice=3", "$(id)", "7\n8", "", "-1", "7_", "7_1_2", "*", "7" * 40])
def test_what_is_no_id_of_a_job_reaches_no_command(tmp_path: Path, job: str) -> None:
    stub = Stub(tmp_path, "hold-and-release")
    for ask in (lambda: stub.hands.send("release", job), lambda: stub.hands.look(job)):
        with pytest.raises(InputError, match="job: must be an id such as 12 or 12_1"):
            ask()
    assert not stub.told("asked")


def test_rows_that_make_no_sense_are_told(tmp_path: Path) -> None:
    stub = Stub(tmp_path, "hold-and-release", ("7", "7", "N/A", "PENDING", "soon", "1", "0", HELD))
    with pytest.raises(HandsError, match=re.escape("squeue: must tell a job, got '7 ")):
        stub.hands.look(7)
    assert restore(stub.hands).failed == 1


def test_a_job_of_an_array_is_named_by_its_task(tmp_path: Path) -> None:
    stub = Stub(
        tmp_path, "hold-and-release", ("9", "7", "3", "PENDING", "60", "99999999999", "0", f"{HELD}@99999999999")
    )
    assert [job.job for job in stub.hands.marked()] == ["7_3"]
    restore(stub.hands)
    assert (
        stub.told("asked")[-1] == "scontrol update JobId=7_3 StartTime=now AdminComment=simmodel-released@99999999999"
    )
