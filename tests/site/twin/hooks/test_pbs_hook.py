"""The hook of PBS, run beside a stand-in for PBS's module: what it tells, what it holds, and that it never fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from time import time
from types import SimpleNamespace
from typing import Any

import pytest

from simmodel.foundation.errors import InputError
from simmodel_site.twin import Ended, Event
from simmodel_site.twin.acting.actions import ActSettings
from simmodel_site.twin.events import Noticed
from simmodel_site.twin.hooks import install_pbs_hook, pbs_hook, tell
from simmodel_site.twin.streams import event_of_entry
from tests.site.helpers.pbs_stub import START, PbsStub

QUEUEJOB, RUNJOB, JOBOBIT = 1, 2, 3


class Resources(dict[str, Any]):
    def __missing__(self, name: str) -> None:
        return None


def job(**values: Any) -> Any:
    usual = {"id": "", "queue": "", "interactive": None, "Hold_Types": None, "Execution_Time": None, "ctime": 1.7e9}
    more = {"array_indices_submitted": None, "Exit_status": None, "Resource_List": Resources()}
    return SimpleNamespace(**{**usual, **more, **values})


class Server:
    """PBS's module; ``types`` are those of its release."""

    QUEUEJOB, RUNJOB, JOBOBIT, LOG_WARNING = QUEUEJOB, RUNJOB, JOBOBIT, 4

    def __init__(self) -> None:
        self.accepted = 0
        self.logged: list[str] = []
        self.now: Any = None

    def event(self) -> Any:
        return self.now

    def server(self) -> Any:
        return SimpleNamespace(default_queue="workq")

    def logmsg(self, level: int, text: str) -> None:
        self.logged.append(text)

    def accept(self) -> None:
        self.accepted += 1


