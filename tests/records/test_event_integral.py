"""With everything at once on a cluster, every figure equals an integral over its events that knows no record."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from simmodel import load_result
from simmodel.metrics import energy, node_energy, power
from simmodel.results import Result
from simmodel.view.gantt import pieces
from tests.helpers.crowded_clusters import Crowd, crowds, run_crowd
from tests.helpers.event_integral import EventIntegral
from tests.helpers.examples import up_to

UNTIL = 300.0
OVER = ("completed", "timeout", "failed", "cancelled", "lost")
NOT_OVER = ("waiting", "running", "suspended")


def close(found: Any, expected: Any) -> bool:
    return bool(np.allclose(found, expected, rtol=1e-9, atol=1e-9))


def check_figures(result: Result, integral: EventIntegral) -> None:
    """Compare every figure over time, and its integral."""
    begin, end = result.started, result.ended
    for place in (None, *integral.places):
        figures = {"busy": result.busy(place), "allocated": result.allocated(place), "there": result.capacity(place)}
        if place is None:
            figures |= {"watts": power(result), "watts_by_node": power(result, model="node")}
        for name, steps in figures.items():
            at, values = zip(*(integral.over_time(place, name, begin, end) or [(end, 0.0)]), strict=True)
            if end > begin:
                assert close(steps.at(np.array(at)), values), (place, name)
            assert close(steps.integral(), integral.integral(place, name, begin, end)), (place, name)
        share = result.utilisation(place).values
        assert ((share >= 0) & (share <= 1 + 1e-9)).all()
    for model, name in (("linear", "watts"), ("node", "watts_by_node")):
        joules = energy(result, model=model).total  # type: ignore[arg-type]
        assert close(joules, integral.integral(None, name, begin, end))
        for place in integral.places:
            if integral.kinds[place]:
                each = node_energy(result, place, model=model)  # type: ignore[arg-type]
                assert close(each["energy"].sum(), integral.integral(place, name, begin, end))


def spans_of(result: Result) -> list[tuple[Any, ...]]:
    held = result.held()
    nodes = held["nodes"].tolist()
    columns = (held[name].tolist() for name in ("place", "holder", "start", "end", "processors"))
    return [
        (place, holder, start, None if np.isnan(end) else end, processors, None if on is None else tuple(on))
        for place, holder, start, end, processors, on in zip(*columns, nodes, strict=True)
    ]


def check_tables(result: Result, integral: EventIntegral) -> None:
    """Compare the executions and the claims, row by row."""
    assert sorted(spans_of(result), key=repr) == sorted((tuple(each) for each in integral.all_spans()), key=repr)


def check_gantt(result: Result, integral: EventIntegral) -> None:
    """Compare the rectangles of the chart with what was held; no two of them overlap on counted processors."""
    for place, kinds in integral.kinds.items():
        held, which, rows = pieces(result, place)
        end = np.where(np.isnan(held["end"]), result.ended, held["end"])
        area = np.bincount(which, rows[:, 1] - rows[:, 0], minlength=len(held)) * (end - held["start"])
        nodes = [len(each.nodes) if each.nodes else each.processors for each in integral.all_spans()]
        ends = [result.ended if each.end is None else each.end for each in integral.all_spans()]
        expected = [
            width * (until - each.start)
            for width, until, each in zip(nodes, ends, integral.all_spans(), strict=True)
            if each.place == place
        ]
        assert close(sorted(area), sorted(expected))
        if kinds:
            continue
        lasting = [
            (held["start"][i], end[i], low, high)
            for i, (low, high) in zip(which.tolist(), rows.tolist(), strict=True)
            if end[i] > held["start"][i]
        ]
        for i, (start, stop, low, high) in enumerate(lasting):
            for other_start, other_stop, other_low, other_high in lasting[:i]:
                beside = stop <= other_start or other_stop <= start or high <= other_low or other_high <= low
                assert beside


def check_jobs(crowd: Crowd, result: Result, cluster: Any, refused: list[Any]) -> None:
    """Check that no job is lost: each is over, waits, runs or was rejected, and the system says the same."""
    status = dict(zip(result.jobs["job"].tolist(), result.jobs["status"].tolist(), strict=True))
    assert sorted([*status, *refused]) == sorted(job.id for job in crowd.jobs)
    assert set(status.values()) <= {*OVER, *NOT_OVER, "rejected"}
    assert {job.id for job in cluster.present()} == {job for job, each in status.items() if each in NOT_OVER}


def check(crowd: Crowd, folder: Any) -> None:
    watched: list[EventIntegral] = []

    def integral_of(cluster: Any) -> EventIntegral:
        watched.append(EventIntegral(cluster))
        return watched[0]

    cluster, refused = run_crowd(crowd, UNTIL, integral_of)
    integral = watched[0]
    integral.check()
    result = cluster.result()
    check_jobs(crowd, result, cluster, refused)
    check_tables(result, integral)
    check_figures(result, integral)
    check_gantt(result, integral)
    if crowd.seed % 10 == 0:
        result.to_csv(folder / "run")
        result.to_sqlite(folder / "run.sqlite")
        for stored in (load_result(folder / "run"), load_result(folder / "run.sqlite")):
            assert isinstance(stored, Result)
            check_tables(stored, integral)
            check_figures(stored, integral)


HEALTH = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]


@given(crowd=crowds())
@settings(max_examples=up_to(100), suppress_health_check=HEALTH)
def test_every_figure_equals_the_integral_over_the_events(crowd: Crowd, tmp_path_factory: Any) -> None:
    check(crowd, tmp_path_factory.mktemp("stored"))


@pytest.mark.exhaustive
@given(crowd=crowds())
@settings(max_examples=up_to(5000), suppress_health_check=HEALTH)
def test_every_figure_equals_the_integral_over_many_events(crowd: Crowd, tmp_path_factory: Any) -> None:
    check(crowd, tmp_path_factory.mktemp("stored"))
