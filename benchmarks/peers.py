"""Simulators beside simmodel: CPU time, memory and schedules on the same logs, written as a page.

``python benchmarks/peers.py --venv FOLDER --out docs/explanation/peers.md`` looks for peers in the virtual
environments and Pythons named by ``--venv`` and in its own, runs those that it finds in turn, and writes the page.
Missing peers are named there, with the reason and the command that installs them. Logs are looked for in
``SIMMODEL_DATA`` or ``../shared/data``. Any other peer is measured by its command, as in
``--peer 'Name=command {log} {processors} {policy} {schedule}'``: it reads a log in the Standard Workload Format and
writes a schedule of any form that ``simmodel verify`` reads.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from peer_runs.running import LONG_RUN, Peer, in_turn, machine, yardstick

import simmodel
from simmodel.form import FORM
from simmodel.formats.schedules import read_schedule
from simmodel.formats.swf import read_swf
from simmodel.foundation.display import counted
from simmodel.referee import verify
from simmodel.referee.verification import Verdict

DATA = Path(os.environ.get("SIMMODEL_DATA", Path(__file__).parents[2] / "shared" / "data"))
RUNNERS = Path(__file__).parent / "peer_runs"
KNOWN = tomllib.loads((RUNNERS / "known.toml").read_text("utf-8"))
LOGS = (
    "swf/KTH-SP2-1996-2-filtered.swf.gz:10000,28481",
    "swf/theta_2022.swf.gz:5000",
    "swf/SDSC-SP2-1998-4-filtered.swf.gz:20000",
    "swf/SDSC-BLUE-2000-4-filtered.swf.gz:20000,232542",
)
STORED_FOR = (
    "KTH-SP2-1996-2-filtered",
    "SDSC-SP2-1998-4-filtered",
    "SDSC-BLUE-2000-4-filtered",
    "theta_1000",
)
MANY_JOBS = 20_000
"""With as many jobs only the first policy is run."""

LINKS = 50
ARGUMENTS = ("{log}", "{processors}", "{policy}", "{schedule}")


# ---------------------------------------------------------------------- finding


def find(package: Mapping[str, str], pythons: Iterable[str]) -> Peer | str:
    """Return the package as installed in the first of the Pythons that has it; else why none has."""
    reasons = []
    program = f"import platform, {package['module']}; print({package['version']}, platform.python_version())"
    for python in pythons:
        try:
            done = subprocess.run([python, "-c", program], capture_output=True, text=True)
        except OSError as error:
            reasons.append(f"{python}: {error.strerror}")
            continue
        if done.returncode:
            reasons.append((done.stderr.strip().splitlines() or ["cannot be imported"])[-1])
            continue
        version, python_version = done.stdout.split()[-2:]
        return Peer(
            package["name"],
            f"{version}, Python {python_version}",
            (python, str(RUNNERS / package["runner"]), *ARGUMENTS),
            tuple(package["policies"]),
            package["run"],
            package["note"],
        )
    return "; ".join(dict.fromkeys(reasons))


def build(program: Mapping[str, Any], folder: Path) -> Peer | str:
    """Return the program, built into a folder; else why it cannot be."""
    target = folder / Path(program["source"]).stem
    source = (str(RUNNERS / program["source"]), "-o", str(target), *program["libraries"])
    try:
        done = subprocess.run(
            [*shlex.split(os.environ.get("CXX", "c++")), "-O2", "-std=c++17", *source], capture_output=True, text=True
        )
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    if done.returncode:
        return next((line for line in done.stderr.splitlines() if "error" in line), "cannot be built")
    said = subprocess.run([target, "--version"], capture_output=True, text=True)
    version = re.search(program["version"], said.stdout + said.stderr)
    if version is None:
        return (said.stderr.strip().splitlines() or ["says no version"])[-1]
    command = (str(target), *ARGUMENTS)
    return Peer(program["name"], version[1], command, tuple(program["policies"]), program["run"], program["note"])


def find_all(args: argparse.Namespace, folder: Path) -> tuple[list[Peer], list[list[str]]]:
    """Return simmodel and the peers that are installed or built in a folder, and a row for each that is not."""
    pythons = [str(path / "bin" / "python") if path.is_dir() else str(path) for path in args.venv] + [sys.executable]
    own = f"{simmodel.__version__} ({FORM}), Python {platform.python_version()}"
    replay = "-m simmodel batch {log} --processors {processors} --policy {policy} --schedule {schedule} -q"
    star = (sys.executable, str(RUNNERS / "simmodel_star.py"), *ARGUMENTS)
    peers = [
        Peer("simmodel", own, (sys.executable, *replay.split()), note="the command `simmodel batch`"),
        Peer("simmodel, transfers", own, star, run="transfers", note="a `Network` with the model `simgrid`"),
    ]
    if FORM == "compiled":
        other = own.replace(FORM, "interpreted")
        peers += [
            replace(
                each,
                name=f"{each.name}, interpreted",
                version=other,
                command=("env", "SIMMODEL_INTERPRET=1", *each.command),
            )
            for each in peers
        ]
    missing = []
    for package in KNOWN["packages"]:
        found = find(package, pythons)
        if isinstance(found, str):
            missing.append([package["name"], found, package["install"]])
            continue
        peers.append(found)
        if found.name == "SimPy":
            same = (sys.executable, *found.command[1:], "simmodel")
            note = "the same processes in `simmodel.Environment`"
            peers.append(Peer("SimPy's processes in simmodel", own, same, found.policies, note=note))
    for program in KNOWN["programs"]:
        found = build(program, folder)
        if isinstance(found, str):
            missing.append([program["name"], found, program["install"]])
        else:
            peers.append(found)
    for absent in KNOWN["absent"]:
        where = shutil.which(absent["program"])
        reason = f"`{absent['program']}` is installed: name its command by `--peer`" if where else absent["reason"]
        missing.append([absent["name"], reason, absent["install"]])
    for each in args.peer:
        name, _, command = each.partition("=")
        peers.append(Peer(name, "given by `--peer`", tuple(shlex.split(command)), note=f"`{command}`"))
    named = {peer.name for peer in peers}
    return peers, [row for row in missing if row[0] not in named]


# ---------------------------------------------------------------------- running


def prepare(path: Path, count: int, folder: Path) -> tuple[Path, int, int]:
    """Write the first jobs of a log so that all simulators read the same; return the file, jobs and processors."""
    log = read_swf(path)
    processors = log.processors or int(log["processors"].max())
    columns = [log[name] for name in ("submit", "job", "run", "requested", "processors")]
    rows = sorted(tuple(map(int, row)) for row in zip(*columns, strict=True) if np.isfinite(row).all())
    rows = [row for row in rows if row[2] > 0 and 0 < row[4] <= processors][:count]
    target = folder / f"{path.name.split('.swf')[0]}.swf"
    with open(target, "w") as file:
        file.write(f"; MaxProcs: {processors}\n")
        for submit, job, run, requested, width in rows:
            asked = requested if requested > 0 else run
            file.write(f"{job} {submit - rows[0][0]} -1 {min(run, asked)} {width} -1 -1 {width} {asked}")
            file.write(" -1 1 1 1 -1 1 1 -1 -1\n")
    return target, len(rows), processors


def replay(peers: list[Peer], path: Path, count: int, policies: list[str], args: argparse.Namespace) -> list[list[str]]:
    """Return the rows of the first jobs of one log."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        log, jobs, processors = prepare(path, count, Path(folder))
        for policy in policies[:1] if jobs >= MANY_JOBS else policies:
            print(f"{log.stem}, {jobs:,} jobs, {policy}", flush=True)
            able = [peer for peer in peers if peer.run == "log" and (not peer.policies or policy in peer.policies)]
            parts = {"log": str(log), "processors": str(processors), "policy": policy}
            measured, written = in_turn(able, parts, args.runs, args.limit, Path(folder))
            for peer, found, file in zip(able, measured, written, strict=True):
                judged = ["-", "-"] if found.failure else held_against(log, file, written[0], policy)
                cells = found.cells(measured[0], jobs)
                rows.append([log.stem.removesuffix("-filtered"), f"{jobs:,}", policy, peer.name, *cells, *judged])
    return rows


