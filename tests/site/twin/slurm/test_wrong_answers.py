"""Wrong answers of a scheduler that come with exit status 0: the twin is healthy with the true jobs, or not healthy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import attrs
import pytest

from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel_site.twin.mirror.mirror import Mirror
from simmodel_site.twin.pbs import commands as pbs_commands
from simmodel_site.twin.pbs.commands import PbsCommands
from simmodel_site.twin.pbs.source import PbsSource
from simmodel_site.twin.slurm.commands import SlurmCommands, SlurmError
from simmodel_site.twin.slurm.source import Ask, SlurmSettings, SlurmSource
from simmodel_site.twin.sources.polling import PolledSource
from tests.helpers.examples import up_to
from tests.site.helpers.pbs_stub import PbsStub
from tests.site.helpers.slurm_stub import JOB, NODE, write_stub
from tests.site.helpers.slurm_texts import FLAT_JOB, FLAT_NODE, answer

Row = Mapping[str, str]
ALL_JOBS = " ".join(pbs_commands.READS["jobs"])
SPEC = ClusterSpec(
    name="alps",
    partitions=[PartitionSpec(name="batch", nodes=[NodeSpec(names="n[1-9]", count=9, cores=4)])],
)
NODES = [{**NODE, "N": f"n{each}", "T": "down*" if each == 9 else "idle"} for each in range(1, 10)]


def row(job: int, state: str, **changes: str) -> dict[str, str]:
    """A job of one node as squeue tells it; its name has letters that encodings differ in."""
    told = {**JOB, "A": str(job), "F": str(job), "T": state, "D": "1", "C": "4", "c": "4", "j": f"Läufe {job}\n|x"}
    if state != "PENDING":
        told |= {"S": str(1_700_000_000 + job), "N": f"n{job}", "r": "None"}
    if state == "COMPLETED":
        told["e"] = "1700000600"
    return told | changes


def states(*told: str) -> list[dict[str, str]]:
    return [row(job, state) for job, state in enumerate(told, 1) if state]


RUN, WAIT, OVER = "RUNNING", "PENDING", "COMPLETED"
OLD = states(RUN, RUN, RUN, WAIT, WAIT, WAIT)
LAST = states(OVER, RUN, RUN, RUN, WAIT, WAIT, WAIT)
NOW = states("", OVER, RUN, RUN, RUN, WAIT, WAIT, WAIT)


def cell(told: Row, match: re.Match[str]) -> str:
    return told[match[1]]


class Scheduler:
    """Answers as Slurm's commands do, from rows; a mutation changes what some of them print.

    Attributes
    ----------
    rows
        the jobs
    lie
        changes an answer, given the words of the command
    past
        all answers so far
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.lie: Callable[[bytes, list[str]], bytes] | None = None
        self.past: list[tuple[str, bytes]] = []

    def __call__(self, words: Sequence[str]) -> str:
        told = self.told(list(words), self.rows)
        found = told if self.lie is None or words[0] == "scontrol" else self.lie(told, list(words))
        self.past.append((words[0], told))
        return found.decode("utf-8", "replace")

    def told(self, words: list[str], rows: Sequence[Row]) -> bytes:
        """Return what a command prints in truth of some jobs."""
        if "--json" in words:
            return self.document(words[0], rows)
        if words[0] == "scontrol":
            if words[-1] == "config":
                return b"SelectTypeParameters    = CR_CORE_MEMORY\nPreemptType = preempt/none\n"
            if words[-1] == "node":
                return "".join(f"NodeName={each['N']} CPUs=4 Partitions=batch \n" for each in NODES).encode()
            found = [each for each in rows if words[-1] in ("job", each["A"])]
            if not found and words[-1] != "job":
                raise SlurmError("scontrol: exit status 1, saying 'slurm_load_jobs error: Invalid job id specified'")
            return "".join(
                f"JobId={each['A']} JobName=x\n   JobState={each['T']} Reason=None\n\n" for each in found
            ).encode()
        form = next(word for word in words if word.startswith("--format=")).partition("=")[2]
        table = rows if words[0] == "squeue" else NODES
        lines = [*([] if "--noheader" in words else [dict.fromkeys(JOB, "HEADING")]), *table]
        letters = re.compile("%(.)")
        return "".join(f"{letters.sub(partial(cell, line), form)}\n" for line in lines).encode()

    def document(self, program: str, rows: Sequence[Row]) -> bytes:
        """Return an answer in JSON; it tells when it is of."""
        jobs = [
            {
                **FLAT_JOB, "job_id": int(each["A"]), "array_job_id": 0, "job_state": each["T"], "cpus": 4,
                "name": each["j"], "start_time": int(each["S"].replace("N/A", "0")), "nodes": each["N"],
                "end_time": int(each["e"].replace("N/A", "0")), "partition": "batch", "state_reason": each["r"],
            }
            for each in rows
        ]  # fmt: skip
        nodes = [{**FLAT_NODE, "name": each["N"], "state": "down" if "*" in each["T"] else "idle"} for each in NODES]
        told = {"jobs": jobs} if program == "squeue" else {"nodes": nodes}
        return json.dumps(answer("v0.0.38", **told, errors=[]), ensure_ascii=False, indent=1).encode()


