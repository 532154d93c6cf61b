"""Simulations and scenarios start, step, change and repeat every kind of system in the same way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from simmodel import (
    Cluster,
    Environment,
    InputError,
    Job,
    PolicyError,
    Scenario,
    Simulation,
    Start,
    TaskSet,
    WakeAt,
    Workload,
    load_platform,
    load_scenario,
    load_workload,
    simulate,
    start,
)
from simmodel.platform.options import BrokerOptions, ClusterOptions, MachineOptions
from simmodel.runs.paths import parsed
from simmodel.scheduling.protocol import View

LOG = Workload({"submit": [0, 0, 3, 3, 9], "run": [10, 5, 7, 2, 4], "processors": [3, 2, 2, 1, 4]}, processors=4)
NODE = load_platform("hetsim-slow")
TASKS = TaskSet([3.0, 4.0, 5.0, 6.0])


def starts(result: Any) -> list[float]:
    table = result.tasks if hasattr(result, "tasks") else result.jobs
    return table["start"].tolist()


CASES = {
    "cluster": (4, LOG, "easy", {}),
    "machine": (NODE, TASKS, "greedy-et", {"overlap": True}),
    "broker": ({"a": 4, "b": 4}, LOG, "round-robin", {"policies": "fcfs"}),
}


@pytest.mark.parametrize("kind", CASES)
def test_simulate_is_start_run_and_result(kind: str) -> None:
    platform, work, policy, options = CASES[kind]
    whole = simulate(platform, work, policy, **options)
    simulation = start(platform, work, policy, **options)
    assert simulation.system.kind == kind
    assert simulation.run(until=4).env.now == 4
    assert starts(simulation.run().result()) == starts(whole)


@pytest.mark.parametrize("kind", CASES)
def test_a_stored_scenario_repeats_the_run(kind: str, tmp_path: Any) -> None:
    platform, work, policy, options = CASES[kind]
    whole = simulate(platform, work, policy, **options)
    whole.to_sqlite(tmp_path / "run.sqlite")
    again = load_scenario(tmp_path / "run.sqlite")
    assert again.kind.name == kind
    assert starts(again.run()) == starts(whole)


@pytest.mark.parametrize("kind", CASES)
def test_a_snapshot_stands_in_the_place_of_a_platform(kind: str, tmp_path: Any) -> None:
    platform, work, policy, options = CASES[kind]
    snapshot = start(platform, work, policy, **options).run(until=2.5).snapshot()
    rest = simulate(snapshot)
    whole = simulate(platform, work, policy, **options)
    assert [each for each in starts(rest) if each > 2.5] == [each for each in starts(whole) if each > 2.5]
    rest.to_json(tmp_path / "rest.json")
    assert starts(load_scenario(tmp_path / "rest.json").run()) == starts(rest)


# ---------------------------------------------------------------------- external decisions


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "sjf+easy"])
@pytest.mark.parametrize("name", ["lublin-128-week", "schedtwin"])
def test_a_simulation_that_is_stepped_starts_the_same_jobs(policy: str, name: str) -> None:
    log = load_workload(name)
    platform = 32 if log.processors is None else None
    whole = simulate(platform, log, policy)
    simulation = start(platform, log, policy)
    while simulation.next_decision() is not None:
        simulation.decide()
    stepped = simulation.result()
    assert np.array_equal(stepped.jobs["start"], whole.jobs["start"])
    assert stepped.decisions["count"] == whole.decisions["count"]


@pytest.mark.parametrize("kind", CASES)
def test_every_kind_can_be_stepped(kind: str) -> None:
    platform, work, policy, options = CASES[kind]
    simulation = start(platform, work, policy, **options)
    while (view := simulation.next_decision()) is not None:
        assert view is simulation.system.view
        assert simulation.decide() >= 0
    assert starts(simulation.result()) == starts(simulate(platform, work, policy, **options))


def test_decisions_are_applied_at_once_and_checked() -> None:
    simulation = start(4, LOG, "fcfs")
    view = simulation.next_decision()
    assert view is not None
    first, second = view.waiting
    place = view.places[0]
    assert simulation.decide([Start(second, place)]) == 1
    assert place.free == 2
    with pytest.raises(PolicyError, match="does not fit"):
        simulation.decide([Start(first, place)])
    assert simulation.decide([WakeAt(1.5)]) == 1
    again = simulation.next_decision()
    assert again is view
    assert simulation.env.now == 1.5
    assert starts(simulation.run().result())[:2] == [5, 0]


def test_a_snapshot_taken_at_a_question_is_one_before_the_decision() -> None:
    simulation = start(4, LOG, "easy")
    for _ in range(3):
        assert simulation.next_decision() is not None
        snapshot = simulation.snapshot()
        assert len(snapshot.waiting) == len(simulation.system.view.waiting)
        assert sorted(starts(simulate(snapshot)))[-2:] == sorted(starts(simulate(4, LOG, "easy")))[-2:]
        simulation.decide()


def test_a_run_goes_on_under_its_own_policy_after_questions() -> None:
    simulation = start(4, LOG, "easy")
    assert simulation.next_decision() is not None
    assert starts(simulation.run().result()) == starts(simulate(4, LOG, "easy"))


class Fcfs:
    """Starts jobs in order while they fit; asks if another one fits behind the first that does not."""

    def resume(self, view: View) -> Iterator[Start]:
        for job in view.waiting:
            if not view.places[0].fits(job):
                break
            yield Start(job, view.places[0])

    def asks(self, view: View) -> bool:
        return any(view.places[0].fits(job) for job in view.waiting)


def test_who_decides_first_is_asked_within_the_run() -> None:
    """Only what is left is a question: what fits behind a job that does not, at 0 and at 5 s."""
    jobs = [Job(processors=size, run=run, requested=run) for size, run in ((3, 5), (4, 5), (1, 20), (1, 5))]
    for starts_behind, wanted in ((True, [0, 20, 0, 25]), (False, [0, 5, 10, 10])):
        simulation, seen = start(4, jobs, "fcfs"), []
        while (view := simulation.next_decision(Fcfs())) is not None:
            seen.append(view.now)
            assert view is simulation.system.scheduler.question
            if starts_behind and len(seen) == 1:
                simulation.decide([Start(next(job for job in view.waiting if job.width == 1), view.places[0])])
        assert starts(simulation.result()) == wanted
        assert seen == ([0, 5] if starts_behind else [0])


def test_the_policy_decides_again_after_who_decided_first() -> None:
    simulation = start(4, LOG, "easy")
    assert simulation.next_decision(Fcfs()) is not None
    simulation.decide()
    assert starts(simulation.run().result()) == starts(simulate(4, LOG, "easy"))


def test_questions_end_at_the_instant_at_which_the_simulation_does() -> None:
    simulation = start(4, LOG, "easy", until=4)
    instants = []
    while simulation.next_decision() is not None:
        instants.append(simulation.env.now)
        simulation.decide()
    assert instants == [0, 3]
    assert simulation.env.now == 4
    assert simulation.next_decision() is None


def test_without_a_question_there_is_nothing_to_decide() -> None:
    with pytest.raises(InputError, match="no decision is awaited"):
        start(4, LOG, "fcfs").decide()
    with pytest.raises(InputError, match="decide_on='event'"):
        start(4, LOG, "fcfs", decide_on="event").next_decision()


def test_a_system_of_a_script_is_taken_as_it_is() -> None:
    cluster = Cluster(Environment(), 4, "easy")
    cluster.replay(LOG)
    simulation = Simulation(cluster, events=True)
    assert starts(simulation.run().result()) == starts(simulate(4, LOG, "easy"))
    assert simulation.result().events["event"].tolist().count("started") == len(LOG)


# ---------------------------------------------------------------------- scenarios


def test_scenarios_have_one_shape() -> None:
    for kind, (platform, work, policy, options) in CASES.items():
        scenario = Scenario.of(platform, work, policy, **options)
        assert scenario.kind.name == kind
        assert starts(scenario.run()) == starts(simulate(platform, work, policy, **options))
        assert scenario.get("seed") is ...
        assert scenario.evolve({"seed": 5}).seed == 5


def test_parts_are_reached_by_path_in_the_scenario_and_in_its_platform() -> None:
    small = Scenario.of("gpu-cluster", [Job(run=1)])
    assert small.get("partitions[0].nodes[0].cores") == small.platform.partitions[0].nodes[0].cores
    name = small.platform.partitions[0].name
    more = small.evolve({f"partitions.{name}.nodes[0].cores": 7, f"partitions['{name}'].nodes[0].count": 40, "seed": 3})
    assert (more.platform.partitions[0].nodes[0].cores, more.platform.partitions[0].nodes[0].count) == (7, 40)
    assert more.seed == 3
    assert small.platform.partitions[0].nodes[0].cores != 7  # the original is unchanged
    machine = Scenario.of(NODE, TASKS)
    pool = NODE.pools[0].name
    assert machine.evolve({f"pools.{pool}.size": 1e9}).get(f"platform.pools['{pool}'].size") == 1e9
    places = Scenario.of({"big one": 4, "b": 8}, LOG)
    assert (
        places.evolve({"places['big one'].partitions[0].processors": 6}).get("places.b.partitions[0].processors") == 8
    )
    assert Scenario.of(4, LOG).evolve({"options.overrun": "continue"}).options == ClusterOptions(overrun="continue")


def test_several_changes_are_checked_together() -> None:
    spec = load_platform("small")
    # Each change alone is invalid: intermediate states are never checked.
    partition = spec.partitions[0].name
    scenario = Scenario.of(spec, [Job(run=1)])
    changed = scenario.evolve({"default_partition": "new", "partitions[0].name": "new"})
    assert changed.platform.partition("new").name == "new"
    with pytest.raises(InputError):
        scenario.evolve({"default_partition": f"not {partition}"})


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("partitions[9].name", r"\[9\].name: must be an index below \d, got 9"),
        ("partitions.nowhere.name", "unknown name 'nowhere'; known names: "),
        ("partitons[0].name", "unknown field 'partitons'; did you mean 'partitions'"),
        ("options.overun", "unknown field 'overun'; did you mean 'overrun'"),
        ("seed.digits", "has no parts"),
        ("", "path '': must have at least one part"),
        ("partitions[", r"path 'partitions\[': must be"),
        ("partitions..name", "path 'partitions..name': must be"),
    ],
)
def test_paths_that_lead_nowhere_get_one_sentence(path: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Scenario.of("small", [Job(run=1)]).evolve({path: 1})


def test_changes_that_are_not_possible_get_one_sentence() -> None:
    scenario = Scenario.of(4, LOG)
    with pytest.raises(InputError, match="overrun: must be 'stop' or 'continue'"):
        scenario.evolve({"options.overrun": "pause"})
    with pytest.raises(InputError, match="cannot be replaced"):
        scenario.evolve({"platform": 8, "partitions[0].processors": 6})
    with pytest.raises(InputError, match="unknown option 'overun'; did you mean 'overrun'"):
        simulate(4, LOG, overun="stop")


@pytest.mark.parametrize("path", ["a.b[0]['any name'].c", 'x["it\'s"]', "a[0][1].b"])
def test_paths_have_parts(path: str) -> None:
    assert (
        parsed(path)
        == {
            "a.b[0]['any name'].c": ("a", "b", 0, "any name", "c"),
            'x["it\'s"]': ("x", "it's"),
            "a[0][1].b": ("a", 0, 1, "b"),
        }[path]
    )


def test_objects_and_large_work_are_to_be_given_again() -> None:
    result = simulate(4, LOG, lambda view: [Start(job, view.places[0]) for job in view.waiting][:0], until=3)
    stored = Scenario.from_document(result.scenario)
    with pytest.raises(InputError, match="was passed as an object: pass it as run"):
        stored.run()
    assert starts(stored.run(policy="fcfs", until=None)) == starts(simulate(4, LOG, "fcfs"))
    made = Scenario.from_document(simulate(4, [Job(run=1)], "fcfs").scenario)
    with pytest.raises(InputError, match="made in Python, or too large"):
        made.run()


def test_options_are_one_typed_value() -> None:
    assert ClusterOptions.names() == ["decide_on", "event_order", "estimates", "overrun", "sharing", "signals"]
    assert MachineOptions.of({"overlap": True}).overlap
    broker = BrokerOptions.of({"by": "actual", "overrun": "continue"})
    assert isinstance(broker, BrokerOptions)
    assert dict(broker.below) == {"overrun": "continue"}
    with pytest.raises(InputError, match="unknown option 'overun'"):
        simulate({"a": 4, "b": 4}, LOG, overun="stop")


# ---------------------------------------------------------------------- nested places

TREE = {"a": 4, "inner": {"b": 4, "c": 8}}


def test_policies_and_options_reach_the_places_below_by_path(tmp_path: Any) -> None:
    chosen = {"a": "easy", "inner": "round-robin", "inner.b": "sjf", "inner.c": "fcfs"}
    simulation = start(TREE, LOG, "least-loaded", policies=chosen, overrun="continue")
    inner = simulation.system.places[1].system
    assert simulation.system.policies_below() == chosen
    assert [place.system.core.overrun for place in inner.places] == ["continue", "continue"]
    result = simulation.run().result()
    result.to_json(tmp_path / "run.json")
    again = load_scenario(tmp_path / "run.json")
    assert again.policies == chosen
    assert starts(again.run()) == starts(result)
    one = start(TREE, LOG, "round-robin", policies="sjf").system.policies_below()
    assert one == {"a": "sjf", "inner": "sgs-t", "inner.b": "sjf", "inner.c": "sjf"}


def test_a_snapshot_of_nested_places_goes_on_under_other_policies() -> None:
    simulation = start(TREE, LOG, "round-robin", policies="fcfs").run(until=3.5)
    snapshot = simulation.snapshot()
    assert [each for each in starts(simulate(snapshot)) if each > 3.5] == [
        each for each in starts(simulation.run().result()) if each > 3.5
    ]
    other = start(snapshot, policies={"inner.b": "sjf+easy"}).system.policies_below()
    assert other == {"a": "fcfs", "inner": "sgs-t", "inner.b": "sjf+easy", "inner.c": "fcfs"}


def test_wrong_paths_of_policies_get_one_sentence() -> None:
    with pytest.raises(InputError, match="policies: unknown place 'x'"):
        start(TREE, LOG, policies={"a": "easy", "inner.x": "easy"})
    with pytest.raises(InputError, match="policies: missing inner"):
        start(TREE, LOG, policies={"a": "easy"})
    with pytest.raises(InputError, match="unknown option 'overun'; did you mean 'overrun'"):
        start(TREE, LOG, overun="stop")