def starts(schedule: Path) -> dict[str, float]:
    table = read_schedule(schedule)
    return dict(zip(map(str, table["job"].tolist()), table["start"].tolist(), strict=True))


def held_against(log: Path, schedule: Path, own: Path, policy: str) -> list[str]:
    """Return how many starts of a schedule differ from simmodel's, and how ``verify`` judges it."""
    try:
        theirs, ours = starts(schedule), starts(own) if own.exists() else {}
        differ = sum(theirs.get(job) != ours.get(job) for job in theirs.keys() | ours.keys())
        verdict = verify(log, schedule, policy=policy, mistakes=differ > 0)
    except (ValueError, OSError) as error:
        return ["-", f"no schedule: {error}"]
    return [f"{differ:,}" if ours else "-", judged_as(verdict, policy)]


def judged_as(verdict: Verdict, policy: str) -> str:
    """Return a verdict as a short text."""
    if verdict.right or verdict.misfit or verdict.judgement is None:
        return verdict.misfit or f"every start is {policy}'s"
    text = f"{counted(len(verdict.departures), 'start')} not {policy}'s"
    if verdict.faults:
        text += f", {len(verdict.faults):,} impossible"
    if verdict.mistake:
        left = (1 - verdict.mistakes[verdict.mistake]) * len(verdict.schedule.workload)
        text += f"; {left:,.0f} with *{verdict.mistake}*"
    return text


