"""Why a broker chose a place: estimates, what each place would have given, and the wait there."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simmodel import Job, Start, Workload, simulate
from simmodel.foundation.errors import InputError
from simmodel.platform import GridSpec, SiteSpec
from simmodel.referee import explain
from simmodel.scheduling import policy


def places(found: Any) -> dict[str, tuple[float, ...]]:
    """Return for each place the estimated and the simulated start."""
    return {row["place"]: (row["estimated_start"], row["start"]) for row in found.places.rows()}


JOBS = [Job(id=i, submit=i, processors=3, run=20 + i, requested=40) for i in range(1, 5)]


def test_the_choice_of_a_broker_by_hand() -> None:
    """Job 1 runs on a until 22 s and 2 on b until 24 s; 3 waits on a. The broker expects jobs to run for 40 s."""
    found = explain({"a": 4, "b": 4}, {"a": JOBS}, "round-robin", 3)
    assert (found.chosen, found.at, found.start) == ("a", 3.0, 22.0)
    assert places(found) == {"a": (41.0, 22.0), "b": (42.0, 24.0)}
    assert found.changes == ()
    assert found.there is not None
    assert (found.there.reason, found.there.holders[0].job) == ("processors", 1)
    assert found.report().split("\n")[0] == "job 3 at 3 s: sent to a by round-robin, where it starts at 22 s"


def test_a_better_place_is_a_change() -> None:
    def to_b(view: Any) -> Any:
        for job in view.waiting:
            yield Start(job, view.places[1], "b is nearer")

    found = explain({"a": 4, "b": 4, "small": 2}, {"a": JOBS}, to_b, 2)
    assert [change.text for change in found.changes] == ["on a it would start at 2 s, 20 s earlier"]
    assert found.told["reason"].tolist() == ["b is nearer"]
    assert np.isnan(places(found)["small"]).all()


@pytest.mark.parametrize("seed", range(6))
def test_estimates_of_the_last_job_come_true_if_jobs_run_as_long_as_they_may(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = 30
    run = rng.integers(1, 60, count)
    columns = {"submit": np.sort(rng.integers(0, 200, count)), "run": run, "requested": run}
    log = Workload({**columns, "processors": rng.integers(1, 5, count)}, name="drawn")
    found = explain({"a": 4, "b": 6, "c": 4}, log, ("sgs-t", "least-loaded")[seed % 2], count, policies="easy")
    assert all(estimated == start for estimated, start in places(found).values())
    own = simulate({"a": 4, "b": 6, "c": 4}, log, ("sgs-t", "least-loaded")[seed % 2], policies="easy").jobs
    assert (own["destination"][-1], own["start"][-1]) == (found.chosen, found.start)


def test_jobs_of_several_homes_are_named_with_their_home() -> None:
    logs = {"a": [Job(id=1, run=10)], "b": [Job(id=1, run=10)]}
    with pytest.raises(InputError, match="job: must name its home: a:1, b:1, got 1"):
        explain({"a": 4, "b": 4}, logs, "round-robin", 1)
    assert explain({"a": 4, "b": 4}, logs, "round-robin", "b:1").chosen == "b"
    with pytest.raises(InputError, match="job: must be one of the 2 jobs, got 7"):
        explain({"a": 4, "b": 4}, logs, "round-robin", 7)
    with pytest.raises(InputError, match="at: must be None for a job of a broker"):
        explain({"a": 4, "b": 4}, logs, "round-robin", "b:1", at=5)
    with pytest.raises(InputError, match="was not sent to a place: it is rejected"):
        explain({"a": 4, "b": 4}, [Job(id=1, processors=8, run=10)], "round-robin", 1)


def test_the_choice_of_a_site_has_the_ends_at_all_sites(tmp_path: Path) -> None:
    spec = GridSpec(sites=[SiteSpec(name="a", cores=2), SiteSpec(name="b", cores=4)])
    found = explain(spec, [Job(id=i, processors=2, run=10) for i in range(8)], "least-loaded", 7)
    assert (found.chosen, places(found)) == ("b", {"a": (30.0, 30.0), "b": (20.0, 20.0)})
    assert found.there is not None
    assert found.there.ahead == (4, 5)
    assert json.loads(found.to_json(tmp_path / "why.json"))["there"]["reason"] == "processors"
    assert found.plot(title="") is not None


def test_results_explain_and_name_what_their_scenario_lacks() -> None:
    brokered = simulate({"a": 4, "b": 4}, {"a": JOBS}, "round-robin")
    assert brokered.explain(3, workload={"a": JOBS}).chosen == "a"
    with pytest.raises(InputError, match=r"pass it as explain\(workload=...\)"):
        brokered.explain(3)
    assert simulate(12, "probe-4", "easy").explain(3).reason == "processors"
    own = simulate(12, "probe-4", policy("fcfs"))
    with pytest.raises(InputError, match="was passed as an object"):
        own.explain(3)
    assert own.explain(3, policy="easy").expected == 1000.0
