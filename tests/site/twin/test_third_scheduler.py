"""A third scheduler in one file: two commands that read and one that writes, taken by all that takes Slurm and PBS."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import MappingProxyType

import attrs
import pytest

from simmodel.cli import main
from simmodel.platform import ClusterSpec, PartitionSpec, read_toml
from simmodel_site.twin import Demand, JobReport
from simmodel_site.twin.acting.actions import RESTORING, HandsError, JobNow, Mode
from simmodel_site.twin.acting.performing import CommandHands
from simmodel_site.twin.described import STATE_OF_NOW, Described, NodeKind, Notes, node_specs, saved_answers
from simmodel_site.twin.events import JobState
from simmodel_site.twin.mirror.node_states import nodes_out
from simmodel_site.twin.programs import Commands
from simmodel_site.twin.sources import SOURCES, source_settings
from simmodel_site.twin.sources.polling import PolledSettings, PolledSource, State

COMMANDS = {
    "tjobs": "grep -E \"^$1\" <<'.'\n7 running 60 n1 -\n8 waiting 70 - simmodel-held@99999999999\n.",
    "tnodes": "cat <<'.'\nn1 4 up\nn2 4 up\nn3 8 down\n.",
    "tset": 'echo $@ >> "$0.sent"',
}
TWIN = """cluster = "alps"
platform = "machine.toml"
audit = "audit.jsonl"
source = { kind = "toy" }
advise = { policy = "fcfs" }
act = { mode = "hold-and-release" }
"""


class ToyCommands(Commands):
    """The commands of the toy."""

    scheduler, conf_variable, of_jobs = "the toy", "TOY_CONF", frozenset(("jobs",))
    reads = MappingProxyType({"jobs": ("tjobs",), "nodes": ("tnodes",)})
    word_of = staticmethod(str)

    def rows(self, name: str, jobs: Iterable[int | str] = ()) -> list[list[str]]:
        return [line.split() for line in self.read(name, jobs).splitlines()]


class ToyHands(CommandHands):
    """Releases and prefers jobs of the toy."""

    writes = MappingProxyType({name: ("tset", "{job}", name) for name in ("release", "prefer", "unprefer")})
    gone, begin, preference = re.compile("no such job"), "begin time", "rank"
    reads: ToyCommands

    def jobs(self, job: int | str | None = None) -> Iterator[JobNow]:
        for id, state, submit, _, mark in self.reads.rows("jobs", () if job is None else (job,)):
            begin = float(mark.partition("@")[2] or 0)
            yield self.job_now(int(id), float(submit), waiting=state == "waiting", mark=mark, begin=begin, number=0)


@attrs.frozen(kw_only=True, repr=False)
class ToySettings(PolledSettings):
    """The settings of a source that asks the toy."""

    def open(self, cluster: str, folder: Path) -> ToySource:
        return ToySource(cluster, self, self.commands_of(ToyCommands), wake=self.wakening(cluster, folder))

    def hands(self, mode: Mode, *, restoring: bool = False) -> ToyHands:
        return ToyHands(self.commands_of(ToyCommands), mode, allowed=RESTORING if restoring else None)

    def describe(self, paths: Iterable[str | Path] = (), **_: object) -> Described:
        texts = [data.decode() for data, _ in saved_answers(paths)] or [self.commands_of(ToyCommands).read("nodes")]
        nodes, notes = [line.split() for text in texts for line in text.splitlines()], Notes()
        notes.add_of_nodes((name, state, STATE_OF_NOW) for name, _, state in nodes if state != "up")
        specs = node_specs(((name, NodeKind(int(cores))) for name, cores, _ in nodes), notes)
        spec = ClusterSpec(name="toy", partitions=(PartitionSpec(nodes=specs),))
        out = nodes_out((name, state) for name, _, state in nodes)
        return Described(spec=spec, policy="fcfs", unsupported=tuple(notes), **out._asdict())


class ToySource(PolledSource):
    """Tells the state of the toy."""

    commands: ToyCommands

    def state(self) -> State:
        jobs = tuple(map(report_of, self.commands.rows("jobs")))
        return State(jobs, *nodes_out((name, state) for name, _, state in self.commands.rows("nodes")))

    def states_of(self, job: int | str) -> list[JobState]:
        return [report_of(row).state for row in self.commands.rows("jobs", (job,))]

    def release(self) -> str:
        return "the toy answers"

    def count(self, name: str) -> int:
        return len(self.commands.rows(name))


def report_of(row: list[str]) -> JobReport:
    job, state, submit, node, _ = row
    where = {} if node == "-" else {"started": float(submit), "nodes": ((node, 4),)}
    return JobReport(job=job, submit=float(submit), state=state, request=Demand(processors=4), **where)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the commands of the toy, which is on the path, and a twin that acts there."""
    for name, text in COMMANDS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "twin.toml").write_text(TWIN)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setitem(SOURCES, "toy", ToySettings)
    return tmp_path


def test_it_is_described_and_checked(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["twin", "describe", "toy"]) == 0
    text, said = capsys.readouterr()
    (toy / "machine.toml").write_text(text)
    (partition,) = read_toml(toy / "machine.toml").partitions
    assert [(node.names, node.cores) for node in partition.nodes] == [("n[1-2]", 4), ("n3", 8)]
    assert said == f"not expressed: nodes n3: down ({STATE_OF_NOW})\n"
    assert main(["twin", "check", str(toy / "twin.toml")]) == 0
    lines = capsys.readouterr().out
    for part in ("the toy answers", "tjobs: 2 jobs in ", "tnodes: 3 nodes in ", "a full report of 2 jobs at "):
        assert f"source toy of alps: {part}" in lines
    assert "it runs tjobs, tnodes, with arguments that only read" in lines
    assert "it may release jobs: tset {job} release\n" in lines
    assert "1 waiting job marked by a twin now" in lines
    assert "does not fit" not in lines


def test_its_source_tells_reports_and_its_hands_act(toy: Path) -> None:
    settings = source_settings({"kind": "toy"})
    source, hands = settings.open("alps", toy), settings.hands("hold-and-release")
    (report,) = source.events(60.0)
    assert [(job.job, job.state) for job in report.jobs] == [(7, "running"), (8, "waiting")]
    (toy / "tjobs").write_text("#!/bin/sh\necho 8 running 70 n1 -\n")  # also where job 7 is asked for alone
    assert source.report() is None
    assert "contradicts" in source.trouble
    hands.send("release", 8)
    assert (toy / "tset.sent").read_text() == "8 release\n"
    with pytest.raises(HandsError, match="'prefer' is no command of this mode: release"):
        hands.send("prefer", 8, 5)