def transfers(peers: list[Peer], count: int, args: argparse.Namespace) -> list[list[str]]:
    """Return the rows of a number of transfers over a star of links."""
    rng = np.random.default_rng(1)
    one = rng.integers(LINKS, size=count)
    other = (one + rng.integers(1, LINKS, size=count)) % LINKS
    begin, size = rng.exponential(0.02, count).cumsum(), rng.exponential(0.5e9, count).astype(int) + 1
    able = [peer for peer in peers if peer.run == "transfers"]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder, "plan.csv")
        with open(plan, "w", newline="") as file:
            table = csv.writer(file)
            table.writerow(("transfer", "start", "one", "other", "size"))
            table.writerows(zip(range(count), *(each.tolist() for each in (begin, one, other, size)), strict=True))
        print(f"{count:,} transfers", flush=True)
        parts = {"log": str(plan), "processors": str(LINKS), "policy": "simgrid"}
        measured, written = in_turn(able, parts, args.runs, args.limit, Path(folder))
        for peer, found, path in zip(able, measured, written, strict=True):
            apart = "-"
            if not found.failure and not measured[0].failure:
                theirs, ours = (
                    np.loadtxt(each, delimiter=",", skiprows=1, usecols=1, ndmin=1) for each in (path, written[0])
                )
                apart = f"{np.abs(theirs / ours - 1).max():.1g}"
            rows.append([f"{count:,}", peer.name, *found.cells(measured[0], count), apart])
    return rows


def stored(folder: Path) -> list[list[str]]:
    """Return the rows of schedules that other simulators made of the logs, stored beside them."""
    rows = []
    for log in STORED_FOR:
        for each in KNOWN["stored"]:
            schedule, path = folder / each["file"].format(log), folder / f"swf/{log}.swf.gz"
            if schedule.exists() and path.exists():
                print(f"{log}: {each['column']} of {each['simulator']}", flush=True)
                work = read_swf(path)
                policy, rules = each["policy"], each["rules"]
                table = read_schedule(schedule, {"start": each["column"]} if each["column"] != "start" else None)
                verdict = verify(work, table, policy=policy, mistakes=False, **rules)
                options = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in rules.items())
                cells = [each["simulator"], f"{policy} `{options}`", f"{verdict.different:,}"]
                rows.append([log.removesuffix("-filtered"), f"{len(work):,}", *cells, judged_as(verdict, policy)])
    return rows


