"""Recorded runs of slurmctld: their jobs, their cycles, and the true state before each."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import attrs

from simmodel.platform.node_lists import node_names
from simmodel_site.policy.layout import SlurmSwitch
from simmodel_site.policy.settings import SlurmConf, SlurmPartition
from simmodel_site.twin.slurm.records import Site
from simmodel_site.twin.slurm.scontrol import read_scontrol
from tests.helpers.paths import DATA

RUNS = DATA / "slurm" / "runs"

_LINE = re.compile(r"\[(\S+)\] (.*)")
_WHAT = {
    "submitted": re.compile(r"_slurm_rpc_submit_batch_job: JobId=(\d+) InitPrio=(\d+)"),
    "main start": re.compile(r"sched: Allocate JobId=(\S+) NodeList=(\S+)"),
    "backfill start": re.compile(r"_start_job: Started JobId=(\S+) in \S+ on (\S+)"),
    "ended": re.compile(r"_job_complete: JobId=(\S+) done"),
    "main": re.compile(r"sched: Running job scheduler for (default depth|full queue)"),
    "backfill": re.compile(r"_attempt_backfill: beginning"),
    "planned": re.compile(r"_dump_job_sched: JobId=(\S+) to start at (\d+), end at (\d+) on nodes (\S+)"),
    "marked": re.compile(r"_handle_planned: BACKFILL: cleared: (\S+) state is (?!ALLOCATED)"),
    "closed": re.compile(r"sched: JobId=(\S+?)\.? unable to schedule in Partition"),
    "over": re.compile(r"completed testing|no jobs to backfill"),
    "answered": re.compile(r"node_did_resp (\S+)"),
    "cleaned": re.compile(r"_slurm_rpc_epilog_complete: JobId=(\d+) (?:Node=(\S+))?"),
    "preempted": re.compile(r"preempted JobId=(\d+) has been requeued to reclaim resources for JobId=(\d+)"),
    "requeued": re.compile(r"^Requeuing JobId=(\d+)"),
    "stopped": re.compile(r"(?:job_signal: \d+ of running|_job_requeue_op:|requeue job) JobId=(\S+)"),
}


class Line(NamedTuple):
    """What a line of slurmctld.log tells: an instant (s since 1970), what, and its words."""

    at: float
    what: str
    words: tuple[str, ...]


def what_of(text: str) -> Line | None:
    """Return what a line of slurmctld.log tells; ``None``: nothing of interest."""
    match = _LINE.match(text)
    for what, pattern in _WHAT.items() if match is not None else ():
        words = pattern.search(match[2])
        if words is not None:
            at = datetime.fromisoformat(match[1]).replace(tzinfo=UTC).timestamp()
            return Line(at, what, tuple(word for word in words.groups() if word is not None))
    return None


def lines_of(path: Path) -> list[Line]:
    """Return what the lines of a slurmctld.log.gz tell, at the instants of its own clock as if they were UTC."""
    with gzip.open(path, "rt", errors="replace") as file:
        return [line for text in file if (line := what_of(text)) is not None]


class Submitted(NamedTuple):
    """A job as its user asked for it: an instant and a sleep in seconds, a limit in minutes."""

    id: int
    at: float
    sleeps: float
    options: dict[str, str]

    @property
    def nodes(self) -> int | None:
        return int(self.options["-N"]) if "-N" in self.options else None

    @property
    def processors(self) -> int:
        return int(self.options.get("-n", 1)) if self.nodes is None else self.nodes

    @property
    def names(self) -> list[int | str]:
        """The job, or the tasks of its array, by their names in the log."""
        if "-a" not in self.options:
            return [self.id]
        first, _, last = self.options["-a"].partition("%")[0].partition("-")
        return [f"{self.id}_{task}" for task in range(int(first), int(last or first) + 1)]

    @property
    def exclusive(self) -> bool:
        return "--exclusive" in self.options

    @property
    def licences(self) -> dict[str, float]:
        """The licences that it holds."""
        found = [part.partition(":") for part in self.options.get("-L", "").split(",") if part]
        return {name: float(number or 1) for name, _, number in found}

    @property
    def after(self) -> list[int]:
        """The jobs and arrays whose end it waits for."""
        kind, *jobs = self.options.get("-d", "afterany").split(":")
        assert kind == "afterany"
        return [int(job) for job in jobs]

    @property
    def wishes(self) -> str:
        """The options by which it chooses nodes and time, as jobs of simmodel carry them."""
        known = ("--mem-per-cpu", "--switches", "-a", "-w", "-x", "-C")
        return " ".join(f"{name} {value}" for name, value in self.options.items() if name in known)

    @property
    def limit(self) -> int:
        return int(self.options["-t"]) * 60


def options_of(text: str) -> dict[str, str]:
    """Return the options of sbatch by name."""
    found: dict[str, str] = {}
    words = text.split()
    while words:
        name, _, value = words.pop(0).partition("=")
        if not value and words and not words[0].startswith("-"):
            value = words.pop(0)
        found[name] = value
    return found


@attrs.frozen
class Recorded:
    """A recorded run."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @cached_property
    def site(self) -> Site:
        site = Site()
        for part in ("config", "nodes", "partitions"):
            path = self.folder / f"scontrol_{part}.txt"
            site = site.with_(read_scontrol(path.read_text(), str(path)))
        return site

    @cached_property
    def settings(self) -> SlurmConf:
        return SlurmConf.of(self.site.settings or {})

    @cached_property
    def partitions(self) -> tuple[SlurmPartition, ...]:
        return tuple(
            SlurmPartition(
                name=each.name,
                nodes=each.nodes,
                tier=each.tier,
                job_factor=each.job_factor,
                max_time=each.max_time,
                default=bool(each.default),
            )
            for each in self.site.partitions or ()
        )

    @cached_property
    def switches(self) -> tuple[SlurmSwitch, ...]:
        """The switches of topology.conf."""
        path = self.folder / "topology.conf"
        found = []
        for line in path.read_text().splitlines() if path.exists() else ():
            words = dict(word.split("=", 1) for word in line.split() if "=" in word)
            found.append(
                SlurmSwitch(name=words["SwitchName"], nodes=words.get("Nodes", ""), switches=words.get("Switches", ""))
            )
        return tuple(found)

    @cached_property
    def licences(self) -> dict[str, float]:
        """The licences of the cluster, by name."""
        text = (self.site.settings or {}).get("Licenses", "(null)")
        return {} if text == "(null)" else {n: float(c or 1) for n, _, c in (p.partition(":") for p in text.split(","))}

    @cached_property
    def jobs(self) -> dict[int, Submitted]:
        with (self.folder / "submissions.csv").open() as file:
            rows = list(csv.DictReader(file))
        return {
            int(row["job"]): Submitted(
                int(row["job"]), float(row["submitted"]), float(row["seconds"]), options_of(row["options"])
            )
            for row in rows
        }

    @cached_property
    def events(self) -> list[dict[str, str]]:
        with (self.folder / "events.csv").open() as file:
            return list(csv.DictReader(file))

    @cached_property
    def starts(self) -> dict[str, tuple[float, str]]:
        """The instant and the nodes of the first start of each job or task of an array, by its name in events.csv."""
        found: dict[str, tuple[float, str]] = {}
        for row in self.events:
            if row["what"] == "started":
                found.setdefault(row["task"] or row["job"], (float(row["time"]), row["nodes"]))
        return found

    @cached_property
    def all_starts(self) -> dict[str, list[float]]:
        """The instants of all starts of each job or task: it has several if it is preempted."""
        found: dict[str, list[float]] = {}
        for row in self.events:
            if row["what"] == "started":
                found.setdefault(row["task"] or row["job"], []).append(float(row["time"]))
        return found

    @cached_property
    def preempted(self) -> list[int]:
        """The jobs that made way for others, in order."""
        return [int(row["job"]) for row in self.events if row["what"] == "preempted"]

    @cached_property
    def ends(self) -> dict[str, float]:
        return {row["task"] or row["job"]: float(row["time"]) for row in self.events if row["what"] == "ended"}

    @cached_property
    def log(self) -> list[Line]:
        found = list(self.lines())
        first = next(line.at for line in found if line.what == "submitted")
        told = next(float(row["time"]) for row in self.events if row["what"] == "submitted")
        shift = round(told - first)
        return [line._replace(at=line.at + shift) for line in found]

    def lines(self) -> Iterator[Line]:
        """Yield what the lines of slurmctld.log tell, at the instants of its own clock as if they were UTC."""
        yield from lines_of(self.folder / "slurmctld.log.gz")

    def cycles(self, what: str) -> list[float]:
        """Return the instants of the cycles of a loop (s since 1970)."""
        return [line.at for line in self.log if line.what == what]


def recorded(name: str) -> Recorded:
    """Return a recorded run by its name."""
    return Recorded(RUNS / name)


def numbers(text: str) -> tuple[int, ...]:
    """Return the numbers, from 0, of nodes n1, n2, ..."""
    return tuple(sorted(int(name.removeprefix("n")) - 1 for name in node_names(text)))