@pytest.fixture
def pbs(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    monkeypatch.setitem(sys.modules, "pbs", made)
    return made


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """What the stream would be told: the events of the entries."""
    found: list[Event] = []
    monkeypatch.setattr(tell, "SETTINGS", {"cluster": "alps"})

    def read(what: str, variables: dict[str, str]) -> None:
        entry = [each.encode() for each in tell.entry_of(what, variables, 1.8e9)]
        found.append(event_of_entry(dict(zip(entry[::2], entry[1::2], strict=True))))

    monkeypatch.setattr(pbs_hook, "send", read)
    return found


def happen(pbs: Server, kind: int, of: Any) -> Any:
    pbs.now = SimpleNamespace(type=kind, job=of, accept=pbs.accept)
    pbs_hook.main()
    assert not pbs.logged
    return of


def test_events_are_told_as_those_of_slurm(pbs: Server, told: list[Event]) -> None:
    happen(pbs, QUEUEJOB, job())
    happen(pbs, RUNJOB, job(id="12.pbs"))
    happen(pbs, RUNJOB, job(id="12[3].pbs"))
    assert told == [
        Noticed(cluster="alps", time=1.8e9, what="submitted"),
        Noticed(cluster="alps", time=1.8e9, what="started", job=12),
        Noticed(cluster="alps", time=1.8e9, what="started", job="12_3"),
    ]
    assert pbs.accepted == 3


@pytest.mark.parametrize(("status", "word"), [(0, "completed"), (1, "failed"), (-29, "timeout"), (265, "failed")])
def test_an_end_is_told_with_its_submission(pbs: Server, told: list[Event], status: int, word: str) -> None:
    happen(pbs, JOBOBIT, job(id="12[3].pbs", Exit_status=status, ctime=1_700_000_000))
    (end,) = told
    assert isinstance(end, Ended)
    assert (end.job, end.submit, end.status) == ("12_3", 1.7e9, word)
    assert abs(end.time - time()) < 60


@pytest.mark.parametrize("status", [271, -3, None])
def test_an_end_that_is_not_certain_is_noticed(pbs: Server, told: list[Event], status: int | None) -> None:
    happen(pbs, JOBOBIT, job(id="12.pbs", Exit_status=status))
    assert told == [Noticed(cluster="alps", time=1.8e9, what="ended", job=12)]


@pytest.mark.parametrize("name", ["", "x", "12;rm.pbs", "12[].pbs", "12[1;2].pbs", "9" * 40, "１２.pbs", "1\n2.pbs"])
def test_ids_that_are_none_are_left_out(pbs: Server, told: list[Event], name: str) -> None:
    happen(pbs, RUNJOB, job(id=name))
    assert [event.document().get("job") for event in told] == [None]


# ---------------------------------------------------------------------- holding


def holding(monkeypatch: pytest.MonkeyPatch, heartbeat: Path, **settings: str) -> None:
    given = {"heartbeat": str(heartbeat), "stale_after": "30", "maximum_delay": "600", "queues": "", "release": "/r"}
    monkeypatch.setattr(pbs_hook, "SETTINGS", given | settings)


@pytest.mark.parametrize(
    ("beat", "held"),
    [
        ("{now} 7 hold", True),
        ("{now} 7 look", False),
        ("{old} 7 hold", False),
        ("", False),
        ("x y z", False),
        (None, False),
    ],
)
def test_jobs_are_held_while_the_heartbeat_says_so(
    pbs: Server, told: list[Event], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beat: str | None, held: bool
) -> None:
    holding(monkeypatch, tmp_path / "heartbeat")
    started: list[list[str]] = []
    monkeypatch.setattr(pbs_hook, "start", lambda words, _variables: started.append(words))
    if beat is not None:
        (tmp_path / "heartbeat").write_text(beat.format(now=int(time()), old=int(time()) - 99))
    new = happen(pbs, QUEUEJOB, job())
    assert (new.Execution_Time is not None, new.Resource_List.get("simmodel_mark")) == (
        held, f"simmodel-held@{new.Execution_Time}" if held else None
    )  # fmt: skip
    if held:
        assert abs(new.Execution_Time - time() - 600) < 60
    dead = beat is not None and "{now}" not in beat
    assert started == ([["/r"]] if dead else [])
    assert len(told) == 1


@pytest.mark.parametrize(
    "values",
    [
        {"interactive": True},
        {"Hold_Types": "u"},
        {"Execution_Time": 99},
        {"array_indices_submitted": "0-9"},
        {"Resource_List": Resources(simmodel_mark="x")},
        {"queue": "other"},
    ],
)  # fmt: skip
def test_jobs_in_which_others_have_a_say_are_not_held(
    pbs: Server, told: list[Event], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: dict[str, Any]
) -> None:
    holding(monkeypatch, tmp_path / "heartbeat", queues="workq,debug")
    (tmp_path / "heartbeat").write_text(f"{int(time())} 7 hold")
    before = values.get("Execution_Time")
    assert happen(pbs, QUEUEJOB, job(**values)).Execution_Time == before
    assert happen(pbs, QUEUEJOB, job(queue="debug")).Execution_Time
    assert happen(pbs, QUEUEJOB, job()).Execution_Time  # in the default queue


def test_whatever_goes_wrong_the_event_is_accepted(pbs: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    pbs.now = SimpleNamespace(type=RUNJOB, job=None, accept=pbs.accept)
    pbs_hook.main()
    assert pbs.accepted == 1
    assert pbs.logged[0].startswith("simmodel: AttributeError: ")


# ---------------------------------------------------------------------- the files


def test_the_hook_in_its_folder_tells_a_spool_and_the_release_gives_back(tmp_path: Path) -> None:
    pbs = PbsStub(tmp_path / "pbs")
    pbs.submit(hold=600.0)
    pbs.submit()
    heartbeat = tmp_path / "heartbeat"
    heartbeat.write_text(f"{int(time()) - 99} 7 hold\n")
    act = ActSettings(mode="hold-and-release", heartbeat=str(heartbeat), partitions=("workq",))
    lines = install_pbs_hook(tmp_path / "hook", "alps", python=sys.executable, hold=act, programs=str(tmp_path / "pbs"))
    assert f"import hook simmodel application/x-python default {tmp_path}/hook/pbs_hook.py" in lines
    assert "create resource simmodel_mark type=string,flag=r" in lines
    (tmp_path / "pbs.py").write_text(
        "from types import SimpleNamespace as S\nQUEUEJOB, RUNJOB, LOG_WARNING = 1, 2, 4\n"
        "def event(): return S(type=2, job=S(id='12.pbs'), accept=lambda: None)\n"
        "def logmsg(level, text): raise SystemExit(text)\n"
    )
    run = [sys.executable, str(tmp_path / "hook" / "pbs_hook.py")]
    subprocess.run(run, env={**os.environ, "PYTHONPATH": str(tmp_path)}, check=True, timeout=60)
    spool = tmp_path / "hook" / "spool" / "entries"
    for _ in range(600):
        if spool.exists() and spool.read_text():
            break
        subprocess.run(["sleep", "0.1"], check=True)
    assert "\tjob\t12\n" in spool.read_text()
    environment = {"PATH": f"{tmp_path}/pbs:{os.environ['PATH']}"}
    subprocess.run([tmp_path / "hook" / "release"], env=environment, check=True, timeout=60)
    released = [words for words in pbs.writes() if words[0] == "qalter"]
    assert [words[-1] for words in released] == ["1.pbs"]
    assert not heartbeat.exists()
    assert time() > START


def test_paths_that_a_script_would_read_otherwise_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"folder: must be a path of .* as qmgr can hold it"):
        install_pbs_hook(tmp_path / "my hook", "alps")
    with pytest.raises(InputError, match="programs: must be an absolute path"):
        install_pbs_hook(tmp_path / "hook", "alps", programs="opt/pbs/bin")
    (tmp_path / "pbs_hook.py").write_text("mine")
    with pytest.raises(InputError, match="exists, and is none of these scripts"):
        install_pbs_hook(tmp_path, "alps")
