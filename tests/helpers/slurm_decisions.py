"""The decisions of Slurm's loops, as modelled, from the true state before each recorded cycle."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from simmodel.policies.slurm.backfill import BackfillCycle
from simmodel.policies.slurm.board import Board, Held, Pending, Site
from simmodel.policies.slurm.main_loop import main_cycle
from simmodel.policies.slurm.preemption import BEGINS, Preemption, Stake, Victims
from simmodel.policies.slurm.selection import mask_of
from simmodel.resources.pools.allocation import Allocation, NodeTable, Request
from tests.helpers.slurm_runs import Line, Recorded, Submitted, numbers, recorded


class Decided(NamedTuple):
    """What a cycle decides: starts (job, nodes) and preemptions (job, the job that it makes way for), in order."""

    starts: list[tuple[int, tuple[int, ...]]]
    preempted: list[tuple[int, int]]


class Cycle(NamedTuple):
    """A cycle: its instant, its loop, and what was recorded and what is modelled."""

    at: float
    what: str
    recorded: Decided
    modelled: Decided

    @property
    def same(self) -> bool:
        return self.recorded == self.modelled


class Replay:
    """The state of a recorded run, line by line of its log; asked before each cycle."""

    def __init__(self, run: Recorded, *, easy: bool = False) -> None:
        self.run = run
        self.easy = easy
        nodes = run.site.nodes or ()
        self.count = len(nodes)
        self.table = NodeTable(np.array([[n.cpus, 0, 2.0**50] for n in nodes], dtype=float).T)
        self.waiting: dict[int, tuple[Submitted, float, float]] = {}
        self.running: dict[int, Held] = {}
        self.completing: dict[int, int] = {}
        self.stopped: dict[int, Submitted] = {}
        self.later: list[tuple[float, int]] = []
        self.priorities: dict[int, float] = {}
        self.preemption = Preemption(run.settings) if run.settings.preempt else None
        self.sites = {each.name: Site(each, self._mask(each.nodes)) for each in run.partitions}
        self.default = next(each.name for each in run.partitions if each.default)

    def _mask(self, text: str) -> int:
        return sum(1 << node for node in numbers(text)) if text else (1 << self.count) - 1

    def pending(self, board: Board) -> list[Pending]:
        found = []
        for job, at, priority in self.waiting.values():
            site = self.sites[job.options.get("-p", self.default)]
            request = Request(job.nodes or 1, nodes=job.nodes)
            found.append(
                Pending(SimpleNamespace(state="waiting"), request, board, site, job.limit, priority, at, job.id)
            )  # type: ignore[arg-type]
        return sorted(found, key=Pending.key)

    def model(self, line: Line) -> Decided:
        """Return what the model decides at a cycle."""
        for at, number in [each for each in self.later if each[0] <= int(line.at)]:
            self.later.remove((at, number))
            self.waiting[number] = self.run.jobs[number], at, self.priorities[number]
        table = self.table.copy()
        mask = sum(1 << node for node in self.completing)
        board = Board(table, self.run.settings)
        board.renew(line.at, self.running.values(), mask)
        board.preemption = self.preemption
        queue = self.pending(board)
        loop: Iterator[tuple[Pending, Allocation | Victims]]
        if self.easy:
            loop = textbook_easy(board, queue)
        elif line.what == "main":
            loop = main_cycle(queue, self.run.settings, full="full" in line.words[0])
        else:
            loop = BackfillCycle(queue, self.run.settings, line.at).starts()
        found = Decided([], [])
        for job, given in loop:
            if isinstance(given, Victims):
                for held in given.held:
                    assert held.stake is not None
                    table.release(held.allocation)
                    board.stopped(held, completing=True)
                    found.preempted.append((held.stake.number, job.number))
                continue
            table.take(given)
            board.started(Held.of(int(line.at) + job.limit, len(found.starts), given))
            found.starts.append((job.number, given.numbers))
        return found

    def note(self, line: Line) -> None:
        words = line.words
        if line.what == "submitted":
            job = self.run.jobs[int(words[0])]
            self.priorities[job.id] = float(words[1])
            self.waiting[job.id] = job, line.at, float(words[1])
        elif line.what.endswith("start"):
            number, nodes = int(words[0]), numbers(words[1])
            job = self.waiting.pop(number)[0]
            allocation = Allocation.alike(nodes, 1)
            self.table.take(allocation)
            stake = Stake(number, line.at, self.sites[job.options.get("-p", self.default)].spec)
            self.running[number] = Held.of(int(line.at) + job.limit, number, allocation, stake)
        elif line.what == "preempted":
            number = int(words[0])
            held = self.running.pop(number)
            self.table.release(held.allocation)
            self.completing.update(dict.fromkeys(held.allocation.numbers, number))
            self.stopped[number] = self.run.jobs[number]
        elif line.what == "requeued":
            del self.stopped[int(words[0])]
            self.later.append((int(line.at) + BEGINS, int(words[0])))
        elif line.what == "ended":
            held = self.running.pop(int(words[0]))
            self.table.release(held.allocation)
            self.completing.update(dict.fromkeys(held.allocation.numbers, int(words[0])))
        elif line.what == "answered":
            for node in numbers(words[0]):
                if self.completing.get(node) not in self.stopped:  # its processes end later
                    self.completing.pop(node, None)
        elif line.what == "cleaned" and int(words[0]) in self.stopped:
            self.completing.pop(numbers(words[1])[0], None)
        elif line.what == "cleaned":  # the last node of its job
            job_id = int(words[0])
            self.completing = {node: each for node, each in self.completing.items() if each != job_id}


def textbook_easy(board: Board, queue: list[Pending]) -> Iterator[tuple[Pending, Allocation]]:
    """Yield the starts of EASY: heads while they fit, then jobs that do not delay the first that does not.

    It chooses nodes as Slurm does.
    """
    nodes = board.up & ~board.completing
    head: Pending | None = None
    at, spare = 0, 0
    for job in queue:
        mine = nodes & job.site.nodes
        wanted = job.request.processors
        allocation = board.select(job, mine)
        if head is None and allocation is not None:
            yield job, allocation
        elif head is None:
            head = job
            free = [(board.now, (mask_of(board.table.free[0] > 0) & mine).bit_count())]
            free += [(held.end, (held.nodes & job.site.nodes).bit_count()) for held in board.running]
            total = 0
            for at, count in free:  # noqa: B007
                total += count
                if total >= wanted:
                    break
            spare = total - wanted
        elif allocation is not None and (board.now + job.limit <= at or wanted <= spare):
            spare -= wanted if board.now + job.limit > at else 0
            yield job, allocation


def cycles_of(run: Recorded, *, easy: bool = False) -> list[Cycle]:
    """Return the cycles of a recorded run, with the starts that were recorded and that are modelled."""
    replay = Replay(run, easy=easy)
    found: list[Cycle] = []
    of: dict[str, Cycle] = {}
    for line in run.log:
        if line.what in ("main", "backfill"):
            of[line.what] = Cycle(line.at, line.what, Decided([], []), replay.model(line))
            last = of[line.what]
            found.append(of[line.what])
        else:
            if line.what.endswith(" start"):
                cycle = of[line.what.removesuffix(" start")]
                cycle.recorded.starts.append((int(line.words[0]), numbers(line.words[1])))
            elif line.what == "preempted":
                last.recorded.preempted.append((int(line.words[0]), int(line.words[1])))
            replay.note(line)
    return found


if __name__ == "__main__":
    for name in sys.argv[1:]:
        found = cycles_of(recorded(name))
        others = [cycle for cycle in cycles_of(recorded(name), easy=True) if not cycle.same]
        print(name, "EASY:", len(others), "of", len(found), "differ")
        wrong = [cycle for cycle in found if not cycle.same]
        print(name, len(found), "cycles", len(wrong), "differ")
        for cycle in wrong[:8]:
            print("  ", f"{cycle.at:.3f}", cycle.what, "recorded", cycle.recorded, "modelled", cycle.modelled)