# ---------------------------------------------------------------------- the page


def table(header: str, rows: list[list[str]]) -> str:
    names = header.split(" | ")
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def start_up(peers: list[Peer], log: Path | None, args: argparse.Namespace) -> dict[str, str]:
    """Return the CPU seconds of each simulator for one job or one transfer."""
    rows = [row[1:] for row in transfers(peers, 1, args)]
    if log is not None:
        rows += [row[3:] for row in replay(peers, log, 1, ["fcfs"], args)]
    return {row[0]: row[1] for row in rows}


def measured_page(args: argparse.Namespace, logs: list[tuple[Path, str]], folder: Path) -> str:
    """Run all simulators, those without a package built in a folder, and return the page."""
    peers, missing = find_all(args, folder)
    begun = [yardstick() for _ in range(3)]
    once = start_up(peers, logs[0][0] if logs else None, args)
    rows = [
        row
        for path, counts in logs
        for count in (counts.split(",") if counts else [str(sys.maxsize)])
        for row in replay(peers, path, int(count), args.policies.split(","), args)
    ]
    moved = [row for count in args.transfers.split(",") if count for row in transfers(peers, int(count), args)]
    kept = stored(DATA) if args.logs is None else []
    return Template((RUNNERS / "page.md").read_text("utf-8")).substitute(
        command=shlex.join(["python", "benchmarks/peers.py", *sys.argv[1:]]),
        date=datetime.date.today().isoformat(),
        machine=machine(),
        yardstick=f"{min(begun):.2f} s before the runs and {min(yardstick() for _ in range(3)):.2f} s after them",
        limit=f"{args.limit:.0f}",
        runs=args.runs,
        long=f"{LONG_RUN:.0f}",
        simulators=table(
            "simulator | version | CPU s for one job or transfer | how it is run",
            [[peer.name, peer.version, once.get(peer.name, "-"), peer.note] for peer in peers],
        ),
        logs=table(
            "log | jobs | policy | simulator | CPU s | s per 1,000 | ratio | MiB | starts that differ | `verify`", rows
        ),
        transfers=table("transfers | simulator | CPU s | s per 1,000 | ratio | MiB | ends apart, relative", moved),
        stored=table("log | jobs | simulator | policy and rules | starts that differ | `verify`", kept),
        missing=table("simulator | reason | to install it", missing),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--logs", nargs="*", metavar="FILE[:JOBS,...]", help="logs, and how many of their first jobs (default: all)")
    add(
        "--policies",
        default="easy,fcfs,sjf",
        help=f"from {MANY_JOBS:,} jobs on the first alone (default: easy,fcfs,sjf)",
    )
    add("--transfers", default="10000,100000", metavar="N,...", help="transfers over a star (default: 10000,100000)")
    add("--venv", type=Path, action="append", default=[], help="a virtual environment or a Python with peers")
    add("--peer", action="append", default=[], metavar="NAME=COMMAND", help="another peer, by its command")
    add("--runs", type=int, default=3, help="runs of which the least is taken (default: 3)")
    add("--limit", type=float, default=240, metavar="SECONDS", help="CPU seconds of a run at most (default: 240)")
    add("--out", type=Path, help="the page to write (default: print it)")
    args = parser.parse_args()
    for each in args.peer:
        if "=" not in each:
            parser.error(f"--peer: must be NAME=COMMAND, got {each!r}")
    logs = []
    for each in args.logs if args.logs is not None else [str(DATA / each) for each in LOGS]:
        file, _, counts = each.partition(":")
        if Path(file).exists():
            logs.append((Path(file), counts))
        elif args.logs is not None:
            parser.error(f"no such log: {file}")
        else:
            print(f"{file} is left out: no such file")
    with tempfile.TemporaryDirectory() as folder:
        page = measured_page(args, logs, Path(folder))
    if args.out is None:
        print(page)
    else:
        args.out.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
