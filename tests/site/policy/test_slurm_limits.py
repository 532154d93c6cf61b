"""Limits of associations and QOS, and fair share in whole runs, worked by hand."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from simmodel import InputError, Job, simulate, start
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel_site.policy.accounts import Accounts, Association, Limits, Qos
from simmodel_site.policy.limits import Counted, Quotas
from simmodel_site.policy.policy import Slurm, SlurmTiming
from simmodel_site.policy.settings import SlurmConf, SlurmPartition

TREE = (
    Association(account="physics", limits=Limits(grp_tres={"cpu": 10}, max_jobs=2, max_wall=3600.0)),
    Association(account="optics", parent="physics", limits=Limits(grp_jobs=3)),
    Association(account="optics", user="ada", limits=Limits(max_tres_per_job={"cpu": 6})),
    Association(account="optics", user="bob", limits=Limits(max_jobs=5, max_tres_per_node={"cpu": 4})),
    Association(account="physics", user="cy"),
)
SHORT = Qos(
    name="short",
    limits=Limits(
        max_jobs_per_user=1, max_tres_per_user={"mem": 100}, max_jobs_per_account=2, min_tres_per_job={"cpu": 2}
    ),
)


def accounts(*qos: Qos, **asked: Any) -> Accounts:
    return Accounts(associations=TREE, qos=qos, **asked)


MINUTELY = SlurmConf(multifactor=True, calc_period=60.0, decay_half_life=300.0)


class Site:
    """Jobs that run, and the reasons why others do not."""

    def __init__(self, *qos: Qos, settings: SlurmConf | None = None, first: float = 0.0) -> None:
        self.accounts = accounts(*qos)
        self.quotas = Quotas(self.accounts, settings or SlurmConf(), first)
        self.number = 0

    def job(
        self, user: str, cpus: float = 1, *, nodes: float = 1, mem: float = 0, qos: str = "", wall: float = 60.0
    ) -> Counted:
        self.number += 1
        of = self.accounts.association(user)
        account = "" if of is None else of.account
        tres = {"cpu": float(cpus), "node": nodes, "mem": mem}
        return Counted(self.number, user, account, of, self.accounts.qos_of(None, of, qos), tres, wall)

    def runs(self, *args: Any, **more: Any) -> int:
        job = self.job(*args, **more)
        assert self.quotas.reason(job) is None
        self.quotas.started(job)
        return job.number

    def reason(self, *args: Any, **more: Any) -> str | None:
        return self.quotas.reason(self.job(*args, **more))


def test_a_group_counts_all_jobs_below_an_account() -> None:
    """10 CPUs for physics: 4 of ada and 5 of bob in optics, and cy gets one more, but not two."""
    site = Site()
    first = site.runs("ada", 4)
    site.runs("bob", 5, nodes=2)
    assert site.reason("cy", 2) == "AssocGrpCpuLimit"
    assert site.reason("cy", 1) is None
    site.quotas.ended(first, 0.0)
    assert site.reason("cy", 5) is None


def test_minutes_that_running_jobs_may_still_use() -> None:
    """100 CPU minutes for the QOS: a job of 4 CPUs for 10 minutes leaves 60; once 5 of these are over, 80."""
    long = Qos(name="long", limits=Limits(grp_tres_run_mins={"cpu": 100}, grp_tres={"cpu": 99}))
    site = Site(long, settings=MINUTELY, first=30.0)
    job = site.job("cy", 4, qos="long", wall=600.0)
    site.quotas.started(job._replace(started=30.0))
    assert site.reason("cy", 6, qos="long", wall=600.0) is None
    assert site.reason("cy", 7, qos="long", wall=600.0) == "QOSGrpCPURunMinutesLimit"
    site.quotas.pass_to(335.0)
    assert site.reason("cy", 8, qos="long", wall=600.0) is None
    assert site.reason("cy", 9, qos="long", wall=600.0) == "QOSGrpCPURunMinutesLimit"
    assert site.reason("cy", 5, wall=3600.0) is None  # 300 minutes, of another QOS


@pytest.mark.parametrize(
    ("flags", "factor", "used"),
    [
        ((), 1.0, (4.942516, 204.143400, 273.207704, 237.809991)),
        (("NoDecay",), 1.0, (5.0, 233.0, 305.0, 305.0)),
        ((), 2.0, (9.885032, 408.286800, 546.415409, 475.619982)),
    ],
)
def test_minutes_used_decay_as_slurmctld_told(flags: tuple[str, ...], factor: float, used: tuple[float, ...]) -> None:
    """A CPU for 5 s and four for 75 s, from 2 s on; usage is calculated at 59 and 119 s, and halves in 300 s.

    The numbers are what ``scontrol show assoc_mgr`` of slurmctld 22.05.8 printed. As limits of whole minutes count
    whole minutes, a limit is told from the next larger one.
    """

    def reached(minutes: int, at: float, seconds: float) -> bool:
        limits = Limits(grp_tres_mins={"cpu": minutes})
        qos = Qos(name="used", flags=flags, usage_factor=factor, limits=limits)
        site = Site(qos, settings=MINUTELY, first=-1.0)
        one, four = (site.job("cy", cpus, qos="used")._replace(started=2.0) for cpus in (1, 4))
        site.quotas.started(one)
        site.quotas.started(four)
        site.quotas.ended(one.number, 7.0)
        if at > 77.0:
            site.quotas.ended(four.number, 77.0)
        site.quotas.pass_to(at)
        reason = site.reason("cy", 1, qos="used")
        assert reason in (None, "QOSGrpCPUMinutesLimit")
        state = site.quotas.state()
        assert state["minutes"]["spent"][0][3]["cpu"] == pytest.approx(seconds, abs=2e-6)
        again = Quotas(site.accounts, MINUTELY, -1.0)
        again.restore(state)
        assert again.state() == state
        return reason is not None

    for at, seconds in zip((58.0, 60.0, 78.0, 119.0), used, strict=True):
        assert reached(max(int(seconds // 60), 1), at, seconds) == (seconds >= 60)
        assert not reached(int(seconds // 60) + 1, at, seconds)


def test_wall_time_used_by_an_account_and_those_below_it() -> None:
    """Two minutes for optics: ada and bob use 61, 58 and 1 s. cy is not of optics; the root has no such limit."""
    limits = Limits(grp_wall=120.0)
    tree = [
        attrs.evolve(each, limits=limits if each.account == "optics" and each.user is None else Limits())
        for each in TREE
    ]
    root = Association(account="root", limits=Limits(grp_wall=0.0, grp_tres_mins={"cpu": 0}))
    site = Site(settings=attrs.evolve(MINUTELY, decay_half_life=0.0))
    site.accounts = Accounts(associations=[root, *tree])
    site.quotas = Quotas(site.accounts, attrs.evolve(MINUTELY, decay_half_life=0.0))
    for user, began, ended in (("ada", 0.0, 61.0), ("bob", 70.0, 128.0), ("bob", 130.0, 131.0)):
        assert site.reason("ada") is None
        job = site.job(user, 8)._replace(started=began)
        site.quotas.started(job)
        site.quotas.ended(job.number, ended)
    assert site.reason("ada") == site.reason("bob") == "AssocGrpWallLimit"
    assert site.reason("cy") is None


def test_safe_limits_count_what_jobs_may_use() -> None:
    """10 CPU minutes for a QOS: beside a running job of 2 CPUs for 3 minutes, 4 are left, of which 3 s change nothing.

    Once it has ended after 30 s, one minute is used, and 9 are left.
    """
    qos = Qos(name="ten", flags=["NoDecay"], limits=Limits(grp_tres_mins={"cpu": 10}))
    site = Site(qos, settings=attrs.evolve(MINUTELY, safe_limits=True))
    running = site.runs("cy", 2, qos="ten", wall=180.0)
    assert site.reason("cy", 4, qos="ten", wall=60.0) is None
    assert site.reason("cy", 5, qos="ten", wall=60.0) == "QOSGrpCPUMinutesLimit"
    site.quotas.ended(running, 30.0)
    assert site.reason("cy", 9, qos="ten", wall=60.0) is None
    assert site.reason("cy", 10, qos="ten", wall=60.0) == "QOSGrpCPUMinutesLimit"
    assert not list(site.quotas.exhausted())


def test_minutes_are_counted_from_the_first_job_on_in_the_time_of_a_twin() -> None:
    """Half a minute of four CPUs in 2026: two CPU minutes are used."""
    site = Site(Qos(name="two", limits=Limits(grp_tres_mins={"cpu": 2})), settings=MINUTELY)
    job = site.job("cy", 4, qos="two")._replace(started=1.795e9)
    site.quotas.started(job)
    site.quotas.ended(job.number, 1.795e9 + 33)
    assert site.reason("cy", qos="two") == "QOSGrpCPUMinutesLimit"
    site.quotas.ended(site.runs("cy", 1), 1.795e9 + 34)
    assert site.quotas.state()["minutes"]["counted"] > 1.79e9


def test_without_priority_multifactor_nothing_is_used_up() -> None:
    site = Site(Qos(name="one", limits=Limits(grp_tres_mins={"cpu": 1}, grp_wall=60.0)))
    site.quotas.ended(site.runs("cy", 8, qos="one"), 1000.0)
    assert site.reason("cy", qos="one") is None


def test_the_limits_of_the_qos_of_a_partition_come_first() -> None:
    """Of two limits on CPUs of a job, that of the partition holds, or that of the job's QOS with OverPartQOS.

    A limit that one of them has alone holds too, and replaces that of the association.
    """
    of_partition = Qos(name="part", limits=Limits(max_tres_per_job={"cpu": 8}, grp_jobs=1))
    for flags, most in (((), 8), (("OverPartQOS",), 7)):
        own = Qos(name="own", flags=flags, limits=Limits(max_tres_per_job={"cpu": 7, "node": 2}))
        site = Site(of_partition, own)

        def job(cpus: int, nodes: int = 1, site: Site = site) -> Counted:
            return site.job("ada", cpus, nodes=nodes, qos="own")._replace(partition_qos=of_partition)

        assert site.quotas.reason(job(most)) is None
        assert site.quotas.reason(job(most + 1)) == "QOSMaxCpuPerJobLimit"
        assert site.quotas.reason(job(1, 3)) == "QOSMaxNodePerJobLimit"
        site.quotas.started(job(1))
        assert site.quotas.reason(job(1)) == "QOSGrpJobsLimit"


def test_jobs_beyond_a_limit_of_submissions_are_refused_and_counted() -> None:
    """ada may have two jobs that wait or run: the third is refused, as is the fourth; the fifth comes after an end.

    The partition has a QOS with three jobs in all, so that of bob's two the second is refused, and ada's fourth for
    that reason, since a QOS comes first.
    """
    tree = Accounts(
        associations=[
            Association(account="physics"),
            Association(account="physics", user="ada", limits=Limits(max_submit_jobs=2)),
            Association(account="physics", user="bob"),
        ],
        qos=[Qos(name="part", limits=Limits(grp_submit_jobs=3))],
    )
    policy = Slurm(
        SlurmConf(enforce_limits=True),
        [SlurmPartition(name="batch", qos="part", default=True)],
        SlurmTiming(main_first=1.0, turn=1.0),
        accounts=tree,
    )
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(names="n1")])])
    users = [(1, "ada", 0), (2, "ada", 1), (3, "ada", 2), (4, "bob", 3), (5, "bob", 4), (6, "ada", 5), (7, "ada", 60)]
    jobs = [Job(id=id, submit=at, run=50, requested=60, nodes=1, user=user) for id, user, at in users]
    result = simulate(spec, jobs, policy)
    status = {row["job"]: (row["status"], row["end"]) for row in result.jobs.rows()}
    refused = {3: ("cancelled", 2), 5: ("cancelled", 4), 6: ("cancelled", 5)}
    assert {id: each for id, each in status.items() if each[0] == "cancelled"} == refused
    assert result.runs["job"].tolist() == [1, 2, 4, 7]
    assert "refused 1 job at submission: AssocMaxSubmitJobLimit" in str(result.report)
    assert "refused 2 jobs at submission: QOSGrpSubmitJobsLimit" in str(result.report)


def test_jobs_of_a_group() -> None:
    site = Site()
    for user in ("ada", "ada", "bob"):
        site.runs(user)
    assert site.reason("bob") == "AssocGrpJobsLimit"
    assert site.reason("cy") is None


def test_a_limit_of_each_user_comes_from_the_account_above_if_it_has_none_itself() -> None:
    """MaxJobs=2 of physics holds for ada and for cy each; bob has 5."""
    site = Site()
    for user in ("ada", "ada", "bob"):
        site.runs(user)
    assert site.reason("ada") == "AssocGrpJobsLimit"
    site.quotas.ended(3, 0.0)
    assert site.reason("ada") == "AssocMaxJobsLimit"
    assert site.reason("bob") is None


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"user": "ada", "cpus": 7}, "AssocMaxCpuPerJobLimit"),
        ({"user": "bob", "cpus": 5}, "AssocMaxCpuPerNode"),
        ({"user": "bob", "cpus": 8, "nodes": 2}, None),
        ({"user": "ada", "wall": 3660.0}, "AssocMaxWallDurationPerJobLimit"),
        ({"user": "ada", "cpus": 1, "qos": "short"}, "QOSMinCpu"),
        ({"user": "ada", "cpus": 2, "mem": 101, "qos": "short"}, "QOSMaxMemoryPerUserLimit"),
        ({"user": "stranger", "cpus": 100}, None),
    ],
)
def test_limits_of_one_job(asked: dict[str, Any], reason: str | None) -> None:
    assert Site(SHORT).reason(**asked) == reason


def test_limits_of_users_and_accounts_of_a_qos() -> None:
    site = Site(SHORT)
    site.runs("ada", 2, qos="short")
    assert site.reason("ada", 2, qos="short") == "QOSMaxJobsPerUserLimit"
    assert site.reason("ada", 2) is None  # of another QOS
    site.runs("bob", 2, qos="short")
    assert site.reason("cy", 2, qos="short") is None  # of another account


def test_a_limit_of_a_qos_replaces_that_of_associations() -> None:
    wide = Qos(name="wide", limits=Limits(grp_tres={"cpu": 50}, max_wall=7200.0, max_tres_per_job={"cpu": 40}))
    site = Site(wide)
    assert site.reason("ada", 40, wall=7200.0, qos="wide") is None
    assert site.reason("ada", 41, qos="wide") == "QOSMaxCpuPerJobLimit"
    assert site.reason("ada", 40, wall=7260.0, qos="wide") == "QOSMaxWallDurationPerJobLimit"


# ---------------------------------------------------------------------- whole runs

SPEC = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=4)])])
TIMING = SlurmTiming(main_first=0.5, turn=1.0, backfill_first=30.0)
LIMITED = SlurmConf.of({"AccountingStorageEnforce": "associations,limits,qos"})


def starts(jobs: list[Job], policy: Slurm) -> dict[Any, float]:
    table = simulate(SPEC, jobs, policy).jobs
    return dict(zip(table["job"].tolist(), table["start"].tolist(), strict=True))


def test_a_job_at_a_limit_is_skipped_and_closes_nothing() -> None:
    """Users run one job each at a time: the second of ada waits until 53.5, that of bob behind it starts at once."""
    one = Accounts(
        associations=[
            Association(account="a", limits=Limits(max_jobs=1)),
            Association(account="a", user="ada"),
            Association(account="a", user="bob"),
        ]
    )
    jobs = [Job(id=i, run=50, requested=60, nodes=1, user=user) for i, user in enumerate(("ada", "ada", "bob"))]
    assert starts(jobs, Slurm(LIMITED, timing=TIMING, accounts=one)) == {0: 3.5, 1: 53.5, 2: 3.5}
    assert starts(jobs, Slurm(timing=TIMING, accounts=one)) == {0: 3.5, 1: 3.5, 2: 3.5}


def test_with_assoc_limit_stop_the_partition_is_closed() -> None:
    one = Accounts(qos=[Qos(name="normal", limits=Limits(max_jobs_per_user=1))])
    jobs = [Job(id=i, run=50, requested=60, nodes=1, user=user) for i, user in enumerate(("ada", "ada", "bob"))]
    settings = attrs.evolve(LIMITED, assoc_limit_stop=True, backfill=False)
    assert starts(jobs, Slurm(settings, timing=TIMING, accounts=one)) == {0: 3.5, 1: 53.5, 2: 53.5}


def test_backfill_skips_jobs_at_a_limit_too() -> None:
    """Job 1 blocks; behind it, of two short jobs of ada only one may run."""
    one = Accounts(qos=[Qos(name="normal", limits=Limits(max_jobs_per_user=1))])
    jobs = [
        Job(id=0, run=300, requested=300, nodes=2, user="x"),
        Job(id=1, submit=5, run=60, requested=60, nodes=4, user="y"),
        Job(id=2, submit=6, run=60, requested=60, nodes=1, user="ada"),
        Job(id=3, submit=7, run=60, requested=60, nodes=1, user="ada"),
    ]
    found = starts(jobs, Slurm(LIMITED, timing=TIMING, accounts=one))
    assert found[2] == 30.0
    assert found[3] >= 90.0


def test_a_qos_named_by_options_and_one_that_is_unknown() -> None:
    one = Accounts(qos=[Qos(name="single", limits=Limits(grp_jobs=1))])
    jobs = [Job(id=i, run=50, requested=60, nodes=1, options="-q single") for i in range(2)]
    assert starts(jobs, Slurm(LIMITED, timing=TIMING, accounts=one)) == {0: 3.5, 1: 53.5}
    with pytest.raises(InputError, match="unknown QOS 'other'"):
        simulate(SPEC, [attrs.evolve(jobs[0], options="-q other")], Slurm(LIMITED, accounts=one))


def test_running_jobs_are_stopped_when_their_minutes_are_used_up_and_others_wait_until_usage_has_decayed() -> None:
    """Two CPU minutes for a QOS, calculated at 0.5, 60.5, ... s, as are scans every 30 s.

    From 3.5 to 60.5 s, job 0 has used 4 * 57 * 0.99769 ** 57 = 200 CPU s, and is stopped. 180 s later 132 are left,
    240 s later 115, less than two minutes: job 2 starts at the full run after that. Job 1 is of another QOS.
    """
    settings = attrs.evolve(
        LIMITED, multifactor=True, calc_period=60.0, decay_half_life=300.0, backfill=False, sched_interval=30.0
    )
    jobs = [
        Job(id=0, run=290, requested=300, nodes=4, user="ada", options="-q two"),
        Job(id=1, submit=10, run=50, requested=60, nodes=1, user="bob"),
        Job(id=2, submit=11, run=50, requested=60, nodes=1, user="ada", options="-q two"),
    ]
    both = Accounts(qos=[Qos(name="two", limits=Limits(grp_tres_mins={"cpu": 2}))])
    policy = Slurm(settings, timing=TIMING, accounts=both)
    spec = attrs.evolve(SPEC, name="cut")
    cut = start(spec, jobs, policy, overrun="continue")
    cut.run(until=200.0)
    for result in (simulate(spec, jobs, policy, overrun="continue"), simulate(cut.snapshot(), policy=policy)):
        rows = {row["job"]: (row["start"], row["end"], row["status"]) for row in result.jobs.rows()}
        if 0 in rows:
            assert rows[0][2] == "timeout"
            assert rows[0][1] == 60.5
            assert rows[1][0] == 60.5
        assert 300.5 <= rows[2][0] <= 330.5


def test_what_is_not_known_of_limits_is_told() -> None:
    one = Accounts(qos=[Qos(name="long", limits=Limits(grp_wall=3600.0))])
    told = "leaves out what was used before, of GrpTRESMins and GrpWall"
    assert told in str(simulate(SPEC, [Job(run=1)], Slurm(LIMITED, accounts=one)).report)
    assert told not in str(simulate(SPEC, [Job(run=1)], Slurm(LIMITED, accounts=Accounts())).report)
    assert "knows no accounts" in str(simulate(SPEC, [Job(run=1)], Slurm(LIMITED)).report)


def test_the_user_who_has_used_less_comes_first() -> None:
    """ada has run 200 s on all nodes; when usage is calculated at 300.5, bob's younger job goes before hers."""
    settings = SlurmConf(multifactor=True, weight_fair_share=1000.0)
    both = Accounts(
        associations=[
            Association(account="a"),
            Association(account="a", user="ada"),
            Association(account="a", user="bob"),
        ]
    )
    jobs = [
        Job(id=1, run=320, requested=360, nodes=4, user="ada"),
        Job(id=2, submit=5, run=10, requested=60, nodes=4, user="ada"),
        Job(id=3, submit=6, run=10, requested=60, nodes=4, user="bob"),
    ]
    found = starts(jobs, Slurm(settings, timing=TIMING, accounts=both))
    assert found[1] < found[3] < found[2]
    without = starts(jobs, Slurm(attrs.evolve(settings, weight_fair_share=0.0), timing=TIMING, accounts=both))
    assert without[1] < without[2] < without[3]


