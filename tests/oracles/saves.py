"""Jobs that save through one shared bandwidth, by brute force: from event to event, in exact fractions.

All jobs start at 0 and fail together, if at all. ``play(jobs, write, read, failures)`` returns for each job its end,
the seconds of its saves and of its restarts, and the work lost; ``jobs``: (work, interval, cost, restart, size);
``failures``: (at, until) of all processors.

The rule: who writes at an instant gets an equal share of ``write``, who reads one of ``read``. A job works for an
interval, spends its cost, writes, and so on until an interval or less of its work is left; a save counts when it is
complete. After a failure it spends its restart and reads, if it has a save, and works on from there.
"""

from __future__ import annotations

from fractions import Fraction

Phase = tuple[str, Fraction]


class _Job:
    def __init__(self, work, interval, cost, restart, size):
        self.work, self.interval, self.cost, self.restart, self.size = map(
            Fraction, (work, interval, cost, restart, size)
        )
        self.saved = self.done = Fraction(0)
        self.end = None
        self.saving = self.reading = self.lost = Fraction(0)
        self.begin()

    def begin(self):
        self.done = self.saved
        self.phases = [("restart", self.restart), ("read", self.size)] if self.saved else []
        self.next_segment()

    def next_segment(self):
        left = self.work - self.done
        if left > self.interval:
            self.phases += [("work", self.interval), ("cost", self.cost), ("write", self.size)]
        else:
            self.phases += [("work", left)]

    def advance(self, seconds, rates):
        name, left = self.phases[0]
        self.phases[0] = name, left - seconds * rates.get(name, 1)
        if name == "work":
            self.done += seconds
        elif name in ("cost", "write"):
            self.saving += seconds
        else:
            self.reading += seconds

    def pass_on(self, now):
        """Leave the phases that are over."""
        while self.phases and self.phases[0][1] == 0:
            name, _ = self.phases.pop(0)
            if name == "write":
                self.saved = self.done
                self.next_segment()
        if not self.phases and self.end is None:
            self.end = now

    def fail(self):
        self.lost += self.done - self.saved
        self.phases = [("down", Fraction(1))]


def play(jobs, write, read, failures=()):
    """Return (end, saving, reading, lost) of each job as fractions."""
    jobs = [_Job(*each) for each in jobs]
    changes = sorted((Fraction(at), down) for pair in failures for at, down in zip(pair, (True, False), strict=True))
    now, down = Fraction(0), False
    while True:
        for job in jobs:
            job.pass_on(now)
        if changes and changes[0][0] == now:
            down = changes.pop(0)[1]
            for job in jobs:
                if job.end is None:
                    job.fail() if down else job.begin()
            continue
        active = [job for job in jobs if job.end is None and not down]
        if not active and not changes:
            return [(job.end, job.saving, job.reading, job.lost) for job in jobs]
        rates = {
            name: Fraction(bandwidth) / max(1, sum(job.phases[0][0] == name for job in active))
            for name, bandwidth in (("write", write), ("read", read))
        }
        steps = [job.phases[0][1] / rates.get(job.phases[0][0], 1) for job in active]
        step = min([*steps, changes[0][0] - now] if changes else steps)
        for job in active:
            job.advance(step, rates)
        now += step
