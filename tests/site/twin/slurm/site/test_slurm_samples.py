"""What a change of Slurm does to waits: by group, on parts of the log from its recorded state, on resampled logs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from simmodel import InputError
from simmodel.cli import main
from simmodel.extending import worker_pool
from simmodel_site.policy.accounts import Accounts, Association, Qos
from simmodel_site.twin.slurm.site import replayed
from simmodel_site.twin.slurm.site.folder import SlurmFolder, read_folder
from simmodel_site.twin.slurm.site.replayed import change
from simmodel_site.twin.slurm.site.sampled import LogSample
from tests.site.helpers.slurm_month import month
from tests.site.helpers.slurm_sacct import sacct_line, site_folder

MORE = ["NodeName=n[9-12] CPUs=16"]


@pytest.fixture(scope="module")
def weeks(tmp_path_factory: pytest.TempPathFactory) -> SlurmFolder:
    """Return a site of 8 nodes with 100 jobs of 30 users in three weeks and more."""
    return read_folder(month(tmp_path_factory.mktemp("weeks"), 100, 8, load=0.27))


def test_waits_are_told_by_partition_qos_and_account(weeks: SlurmFolder) -> None:
    found = change(weeks, MORE, phases=2)
    assert [each.metric for each in found.effects[:4]] == ["wait_mean", "wait_median", "wait_p95", "wait_max"]
    assert found.jobs[""] == 100
    for kind, count in (("partition", 2), ("QOS", 2), ("account", 4)):
        mine = [each for each in found.effects if each.workload.startswith(kind)]
        assert len(mine) == count
        sizes = [found.jobs[each.workload] for each in mine]
        assert sum(sizes) == 100
        for name in ("value", "before"):
            mean = np.average([getattr(each, name) for each in mine], weights=sizes)
            assert mean == pytest.approx(getattr(found.effects[0], name))
    assert found.effects[0].verdict.startswith("better by")
    lines = found.report().splitlines()
    assert [line.split("  ")[0] for line in lines[7:9]] == ["partition batch", "partition short"]


def test_other_processes_find_the_same(weeks: SlurmFolder) -> None:
    with worker_pool(2) as pool:
        found = change(weeks, MORE, phases=2, executor=pool)
    assert found.to_json() == change(weeks, MORE, phases=2).to_json()


def test_a_window_begins_with_the_jobs_that_ran_and_waited(tmp_path: Path) -> None:
    """Job 1 has all nodes until 603, job 2 waits for them; job 3 comes within the last 200 s and waits for both."""
    times = {1: (0, 3, 600), 2: (10, 605, 60), 3: (500, 670, 60)}
    lines = [sacct_line(job, "-N 4 -n 16", submit=at, start=start, run=run) for job, (at, start, run) in times.items()]
    site = read_folder(site_folder(tmp_path, lines))
    found = change(site, ["NodeName=n[5-8] CPUs=4"], phases=2, window="200")
    mean = found.effects[0]
    assert found.jobs[""] == 1
    assert mean.before == pytest.approx(170, abs=15)
    assert mean.value < 5
    assert found.told[1] == (
        "1 of 3 jobs in this part of the log, 2 left out; recorded state at the begin: 1 running, 1 waiting"
    )
    first = change(site, ["NodeName=n[5-8] CPUs=4"], phases=2, window="first:200")
    assert first.jobs[""] == 2
    assert "0 running, 0 waiting" in first.told[1]


@pytest.mark.parametrize("window", ["4d", "6d"])
def test_a_part_goes_on_as_the_whole_log_does(window: str, tmp_path: Path) -> None:
    """Where the record is what the policy does, jobs of a part start when they do in a run of the whole log."""
    site = read_folder(month(tmp_path, 160, 8, load=0.75, seed=3))
    conf, phase = replayed.changed_settings(site), replayed._Phase.of(0, 2)
    own, _ = replayed._starts(site, conf, phase)
    recorded = tuple(attrs.evolve(each, start=own[each.job.id or 0]) for each in site.recorded)
    sample = LogSample.of(attrs.evolve(site, recorded=recorded), window=window)
    part, begin = sample.part(0), sample.spans[0][0]
    assert len(part.jobs) > len(part.measured) + part.running
    found, _ = replayed._starts(site, conf, phase, part=part)
    assert max(abs(found[job] - own[job]) for job in part.measured) <= 60
    assert {job for job in found if found[job] < begin} <= {job for job in own if own[job] < begin}
    assert np.mean([own[job] - site.recorded[row].job.submit for job, row in part.measured.items()]) > 3600


def test_weeks_are_drawn_by_the_seed_and_counted(weeks: SlurmFolder) -> None:
    one, same, other = (LogSample.of(weeks, weeks=2, seed=seed) for seed in (1, 1, 4))
    assert one.spans == same.spans != other.spans
    assert sum(len(one.part(number).measured) for number in range(2)) < 100
    found = change(weeks, MORE, sample=2, seed=1)
    assert (found.kind, found.effects[0].difference.count) == ("weeks", 2)
    assert found.told[0].startswith("2 weeks drawn at random, from 2024-05-")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"window": "1w", "sample": 2}, "--window and --sample: exclude each other"),
        ({"window": "second:1w"}, "--window: must be a time such as 2w, or first:2w"),
        ({"sample": 50}, "--sample: must be from 2 to the number of whole weeks in the log"),
        ({"resample": "jobs"}, "--resample: must be 'users', got 'jobs'"),
        ({"phases": 1}, "--phases: must be a whole number >= 2, got 1"),
    ],
)
def test_a_wrong_sample_gets_one_sentence(options: Any, sentence: str, weeks: SlurmFolder) -> None:
    with pytest.raises(InputError, match=sentence):
        change(weeks, MORE, **options)


def test_resampled_logs_have_the_spread_of_their_differences(weeks: SlurmFolder) -> None:
    found = change(weeks, MORE, resample="users", runs=5)
    mean = found.effects[0]
    assert (found.kind, mean.difference.count, mean.verdict[:17]) == ("users", 5, "indication only: ")
    assert mean.percent.mean == pytest.approx(change(weeks, MORE, phases=5).effects[0].percent.mean, abs=5)
    assert mean.difference.low < mean.difference.mean < mean.difference.high
    assert "only an indication: it spans" in found.report()
    assert "% over all" in found.report().splitlines()[3]


def test_copies_of_users_have_their_associations_and_qos(weeks: SlurmFolder) -> None:
    users = sorted({(str(each.job.group), str(each.job.user)) for each in weeks.recorded})
    above = [Association(account=account) for account in sorted({account for account, _ in users})]
    below = [Association(account=account, user=user) for account, user in users]
    asked = {each.job.id: each.qos for each in weeks.recorded if each.job.id is not None}
    accounts = Accounts(associations=[*above, *below], qos=[Qos(name="high", priority=5)], asked=asked)
    part = LogSample.of(attrs.evolve(weeks, accounts=accounts), resample="users").part(3)
    assert part.accounts is not None
    copies = {job.user for job in part.jobs if "#" in str(job.user)}
    assert copies
    assert all(part.accounts.association(job.user, job.group) for job in part.jobs)
    for job in part.jobs:
        assert part.accounts.asked[job.id or 0] == weeks.recorded[part.measured[job.id or 0]].qos


def test_the_bar_moves_while_the_first_run_lasts(weeks: SlurmFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int | str] = []

    class Bar:
        update = staticmethod(steps.append)

        def close(self) -> None: ...

    @contextmanager
    def bar(total: int, unit: str, wanted: bool) -> Iterator[Any]:
        steps.append(total)
        yield Bar()

    own = replayed._starts
    monkeypatch.setattr(replayed, "progress_bar", bar)
    monkeypatch.setattr(replayed, "_starts", lambda *given, **how: (own(*given, **how), steps.append("over"))[0])
    change(weeks, MORE, phases=2, progress=True)
    assert steps.index("over") > 100
    assert sum(step for step in steps[1:] if isinstance(step, int)) == steps[0] == 2 * 2 * 100


def test_the_command_writes_effects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    run = partial(_ran, str(month(folder, 60, 8, load=0.4)))
    out, table = tmp_path / "out.json", tmp_path / "out.csv"
    assert run("--set", MORE[0], "--window", "2w", "--phases", "2", "--json", str(out), "--csv", str(table)) == 0
    told = json.loads(out.read_text())
    assert told["differences"][0]["metric"] == "wait_mean"
    assert told["sample"]["kind"] == "phases"
    assert len(table.read_text().splitlines()) == 1 + len(told["differences"])
    capsys.readouterr()
    for option in (("--window", "1w"), ("--runs", "5")):
        assert run(*option) == 2
        assert f"{option[0]}: needs --set" in capsys.readouterr().err


def _ran(folder: str, *given: str) -> int | None:
    return main(["slurm", "replay", folder, *given])
