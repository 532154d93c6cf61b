"""An unknown name is a KeyError with a sentence and the nearest known name, wherever names are looked up."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from simmodel import InputError, compare, simulate, start, what_if
from simmodel.foundation.errors import ByName, unknown


def outcome() -> Any:
    snapshot = start(16, "probe-4", "fcfs").run(until=950).snapshot()
    return what_if(snapshot, ["fcfs"]).outcomes[0]


CASES: dict[str, tuple[Callable[[], Any], str, str]] = {
    "metrics": (lambda: simulate(16, "probe-4", "easy").metrics(), "wait", "wait_mean"),
    "numbers": (lambda: simulate(16, "probe-4", "easy").numbers(), "bounded_slowdown", "bounded_slowdown_mean"),
    "columns": (lambda: simulate(16, "probe-4", "easy").jobs, "wiat", "wait"),
    "tasks": (lambda: simulate("fpga-server", "fork-join", "heft").metrics(), "makspan", "makespan"),
    "broker": (lambda: simulate({"a": 16, "b": 16}, "probe-4", "sgs-t").metrics(), "wait", "wait_mean"),
    "clusters": (lambda: simulate({"alpha": 16, "beta": 16}, "probe-4", "sgs-t").clusters, "alfa", "alpha"),
    "comparison": (lambda: compare(16, "probe-4", ["fcfs", "easy"]), "fcsf", "fcfs"),
    "table": (lambda: compare(16, "probe-4", ["fcfs", "easy"]).metrics(), "wait", "wait_mean"),
    "measured": (lambda: compare(16, "probe-4", ["fcfs"], results=False)["fcfs"].metrics(), "wait", "wait_mean"),
    "outcome": (lambda: outcome().measures, "wait_maximum", "wait_max"),
}


@pytest.mark.parametrize("case", CASES)
def test_an_unknown_name_suggests_the_nearest(case: str) -> None:
    make, name, nearest = CASES[case]
    found = make()
    with pytest.raises(KeyError, match=f"did you mean {nearest!r}") as caught:
        found[name]
    assert isinstance(caught.value, InputError)
    assert "\n" not in str(caught.value)


def test_metrics_are_a_dictionary_in_all_else() -> None:
    metrics = simulate(16, "probe-4", "easy").metrics()
    copy = pickle.loads(pickle.dumps(metrics))
    assert type(copy) is ByName
    assert repr(copy) == repr(metrics) == repr(dict(metrics))
    assert repr(json.loads(json.dumps(metrics))) == repr(metrics)
    assert metrics.get("wait") is None
    assert "wait" not in metrics
    with pytest.raises(KeyError, match="did you mean 'wait_mean'"):
        copy["wait"]


def test_the_first_of_several_names_with_that_beginning_is_suggested() -> None:
    assert "'wait_mean'" in str(unknown("metric", "WAIT", ["wait_mean", "wait_std"])).split("Known")[0]
    assert "did you mean 'easy'" in str(unknown("policy", "esay", ["easy", "fcfs"]))
    assert "did you mean" not in str(unknown("queue", "n", ["night", "day"]))
