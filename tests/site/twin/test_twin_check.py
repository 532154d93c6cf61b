"""What ``simmodel twin check`` says of a configuration."""

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from socket import socket
from typing import Any

import attrs
import pytest

from simmodel.cli import main
from simmodel.foundation.errors import InputError
from simmodel_site.twin import Demand, JobReport, StateReport
from simmodel_site.twin.acting.actions import ActSettings
from simmodel_site.twin.config import AdviseSettings, read_config
from simmodel_site.twin.running import check_act, check_config, check_source
from simmodel_site.twin.serving import StatusServer
from simmodel_site.twin.slurm.commands import SlurmCommands, SlurmError
from simmodel_site.twin.slurm.source import SlurmSettings, SlurmSource
from simmodel_site.twin.sources.lines import LinesSource
from simmodel_site.twin.status import Status
from tests.site.helpers.refusing_slurm import Stub
from tests.site.helpers.slurm_cluster import SlurmCluster
from tests.site.helpers.slurm_stub import JOB
from tests.site.helpers.slurm_texts import CONFIG

MACHINE = 'kind = "cluster"\n[[partitions]]\nnodes = [{ names = "n[1-2]", cores = 4 }]\n'
TWIN = 'cluster = "alps"\nplatform = "machine.toml"\naudit = "audit.jsonl"\n[source]\nkind = "lines"\npath = "events"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "machine.toml").write_text(MACHINE)
    (tmp_path / "events").write_text("")
    (tmp_path / "twin.toml").write_text(TWIN)
    return tmp_path


def said(folder: Path, more: str = "") -> list[str]:
    (folder / "twin.toml").write_text(TWIN + more)
    return list(check_config(read_config(folder / "twin.toml")))


def test_the_parts_of_a_configuration(folder: Path) -> None:
    assert said(folder) == [
        "platform machine.toml: 8 processors in 1 partition",
        "policy fcfs; nothing is advised",
        "source lines of alps: events alone, no full reports",
        "audit log audit.jsonl: can be written",
        "it may change nothing but its own files",
    ]
    assert not (folder / "audit.jsonl").exists()


def test_the_port_of_the_status_is_tried(folder: Path) -> None:
    assert any(line.startswith("status: can be served at http://127.0.0.1:") for line in said(folder, "[serve]\n"))
    with socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match="must be a free port"):
            said(folder, f"[serve]\nport = {taken.getsockname()[1]}\n")


def test_a_twin_that_runs_has_its_port(folder: Path) -> None:
    with closing(StatusServer(Status(cluster="alps"))) as server:
        lines = said(folder, f"[serve]\nport = {server.port}\n")
        assert f"status: a twin of alps runs and serves it at http://127.0.0.1:{server.port}" in lines
    with (
        closing(StatusServer(Status(cluster="other"))) as server,
        pytest.raises(InputError, match="must be a free port"),
    ):
        said(folder, f"[serve]\nport = {server.port}\n")


def test_the_command_prints_the_sentences(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["twin", "check", str(folder / "twin.toml")]) == 0
    assert capsys.readouterr().out.splitlines() == said(folder)
    (folder / "machine.toml").unlink()
    assert main(["twin", "check", str(folder / "twin.toml")]) == 2


# ---------------------------------------------------------------------- Slurm


@attrs.frozen(kw_only=True, repr=False)
class Told(SlurmCommands):
    """Commands whose answers are given."""

    texts: dict[str, Any] = attrs.field(factory=lambda: {"config": CONFIG, "ping": "", "jobs": [], "nodes": []})

    def read(self, name: str, jobs: Iterable[int | str] = ()) -> str:
        """Return what a command prints."""
        return str(self.texts[name])

    def rows(self, name: str) -> list[dict[str, str]]:
        """Return the rows of a table."""
        return list(self.texts[name])


