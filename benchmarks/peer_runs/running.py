"""Programs run in turn, each in a process of its own: CPU time and peak memory of each."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

LONG_RUN = 10.0
"""A run of more CPU seconds is not repeated."""


@dataclass(frozen=True)
class Peer:
    """A simulator that can be run: its command with parts to fill in, and its policies (none: any)."""

    name: str
    version: str
    command: tuple[str, ...]
    policies: tuple[str, ...] = ()
    run: str = "log"
    note: str = ""


@dataclass
class Measured:
    """The runs of a simulator on one case: least CPU seconds, least peak memory in MiB, number of runs, failure."""

    seconds: float = float("inf")
    memory: float = float("inf")
    runs: int = 0
    failure: str = ""

    def cells(self, base: Measured, count: int) -> list[str]:
        """Return CPU seconds, those per 1,000 jobs or transfers, the ratio to simmodel's, and peak memory."""
        if self.failure:
            return [self.failure, "-", "-", "-"]
        once = " (1 run)" if self.runs == 1 else ""
        ratio = "-" if base.failure else f"{self.seconds / base.seconds:.2f}"
        return [f"{self.seconds:.2f}{once}", f"{self.seconds / count * 1000:.3f}", ratio, f"{self.memory:.0f}"]


def yardstick() -> float:
    """CPU seconds of a fixed piece of plain Python."""
    begin = time.process_time()
    sum(i * i for i in range(10**7))
    return time.process_time() - begin


def measure(command: list[str], limit: float, folder: Path) -> tuple[float, float, str]:
    """Run a command; return its CPU seconds, with its children's, peak memory in MiB, and why it failed, if so."""
    report = folder / "report"
    launcher = [sys.executable, str(Path(__file__).with_name("launch.py")), str(report), str(limit)]
    done = subprocess.run([*launcher, *command], capture_output=True, text=True, errors="replace")
    code, seconds, kibibytes = report.read_text().split()
    failure = ""
    if int(code) in (-signal.SIGXCPU, -signal.SIGKILL, -signal.SIGALRM):
        failure = f"stopped after {float(seconds):,.0f} s"
    elif int(code):
        failure = f"failed: {(done.stderr.strip().splitlines() or [f'exit status {code}'])[-1][:150]}"
    return float(seconds), float(kibibytes) / 1024, failure


def in_turn(
    peers: list[Peer], parts: Mapping[str, str], runs: int, limit: float, folder: Path
) -> tuple[list[Measured], list[Path]]:
    """Run each simulator, then each again; one that takes long or fails is run once. Return what they wrote, too."""
    found = [Measured() for _ in peers]
    written = [folder / f"{number}.written" for number in range(len(peers))]
    for _ in range(runs):
        for peer, each, file in zip(peers, found, written, strict=True):
            if each.failure or (each.runs and each.seconds > LONG_RUN):
                continue
            command = [part.format(**parts, schedule=file) for part in peer.command]
            seconds, memory, each.failure = measure(command, limit, folder)
            each.seconds, each.memory = min(each.seconds, seconds), min(each.memory, memory)
            each.runs += 1
            print(f"  {peer.name}: {seconds:.2f} s {each.failure}", flush=True)
    return found, written


def machine() -> str:
    info = Path("/proc/cpuinfo")
    names = (
        [line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line]
        if info.exists()
        else []
    )
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores, {platform.system()}"