def noise(drawn: Random, *sizes: int) -> bytes:
    return drawn.randbytes(drawn.randint(*sizes))


def lines_of(told: bytes, words: list[str]) -> tuple[list[bytes], bytes]:
    """Return the rows of an answer, and what ends each."""
    mark = re.search("\x1e[0-9a-f]{16}", " ".join(words))
    end = b"\n" if mark is None else mark[0].encode() + b"\n"
    return [line + end for line in told.split(end)[:-1]], end


def mutation(drawn: Random, plant: Scheduler) -> Callable[[bytes, list[str]], bytes]:
    """Return a change of answers: of every one, of those of one program, or of a single one."""
    kind = drawn.choice(KINDS)
    at, only, single = drawn.random(), drawn.choice(["squeue", "sinfo", None]), drawn.random() < 0.4
    seed, calls = drawn.random(), [0]
    chosen = drawn.randrange(4)
    before = dict(plant.past)

    def lie(told: bytes, words: list[str]) -> bytes:
        calls[0] += 1
        if only not in (None, words[0]) or (single and calls[0] - 1 != chosen):
            return told
        return changed(kind, told, words, at, Random(seed), plant, before)

    return lie


KINDS = (
    *("empty", "garbage", "garbage in", "cut", "cut", "cut before", "cut at a row", "one row less", "row twice"),
    *("old bytes", "old state", "rows swapped", "column dropped", "cell dropped", "encoding", "no rows", "no end"),
)