def test_what_slurm_tells() -> None:
    nodes = [{"name": "n1", "state": "idle", "cpus": "4", "partition": each} for each in ("batch", "debug")]
    told = Told(texts={"config": CONFIG, "ping": "", "jobs": [JOB], "nodes": nodes})
    answers, jobs, seen, memory, runs = SlurmSource("alps", SlurmSettings(memory=False), commands=told).check()
    assert answers == "Slurm 22.05.8 answers; its cluster is alps"
    assert jobs.startswith("squeue: 1 job in ")
    assert seen.startswith("sinfo: 1 node in ")
    assert memory == "Slurm allocates memory: the source should have memory = true"
    assert runs == "it runs scontrol, sinfo, squeue, with arguments that only read"
    for allocates in (True, None):  # None: as Slurm tells
        assert len(SlurmSource("alps", SlurmSettings(memory=allocates), commands=told).check()) == 4


def test_what_slurm_hides_is_said() -> None:
    config = CONFIG.replace("\nSelectType ", "\nPrivateData             = jobs,usage\nSelectType ", 1)
    told = Told(texts={"config": config, "ping": "", "jobs": [], "nodes": []})
    assert "PrivateData hides the jobs of others from users who are no operators" in (
        SlurmSource("alps", commands=told).check()
    )


def test_a_slurm_that_is_away_is_one_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SlurmError, match="not found; the twin needs Slurm's client commands"):
        SlurmSource("alps", SlurmSettings(folder="/nowhere")).check()
    lines = (folder / "twin.toml").read_text().partition("[source]")[0]
    (folder / "twin.toml").write_text(f'{lines}[source]\nkind = "slurm"\nfolder = "/nowhere"\n')
    assert main(["twin", "check", str(folder / "twin.toml")]) != 0
    assert "/nowhere/scontrol: not found" in capsys.readouterr().err


# ---------------------------------------------------------------------- what does not fit


REPORT = StateReport(
    cluster="alps",
    time=9.0,
    jobs=(
        JobReport(job=1, submit=1.0, state="waiting", request=Demand(partition="nowhere", requested=60.0)),
        JobReport(job=2, submit=1.0, state="waiting", request=Demand(processors=2, requested=60.0)),
    ),
    down=("n7",),
)


class Reports(LinesSource):
    """A source with a full report."""

    def report(self) -> StateReport:
        """Return the report."""
        return REPORT


def test_a_report_that_does_not_fit_the_platform_is_told(folder: Path) -> None:
    spec = read_config(folder / "twin.toml").spec()
    with closing(Reports(folder / "events", "alps")) as source:
        source.refused.count("line 3: no event")
        lines = list(check_source(source, spec, "fcfs"))
    assert (lines[0], lines[-1]) == ("a full report of 2 jobs at 9 s", "refused: line 3: no event (1 times)")
    assert all(line.startswith("does not fit the platform: ") for line in lines[1:-1])
    assert [what for what in ("unknown partition 'nowhere'", "n7") if not any(what in line for line in lines)] == []


# ---------------------------------------------------------------------- what it may change


def test_what_a_twin_may_change_is_told(tmp_path: Path, folder: Path) -> None:
    stub = Stub(tmp_path, "hold-and-release")
    config = read_config(folder / "twin.toml")
    act = ActSettings(mode="hold-and-release", partitions=("batch",), budget=100, maximum_delay=90.0)
    acting = attrs.evolve(
        config, source={"kind": "slurm", "folder": str(tmp_path), "marks": True}, advise=AdviseSettings(), act=act
    )
    assert list(check_act(acting, config.spec())) == [
        "mode hold-and-release in batch: at most 100 actions an hour and 10 a second",
        "it may release jobs: scontrol update JobId={job} StartTime=now AdminComment=simmodel-released@{value}",
        "no job waits longer than 90 s for it",
        "1 waiting job marked by a twin now",
        f"stop file {folder / 'stop'}: is not there",
    ]
    assert not stub.told("forbidden")
    wrong = attrs.evolve(acting, act=attrs.evolve(act, partitions=("batsh",)))
    with pytest.raises(InputError, match=r"act\.partitions: unknown partition 'batsh'"):
        list(check_act(wrong, config.spec()))


@pytest.mark.live
def test_a_real_slurm_is_tried(slurm: SlurmCluster) -> None:
    slurm.submit("-N1", seconds=5)
    answers, jobs, nodes, *_ = SlurmSource("virtual").check()
    assert answers.endswith("answers; its cluster is virtual")
    assert int(jobs.split()[1]) >= 1
    assert nodes.startswith("sinfo: 32 nodes in ")
