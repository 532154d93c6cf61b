"""What a twin sends to PBS: its lists of commands alone, for ids alone, read back, and given back."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from simmodel.foundation.errors import InputError
from simmodel_site.twin.acting.actions import HELD, MODES, PREFERRED, Action, Command, HandsError, Mode
from simmodel_site.twin.acting.performing import perform, read_back, restore
from simmodel_site.twin.pbs.source import WRITES, PbsHands, PbsSettings, PbsSource
from tests.site.helpers.pbs_stub import START, PbsStub

SENT = {
    "release": [["qalter", "-a", "202311142213.20", "1"]],
    "prefer": [["qalter", "-p", "5", "-l", f"simmodel_mark={PREFERRED}@5", "1"]],
    "unprefer": [["qalter", "-p", "0", "-l", "simmodel_mark=none", "1"]],
}
HOSTILE = (
    *("'; touch x; '", '"}, "2.pbs": {"job_state": "R"}', "$(id) `id`", "a\nb\r\tc"),
    *("\\", "\\\\'", "\x1b[31m"),
)


@pytest.fixture
def pbs(tmp_path: Path) -> PbsStub:
    return PbsStub(tmp_path / "pbs")


def action(command: Command, job: int | str = 1, submit: float = START, value: int = 0) -> Action:
    return Action(number=1, advice=1, command=command, job=job, submit=submit, time=submit, value=value)


@pytest.mark.parametrize("mode", get_args(Mode))
def test_no_mode_sends_anything_outside_its_list(pbs: PbsStub, mode: Mode) -> None:
    pbs.submit()
    hands = pbs.hands(mode)
    for command in WRITES:
        before = pbs.writes()
        if command in MODES[mode]:
            hands.send(command, 1, 5)
            assert pbs.writes()[len(before) :] == SENT[command]
        else:
            with pytest.raises(HandsError, match="is no command of this mode"):
                hands.send(command, 1, 5)
            assert pbs.writes() == before


@pytest.mark.parametrize("job", ["7; rm /", "7 -p 3", "$(id)", "7\n8", "", "-1", "7_", "7_1_2", "*", "7" * 40, "7[]"])
def test_what_is_no_id_of_a_job_reaches_no_command(pbs: PbsStub, job: str) -> None:
    hands = pbs.hands("hold-and-release")
    for ask in (lambda: hands.send("release", job), lambda: hands.look(job)):
        with pytest.raises(InputError, match="job: must be an id such as 12 or 12_1"):
            ask()
    assert not pbs.calls()


def test_a_release_is_read_back_and_done_once(pbs: PbsStub) -> None:
    pbs.submit(hold=600.0)
    hands = pbs.hands("hold-and-release")
    assert [(job.job, job.held) for job in hands.marked()] == [(1, True)]
    assert [perform(hands, action("release")).what for _ in range(2)] == ["done", "already"]
    assert len(pbs.writes()) == 1
    assert read_back(hands, action("release")).what == "done"
    assert perform(hands, action("release", submit=START + 1)).sentence.startswith("the id belongs to another job now")
    assert perform(hands, action("release", 77)).sentence == "the job is not known any more"


def test_priorities_are_read_back_and_those_of_others_stay(pbs: PbsStub) -> None:
    pbs.submit()
    pbs.submit(Priority=7)
    hands = pbs.hands("priority")
    assert [perform(hands, action("prefer", value=900)).what for _ in range(2)] == ["done", "already"]
    assert (pbs.job(1)["Priority"], pbs.job(1)["Resource_List"]["simmodel_mark"]) == (900, f"{PREFERRED}@900")
    assert perform(hands, action("prefer", 2, value=900)).sentence == "its priority or its note is somebody else's"
    assert perform(hands, action("unprefer")).what == "done"
    assert perform(hands, action("unprefer")).what == "already"
    with pytest.raises(HandsError, match="job 1: the priority must be at most 1023, got 5000"):
        hands.send("prefer", 1, 5000)


def test_everything_is_given_back_once(pbs: PbsStub) -> None:
    for hold in (600.0, 600.0, 0.0):
        pbs.submit(4, hold=hold)
    perform(pbs.hands("priority"), action("prefer", 3, value=10))
    pbs.alter(2, Priority="much", Resource_List={"ncpus": 4})  # whatever one job is, the others are given back
    hands = PbsSettings(folder=str(pbs.folder)).hands("observe", restoring=True)
    assert hands.commands == ("release", "unprefer")
    found = restore(pbs.hands("observe", allowed=hands.commands))
    assert (found.jobs, found.failed) == (2, 0)
    assert (pbs.job(1)["job_state"], pbs.job(3)["Priority"]) == ("Q", 0)
    assert restore(pbs.hands("observe", allowed=hands.commands)).jobs == 0


def test_a_move_that_was_cut_off_is_finished(pbs: PbsStub) -> None:
    pbs.submit()
    pbs.alter(1, Priority=900, Resource_List={"ncpus": 1, "simmodel_mark": f"{PREFERRED}@900.workq"})
    hands = pbs.hands("priority", express="express")
    assert perform(hands, action("prefer", value=900)).what == "done"
    assert (pbs.job(1)["queue"], pbs.writes()[-1]) == ("express", ["qmove", "express", "1"])
    pbs.alter(1, queue="workq")  # moved back, while the mark was left
    assert perform(hands, action("unprefer")).what == "done"
    assert [words[0] for words in pbs.writes()] == ["qalter", "qmove", "qalter"]


def test_single_tasks_of_arrays_are_left_alone(pbs: PbsStub) -> None:
    with pytest.raises(HandsError, match="job 7_1: PBS changes no single tasks of an array"):
        pbs.hands("priority").send("prefer", "7_1", 5)
    assert not pbs.calls()


def test_a_server_that_is_away_is_told(pbs: PbsStub) -> None:
    pbs.submit(hold=60.0)
    pbs.change(away=True)
    hands = pbs.hands("hold-and-release")
    assert "cannot connect to server" in perform(hands, action("release")).sentence
    assert restore(hands).failed == 1
    source = PbsSource("alps", commands=pbs.commands(), clock=lambda: pbs.now)
    assert source.report() is None
    assert "cannot connect to server" in str(source.trouble)
    pbs.change(away=False)
    assert source.report() is not None
    assert source.trouble is None


@pytest.mark.long  # smaller: the other tests of the file
def test_hostile_names_and_comments_stop_nothing_and_stay_as_they_are(pbs: PbsStub) -> None:
    texts = (*HOSTILE, "x" * 2**20)
    for text in texts:
        given = {"Job_Name": text, "comment": text[:1000], "Variable_List": {"X": text[:1000], text[:100]: "1"}}
        pbs.submit(hold=600.0, **given)
    source = PbsSource("alps", commands=pbs.commands(), clock=lambda: pbs.now)
    report = source.report()
    assert report is not None
    assert [job.request.name for job in report.jobs] == [text[:256] for text in texts]
    assert not source.refused
    found = restore(pbs.hands("hold-and-release"))
    assert (found.jobs, found.failed) == (len(texts), 0)
    assert [pbs.job(job)["Job_Name"] for job in range(1, len(texts) + 1)] == list(texts)
    assert {len(words) for words in pbs.writes()} == {4}


@pytest.mark.parametrize("queue", ["", "a b", "-x", "a;b", "q" * 40])
def test_a_queue_for_preferred_jobs_must_be_a_name(queue: str) -> None:
    with pytest.raises(InputError, match="express: must be the name of a queue"):
        PbsHands(express=queue)


def test_the_commands_are_told_as_they_are_sent() -> None:
    hands = PbsHands(mode="priority", express="short", start=True)
    assert hands.words("prefer").endswith(
        f"-l simmodel_mark={PREFERRED}@{{value}}.{{queue}} {{job}}; qmove {{queue}} {{job}}"
    )
    assert PbsHands(start=True).words("release") == "qalter -a {now} {job}; qrun {job}"
    assert PbsHands().words("unprefer") == "qalter -p 0 -l simmodel_mark=none {job}"
    assert HELD == "simmodel-held"  # the hook writes it


def test_what_a_user_has_changed_since_is_left_and_said(pbs: PbsStub) -> None:
    pbs.submit(hold=600.0)
    pbs.submit()
    hands = pbs.hands("observe", allowed=("release", "prefer", "unprefer"))
    perform(hands, action("prefer", 2, value=10))
    pbs.alter(1, Execution_Time=START + 90_000)
    pbs.alter(2, Priority=-5)
    before = pbs.writes()
    found = perform(hands, action("release"))
    assert (found.what, found.sentence.partition(",")[0]) == ("refused", "its execution time")
    assert perform(hands, action("unprefer", 2)).what == "refused"
    assert [each.partition(",")[0] for each in restore(hands).left] == [
        "job 1: its execution time",
        "job 2: its priority",
    ]
    assert pbs.writes() == before