def changed(
    kind: str, told: bytes, words: list[str], at: float, drawn: Random, plant: Scheduler, past: Mapping[str, bytes]
) -> bytes:
    """Return a wrong answer of a kind."""
    place, (rows, end) = int(at * len(told)), lines_of(told, words)
    header = 0 if "--noheader" in words else 1
    match kind:
        case "empty":
            return b"" if at < 0.5 else b"\n"
        case "garbage":
            return noise(drawn, 1, 3000)
        case "garbage in":
            return told[:place] + noise(drawn, 10, 60) + told[place + drawn.randrange(20) :]
        case "cut":
            return told[:place]
        case "cut before":
            return told[place + 1 :]
        case "cut at a row":
            return b"".join(rows[: int(at * len(rows))])
        case "one row less":
            return b"".join(rows[:header] + rows[header:][:-1])
        case "row twice":
            return told + b"".join(rows[-1:])
        case "old bytes":
            return past.get(words[0], b"")
        case "old state":
            return plant.told(words, OLD)
        case "rows swapped" if "--json" not in words:
            return b"".join(rows[:header] + drawn.sample(rows[header:], len(rows) - header))
        case "column dropped" | "cell dropped" if "--json" not in words:
            field = end.replace(b"\x1e", b"\x1f").removesuffix(b"\n")
            cells = [line.removesuffix(end).split(field) for line in rows]
            lost = drawn.randrange(len(cells[0])) if cells else 0
            which = range(len(cells)) if kind == "column dropped" else [drawn.randrange(len(cells) or 1)]
            kept = (
                [cell for n, cell in enumerate(line) if n != lost or number not in which]
                for number, line in enumerate(cells)
            )
            return b"".join(field.join(line) + end for line in kept)
        case "encoding":
            form = drawn.choice(["utf-16", "utf-16-le", "utf-32", "cp500", "utf-8-sig", "utf-7", "latin-1"])
            return told.decode("utf-8", "replace").encode(form, "replace")
        case "no rows":
            return b"".join(rows[:header]) if "--json" not in words else b'{"meta": {}}'
        case "no end":
            return told.rstrip(b"\n}") if told else b"\n"
        case _:
            return told.replace(b"job_id", b"job") if b"job_id" in told else told.replace(b"cpus", b"cpu")


def jobs_of(mirror: Mirror) -> dict[Any, Any]:
    """Return all that decisions depend on: jobs with their state and request, and nodes out of service."""
    alive = {}
    for each in mirror.ledger.alive():
        state = each.state
        held = state.held and state.phase == "waiting"
        alive[each.id] = (state.phase, held, state.nodes, attrs.evolve(each.request, name=None))
    return {**alive, "out": dict(mirror.nodes.out)}


def true_jobs(source: Callable[[], PolledSource]) -> dict[Any, Any]:
    mirror, report = Mirror(SPEC), source().report()
    assert report is not None
    mirror.apply(report)
    return jobs_of(mirror)


def check(drawn: Random, monkeypatch: pytest.MonkeyPatch, ask: Ask) -> bool:
    """Try a mutation; return whether it was seen. Whatever it is, the next true answer is believed."""
    plant = Scheduler(OLD)
    monkeypatch.setattr(SlurmCommands, "run", lambda _, words: plant(words))
    new = partial(SlurmSource, "alps", SlurmSettings(ask=ask))
    mirror, source = Mirror(SPEC), new()
    fresh = drawn.random() < 0.3
    for rows in () if fresh else (OLD, LAST):
        plant.rows = rows
        report = source.report()
        assert report is not None
        assert source.trouble is None
        mirror.apply(report)
    plant.rows = NOW
    true = true_jobs(new)
    lie = mutation(drawn, plant)
    plant.lie = lie
    report = source.report()
    healthy = source.trouble is None
    if report is not None:
        mirror.apply(report)
    if healthy:
        assert jobs_of(mirror) == true
    plant.lie = None
    report = source.report()
    assert report is not None
    assert source.trouble is None
    mirror.apply(report)
    assert jobs_of(mirror) == true
    return not healthy


@pytest.mark.few(1)
@pytest.mark.parametrize("ask", ["squeue", "json"])
def test_a_wrong_answer_is_never_another_cluster(monkeypatch: pytest.MonkeyPatch, ask: Ask) -> None:
    seen = [check(Random(seed), monkeypatch, ask) for seed in range(up_to(60, 24))]
    assert sum(seen) > 0.4 * len(seen)


@pytest.mark.exhaustive
@pytest.mark.parametrize("ask", ["squeue", "json"])
def test_a_thousand_wrong_answers_are_never_another_cluster(monkeypatch: pytest.MonkeyPatch, ask: Ask) -> None:
    seen = [check(Random(seed), monkeypatch, ask) for seed in range(1000, 2000)]
    assert sum(seen) > 500


