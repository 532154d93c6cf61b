"""Cycles that are passed over would start nothing: every cycle of the loops, walked, brings the same runs of jobs."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from simmodel import Job, simulate, start
from simmodel.extending import Stalled
from simmodel.platform import ClusterSpec, ConsumableSpec, NodeSpec, OutageSpec, PartitionSpec, ReservationSpec
from simmodel_site.policy.accounts import Accounts, Association, Limits, Qos
from simmodel_site.policy.policy import Slurm, SlurmTiming
from simmodel_site.policy.reservations import SlurmReservation
from simmodel_site.policy.settings import SlurmConf, SlurmPartition
from tests.helpers.examples import seeds

USERS = ("ada", "bob", "cy")


class Site:
    """A site that is drawn: its nodes, partitions, accounts, reservations, settings and jobs.

    Parameters
    ----------
    seed
        of what is drawn
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes, self.cores = int(self.pick(2, 4, 7)), int(self.pick(1, 1, 2, 4))
        names = f"n[1-{self.nodes}]"
        away = OutageSpec(
            at=900.0, until=1500.0, partition="batch", nodes=["n1"], kind=self.pick("drain", "failure", "maintenance")
        )
        fixed = ReservationSpec(name="fixed", partition="batch", nodes=["n2"], start=1600.0, end=2500.0)
        self.spec = ClusterSpec(
            partitions=[PartitionSpec(name="batch", nodes=[NodeSpec(names=names, cores=self.cores)])],
            consumables=[ConsumableSpec(name="matlab", amount=2)],
            outages=[away] if self.some(0.3) else [],
            reservations=[fixed] if self.some(0.2) else [],
        )
        self.counted = self.some(0.2)
        if self.counted:  # processors, mostly without options
            self.cores, self.nodes = 1, 4 * self.nodes
            self.spec = ClusterSpec.simple(self.nodes)
        self.partitions = self._partitions() if self.some(0.5) and not self.counted else []
        self.accounts = self._accounts() if self.some(0.5) else None
        self.reservations = self._reservations() if self.some(0.35) and not self.counted else []
        self.settings, self.scans = self._settings(), self.some(0.7)
        self.jobs = sorted([self._job(i) for i in range(int(self.pick(15, 40)))], key=lambda job: job.submit)

    def pick(self, *values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def some(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def _partitions(self) -> list[SlurmPartition]:
        nodes = f"n[1-{max(self.nodes // 2, 1)}]"
        return [
            SlurmPartition(name="batch", default=True, job_factor=int(self.pick(1, 3)), max_time=7200.0),
            SlurmPartition(name="short", nodes=nodes, tier=int(self.pick(1, 2)), qos=str(self.pick("", "wide"))),
        ]

    def _accounts(self) -> Accounts:
        limits = [
            Limits(max_jobs_per_user=1),
            Limits(grp_tres={"cpu": max(self.nodes * self.cores // 2, 1)}),
            Limits(grp_tres_run_mins={"cpu": 20}),
            Limits(grp_tres_mins={"cpu": 60}),
            Limits(grp_wall=1800.0, max_submit_jobs_per_user=9),
            Limits(max_jobs_per_account=2, grp_jobs=3),
            Limits(),
        ]
        tree = [Association(account=name, limits=self.pick(*limits)) for name in ("physics", "biology")]
        tree += [
            Association(account=account, user=user, shares=int(self.pick(1, 3)), limits=self.pick(*limits))
            for user, account in zip(USERS, ("physics", "physics", "biology"), strict=True)
        ]
        preempts = {"high": ["normal"]}
        qos = [
            Qos(name=name, priority=priority, limits=self.pick(*limits), preempts=preempts.get(name, ()))
            for name, priority in (("normal", 0), ("high", 10), ("wide", 5))
        ]
        return Accounts(associations=tree, qos=qos)

    def _reservations(self) -> list[SlurmReservation]:
        at = float(self.pick(0, 300, 700))
        part = SlurmReservation(
            name="part", nodes=f"n{self.nodes}", start=at, end=at + 900, cores=[1] if self.cores > 1 else ()
        )
        whole = SlurmReservation(
            name="whole", nodes="n[1-2]", start=500.0, end=1400.0, flex=self.some(0.3), stays=self.some(0.5)
        )
        return [part, whole] if self.some(0.5) else [whole]

    def _settings(self) -> SlurmConf:
        drawn: dict[str, Any] = {
            "backfill": not self.some(0.2),
            "default_queue_depth": self.pick(100, 100, 3),
            "sched_interval": self.pick(60.0, 30.0, 400.0),
            "bf_interval": self.pick(30.0, 10.0, 47.0),
            "bf_window": self.pick(1440, 1440, 60, 20),
            "bf_resolution": self.pick(60, 60, 1, 45, 300),
            "over_time_limit": self.pick(0.0, 120.0),
            "enforce_limits": self.accounts is not None,
        }
        rare = {
            "bf_max_job_test": 4,
            "bf_max_job_user": 2,
            "bf_max_job_start": 1,
            "bf_max_job_array_resv": 1,
            "bf_node_space_size": 6,
            "bf_min_age_reserve": 300.0,
            "bf_window_linear": 60.0,
            "assoc_limit_stop": True,
            "partition_job_depth": 3,
            "sched_max_job_start": 1,
            "safe_limits": self.accounts is not None,
            "complete_wait": 7.0,
            "epilog": True,
            "least_loaded": True,
        }
        drawn |= {name: value for name, value in rare.items() if self.some(0.12)}
        if self.some(0.5):
            drawn |= {
                "multifactor": True,
                "weight_age": 1000.0,
                "max_age": 3600.0,
                "calc_period": self.pick(300.0, 60.0),
            }
            drawn |= {
                "weight_size": self.pick(0.0, 500.0),
                "weight_qos": 100.0,
                "weight_fair_share": self.pick(0.0, 900.0),
            }
        if self.some(0.15):
            kind = "qos" if self.accounts is not None and self.some(0.5) else "partition_prio"
            drawn |= {"preempt": kind, "preempt_mode": self.pick("requeue", "cancel", "suspend")}
        return SlurmConf(**drawn)

    def _job(self, number: int) -> Job:
        requested = 60.0 * int(self.pick(1, 2, 5, 10, 30, 60))
        each = int(self.rng.integers(1, self.cores + 1))
        nodes = int(min(self.pick(1, 1, 1, 2, 3), self.nodes))
        wide: dict[str, Any] = {"nodes": nodes, "cores_per_node": each}
        if self.counted or self.some(0.4):
            wide = {"processors": int(self.rng.integers(1, max(self.nodes * self.cores // 2, 2)))}
        options = "" if self.counted and self.some(0.95) else self.pick(*[""] * 6, *self._options(number))
        if self.reservations and self.some(0.2):
            options += f" --reservation={self.pick(*self.reservations).name}"
        if self.accounts is not None and self.some(0.3):
            options += " -q high"
        if self.partitions and self.some(0.3):
            options += self.pick(" -p short", " -p batch,short")
        return Job(
            id=f"7_{number}" if "-a " in options else f"{number}",
            submit=float(self.rng.uniform(0, 1800)),
            run=requested * float(self.pick(0.1, 0.5, 0.99, 1.02)),
            requested=requested,
            user=self.pick(*USERS),
            consumables={"matlab": 1} if not self.counted and self.some(0.05) else {},
            options=options.strip(),
            **wide,
        )

    def _options(self, number: int) -> list[str]:
        return [
            f"-a 0-99%{1 + number % 3}",
            "-w n1",
            "-x n2",
            "--begin=now+200",
            "--hold=now+100,now+400",
            "--deadline=now+4000",
        ]

    def runs(self, *, fast: bool) -> list[tuple[Any, ...]]:
        """Return the runs of its jobs, and what became of each job."""
        timing = SlurmTiming(main_first=0.3, scans=self.scans, completing=0.05 if self.cores == 2 else 0.0)
        rules = Slurm(
            self.settings,
            self.partitions,
            timing,
            accounts=self.accounts,
            reservations=self.reservations,
            fast=fast,
        )
        sim = start(self.spec, self.jobs, rules, overrun="continue")
        with suppress(Stalled):
            sim.run(until=60_000.0)
        result = sim.result()
        found = [(row["job"], row["start"], f"{row['end']}", tuple(row["nodes"] or ())) for row in result.runs.rows()]
        return sorted(found) + [(row["job"], row["status"]) for row in result.jobs.rows()]


@pytest.mark.parametrize("seed", seeds(6, 300))
def test_all_cycles_bring_what_those_that_are_not_passed_over_do(seed: int) -> None:
    assert Site(seed).runs(fast=True) == Site(seed).runs(fast=False)


def site_of(limits: Limits) -> Accounts:
    tree = [Association(account="physics", limits=limits), Association(account="physics", user="ada")]
    return Accounts(associations=tree)


@pytest.mark.parametrize("fast", [True, False])
def test_a_job_waits_no_longer_for_a_limit_than_until_another_has_ended(fast: bool) -> None:
    """The scan at 90 s stops job 0; the end of its Epilog starts the main loop at once, a second time at this instant.

    The first run found job 1 held by the limit of one job: the end of job 0 had not been noted yet.
    """
    jobs = [
        Job(id=0, submit=0.0, run=600.0, requested=60.0, nodes=1, user="ada"),
        Job(id=1, submit=1.0, run=30.0, requested=60.0, nodes=1, user="ada"),
    ]
    settings = SlurmConf(enforce_limits=True, epilog=True, sched_interval=30.0, bf_interval=1000.0)
    rules = Slurm(
        settings,
        timing=SlurmTiming(main_first=0.0, turn=1.0),
        accounts=site_of(Limits(grp_jobs=1)),
        fast=fast,
    )
    spec = ClusterSpec(partitions=[PartitionSpec(name="batch", nodes=[NodeSpec(names="n[1-2]", cores=1)])])
    result = simulate(spec, jobs, rules, overrun="continue")
    assert result.jobs["start"][1] == result.jobs["end"][0] == 90.0


def test_a_job_whose_limit_and_minutes_are_over_at_one_scan_is_stopped_once() -> None:
    jobs = [Job(id=0, submit=0.0, run=600.0, requested=60.0, nodes=1, user="ada")]
    settings = SlurmConf(enforce_limits=True, multifactor=True, calc_period=30.0)
    rules = Slurm(
        settings,
        timing=SlurmTiming(main_first=0.0, turn=1.0),
        accounts=site_of(Limits(grp_wall=60.0)),
    )
    result = simulate(ClusterSpec.simple(1), jobs, rules, overrun="continue")
    assert result.jobs["status"].tolist() == ["timeout"]
