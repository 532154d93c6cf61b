"""Random clusters whose jobs are suspended, requeued, resized, cancelled or stopped by outages, with checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np

from simmodel import Job, Policy, Preempt, Resize, WakeAt
from simmodel.platform import ClusterSpec, NodeSpec, OutageSpec, PartitionSpec
from simmodel.policies.backfilling import Easy
from simmodel.scheduling.protocol import Decision, View
from simmodel.work import Checkpoint, Dependency, Elastic


class Unsteady(Policy):
    """EASY that suspends, requeues and resizes running jobs at random, so often at most."""

    decides = "jobs"
    preempts = True

    def __init__(self, most: int = 25, share: float = 0.4) -> None:
        self.most, self.share = most, share
        self.name = "unsteady"
        self._easy, self._left, self._rests = Easy(), most, -1.0

    def state(self) -> Any:
        return [self._left, self._rests]

    def restore(self, values: Any) -> None:
        self._left, self._rests = values

    def decide(self, view: View, /) -> Iterator[Decision]:
        if view.now < self._rests:
            return  # those that were stopped wait meanwhile
        before = self._left
        for place in view.places:
            runs = sorted((run for run in place.running if hasattr(run, "job")), key=lambda run: run.job.seq)
            for run in runs:
                job = run.job
                if not self._left or view.rng.random() > self.share or run.released or run.started == view.now:
                    continue
                spec = job.spec
                if job.elastic is not None and place.simple and view.rng.random() < 0.7:
                    size = int(view.rng.integers(job.elastic.minimum, job.elastic.maximum + 1))
                    if size <= job.processors + place.free:
                        self._left -= 1
                        yield Resize(job, size)
                elif spec is None or spec.on_preempt != "no":
                    self._left -= 1
                    still = spec is not None and spec.has_body
                    yield Preempt(job, "requeue" if still or view.rng.random() < 0.5 else "suspend")
        if self._left < before and view.rng.random() < 0.6:
            self._rests = view.now + 8
            yield WakeAt(self._rests)
        else:
            yield from self._easy.decide(view) or ()


@attrs.frozen
class Case:
    """The arguments of a simulation."""

    platform: ClusterSpec
    jobs: list[Job]
    policy: Policy
    seed: int


def body(env: Any, job: Any, grant: Any) -> Iterator[Any]:
    """Run for 20 s."""
    yield env.timeout(20)


def job_of(rng: np.random.Generator, number: int, submit: float, names: list[str], most: int, counted: bool) -> Job:
    """Return a random job of at most so many processors; ``counted``: whether it may be elastic."""
    run = float(rng.choice([0, 1, 7, 30, 77.5, 200]))
    options: dict[str, Any] = {"processors": int(rng.integers(1, most + 1)), "run": run}
    options["requested"] = None if rng.random() < 0.2 else max(1.0, run * float(rng.choice([0.6, 1.0, 1.5, 4.0])))
    kind = rng.choice(["plain", "keeps", "saves", "sizes", "body", "no"])
    if kind == "keeps":
        options["keeps_work"] = True
    elif kind == "saves":
        options["checkpoint"] = Checkpoint(float(rng.choice([5, 20])), cost=float(rng.choice([0, 2])), restart=3)
    elif kind == "sizes" and counted:
        options["elastic"] = Elastic(1, options["processors"], most)
    elif kind == "body":
        options |= {"run": None, "body": body, "requested": 60.0, "grace": 0.0, "keeps_work": bool(rng.random() < 0.3)}
    elif kind == "no":
        options["on_preempt"] = "no"
    if rng.random() < 0.15 and number > 1:
        after: Any = str(rng.choice(["success", "end", "start", "failure"]))
        options["dependencies"] = [Dependency(int(rng.integers(1, number)), after)]
    if rng.random() < 0.1:
        options["cancel"] = submit + float(rng.integers(1, 300))
    if rng.random() < 0.1:
        options["outcome"] = "failed"
    return Job(id=number, submit=submit, user=f"u{rng.integers(3)}", partition=str(rng.choice(names)), **options)


def case(seed: int, *, coupled: bool = False, bodies: bool = True) -> Case:
    """Return a random case; ``coupled``: whether jobs may wait for others; ``bodies``: whether they may have some."""
    rng = np.random.default_rng(seed)
    names, size = ["p", "q"][: int(rng.integers(1, 3))], int(rng.choice([4, 8]))
    counted = bool(rng.random() < 0.7)
    parts = [{"processors": size} if counted else {"nodes": [NodeSpec(count=size // 2, cores=2)]} for _ in names]
    down: Any = {"processors": 2} if counted else {"nodes": [0]}
    outages = [
        OutageSpec(at=at, until=at + 25, partition=names[0], **down)
        for at in np.sort(rng.integers(5, 400, size=int(rng.choice([0, 0, 2])))).tolist()
    ]
    submits = np.cumsum(rng.choice([0.0, 0.0, 5.0, 17.5], size=int(rng.integers(5, 25)))).tolist()
    jobs = [job_of(rng, number, at, names, size, counted) for number, at in enumerate(submits, 1)]
    jobs = [each for each in jobs if bodies or each.body is None]
    known = {each.id for each in jobs}
    for i, each in enumerate(jobs):
        before = [wait for wait in each.dependencies if wait.job in known and coupled]
        jobs[i] = attrs.evolve(each, dependencies=before)
    partitions = [PartitionSpec(name=name, **part) for name, part in zip(names, parts, strict=True)]
    spec = ClusterSpec(partitions=partitions, outages=outages)
    return Case(spec, jobs, Unsteady(int(rng.integers(0, 40))), seed)
