"""Invariants of random clusters and jobs under every policy."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from simmodel.environment import Environment
from simmodel.foundation.errors import ImpossibleWork, Stalled
from simmodel.scheduling.registry import policy as policy_named, policy_names
from simmodel.systems.cluster.system import Cluster
from simmodel.work.job import Job
from simmodel.work.workload import Workload
from tests.helpers.cluster_cases import CLEAN_UP, INFINITY, UNTIL, Case, Restless, cases
from tests.helpers.examples import up_to

OVER = {"completed", "timeout", "failed", "cancelled", "lost"}


class Watch:
    """Follows each job through the hooks of observers, and checks the invariants at each event."""

    def __init__(self, env: Environment, cluster: Cluster, specs: list[Job]) -> None:
        self.env = env
        self.cluster = cluster
        self.specs = {spec.id: spec for spec in specs}
        self.submitted: dict[Any, float] = {}
        self.places: dict[Any, str] = {}
        self.rejected: dict[Any, float] = {}
        self.first_start: dict[Any, float] = {}
        self.over: dict[Any, tuple[float, str]] = {}
        # The work done (s at speed 1) in the stretches of each attempt of each job:
        self.stretches: dict[Any, list[list[float]]] = {}
        self.since: dict[Any, float] = {}
        self.runs: dict[Any, None] = {}
        self.log: list[tuple[Any, ...]] = []

    def _note(self, what: str, job: Any, *more: Any) -> None:
        self.log.append((self.env.now, what, job.id, *more))

    # -------------------------------------------------------------- hooks

    def job_submitted(self, job: Any) -> None:
        assert job.id not in self.submitted
        assert self.env.now >= self.specs[job.id].submit
        self.submitted[job.id] = self.env.now
        self.places[job.id] = job.place.name
        self._note("submitted", job)

    def job_rejected(self, job: Any, _reason: str) -> None:
        assert job.id not in self.submitted
        self.rejected[job.id] = self.env.now
        self._note("rejected", job)

    def job_started(self, run: Any) -> None:
        self._check_dependencies(run.job)
        self.stretches.setdefault(run.job.id, []).append([])
        self.first_start.setdefault(run.job.id, self.env.now)
        self._begins("started", run)

    def job_resumed(self, run: Any) -> None:
        self._begins("resumed", run)

    def job_suspended(self, run: Any) -> None:
        self._stops("suspended", run)

    def job_ended(self, run: Any, status: str) -> None:
        self._stops("ended", run, status)
        if status not in ("preempted", "requeued"):
            self._is_over(run.job, status)

    def job_cancelled(self, job: Any) -> None:
        assert job.id not in self.since, "a job that runs is cancelled by its end"
        self._note("cancelled", job)
        self._is_over(job, "cancelled")

    def place_changed(self, place: Any, cause: str) -> None:
        self.log.append((self.env.now, cause, place.name, place.free, place.up))

    # -------------------------------------------------------------- checks

    def _begins(self, what: str, run: Any) -> None:
        job = run.job
        assert job.id in self.submitted
        assert job.id not in self.over
        assert job.id not in self.since
        self.since[job.id] = self.env.now
        self.runs[run] = None
        self._note(what, job, run.grant.nodes)
        assert run.place.free >= 0, "started on what is not free"
        if run.grant.nodes is not None:
            assert not set(run.grant.nodes) & set(run.place.down_nodes), "started on a node that is down"
        self._check_resources()

    def _stops(self, what: str, run: Any, *more: Any) -> None:
        job = run.job
        del self.runs[run]
        elapsed = self.env.now - self.since.pop(job.id)
        self.stretches[job.id][-1].append(elapsed * _speed_of(run))
        self._note(what, job, *more)

    def _is_over(self, job: Any, status: str) -> None:
        assert status in OVER, status
        assert job.state == status
        assert job.id in self.submitted
        assert job.id not in self.over
        self.over[job.id] = self.env.now, status

    def _check_resources(self) -> None:
        """Nothing is held twice; a run at its end may count as ended before the event is handled."""
        held = [run for run in self.runs if not run.released]
        licences = sum(self.specs[run.job.id].consumables.get("licence", 0) for run in held)
        assert licences <= 1 + 1e-9, "more licences held than there are"
        for place in self.cluster.places:
            here = [run for run in held if run.place is place]
            inside = [run for run in held if run.place.part_of is place]
            assert set(here) == set(place.running)
            table = getattr(place, "table", None)
            if table is None:
                used = sum(run.job.processors for run in here)
                assert used + sum(run.job.processors for run in inside) <= place.capacity
                assert place.free == place.up - used
                continue
            of_nodes = [[0.0, 0.0, 0.0] for _ in place.nodes]
            numbers = {name: node for node, name in enumerate(place.nodes)}
            for run in inside:
                for node, *amounts in run.grant.allocation.rows:
                    number = numbers[run.place.nodes[node]]
                    assert not any(number in other.grant.nodes for other in here), "a node is given twice"
                    for i, amount in enumerate(amounts):
                        of_nodes[number][i] += amount
            for run in here:
                assert len(set(run.grant.nodes)) == len(run.grant.nodes)
                for node, *amounts in run.grant.allocation.rows:
                    for i, amount in enumerate(amounts):
                        of_nodes[node][i] += amount
            for node, used_here in enumerate(of_nodes):
                for i, amount in enumerate(used_here):
                    assert amount <= table.capacity[i, node], (node, i)

    def _check_dependencies(self, job: Any) -> None:
        for dependency in self.specs[job.id].dependencies:
            name, after = dependency.job, dependency.after
            if name in self.rejected:
                assert after != "success"
                continue
            at = None
            if after == "start":
                at = self.first_start.get(name)
            if at is None:
                assert name in self.over, f"job {job.id} started before the {after} of job {name}"
                at, status = self.over[name]
                assert after != "success" or status == "completed"
            assert self.env.now >= at + dependency.think_time

    def check_end(self, stalled: set[Any]) -> None:
        """Check after the last event that all capacity is released and each job has the right final state."""
        cluster, spec = self.cluster, self.cluster.spec
        assert not self.runs
        assert not self.since
        assert set(self.submitted) == set(self.over) | stalled
        assert not set(self.over) & stalled
        for place in cluster.places:
            assert place.free == place.up
            assert not len(place.running)
            waiting = {job.id for job in cluster.queueing.queues[place]}
            assert waiting <= stalled
            assert not place.windows or any(window.end == INFINITY for window in place.windows)
            if not spec.failures and all(outage.until < INFINITY for outage in spec.outages):
                assert place.up == (place.capacity if place.part_of is None else 0)
            if hasattr(place, "table"):
                table, names = place.table, set(place.down_nodes)
                for node in range(len(place.nodes)):
                    assert node in names or (table.free[:, node] == table.capacity[:, node]).all()
        for pool in cluster.places:
            assert pool.consumables.free == pool.consumables.capacity
        for rules in cluster.rules.values():
            assert {job.id for job in rules.held} <= stalled
            assert {job.id for job in rules._waiting} <= stalled
            assert rules._running == 0
            assert not any(rules._running_of.values())
        for name in self.over:
            self._check_job(name)
        self._check_stalled(stalled)

    def _check_job(self, name: Any) -> None:
        spec = self.specs[name]
        at, status = self.over[name]
        if spec.cancel is not None:
            assert at <= max(spec.cancel, self.submitted[name]) + CLEAN_UP, "not cancelled in time"
        attempts = self.stretches.get(name, [])
        if status == "timeout" and self.places[name].startswith("r"):
            return  # perhaps stopped by the end of the reservation
        if spec.checkpoint is not None:
            self._check_checkpoints(name, [sum(attempt) for attempt in attempts], status)
        elif spec.body is None:
            stretches = [sum(attempt) for attempt in attempts]
            done = sum(stretches) if spec.keeps_work else stretches[-1] if stretches else 0.0
            assert spec.run is not None
            limit = INFINITY if spec.requested is None or self.cluster.options.overrun == "continue" else spec.requested
            if status in ("completed", "timeout"):
                assert done == pytest.approx(min(spec.run, limit))
                assert (status == "timeout") == (limit < spec.run)
            else:
                assert done <= min(spec.run, limit) + 1e-9
            assert status != "failed"
        elif status == "completed":
            assert attempts[-1] == [spec.body.run]
            assert not spec.body.fails
        elif status == "failed":
            assert attempts[-1] == [spec.body.run]
            assert spec.body.fails
        elif status == "timeout":
            assert self.cluster.options.overrun == "stop"
            assert spec.requested <= attempts[-1][0] <= spec.requested + CLEAN_UP
        if status == "lost":
            assert self.cluster.spec.on_failure == "lose"

    def _check_checkpoints(self, name: Any, attempts: list[float], status: str) -> None:
        """Play the attempts of a job with checkpoints step by step: each ends when its work, or its limit, does."""
        spec = self.specs[name]
        stops = self.cluster.options.overrun == "stop" and spec.requested is not None
        limit = spec.requested if stops else INFINITY
        saved = 0.0
        for number, seconds in enumerate(attempts, 1):
            kept, needed = played(spec.run, spec.checkpoint, saved, seconds)
            assert seconds <= min(needed, limit) + 1e-9
            if number == len(attempts) and status in ("completed", "timeout"):
                assert seconds == pytest.approx(min(needed, limit))
                assert (status == "timeout") == (limit < needed)
            saved = kept

    def _check_stalled(self, stalled: set[Any]) -> None:
        """Check that a job waits forever only for a job that never ends or for capacity that never returns."""
        gone = {outage.partition for outage in self.cluster.spec.outages if outage.until == INFINITY}
        for name in sorted(stalled):
            waits_for = {dependency.job for dependency in self.specs[name].dependencies}
            dead = waits_for - set(self.over) - set(self.rejected)
            assert dead or self.places[name] in gone, f"job {name} waits for no reason"


def played(run: float, checkpoint: Any, saved: float, seconds: float) -> tuple[float, float]:
    """Return the work that is saved after so many seconds of an execution, and the seconds that it takes to its end."""
    at = checkpoint.restart if saved else 0.0
    done, kept = saved, saved
    while run - done > checkpoint.interval:
        at += checkpoint.interval
        done += checkpoint.interval
        at += checkpoint.cost
        if at <= seconds + 1e-9:
            kept = done
    return kept, at + run - done


def _speed_of(run: Any) -> float:
    """Return the speed at which a run does its work: that of the slowest node, and 1 for a body."""
    if run.process is not None or run.grant.nodes is None:
        return 1.0
    speeds = [kind.speed for kind in run.place.spec.nodes for _ in range(kind.count)]
    return min(speeds[node] for node in run.grant.nodes)


def run(case: Case, policy: Any) -> list[tuple[Any, ...]]:
    env = Environment(seed=case.seed)
    cluster = Cluster(env, case.spec, policy() if isinstance(policy, type) else policy_named(policy), **case.options)
    watch = Watch(env, cluster, case.jobs)
    env.observe(watch)
    if case.way == "script":

        def submit(env: Any) -> Any:
            for job in sorted(case.jobs, key=lambda each: each.submit):
                yield env.timeout(job.submit - env.now)
                try:
                    cluster.submit(job)
                except ImpossibleWork:
                    continue

        env.process(submit(env))
    elif case.way == "jobs":
        cluster.replay(Workload.from_jobs(case.jobs))
    else:
        columns = {"job": "id", "submit": "submit", "run": "run", "requested": "requested", "processors": "processors"}
        values = {name: [getattr(job, field) for job in case.jobs] for name, field in columns.items()}
        values["requested"] = [math.nan if value is None else value for value in values["requested"]]
        cluster.replay(Workload(values))
    stalled: set[Any] = set()
    try:
        env.run(UNTIL if case.spec.failures else None)
        stalled = set(watch.submitted) - set(watch.over)
    except Stalled as error:
        stalled = {int(found[1]) for line in error.waiters if (found := re.match(r"job (\d+) ", line))}
    watch.check_end(stalled)
    result = cluster.result()
    for name, status in zip(result.jobs["job"].tolist(), result.jobs["status"].tolist(), strict=True):
        if name in watch.over:
            assert status == watch.over[name][1]
    return watch.log


POLICIES = [*policy_names("jobs"), "sjf+conservative", "wfp+easy", "sjf+conservative-keep", "multifactor+easy"]


@pytest.mark.few(7)
@pytest.mark.parametrize("policy", [*POLICIES, Restless], ids=lambda policy: getattr(policy, "__name__", policy))
@settings(max_examples=up_to(15, 8), deadline=None, suppress_health_check=list(HealthCheck))
@given(case=cases())
def test_invariants_hold_and_runs_repeat_on_random_clusters(policy, case):
    assert run(case, policy) == run(case, policy)
