"""The decisions of Slurm's loops, as modelled, from the true state before each recorded cycle."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from simmodel.resources.pools.allocation import Allocation, NodeTable, Request
from simmodel_site.policy.backfill import BackfillCycle
from simmodel_site.policy.board import Array, Board, Held, Pending, Site, Stake
from simmodel_site.policy.layout import Layout
from simmodel_site.policy.main_loop import main_cycle
from simmodel_site.policy.preemption import BEGINS, Preemption, Victims
from simmodel_site.policy.selection import mask_of, nodes_in
from simmodel_site.policy.wishes import Wishes
from tests.site.helpers.slurm_runs import Line, Recorded, Submitted, numbers, recorded


class Decided(NamedTuple):
    """What a cycle decides: starts (job, nodes) and preemptions (job, the job that it makes way for), in order."""

    starts: list[tuple[str, tuple[int, ...]]]
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


class Plan(NamedTuple):
    """A planned start: the job, or the array of a task, its instant (s since 1970), and its nodes."""

    job: str
    at: int
    nodes: tuple[int, ...]


class Replay:
    """The state of a recorded run, line by line of its log; asked before each cycle."""

    def __init__(self, run: Recorded, *, easy: bool = False) -> None:
        self.run = run
        self.easy = easy
        nodes = run.site.nodes or ()
        self.count = len(nodes)
        self.table = NodeTable(np.array([[n.cpus, 0, n.memory or 2.0**50] for n in nodes], dtype=float).T)
        self.layout = Layout([node.name for node in nodes], self.count, (), run.switches)
        self.waiting: dict[str, tuple[Submitted, float, float]] = {}
        self.arrays: dict[int, Array] = {}
        self.running: dict[str, tuple[Submitted, Held]] = {}
        self.completing: dict[tuple[int, str], str] = {}  # nodes of ended jobs, by their number and the job's id
        self.unfinished: set[str] = set()
        self.stopped: dict[str, Submitted] = {}
        self.later: list[tuple[float, str]] = []
        self.priorities: dict[int, float] = {}
        self.planned: list[Plan] = []  # by the last cycle of the backfill loop
        self.preemption = Preemption(run.settings) if run.settings.preempt else None
        self.sites = {each.name: Site(each, self._mask(each.nodes)) for each in run.partitions}
        self.default = next(each.name for each in run.partitions if each.default)

    def _mask(self, text: str) -> int:
        return sum(1 << node for node in numbers(text)) if text else (1 << self.count) - 1

    def _licensed(self, job: Submitted) -> bool:
        held = [each.licences for each, _ in self.running.values()]
        return all(
            number + sum(each.get(name, 0.0) for each in held) <= self.run.licences[name]
            for name, number in job.licences.items()
        )

    def pending(self, board: Board) -> dict[str, Pending]:
        found = {}
        for name, (job, at, priority) in self.waiting.items():
            if any(str(each) in self.unfinished for one in job.after for each in self.run.jobs[one].names):
                continue
            site = self.sites[job.options.get("-p", self.default)]
            request = Request(job.processors, nodes=job.nodes, exclusive=job.exclusive)
            live: Any = SimpleNamespace(state="waiting")
            task = int(name.partition("_")[2] or 0)
            number = job.id * 1000 + task
            pending = Pending(
                live,
                request,
                board,
                site,
                job.limit,
                priority,
                at,
                number,
                wishes=Wishes.of(job.wishes),
                array=self.arrays.get(job.id),
                ready=self._licensed(job),
            )
            found[name] = pending
        return found

    def model(self, line: Line) -> Decided:
        """Return what the model decides at a cycle."""
        for at, name in [each for each in self.later if each[0] <= int(line.at)]:
            self.later.remove((at, name))
            job = self.run.jobs[int(name)]
            self.waiting[name] = job, at, self.priorities[job.id]
        table = self.table.copy()
        mask = 0
        for node, _ in self.completing:
            mask |= 1 << node
        board = Board(table, self.run.settings, self.layout)
        board.renew(line.at, [held for _, held in self.running.values()], mask)
        named = self.pending(board)
        names = {id(pending): name for name, pending in named.items()}
        queue = sorted(named.values(), key=Pending.key)
        loop: Iterator[tuple[Pending, Allocation | Victims]]
        if self.easy:
            loop = textbook_easy(board, queue)
        elif line.what == "main":
            loop = main_cycle(queue, self.run.settings, full="full" in line.words[0], preemption=self.preemption)
        else:
            cycle = BackfillCycle(queue, self.run.settings, line.at, self.preemption)
            loop = cycle.starts()
        found, before = Decided([], []), dict(self.running)
        for job, given in loop:
            name = names[id(job)]
            if isinstance(given, Victims):
                for held in given.held:
                    assert held.stake is not None
                    table.release(held.allocation)
                    board.stopped(held, completing=True)
                    found.preempted.append((held.stake.number, int(name)))
                continue
            table.take(given)
            job.over = True
            held = Held.of(int(line.at) + job.limit, len(found.starts), given)
            board.started(held)
            self.running[name] = self.waiting[name][0], held
            for other, pending in named.items():
                pending.ready = self._licensed(self.waiting[other][0])
            found.starts.append((name, given.numbers))
        self.running = before
        if line.what == "backfill" and not self.easy:
            self.planned = [
                Plan(names[id(plan.job)].partition("_")[0], plan.start, tuple(nodes_in(plan.nodes)))
                for plan in cycle.planned
            ]
        return found

    def note(self, line: Line) -> None:
        words = line.words
        if line.what == "submitted":
            job = self.run.jobs[int(words[0])]
            self.priorities[job.id] = float(words[1])
            if "-a" in job.options:
                self.arrays[job.id] = Array()
            for name in map(str, job.names):
                self.priorities[name] = float(words[1])
                self.waiting[name] = job, line.at, float(words[1])
                self.unfinished.add(name)
        elif line.what.endswith("start"):
            name, raw = named(words[0])
            job = self.waiting.pop(name)[0]
            allocation = self._held(job, numbers(words[1]))
            self.table.take(allocation)
            stake = Stake(int(raw), line.at, self.sites[job.options.get("-p", self.default)].spec)
            self.running[name] = job, Held.of(int(line.at) + job.limit, int(raw), allocation, stake)
        elif line.what == "preempted":
            job, held = self.running.pop(words[0])
            self.table.release(held.allocation)
            self.completing.update({(node, words[0]): words[0] for node in held.allocation.numbers})
            self.stopped[words[0]] = job
        elif line.what == "requeued":
            del self.stopped[words[0]]
            self.later.append((int(line.at) + BEGINS, words[0]))
        elif line.what == "ended":
            name, raw = named(words[0])
            held = self.running.pop(name)[1]
            self.table.release(held.allocation)
            self.completing.update({(node, raw): name for node in held.allocation.numbers})
        elif line.what == "answered" and not self.run.settings.epilog:
            for node in numbers(words[0]):
                self._free({key for key in self.completing if key[0] == node and key[1] not in self.stopped})
        elif line.what == "cleaned" and (words[0] in self.stopped or self.run.settings.epilog):  # one of its nodes
            self._free({(numbers(words[1])[0], words[0])} & {*self.completing})
        elif line.what == "cleaned":  # the last node of its job
            self._free({key for key in self.completing if key[1] == words[0]})

    def _free(self, keys: set[tuple[int, str]]) -> None:
        ended = {self.completing.pop(key) for key in keys}
        self.unfinished -= ended - set(self.completing.values())

    def _held(self, job: Submitted, nodes: tuple[int, ...]) -> Allocation:
        """Return what a job holds on the nodes that the log tells: their free cores in order, or whole nodes."""
        wishes, left = Wishes.of(job.wishes), job.processors
        rows = []
        for i, node in enumerate(nodes):
            cores = min(int(self.table.free[0, node]), left - (len(nodes) - 1 - i))
            cores = int(self.table.capacity[0, node]) if job.exclusive else 1 if job.nodes else cores
            memory = (wishes.memory_per_cpu or 0.0) * cores if self.run.settings.memory else 0.0
            rows.append((node, cores, 0, memory))
            left -= cores
        return Allocation.of(rows)


def named(text: str) -> tuple[str, str]:
    """Return the name of a job or task, and its own id, of a text such as ``3_1(6)``."""
    name, _, raw = text.removesuffix(")").partition("(")
    return name, raw or name


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
                cycle.recorded.starts.append((named(line.words[0])[0], numbers(line.words[1])))
            elif line.what == "preempted":
                last.recorded.preempted.append((int(line.words[0]), int(line.words[1])))
            replay.note(line)
    return found


def plans_of(run: Recorded) -> list[tuple[list[Plan], list[Plan]]]:
    """Return the plans of each cycle of the backfill loop, as recorded and as modelled."""
    replay = Replay(run)
    found: list[tuple[list[Plan], list[Plan]]] = []
    for line in run.log:
        if line.what == "backfill":
            replay.model(line)
            found.append(([], replay.planned))
        elif line.what == "planned":
            name, at, _, nodes = line.words
            found[-1][0].append(Plan(named(name)[0].partition("_")[0], int(at), numbers(nodes)))
        elif line.what == "main":
            replay.model(line)
        else:
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
