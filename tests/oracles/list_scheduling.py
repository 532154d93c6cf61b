"""List scheduling as defined in the papers: small, slow, and simple enough to verify by reading.

Tasks are 0..n-1, processors 0..p-1; ``run[task][processor]`` is in seconds (``inf``: cannot run), ``edges`` maps
(parent, child) to bytes, and ``move(a, b, size)`` is the transfer time from processor a to processor b (0 within a
pool). All functions return processor, start and end of each task. Ties go to the task that is first in a topological
order (breadth first; tasks released by the same parent by number), and to the first processor.
"""

from __future__ import annotations

from itertools import permutations, product
from math import inf

__all__ = ["Case", "cpop", "heft", "lookahead", "optimum", "peft"]


class Case:
    """A problem, and the quantities that the papers derive from it."""

    def __init__(self, run, edges, pool, latency, per_byte, *, now=0.0, available=None, arrival=None):
        self.run, self.edges, self.pool = run, edges, pool
        self.latency, self.per_byte = latency, per_byte  # by pool
        self.n, self.p = len(run), len(pool)
        self.now = now
        self.available = available or [now] * self.p
        self.arrival = arrival or [[now] * self.p for _ in run]
        self.parents = [[a for a, b in edges if b == task] for task in range(self.n)]
        self.children = [[b for a, b in edges if a == task] for task in range(self.n)]
        self.turn = self._turns()

    def _turns(self):
        order = [task for task in range(self.n) if not self.parents[task]]
        for i, task in enumerate(order):
            free = [child for child in self.children[task] if set(self.parents[child]) <= set(order[: i + 1])]
            order += sorted(free)
        return [order.index(task) for task in range(self.n)]

    def move(self, a, b, size):
        a, b = self.pool[a], self.pool[b]
        return 0 if a == b else self.latency[a][b] + size * self.per_byte[a][b]

    def able(self, task):
        return [j for j in range(self.p) if self.run[task][j] < inf]

    def mean_run(self, task):
        return sum(self.run[task][j] for j in self.able(task)) / len(self.able(task))

    def mean_move(self, size):
        found = [self.move(a, b, size) for a in range(self.p) for b in range(self.p) if a != b]
        return sum(found) / len(found) if found else 0

    def mean_move_between_pools(self, size):
        pairs = [(a, b) for a in range(self.p) for b in range(self.p) if self.pool[a] != self.pool[b]]
        return sum(self.move(a, b, size) for a, b in pairs) / len(pairs) if pairs else 0

    def upward(self, task):
        after = [self.mean_move(self.edges[task, child]) + self.upward(child) for child in self.children[task]]
        return self.mean_run(task) + max(after, default=0)

    def downward(self, task):
        return max(
            [
                self.downward(parent) + self.mean_run(parent) + self.mean_move(self.edges[parent, task])
                for parent in self.parents[task]
            ],
            default=0,
        )

    def optimistic(self, task, j):
        """OCT(task, j) of the PEFT paper; transfers within a pool cost nothing."""
        return max(
            [
                min(
                    self.optimistic(child, k)
                    + self.run[child][k]
                    + (self.mean_move_between_pools(self.edges[task, child]) if self.pool[j] != self.pool[k] else 0)
                    for k in self.able(child)
                )
                for child in self.children[task]
            ],
            default=0,
        )


def _ready(case, placed, task, j):
    """Return the instant at which all data of a task can be at a processor; parents not placed are ignored."""
    found = [
        placed[parent][2] + case.move(placed[parent][0], j, case.edges[parent, task])
        for parent in case.parents[task]
        if parent in placed
    ]
    return max([case.arrival[task][j], *found])


def _slot(case, placed, task, j, insertion=True):
    """Return the first slot of a task on a processor: in a gap, of no length too, or behind all tasks."""
    ready, length = _ready(case, placed, task, j), case.run[task][j]
    idle_from = case.available[j]
    for _, start, end in sorted(slot for slot in placed.values() if slot[0] == j):
        begin = max(idle_from, ready)
        if insertion and begin + length <= start:
            return j, begin, begin + length
        idle_from = max(idle_from, end)
    begin = max(idle_from, ready)
    return j, begin, begin + length


def _best(case, placed, task, insertion=True, more=lambda j: 0):
    slots = [_slot(case, placed, task, j, insertion) for j in case.able(task)]
    return min(slots, key=lambda slot: slot[2] + more(slot[0]))


def _rows(case, placed):
    return [placed[task] for task in range(case.n)]


def _by_upward(case):
    return sorted(range(case.n), key=lambda task: (-case.upward(task), case.turn[task]))


def heft(case, insertion=True):
    placed = {}
    for task in _by_upward(case):
        placed[task] = _best(case, placed, task, insertion)
    return _rows(case, placed)


def _by_priority(case, priority, choose):
    placed = {}
    while len(placed) < case.n:
        free = [
            task
            for task in range(case.n)
            if task not in placed and all(parent in placed for parent in case.parents[task])
        ]
        task = min(free, key=lambda task: (-priority[task], case.turn[task]))
        placed[task] = choose(placed, task)
    return _rows(case, placed)


def peft(case):
    ranks = [sum(case.optimistic(task, j) for j in case.able(task)) / len(case.able(task)) for task in range(case.n)]
    return _by_priority(
        case, ranks, lambda placed, task: _best(case, placed, task, more=lambda j: case.optimistic(task, j))
    )


def cpop(case):
    """CPOP with the critical path as defined: from an entry task of highest priority along the highest priorities."""
    priority = [case.upward(task) + case.downward(task) for task in range(case.n)]
    ahead = sorted((task for task in range(case.n) if not case.parents[task]), key=case.turn.__getitem__)
    path = []
    while ahead:
        task = max(ahead, key=lambda task: priority[task])
        path.append(task)
        # its children on a longest path
        ahead = [
            child
            for child in case.children[task]
            if case.downward(child)
            == case.downward(task) + case.mean_run(task) + case.mean_move(case.edges[task, child])
        ]
        ahead = [child for child in ahead if priority[child] == priority[task]]
    on = min(
        range(case.p),
        key=lambda j: (
            -sum(case.run[task][j] < inf for task in path),
            sum(case.run[task][j] for task in path if case.run[task][j] < inf),
        ),
    )
    return _by_priority(
        case,
        priority,
        lambda placed, task: (
            _slot(case, placed, task, on) if task in path and case.run[task][on] < inf else _best(case, placed, task)
        ),
    )


def lookahead(case):
    order = _by_upward(case)
    placed = {}
    for task in order:
        ends = {}
        for j in case.able(task):
            trial = dict(placed)
            trial[task] = _slot(case, trial, task, j)
            children = sorted(case.children[task], key=order.index)
            for child in children:
                trial[child] = _best(case, trial, child)
            ends[j] = max(trial[each][2] for each in (children or [task]))
        placed[task] = _slot(case, placed, task, min(ends, key=ends.__getitem__))
    return _rows(case, placed)


def optimum(case):
    """Return the least makespan over all orders that keep precedence and all assignments to processors."""
    least = inf
    for order in permutations(range(case.n)):
        place = {task: i for i, task in enumerate(order)}
        if any(place[a] > place[b] for a, b in case.edges):
            continue
        for chosen in product(*(case.able(task) for task in order)):
            placed = {}
            for task, j in zip(order, chosen, strict=True):
                placed[task] = _slot(case, placed, task, j, insertion=False)
            least = min(least, max((end for _, _, end in placed.values()), default=0))
    return least
