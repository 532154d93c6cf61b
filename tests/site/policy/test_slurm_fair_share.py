"""Fair share and priorities against a recorded run of slurmctld and slurmdbd 22.05.8, and worked by hand."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from simmodel_site.policy.accounts import Accounts, Association
from simmodel_site.policy.fair_share import Bill, Charges, FairShare
from simmodel_site.policy.priority import Asked, multifactor
from simmodel_site.policy.settings import SlurmConf

CLASSIC = 377.0
"""From this instant on, slurmctld ran with NO_FAIR_TREE."""

SETTINGS = SlurmConf.of(
    {
        "PriorityType": "priority/multifactor",
        "PriorityDecayHalfLife": "00:05:00",
        "PriorityMaxAge": "00:20:00",
        "PriorityWeightAge": "1000",
        "PriorityWeightFairshare": "100000",
        "PriorityWeightAssoc": "3000",
        "PriorityWeightJobSize": "2000",
        "PriorityWeightPartition": "500",
        "PriorityWeightQOS": "7000",
        "PriorityWeightTRES": "CPU=1500,Mem=900",
    }
)
QOS = {"high": (1.0, 2.0), "normal": (0.2, 1.0), "low": (0.1, 0.5)}
"""Their priorities as parts of the largest one, and their UsageFactor."""


class Row(NamedTuple):
    """A job of the recorded run; instants in seconds."""

    id: int
    user: str
    account: str
    qos: str
    partition: str
    eligible: int
    start: int | None
    end: int | None
    asked: int
    cpus: int
    nice: int

    @property
    def amount(self) -> float:
        """What it is charged: TRESBillingWeights are CPU=2.0,Mem=1.0G in one partition; 100 MB a CPU."""
        billed = self.cpus if self.partition == "wide" else self.cpus * (2.0 + 100 / 1024)
        return billed * QOS[self.qos][1]


@cache
def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(__file__).parent / "fair_share.json").read_text(encoding="utf-8"))
    return found


def jobs() -> list[Row]:
    return [Row(*row) for row in document()["jobs"]]


@cache
def accounts() -> Accounts:
    rows = document()["associations"]
    return Accounts(
        associations=[
            Association(account=account, user=user, parent=parent or "root", shares=shares, priority=priority)
            for account, user, parent, shares, priority in rows
        ]
    )


class Replayed:
    """The usage of the recorded run, followed instant by instant."""

    def __init__(self) -> None:
        self.charges = Charges(FairShare(accounts(), half_life=300.0))
        self.tables: dict[float, dict[tuple[str, str | None], tuple[float, float]]] = {}
        self.priorities: list[tuple[float, int, float]] = []
        for each in self._events():
            self._take(*each)

    def _events(self) -> list[tuple[float, int, str, Row | None]]:
        found: list[tuple[float, int, str, Row | None]] = []
        found += [(at, 0, "calculation", None) for at in document()["calculations"]]
        found += [(at, 0, "table", None) for at in document()["asked"]]
        found += [(table[0], 0, "table", None) for table in document()["tables"]]
        found.append((CLASSIC, 0, "classic", None))
        for job in jobs():
            if job.start is not None:
                found.append((job.start, 2, "start", job))
            if job.end is not None:
                found.append((job.end, 1, "end", job))
        submitted: set[int] = set()
        for at, number, _ in document()["priorities"]:
            if number not in submitted:
                submitted.add(number)
                found.append((at, 3, "submission", next(job for job in jobs() if job.id == number)))
        return sorted(found, key=lambda each: each[:2])

    def _take(self, at: float, _: int, what: str, job: Row | None) -> None:
        charges = self.charges
        if what == "classic":
            after = FairShare(accounts(), half_life=300.0, fair_tree=False)
            after.restore(charges.share.state())
            charges.share = after
        elif what == "table":
            rows = charges.share.table()
            self.tables[at] = {(account, user): (effective, factor) for account, user, _, effective, factor in rows}
        elif what == "calculation":
            waiting = [each for each in jobs() if each.eligible < at and (each.start is None or each.start >= at)]
            charges.calculate(at, [(each.id, lambda each=each: self._print(at, each)) for each in waiting])  # type: ignore[misc]
        elif job is not None and what == "submission":
            self._print(job.eligible, job)
        elif job is not None and what == "start":
            charges.started(job.id, Bill(job.account, job.user, None, job.amount, int(at)))
        elif job is not None:
            charges.ended(job.id, at)

    def _print(self, at: float, job: Row) -> None:
        node = accounts().association(job.user, job.account)
        ranks = [each.priority for each in accounts().path(node)]
        cpus, memory = (16, 8000) if job.partition == "wide" else (8, 4000)
        asked = Asked(
            1 / 4,
            job.asked / 16,
            at - job.eligible,
            0.2 if job.partition == "wide" else 1.0,
            float(job.nice),
            fair_share=self.charges.share.factor(job.account, job.user),
            association=next((each for each in ranks if each), 0) / 40,
            qos=QOS[job.qos][0],
            tres={"cpu": job.asked / cpus, "mem": job.asked * 100 / memory},
        )
        self.priorities.append((at, job.id, multifactor(asked, SETTINGS)))


@cache
def replayed() -> Replayed:
    return Replayed()


@pytest.mark.parametrize("number", [0, 1, 2])
def test_usage_and_factors_are_those_that_sshare_printed(number: int) -> None:
    """42 users below 10 accounts below 4: after 2 and 6 periods by Fair Tree, after 8 by the older algorithm."""
    at, rows = document()["tables"][number]
    found = replayed().tables[at]
    for account, user, effective, factor in rows:
        if (account, user) == ("root", None):
            continue
        assert found[account, user][0] == pytest.approx(effective, abs=1e-6), (account, user)
        if factor is not None and (user is not None or at > CLASSIC):
            assert found[account, user][1] == pytest.approx(factor, abs=1e-6), (account, user)


def test_all_priorities_are_those_that_slurmctld_printed() -> None:
    told = [(number, int(value)) for _, number, value in document()["priorities"]]
    found = [(number, int(value)) for _, number, value in replayed().priorities]
    assert len(told) == 376
    assert found == told


def test_age_counts_until_the_largest_age() -> None:
    settings = SlurmConf(multifactor=True, weight_age=1000.0, max_age=100.0)
    found = [multifactor(Asked(0.0, 0.0, age, 0.0), settings) for age in (-1.0, 25.0, 100.0, 150.0)]
    assert found == [1.0, 250.0, 1000.0, 1000.0]