def test_a_run_with_fair_share_and_limits_that_is_cut_is_the_same() -> None:
    settings = attrs.evolve(LIMITED, multifactor=True, weight_fair_share=1000.0, calc_period=60.0)
    users = ("ada", "bob", "cy")
    three = Accounts(
        associations=[
            Association(account="a"),
            *(
                Association(account="a", user=user, shares=i + 1, limits=Limits(max_jobs=2))
                for i, user in enumerate(users)
            ),
        ]
    )
    jobs = [
        Job(id=i, submit=7 * i, run=20 + 31 * i % 170, requested=240, nodes=1 + i % 3, user=users[i * i % 3])
        for i in range(40)
    ]
    policy = Slurm(settings, timing=TIMING, accounts=three)
    whole = starts(jobs, policy)
    first = start(SPEC, jobs, policy)
    first.run(until=500.0)
    table = simulate(first.snapshot(), policy=policy).jobs
    rest = dict(zip(table["job"].tolist(), table["start"].tolist(), strict=True))
    later = {job: at for job, at in whole.items() if at > 500.0}
    assert len(later) > 10
    assert {job: rest[job] for job in later} == later


def test_a_job_that_another_policy_has_started_counts_with_its_limit() -> None:
    """Of 25 CPU minutes, it may use 10 from its start at 1000 s on: one job of 10 minutes fits beside it, not two."""
    one = Accounts(qos=[Qos(name="normal", limits=Limits(grp_tres_run_mins={"cpu": 25}))])
    jobs = [Job(id=i, submit=1000 + 100 * i, run=500, requested=600, nodes=1) for i in range(3)]
    begun = start(SPEC, jobs, "fcfs")
    begun.run(until=1050)
    table = simulate(begun.snapshot(), policy=Slurm(LIMITED, timing=TIMING, accounts=one)).jobs
    assert table["job"].tolist() == [0, 1, 2]
    assert 1100 <= table["start"][1] <= 1110
    assert 1500 <= table["start"][2] <= 1510


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"associations": [Association(account="a", parent="b")]}, "a: unknown account 'b'"),
        ({"associations": [Association(account="a"), Association(account="a")]}, "'a' is given twice"),
        (
            {"associations": [Association(account="a", parent="b"), Association(account="b", parent="a")]},
            "a: its account is above itself",
        ),
        ({"qos": [Qos(name="q"), Qos(name="q")]}, "a QOS is given twice"),
        ({"qos": [Qos(name="q", preempts=["p"])]}, "qos q: unknown QOS 'p'"),
        ({"asked": {1: "p"}}, "asked: unknown QOS 'p'"),
    ],
)
def test_wrong_accounts_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Accounts(**values)