def test_an_empty_cluster_is_believed_and_each_cause_of_a_wrong_answer_is_one_row(tmp_path: Path) -> None:
    folder = tmp_path / "Läufe of Slurm"
    folder.mkdir()
    source = SlurmSource("alps", SlurmSettings(folder=str(folder)))
    write_stub(folder, [row(7, RUN), row(8, WAIT)])
    report = source.report()
    assert report is not None
    assert [job.job for job in report.jobs] == [7, 8]
    told = (folder / "squeue").read_text()
    for wrong in ("exit 0", "head -c 300 /dev/urandom", "head -c 300000000 /dev/zero", "echo garbage", "exit 0"):
        (folder / "squeue").write_text(f"#!/bin/sh\n{wrong}\n")
        for _ in range(2):
            assert source.report() is None
            assert source.trouble
    assert len(source.refused) == 2
    assert f"{folder}/squeue: printed more than 256 MiB" in source.refused
    (folder / "squeue").write_text(told)
    write_stub(folder, [])
    report = source.report()
    assert report is not None
    assert (report.jobs, source.trouble) == ((), None)


class PbsTruth(NamedTuple):
    """What the commands of a PBS print at three instants; as of the last one, it can be asked for more."""

    told: dict[str, dict[str, str]]
    run: Callable[[Sequence[str]], str]


def check_pbs(drawn: Random, monkeypatch: pytest.MonkeyPatch, truth: PbsTruth) -> bool:
    """Try a mutation of what qstat prints of all jobs; return whether it was seen."""
    at, lies = "last", False

    def run(_: PbsCommands, words: Sequence[str]) -> str:
        question = " ".join(words)
        told = truth.told[at].get(question) or truth.run(words)
        if lies and question == ALL_JOBS:
            return wrong_document(drawn, told.encode(), truth.told["old"][question].encode()).decode("utf-8", "replace")
        return told

    monkeypatch.setattr(PbsCommands, "run", run)
    mirror, source = Mirror(SPEC), PbsSource("alps")
    report = source.report()
    assert report is not None
    mirror.apply(report)
    at = "now"
    true, lies = true_jobs(lambda: PbsSource("alps")), True
    report = source.report()
    healthy = source.trouble is None
    if report is not None:
        mirror.apply(report)
    if healthy:
        assert jobs_of(mirror) == true
    return not healthy


def wrong_document(drawn: Random, told: bytes, old: bytes) -> bytes:
    """Return a wrong answer of PBS."""
    place = drawn.randrange(len(told.rstrip()))
    wrong = [
        b"",
        noise(drawn, 1, 3000),
        told[:place] + noise(drawn, 10, 60) + told[place + drawn.randrange(20) :],
        told[:place],
        told[place + 1 :],
        old,
        told.decode().encode(drawn.choice(["utf-16", "utf-32", "cp500"])),
        told[: told.index(b'"Jobs"')].rstrip(b" \n,") + b"}",
    ]
    return drawn.choice(wrong)


@pytest.fixture
def truth(tmp_path: Path) -> PbsTruth:
    """Return the answers of a PBS; in the last one, a job is over that ran before."""
    folder = tmp_path / "Läufe of PBS"
    stub = PbsStub(folder, {f"n{each}": 4 for each in range(1, 4)})
    for each in range(6):
        stub.submit(4, 100.0 * (each + 1))
    run = PbsCommands(folder=str(folder)).run
    found = {}
    for name in ("old", "last", "now"):
        stub.advance(60.0)
        found[name] = {" ".join(words): run(words) for words in map(list, pbs_commands.READS.values())}
    return PbsTruth(found, run)


def test_a_wrong_answer_of_pbs_is_never_another_cluster(truth: PbsTruth, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = [check_pbs(Random(seed), monkeypatch, truth) for seed in range(up_to(60, 24))]
    assert sum(seen) > 0.4 * len(seen)


@pytest.mark.exhaustive
def test_a_thousand_wrong_answers_of_pbs(truth: PbsTruth, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = [check_pbs(Random(seed), monkeypatch, truth) for seed in range(1000, 2000)]
    assert sum(seen) > 500
