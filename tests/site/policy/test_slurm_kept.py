"""Reservations that the loops keep themselves: FLEX, IGNORE_JOBS, accounts, and cores of nodes; worked by hand.

Turns at 1, 2, 3, ... s, cycles of the backfill loop at 30, 60, 90, ... s, if something has changed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from simmodel import InputError, Job, simulate, start
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.scheduling.registry import policy
from simmodel_site.policy.accounts import Accounts, Association
from simmodel_site.policy.last_runs import LastRuns
from simmodel_site.policy.policy import Slurm, SlurmTiming
from simmodel_site.policy.reservations import SlurmReservation, reservations_of
from simmodel_site.policy.settings import SlurmConf

TIMING = SlurmTiming(main_first=1.0, turn=1.0, backfill_first=30.0)


def cluster(nodes: int = 2, cores: int = 1) -> ClusterSpec:
    return ClusterSpec(partitions=[PartitionSpec(name="batch", nodes=[NodeSpec(names=f"n[1-{nodes}]", cores=cores)])])


def job(id: int, submit: float, nodes: int, minutes: float, run: float, reservation: str = "", **more: Any) -> Job:
    options = f"--reservation={reservation}" if reservation else ""
    return Job(id=id, submit=submit, nodes=nodes, requested=60 * minutes, run=run, options=options, **more)


def kept(text: str, settings: SlurmConf | None = None, accounts: Accounts | None = None) -> Slurm:
    return Slurm(settings, timing=TIMING, accounts=accounts, reservations=reservations_of(text))


def placed(jobs: list[Job], rules: Slurm, spec: ClusterSpec | None = None) -> dict[int, tuple[float, tuple[str, ...]]]:
    runs = simulate(spec or cluster(), jobs, rules).runs
    return {row["job"]: (row["start"], tuple(row["nodes"])) for row in runs.rows()}


def test_a_reservation_is_kept_for_the_jobs_that_name_it() -> None:
    """n1 is reserved from 100 to 400 s. Job 1 of two minutes gets n2 at 4 s, since it would run into it; job 2 has n1.

    Both end by 114 s, when something asks for the main loop again: job 3 for the reservation starts there, though n1
    was free from 54 s on, and job 4 of five minutes on n2, which was not.
    """
    jobs = [job(1, 0, 1, 2, 110), job(2, 0, 1, 1, 50), job(3, 1, 1, 3, 100, "course"), job(4, 60, 1, 5, 10)]
    found = placed(jobs, kept("course:nodes=n1:start=100:end=400", SlurmConf(sched_interval=1000)))
    assert found == {1: (4, (1,)), 2: (4, (0,)), 3: (114, (0,)), 4: (114, (1,))}


def test_jobs_of_a_reservation_come_first_and_close_no_partition() -> None:
    """Of both nodes, n1 is reserved. Jobs 1 and 2 for it: the second waits, and job 3, which is ordinary, starts."""
    jobs = [job(3, 0, 1, 1, 50), job(1, 1, 1, 1, 50, "course"), job(2, 2, 1, 1, 50, "course")]
    found = placed(jobs, kept("course:nodes=n1:start=0:end=1000"))
    assert found[1] == (4, (0,))
    assert found[3] == (4, (1,))
    assert 54 <= found[2][0] <= 58
    assert found[2][1] == (0,)


@pytest.mark.parametrize("flex", [True, False])
def test_jobs_of_a_flexible_reservation_start_before_it_end_after_it_and_have_other_nodes(flex: bool) -> None:
    """n1 is reserved from 60 to 180 s. Job 1 of two nodes for five minutes starts at once if the reservation is FLEX.

    Else it can never start there, and is cancelled when the reservation is over, at a full run of the main loop.
    An ordinary job of five minutes has n2 alone.
    """
    jobs = [job(1, 0, 2, 5, 250, "course"), job(2, 1, 1, 5, 30)]
    result = simulate(cluster(), jobs, kept(f"course:nodes=n1:start=60:end=180{':flex' * flex}"))
    rows = {row["job"]: row for row in result.jobs.rows()}
    if flex:
        assert (rows[1]["start"], rows[1]["status"]) == (4, "completed")
        assert rows[2]["start"] >= 254
    else:
        assert rows[1]["status"] == "cancelled"
        assert 180 <= rows[1]["end"] <= 241
        assert rows[2]["start"] == 4


def test_jobs_that_run_when_a_reservation_begins_go_on_and_it_has_each_node_when_it_is_free() -> None:
    """IGNORE_JOBS: n1 and n2 are reserved from 60 s on, when job 1 still runs on n1, past its limit.

    Job 2 for the reservation, of one node, starts on n2; job 3 for it when job 1 ends at 104 s.
    """
    jobs = [job(1, 0, 1, 1, 100), job(2, 5, 1, 1, 50, "course"), job(3, 6, 1, 1, 50, "course")]
    settings = SlurmConf(over_time_limit=3600.0, sched_interval=30.0)
    runs = simulate(cluster(), jobs, kept("course:nodes=n[1-2]:start=66:end=1000", settings), overrun="continue").runs
    found = {row["job"]: (row["start"], row["end"], tuple(row["nodes"])) for row in runs.rows()}
    assert found[1] == (4, 104, (0,))
    assert found[2][2] == (1,)
    assert 66 <= found[2][0] <= 91
    assert found[3][2] == (0,)
    assert 104 <= found[3][0] <= 108


def test_a_reservation_of_some_cores_leaves_the_others() -> None:
    """n1 has four cores, one of them reserved: ordinary jobs have three; the reservation's jobs one at a time.

    Job 2 for the reservation starts beside job 1, which has three; job 3 of a core waits for one of the three, job 4 of
    two cores for the reservation, which has one, can never start.
    """
    one = {"nodes": 1, "cores_per_node": 1}
    jobs = [
        Job(id=1, submit=0, run=100, requested=120, nodes=1, cores_per_node=3),
        Job(id=2, submit=1, run=50, requested=60, options="--reservation=course", **one),
        Job(id=3, submit=2, run=50, requested=60, **one),
        Job(id=5, submit=3, run=50, requested=60, options="--reservation=course", **one),
        Job(id=4, submit=4, run=50, requested=60, nodes=1, cores_per_node=2, options="--reservation=course"),
    ]
    result = simulate(cluster(1, 4), jobs, kept("course:nodes=n1:start=0:end=1000:cores=1"))
    rows = {row["job"]: row for row in result.jobs.rows()}
    assert rows[1]["start"] == rows[2]["start"] == 4
    assert 54 <= rows[5]["start"] <= 61
    assert 104 <= rows[3]["start"] <= 121
    assert rows[4]["status"] == "cancelled"
    assert 1000 <= rows[4]["end"] <= 1061


@pytest.mark.parametrize(
    ("who", "allowed"),
    [
        ("users=ada", (True, False, False)),
        ("users=-ada", (False, True, True)),
        ("accounts=physics", (True, True, False)),
        ("accounts=-physics", (False, False, True)),
        ("users=ada+cy:accounts=physics", (True, False, False)),
    ],
)
def test_users_and_accounts_that_may_use_a_reservation(who: str, allowed: tuple[bool, ...]) -> None:
    """ada and bob are of physics, cy of biology; a job must match both lists. Others are refused as they come."""
    users = (("ada", "physics"), ("bob", "physics"), ("cy", "biology"))
    tree = [Association(account=name) for name in ("physics", "biology")]
    tree += [Association(account=account, user=user) for user, account in users]
    text = f"course:nodes=n[1-3]:start=0:end=1000:{who}"
    for accounts in (None, Accounts(associations=tree)):
        jobs = [
            job(i, i, 1, 1, 10, "course", user=user, group=account if accounts is None else None)
            for i, (user, account) in enumerate(users)
        ]
        result = simulate(cluster(3), jobs, kept(text, accounts=accounts))
        assert tuple(status == "completed" for status in result.jobs["status"].tolist()) == allowed
        count = allowed.count(False)
        told = f"refused {count} job{'s' if count > 1 else ''} at submission: Access denied to requested reservation"
        assert told in str(result.report)


def test_jobs_that_stay_are_ordinary_once_their_reservation_is_over() -> None:
    """n2 alone is reserved, until 30 s; job 1 has two nodes. With NO_HOLD_JOBS_AFTER it starts then."""
    jobs = [job(1, 0, 2, 1, 10, "course")]
    result = simulate(cluster(), jobs, kept("course:nodes=n2:start=0:end=30:stays"))
    assert 30 <= float(result.jobs["start"][0]) <= 61
    assert simulate(cluster(), jobs, kept("course:nodes=n2:start=0:end=30")).jobs["status"][0] == "cancelled"


def test_plans_go_around_a_reservation() -> None:
    """n2 is reserved from 120 to 240 s. At 30 s job 1 of two nodes for two minutes is planned at 241 s.

    Job 2 of three minutes on n1 ends before that and starts; job 3 of four minutes does not, until job 1 has run.
    """
    jobs = [job(1, 20, 2, 2, 100), job(3, 21, 1, 4, 10), job(2, 22, 1, 3, 30)]
    found = placed(jobs, kept("course:nodes=n2:start=120:end=240", SlurmConf(sched_interval=1000)))
    assert found[2] == (30, (0,))
    assert 240 <= found[1][0] <= 270
    assert found[3][0] >= found[1][0] + 100


def test_starts_that_slurmctld_made() -> None:
    """Four nodes of two cores: n1 is for FLEX jobs from 64 s on, a core of n3 and all of n4 are reserved, n2 is away.

    slurmctld 22.05.8 started both FLEX jobs at once, the second on the core of n3 that is kept for others; the jobs for
    that at 12 and 32 s, one after another, while their plans kept n3 from job 6; this at 37 s, job 7 behind it at 77 s,
    and job 5 of ten minutes at 187 s, when the reservations were over. It refused job 8.
    """

    def asked(id: int, submit: float, cores: int, minutes: float, run: float, options: str) -> Job:
        limit = 60 * minutes
        return Job(
            id=id,
            submit=submit,
            run=run + 0.02,
            requested=limit,
            nodes=1,
            cores_per_node=cores,
            user="ada",
            options=options,
        )

    jobs = [
        asked(0, 2.00, 1, 1, 1, "-w n1"),  # so that the main loop has run at 5 s
        asked(1, 7.10, 2, 5, 100, "--reservation=flex"),
        asked(2, 7.11, 1, 1, 5, "--reservation=flex"),
        asked(3, 7.12, 1, 1, 20, "--reservation=core"),
        asked(4, 7.13, 1, 1, 5, "--reservation=core"),
        asked(9, 7.14, 2, 1, 5, "--reservation=core"),
        asked(8, 7.15, 1, 1, 5, "--reservation=deny"),
        asked(5, 7.16, 2, 10, 5, ""),
        asked(6, 7.17, 1, 1, 30, "-w n3"),
        asked(7, 7.18, 1, 1, 5, "-w n3"),
    ]
    rules = Slurm(
        SlurmConf(bf_interval=10.0, bf_resolution=1),
        timing=SlurmTiming(main_first=-3.0, backfill_first=-2.34, completing=0.0045),
        reservations=reservations_of(
            "flex:nodes=n1:start=64:end=184:users=ada:flex;away:nodes=n2:start=5:end=185:users=bob;"
            "core:nodes=n3:start=5:end=185:users=ada:cores=1;deny:nodes=n4:start=5:end=185:users=-ada"
        ),
    )
    result = simulate(cluster(4, 2), jobs, rules)
    found = {row["job"]: (int(row["start"] + 0.9), row["nodes"][0]) for row in result.runs.rows()}
    assert found.pop(0)[0] < 4
    assert found == {1: (8, 0), 2: (8, 2), 3: (13, 2), 4: (33, 2), 6: (38, 2), 7: (78, 2), 5: (188, 0)}


def test_unknown_reservations_and_nodes_are_told() -> None:
    report = str(simulate(cluster(), [job(1, 0, 1, 1, 10, "other")], kept("course:nodes=n[2-3]:start=0:end=9")).report)
    assert "leaves out --reservation=other of 1 job, such as 1" in report
    assert "leaves out n3 of reservation course: there is no such node" in report


@pytest.mark.parametrize("until", [20.0, 70.0, 200.0])
def test_a_simulation_continues_from_a_snapshot(until: float) -> None:
    jobs = [job(i, 7 * i, 1 + i % 2, 1 + i % 4, 20 + 13 * i % 50, "course" if i % 3 else "") for i in range(12)]
    rules = kept("course:nodes=n[1-2]:start=60:end=500:flex")
    whole = placed(jobs, rules)
    simulation = start(cluster(), jobs, rules)
    simulation.run(until=until)
    again = simulate(simulation.snapshot(), policy=rules).runs
    rest = {row["job"]: row["start"] for row in again.rows()}
    later = {name: at for name, (at, _) in whole.items() if at > until}
    assert {name: rest[name] for name in later} == later


def test_a_text_says_all() -> None:
    text = "a:nodes=n[1-2]:start=60:end=120:users=ada+bob:accounts=-x:cores=2:flex:stays;b:nodes=n3:start=0"
    rules = Slurm.of(reservations=text)
    assert rules.text == f"slurm(reservations=({text}))"
    assert isinstance(again := policy(rules.text), Slurm)
    assert again.reservations == rules.reservations == rules.evolve(SlurmConf(bf_interval=9.0)).reservations


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a:nodes=n1:start=x", "reservation a, start: must be a number, got 'x'"),
        ("a:nodes=n1:begin=1", "unknown key 'begin'"),
        ("a:nodes=n1:start=9:end=9", "a.end: must be > start"),
        ("a:nodes=n1:users=-x+y", "a.users: must be those who may use it, or those who may not"),
        ("a:nodes=n[1-3]:cores=1+2", "a.cores: must be a number, or one for each node"),
    ],
)
def test_wrong_reservations_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        reservations_of(text)


def test_two_reservations_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match="reservations: a name is given twice"):
        kept("a:nodes=n1;a:nodes=n2")


def test_a_reservation_without_end_is_one() -> None:
    assert SlurmReservation(name="a", nodes="n1").text == "a:nodes=n1:start=0"


@given(st.integers(0, 10**6))
def test_nobody_has_what_is_kept_for_others(seed: int) -> None:
    """Of drawn jobs and reservations: starts keep to them, and cycles that are left out would start nothing."""
    rng = np.random.default_rng(seed)
    whole = SlurmReservation(name="whole", nodes="n[1-2]", start=float(rng.integers(200)), end=500, flex=seed % 3 == 0)
    part = SlurmReservation(name="part", nodes="n[3-4]", start=0, end=float(rng.integers(300, 900)), cores=[1, 2])
    jobs = []
    for i in range(30):
        cores, limit = int(rng.integers(1, 4)), int(rng.integers(1, 7))
        name = str(rng.choice(["", "", "whole", "part"]))
        jobs.append(
            Job(
                id=i,
                submit=float(rng.integers(400)),
                run=float(rng.integers(1, 60 * limit + 1)),
                requested=60 * limit,
                nodes=int(rng.integers(1, 3)),
                cores_per_node=cores,
                options=f"--reservation={name}" if name else "",
            )
        )
    jobs.sort(key=lambda job: job.submit)
    runs = simulate(cluster(4, 3), jobs, Slurm(timing=TIMING, reservations=[whole, part])).runs
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LastRuns, "settled", lambda *_: False)
        again = simulate(cluster(4, 3), jobs, Slurm(timing=TIMING, reservations=[whole, part])).runs
    assert runs["start"].tolist() == again["start"].tolist()
    by_id = {job.id: job for job in jobs}
    used: dict[tuple[int, float, int], float] = {}
    for row in runs.rows():
        job, start, nodes = by_id[row["job"]], int(row["start"]), set(row["nodes"])
        end, own = start + (job.requested or 0.0), job.options.rpartition("=")[2]
        if own == "whole" and not whole.flex:
            assert whole.start <= start
            assert end <= whole.end
            assert nodes <= {0, 1}
        elif own != "whole":
            assert end <= whole.start or start >= whole.end or not nodes & {0, 1}
        if own == "part":
            assert end <= part.end
            assert nodes <= {2, 3}
        if not own and start < part.end:
            for other in runs.rows():
                if not by_id[other["job"]].options and other["start"] <= row["start"] < other["end"]:
                    for node in nodes & {*other["nodes"]} & {2, 3}:
                        key = node, row["start"], row["job"]
                        used[key] = used.get(key, 0.0) + by_id[other["job"]].cores_per_node
    assert all(amount <= {2: 2, 3: 1}[node] for (node, *_), amount in used.items())
