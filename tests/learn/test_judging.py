"""Agents and heuristics week by week, by hand; and what is refused."""

import numpy as np
import pytest

from simmodel import simulate
from simmodel.foundation.errors import InputError
from simmodel.learn import Trained, agent_policy, batch_env, judge, route_env
from simmodel.metrics.statistics import cautious_interval
from tests.helpers.learning import mixed_log

HOUR = 3600.0
LOG = mixed_log(240)
WEEKS = [(HOUR * i, HOUR * (i + 1)) for i in range(4)]


def shortest(observation, mask):
    return int(np.where(mask, observation["jobs"][:, 2], 2.0).argmin())


def widest(observation, mask):
    return int(np.where(mask, observation["jobs"][:, 1], -1.0).argmax())


def policies(*functions, **options):
    return [agent_policy(each, batch_env(8, window=32, **options)) for each in functions]


def waits(policy, weeks, log=LOG):
    since = log["submit"] - log["submit"][0]
    parts = [log.where((since >= begin) & (since < end)) for begin, end in weeks]
    return np.array([simulate(8, part, policy).metrics()["wait_mean"] for part in parts])


def test_weeks_are_runs_of_their_own_and_differences_are_paired():
    short, wide = policies(shortest, widest)
    weeks = [(HOUR / 2 * i, HOUR / 2 * (i + 1)) for i in range(8)]
    agents = {"agent": [Trained(short, 100, 2.5), Trained(wide, 50, 1.5)], "other": wide}
    found = judge(agents, LOG, weeks, 8, metric="wait_mean", heuristics=["fcfs", "sjf", "ljf"])
    by_hand = {name: waits(name, weeks) for name in ("fcfs", "sjf", "ljf")}
    assert found.heuristics == sorted(by_hand, key=lambda name: by_hand[name].mean())
    own = np.array([waits(short, weeks), waits(wide, weeks)])
    assert found.values["agent"].tolist() == own.tolist()
    assert found.interval("sjf") == cautious_interval(by_hand["sjf"], 0.95)
    best = by_hand[found.best]
    assert found.difference("agent") == cautious_interval(own.mean(axis=0) - best, 0.95)
    assert found.difference("other", "fcfs") == cautious_interval(own[1] - by_hand["fcfs"], 0.95)
    row = next(row for row in found.table.rows() if row["policy"] == "agent")
    assert (row["seeds"], row["steps"], row["seconds"]) == (2, 150, 4.0)
    assert row["worst_seed"] == own.mean(axis=1).max()


def test_summaries_and_plots_of_a_judgement():
    pytest.importorskip("matplotlib")
    found = judge({"agent": policies(shortest, widest)}, LOG, WEEKS, 8, metric="wait_mean", heuristics=["fcfs", "sjf"])
    head, agent, *_, last = found.summary().splitlines()
    assert head.split("  ")[-1] == "CPU s"
    assert agent.split()[:1] == ["agent"]
    assert "±" not in found.summary()
    assert last.startswith("4 weeks, each from an empty system; no intervals: fewer than 5 weeks; the best heuristic")
    assert repr(found) == "<Judgement: 1 agent, 2 heuristics, 4 weeks>"
    assert "worst seed" in found._repr_html_()
    labels = [text.get_text() for text in found.plot().axes[0].get_yticklabels()]
    assert labels == ["agent", found.heuristics[1]]


def test_all_heuristics_of_the_kind_by_default():
    found = judge({"agent": policies(shortest)[0]}, LOG, WEEKS[:1], 8)
    assert {"f4", "sjf+easy", "conservative"} < set(found.heuristics)
    route = agent_policy(lambda seen, mask: int(mask.argmax()), route_env((8, 8), LOG))
    found = judge({"agent": route}, LOG, WEEKS[:1], (8, 8))
    assert {"least-loaded", "sgs-t"} < set(found.heuristics)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"agents": {}}, "agents: must be at least one agent by name, got {}"),
        ({"agents": {"agent": []}}, "agents: must be at least one agent by name"),
        ({"agents": ["sjf"]}, "agents: must be at least one agent by name, got \\['sjf'\\]"),
        ({"seeds": 3}, "seeds: must not be given: each week is run once"),
        ({"weeks": 3}, "weeks: must be at least one span, got 3"),
        ({"agents": {"sjf": "fcfs"}}, "agents: must not have the name of a heuristic, 'sjf'"),
        ({"agents": {"a": "fcfs", "a 1": "fcfs", "sjf": "fcfs"}}, "agents: must not have the name of a heuristic"),
        ({"agents": {"a": ["fcfs", "fcfs"], "a 1": "fcfs"}}, "agents: duplicate name 'a 1'"),
        ({"weeks": []}, "weeks: must be at least one span"),
        ({"weeks": [(0, 50), (40, 90)]}, "weeks: must not overlap, as week 1 and week 2 do from 40 s on"),
        ({"weeks": [(0, 50), (0, 50)]}, "weeks: must not overlap, as week 1 and week 2 do from 0 s on"),
        ({"weeks": [(90, 50)]}, "span: must be two instants >= 0 s, the first one before the second"),
        ({"weeks": [(1e9, 2e9)]}, "weeks: has no jobs from 1e\\+09 to 2e\\+09 s"),
        ({"agents": {"late": Trained("fcfs", span=(0, 60))}}, "agents, late: must not have learned from what it is"),
        ({"metric": "wait_maen"}, "unknown metric 'wait_maen'; did you mean 'wait_mean'"),
        ({"heuristics": ["sfj"]}, "unknown policy 'sfj'"),
    ],
)
def test_wrong_judgements_are_errors(changed, message):
    given = {"agents": {"agent": "ljf"}, "weeks": [(0, 3600)], "heuristics": ["fcfs", "sjf"], **changed}
    with pytest.raises(InputError, match=message):
        judge(given.pop("agents"), LOG, given.pop("weeks"), 8, **given)


def test_unknown_names_are_errors():
    found = judge({"agent": "ljf"}, LOG, WEEKS[:1], 8, heuristics=["sjf"])
    with pytest.raises(InputError, match="unknown agent or heuristic 'agnet'; did you mean 'agent'"):
        found.interval("agnet")
